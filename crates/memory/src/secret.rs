// SPDX-License-Identifier: Apache-2.0
//! Secret bytes.

use crate::registers::wipe_registers;
use crate::{arena, os};
use std::fmt;
use std::ptr::NonNull;

/// Secret bytes in protected memory: locked, left out of core dumps, wiped on fork, zeroised on
/// drop. There is no `Clone`, and `Debug` shows the length only.
///
/// In a forked child a secret of the parent reads as zeros.
pub struct Secret {
    start: NonNull<u8>,
    length: usize,
}

// SAFETY: the bytes are owned, like those of a box.
unsafe impl Send for Secret {}
// SAFETY: shared access only reads.
unsafe impl Sync for Secret {}

/// What a panic carries when there is no protected memory left: its catcher can say so.
#[derive(Debug)]
pub struct Exhausted;

impl Secret {
    /// `length` zero bytes, to be filled in place.
    ///
    /// # Panics
    /// With [`Exhausted`] when the address space is used up.
    #[must_use]
    pub fn zeroed(length: usize) -> Self {
        Self::try_zeroed(length).unwrap_or_else(|| std::panic::panic_any(Exhausted))
    }

    /// [`Self::zeroed`] for lengths that come from outside: `None` when there is no room.
    #[must_use]
    pub fn try_zeroed(length: usize) -> Option<Self> {
        if length == 0 {
            return Some(Self { start: NonNull::<u128>::dangling().cast(), length });
        }
        Some(Self { start: arena::allocate(length)?, length })
    }

    /// A copy of `bytes`; the caller still has its own to wipe.
    #[must_use]
    pub fn copy_of(bytes: &[u8]) -> Self {
        let mut secret = Self::zeroed(bytes.len());
        secret.expose_mut().copy_from_slice(bytes);
        secret
    }

    /// [`Self::copy_of`] for lengths that come from outside: `None` when there is no room.
    #[must_use]
    pub fn try_copy_of(bytes: &[u8]) -> Option<Self> {
        let mut secret = Self::try_zeroed(bytes.len())?;
        secret.expose_mut().copy_from_slice(bytes);
        Some(secret)
    }

    /// The bytes of a vector, which are wiped there, and what else it has room for.
    #[must_use]
    pub fn taken(mut bytes: Vec<u8>) -> Self {
        let secret = Self::copy_of(&bytes);
        let capacity = bytes.capacity();
        // SAFETY: so many bytes are owned; nothing of them is read again.
        unsafe { os::wipe(bytes.as_mut_ptr(), capacity) };
        secret
    }

    /// The bytes. Search for this word to find every exposure.
    #[must_use]
    pub const fn expose(&self) -> &[u8] {
        // SAFETY: so many bytes are owned and were initialised from the start.
        unsafe { std::slice::from_raw_parts(self.start.as_ptr(), self.length) }
    }

    /// The bytes, writable.
    #[must_use]
    pub const fn expose_mut(&mut self) -> &mut [u8] {
        // SAFETY: as in `expose`; they are borrowed exclusively.
        unsafe { std::slice::from_raw_parts_mut(self.start.as_ptr(), self.length) }
    }

    /// How many bytes.
    #[must_use]
    pub const fn len(&self) -> usize {
        self.length
    }

    /// Whether there are none.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.length == 0
    }

    /// The same secret cut to its first `length` bytes, in place; the rest is zeroised.
    ///
    /// # Panics
    /// When it is shorter than that.
    #[must_use]
    pub fn truncated(mut self, length: usize) -> Self {
        assert!(length <= self.length, "a secret cannot be cut longer");
        if length == 0 {
            return Self::zeroed(0);
        }
        let rest = &mut self.expose_mut()[length..];
        let (start, count) = (rest.as_mut_ptr(), rest.len());
        // SAFETY: the bytes that are cut off, still owned.
        unsafe { os::wipe(start, count) };
        self.length = length;
        self
    }
}

impl Drop for Secret {
    fn drop(&mut self) {
        if self.length > 0 {
            // SAFETY: allocated in `try_zeroed`, freed once; the arena zeroises.
            unsafe { arena::free(self.start) };
            wipe_registers();
        }
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Secret({} bytes)", self.len())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_vector_that_is_taken_becomes_a_secret() {
        let mut bytes = vec![7; 1000];
        bytes.truncate(10);
        assert_eq!(Secret::taken(bytes).expose(), [7; 10]);
        assert!(Secret::taken(Vec::new()).is_empty());
    }

    #[test]
    fn a_secret_is_in_the_arena_however_small() {
        for length in [1, 16, 100, 5000, 1 << 20] {
            let secret = Secret::copy_of(&vec![7; length]);
            assert!(arena::size_of_allocation(secret.start) >= length);
            assert!(secret.expose().iter().all(|byte| *byte == 7));
        }
        assert!(Secret::zeroed(0).is_empty());
    }

    #[test]
    fn cutting_keeps_the_place_and_zeroises_the_rest() {
        let secret = Secret::copy_of(b"0123456789");
        let start = secret.start;
        let secret = secret.truncated(4);
        assert_eq!(secret.expose(), b"0123");
        assert_eq!(secret.start, start);
        // SAFETY: the allocation is 16 bytes long.
        let whole = unsafe { std::slice::from_raw_parts(start.as_ptr(), 16) };
        assert_eq!(whole[4..], [0; 12]);
        assert!(secret.truncated(0).is_empty());
    }

    #[test]
    fn a_length_beyond_reason_gives_none() {
        assert!(Secret::try_zeroed(usize::MAX / 2).is_none());
        assert!(Secret::try_zeroed(1 << 40).is_none());
    }

    #[test]
    fn debug_shows_the_length_only() {
        assert_eq!(format!("{:?}", Secret::copy_of(b"hunter2")), "Secret(7 bytes)");
    }
}

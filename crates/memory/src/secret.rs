// SPDX-License-Identifier: Apache-2.0
//! Bytes that nobody else may see.

use std::fmt;

/// Secret bytes in protected memory: locked, left out of core dumps, wiped on fork, zeroised on
/// drop. There is no `Clone`, and `Debug` shows the length only.
pub struct Secret(Box<[u8]>);

impl Secret {
    /// `length` zero bytes, to be filled in place.
    #[must_use]
    pub fn zeroed(length: usize) -> Self {
        Self(vec![0; length].into())
    }

    /// A copy of `bytes`; the caller still has its own to wipe.
    #[must_use]
    pub fn copy_of(bytes: &[u8]) -> Self {
        let mut secret = Self::zeroed(bytes.len());
        secret.expose_mut().copy_from_slice(bytes);
        secret
    }

    /// The bytes. Search for this word to find every exposure.
    #[must_use]
    pub fn expose(&self) -> &[u8] {
        &self.0
    }

    /// The bytes, writable.
    #[must_use]
    pub fn expose_mut(&mut self) -> &mut [u8] {
        &mut self.0
    }

    /// How many bytes.
    #[must_use]
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Whether there are none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The same secret cut to its first `length` bytes; the rest is zeroised.
    #[must_use]
    pub fn truncated(self, length: usize) -> Self {
        Self::copy_of(&self.0[..length])
    }
}

impl Drop for Secret {
    fn drop(&mut self) {
        self.0.fill(0);
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Secret({} bytes)", self.len())
    }
}

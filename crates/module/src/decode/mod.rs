// SPDX-License-Identifier: Apache-2.0
//! From the caller's pointers to typed values. After this there is no raw pointer anywhere.
//!
//! What a function of the interface is given is [`Given`]; the pointers in what it points to become so in the files of
//! this folder and nowhere else. Nothing is assumed of a pointer's alignment: what is not bytes is read and written unaligned.

pub(crate) mod attributes;
mod beside;
mod given;
mod mechanism;
pub(crate) mod message;
mod old;
mod otp;
pub(crate) mod passed;
mod template;
mod tls;
mod wrapping;

pub(crate) use given::{Callback, Given};
pub(crate) use mechanism::Chosen;
pub(crate) use tls::Aside;
pub(crate) use wrapping::Told;

use metaslot_ck::{CK_C_INITIALIZE_ARGS, CK_ULONG, Error, ObjectHandle, Result};
use metaslot_engine::{Output, Room};
use metaslot_memory::Secret;
pub(crate) use metaslot_wiring::room::check_room;
use std::ffi::{CStr, c_void};
use std::marker::PhantomData;
use std::ops::Deref;
use std::ptr;
use std::slice;

/// Who calls a function of the interface, after it was seen that one may (see [`crate::enter`]): with it the arguments
/// are decoded, and what it gives lives no longer.
#[derive(Clone, Copy)]
pub(crate) struct Caller<'a>(PhantomData<&'a ()>);

/// Anyone who says that more than this lies behind a pointer is asked to prove it (see [`mapped`]).
const DOUBTFUL: usize = 1 << 24;

/// More attributes than a template has: the standard does not define as many.
const MAX_ATTRIBUTES: CK_ULONG = 512;

/// No secret that a caller gives (a PIN, a password) is longer, in bytes.
const LONGEST_PIN: CK_ULONG = 4096;

impl<'a> Caller<'a> {
    /// Only where a function of the interface begins.
    pub(crate) const fn new() -> Self {
        Self(PhantomData)
    }

    /// The value at `at`.
    ///
    /// # Errors
    /// `CKR_ARGUMENTS_BAD` for NULL.
    #[inline(always)]
    pub(crate) fn read<T: Copy>(self, at: Given<'a, T>) -> Result<T> {
        at.read()
    }

    /// What `C_Initialize` is given, whose argument the standard declares without its type (PKCS#11 3.2 §5.4).
    ///
    /// # Errors
    /// `CKR_ARGUMENTS_BAD` for NULL.
    pub(crate) fn arguments(self, at: Given<'a, c_void>) -> Result<CK_C_INITIALIZE_ARGS> {
        Given::<CK_C_INITIALIZE_ARGS>::inside(at.pointer().cast()).read()
    }

    /// Where one value goes. Checked before the work, so that no result is made and then lost.
    ///
    /// # Errors
    /// `CKR_ARGUMENTS_BAD` for NULL.
    pub(crate) fn place<T: Copy>(self, at: Given<'a, T>) -> Result<OutPointer<'a, T>> {
        if at.is_null() { Err(Error::ARGUMENTS_BAD) } else { Ok(OutPointer(at)) }
    }

    /// Bytes that the function reads.
    ///
    /// # Errors
    /// `CKR_ARGUMENTS_BAD` for NULL with a length, and for a length that cannot be.
    pub(crate) fn bytes(self, at: Given<'a, u8>, length: CK_ULONG) -> Result<&'a [u8]> {
        let length = checked_length(at.pointer(), length)?;
        if length == 0 {
            return Ok(&[]);
        }
        // SAFETY: not NULL, at most `isize::MAX`, and valid by the promise.
        Ok(unsafe { slice::from_raw_parts(at.pointer(), length) })
    }

    /// A copy of what a key comes out of. That is read several times, as when a ciphertext is opened and then compared with what its
    /// message gives: what another thread writes there in between would show what comes of one that must not be opened.
    ///
    /// # Errors
    /// As [`Self::bytes`], and `CKR_HOST_MEMORY`.
    pub(crate) fn own_bytes(self, at: Given<'a, u8>, length: CK_ULONG) -> Result<Vec<u8>> {
        let (bytes, mut copy) = (self.bytes(at, length)?, Vec::new());
        copy.try_reserve_exact(bytes.len()).map_err(|_| Error::HOST_MEMORY)?;
        copy.extend_from_slice(bytes);
        Ok(copy)
    }

    /// Bytes that the function fills, all of them.
    ///
    /// # Errors
    /// As [`Self::bytes`].
    pub(crate) fn bytes_mut(self, at: Given<'a, u8>, length: CK_ULONG) -> Result<&'a mut [u8]> {
        let length = checked_length(at.pointer(), length)?;
        if length == 0 {
            return Ok(&mut []);
        }
        // SAFETY: not NULL, at most `isize::MAX`, and valid for writing by the promise, which `at` is used up for.
        Ok(unsafe { slice::from_raw_parts_mut(at.pointer(), length) })
    }

    /// A copy of bytes that may be secret.
    ///
    /// # Errors
    /// As [`Self::bytes`], and `CKR_HOST_MEMORY`.
    pub(crate) fn secret(self, at: Given<'a, u8>, length: CK_ULONG) -> Result<Secret> {
        copied(self.bytes(at, length)?)
    }

    /// A PIN, out of the caller's memory.
    ///
    /// # Errors
    /// `CKR_ARGUMENTS_BAD` for NULL: there is no other way to enter a PIN. `CKR_PIN_LEN_RANGE`.
    pub(crate) fn pin(self, at: Given<'a, u8>, length: CK_ULONG) -> Result<Secret> {
        if at.is_null() {
            return Err(Error::ARGUMENTS_BAD);
        }
        if length > LONGEST_PIN {
            return Err(Error::PIN_LEN_RANGE);
        }
        self.secret(at, length)
    }

    /// A result of variable length (PKCS#11 3.2 §5.2).
    ///
    /// # Errors
    /// `CKR_ARGUMENTS_BAD` when there is no place for the length.
    pub(crate) fn output(
        self,
        buffer: Given<'a, u8>,
        length: Given<'a, CK_ULONG>,
    ) -> Result<Outcome<'a>> {
        let room = length.read()?;
        let length = self.place(length)?;
        if buffer.is_null() {
            return Ok(Outcome { buffer: None, length });
        }
        let room = usize::try_from(room).ok().filter(|room| isize::try_from(*room).is_ok());
        let room = room.ok_or(Error::ARGUMENTS_BAD)?;
        Ok(Outcome { buffer: Some((buffer, room)), length })
    }

    /// The room that an earlier call named for a result that comes later.
    ///
    /// # Safety
    /// The engine has kept it of the [`Outcome`] of an earlier call, whose operation is complete now, and opens it once.
    pub(crate) unsafe fn room(self, room: Room) -> &'a mut [u8] {
        if room.length == 0 {
            return &mut [];
        }
        let at = ptr::with_exposed_provenance_mut(room.address);
        // SAFETY: the slice whose address this is was writable for so long, and the standard has
        // the caller keep it available until the operation is complete, which it is now.
        unsafe { slice::from_raw_parts_mut(at, room.length) }
    }

    /// Bytes that the function reads while it writes `output`: where both are the same memory, a
    /// copy, which is wiped afterwards.
    ///
    /// # Errors
    /// As [`Self::bytes`].
    pub(crate) fn input(
        self,
        at: Given<'a, u8>,
        length: CK_ULONG,
        output: &Outcome<'a>,
    ) -> Result<Input<'a>> {
        let bytes = self.bytes(at, length)?;
        Ok(match &output.buffer {
            Some((buffer, room)) if overlap(bytes, buffer.pointer(), *room) => {
                Input::Copied(copied(bytes)?)
            }
            _ => Input::Borrowed(bytes),
        })
    }

    /// Whether the text at `at`, which ends with a zero, is `expected`. No more of it is read than
    /// it takes to tell.
    pub(crate) fn is_text(self, at: &Given<'a, u8>, expected: &CStr) -> bool {
        let mut expected = expected.to_bytes_with_nul().iter().enumerate();
        expected.all(|(index, byte)| {
            at.nth(index).and_then(|at| at.read()).is_ok_and(|there| there == *byte)
        })
    }

    /// Fills a list that the caller may first ask the length of (PKCS#11 3.2 §5.2): `count` is how
    /// many fit, and then how many there are.
    ///
    /// # Errors
    /// `CKR_ARGUMENTS_BAD`, `CKR_BUFFER_TOO_SMALL`
    pub(crate) fn list<T: Copy>(
        self,
        items: &[T],
        list: Given<'a, T>,
        count: Given<'a, CK_ULONG>,
    ) -> Result<()> {
        let room = count.read()?;
        self.place(count)?.set(items.len() as CK_ULONG);
        if list.is_null() {
            return Ok(());
        }
        if room < items.len() as CK_ULONG {
            return Err(Error::BUFFER_TOO_SMALL);
        }
        self.items(items.iter().copied(), list)
    }

    /// Fills an array that has room for all of them.
    ///
    /// # Errors
    /// `CKR_ARGUMENTS_BAD` for NULL, where there is one.
    pub(crate) fn items<T: Copy>(
        self,
        items: impl IntoIterator<Item = T>,
        array: Given<'a, T>,
    ) -> Result<()> {
        for (index, item) in items.into_iter().enumerate() {
            self.place(array.nth(index)?)?.set(item);
        }
        Ok(())
    }
}

/// A structure that is not NULL, to be read field by field.
struct Fields<'a, T>(Given<'a, T>);

impl<'a, T: Copy> Fields<'a, T> {
    /// # Errors
    /// `CKR_ARGUMENTS_BAD` for NULL.
    fn new(at: Given<'a, T>) -> Result<Self> {
        if at.is_null() { Err(Error::ARGUMENTS_BAD) } else { Ok(Self(at)) }
    }

    /// The field at `offset`, in bytes.
    ///
    /// # Errors
    /// None: that the structure is there was seen before.
    #[inline(always)]
    fn get<F: Copy>(&self, offset: usize) -> Result<F> {
        debug_assert!(
            offset + size_of::<F>() <= size_of::<T>(),
            "a field lies within its structure"
        );
        Given::<F>::inside(self.0.pointer().wrapping_byte_add(offset).cast()).read()
    }
}

/// The caller's pointer to where one value goes.
pub(crate) struct OutPointer<'a, T>(Given<'a, T>);

impl<T: Copy> OutPointer<'_, T> {
    /// Writes the value.
    pub(crate) fn set(self, value: T) {
        // SAFETY: not NULL, so valid for writing by the promise.
        unsafe { self.0.pointer().write_unaligned(value) };
    }
}

impl OutPointer<'_, CK_ULONG> {
    /// Writes a handle.
    pub(crate) fn set_object(self, handle: ObjectHandle) {
        self.set(handle.0);
    }
}

/// Where a result of variable length goes.
pub(crate) struct Outcome<'a> {
    buffer: Option<(Given<'a, u8>, usize)>,
    length: OutPointer<'a, CK_ULONG>,
}

impl Outcome<'_> {
    /// Whether only the length is wanted.
    pub(crate) const fn is_asked(&self) -> bool {
        self.buffer.is_none()
    }

    /// Has `work` fill the buffer, or say the length, and tells the caller how long it is.
    ///
    /// # Errors
    /// What `work` says.
    pub(crate) fn fill(self, work: impl FnOnce(&mut Output<'_>) -> Result<()>) -> Result<()> {
        let (result, length) = match self.buffer {
            None => {
                let mut output = Output::ask();
                (work(&mut output), output.length())
            }
            Some((buffer, room)) => {
                // No more than the caller says is there, and the engine touches no more than it
                // writes.
                // SAFETY: valid for writing by the promise, at most `isize::MAX`, and no input that
                // is borrowed meanwhile overlaps it (`Caller::input`).
                let buffer = unsafe { slice::from_raw_parts_mut(buffer.pointer(), room) };
                let mut output = Output::buffer(buffer);
                (work(&mut output), output.length())
            }
        };
        if matches!(result, Ok(()) | Err(Error::BUFFER_TOO_SMALL)) {
            self.length.set(length as CK_ULONG);
        }
        result
    }
}

/// Bytes to read.
pub(crate) enum Input<'a> {
    /// Where the caller has them.
    Borrowed(&'a [u8]),
    /// Copied, because the result goes to the same memory.
    Copied(Secret),
}

impl Deref for Input<'_> {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        match self {
            Self::Borrowed(bytes) => bytes,
            Self::Copied(secret) => secret.expose(),
        }
    }
}

fn overlap(bytes: &[u8], buffer: *const u8, room: usize) -> bool {
    let (start, other) = (bytes.as_ptr().addr(), buffer.addr());
    !bytes.is_empty()
        && start < other.saturating_add(room)
        && other < start.saturating_add(bytes.len())
}

/// Out of line: the copy is rare, and would make every call that reads bytes longer.
#[cold]
fn copied(bytes: &[u8]) -> Result<Secret> {
    Secret::try_copy_of(bytes).ok_or(Error::HOST_MEMORY)
}

/// A length that a slice can have, with memory behind it as far as that can be told cheaply.
fn checked_length(at: *const u8, length: CK_ULONG) -> Result<usize> {
    if at.is_null() && length != 0 {
        return Err(Error::ARGUMENTS_BAD);
    }
    let length = usize::try_from(length).map_err(|_| Error::ARGUMENTS_BAD)?;
    let last = at.addr().checked_add(length).filter(|_| isize::try_from(length).is_ok());
    if last.is_none() || length >= DOUBTFUL && !mapped(at, length) {
        return Err(Error::ARGUMENTS_BAD);
    }
    Ok(length)
}

/// Whether the whole range is mapped: a length that is garbage is nearly always huge, and a huge
/// one nearly never all mapped. The kernel looks at its list of mappings only; nothing is synced.
pub(crate) fn mapped(at: *const u8, length: usize) -> bool {
    const PAGE: usize = 4096;
    let before = at.addr() % PAGE;
    let start = at.wrapping_sub(before);
    // SAFETY: MS_ASYNC starts nothing and changes nothing; the kernel checks the range itself.
    let rv = unsafe { libc::msync(start.cast_mut().cast(), length + before, libc::MS_ASYNC) };
    rv == 0 || ptr::eq(at, start) && length == 0
}

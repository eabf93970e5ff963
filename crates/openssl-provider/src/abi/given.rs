// SPDX-License-Identifier: Apache-2.0
//! Types of what libcrypto passes: each is as large as the pointer, and only libcrypto and this file make one that is not null. That it is what
//! provider-base(7) and the pages beside it say is libcrypto's promise, as it is of every provider.

use super::param::Param;
use std::ffi::{CStr, c_char, c_int, c_void};
use std::marker::PhantomData;
use std::ops::Deref;
use std::ptr::{self, NonNull};
use std::slice;

/// A value of ours in libcrypto's hands: a context, a key.
#[derive(Debug)]
#[repr(transparent)]
pub(crate) struct Context<T>(Option<NonNull<T>>);

impl<T> Context<T> {
    /// Hands it over.
    pub(crate) fn new(value: T) -> Self {
        Self(NonNull::new(Box::into_raw(Box::new(value))))
    }

    /// Hands over what is made in its place: to move a context takes longer than to make one.
    #[inline]
    pub(crate) fn made(make: impl FnOnce() -> T) -> Self {
        Self(NonNull::new(Box::into_raw(Box::write(Box::new_uninit(), make()))))
    }

    /// NULL.
    pub(crate) const fn null() -> Self {
        Self(None)
    }

    /// Looks at it; threads of the program may do so together.
    pub(crate) fn get(&self) -> Option<&T> {
        // SAFETY: libcrypto gives back what `new` gave it, before it has it freed.
        self.0.map(|pointer| unsafe { pointer.as_ref() })
    }

    /// Changes it: for contexts, which one thread at a time may use, and for keys that are being made.
    pub(crate) fn get_mut(&mut self) -> Option<&mut T> {
        // SAFETY: as above; and no call has it at the same time, which is the rule for contexts.
        self.0.as_mut().map(|pointer| unsafe { pointer.as_mut() })
    }

    /// Takes it back.
    pub(crate) fn take(self) -> Option<Box<T>> {
        // SAFETY: it came from `Box::into_raw`, and libcrypto does not use it after it has had it freed.
        self.0.map(|pointer| unsafe { Box::from_raw(pointer.as_ptr()) })
    }
}

/// A provider that a context of it refers to.
#[derive(Debug)]
pub(crate) struct Lent<T>(NonNull<T>);

impl<T> Context<T> {
    /// For the contexts of a provider: without a count, which would take longer than the rest of a short operation's beginning.
    pub(crate) fn lent(&self) -> Option<Lent<T>> {
        self.0.map(Lent)
    }
}

impl<T> Clone for Lent<T> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<T> Copy for Lent<T> {}

impl<T> Deref for Lent<T> {
    type Target = T;

    #[inline]
    fn deref(&self) -> &T {
        // SAFETY: libcrypto has all contexts of a provider freed before it has that torn down, which is before it unloads this code.
        unsafe { self.0.as_ref() }
    }
}

/// `OSSL_CORE_HANDLE *`
#[derive(Clone, Copy, Debug)]
#[repr(transparent)]
pub(crate) struct CoreHandle(pub(super) *const c_void);

/// `OSSL_CORE_BIO *`
#[derive(Clone, Copy, Debug)]
#[repr(transparent)]
pub(crate) struct Bio(pub(super) *mut c_void);

/// The argument that belongs to a callback.
#[derive(Clone, Copy, Debug)]
#[repr(transparent)]
pub(crate) struct Argument(*mut c_void);

/// A string that ends with a zero, or NULL.
#[derive(Clone, Copy, Debug)]
#[repr(transparent)]
pub(crate) struct Text(*const c_char);

impl Text {
    /// A text of ours.
    pub(crate) const fn of(text: &'static CStr) -> Self {
        Self(text.as_ptr())
    }

    /// The text, where there is one and it is UTF-8.
    pub(crate) fn get(&self) -> Option<&str> {
        if self.0.is_null() {
            return None;
        }
        // SAFETY: a string of libcrypto's, which lives during the call.
        unsafe { CStr::from_ptr(self.0) }.to_str().ok()
    }
}

/// The beginning of bytes whose number is another argument.
#[derive(Clone, Copy, Debug)]
#[repr(transparent)]
pub(crate) struct Input(*const u8);

impl Input {
    pub(crate) const fn null() -> Self {
        Self(ptr::null())
    }

    pub(crate) const fn is_null(&self) -> bool {
        self.0.is_null()
    }

    /// The bytes; none where it is NULL.
    pub(crate) fn of(&self, length: usize) -> &[u8] {
        if self.0.is_null() || length == 0 {
            return &[];
        }
        // SAFETY: so many bytes of libcrypto's, which live during the call and which it does not write meanwhile.
        unsafe { slice::from_raw_parts(self.0, length) }
    }
}

/// Where an object of ours is named to ourselves.
pub(crate) type Reference = Input;

/// The beginning of room for bytes, whose number is another argument; or NULL, which asks for the length.
#[derive(Debug)]
#[repr(transparent)]
pub(crate) struct Output(*mut u8);

impl Output {
    pub(crate) const fn is_null(&self) -> bool {
        self.0.is_null()
    }

    /// Whether the first `length` bytes of both have some in common.
    pub(crate) fn overlaps(&self, input: &Input, length: usize) -> bool {
        let (one, other) = (self.0.addr(), input.0.addr());
        one.abs_diff(other) < length
    }

    /// The room, or `None` where the length is asked for.
    pub(crate) fn of(&mut self, length: usize) -> Option<&mut [u8]> {
        if self.0.is_null() {
            return None;
        }
        // SAFETY: room for so many bytes of libcrypto's, which no other code reads or writes during the call.
        Some(unsafe { slice::from_raw_parts_mut(self.0, length) })
    }
}

/// Where an answer goes.
#[derive(Debug)]
#[repr(transparent)]
pub(crate) struct Place<T>(*mut T);

impl<T> Place<T> {
    /// Writes it, unless the place is NULL.
    pub(crate) fn set(&mut self, value: T) {
        if !self.0.is_null() {
            // SAFETY: a place of libcrypto's for one such value.
            unsafe { self.0.write(value) };
        }
    }
}

impl Place<usize> {
    /// What stands there: the room that there is.
    pub(crate) fn get(&self) -> usize {
        // SAFETY: NULL, or a number of libcrypto's.
        unsafe { self.0.as_ref() }.copied().unwrap_or_default()
    }
}

/// A constant table of ours.
#[derive(Clone, Copy, Debug)]
#[repr(transparent)]
pub(crate) struct Table<T: 'static>(*const T, PhantomData<&'static [T]>);

impl<T> Table<T> {
    /// A table that its last entry ends.
    pub(crate) const fn of(table: &'static [T]) -> Self {
        Self(table.as_ptr(), PhantomData)
    }

    /// NULL: there is none.
    pub(crate) const fn null() -> Self {
        Self(ptr::null(), PhantomData)
    }
}

/// `OSSL_CALLBACK`
#[derive(Clone, Copy, Debug)]
#[repr(transparent)]
pub(crate) struct Callback(Option<unsafe extern "C" fn(*const Param, *mut c_void) -> c_int>);

impl Callback {
    /// Passes parameters on; whether they were taken.
    pub(crate) fn call(self, params: &[Param], argument: Argument) -> bool {
        // SAFETY: parameters that the last entry ends, for the callback that came with this argument.
        self.0.is_some_and(|callback| unsafe { callback(params.as_ptr(), argument.0) } != 0)
    }
}

/// `OSSL_PASSPHRASE_CALLBACK`
#[derive(Clone, Copy, Debug)]
#[repr(transparent)]
pub(crate) struct Asking(Option<AsksForPassphrase>);

type AsksForPassphrase =
    unsafe extern "C" fn(*mut c_char, usize, *mut usize, *const Param, *mut c_void) -> c_int;

impl Asking {
    /// The passphrase, in `room`: how many bytes; `None` where there is none.
    pub(crate) fn ask(
        self,
        room: &mut [u8],
        params: &[Param],
        argument: Argument,
    ) -> Option<usize> {
        let mut length = 0;
        let (pointer, size) = (room.as_mut_ptr().cast(), room.len());
        // SAFETY: room with its size, a place for the length, and parameters that the last entry ends.
        let callback = |callback: AsksForPassphrase| unsafe {
            callback(pointer, size, &raw mut length, params.as_ptr(), argument.0)
        };
        let said = self.0.map(callback)?;
        (said != 0 && length <= size).then_some(length)
    }
}

/// What libcrypto would pass, for tests.
#[cfg(test)]
pub(crate) fn passed(room: Option<&mut [u8]>, length: &mut usize) -> (Output, Place<usize>) {
    (Output(room.map_or(ptr::null_mut(), <[u8]>::as_mut_ptr)), Place(length))
}

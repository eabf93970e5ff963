// SPDX-License-Identifier: Apache-2.0
//! What a function of the interface is given: pointers with the standard's promise in their type.
//!
//! Safe code cannot make one: it comes over the C ABI, where the caller makes the promise (in Rust, by an `unsafe` block
//! around a call of a symbol or of a function in a list). So a function that takes one is safe.

use metaslot_ck::{CK_RV, CKR_OK, Error, Result};
use std::ffi::c_void;
use std::fmt;
use std::marker::PhantomData;
use std::ptr;

/// A pointer that the application passes: NULL, or valid for what the function's description says that it holds, until
/// the function returns. Until then no other thread writes what is read through it or touches what is written, and no
/// other argument points there but where the standard allows it (a result in the place of its input).
///
/// The promise extends to the pointers in what it points to. It ends with the call, so it has a lifetime, `'a`; it is
/// neither `Send` nor `Copy`: what is written through it is borrowed once.
#[repr(transparent)]
pub struct Given<'a, T>(*mut T, PhantomData<&'a ()>);

impl<'a, T> Given<'a, T> {
    /// A pointer that stands in what was given, so that the promise extends to it. Only for the files of `decode`.
    #[inline(always)]
    pub(super) const fn inside(at: *const T) -> Self {
        Self(at.cast_mut(), PhantomData)
    }

    pub(crate) const fn is_null(&self) -> bool {
        self.0.is_null()
    }

    /// The same for a shorter time, in which this one is not used.
    #[expect(
        clippy::needless_pass_by_ref_mut,
        reason = "two at once could both be written through"
    )]
    pub(crate) const fn reborrow(&mut self) -> Given<'_, T> {
        Given(self.0, PhantomData)
    }

    /// The pointer itself. Only for the files of `decode`.
    #[inline(always)]
    pub(super) const fn pointer(&self) -> *mut T {
        self.0
    }

    /// One element of an array.
    ///
    /// # Errors
    /// `CKR_ARGUMENTS_BAD` for NULL.
    pub(super) const fn nth(&self, index: usize) -> Result<Self> {
        if self.is_null() {
            return Err(Error::ARGUMENTS_BAD);
        }
        Ok(Self::inside(self.0.wrapping_add(index)))
    }
}

impl<T: Copy> Given<'_, T> {
    /// What is there.
    ///
    /// # Errors
    /// `CKR_ARGUMENTS_BAD` for NULL.
    #[inline(always)]
    pub(super) const fn read(&self) -> Result<T> {
        if self.is_null() {
            return Err(Error::ARGUMENTS_BAD);
        }
        // SAFETY: not NULL, so valid for a `T` by the promise; every `T` that is read is a C structure of integers and
        // pointers, for which all bytes are valid.
        Ok(unsafe { self.0.read_unaligned() })
    }
}

impl<T> fmt::Debug for Given<'_, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Pointer::fmt(&self.0, f)
    }
}

/// A function of the application, or NULL: one that may be called with what was given beside it, until the function
/// that it was passed to returns.
#[repr(transparent)]
pub(crate) struct Callback<'a, T>(
    Option<unsafe extern "C" fn(*mut c_void, *const T) -> CK_RV>,
    PhantomData<&'a ()>,
);

impl<T> Callback<'_, T> {
    /// Tells it `said`, and whether it lets us go on.
    pub(crate) fn tell(&self, application: &Given<'_, c_void>, said: &T) -> bool {
        let Some(function) = self.0 else { return true };
        // SAFETY: the application's function, which takes this structure until it returns.
        unsafe { function(application.0, ptr::from_ref(said)) == CKR_OK }
    }
}

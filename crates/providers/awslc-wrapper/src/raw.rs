// SPDX-License-Identifier: Apache-2.0
//! What wrappers of the library's objects have in common.

use crate::{Failed, Result};
use std::ptr::NonNull;

/// The pointer, unless it is NULL: then the library failed.
pub(crate) fn not_null<T>(raw: *mut T) -> Result<NonNull<T>> {
    match NonNull::new(raw) {
        Some(pointer) => Ok(pointer),
        None => failed(),
    }
}

/// The error, with the thread's queue of the library's own errors emptied.
#[cold]
pub(crate) fn failed<T>() -> Result<T> {
    // SAFETY: clears this thread's error queue; no other effect.
    unsafe { aws_lc_sys::ERR_clear_error() };
    Err(Failed)
}

// SPDX-License-Identifier: Apache-2.0
//! What wrappers of the library's objects have in common.

use crate::{Result, failed};
use std::ptr::NonNull;

/// The pointer, unless it is NULL: then the library failed.
pub(crate) fn not_null<T>(raw: *mut T) -> Result<NonNull<T>> {
    match NonNull::new(raw) {
        Some(pointer) => Ok(pointer),
        None => failed(),
    }
}

// SPDX-License-Identifier: Apache-2.0
//! Names of algorithms.

use std::ffi::CStr;

/// Whether a name is one of several, which colons part.
pub(super) fn is_named(names: &CStr, name: &str) -> bool {
    let mut names = names.to_bytes().split(|byte| *byte == b':');
    names.any(|other| other.eq_ignore_ascii_case(name.as_bytes()))
}

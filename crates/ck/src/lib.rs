// SPDX-License-Identifier: Apache-2.0
//! The standard's vocabulary: layouts, constants, names, return codes and handles of PKCS#11 3.2.
//!
//! Layouts and numbers come from `cryptoki-sys`, and a number of the next version from here; names and the list of functions are generated from
//! the same bindings by `cargo xtask codegen`. Nothing here takes a decision.
#![forbid(unsafe_code)]

pub use cryptoki_sys::*;

pub mod attribute;
mod error;
mod function;
mod handle;
mod later;
pub mod mechanism;
mod names;

pub use error::{Error, Result};
pub use function::Function;
pub use handle::{ObjectHandle, SessionHandle, SlotId};
pub use later::CKM_ML_DSA_EXTERNAL_MU;
pub use names::{
    attribute_name, certificate_type_name, key_type_name, mechanism_aliases, mechanism_by_name,
    mechanism_name, object_class_name, rv_name,
};

/// One past the largest size that a caller's buffer may claim (a Rust slice may not be larger).
pub const MAX_LENGTH: u64 = i64::MAX as u64;

/// How this standard writes "this length or number is not available" (PKCS#11 3.2 §3.1).
pub const UNAVAILABLE: CK_ULONG = CK_UNAVAILABLE_INFORMATION;

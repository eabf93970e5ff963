// SPDX-License-Identifier: Apache-2.0
//! An OpenSSL of our own behind safe functions: nothing of PKCS#11 is known here.
//!
//! It is linked statically with hidden symbols, and is not the libcrypto that the process may have. It reads no file, makes
//! no thread and registers nothing for the process's end. Its random bytes come from AWS-LC, what holds keys lies
//! in protected memory, and what it must keep over a fork lies outside of that.
#![cfg(feature = "library")]

pub mod cipher;
mod curve;
pub mod digest;
pub mod ec;
pub mod fork;
mod hash;
pub mod mac;
mod memory;
mod mode;
pub mod number_key;
mod params;
mod pkey;
mod raw;
pub mod rsa;
mod start;
mod warm;

pub use mode::Mode;

pub use metaslot_awslc_wrapper::{cleanse, constant_time, random};

use std::ffi::c_int;
use std::fmt;
use std::ptr::NonNull;

/// The library refused: a bad key, a tag that does not match, memory that ran out.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Failed;

/// What nearly every function here returns.
pub type Result<T> = std::result::Result<T, Failed>;

impl fmt::Display for Failed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("OpenSSL refused")
    }
}

impl std::error::Error for Failed {}

/// OpenSSL's usual convention: 1 is success. A failure also leaves entries in the thread's error
/// queue, which must not grow.
fn check(code: c_int) -> Result<()> {
    if code == 1 {
        return Ok(());
    }
    failed()
}

/// The pointer, unless it is NULL: then the library failed.
fn not_null<T>(raw: *mut T) -> Result<NonNull<T>> {
    NonNull::new(raw).map_or_else(failed, Ok)
}

#[cold]
fn failed<T>() -> Result<T> {
    // SAFETY: clears this thread's error queue; no other effect.
    unsafe { raw::ERR_clear_error() };
    Err(Failed)
}

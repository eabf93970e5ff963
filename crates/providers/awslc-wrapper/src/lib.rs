// SPDX-License-Identifier: Apache-2.0
//! AWS-LC behind safe functions: nothing of PKCS#11 is known here.
//!
//! Prepared keys live in protected memory and are shared by reference; single calls allocate
//! nothing. Every function that can fail says so with [`Failed`]: what is wrong with the input is
//! checked by the callers, who know the standard's word for it.

pub mod aead;
pub mod aes;
mod bn;
pub mod chacha20;
pub mod cmac;
pub mod constant_time;
pub mod counter_kdf;
pub mod curve25519;
pub mod des;
pub mod digest;
pub mod domain;
pub mod dsa;
pub mod ec;
mod evp;
pub mod field;
pub mod fork;
pub mod hkdf;
pub mod hmac;
mod hooks;
pub mod ml_dsa;
pub mod ml_kem;
pub mod pbkdf2;
mod pkey;
pub mod prehash;
pub mod random;
mod raw;
pub mod rc4;
pub mod ripemd;
pub mod rsa;
pub mod seeded;
mod sha256;
pub mod shake;

use std::ffi::c_int;
use std::fmt;

/// The library refused: a bad key, a tag that does not match, memory that ran out.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Failed;

/// What nearly every function here returns.
pub type Result<T> = std::result::Result<T, Failed>;

impl fmt::Display for Failed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the cryptographic library refused")
    }
}

impl std::error::Error for Failed {}

/// AWS-LC's usual convention: 1 is success. A failure also leaves an entry in the thread's error
/// queue, which must not grow.
fn check(code: c_int) -> Result<()> {
    if code == 1 { Ok(()) } else { failed() }
}

/// The error, with the thread's queue of the library's own errors emptied.
#[cold]
fn failed<T>() -> Result<T> {
    // SAFETY: clears this thread's error queue; no other effect.
    unsafe { aws_lc_sys::ERR_clear_error() };
    Err(Failed)
}

/// Overwrites `bytes` with zeros in a way that the compiler keeps.
pub fn cleanse(bytes: &mut [u8]) {
    // SAFETY: the slice is writable for its length.
    unsafe { aws_lc_sys::OPENSSL_cleanse(bytes.as_mut_ptr().cast(), bytes.len()) };
}

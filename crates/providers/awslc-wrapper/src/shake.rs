// SPDX-License-Identifier: Apache-2.0
//! SHAKE128 and SHAKE256 (FIPS 202 §6.2), as streams.

use crate::raw::not_null;
use crate::{Result, check};
use aws_lc_sys as sys;
use std::ptr::{self, NonNull};

/// Which of them.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[expect(missing_docs, reason = "the variants are the functions' names")]
pub enum Function {
    Shake128,
    Shake256,
}

/// Its state; that lies in protected memory.
#[derive(Debug)]
pub struct Shake(NonNull<sys::EVP_MD_CTX>);

// SAFETY: the context is owned and has no ties to a thread.
unsafe impl Send for Shake {}

impl Drop for Shake {
    fn drop(&mut self) {
        // SAFETY: made by `EVP_MD_CTX_new`, freed once; AWS-LC zeroises what it frees.
        unsafe { sys::EVP_MD_CTX_free(self.0.as_ptr()) };
    }
}

impl Shake {
    /// The beginning.
    ///
    /// # Errors
    /// When memory runs out.
    pub fn new(function: Function) -> Result<Self> {
        // SAFETY: takes nothing; NULL when memory ran out.
        let stream = Self(not_null(unsafe { sys::EVP_MD_CTX_new() })?);
        let function: unsafe extern "C" fn() -> *const sys::EVP_MD = match function {
            Function::Shake128 => sys::EVP_shake128,
            Function::Shake256 => sys::EVP_shake256,
        };
        // SAFETY: takes nothing and returns the address of a static.
        let function = unsafe { function() };
        // SAFETY: the context is fresh, the description a static.
        check(unsafe { sys::EVP_DigestInit_ex(stream.0.as_ptr(), function, ptr::null_mut()) })?;
        Ok(stream)
    }

    /// More of the message.
    ///
    /// # Errors
    /// When the library fails.
    pub fn update(&mut self, data: &[u8]) -> Result<()> {
        // SAFETY: the context is initialised, `data` readable for its length.
        check(unsafe { sys::EVP_DigestUpdate(self.0.as_ptr(), data.as_ptr().cast(), data.len()) })
    }

    /// Fills `out`.
    ///
    /// # Errors
    /// When the library fails.
    pub fn finish(self, out: &mut [u8]) -> Result<()> {
        // SAFETY: the context is initialised, `out` as long as is said.
        check(unsafe { sys::EVP_DigestFinalXOF(self.0.as_ptr(), out.as_mut_ptr(), out.len()) })
    }
}

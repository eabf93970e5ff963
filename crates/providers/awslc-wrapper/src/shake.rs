// SPDX-License-Identifier: Apache-2.0
//! SHAKE256 (FIPS 202 §6.2), as a stream.

use crate::raw::not_null;
use crate::{Result, check};
use aws_lc_sys as sys;
use std::ptr::{self, NonNull};

/// Its state; that lies in protected memory.
#[derive(Debug)]
pub struct Shake256(NonNull<sys::EVP_MD_CTX>);

// SAFETY: the context is owned and has no ties to a thread.
unsafe impl Send for Shake256 {}

impl Drop for Shake256 {
    fn drop(&mut self) {
        // SAFETY: made by `EVP_MD_CTX_new`, freed once; AWS-LC zeroises what it frees.
        unsafe { sys::EVP_MD_CTX_free(self.0.as_ptr()) };
    }
}

impl Shake256 {
    /// The beginning.
    ///
    /// # Errors
    /// When memory runs out.
    pub fn new() -> Result<Self> {
        // SAFETY: takes nothing; NULL when memory ran out.
        let stream = Self(not_null(unsafe { sys::EVP_MD_CTX_new() })?);
        // SAFETY: takes nothing and returns the address of a static.
        let function = unsafe { sys::EVP_shake256() };
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

    /// The first bytes of the output.
    ///
    /// # Errors
    /// When the library fails.
    pub fn finish<const N: usize>(self) -> Result<[u8; N]> {
        let mut out = [0; N];
        // SAFETY: the context is initialised, `out` as long as is said.
        check(unsafe { sys::EVP_DigestFinalXOF(self.0.as_ptr(), out.as_mut_ptr(), N) })?;
        Ok(out)
    }
}

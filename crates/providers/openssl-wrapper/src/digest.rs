// SPDX-License-Identifier: Apache-2.0
//! Hash functions.

use crate::raw::{self, EVP_MD_CTX};
use crate::start::methods;
use crate::{Failed, Result, check, failed, not_null};
use std::ptr::{self, NonNull};

pub use crate::hash::{Hash, MAX_LENGTH};

impl Hash {
    /// Hashes `data` into `out`, which is [`Self::length`] long.
    ///
    /// # Errors
    /// When the library fails.
    ///
    /// # Panics
    /// When `out` has another length.
    pub fn digest(self, data: &[u8], out: &mut [u8]) -> Result<()> {
        let mut stream = Stream::new(self)?;
        stream.update(data)?;
        stream.finish(out)
    }
}

/// A hash in the middle.
#[derive(Debug)]
pub struct Stream {
    context: Context,
    hash: Hash,
}

#[derive(Debug)]
struct Context(NonNull<EVP_MD_CTX>);

// SAFETY: the context is owned and has no ties to a thread.
unsafe impl Send for Context {}

impl Drop for Context {
    fn drop(&mut self) {
        // SAFETY: made by `EVP_MD_CTX_new`, freed once; the state in it is zeroised.
        unsafe { raw::EVP_MD_CTX_free(self.0.as_ptr()) };
    }
}

impl Stream {
    /// Begins.
    ///
    /// # Errors
    /// When memory ran out.
    pub fn new(hash: Hash) -> Result<Self> {
        let method = methods()?.digest(hash);
        // SAFETY: takes nothing; NULL when memory ran out.
        let context = Context(not_null(unsafe { raw::EVP_MD_CTX_new() })?);
        // SAFETY: the context is fresh, the method stays, no parameters.
        check(unsafe { raw::EVP_DigestInit_ex2(context.0.as_ptr(), method, ptr::null()) })?;
        Ok(Self { context, hash })
    }

    /// Takes more data.
    ///
    /// # Errors
    /// When the library fails.
    pub fn update(&mut self, data: &[u8]) -> Result<()> {
        let context = self.context.0.as_ptr();
        // SAFETY: the context is begun, `data` readable for its length.
        check(unsafe { raw::EVP_DigestUpdate(context, data.as_ptr().cast(), data.len()) })
    }

    /// Writes the digest; the stream is used up.
    ///
    /// # Errors
    /// When the library fails, or the stream is used up.
    ///
    /// # Panics
    /// When `out` has another length than the digest.
    pub fn finish(&mut self, out: &mut [u8]) -> Result<()> {
        assert_eq!(out.len(), self.hash.length());
        let context = self.context.0.as_ptr();
        // SAFETY: the context is begun, `out` as long as the digest.
        check(unsafe { raw::EVP_DigestFinal_ex(context, out.as_mut_ptr(), ptr::null_mut()) })
    }

    /// The state as bytes, in this library's form.
    ///
    /// # Errors
    /// For a function whose state OpenSSL does not write (MD5).
    pub fn save(&self) -> Result<Vec<u8>> {
        let context = self.context.0.as_ptr();
        let mut length = 0;
        // SAFETY: the context is begun; without a place only the length is written.
        check(unsafe { raw::EVP_MD_CTX_serialize(context, ptr::null_mut(), &raw mut length) })?;
        let mut state = vec![0; length];
        // SAFETY: the context is begun, `state` as long as was asked for.
        check(unsafe { raw::EVP_MD_CTX_serialize(context, state.as_mut_ptr(), &raw mut length) })?;
        state.truncate(length);
        Ok(state)
    }

    /// Continues from what [`Self::save`] wrote.
    ///
    /// # Errors
    /// When the bytes are no such state.
    pub fn restore(hash: Hash, state: &[u8]) -> Result<Self> {
        let stream = Self::new(hash)?;
        let context = stream.context.0.as_ptr();
        // SAFETY: the context is begun, `state` readable for its length.
        check(unsafe { raw::EVP_MD_CTX_deserialize(context, state.as_ptr(), state.len()) })?;
        // What was written comes out again: whatever else is no state of this function.
        match stream.save() {
            Ok(again) if again == state => Ok(stream),
            Ok(_) => failed(),
            Err(Failed) => Err(Failed),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stream_and_single_call_agree_for_every_function_and_cut() {
        let data: Vec<u8> = (0..=255).cycle().take(1000).collect();
        for hash in Hash::ALL {
            assert_eq!(Hash::ALL[hash as usize], hash);
            let mut whole = vec![0; hash.length()];
            hash.digest(&data, &mut whole).unwrap();
            for cut in [0, 1, 63, 64, 65, 127, 128, 129, 999, 1000] {
                let mut stream = Stream::new(hash).unwrap();
                stream.update(&data[..cut]).unwrap();
                if let Ok(saved) = stream.save() {
                    stream = Stream::restore(hash, &saved).unwrap();
                    assert!(Stream::restore(hash, &saved[1..]).is_err());
                }
                stream.update(&data[cut..]).unwrap();
                let mut parts = vec![0; hash.length()];
                stream.finish(&mut parts).unwrap();
                assert_eq!(parts, whole, "{hash:?} cut at {cut}");
                assert!(stream.finish(&mut parts).is_err(), "it is used up");
            }
        }
    }
}

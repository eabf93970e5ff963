// SPDX-License-Identifier: Apache-2.0
//! AES-CMAC (NIST SP 800-38B) over a prepared key.

use crate::evp::by_key_length;
use crate::{Failed, Result, check};
use aws_lc_sys::CMAC_CTX;
use std::ptr::{self, NonNull};

/// Length of a whole MAC, in bytes.
pub const LENGTH: usize = 16;

/// A prepared key: shared by any number of threads.
#[derive(Debug)]
pub struct Key(Context);

// SAFETY: after its initialisation the context is only copied from.
unsafe impl Sync for Key {}

#[derive(Debug)]
struct Context(NonNull<CMAC_CTX>);

// SAFETY: the context is owned and has no ties to a thread.
unsafe impl Send for Context {}

impl Drop for Context {
    fn drop(&mut self) {
        // SAFETY: made by `CMAC_CTX_new`, freed once; AWS-LC zeroises what it frees.
        unsafe { aws_lc_sys::CMAC_CTX_free(self.0.as_ptr()) };
    }
}

impl Context {
    fn new() -> Result<Self> {
        // SAFETY: takes nothing; NULL when memory ran out.
        NonNull::new(unsafe { aws_lc_sys::CMAC_CTX_new() }).map(Self).ok_or(Failed)
    }
}

impl Key {
    /// A key of 16, 24 or 32 bytes.
    ///
    /// # Errors
    /// For another length.
    pub fn new(key: &[u8]) -> Result<Self> {
        let ciphers =
            [aws_lc_sys::EVP_aes_128_cbc, aws_lc_sys::EVP_aes_192_cbc, aws_lc_sys::EVP_aes_256_cbc];
        let cipher = by_key_length(key, ciphers)?;
        let context = Context::new()?;
        // SAFETY: the context is fresh, `key` as long as the cipher wants it.
        check(unsafe {
            let context = context.0.as_ptr();
            aws_lc_sys::CMAC_Init(context, key.as_ptr().cast(), key.len(), cipher, ptr::null_mut())
        })?;
        Ok(Self(context))
    }

    /// Begins a MAC.
    ///
    /// # Errors
    /// When memory ran out.
    pub fn start(&self) -> Result<Stream> {
        let context = Context::new()?;
        // SAFETY: the destination is fresh, the source initialised; the source is only read.
        check(unsafe { aws_lc_sys::CMAC_CTX_copy(context.0.as_ptr(), self.0.0.as_ptr()) })?;
        Ok(Stream(context))
    }

    /// The MAC of the parts, one after the other, into `out`, which may be shorter: then the MAC
    /// is truncated.
    ///
    /// # Errors
    /// When the library fails.
    ///
    /// # Panics
    /// When `out` is longer than [`LENGTH`].
    pub fn mac(&self, parts: &[&[u8]], out: &mut [u8]) -> Result<()> {
        let mut stream = self.start()?;
        for part in parts {
            stream.update(part)?;
        }
        stream.finish(out)
    }
}

/// A MAC in the middle.
#[derive(Debug)]
pub struct Stream(Context);

impl Stream {
    /// Takes more data.
    ///
    /// # Errors
    /// When the library fails.
    pub fn update(&mut self, data: &[u8]) -> Result<()> {
        // SAFETY: the context is initialised, `data` readable for its length.
        check(unsafe { aws_lc_sys::CMAC_Update(self.0.0.as_ptr(), data.as_ptr(), data.len()) })
    }

    /// Writes the MAC, truncated to `out`; the stream is used up.
    ///
    /// # Errors
    /// When the library fails.
    ///
    /// # Panics
    /// When `out` is longer than [`LENGTH`].
    pub fn finish(&mut self, out: &mut [u8]) -> Result<()> {
        assert!(out.len() <= LENGTH);
        let mut whole = [0; LENGTH];
        let mut length = 0;
        // SAFETY: the context is initialised, `whole` takes a whole MAC.
        let done = check(unsafe {
            aws_lc_sys::CMAC_Final(self.0.0.as_ptr(), whole.as_mut_ptr(), &raw mut length)
        });
        out.copy_from_slice(&whole[..out.len()]);
        crate::cleanse(&mut whole);
        done
    }

    /// Whether `mac`, possibly truncated, is right; in constant time. The stream is used up.
    ///
    /// # Errors
    /// When the library fails.
    pub fn verify(&mut self, mac: &[u8]) -> Result<bool> {
        let mut whole = [0; LENGTH];
        self.finish(&mut whole)?;
        let equal = mac.len() <= LENGTH && crate::constant_time::equal(&whole[..mac.len()], mac);
        crate::cleanse(&mut whole);
        Ok(equal)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rfc_4493_empty_message() {
        let key: [u8; 16] = 0x2b7e_1516_28ae_d2a6_abf7_1588_09cf_4f3c_u128.to_be_bytes();
        let mut out = [0; 16];
        Key::new(&key).unwrap().mac(&[], &mut out).unwrap();
        assert_eq!(out[..4], [0xbb, 0x1d, 0x69, 0x29]);
    }

    #[test]
    fn a_prepared_key_serves_many_macs() {
        let key = Key::new(&[7; 24]).unwrap();
        let (mut one, mut two) = ([0; 16], [0; 16]);
        key.mac(&[b"hello ", b"world"], &mut one).unwrap();
        key.mac(&[b"hello world"], &mut two).unwrap();
        assert_eq!(one, two);
        let mut stream = key.start().unwrap();
        stream.update(b"hello world").unwrap();
        assert!(stream.verify(&one[..7]).unwrap());
        assert!(Key::new(&[0; 8]).is_err());
    }
}

// SPDX-License-Identifier: Apache-2.0
//! HMAC and CMAC over prepared keys.

use crate::hash::{Hash, MAX_LENGTH};
use crate::params::Params;
use crate::raw::{self, EVP_MAC_CTX};
use crate::start::methods;
use crate::{Failed, Result, check, not_null};
use metaslot_memory::wipe_shallow_stack;
use std::ffi::CStr;
use std::ptr::NonNull;

/// Length of a whole CMAC, in bytes.
pub const CMAC_LENGTH: usize = 16;

/// A prepared key: shared by any number of threads.
#[derive(Debug)]
pub struct Key {
    context: Context,
    length: usize,
}

// SAFETY: after its initialisation the context is only copied from.
unsafe impl Sync for Key {}

/// A MAC in the middle.
#[derive(Debug)]
pub struct Stream {
    context: Context,
    length: usize,
}

#[derive(Debug)]
struct Context(NonNull<EVP_MAC_CTX>);

// SAFETY: the context is owned and has no ties to a thread.
unsafe impl Send for Context {}

impl Drop for Context {
    fn drop(&mut self) {
        // SAFETY: made by the library, freed once; the key in it is zeroised.
        unsafe { raw::EVP_MAC_CTX_free(self.0.as_ptr()) };
    }
}

impl Key {
    /// HMAC with a key of any length.
    ///
    /// # Errors
    /// When the library fails.
    pub fn hmac(hash: Hash, key: &[u8]) -> Result<Self> {
        Self::new(methods()?.hmac, (c"digest", hash.name()), key, hash.length())
    }

    /// CMAC by AES with a key of 16, 24 or 32 bytes.
    ///
    /// # Errors
    /// For another length.
    pub fn cmac(key: &[u8]) -> Result<Self> {
        let cipher = match key.len() {
            16 => c"AES-128-CBC",
            24 => c"AES-192-CBC",
            32 => c"AES-256-CBC",
            _ => return Err(Failed),
        };
        Self::new(methods()?.cmac, (c"cipher", cipher), key, CMAC_LENGTH)
    }

    fn new(
        method: NonNull<raw::EVP_MAC>,
        (parameter, name): (&CStr, &CStr),
        key: &[u8],
        length: usize,
    ) -> Result<Self> {
        // SAFETY: the method stays; NULL when memory ran out.
        let context = Context(not_null(unsafe { raw::EVP_MAC_CTX_new(method.as_ptr()) })?);
        let params = Params::new().text(parameter, name);
        // SAFETY: the context is fresh, the key readable for its length, the parameters a list with its end.
        let done = check(params.give(|params| unsafe {
            raw::EVP_MAC_init(context.0.as_ptr(), key.as_ptr(), key.len(), params)
        }));
        wipe_shallow_stack();
        done.map(|()| Self { context, length })
    }

    /// Begins a MAC.
    ///
    /// # Errors
    /// When memory ran out.
    pub fn start(&self) -> Result<Stream> {
        // SAFETY: the context is live and only read.
        let copy = not_null(unsafe { raw::EVP_MAC_CTX_dup(self.context.0.as_ptr()) })?;
        Ok(Stream { context: Context(copy), length: self.length })
    }

    /// The MAC of `data` into `out`, which may be shorter: then the MAC is truncated.
    ///
    /// # Errors
    /// When the library fails.
    ///
    /// # Panics
    /// When `out` is longer than the MAC.
    pub fn mac(&self, data: &[u8], out: &mut [u8]) -> Result<()> {
        let mut stream = self.start()?;
        stream.update(data)?;
        stream.finish(out)
    }
}

impl Stream {
    /// Takes more data.
    ///
    /// # Errors
    /// When the library fails.
    pub fn update(&mut self, data: &[u8]) -> Result<()> {
        // SAFETY: the context is begun, `data` readable for its length.
        check(unsafe { raw::EVP_MAC_update(self.context.0.as_ptr(), data.as_ptr(), data.len()) })
    }

    /// Writes the MAC, truncated to `out`; the stream is used up.
    ///
    /// # Errors
    /// When the library fails.
    ///
    /// # Panics
    /// When `out` is longer than the MAC.
    pub fn finish(&mut self, out: &mut [u8]) -> Result<()> {
        assert!(out.len() <= self.length);
        let mut whole = [0; MAX_LENGTH];
        let (context, mut length) = (self.context.0.as_ptr(), 0);
        // SAFETY: the context is begun; `whole` takes the longest MAC.
        let done = check(unsafe {
            raw::EVP_MAC_final(context, whole.as_mut_ptr(), &raw mut length, whole.len())
        });
        out.copy_from_slice(&whole[..out.len()]);
        metaslot_awslc_wrapper::cleanse(&mut whole);
        if length == self.length { done } else { Err(Failed) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_prepared_key_serves_many_macs() {
        let mut keys: Vec<_> = Hash::ALL.map(|hash| Key::hmac(hash, &[9; 200]).unwrap()).into();
        keys.extend([16, 24, 32].map(|length| Key::cmac(&vec![7; length]).unwrap()));
        for key in keys {
            let (mut one, mut two) = (vec![0; key.length], vec![0; key.length]);
            key.mac(b"hello world", &mut one).unwrap();
            let mut stream = key.start().unwrap();
            for part in [&b"hello "[..], b"", b"world"] {
                stream.update(part).unwrap();
            }
            stream.finish(&mut two).unwrap();
            assert_eq!(one, two);
            key.mac(b"hello world", &mut two[..7]).unwrap();
            assert_eq!(one, two);
        }
        assert!(Key::cmac(&[0; 8]).is_err());
    }

    #[test]
    fn rfc_4231_case_two() {
        let mut out = [0; 32];
        let key = Key::hmac(Hash::Sha256, b"Jefe").unwrap();
        key.mac(b"what do ya want for nothing?", &mut out).unwrap();
        assert_eq!(out[..4], [0x5b, 0xdc, 0xc1, 0x46]);
    }
}

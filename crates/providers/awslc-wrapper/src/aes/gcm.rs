// SPDX-License-Identifier: Apache-2.0
//! AES-GCM in several parts; in one call it is [`crate::aead`]'s.

use crate::Result;
use crate::evp::{Context, LONGEST, by_key_length};
use metaslot_memory::wipe_shallow_stack;

/// An encryption in the middle.
#[derive(Debug)]
pub struct GcmStream(Context);

impl GcmStream {
    /// Begins an encryption with a nonce of any length from 1 byte.
    ///
    /// # Errors
    /// For a key of another length than 16, 24 or 32 bytes, or an empty nonce.
    pub fn encrypt(key: &[u8], nonce: &[u8], aad: &[u8]) -> Result<Self> {
        let ciphers =
            [aws_lc_sys::EVP_aes_128_gcm, aws_lc_sys::EVP_aes_192_gcm, aws_lc_sys::EVP_aes_256_gcm];
        let context = Context::new(by_key_length(key, ciphers)?, true)?;
        context.set_iv_length(nonce.len())?;
        context.set_key(key, None, true)?;
        context.set_aead_iv(nonce, true)?;
        let mut stream = Self(context);
        stream.aad(aad)?;
        Ok(stream)
    }

    /// Takes more additional data, before the first [`Self::update`].
    ///
    /// # Errors
    /// When they are longer than GCM allows.
    pub fn aad(&mut self, mut data: &[u8]) -> Result<()> {
        while !data.is_empty() {
            let (part, rest) = data.split_at(data.len().min(LONGEST));
            self.0.aad(Some(part), part.len())?;
            data = rest;
        }
        Ok(())
    }

    /// Encrypts more.
    ///
    /// # Errors
    /// When all parts together are longer than GCM allows.
    ///
    /// # Panics
    /// When `out` is not as long as `input`.
    pub fn update(&mut self, input: &[u8], out: &mut [u8]) -> Result<()> {
        if input.is_empty() {
            return Ok(());
        }
        let done = self.0.update(input, out);
        wipe_shallow_stack();
        done
    }

    /// Writes the tag, truncated to `tag`; the stream is used up.
    ///
    /// # Errors
    /// When the library fails.
    pub fn finish(&mut self, tag: &mut [u8]) -> Result<()> {
        self.0.finish()?;
        self.0.tag(tag)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::aead::Key;

    #[test]
    fn parts_and_whole_agree_for_every_nonce_length() {
        let data = [0x77; 100];
        for nonce in [1, 7, 8, 12, 13, 16, 17, 64, 300] {
            let nonce = vec![9; nonce];
            let mut whole = [0; 116];
            Key::aes_gcm(&[1; 24]).unwrap().seal(&nonce, b"aad", &data, &mut whole).unwrap();
            let mut stream = GcmStream::encrypt(&[1; 24], &nonce, b"aad").unwrap();
            let (mut parts, mut tag) = ([0; 100], [0; 16]);
            stream.update(&data[..33], &mut parts[..33]).unwrap();
            stream.update(&[], &mut []).unwrap();
            stream.update(&data[33..], &mut parts[33..]).unwrap();
            stream.finish(&mut tag).unwrap();
            assert_eq!(parts, whole[..100]);
            assert_eq!(tag, whole[100..]);
        }
        assert!(GcmStream::encrypt(&[1; 24], &[], b"").is_err());
    }
}

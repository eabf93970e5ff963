// SPDX-License-Identifier: Apache-2.0
//! AEADs over a prepared key: AES-GCM and ChaCha20-Poly1305.

use crate::{Failed, Result, cleanse};
use aws_lc_sys::{
    EVP_AEAD, EVP_AEAD_CTX, EVP_AEAD_CTX_init, EVP_AEAD_CTX_open_gather, EVP_AEAD_CTX_seal_scatter,
};
use metaslot_memory::{Protected, wipe_shallow_stack, wipe_slight_stack, wipe_table_stack};
use std::ptr;

/// Length of a whole tag, in bytes.
pub const TAG: usize = 16;

/// The longest message, in bytes, for which the library makes no table.
const SHORT: usize = 128;

/// A prepared key: shared by any number of threads.
#[derive(Debug)]
pub struct Key {
    context: Protected<EVP_AEAD_CTX>,
    /// Whether the library's code for the algorithm leaves the key on the stack.
    untidy: bool,
}

// SAFETY: after its initialisation the context is only read.
unsafe impl Send for Key {}
// SAFETY: as above; AWS-LC's sealing and opening take it `const`.
unsafe impl Sync for Key {}

impl Key {
    /// AES-GCM with a key of 16, 24 or 32 bytes and tags of 16 bytes.
    ///
    /// # Errors
    /// For a key of another length.
    pub fn aes_gcm(key: &[u8]) -> Result<Self> {
        Self::aes_gcm_with_tag(key, TAG)
    }

    /// AES-GCM that opens tags of `tag` bytes, 1 to 16.
    ///
    /// # Errors
    /// For another length of the key or the tag.
    pub fn aes_gcm_with_tag(key: &[u8], tag: usize) -> Result<Self> {
        if tag == 0 || tag > TAG {
            return Err(Failed);
        }
        let algorithm = match key.len() {
            // SAFETY: returns the address of a static.
            16 => unsafe { aws_lc_sys::EVP_aead_aes_128_gcm() },
            // SAFETY: as above.
            24 => unsafe { aws_lc_sys::EVP_aead_aes_192_gcm() },
            // SAFETY: as above.
            32 => unsafe { aws_lc_sys::EVP_aead_aes_256_gcm() },
            _ => return Err(Failed),
        };
        Self::new(algorithm, key, tag, false)
    }

    /// AES-256-GCM with tags of 16 bytes.
    ///
    /// # Errors
    /// When the key is not 32 bytes long.
    pub fn aes_256_gcm(key: &[u8]) -> Result<Self> {
        if key.len() == 32 { Self::aes_gcm(key) } else { Err(Failed) }
    }

    /// ChaCha20-Poly1305 (RFC 8439).
    ///
    /// # Errors
    /// When the key is not 32 bytes long.
    pub fn chacha20_poly1305(key: &[u8]) -> Result<Self> {
        if key.len() != 32 {
            return Err(Failed);
        }
        // SAFETY: returns the address of a static.
        let algorithm = unsafe { aws_lc_sys::EVP_aead_chacha20_poly1305() };
        Self::new(algorithm, key, TAG, true)
    }

    fn new(algorithm: *const EVP_AEAD, key: &[u8], tag: usize, untidy: bool) -> Result<Self> {
        // SAFETY: the all-zero context is AWS-LC's own idea of an empty one.
        let mut context = unsafe { Protected::<EVP_AEAD_CTX>::zeroed() };
        let place = &raw mut *context;
        // SAFETY: `place` is writable, `key` readable for its length, the algorithm a static. The
        // context of these algorithms owns no other memory, so nothing need be cleaned up.
        crate::check(unsafe {
            EVP_AEAD_CTX_init(place, algorithm, key.as_ptr(), key.len(), tag, ptr::null_mut())
        })?;
        Ok(Self { context, untidy })
    }

    /// Encrypts `plain` into the start of `out` and puts the tag of 16 bytes after it.
    ///
    /// # Errors
    /// For an empty nonce, or data longer than the algorithm allows.
    ///
    /// # Panics
    /// When `out` is not exactly [`TAG`] bytes longer than `plain`.
    pub fn seal(&self, nonce: &[u8], aad: &[u8], plain: &[u8], out: &mut [u8]) -> Result<()> {
        assert_eq!(out.len(), plain.len() + TAG);
        let (sealed, tag) = out.split_at_mut(plain.len());
        self.seal_scatter(nonce, aad, plain, sealed, tag)
    }

    /// [`Self::seal`] with the tag in its own place; a shorter place takes a truncated tag.
    ///
    /// # Errors
    /// As [`Self::seal`].
    ///
    /// # Panics
    /// When `sealed` is not as long as `plain`, or `tag` is longer than 16 bytes.
    pub fn seal_scatter(
        &self,
        nonce: &[u8],
        aad: &[u8],
        plain: &[u8],
        sealed: &mut [u8],
        tag: &mut [u8],
    ) -> Result<()> {
        assert_eq!(sealed.len(), plain.len());
        let mut whole = [0; TAG];
        let mut length = 0;
        // SAFETY: every pointer goes with its length; the context is only read.
        let done = crate::check(unsafe {
            EVP_AEAD_CTX_seal_scatter(
                &raw const *self.context,
                sealed.as_mut_ptr(),
                whole.as_mut_ptr(),
                &raw mut length,
                whole.len(),
                nonce.as_ptr(),
                nonce.len(),
                plain.as_ptr(),
                plain.len(),
                ptr::null(),
                0,
                aad.as_ptr(),
                aad.len(),
            )
        });
        self.tidy(plain.len());
        tag.copy_from_slice(&whole[..tag.len()]);
        done
    }

    /// Decrypts `sealed`, which ends in the tag, into `out`; nothing is left there when the tag
    /// does not match.
    ///
    /// # Errors
    /// When the tag does not match.
    ///
    /// # Panics
    /// When `out` is not exactly [`TAG`] bytes shorter than `sealed`.
    pub fn open(&self, nonce: &[u8], aad: &[u8], sealed: &[u8], out: &mut [u8]) -> Result<()> {
        assert_eq!(out.len() + TAG, sealed.len());
        let (sealed, tag) = sealed.split_at(out.len());
        self.open_gather(nonce, aad, sealed, tag, out)
    }

    /// [`Self::open`] with the tag apart; it must be as long as the key was prepared for.
    ///
    /// # Errors
    /// When the tag does not match or has another length.
    ///
    /// # Panics
    /// When `out` is not as long as `sealed`.
    pub fn open_gather(
        &self,
        nonce: &[u8],
        aad: &[u8],
        sealed: &[u8],
        tag: &[u8],
        out: &mut [u8],
    ) -> Result<()> {
        assert_eq!(out.len(), sealed.len());
        // SAFETY: every pointer goes with its length; the context is only read.
        let opened = crate::check(unsafe {
            EVP_AEAD_CTX_open_gather(
                &raw const *self.context,
                out.as_mut_ptr(),
                nonce.as_ptr(),
                nonce.len(),
                sealed.as_ptr(),
                sealed.len(),
                tag.as_ptr(),
                tag.len(),
                aad.as_ptr(),
                aad.len(),
            )
        });
        self.tidy(sealed.len());
        if opened.is_err() {
            cleanse(out);
        }
        opened
    }

    /// Of AES-GCM it leaves the key of the hash, which is enough to forge with; of what is longer a table of its powers, which lies deeper.
    fn tidy(&self, length: usize) {
        match length {
            _ if self.untidy => wipe_shallow_stack(),
            0..=SHORT => wipe_slight_stack(),
            _ => wipe_table_stack(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_sealed_opens_and_nothing_else_does() {
        let key = Key::aes_256_gcm(&[7; 32]).unwrap();
        let mut sealed = [0; 21];
        key.seal(&[1; 12], b"aad", b"hello", &mut sealed).unwrap();
        let mut opened = [0; 5];
        key.open(&[1; 12], b"aad", &sealed, &mut opened).unwrap();
        assert_eq!(&opened, b"hello");
        sealed[3] ^= 1;
        assert_eq!(key.open(&[1; 12], b"aad", &sealed, &mut opened), Err(Failed));
        assert_eq!(opened, [0; 5], "nothing is released");
    }

    #[test]
    fn keys_of_a_wrong_length_are_refused() {
        assert!(Key::aes_256_gcm(&[0; 16]).is_err());
        assert!(Key::aes_gcm(&[0; 17]).is_err());
        assert!(Key::chacha20_poly1305(&[0; 31]).is_err());
        assert!(Key::aes_gcm_with_tag(&[0; 16], 17).is_err());
    }
}

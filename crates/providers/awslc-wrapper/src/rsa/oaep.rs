// SPDX-License-Identifier: Apache-2.0
//! RSAES-OAEP with any pair of hashes and a label.

use crate::digest::Hash;
use crate::raw::not_null;
use crate::rsa::{Rsa, RsaPadding};
use crate::{Result, check};
use aws_lc_sys as sys;
use metaslot_memory::{Secret, wipe_stack};
use std::ptr::{self, NonNull};

/// Parameters of RSAES-OAEP.
#[derive(Clone, Copy, Debug)]
pub struct Oaep<'a> {
    /// Of the label.
    pub hash: Hash,
    /// Of the mask generation function.
    pub mgf: Hash,
    /// Any length.
    pub label: &'a [u8],
}

impl Rsa {
    /// Encrypts `message`; `out` is [`Self::size`] long.
    ///
    /// # Errors
    /// When the message is longer than the modulus less two digests less 2 bytes.
    pub fn encrypt_oaep(&self, oaep: Oaep<'_>, message: &[u8], out: &mut [u8]) -> Result<()> {
        let mut block = Secret::zeroed(self.size());
        let padded = block.expose_mut();
        // SAFETY: the ranges are slices'; the digests are static.
        check(unsafe {
            sys::RSA_padding_add_PKCS1_OAEP_mgf1(
                padded.as_mut_ptr(),
                padded.len(),
                message.as_ptr(),
                message.len(),
                oaep.label.as_ptr(),
                oaep.label.len(),
                oaep.hash.md(),
                oaep.mgf.md(),
            )
        })?;
        self.encrypt(RsaPadding::None, block.expose(), out)
    }

    /// Decrypts `ciphertext` into `out`, which is [`Self::size`] long; returns the length of the
    /// message. The library unpads in constant time and says no more than "bad".
    ///
    /// # Errors
    /// When the ciphertext is not good.
    pub fn decrypt_oaep(&self, oaep: Oaep<'_>, ciphertext: &[u8], out: &mut [u8]) -> Result<usize> {
        let operation = Operation::decrypt(self, oaep)?;
        let mut written = out.len();
        // SAFETY: the context is ours and initialised; the ranges are slices'.
        let done = check(unsafe {
            sys::EVP_PKEY_decrypt(
                operation.0.as_ptr(),
                out.as_mut_ptr(),
                &raw mut written,
                ciphertext.as_ptr(),
                ciphertext.len(),
            )
        });
        wipe_stack();
        done?;
        Ok(written)
    }
}

/// A context of the library's for one operation.
struct Operation(NonNull<sys::EVP_PKEY_CTX>);

impl Operation {
    fn decrypt(key: &Rsa, oaep: Oaep<'_>) -> Result<Self> {
        let operation = Self::new(key)?;
        let raw = operation.0.as_ptr();
        // SAFETY: the context is ours.
        check(unsafe { sys::EVP_PKEY_decrypt_init(raw) })?;
        // SAFETY: the context is ours and initialised for decryption with an RSA key.
        check(unsafe { sys::EVP_PKEY_CTX_set_rsa_padding(raw, sys::RSA_PKCS1_OAEP_PADDING) })?;
        // SAFETY: as above; the digest is static.
        check(unsafe { sys::EVP_PKEY_CTX_set_rsa_oaep_md(raw, oaep.hash.md()) })?;
        // SAFETY: as above.
        check(unsafe { sys::EVP_PKEY_CTX_set_rsa_mgf1_md(raw, oaep.mgf.md()) })?;
        if !oaep.label.is_empty() {
            operation.label(oaep.label)?;
        }
        Ok(operation)
    }

    fn new(key: &Rsa) -> Result<Self> {
        // SAFETY: no argument.
        let envelope = not_null(unsafe { sys::EVP_PKEY_new() })?.as_ptr();
        // SAFETY: both are alive; the envelope takes a reference of its own to the key.
        let set = check(unsafe { sys::EVP_PKEY_set1_RSA(envelope, key.as_ptr()) });
        // SAFETY: the envelope is alive; the context takes a reference of its own; no engine.
        let raw = unsafe { sys::EVP_PKEY_CTX_new(envelope, ptr::null_mut()) };
        // SAFETY: this gives up our reference to the envelope.
        unsafe { sys::EVP_PKEY_free(envelope) };
        let operation = not_null(raw).map(Self)?;
        set.map(|()| operation)
    }

    fn label(&self, label: &[u8]) -> Result<()> {
        // SAFETY: the range is a slice's.
        let copy = unsafe { sys::OPENSSL_memdup(label.as_ptr().cast(), label.len()) };
        let copy = not_null(copy.cast::<u8>())?;
        let raw = self.0.as_ptr();
        // SAFETY: the context is ours; it owns the copy from here when the call succeeds.
        let set = check(unsafe {
            sys::EVP_PKEY_CTX_set0_rsa_oaep_label(raw, copy.as_ptr(), label.len())
        });
        if set.is_err() {
            // SAFETY: the copy is still ours.
            unsafe { sys::OPENSSL_free(copy.as_ptr().cast()) };
        }
        set
    }
}

impl Drop for Operation {
    fn drop(&mut self) {
        // SAFETY: we own the context.
        unsafe { sys::EVP_PKEY_CTX_free(self.0.as_ptr()) }
    }
}

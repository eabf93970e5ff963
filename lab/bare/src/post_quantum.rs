// SPDX-License-Identifier: Apache-2.0
//! ML-DSA and ML-KEM by the library's general interface, which is the only one that it has for them.

use crate::{Failed, Result, check, not_null};
use aws_lc_sys as sys;
use std::ptr::{self, NonNull};

/// Length of a signature by ML-DSA-65 (FIPS 204, table 2), in bytes.
pub const ML_DSA_65_SIGNATURE: usize = 3309;
/// Length of a ciphertext of ML-KEM-768 (FIPS 203, table 3), in bytes.
pub const ML_KEM_768_CIPHERTEXT: usize = 1088;

#[derive(Debug)]
struct Key(NonNull<sys::EVP_PKEY>);

// SAFETY: the key is only read after it was made.
unsafe impl Send for Key {}
// SAFETY: as above.
unsafe impl Sync for Key {}

impl Drop for Key {
    fn drop(&mut self) {
        // SAFETY: made by the library, freed once.
        unsafe { sys::EVP_PKEY_free(self.0.as_ptr()) };
    }
}

#[derive(Debug)]
struct Context(NonNull<sys::EVP_PKEY_CTX>);

impl Drop for Context {
    fn drop(&mut self) {
        // SAFETY: made by the library, freed once.
        unsafe { sys::EVP_PKEY_CTX_free(self.0.as_ptr()) };
    }
}

impl Context {
    fn new(key: &Key) -> Result<Self> {
        // SAFETY: a live key, which the context counts as its own.
        not_null(unsafe { sys::EVP_PKEY_CTX_new(key.0.as_ptr(), ptr::null_mut()) }).map(Self)
    }
}

impl Key {
    fn generate(kind: i32, set: i32) -> Result<Self> {
        // SAFETY: a number and no engine.
        let context = unsafe { sys::EVP_PKEY_CTX_new_id(kind, ptr::null_mut()) };
        let context = not_null(context).map(Context)?;
        let (raw, mut key) = (context.0.as_ptr(), ptr::null_mut());
        // SAFETY: a live context.
        check(unsafe { sys::EVP_PKEY_keygen_init(raw) })?;
        check(if kind == sys::EVP_PKEY_KEM {
            // SAFETY: a live context of that kind.
            unsafe { sys::EVP_PKEY_CTX_kem_set_params(raw, set) }
        } else {
            // SAFETY: as above.
            unsafe { sys::EVP_PKEY_CTX_pqdsa_set_params(raw, set) }
        })?;
        // SAFETY: a context made ready above, and a place for the key.
        check(unsafe { sys::EVP_PKEY_keygen(raw, &raw mut key) })?;
        not_null(key).map(Self)
    }
}

/// A key of ML-DSA-65.
#[derive(Debug)]
pub struct MlDsa65(Key);

impl MlDsa65 {
    /// `EVP_PKEY_keygen`
    ///
    /// # Errors
    /// Memory or entropy ran out.
    pub fn generate() -> Result<Self> {
        Key::generate(sys::EVP_PKEY_PQDSA, sys::NID_MLDSA65).map(Self)
    }

    /// A public key from its bytes.
    ///
    /// # Errors
    /// It has another length.
    pub fn public(bytes: &[u8]) -> Result<Self> {
        let (start, length) = (bytes.as_ptr(), bytes.len());
        // SAFETY: readable for its length, and copied.
        let key =
            unsafe { sys::EVP_PKEY_pqdsa_new_raw_public_key(sys::NID_MLDSA65, start, length) };
        not_null(key).map(|key| Self(Key(key)))
    }

    /// `EVP_DigestSign`, pure and hedged; how many bytes were written.
    ///
    /// # Errors
    /// `out` is shorter than [`ML_DSA_65_SIGNATURE`].
    pub fn sign(&self, message: &[u8], out: &mut [u8]) -> Result<usize> {
        let (context, mut used) = (Digest::new()?, out.len());
        let (raw, key, none) = (context.0.as_ptr(), self.0.0.as_ptr(), ptr::null_mut());
        // SAFETY: a live context and key.
        check(unsafe { sys::EVP_DigestSignInit(raw, none, ptr::null(), ptr::null_mut(), key) })?;
        let (out, used_) = (out.as_mut_ptr(), &raw mut used);
        let (start, length) = (message.as_ptr(), message.len());
        // SAFETY: a context made ready above, a readable message, and room for what is said.
        check(unsafe { sys::EVP_DigestSign(raw, out, used_, start, length) })?;
        Ok(used)
    }

    /// `EVP_DigestVerify`
    ///
    /// # Errors
    /// The signature is another's.
    pub fn verify(&self, message: &[u8], signature: &[u8]) -> Result<()> {
        let context = Digest::new()?;
        let (raw, key, none) = (context.0.as_ptr(), self.0.0.as_ptr(), ptr::null_mut());
        // SAFETY: a live context and key.
        check(unsafe { sys::EVP_DigestVerifyInit(raw, none, ptr::null(), ptr::null_mut(), key) })?;
        let (start, length) = (message.as_ptr(), message.len());
        let (from, long) = (signature.as_ptr(), signature.len());
        // SAFETY: a context made ready above, and a readable message and signature with their lengths.
        check(unsafe { sys::EVP_DigestVerify(raw, from, long, start, length) })
    }
}

struct Digest(NonNull<sys::EVP_MD_CTX>);

impl Digest {
    fn new() -> Result<Self> {
        // SAFETY: takes nothing.
        not_null(unsafe { sys::EVP_MD_CTX_new() }).map(Self)
    }
}

impl Drop for Digest {
    fn drop(&mut self) {
        // SAFETY: made by EVP_MD_CTX_new, freed once.
        unsafe { sys::EVP_MD_CTX_free(self.0.as_ptr()) };
    }
}

/// A key of ML-KEM-768, and a context that is used again and again.
#[derive(Debug)]
pub struct MlKem768(Context);

impl MlKem768 {
    /// `EVP_PKEY_keygen`
    ///
    /// # Errors
    /// Memory or entropy ran out.
    pub fn generate() -> Result<Self> {
        Context::new(&Key::generate(sys::EVP_PKEY_KEM, sys::NID_MLKEM768)?).map(Self)
    }

    /// `EVP_PKEY_encapsulate`: the shared secret, and its ciphertext in `out`.
    ///
    /// # Errors
    /// Memory or entropy ran out.
    pub fn encapsulate(&self, out: &mut [u8; ML_KEM_768_CIPHERTEXT]) -> Result<[u8; 32]> {
        let (mut secret, mut length, mut used) = ([0; 32], 32, out.len());
        let (out, context) = (out.as_mut_ptr(), self.0.0.as_ptr());
        let (to, length) = (secret.as_mut_ptr(), &raw mut length);
        // SAFETY: a live context, and two places with their lengths.
        check(unsafe { sys::EVP_PKEY_encapsulate(context, out, &raw mut used, to, length) })?;
        Ok(secret)
    }

    /// `EVP_PKEY_decapsulate`
    ///
    /// # Errors
    /// The ciphertext has another length.
    pub fn decapsulate(&self, ciphertext: &[u8]) -> Result<[u8; 32]> {
        let (mut secret, mut length) = ([0; 32], 32);
        if ciphertext.len() != ML_KEM_768_CIPHERTEXT {
            return Err(Failed);
        }
        let (to, length) = (secret.as_mut_ptr(), &raw mut length);
        let (from, used, context) = (ciphertext.as_ptr(), ciphertext.len(), self.0.0.as_ptr());
        // SAFETY: a live context, 32 writable bytes, and a readable ciphertext of that length.
        check(unsafe { sys::EVP_PKEY_decapsulate(context, to, length, from, used) })?;
        Ok(secret)
    }
}

// SPDX-License-Identifier: Apache-2.0
//! The bare library for the lab: AWS-LC's C functions with a prepared key and a reused context, and
//! nothing in between.
//!
//! A crate of its own, without the wrappers and the allocation hooks that the module uses: a
//! program that links those too would measure the bare library with them, and what they cost
//! would not show.

mod hash_based;
mod post_quantum;

pub use hash_based::{SlhDsa, hss_public, xmss_public};
pub use post_quantum::{ML_DSA_65_SIGNATURE, ML_KEM_768_CIPHERTEXT, MlDsa65, MlKem768};

use aws_lc_sys as sys;
use std::ffi::c_int;
use std::fmt;
use std::ptr::{self, NonNull};

/// The library refused.
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

/// 1 is success. A failure also leaves an entry in the thread's error queue, which must not grow.
fn check(code: c_int) -> Result<()> {
    if code == 1 { Ok(()) } else { failed() }
}

fn not_null<T>(pointer: *mut T) -> Result<NonNull<T>> {
    NonNull::new(pointer).map_or_else(failed, Ok)
}

#[cold]
fn failed<T>() -> Result<T> {
    // SAFETY: clears this thread's error queue; no other effect.
    unsafe { sys::ERR_clear_error() };
    Err(Failed)
}

const P256: i32 = sys::NID_X9_62_prime256v1;
const PUBLIC_EXPONENT: u64 = 65_537;
const TAG: usize = 16;

/// `SHA256` of all of `data`.
pub fn sha256(data: &[u8], digest: &mut [u8; 32]) {
    // SAFETY: readable data with its length, and 32 writable bytes.
    unsafe { sys::SHA256(data.as_ptr(), data.len(), digest.as_mut_ptr()) };
}

// From AWS-LC's `crypto/fipsmodule/sha/internal.h`, which exports it; no header that is installed has it. Its name ends with its
// version: another one does not link.
unsafe extern "C" {
    #[link_name = "aws_lc_0_47_0_SHAKE256"]
    fn SHAKE256(data: *const u8, length: usize, out: *mut u8, out_length: usize) -> *mut u8;
}

/// `SHAKE256` of all of `data`, as long as `out`.
pub fn shake256(data: &[u8], out: &mut [u8]) {
    // SAFETY: readable data and writable bytes with their lengths.
    unsafe { SHAKE256(data.as_ptr(), data.len(), out.as_mut_ptr(), out.len()) };
}

/// `SHA1` of all of `data`.
pub fn sha1(data: &[u8], digest: &mut [u8; 20]) {
    // SAFETY: readable data with its length, and 20 writable bytes.
    unsafe { sys::SHA1(data.as_ptr(), data.len(), digest.as_mut_ptr()) };
}

/// `MD5` of all of `data`.
pub fn md5(data: &[u8], digest: &mut [u8; 16]) {
    // SAFETY: readable data with its length, and 16 writable bytes.
    unsafe { sys::MD5(data.as_ptr(), data.len(), digest.as_mut_ptr()) };
}

/// RC4 with a prepared key. It is copied for every message, because the cipher changes it.
#[derive(Clone, Copy, Debug)]
pub struct Rc4(sys::RC4_KEY);

impl Rc4 {
    /// Prepares the key.
    #[must_use]
    pub fn new(key: &[u8; 16]) -> Self {
        let mut prepared = sys::RC4_KEY { x: 0, y: 0, data: [0; 256] };
        // SAFETY: 16 readable bytes, and a key to be written.
        unsafe { sys::RC4_set_key(&raw mut prepared, 16, key.as_ptr()) };
        Self(prepared)
    }

    /// `RC4` from the start of the key stream; as many bytes as both have.
    pub fn apply(&self, data: &[u8], out: &mut [u8]) {
        let mut key = self.0;
        let length = data.len().min(out.len());
        // SAFETY: a prepared key of our own, `length` readable and writable bytes.
        unsafe { sys::RC4(&raw mut key, length, data.as_ptr(), out.as_mut_ptr()) };
    }
}

/// AES-256 in CBC mode with a prepared key schedule, without padding.
#[derive(Debug)]
pub struct Cbc(Ctr);

impl Cbc {
    /// Expands the key.
    ///
    /// # Errors
    /// Never for 32 bytes.
    pub fn new(key: &[u8; 32]) -> Result<Self> {
        Ctr::new(key).map(Self)
    }

    /// `AES_cbc_encrypt` of whole blocks.
    ///
    /// # Errors
    /// The data are no whole blocks, or `out` has another length.
    pub fn encrypt(&self, iv: &[u8; 16], data: &[u8], out: &mut [u8]) -> Result<()> {
        if data.len() != out.len() || !data.len().is_multiple_of(16) {
            return Err(Failed);
        }
        let mut iv = *iv;
        // SAFETY: as many whole blocks readable as writable; the key schedule is made, the IV ours.
        unsafe {
            sys::AES_cbc_encrypt(
                data.as_ptr(),
                out.as_mut_ptr(),
                data.len(),
                &raw const self.0.0,
                iv.as_mut_ptr(),
                1,
            );
        }
        Ok(())
    }
}

/// `RAND_bytes`
///
/// # Errors
/// The generator has no entropy.
pub fn random(bytes: &mut [u8]) -> Result<()> {
    // SAFETY: writable for its length.
    check(unsafe { sys::RAND_bytes(bytes.as_mut_ptr(), bytes.len()) })
}

/// AES-256 in counter mode with a prepared key schedule.
#[derive(Debug)]
pub struct Ctr(sys::AES_KEY);

impl Ctr {
    /// Expands the key.
    ///
    /// # Errors
    /// Never for 32 bytes.
    pub fn new(key: &[u8; 32]) -> Result<Self> {
        let mut schedule = sys::AES_KEY { rd_key: [0; 60], rounds: 0 };
        // SAFETY: 256 bits of key, and a schedule to be written.
        let code = unsafe { sys::AES_set_encrypt_key(key.as_ptr(), 256, &raw mut schedule) };
        if code == 0 { Ok(Self(schedule)) } else { Err(Failed) }
    }

    /// `AES_ctr128_encrypt` from a fresh counter block; `out` is as long as `data`.
    pub fn apply(&self, block: &[u8; 16], data: &[u8], out: &mut [u8]) {
        let length = data.len().min(out.len());
        let (mut block, mut stream, mut used) = (*block, [0; 16], 0);
        // SAFETY: `length` readable and writable bytes; block, key stream and offset are ours.
        unsafe {
            sys::AES_ctr128_encrypt(
                data.as_ptr(),
                out.as_mut_ptr(),
                length,
                &raw const self.0,
                block.as_mut_ptr(),
                stream.as_mut_ptr(),
                &raw mut used,
            );
        }
    }
}

/// AES-256-GCM with a prepared key and a 16-byte tag.
#[derive(Debug)]
pub struct Gcm(NonNull<sys::EVP_AEAD_CTX>);

// SAFETY: the context is only read after it was made.
unsafe impl Send for Gcm {}

impl Gcm {
    /// Expands the key.
    ///
    /// # Errors
    /// Memory ran out.
    pub fn new(key: &[u8; 32]) -> Result<Self> {
        // SAFETY: takes nothing, and returns a static.
        let aead = unsafe { sys::EVP_aead_aes_256_gcm() };
        // SAFETY: a static algorithm and 32 readable bytes of key.
        let context = unsafe { sys::EVP_AEAD_CTX_new(aead, key.as_ptr(), key.len(), TAG) };
        not_null(context).map(Self)
    }

    /// `EVP_AEAD_CTX_seal`; how many bytes were written.
    ///
    /// # Errors
    /// `out` is not 16 bytes longer than `data`.
    pub fn seal(&self, nonce: &[u8; 12], data: &[u8], out: &mut [u8]) -> Result<usize> {
        let mut used = 0;
        // SAFETY: a live context; nonce, data and room with their lengths.
        check(unsafe {
            sys::EVP_AEAD_CTX_seal(
                self.0.as_ptr(),
                out.as_mut_ptr(),
                &raw mut used,
                out.len(),
                nonce.as_ptr(),
                nonce.len(),
                data.as_ptr(),
                data.len(),
                ptr::null(),
                0,
            )
        })?;
        Ok(used)
    }

    /// `EVP_AEAD_CTX_open`; how many bytes were written.
    ///
    /// # Errors
    /// The tag does not match.
    pub fn open(&self, nonce: &[u8; 12], data: &[u8], out: &mut [u8]) -> Result<usize> {
        let mut used = 0;
        // SAFETY: a live context; nonce, data and room with their lengths.
        check(unsafe {
            sys::EVP_AEAD_CTX_open(
                self.0.as_ptr(),
                out.as_mut_ptr(),
                &raw mut used,
                out.len(),
                nonce.as_ptr(),
                nonce.len(),
                data.as_ptr(),
                data.len(),
                ptr::null(),
                0,
            )
        })?;
        Ok(used)
    }
}

impl Drop for Gcm {
    fn drop(&mut self) {
        // SAFETY: made by EVP_AEAD_CTX_new, freed once.
        unsafe { sys::EVP_AEAD_CTX_free(self.0.as_ptr()) };
    }
}

/// An RSA key with the exponent 65537.
#[derive(Debug)]
pub struct Rsa(NonNull<sys::RSA>);

// SAFETY: the key is only read after it was made; the library locks its blinding cache itself.
unsafe impl Send for Rsa {}
// SAFETY: as above.
unsafe impl Sync for Rsa {}

impl Rsa {
    /// `RSA_generate_key_ex`
    ///
    /// # Errors
    /// Memory or entropy ran out.
    pub fn generate(bits: i32) -> Result<Self> {
        let key = Self::empty()?;
        let exponent = Number::from_u64(PUBLIC_EXPONENT)?;
        // SAFETY: an empty key and a live number; no callback.
        check(unsafe {
            sys::RSA_generate_key_ex(key.0.as_ptr(), bits, exponent.0.as_ptr(), ptr::null_mut())
        })?;
        Ok(key)
    }

    /// A public key from its big-endian modulus and exponent.
    ///
    /// # Errors
    /// The numbers are no RSA key.
    pub fn public(modulus: &[u8], exponent: &[u8]) -> Result<Self> {
        let (modulus, exponent) = (Number::from_bytes(modulus)?, Number::from_bytes(exponent)?);
        // SAFETY: two live numbers, which are copied.
        not_null(unsafe { sys::RSA_new_public_key(modulus.0.as_ptr(), exponent.0.as_ptr()) })
            .map(Self)
    }

    fn empty() -> Result<Self> {
        // SAFETY: takes nothing.
        not_null(unsafe { sys::RSA_new() }).map(Self)
    }

    /// `SHA256` and `RSA_sign`: PKCS#1 v1.5; how many bytes were written.
    ///
    /// # Errors
    /// `out` is shorter than the modulus.
    pub fn sign(&self, message: &[u8], out: &mut [u8]) -> Result<usize> {
        let mut digest = [0; 32];
        sha256(message, &mut digest);
        // SAFETY: a live key.
        if out.len() < unsafe { sys::RSA_size(self.0.as_ptr()) } as usize {
            return Err(Failed);
        }
        let mut used = 0;
        // SAFETY: a live key, 32 readable bytes, and room for the modulus.
        check(unsafe {
            sys::RSA_sign(
                sys::NID_sha256,
                digest.as_ptr(),
                digest.len(),
                out.as_mut_ptr(),
                &raw mut used,
                self.0.as_ptr(),
            )
        })?;
        Ok(used as usize)
    }

    /// `SHA256` and `RSA_verify`.
    ///
    /// # Errors
    /// The signature is another's.
    pub fn verify(&self, message: &[u8], signature: &[u8]) -> Result<()> {
        let mut digest = [0; 32];
        sha256(message, &mut digest);
        // SAFETY: a live key, and readable digest and signature with their lengths.
        check(unsafe {
            sys::RSA_verify(
                sys::NID_sha256,
                digest.as_ptr(),
                digest.len(),
                signature.as_ptr(),
                signature.len(),
                self.0.as_ptr(),
            )
        })
    }
}

impl Drop for Rsa {
    fn drop(&mut self) {
        // SAFETY: made by RSA_new or RSA_new_public_key, freed once.
        unsafe { sys::RSA_free(self.0.as_ptr()) };
    }
}

/// A big number, for as long as a key is being made.
struct Number(NonNull<sys::BIGNUM>);

impl Number {
    fn from_u64(value: u64) -> Result<Self> {
        // SAFETY: takes nothing.
        let number = not_null(unsafe { sys::BN_new() }).map(Self)?;
        // SAFETY: a live number.
        check(unsafe { sys::BN_set_u64(number.0.as_ptr(), value) })?;
        Ok(number)
    }

    fn from_bytes(bytes: &[u8]) -> Result<Self> {
        // SAFETY: readable for its length; NULL asks for a new number.
        not_null(unsafe { sys::BN_bin2bn(bytes.as_ptr(), bytes.len(), ptr::null_mut()) }).map(Self)
    }
}

impl Drop for Number {
    fn drop(&mut self) {
        // SAFETY: made by BN_new or BN_bin2bn, freed once.
        unsafe { sys::BN_free(self.0.as_ptr()) };
    }
}

/// A key on P-256.
#[derive(Debug)]
pub struct Ec(NonNull<sys::EC_KEY>);

// SAFETY: the key is only read after it was made.
unsafe impl Send for Ec {}
// SAFETY: as above.
unsafe impl Sync for Ec {}

/// The longest DER signature on P-256.
pub const EC_SIGNATURE: usize = 72;

impl Ec {
    /// `EC_KEY_generate_key`
    ///
    /// # Errors
    /// Memory or entropy ran out.
    pub fn generate() -> Result<Self> {
        let key = Self::empty()?;
        // SAFETY: a live key with its group.
        check(unsafe { sys::EC_KEY_generate_key(key.0.as_ptr()) })?;
        Ok(key)
    }

    /// A public key from its uncompressed point.
    ///
    /// # Errors
    /// The bytes are no point of the curve.
    pub fn public(point: &[u8]) -> Result<Self> {
        let key = Self::empty()?;
        let length = i64::try_from(point.len()).map_err(|_| Failed)?;
        let (mut target, mut at) = (key.0.as_ptr(), point.as_ptr());
        // SAFETY: a live key with its group, kept by its pointer, and a readable point.
        not_null(unsafe { sys::o2i_ECPublicKey(&raw mut target, &raw mut at, length) })?;
        Ok(key)
    }

    fn empty() -> Result<Self> {
        // SAFETY: takes a number only.
        not_null(unsafe { sys::EC_KEY_new_by_curve_name(P256) }).map(Self)
    }

    /// `ECDSA_sign` of a digest, in DER; how many bytes were written.
    ///
    /// # Errors
    /// Entropy ran out.
    pub fn sign(&self, digest: &[u8; 32], out: &mut [u8; EC_SIGNATURE]) -> Result<usize> {
        let mut used = 0;
        // SAFETY: a live key, 32 readable bytes, and room for the longest signature.
        check(unsafe {
            sys::ECDSA_sign(
                0,
                digest.as_ptr(),
                digest.len(),
                out.as_mut_ptr(),
                &raw mut used,
                self.0.as_ptr(),
            )
        })?;
        Ok(used as usize)
    }

    /// `ECDSA_verify` of a DER signature.
    ///
    /// # Errors
    /// The signature is another's.
    pub fn verify(&self, digest: &[u8; 32], signature: &[u8]) -> Result<()> {
        // SAFETY: a live key, and readable digest and signature with their lengths.
        check(unsafe {
            sys::ECDSA_verify(
                0,
                digest.as_ptr(),
                digest.len(),
                signature.as_ptr(),
                signature.len(),
                self.0.as_ptr(),
            )
        })
    }
}

impl Drop for Ec {
    fn drop(&mut self) {
        // SAFETY: made by EC_KEY_new_by_curve_name, freed once.
        unsafe { sys::EC_KEY_free(self.0.as_ptr()) };
    }
}

/// An Ed25519 key pair of the lab: it protects nothing, so it lies in plain memory.
#[derive(Debug)]
pub struct Ed25519 {
    private: [u8; 64],
    public: [u8; 32],
}

impl Ed25519 {
    /// `ED25519_keypair`
    #[must_use]
    pub fn generate() -> Self {
        let (mut private, mut public) = ([0; 64], [0; 32]);
        // SAFETY: 32 and 64 writable bytes.
        unsafe { sys::ED25519_keypair(public.as_mut_ptr(), private.as_mut_ptr()) };
        Self { private, public }
    }

    /// `ED25519_sign`
    ///
    /// # Errors
    /// Memory ran out.
    pub fn sign(&self, message: &[u8], out: &mut [u8; 64]) -> Result<()> {
        let key = self.private.as_ptr();
        // SAFETY: a readable message with its length, 64 writable bytes, and a whole key.
        check(unsafe { sys::ED25519_sign(out.as_mut_ptr(), message.as_ptr(), message.len(), key) })
    }

    /// `ED25519_verify` with the own public key.
    ///
    /// # Errors
    /// The signature is another's.
    pub fn verify(&self, message: &[u8], signature: &[u8; 64]) -> Result<()> {
        ed25519_verify(&self.public, message, signature)
    }
}

/// `ED25519_verify`
///
/// # Errors
/// The signature is another's.
pub fn ed25519_verify(public: &[u8; 32], message: &[u8], signature: &[u8; 64]) -> Result<()> {
    let (signature, public) = (signature.as_ptr(), public.as_ptr());
    // SAFETY: a readable message with its length, 64 and 32 readable bytes.
    check(unsafe { sys::ED25519_verify(message.as_ptr(), message.len(), signature, public) })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_each_key_signs_it_verifies() {
        let rsa = Rsa::generate(2048).unwrap();
        let mut out = [0; 256];
        assert_eq!(rsa.sign(b"message", &mut out), Ok(256));
        assert_eq!(rsa.verify(b"message", &out), Ok(()));
        assert_eq!(rsa.verify(b"massage", &out), Err(Failed));

        let ec = Ec::generate().unwrap();
        let mut out = [0; EC_SIGNATURE];
        let used = ec.sign(&[1; 32], &mut out).unwrap();
        assert_eq!(ec.verify(&[1; 32], &out[..used]), Ok(()));
        assert_eq!(ec.verify(&[2; 32], &out[..used]), Err(Failed));

        let ed = Ed25519::generate();
        let mut out = [0; 64];
        ed.sign(b"message", &mut out).unwrap();
        assert_eq!(ed.verify(b"message", &out), Ok(()));
    }

    #[test]
    fn what_is_sealed_opens_and_counter_mode_is_its_own_inverse() {
        let gcm = Gcm::new(&[3; 32]).unwrap();
        let (mut sealed, mut opened) = ([0; 36], [0; 36]);
        assert_eq!(gcm.seal(&[4; 12], &[5; 20], &mut sealed), Ok(36));
        assert_eq!(gcm.open(&[4; 12], &sealed, &mut opened), Ok(20));
        assert_eq!(opened[..20], [5; 20]);

        let ctr = Ctr::new(&[3; 32]).unwrap();
        let (mut once, mut twice) = ([0; 20], [0; 20]);
        ctr.apply(&[6; 16], &[5; 20], &mut once);
        ctr.apply(&[6; 16], &once, &mut twice);
        assert_eq!(twice, [5; 20]);
    }
}

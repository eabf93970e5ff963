// SPDX-License-Identifier: Apache-2.0
//! RSA keys and the operations on them.
//!
//! A key is parsed and checked once; the library then keeps its Montgomery constants and a pool of
//! blinding values inside it, behind its own lock. Every private operation is blinded, and its
//! result is raised to the public exponent and compared before it is released (AWS-LC,
//! `rsa_default_private_transform`: with CRT or without, as long as the public exponent is known,
//! and no key is accepted here without), so a computation fault does not leak a factor.

mod encoding;
mod generate;
mod oaep;
mod recover;

pub use encoding::{MAX_INFO, PKCS1_OVERHEAD, digest_info, digest_info_length, encode_pkcs1};
pub use oaep::Oaep;
pub use recover::{RsaCrtValues, rsa_crt_values};

use crate::bn::{Bn, View};
use crate::digest::Hash;
use crate::raw::not_null;
use crate::{Result, check};
use aws_lc_sys as sys;
use metaslot_memory::wipe_stack;
use std::ffi::c_int;
use std::fmt;
use std::ptr::NonNull;

/// The eight numbers of a private key, big-endian and unsigned.
#[derive(Clone, Copy)]
pub struct RsaNumbers<'a> {
    /// n
    pub modulus: &'a [u8],
    /// e
    pub public_exponent: &'a [u8],
    /// d
    pub private_exponent: &'a [u8],
    /// p
    pub prime_1: &'a [u8],
    /// q
    pub prime_2: &'a [u8],
    /// d mod p−1
    pub exponent_1: &'a [u8],
    /// d mod q−1
    pub exponent_2: &'a [u8],
    /// q⁻¹ mod p
    pub coefficient: &'a [u8],
}

impl fmt::Debug for RsaNumbers<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "RsaNumbers({} bytes)", self.modulus.len())
    }
}

/// Which number of a key, for [`Rsa::number_length`] and [`Rsa::write_number`].
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum RsaNumber {
    /// n
    Modulus,
    /// e
    PublicExponent,
    /// d
    PrivateExponent,
    /// p
    Prime1,
    /// q
    Prime2,
    /// d mod p−1
    Exponent1,
    /// d mod q−1
    Exponent2,
    /// q⁻¹ mod p
    Coefficient,
}

/// How a block is formatted by the library.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum RsaPadding {
    /// The block is the caller's own, as long as the modulus.
    None,
    /// PKCS #1 v1.5: type 1 for signatures, type 2 for encryption.
    Pkcs1,
}

impl RsaPadding {
    const fn number(self) -> c_int {
        match self {
            Self::None => sys::RSA_NO_PADDING,
            Self::Pkcs1 => sys::RSA_PKCS1_PADDING,
        }
    }
}

/// A public or private key, ready for use.
pub struct Rsa(NonNull<sys::RSA>);

// SAFETY: the library documents that an RSA object may be used by several threads as long as none
// changes it; its caches have a lock of their own. Nothing here changes a key once it is made.
unsafe impl Send for Rsa {}
// SAFETY: as for `Send`.
unsafe impl Sync for Rsa {}

impl Rsa {
    /// A public key; modulus up to 16,384 bits, exponent odd and up to 33 bits.
    ///
    /// # Errors
    /// When the library refuses the numbers.
    pub fn public(modulus: &[u8], public_exponent: &[u8]) -> Result<Self> {
        let (n, e) = (Bn::from_bytes(modulus)?, Bn::from_bytes(public_exponent)?);
        // SAFETY: both are alive; the library copies them.
        not_null(unsafe { sys::RSA_new_public_key(n.as_ptr(), e.as_ptr()) }).map(Self)
    }

    /// A private key; that the eight numbers belong together is checked.
    ///
    /// # Errors
    /// When they do not.
    pub fn private(numbers: &RsaNumbers<'_>) -> Result<Self> {
        let n = Bn::from_bytes(numbers.modulus)?;
        let e = Bn::from_bytes(numbers.public_exponent)?;
        let d = Bn::from_bytes(numbers.private_exponent)?;
        let p = Bn::from_bytes(numbers.prime_1)?;
        let q = Bn::from_bytes(numbers.prime_2)?;
        let dp = Bn::from_bytes(numbers.exponent_1)?;
        let dq = Bn::from_bytes(numbers.exponent_2)?;
        let qinv = Bn::from_bytes(numbers.coefficient)?;
        // SAFETY: all eight are alive; the library copies them.
        let raw = unsafe {
            sys::RSA_new_private_key(
                n.as_ptr(),
                e.as_ptr(),
                d.as_ptr(),
                p.as_ptr(),
                q.as_ptr(),
                dp.as_ptr(),
                dq.as_ptr(),
                qinv.as_ptr(),
            )
        };
        wipe_stack();
        not_null(raw).map(Self)
    }

    /// Length of the modulus, and of every block, in bytes.
    #[must_use]
    pub fn size(&self) -> usize {
        // SAFETY: the key is alive.
        unsafe { sys::RSA_size(self.0.as_ptr()) as usize }
    }

    /// Length of the modulus, in bits.
    #[must_use]
    pub fn bits(&self) -> usize {
        // SAFETY: the key is alive.
        unsafe { sys::RSA_bits(self.0.as_ptr()) as usize }
    }

    fn number(&self, number: RsaNumber) -> Result<View<'_>> {
        let read = match number {
            RsaNumber::Modulus => sys::RSA_get0_n,
            RsaNumber::PublicExponent => sys::RSA_get0_e,
            RsaNumber::PrivateExponent => sys::RSA_get0_d,
            RsaNumber::Prime1 => sys::RSA_get0_p,
            RsaNumber::Prime2 => sys::RSA_get0_q,
            RsaNumber::Exponent1 => sys::RSA_get0_dmp1,
            RsaNumber::Exponent2 => sys::RSA_get0_dmq1,
            RsaNumber::Coefficient => sys::RSA_get0_iqmp,
        };
        // SAFETY: the key is alive.
        let raw = unsafe { read(self.0.as_ptr()) };
        // SAFETY: the key owns the number, and a key does not change.
        unsafe { View::new(raw) }.ok_or(crate::Failed)
    }

    /// Length of a number without leading zeros, in bytes.
    ///
    /// # Errors
    /// When the key has no such number.
    pub fn number_length(&self, number: RsaNumber) -> Result<usize> {
        self.number(number).map(View::length)
    }

    /// Writes a number, big-endian, with leading zeros.
    ///
    /// # Errors
    /// When the key has no such number or `out` is too short for it.
    pub fn write_number(&self, number: RsaNumber, out: &mut [u8]) -> Result<()> {
        self.number(number)?.write(out)
    }

    /// The private operation on a block formatted as `padding` says (type 1); `out` is
    /// [`Self::size`] long.
    ///
    /// # Errors
    /// For a block that does not fit (or is 0, 1 or n−1, which have no secret power).
    pub fn sign_raw(&self, padding: RsaPadding, block: &[u8], out: &mut [u8]) -> Result<()> {
        let mut written = 0;
        // SAFETY: the ranges are slices'; the key is not changed but for its caches.
        let done = check(unsafe {
            sys::RSA_sign_raw(
                self.0.as_ptr(),
                &raw mut written,
                out.as_mut_ptr(),
                out.len(),
                block.as_ptr(),
                block.len(),
                padding.number(),
            )
        });
        wipe_stack();
        done
    }

    /// The public operation, and the padding (type 1) taken off; `out` is [`Self::size`] long.
    /// Returns the length of the message.
    ///
    /// # Errors
    /// For a block of another length than the modulus, not below it, or with bad padding.
    pub fn verify_raw(&self, padding: RsaPadding, block: &[u8], out: &mut [u8]) -> Result<usize> {
        let mut written = 0;
        // SAFETY: the ranges are slices'; the key is not changed but for its caches.
        check(unsafe {
            sys::RSA_verify_raw(
                self.0.as_ptr(),
                &raw mut written,
                out.as_mut_ptr(),
                out.len(),
                block.as_ptr(),
                block.len(),
                padding.number(),
            )
        })?;
        Ok(written)
    }

    /// The public operation on a message padded as `padding` says (type 2); `out` is
    /// [`Self::size`] long.
    ///
    /// # Errors
    /// For a message that does not fit.
    pub fn encrypt(&self, padding: RsaPadding, message: &[u8], out: &mut [u8]) -> Result<()> {
        let mut written = 0;
        // SAFETY: the ranges are slices'; the key is not changed but for its caches.
        check(unsafe {
            sys::RSA_encrypt(
                self.0.as_ptr(),
                &raw mut written,
                out.as_mut_ptr(),
                out.len(),
                message.as_ptr(),
                message.len(),
                padding.number(),
            )
        })
    }

    /// The private operation alone: unpadding is the caller's, in constant time. Both are
    /// [`Self::size`] long.
    ///
    /// # Errors
    /// For a ciphertext of another length, not below the modulus, or that is 0, 1 or n−1.
    pub fn decrypt_raw(&self, ciphertext: &[u8], out: &mut [u8]) -> Result<()> {
        let mut written = 0;
        // SAFETY: the ranges are slices'; the key is not changed but for its caches.
        let done = check(unsafe {
            sys::RSA_decrypt(
                self.0.as_ptr(),
                &raw mut written,
                out.as_mut_ptr(),
                out.len(),
                ciphertext.as_ptr(),
                ciphertext.len(),
                sys::RSA_NO_PADDING,
            )
        });
        wipe_stack();
        done
    }

    /// RSASSA-PSS over a digest; `out` is [`Self::size`] long.
    ///
    /// # Errors
    /// When the salt does not fit or the digest has another length than `hash`.
    pub fn sign_pss(&self, pss: Pss, digest: &[u8], out: &mut [u8]) -> Result<()> {
        let mut written = 0;
        // SAFETY: the ranges are slices'; the digests are static; the key is not changed but for
        // its caches.
        let done = check(unsafe {
            sys::RSA_sign_pss_mgf1(
                self.0.as_ptr(),
                &raw mut written,
                out.as_mut_ptr(),
                out.len(),
                digest.as_ptr(),
                digest.len(),
                pss.hash.md(),
                pss.mgf.md(),
                pss.salt_length(),
            )
        });
        wipe_stack();
        done
    }

    /// Checks an RSASSA-PSS signature over a digest; the salt has exactly the length given.
    ///
    /// # Errors
    /// When the signature is not good.
    pub fn verify_pss(&self, pss: Pss, digest: &[u8], signature: &[u8]) -> Result<()> {
        // SAFETY: the ranges are slices'; the digests are static; the key is not changed but for
        // its caches.
        check(unsafe {
            sys::RSA_verify_pss_mgf1(
                self.0.as_ptr(),
                digest.as_ptr(),
                digest.len(),
                pss.hash.md(),
                pss.mgf.md(),
                pss.salt_length(),
                signature.as_ptr(),
                signature.len(),
            )
        })
    }

    pub(crate) const fn as_ptr(&self) -> *mut sys::RSA {
        self.0.as_ptr()
    }
}

impl Drop for Rsa {
    fn drop(&mut self) {
        // SAFETY: we hold one reference and give it up.
        unsafe { sys::RSA_free(self.0.as_ptr()) }
    }
}

impl fmt::Debug for Rsa {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Rsa({} bits)", self.bits())
    }
}

/// Parameters of RSASSA-PSS.
#[derive(Clone, Copy, Debug)]
pub struct Pss {
    /// Of the message.
    pub hash: Hash,
    /// Of the mask generation function.
    pub mgf: Hash,
    /// In bytes.
    pub salt_length: usize,
}

impl Pss {
    /// Negative numbers have meanings of their own in the library: none is ever passed.
    fn salt_length(self) -> c_int {
        c_int::try_from(self.salt_length).unwrap_or(c_int::MAX)
    }
}

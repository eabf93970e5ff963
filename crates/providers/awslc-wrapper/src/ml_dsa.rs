// SPDX-License-Identifier: Apache-2.0
//! ML-DSA (FIPS 204). Everything is signed and verified by its representative µ, which is a digest: of the message with its
//! context, or of a digest of it. So no message is kept, and each form is the same to the library.

use crate::pkey::{Bytes, Context, Pkey};
use crate::seeded::SeededKey;
use crate::shake::{Function, Shake};
use crate::{Failed, Result, check};
use aws_lc_sys as sys;
use metaslot_memory::Secret;
use std::ffi::c_int;
use std::ptr;

/// The parameter sets (FIPS 204 §4).
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Set {
    /// ML-DSA-44
    Ml44,
    /// ML-DSA-65
    Ml65,
    /// ML-DSA-87
    Ml87,
}

/// Length of a seed, ξ, in bytes.
pub const SEED_LENGTH: usize = 32;
/// Length of µ, in bytes.
pub const MU_LENGTH: usize = 64;
/// The longest context, in bytes.
pub const MAX_CONTEXT: usize = 255;

impl Set {
    /// All of them.
    pub const ALL: [Self; 3] = [Self::Ml44, Self::Ml65, Self::Ml87];

    /// Length of a public key, in bytes (FIPS 204, table 2).
    #[must_use]
    pub const fn public_length(self) -> usize {
        match self {
            Self::Ml44 => 1312,
            Self::Ml65 => 1952,
            Self::Ml87 => 2592,
        }
    }

    /// Length of an expanded private key, in bytes.
    #[must_use]
    pub const fn private_length(self) -> usize {
        match self {
            Self::Ml44 => 2560,
            Self::Ml65 => 4032,
            Self::Ml87 => 4896,
        }
    }

    /// Length of a signature, in bytes.
    #[must_use]
    pub const fn signature_length(self) -> usize {
        match self {
            Self::Ml44 => 2420,
            Self::Ml65 => 3309,
            Self::Ml87 => 4627,
        }
    }

    fn sign_with(self) -> SignWith {
        match self {
            Self::Ml44 => sign_44_with,
            Self::Ml65 => sign_65_with,
            Self::Ml87 => sign_87_with,
        }
    }

    const fn nid(self) -> i32 {
        match self {
            Self::Ml44 => sys::NID_MLDSA44,
            Self::Ml65 => sys::NID_MLDSA65,
            Self::Ml87 => sys::NID_MLDSA87,
        }
    }
}

/// Length of what a signature takes of randomness, in bytes.
const RANDOM_LENGTH: usize = 32;

/// Signs µ with given random bytes: private key, signature and its length, µ, prefix, random bytes.
type SignWith = unsafe extern "C" fn(In, Out, Length, In, usize, In, usize, In) -> c_int;

type In = *const u8;
type Out = *mut u8;
type Length = *mut usize;

// From AWS-LC's `crypto/fipsmodule/ml_dsa/ml_dsa.h`, which exports them; no header that is installed has them, so `aws-lc-sys` does
// not, either. Their names end with its version: another one does not link, whatever it changed.
unsafe extern "C" {
    #[link_name = "aws_lc_0_47_0_ml_dsa_extmu_44_sign_internal"]
    fn sign_44_with(_: In, _: Out, _: Length, _: In, _: usize, _: In, _: usize, _: In) -> c_int;
    #[link_name = "aws_lc_0_47_0_ml_dsa_extmu_65_sign_internal"]
    fn sign_65_with(_: In, _: Out, _: Length, _: In, _: usize, _: In, _: usize, _: In) -> c_int;
    #[link_name = "aws_lc_0_47_0_ml_dsa_extmu_87_sign_internal"]
    fn sign_87_with(_: In, _: Out, _: Length, _: In, _: usize, _: In, _: usize, _: In) -> c_int;
}

/// A public or private key, ready for use.
#[derive(Debug)]
pub struct MlDsaKey {
    key: Pkey,
    set: Set,
}

impl MlDsaKey {
    /// The private key of a seed of [`SEED_LENGTH`] bytes, or of its expanded form.
    ///
    /// # Errors
    /// For another length, and for an expanded form whose parts do not belong together.
    pub fn private(set: Set, bytes: &[u8]) -> Result<Self> {
        Ok(Self { key: Pkey::new(Bytes::PrivateMlDsa, set.nid(), bytes)?, set })
    }

    /// A public key.
    ///
    /// # Errors
    /// For another length than [`Set::public_length`].
    pub fn public(set: Set, bytes: &[u8]) -> Result<Self> {
        if bytes.len() != set.public_length() {
            return Err(Failed);
        }
        Ok(Self { key: Pkey::new(Bytes::PublicMlDsa, set.nid(), bytes)?, set })
    }

    /// Its parameter set.
    #[must_use]
    pub const fn set(&self) -> Set {
        self.set
    }

    /// Signs µ, hedged (FIPS 204 §3.4): two signatures of one message differ.
    ///
    /// # Errors
    /// For a public key, and where `out` is not [`Set::signature_length`] bytes long.
    pub fn sign(&self, mu: &[u8; MU_LENGTH], out: &mut [u8]) -> Result<()> {
        let mut length = out.len();
        if length != self.set.signature_length() {
            return Err(Failed);
        }
        let context = Context::new(&self.key)?;
        // SAFETY: the context is live and its key outlives it.
        check(unsafe { sys::EVP_PKEY_sign_init(context.as_ptr()) })?;
        // SAFETY: as above; `out` is as long as is said, µ has 64 bytes.
        check(unsafe {
            let (out, mu) = (out.as_mut_ptr(), mu.as_ptr());
            sys::EVP_PKEY_sign(context.as_ptr(), out, &raw mut length, mu, MU_LENGTH)
        })
    }

    /// Signs µ with zeros in place of random bytes (FIPS 204 §3.4): two signatures of one message are equal.
    ///
    /// # Errors
    /// As [`Self::sign`].
    pub fn sign_deterministically(&self, mu: &[u8; MU_LENGTH], out: &mut [u8]) -> Result<()> {
        if out.len() != self.set.signature_length() {
            return Err(Failed);
        }
        let (private, mut length) = (self.expanded()?, out.len());
        let (key, out, mu) = (private.expose().as_ptr(), out.as_mut_ptr(), mu.as_ptr());
        let (none, zeros) = (ptr::null(), [0; RANDOM_LENGTH]);
        let sign = self.set.sign_with();
        // SAFETY: the key is of this set and was checked when it was made, `out` has a signature's length and µ 64 bytes;
        // there are as many random bytes as it reads, and no prefix goes with a µ.
        check(unsafe { sign(key, out, &raw mut length, mu, MU_LENGTH, none, 0, zeros.as_ptr()) })
    }

    /// Verifies a signature of µ.
    ///
    /// # Errors
    /// When it is none.
    pub fn verify(&self, mu: &[u8; MU_LENGTH], signature: &[u8]) -> Result<()> {
        let context = Context::new(&self.key)?;
        // SAFETY: as in `sign`.
        check(unsafe { sys::EVP_PKEY_verify_init(context.as_ptr()) })?;
        // SAFETY: as in `sign`; the signature is a slice.
        check(unsafe {
            let (bytes, mu) = (signature.as_ptr(), mu.as_ptr());
            sys::EVP_PKEY_verify(context.as_ptr(), bytes, signature.len(), mu, MU_LENGTH)
        })
    }
}

impl SeededKey for MlDsaKey {
    type Set = Set;
    const SEED_LENGTH: usize = SEED_LENGTH;

    fn private_length(set: Set) -> usize {
        set.private_length()
    }

    fn of_seed(set: Set, seed: &[u8]) -> Result<Self> {
        Self::private(set, seed)
    }

    fn of_expanded(set: Set, bytes: &[u8]) -> Result<Self> {
        Self::private(set, bytes)
    }

    fn of_public(set: Set, bytes: &[u8]) -> Result<Self> {
        Self::public(set, bytes)
    }

    fn expanded(&self) -> Result<Secret> {
        self.key.private_bytes(self.set.private_length())
    }

    fn public_bytes(&self) -> Result<Vec<u8>> {
        self.key.public_bytes(self.set.public_length())
    }
}

/// The hash of a public key, tr.
///
/// # Errors
/// When the library fails.
pub fn key_hash(public: &[u8]) -> Result<[u8; MU_LENGTH]> {
    let (mut stream, mut hash) = (Shake::new(Function::Shake256)?, [0; MU_LENGTH]);
    stream.update(public)?;
    stream.finish(&mut hash)?;
    Ok(hash)
}

/// µ in the making (FIPS 204, algorithms 2, 4 and 7): of the public key's hash, the form, the context, and what follows by
/// [`Self::update`].
#[derive(Debug)]
pub struct Mu(Shake);

impl Mu {
    /// `prehashed`: what follows is the identifier of a hash function and its digest, in place of a message.
    ///
    /// # Errors
    /// For a context above [`MAX_CONTEXT`] bytes.
    pub fn new(key_hash: &[u8; MU_LENGTH], prehashed: bool, context: &[u8]) -> Result<Self> {
        let length = u8::try_from(context.len()).map_err(|_| Failed)?;
        let mut mu = Shake::new(Function::Shake256)?;
        mu.update(key_hash)?;
        mu.update(&[u8::from(prehashed), length])?;
        mu.update(context)?;
        Ok(Self(mu))
    }

    /// More of the message.
    ///
    /// # Errors
    /// When the library fails.
    pub fn update(&mut self, data: &[u8]) -> Result<()> {
        self.0.update(data)
    }

    /// What is signed.
    ///
    /// # Errors
    /// When the library fails.
    pub fn finish(self) -> Result<[u8; MU_LENGTH]> {
        let mut mu = [0; MU_LENGTH];
        self.0.finish(&mut mu)?;
        Ok(mu)
    }
}

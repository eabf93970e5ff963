// SPDX-License-Identifier: Apache-2.0
//! ML-KEM (FIPS 203).

use crate::pkey::{Bytes, Context, Pkey};
use crate::seeded::SeededKey;
use crate::{Failed, Result, check};
use aws_lc_sys as sys;
use metaslot_memory::Secret;
use std::ptr;

/// The parameter sets (FIPS 203 §8).
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Set {
    /// ML-KEM-512
    Ml512,
    /// ML-KEM-768
    Ml768,
    /// ML-KEM-1024
    Ml1024,
}

/// Length of a seed, d and z, in bytes.
pub const SEED_LENGTH: usize = 64;
/// Length of the shared secret, in bytes.
pub const SECRET_LENGTH: usize = 32;

impl Set {
    /// The dimension k.
    #[must_use]
    pub const fn rank(self) -> usize {
        match self {
            Self::Ml512 => 2,
            Self::Ml768 => 3,
            Self::Ml1024 => 4,
        }
    }

    /// Length of an encapsulation key, in bytes (FIPS 203, table 3).
    #[must_use]
    pub const fn public_length(self) -> usize {
        384 * self.rank() + 32
    }

    /// Length of a decapsulation key in its expanded form, in bytes.
    #[must_use]
    pub const fn private_length(self) -> usize {
        768 * self.rank() + 96
    }

    /// Length of a ciphertext, in bytes.
    #[must_use]
    pub const fn ciphertext_length(self) -> usize {
        match self {
            Self::Ml512 => 768,
            Self::Ml768 => 1088,
            Self::Ml1024 => 1568,
        }
    }

    const fn nid(self) -> i32 {
        match self {
            Self::Ml512 => sys::NID_MLKEM512,
            Self::Ml768 => sys::NID_MLKEM768,
            Self::Ml1024 => sys::NID_MLKEM1024,
        }
    }
}

/// An encapsulation or decapsulation key, ready for use.
#[derive(Debug)]
pub struct MlKemKey {
    key: Pkey,
    set: Set,
}

impl MlKemKey {
    /// A decapsulation key in its expanded form, as it is: [`Self::check`] looks into it.
    ///
    /// # Errors
    /// For another length than [`Set::private_length`].
    pub fn private(set: Set, bytes: &[u8]) -> Result<Self> {
        if bytes.len() != set.private_length() {
            return Err(Failed);
        }
        let public = &bytes[384 * set.rank()..][..set.public_length()];
        // SAFETY: both ranges are slices', and the library copies them.
        let raw = unsafe {
            sys::EVP_PKEY_kem_new_raw_key(
                set.nid(),
                public.as_ptr(),
                public.len(),
                bytes.as_ptr(),
                bytes.len(),
            )
        };
        // SAFETY: the library has just made it for us.
        let key = unsafe { Pkey::own(raw) }?;
        Ok(Self { key, set })
    }

    /// An encapsulation key, as it is: [`Self::check`] looks into it.
    ///
    /// # Errors
    /// For another length than [`Set::public_length`].
    pub fn public(set: Set, bytes: &[u8]) -> Result<Self> {
        Ok(Self { key: Pkey::new(Bytes::PublicMlKem, set.nid(), bytes)?, set })
    }

    /// Checks a key from outside (FIPS 203 §7.2, §7.3): its coefficients are reduced, the hash in a decapsulation key is that of
    /// the encapsulation key beside it, and one opens what the other encapsulates.
    ///
    /// # Errors
    /// When it is not so.
    pub fn check(&self) -> Result<()> {
        let context = Context::new(&self.key)?;
        // SAFETY: the context is live. Of an encapsulation key the half that is there is checked.
        check(unsafe { sys::EVP_PKEY_public_check(context.as_ptr()) })
    }

    /// Its parameter set.
    #[must_use]
    pub const fn set(&self) -> Set {
        self.set
    }

    /// A new shared secret; its ciphertext goes to `out`, which is [`Set::ciphertext_length`] bytes long (FIPS 203, algorithm 20).
    ///
    /// # Errors
    /// For another length of `out`.
    pub fn encapsulate(&self, out: &mut [u8]) -> Result<Secret> {
        let (mut length, mut shared) = (out.len(), SECRET_LENGTH);
        if length != self.set.ciphertext_length() {
            return Err(Failed);
        }
        let mut secret = Secret::zeroed(SECRET_LENGTH);
        let context = Context::new(&self.key)?;
        // SAFETY: the context is live, both places are as long as is said.
        check(unsafe {
            sys::EVP_PKEY_encapsulate(
                context.as_ptr(),
                out.as_mut_ptr(),
                &raw mut length,
                secret.expose_mut().as_mut_ptr(),
                &raw mut shared,
            )
        })?;
        Ok(secret)
    }

    /// The shared secret of a ciphertext. One that was changed has another secret, which only the key knows (FIPS 203,
    /// algorithm 21).
    ///
    /// # Errors
    /// For another length than [`Set::ciphertext_length`], and an encapsulation key.
    pub fn decapsulate(&self, ciphertext: &[u8]) -> Result<Secret> {
        let mut shared = SECRET_LENGTH;
        let mut secret = Secret::zeroed(SECRET_LENGTH);
        let context = Context::new(&self.key)?;
        // SAFETY: the context is live, the secret's place as long as is said, the ciphertext a slice.
        check(unsafe {
            sys::EVP_PKEY_decapsulate(
                context.as_ptr(),
                secret.expose_mut().as_mut_ptr(),
                &raw mut shared,
                ciphertext.as_ptr(),
                ciphertext.len(),
            )
        })?;
        Ok(secret)
    }
}

impl SeededKey for MlKemKey {
    type Set = Set;
    const SEED_LENGTH: usize = SEED_LENGTH;

    fn private_length(set: Set) -> usize {
        set.private_length()
    }

    /// Of d and z (FIPS 203, algorithm 16).
    fn of_seed(set: Set, seed: &[u8]) -> Result<Self> {
        let mut length = seed.len();
        if length != SEED_LENGTH {
            return Err(Failed);
        }
        let context = Context::for_kind(sys::EVP_PKEY_KEM)?;
        // SAFETY: the context is live.
        check(unsafe { sys::EVP_PKEY_CTX_kem_set_params(context.as_ptr(), set.nid()) })?;
        // SAFETY: the context is live.
        check(unsafe { sys::EVP_PKEY_keygen_init(context.as_ptr()) })?;
        let mut raw = ptr::null_mut();
        // SAFETY: the context is live, the seed as long as the library takes for each set.
        check(unsafe {
            let seed = seed.as_ptr();
            sys::EVP_PKEY_keygen_deterministic(
                context.as_ptr(),
                &raw mut raw,
                seed,
                &raw mut length,
            )
        })?;
        // SAFETY: the library has just made it for us.
        Ok(Self { key: unsafe { Pkey::own(raw) }?, set })
    }

    fn of_expanded(set: Set, bytes: &[u8]) -> Result<Self> {
        let key = Self::private(set, bytes)?;
        key.check().map(|()| key)
    }

    fn of_public(set: Set, bytes: &[u8]) -> Result<Self> {
        let key = Self::public(set, bytes)?;
        key.check().map(|()| key)
    }

    fn expanded(&self) -> Result<Secret> {
        self.key.private_bytes(self.set.private_length())
    }

    fn public_bytes(&self) -> Result<Vec<u8>> {
        self.key.public_bytes(self.set.public_length())
    }
}

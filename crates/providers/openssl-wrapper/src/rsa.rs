// SPDX-License-Identifier: Apache-2.0
//! RSA: signatures and encryption by PKCS #1.

use crate::hash::Hash;
use crate::params::{Number, Params};
use crate::pkey::Pkey;
use crate::start::methods;
use crate::{Failed, Result};
use std::ffi::c_int;

/// A key: shared by any number of threads.
#[derive(Debug)]
pub struct Rsa(Pkey);

/// The numbers of a private key, big-endian.
#[derive(Debug)]
#[expect(missing_docs, reason = "names of numbers")]
pub struct RsaNumbers<'a> {
    pub modulus: &'a [u8],
    pub public_exponent: &'a [u8],
    pub private_exponent: &'a [u8],
    pub prime_1: &'a [u8],
    pub prime_2: &'a [u8],
    pub exponent_1: &'a [u8],
    pub exponent_2: &'a [u8],
    pub coefficient: &'a [u8],
}

/// How a digest becomes a block that is signed.
#[derive(Clone, Copy, Debug)]
pub enum Scheme {
    /// PKCS #1 v1.5 with a `DigestInfo`, or with what the caller brings.
    Pkcs1(Option<Hash>),
    /// PSS: the function of the digest, that of the mask, the length of the salt.
    Pss(Hash, Hash, usize),
}

/// How a message becomes a block that is encrypted.
#[derive(Clone, Copy, Debug)]
pub enum Padding<'a> {
    /// PKCS #1 v1.5; a wrong one decrypts to another message.
    Pkcs1,
    /// OAEP: the function of the label, that of the mask, the label.
    Oaep(Hash, Hash, &'a [u8]),
}

impl Rsa {
    /// A public key of big-endian numbers.
    ///
    /// # Errors
    /// When they are no key.
    pub fn public(modulus: &[u8], exponent: &[u8]) -> Result<Self> {
        methods()?;
        let [n, e] = [modulus, exponent].map(Number::new);
        let params = Params::new().number(c"n", &n).number(c"e", &e);
        Pkey::new(c"RSA", false, params).map(Self)
    }

    /// A private key.
    ///
    /// # Errors
    /// When the numbers are none.
    pub fn private(numbers: &RsaNumbers<'_>) -> Result<Self> {
        methods()?;
        let [n, e, d] =
            [numbers.modulus, numbers.public_exponent, numbers.private_exponent].map(Number::new);
        let [p, q] = [numbers.prime_1, numbers.prime_2].map(Number::new);
        let [dp, dq, qi] =
            [numbers.exponent_1, numbers.exponent_2, numbers.coefficient].map(Number::new);
        let params = Params::new()
            .number(c"n", &n)
            .number(c"e", &e)
            .number(c"d", &d)
            .number(c"rsa-factor1", &p)
            .number(c"rsa-factor2", &q)
            .number(c"rsa-exponent1", &dp)
            .number(c"rsa-exponent2", &dq)
            .number(c"rsa-coefficient1", &qi);
        Pkey::new(c"RSA", true, params).map(Self)
    }

    /// Length of the modulus, in bits.
    #[must_use]
    pub fn bits(&self) -> usize {
        self.0.bits()
    }

    /// Length of the modulus, in bytes.
    #[must_use]
    pub fn size(&self) -> usize {
        self.0.size()
    }

    /// Signs a digest, or what [`Scheme::Pkcs1`] without a function takes; `out` is [`Self::size`] long.
    ///
    /// # Errors
    /// When what is signed has not the right length.
    pub fn sign(&self, scheme: Scheme, digest: &[u8], out: &mut [u8]) -> Result<()> {
        let salt = scheme.salt()?;
        let length = self.0.sign(scheme.params(&salt), digest, out)?;
        if length == out.len() { Ok(()) } else { Err(Failed) }
    }

    /// Checks a signature.
    ///
    /// # Errors
    /// When it is not good.
    pub fn verify(&self, scheme: Scheme, digest: &[u8], signature: &[u8]) -> Result<()> {
        let salt = scheme.salt()?;
        self.0.verify(scheme.params(&salt), digest, signature)
    }

    /// Encrypts; `out` is [`Self::size`] long.
    ///
    /// # Errors
    /// When the message is too long.
    pub fn encrypt(&self, padding: Padding<'_>, message: &[u8], out: &mut [u8]) -> Result<()> {
        let length = self.0.encrypt(padding.params(), message, out)?;
        if length == out.len() { Ok(()) } else { Err(Failed) }
    }

    /// Decrypts; `out` is [`Self::size`] long. Returns the length of the message.
    ///
    /// # Errors
    /// When the ciphertext is none.
    pub fn decrypt(
        &self,
        padding: Padding<'_>,
        ciphertext: &[u8],
        out: &mut [u8],
    ) -> Result<usize> {
        self.0.decrypt(padding.params(), ciphertext, out)
    }
}

impl Scheme {
    fn salt(self) -> Result<c_int> {
        match self {
            Self::Pkcs1(_) => Ok(0),
            Self::Pss(_, _, length) => c_int::try_from(length).map_err(|_| Failed),
        }
    }

    fn params(self, salt: &c_int) -> Params<'_> {
        match self {
            Self::Pkcs1(None) => Params::new().text(c"pad-mode", c"pkcs1"),
            Self::Pkcs1(Some(hash)) => {
                Params::new().text(c"digest", hash.name()).text(c"pad-mode", c"pkcs1")
            }
            Self::Pss(hash, mgf, _) => Params::new()
                .text(c"digest", hash.name())
                .text(c"pad-mode", c"pss")
                .text(c"mgf1-digest", mgf.name())
                .int(c"saltlen", salt),
        }
    }
}

impl<'a> Padding<'a> {
    fn params(self) -> Params<'a> {
        match self {
            Self::Pkcs1 => Params::new().text(c"pad-mode", c"pkcs1"),
            Self::Oaep(hash, mgf, label) => Params::new()
                .text(c"pad-mode", c"oaep")
                .text(c"digest", hash.name())
                .text(c"mgf1-digest", mgf.name())
                .bytes(c"oaep-label", label),
        }
    }
}

// SPDX-License-Identifier: Apache-2.0
//! The keys of machines that the kernel does not exist for: there are none.

use metaslot_awslc_wrapper::Failed;
use metaslot_awslc_wrapper::rsa::RsaNumbers;

/// A public key, which cannot be made here.
#[derive(Debug)]
pub enum PublicKey {}

impl PublicKey {
    /// Makes none.
    ///
    /// # Errors
    /// Always.
    pub const fn new(_modulus: &[u8], _public_exponent: &[u8]) -> Result<Self, Failed> {
        Err(Failed)
    }

    /// Length of the modulus, in bytes.
    #[must_use]
    pub const fn size(&self) -> usize {
        match *self {}
    }
}

/// A private key, which cannot be made here.
#[derive(Debug)]
pub enum PrivateKey {}

impl PrivateKey {
    /// Makes none.
    ///
    /// # Errors
    /// Always.
    pub const fn new(_numbers: &RsaNumbers<'_>) -> Result<Self, Failed> {
        Err(Failed)
    }

    /// The public part.
    #[must_use]
    pub const fn public(&self) -> &PublicKey {
        match *self {}
    }
}

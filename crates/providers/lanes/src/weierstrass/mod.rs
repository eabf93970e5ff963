// SPDX-License-Identifier: Apache-2.0
//! ECDSA and ECDH on the curves with a = −3 and prime order, eight requests side by side.
//!
//! Scalars' windows choose table entries by masks or by permutation within registers, never by address; each window
//! costs one addition whatever it is; the nonces' and Zs' inverses are computed together for all requests of a batch.
//! Only verification, where all is public, looks up by address. What the formulas cannot add (see
//! [`point`]) is recognised at the end and left to the library.

#[cfg(target_arch = "x86_64")]
pub(crate) mod curve;
#[cfg(target_arch = "x86_64")]
pub(crate) mod kernel;
mod key;
#[cfg(target_arch = "x86_64")]
pub(crate) mod point;
#[cfg(target_arch = "x86_64")]
pub(crate) mod table;
#[cfg(test)]
mod tests;
#[cfg(test)]
pub(crate) mod vectors;

pub(crate) use key::{PrivateKey, PublicKey};
use metaslot_awslc_wrapper::{Failed, Result};

/// A digest to sign.
#[derive(Debug)]
pub struct SignRequest<'a, const N: usize> {
    /// The signer.
    pub key: &'a PrivateKey<N>,
    /// The digest, of any length: what is beyond the order's length is cut off (SEC 1 §4.1.3).
    pub digest: &'a [u8],
    /// Where r and s go, each as long as the order.
    pub signature: &'a mut [u8],
    /// Whether that happened.
    pub result: Result<()>,
}

/// A signature to check.
#[derive(Debug)]
pub struct VerifyRequest<'a, const N: usize> {
    /// Whose signature it should be.
    pub key: &'a PublicKey<N>,
    /// The digest, of any length, cut as for signing.
    pub digest: &'a [u8],
    /// r and s, each as long as the order.
    pub signature: &'a [u8],
    /// Whether it is good.
    pub result: Result<()>,
}

/// A shared secret to compute.
#[derive(Debug)]
pub struct DeriveRequest<'a, const N: usize> {
    /// Our key.
    pub key: &'a PrivateKey<N>,
    /// The peer's point, in a form of SEC 1 §2.3.4.
    pub peer: &'a [u8],
    /// Where the x coordinate goes, as long as the field's elements.
    pub secret: &'a mut [u8],
    /// Whether that happened: not if the peer's point is none on the curve.
    pub result: Result<()>,
}

impl<'a, const N: usize> SignRequest<'a, N> {
    /// A request that waits.
    pub const fn new(key: &'a PrivateKey<N>, digest: &'a [u8], signature: &'a mut [u8]) -> Self {
        Self { key, digest, signature, result: Err(Failed) }
    }

    pub(crate) fn by_library(&mut self) {
        self.result = self.key.library().and_then(|key| key.sign(self.digest, self.signature));
    }
}

impl<'a, const N: usize> VerifyRequest<'a, N> {
    /// A request that waits.
    pub const fn new(key: &'a PublicKey<N>, digest: &'a [u8], signature: &'a [u8]) -> Self {
        Self { key, digest, signature, result: Err(Failed) }
    }

    pub(crate) fn by_library(&mut self, length: usize) {
        self.result = if self.signature.len() == 2 * length {
            self.key.library().verify(self.digest, self.signature)
        } else {
            Err(Failed)
        };
    }
}

impl<'a, const N: usize> DeriveRequest<'a, N> {
    /// A request that waits.
    pub const fn new(key: &'a PrivateKey<N>, peer: &'a [u8], secret: &'a mut [u8]) -> Self {
        Self { key, peer, secret, result: Err(Failed) }
    }

    pub(crate) fn by_library(&mut self) {
        let key = self.key.library();
        self.result = key.and_then(|key| key.diffie_hellman(self.peer, self.secret));
    }
}

// SPDX-License-Identifier: Apache-2.0
//! What callers ask for, and how the library answers it.

use super::key::{PrivateKey, PublicKey, X25519Key};
use metaslot_awslc_wrapper::curve25519::{
    self as library, ED25519_SIGNATURE_LENGTH as SIGNATURE_LENGTH, Ed25519, KEY_LENGTH,
};
use metaslot_awslc_wrapper::{Failed, Result};

/// A shared secret to compute.
#[derive(Debug)]
pub struct X25519Request<'a> {
    /// Our key.
    pub key: &'a X25519Key,
    /// The peer's u coordinate.
    pub peer: &'a [u8; KEY_LENGTH],
    /// Where the secret goes.
    pub secret: &'a mut [u8; KEY_LENGTH],
    /// Whether it is fit for use: not if it is all zero, because the peer's point has a small order (RFC 7748 §6.1).
    pub result: Result<()>,
}

impl<'a> X25519Request<'a> {
    /// A request that waits.
    pub const fn new(
        key: &'a X25519Key,
        peer: &'a [u8; KEY_LENGTH],
        secret: &'a mut [u8; KEY_LENGTH],
    ) -> Self {
        Self { key, peer, secret, result: Err(Failed) }
    }

    pub(super) fn by_library(&mut self) {
        self.result = library::x25519(self.key.private(), self.peer, self.secret);
    }
}

/// A message to sign with Ed25519 itself, that is without context or pre-hash.
#[derive(Debug)]
pub struct SignRequest<'a> {
    /// The signer.
    pub key: &'a PrivateKey,
    /// The message.
    pub message: &'a [u8],
    /// Where the signature goes.
    pub signature: &'a mut [u8; SIGNATURE_LENGTH],
    /// Whether that happened.
    pub result: Result<()>,
}

impl<'a> SignRequest<'a> {
    /// A request that waits.
    pub const fn new(
        key: &'a PrivateKey,
        message: &'a [u8],
        signature: &'a mut [u8; SIGNATURE_LENGTH],
    ) -> Self {
        Self { key, message, signature, result: Err(Failed) }
    }

    pub(super) fn by_library(&mut self) {
        self.result = self.key.library.sign(Ed25519::Plain, self.message, self.signature);
    }
}

/// A signature to check.
#[derive(Debug)]
pub struct VerifyRequest<'a> {
    /// Whose signature it should be.
    pub key: &'a PublicKey,
    /// The message.
    pub message: &'a [u8],
    /// The signature; one of another length than [`SIGNATURE_LENGTH`] is not good.
    pub signature: &'a [u8],
    /// Whether it is good.
    pub result: Result<()>,
}

impl<'a> VerifyRequest<'a> {
    /// A request that waits.
    pub const fn new(key: &'a PublicKey, message: &'a [u8], signature: &'a [u8]) -> Self {
        Self { key, message, signature, result: Err(Failed) }
    }

    pub(super) fn by_library(&mut self) {
        self.result = match self.signature.try_into() {
            Ok(signature) => {
                library::ed25519_verify(Ed25519::Plain, &self.key.bytes, self.message, signature)
            }
            Err(_) => Err(Failed),
        };
    }
}

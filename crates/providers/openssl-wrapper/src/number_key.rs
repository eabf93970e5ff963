// SPDX-License-Identifier: Apache-2.0
//! X25519 and X448 (RFC 7748), Ed25519 and Ed448 (RFC 8032).

use crate::params::Params;
use crate::pkey::Pkey;
use crate::start::methods;
use crate::{Failed, Result};

pub use crate::curve::{Curve, EdDsa, MAX_SIGNATURE};

/// A public or private key: shared by any number of threads.
#[derive(Debug)]
pub struct NumberKey(Pkey, Curve);

impl NumberKey {
    /// A public key.
    ///
    /// # Errors
    /// When it has another length than the curve's.
    pub fn public(curve: Curve, bytes: &[u8]) -> Result<Self> {
        methods()?;
        let params = Params::new().bytes(c"pub", bytes);
        Self::new(curve, bytes, Pkey::new(curve.name(), false, params))
    }

    /// A private key; the public one is computed.
    ///
    /// # Errors
    /// When it has another length than the curve's.
    pub fn private(curve: Curve, bytes: &[u8]) -> Result<Self> {
        methods()?;
        let params = Params::new().bytes(c"priv", bytes);
        Self::new(curve, bytes, Pkey::new(curve.name(), true, params))
    }

    fn new(curve: Curve, bytes: &[u8], key: Result<Pkey>) -> Result<Self> {
        if bytes.len() == curve.length() { key.map(|key| Self(key, curve)) } else { Err(Failed) }
    }

    /// Writes the public half; `out` is [`Curve::length`] long.
    ///
    /// # Errors
    /// When `out` has another length.
    pub fn write_public(&self, out: &mut [u8]) -> Result<()> {
        self.0.read_bytes(c"pub", out)
    }

    /// The shared secret; `out` is [`Curve::length`] long.
    ///
    /// # Errors
    /// When the peer's value has small order, so that the secret would be all zero (RFC 7748 §6), or is another curve's.
    pub fn agree(&self, peer: &Self, out: &mut [u8]) -> Result<()> {
        self.0.agree(Params::new(), &peer.0, out)
    }

    /// Signs a message with a context of up to 255 bytes; returns the length.
    ///
    /// # Errors
    /// For another curve's signature, a context that it does not have or that is too long, and a public key.
    pub fn sign(
        &self,
        form: EdDsa,
        context: &[u8],
        message: &[u8],
        out: &mut [u8; MAX_SIGNATURE],
    ) -> Result<usize> {
        let params = self.params(form, context)?;
        self.0.sign_message(methods()?.signature(form), params, message, out)
    }

    /// Checks a signature.
    ///
    /// # Errors
    /// When it is not good; as [`Self::sign`].
    pub fn verify(
        &self,
        form: EdDsa,
        context: &[u8],
        message: &[u8],
        signature: &[u8],
    ) -> Result<()> {
        let params = self.params(form, context)?;
        self.0.verify_message(methods()?.signature(form), params, message, signature)
    }

    fn params<'a>(&self, form: EdDsa, context: &'a [u8]) -> Result<Params<'a>> {
        let params = Params::new();
        match (form, context) {
            _ if form.curve() != self.1 => Err(Failed),
            (EdDsa::Ed25519Ctx, []) => Err(Failed),
            (_, []) => Ok(params),
            (EdDsa::Ed25519, _) => Err(Failed),
            _ => Ok(params.bytes(c"context-string", context)),
        }
    }
}

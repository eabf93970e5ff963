// SPDX-License-Identifier: Apache-2.0
//! X25519 and X448 (RFC 7748), Ed25519 and Ed448 (RFC 8032).

use crate::params::Params;
use crate::pkey::Pkey;
use crate::start::{Methods, methods};
use crate::{Failed, Result};
use std::ffi::CStr;

/// A curve, with what is done on it.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[expect(missing_docs, reason = "names of curves")]
pub enum Curve {
    X25519,
    X448,
    Ed25519,
    Ed448,
}

/// The signatures of RFC 8032, all of a whole message.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[expect(missing_docs, reason = "names of signatures")]
pub enum EdDsa {
    Ed25519,
    Ed25519Ctx,
    Ed25519Ph,
    Ed448,
    Ed448Ph,
}

/// The longest signature, in bytes.
pub const MAX_SIGNATURE: usize = 114;

impl Curve {
    /// Length of either half of a key and of a shared secret, in bytes.
    #[must_use]
    pub const fn length(self) -> usize {
        match self {
            Self::X25519 | Self::Ed25519 => 32,
            Self::X448 => 56,
            Self::Ed448 => 57,
        }
    }

    /// What OpenSSL calls it.
    const fn name(self) -> &'static CStr {
        match self {
            Self::X25519 => c"X25519",
            Self::X448 => c"X448",
            Self::Ed25519 => c"ED25519",
            Self::Ed448 => c"ED448",
        }
    }
}

impl EdDsa {
    /// All of them; each stands at its own number.
    pub(crate) const ALL: [Self; 5] =
        [Self::Ed25519, Self::Ed25519Ctx, Self::Ed25519Ph, Self::Ed448, Self::Ed448Ph];

    /// Whose keys it is made with.
    #[must_use]
    pub const fn curve(self) -> Curve {
        match self {
            Self::Ed25519 | Self::Ed25519Ctx | Self::Ed25519Ph => Curve::Ed25519,
            Self::Ed448 | Self::Ed448Ph => Curve::Ed448,
        }
    }

    /// What OpenSSL calls it.
    pub(crate) const fn name(self) -> &'static CStr {
        match self {
            Self::Ed25519 => c"ED25519",
            Self::Ed25519Ctx => c"ED25519ctx",
            Self::Ed25519Ph => c"ED25519ph",
            Self::Ed448 => c"ED448",
            Self::Ed448Ph => c"ED448ph",
        }
    }
}

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
        Self::of_bytes(curve, bytes)
    }

    /// [`Self::private`], where the library is being started.
    fn of_bytes(curve: Curve, bytes: &[u8]) -> Result<Self> {
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
        self.0.agree(&peer.0, out)
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
        self.sign_with(methods()?, form, context, message, out)
    }

    fn sign_with(
        &self,
        methods: &Methods,
        form: EdDsa,
        context: &[u8],
        message: &[u8],
        out: &mut [u8; MAX_SIGNATURE],
    ) -> Result<usize> {
        let params = self.params(form, context)?;
        self.0.sign_message(methods.signature(form), params, message, out)
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

/// Agrees and signs once on each curve: what the library fetches for that is there afterwards.
pub(crate) fn warm(methods: &Methods) -> Result<()> {
    let key = |curve: Curve| NumberKey::of_bytes(curve, &[1; 64][..curve.length()]);
    for curve in [Curve::X25519, Curve::X448] {
        let key = key(curve)?;
        key.agree(&key, &mut [0; 64][..curve.length()])?;
    }
    for form in EdDsa::ALL {
        let context: &[u8] = if form == EdDsa::Ed25519 { &[] } else { &[1] };
        let (key, mut signature) = (key(form.curve())?, [0; MAX_SIGNATURE]);
        let length = key.sign_with(methods, form, context, &[], &mut signature)?;
        let params = key.params(form, context)?;
        key.0.verify_message(methods.signature(form), params, &[], &signature[..length])?;
    }
    Ok(())
}

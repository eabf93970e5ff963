// SPDX-License-Identifier: Apache-2.0
//! Which curves there are whose keys are numbers of one length, and which signatures.

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
    pub(crate) const fn name(self) -> &'static CStr {
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

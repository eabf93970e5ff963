// SPDX-License-Identifier: Apache-2.0
//! Keys of which both halves are numbers of one length, little-endian: those on the Edwards and Montgomery forms of curves
//! (RFC 7748, RFC 8032; PKCS#11 3.2 §6.3.7 to §6.3.11), for every provider.

use crate::der::Node;
use crate::key_info::{self, EcParams, number};
use crate::{Attributes, Key, NewObject, Secrets};
use metaslot_ck::*;
use metaslot_memory::Secret;

/// A curve with such keys, and how a provider computes on it.
#[derive(Debug)]
pub struct NumberCurve {
    /// Content of the object identifier (RFC 8410 §3).
    pub oid: &'static [u8],
    /// Length of either half, in bytes.
    pub length: usize,
    /// The public half of a private one.
    pub public: fn(&[u8]) -> Result<Vec<u8>>,
    /// Fills with random bytes.
    pub random: fn(&mut [u8]) -> Result<()>,
}

/// id-X25519 (RFC 8410 §3)
pub const X25519: &[u8] = &[0x2b, 0x65, 0x6e];
/// id-X448 (RFC 8410 §3)
pub const X448: &[u8] = &[0x2b, 0x65, 0x6f];
/// id-Ed25519 (RFC 8410 §3)
pub const ED25519: &[u8] = &[0x2b, 0x65, 0x70];
/// id-Ed448 (RFC 8410 §3)
pub const ED448: &[u8] = &[0x2b, 0x65, 0x71];

/// Names that `CKA_EC_PARAMS` may have instead, that of the standard first.
const NAMES: [(&[u8], [&[u8]; 3]); 4] = [
    (X25519, [b"curve25519", b"X25519", b"x25519"]),
    (X448, [b"curve448", b"X448", b"x448"]),
    (ED25519, [b"edwards25519", b"Ed25519", b"ed25519"]),
    (ED448, [b"edwards448", b"Ed448", b"ed448"]),
];

/// The content of the object identifier that is said, or that a curve of a name said has, one of these four.
#[must_use]
pub fn oid(said: EcParams<'_>) -> Option<&[u8]> {
    match said {
        EcParams::Oid(oid) => Some(oid),
        EcParams::Name(name) => {
            NAMES.iter().find(|(_, names)| names.contains(&name)).map(|(oid, _)| *oid)
        }
    }
}

/// Whether a key has halves of this length: what tells the curves apart, whatever they are called.
#[must_use]
pub fn is_long(key: &Key, length: usize) -> bool {
    match key.secret(CKA_VALUE) {
        Ok(private) => private.len() == length,
        Err(_) => key.bytes(CKA_EC_POINT).is_ok_and(|said| number(length, said).is_some()),
    }
}

impl NumberCurve {
    /// Whether a template asks for this curve, or for none.
    #[must_use]
    pub fn serves(&self, template: &Attributes) -> bool {
        !matches!(self.check_params(template), Err(Error::CURVE_NOT_SUPPORTED))
    }

    /// Whether attributes name this curve.
    ///
    /// # Errors
    /// `CKR_CURVE_NOT_SUPPORTED` for another, `CKR_TEMPLATE_INCOMPLETE` for none.
    pub fn check_params(&self, attributes: &Attributes) -> Result<()> {
        let params = attributes.bytes(CKA_EC_PARAMS).ok_or(Error::TEMPLATE_INCOMPLETE)?;
        match oid(EcParams::parse(params)?) == Some(self.oid) {
            true => Ok(()),
            false => Err(Error::CURVE_NOT_SUPPORTED),
        }
    }

    /// RFC 8410 §4
    fn shown(&self, public: &[u8]) -> Attributes {
        key_info::shown(&[Node::Oid(self.oid)], self.oid, public)
    }

    /// Both halves of a new pair.
    ///
    /// # Errors
    /// As [`Self::check_params`], and where the library fails.
    pub fn generate(&self, template: &Attributes) -> Result<(NewObject, NewObject)> {
        self.check_params(template)?;
        let mut private = Secret::zeroed(self.length);
        (self.random)(private.expose_mut())?;
        let attributes = self.shown(&(self.public)(private.expose())?);
        let public = NewObject { attributes: attributes.clone(), secrets: Secrets::new() };
        let mut secrets = Secrets::new();
        secrets.set(CKA_VALUE, private);
        Ok((public, NewObject { attributes, secrets }))
    }

    /// Completes an imported public key.
    ///
    /// # Errors
    /// As `Provider::complete`.
    pub fn complete_public(&self, object: &mut NewObject) -> Result<()> {
        self.check_params(&object.attributes)?;
        let said = object.attributes.bytes(CKA_EC_POINT).ok_or(Error::TEMPLATE_INCOMPLETE)?;
        let public = number(self.length, said).ok_or(Error::ATTRIBUTE_VALUE_INVALID)?;
        let shown = self.shown(public);
        key_info::complete_shown(&mut object.attributes, &shown)
    }

    /// Completes an imported private key: the public one is computed.
    ///
    /// # Errors
    /// As `Provider::complete`.
    pub fn complete_private(&self, object: &mut NewObject) -> Result<()> {
        self.check_params(&object.attributes)?;
        let private = object.secrets.get(CKA_VALUE).ok_or(Error::TEMPLATE_INCOMPLETE)?;
        if private.len() != self.length {
            return Err(Error::ATTRIBUTE_VALUE_INVALID);
        }
        let public = (self.public)(private)?;
        if let Some(said) = object.attributes.bytes(CKA_EC_POINT)
            && number(self.length, said) != Some(&public)
        {
            return Err(Error::TEMPLATE_INCONSISTENT);
        }
        key_info::complete_shown(&mut object.attributes, &self.shown(&public))
    }

    /// The `PrivateKeyInfo` of a key on this curve (RFC 8410 §7).
    ///
    /// # Errors
    /// `CKR_KEY_NOT_WRAPPABLE` for any other.
    pub fn encode(&self, key: &Key) -> Result<Secret> {
        let private = key.secret(CKA_VALUE).ok().filter(|private| private.len() == self.length);
        let private = private.ok_or(Error::KEY_NOT_WRAPPABLE)?;
        Ok(key_info::private(&[Node::Oid(self.oid)], &Node::OctetString(private)))
    }
}

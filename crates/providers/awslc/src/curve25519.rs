// SPDX-License-Identifier: Apache-2.0
//! What keys on the Edwards and Montgomery forms of Curve25519 have in common: 32 bytes a side,
//! little-endian, and one curve each (PKCS#11 3.2 §6.3.7 to §6.3.11).

use metaslot_awslc_wrapper::curve25519::KEY_LENGTH;
use metaslot_ck::*;
use metaslot_memory::Secret;
use metaslot_spi::der::Node;
use metaslot_spi::key_info::{self, EcParams, number_point};
use metaslot_spi::{Attributes, Key, NewObject, Secrets};

/// One of the two forms.
pub(crate) struct Form {
    /// Content of the object identifier (RFC 8410 §3).
    pub(crate) oid: &'static [u8],
    /// Names that `CKA_EC_PARAMS` may have instead.
    pub(crate) names: &'static [&'static [u8]],
    /// The public key of a private one.
    pub(crate) public: fn(&[u8; KEY_LENGTH]) -> [u8; KEY_LENGTH],
}

impl Form {
    fn check_params(&self, attributes: &Attributes) -> Result<()> {
        let params = attributes.bytes(CKA_EC_PARAMS).ok_or(Error::TEMPLATE_INCOMPLETE)?;
        match EcParams::parse(params)? {
            EcParams::Oid(oid) if oid == self.oid => Ok(()),
            EcParams::Name(name) if self.names.contains(&name) => Ok(()),
            _ => Err(Error::CURVE_NOT_SUPPORTED),
        }
    }

    /// RFC 8410 §4
    fn shown(&self, public: &[u8; KEY_LENGTH]) -> Attributes {
        key_info::shown(&[Node::Oid(self.oid)], self.oid, public)
    }

    /// Both halves of a new pair.
    pub(crate) fn generate(&self, template: &Attributes) -> Result<(NewObject, NewObject)> {
        self.check_params(template)?;
        let mut private = Secret::zeroed(KEY_LENGTH);
        metaslot_awslc_wrapper::random::fill(private.expose_mut())
            .map_err(crate::failure::device_error)?;
        let attributes = self.shown(&(self.public)(bytes(private.expose())?));
        let public = NewObject { attributes: attributes.clone(), secrets: Secrets::new() };
        let mut secrets = Secrets::new();
        secrets.set(CKA_VALUE, private);
        Ok((public, NewObject { attributes, secrets }))
    }

    /// Completes an imported public key.
    pub(crate) fn complete_public(&self, object: &mut NewObject) -> Result<()> {
        self.check_params(&object.attributes)?;
        let said = object.attributes.bytes(CKA_EC_POINT).ok_or(Error::TEMPLATE_INCOMPLETE)?;
        let public = *number_point(said).ok_or(Error::ATTRIBUTE_VALUE_INVALID)?;
        self.complete_shown(&mut object.attributes, &public)
    }

    /// Completes an imported private key: the public one is computed.
    pub(crate) fn complete_private(&self, object: &mut NewObject) -> Result<()> {
        self.check_params(&object.attributes)?;
        let private = object.secrets.get(CKA_VALUE).ok_or(Error::TEMPLATE_INCOMPLETE)?;
        let private = private.try_into().map_err(|_| Error::ATTRIBUTE_VALUE_INVALID)?;
        let public = (self.public)(private);
        if let Some(said) = object.attributes.bytes(CKA_EC_POINT)
            && number_point(said) != Some(&public)
        {
            return Err(Error::TEMPLATE_INCONSISTENT);
        }
        self.complete_shown(&mut object.attributes, &public)
    }

    fn complete_shown(&self, attributes: &mut Attributes, public: &[u8; KEY_LENGTH]) -> Result<()> {
        key_info::complete_shown(attributes, &self.shown(public))
    }
}

/// The private bytes of a key.
pub(crate) fn private(key: &Key) -> Result<&[u8; KEY_LENGTH]> {
    bytes(key.secret(CKA_VALUE)?)
}

fn bytes(slice: &[u8]) -> Result<&[u8; KEY_LENGTH]> {
    slice.try_into().map_err(|_| Error::KEY_TYPE_INCONSISTENT)
}

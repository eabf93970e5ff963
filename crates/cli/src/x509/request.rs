// SPDX-License-Identifier: Apache-2.0
//! Requests that anybody may have written (RFC 2986), and whether they who wrote one have its key.

use super::Algorithm;
use super::build::EXTENSION_REQUEST;
use crate::encoding::der::{
    self, BIT_STRING, CONSTRUCTED, INTEGER, OBJECT_IDENTIFIER, OCTET_STRING, SEQUENCE, SET,
};
use crate::failure::Result;
use crate::key::{ED25519_OID, Family, Kind};
use metaslot_ck::*;
use metaslot_client::{Session, Template};

/// What stands in a request.
#[derive(Debug)]
pub(crate) struct Request<'a> {
    pub(crate) subject: &'a [u8],
    /// `SubjectPublicKeyInfo`
    pub(crate) public_key: &'a [u8],
    /// The extensions that it asks for, one beside the other.
    pub(crate) extensions: &'a [u8],
    contents: &'a [u8],
    algorithm: &'static Algorithm,
    signature: &'a [u8],
}

impl<'a> Request<'a> {
    /// `None` when it is none, or signed in a way that is not known here.
    pub(crate) fn read(der: &'a [u8]) -> Option<Self> {
        let mut rest = der;
        let mut outer = der::take(&mut rest, SEQUENCE)?;
        let contents = der::next(&mut outer).filter(|it| it.tag == SEQUENCE)?;
        let algorithm = Algorithm::encoded_as(der::next(&mut outer)?.whole)?;
        let signature = der::take(&mut outer, BIT_STRING)?.strip_prefix(&[0])?;
        let mut inner = contents.content;
        der::take(&mut inner, INTEGER).filter(|version| *version == [0])?;
        let mut part = || der::next(&mut inner).filter(|it| it.tag == SEQUENCE);
        let (subject, public_key) = (part()?.whole, part()?.whole);
        // What it asks for; some programs leave out that it is nothing.
        let attributes = der::take(&mut inner, CONSTRUCTED).unwrap_or_default();
        let extensions = wanted(attributes).unwrap_or_default();
        let contents = contents.whole;
        let is_all = [rest, outer, inner].iter().all(|more| more.is_empty());
        is_all.then_some(Self { subject, public_key, extensions, contents, algorithm, signature })
    }

    /// Its key; `None` when it is not written as it must be, or of an unknown type.
    pub(crate) fn key(&self) -> Option<PublicKey> {
        PublicKey::read(self.public_key)
    }

    /// Whether the owner of its key has signed it.
    pub(crate) fn is_signed(&self, session: &Session, key: PublicKey) -> Result<bool> {
        let raw = match key.kind.family {
            Family::Rsa | Family::Ed25519 => Some(self.signature.to_vec()),
            _ => der::raw_signature(self.signature, key.kind.size),
        };
        let Some(raw) = raw else { return Ok(false) };
        let template = key.template.token(false).bool(CKA_PRIVATE, false).bool(CKA_VERIFY, true);
        let key = session.create(&template)?;
        let verified = self.algorithm.verify(session, key, self.contents, &raw);
        session.destroy(key)?;
        match verified {
            Err(error) if WRONG.contains(&error.code) => Ok(false),
            other => Ok(other.map(|()| true)?),
        }
    }
}

/// The extensions among a request's attributes.
fn wanted(mut attributes: &[u8]) -> Option<&[u8]> {
    let extensions = der::identifier(EXTENSION_REQUEST);
    while !attributes.is_empty() {
        let mut attribute = der::take(&mut attributes, SEQUENCE)?;
        if der::next(&mut attribute)?.whole == extensions {
            let mut set = der::take(&mut attribute, SET)?;
            return der::take(&mut set, SEQUENCE);
        }
    }
    None
}

/// What a signature is that is not this key's.
const WRONG: [Error; 4] = [
    Error::SIGNATURE_INVALID,
    Error::SIGNATURE_LEN_RANGE,
    Error::KEY_TYPE_INCONSISTENT,
    Error::DATA_LEN_RANGE,
];

/// A key that is to be certified.
#[derive(Debug)]
pub(crate) struct PublicKey {
    template: Template,
    pub(crate) kind: Kind,
}

impl PublicKey {
    /// As we would write it, and no other way: other programs must read the same key in the certificate.
    fn read(der: &[u8]) -> Option<Self> {
        let mut outer = der::take(&mut &*der, SEQUENCE)?;
        let mut algorithm = der::take(&mut outer, SEQUENCE)?;
        let mut key = der::take(&mut outer, BIT_STRING)?.strip_prefix(&[0])?;
        let kind = der::next(&mut algorithm).filter(|it| it.tag == OBJECT_IDENTIFIER)?.whole;
        let template = Template::new().class(CKO_PUBLIC_KEY);
        if kind == der::identifier(&[1, 2, 840, 113_549, 1, 1, 1]) {
            let mut numbers = der::take(&mut key, SEQUENCE)?;
            let mut number = || {
                let content = der::take(&mut numbers, INTEGER)?;
                Some(content.strip_prefix(&[0]).unwrap_or(content))
            };
            let (modulus, exponent) = (number()?, number()?);
            let template = template.key_type(CKK_RSA).bytes(CKA_MODULUS, modulus);
            let template = template.bytes(CKA_PUBLIC_EXPONENT, exponent);
            let kind = Kind::of(CKK_RSA, None, Some(modulus), None);
            let is_exact = der::rsa_public_key(modulus, exponent) == der;
            return is_exact.then_some(Self { template, kind });
        }
        if kind == ED25519_OID {
            let template = template.key_type(CKK_EC_EDWARDS).bytes(CKA_EC_PARAMS, kind);
            let template = template.bytes(CKA_EC_POINT, der::element(OCTET_STRING, key));
            let is_exact = key.len() == 32 && der::edwards_public_key(kind, key) == der;
            let kind = Kind::of(CKK_EC_EDWARDS, Some(kind), None, None);
            return is_exact.then_some(Self { template, kind });
        }
        let params = der::next(&mut algorithm)?.whole;
        let kind = Kind::of(CKK_EC, Some(params), None, None);
        let template = template.key_type(CKK_EC).bytes(CKA_EC_PARAMS, params);
        let template = template.bytes(CKA_EC_POINT, der::element(OCTET_STRING, key));
        let is_exact = der::ec_public_key(params, key) == der;
        (is_exact && kind.size > 0).then_some(Self { template, kind })
    }

    /// Whether it has less than 112 bits of security.
    pub(crate) fn is_weak(&self) -> bool {
        self.kind.size < if self.kind.family == Family::Rsa { 2048 } else { 28 }
    }
}

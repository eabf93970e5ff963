// SPDX-License-Identifier: Apache-2.0
//! Requests that anybody may have written (RFC 2986), and whether they who wrote one have its key.

use super::Algorithm;
use crate::encoding::der::{self, BIT_STRING, INTEGER, OBJECT_IDENTIFIER, OCTET_STRING, SEQUENCE};
use crate::failure::Result;
use crate::key::Kind;
use metaslot_ck::*;
use metaslot_client::{Session, Template};

/// What stands in a request. The extensions that it asks for are not looked at.
#[derive(Debug)]
pub(crate) struct Request<'a> {
    pub(crate) subject: &'a [u8],
    /// `SubjectPublicKeyInfo`
    pub(crate) public_key: &'a [u8],
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
        der::take(&mut inner, INTEGER)?;
        let mut part = || der::next(&mut inner).filter(|it| it.tag == SEQUENCE);
        let (subject, public_key) = (part()?.whole, part()?.whole);
        let contents = contents.whole;
        rest.is_empty().then_some(Self { subject, public_key, contents, algorithm, signature })
    }

    /// Whether the owner of its key has signed it.
    pub(crate) fn is_signed(&self, session: &Session) -> Result<bool> {
        let Some((template, length)) = public_key(self.public_key) else { return Ok(false) };
        let raw = match length {
            Some(length) => der::raw_signature(self.signature, length),
            None => Some(self.signature.to_vec()),
        };
        let Some(raw) = raw else { return Ok(false) };
        let template = template.token(false).bool(CKA_PRIVATE, false).bool(CKA_VERIFY, true);
        let key = session.create(&template)?;
        let verified = self.algorithm.verify(session, key, self.contents, &raw);
        session.destroy(key)?;
        match verified {
            Err(error) if WRONG.contains(&error.code) => Ok(false),
            other => Ok(other.map(|()| true)?),
        }
    }
}

/// What a signature is that is not this key's.
const WRONG: [Error; 4] = [
    Error::SIGNATURE_INVALID,
    Error::SIGNATURE_LEN_RANGE,
    Error::KEY_TYPE_INCONSISTENT,
    Error::DATA_LEN_RANGE,
];

/// The key as an object, and for a curve the length of its numbers.
fn public_key(der: &[u8]) -> Option<(Template, Option<usize>)> {
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
        return Some((template.bytes(CKA_PUBLIC_EXPONENT, exponent), None));
    }
    let params = der::next(&mut algorithm)?.whole;
    let is_known = kind == der::identifier(&[1, 2, 840, 10045, 2, 1]);
    let length = Kind::of(CKK_EC, Some(params), None, None).size;
    let template = template.key_type(CKK_EC).bytes(CKA_EC_PARAMS, params);
    let template = template.bytes(CKA_EC_POINT, der::element(OCTET_STRING, key));
    (is_known && length > 0).then_some((template, Some(length)))
}

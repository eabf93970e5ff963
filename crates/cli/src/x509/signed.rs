// SPDX-License-Identifier: Apache-2.0
//! What certificates, requests and lists have in common: contents, and a signature of them (RFC 5280, 4.1.1).

use super::build::Algorithm;
use super::public::PublicKey;
use crate::encoding::der::{self, BIT_STRING, Element, SEQUENCE};
use crate::failure::Result;
use crate::key::Family;
use metaslot_ck::*;
use metaslot_client::Session;

/// Contents that somebody signed.
#[derive(Debug)]
pub(crate) struct Signed<'a> {
    pub(super) contents: Element<'a>,
    algorithm: &'static Algorithm,
    signature: &'a [u8],
}

impl<'a> Signed<'a> {
    /// `None` when it is nothing signed, or in a way that is not known here.
    pub(super) fn read(mut der: &'a [u8]) -> Option<Self> {
        let mut outer = der::take(&mut der, SEQUENCE)?;
        let contents = der::next(&mut outer).filter(|it| it.tag == SEQUENCE)?;
        let algorithm = Algorithm::encoded_as(der::next(&mut outer)?.whole)?;
        let signature = der::take(&mut outer, BIT_STRING)?.strip_prefix(&[0])?;
        let is_all = der.is_empty() && outer.is_empty();
        is_all.then_some(Self { contents, algorithm, signature })
    }

    /// Whether the owner of this key signed it.
    pub(crate) fn is_by(&self, session: &Session, key: PublicKey) -> Result<bool> {
        let raw = match key.kind.family {
            Family::Ec => der::raw_signature(self.signature, key.kind.size),
            _ => Some(self.signature.to_vec()),
        };
        let Some(raw) = raw else { return Ok(false) };
        let template = key.template.token(false).bool(CKA_PRIVATE, false).bool(CKA_VERIFY, true);
        let key = session.create(&template)?;
        let verified = self.algorithm.verify(session, key, self.contents.whole, &raw);
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

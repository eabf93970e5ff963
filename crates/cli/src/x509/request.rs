// SPDX-License-Identifier: Apache-2.0
//! Requests that anybody may have written (RFC 2986).

use super::build::EXTENSION_REQUEST;
use super::public::PublicKey;
use super::signed::Signed;
use crate::encoding::der::{self, CONSTRUCTED, INTEGER, SEQUENCE, SET};

/// What stands in a request.
#[derive(Debug)]
pub(crate) struct Request<'a> {
    pub(crate) subject: &'a [u8],
    /// `SubjectPublicKeyInfo`
    pub(crate) public_key: &'a [u8],
    /// The extensions that it asks for, one beside the other.
    pub(crate) extensions: &'a [u8],
    /// Who wrote it has its key where that has signed it.
    pub(crate) signed: Signed<'a>,
}

impl<'a> Request<'a> {
    /// `None` when it is none, or signed in a way that is not known here.
    pub(crate) fn read(der: &'a [u8]) -> Option<Self> {
        let signed = Signed::read(der)?;
        let mut inner = signed.contents.content;
        der::take(&mut inner, INTEGER).filter(|version| *version == [0])?;
        let mut part = || der::next(&mut inner).filter(|it| it.tag == SEQUENCE);
        let (subject, public_key) = (part()?.whole, part()?.whole);
        // What it asks for; some programs leave out that it is nothing.
        let attributes = der::take(&mut inner, CONSTRUCTED).unwrap_or_default();
        let extensions = wanted(attributes).unwrap_or_default();
        inner.is_empty().then_some(Self { subject, public_key, extensions, signed })
    }

    /// Its key; `None` when it is not written as it must be, or of an unknown type.
    pub(crate) fn key(&self) -> Option<PublicKey> {
        PublicKey::read(self.public_key)
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

// SPDX-License-Identifier: Apache-2.0
//! PKCS #12 files (RFC 7292): keys and certificates under a passphrase.

use super::contents::{Certificate, Contents, shrouded};
use super::passphrase::{Opener, identified, is};
use super::private::{self, damaged};

use crate::encoding::definite;
use crate::encoding::der::{
    self, CONSTRUCTED, CONTEXT, Element, INTEGER, OCTET_STRING, SEQUENCE, SET,
};
use crate::failure::{Failure, Result};
use metaslot_memory::Secret;

const DATA: &[u32] = &[1, 2, 840, 113_549, 1, 7, 1];
const ENCRYPTED_DATA: &[u32] = &[1, 2, 840, 113_549, 1, 7, 6];
const KEY: &[u32] = &[1, 2, 840, 113_549, 1, 12, 10, 1, 1];
const SHROUDED_KEY: &[u32] = &[1, 2, 840, 113_549, 1, 12, 10, 1, 2];
const CERTIFICATE: &[u32] = &[1, 2, 840, 113_549, 1, 12, 10, 1, 3];
const NESTED: &[u32] = &[1, 2, 840, 113_549, 1, 12, 10, 1, 6];
const X509: &[u32] = &[1, 2, 840, 113_549, 1, 9, 22, 1];
const FRIENDLY_NAME: &[u32] = &[1, 2, 840, 113_549, 1, 9, 20];

/// Nobody writes bags that are deeper in each other.
const DEPTH: usize = 8;

/// Whether bytes begin as such a file does: version 3, and something of a type. Some programs do not say its length.
pub(super) fn is_one(der: &[u8]) -> bool {
    if der.starts_with(&[SEQUENCE, 0x80, INTEGER, 1, 3]) {
        return true;
    }
    let mut rest = der::take(&mut &*der, SEQUENCE).unwrap_or_default();
    let version = der::take(&mut rest, INTEGER);
    version == Some(&[3]) && der::take(&mut rest, SEQUENCE).is_some()
}

fn cut() -> Failure {
    Failure::failed(damaged("PKCS #12 form"))
}

/// Everything in it. Where it has a MAC, nothing is believed before the passphrase was found to fit.
pub(super) fn read(opener: &Opener<'_>, der: &[u8]) -> Result<Contents> {
    let der = definite(der).ok_or_else(cut)?;
    let mut rest = der::take(&mut der.expose(), SEQUENCE).ok_or_else(cut)?;
    der::take(&mut rest, INTEGER).ok_or_else(cut)?;
    let outer = der::next(&mut rest).ok_or_else(cut)?.whole;
    let (identifier, content) = identified(outer).ok_or_else(cut)?;
    if !is(identifier, DATA) {
        return Err(Failure::failed("it is sealed by a public key, which is not supported"));
    }
    let content = explicit(content, OCTET_STRING).ok_or_else(cut)?;
    if let Some(mac_data) = der::next(&mut rest) {
        opener.authenticate(mac_data.whole, content)?;
    }
    let mut contents = Contents::default();
    let content = definite(content).ok_or_else(cut)?;
    let mut safes = der::take(&mut content.expose(), SEQUENCE).ok_or_else(cut)?;
    while let Some(safe) = der::next(&mut safes) {
        let (identifier, content) = identified(safe.whole).ok_or_else(cut)?;
        if is(identifier, DATA) {
            let bare = explicit(content, OCTET_STRING).ok_or_else(cut)?;
            bags(opener, bare, DEPTH, &mut contents)?;
        } else if is(identifier, ENCRYPTED_DATA) {
            bags(opener, encrypted(opener, content)?.expose(), DEPTH, &mut contents)?;
        } else {
            return Err(Failure::failed("a part of it is sealed in a way that is not supported"));
        }
    }
    Ok(contents)
}

/// The content of `[0]`, which is one element with this tag.
fn explicit(der: &[u8], tag: u8) -> Option<&[u8]> {
    let mut inner = der::take(&mut &*der, CONSTRUCTED)?;
    der::take(&mut inner, tag)
}

/// `EncryptedData`
fn encrypted(opener: &Opener<'_>, content: &[u8]) -> Result<Secret> {
    let parts = || {
        let mut data = explicit(content, SEQUENCE)?;
        der::take(&mut data, INTEGER)?;
        let mut info = der::take(&mut data, SEQUENCE)?;
        der::next(&mut info)?;
        let algorithm = der::next(&mut info)?.whole;
        Some((algorithm, der::next(&mut info)?))
    };
    let (algorithm, sealed) = parts().ok_or_else(cut)?;
    opener.decrypted(algorithm, &octets(sealed).ok_or_else(cut)?)
}

/// `[0] IMPLICIT OCTET STRING`, at once or in pieces.
fn octets(sealed: Element<'_>) -> Option<Vec<u8>> {
    if sealed.tag == CONTEXT {
        return Some(sealed.content.to_vec());
    }
    let mut pieces = Some(sealed.content).filter(|_| sealed.tag == CONSTRUCTED)?;
    let mut whole = Vec::new();
    while !pieces.is_empty() {
        whole.extend(der::take(&mut pieces, OCTET_STRING)?);
    }
    Some(whole)
}

/// `SafeContents`; bags in it may have others within, so many deep.
fn bags(opener: &Opener<'_>, der: &[u8], depth: usize, contents: &mut Contents) -> Result<()> {
    let der = definite(der).ok_or_else(cut)?;
    let mut rest = der::take(&mut der.expose(), SEQUENCE).ok_or_else(cut)?;
    while !rest.is_empty() {
        let mut bag = der::take(&mut rest, SEQUENCE).ok_or_else(cut)?;
        let identifier = der::next(&mut bag).ok_or_else(cut)?.whole;
        let value = der::take(&mut bag, CONSTRUCTED).ok_or_else(cut)?;
        let name = der::take(&mut bag, SET).and_then(friendly_name);
        if is(identifier, KEY) {
            let pair = private::pkcs8(value).map_err(Failure::failed)?;
            contents.keys.push(private::Pair { name, ..pair });
        } else if is(identifier, SHROUDED_KEY) {
            let opened = shrouded(opener, value)?;
            contents.keys.push(private::Pair { name, ..opened });
        } else if is(identifier, CERTIFICATE) {
            let der = certificate(value).ok_or_else(cut)?;
            contents.certificates.extend(der.map(|der| Certificate { der, name }));
        } else if is(identifier, NESTED) {
            let depth = depth.checked_sub(1).ok_or_else(cut)?;
            bags(opener, value, depth, contents)?;
        } else {
            contents.others += 1;
        }
    }
    Ok(())
}

/// `CertBag`; within, `None` for one that is no X.509 certificate.
fn certificate(value: &[u8]) -> Option<Option<Vec<u8>>> {
    let mut bag = der::take(&mut &*value, SEQUENCE)?;
    let kind = der::next(&mut bag)?.whole;
    if !is(kind, X509) {
        return Some(None);
    }
    Some(Some(explicit(bag, OCTET_STRING)?.to_vec()))
}

/// What a key or a certificate is called, in UTF-16.
fn friendly_name(mut attributes: &[u8]) -> Option<String> {
    const BMP_STRING: u8 = 30;
    while let Some(mut attribute) = der::take(&mut attributes, SEQUENCE) {
        let identifier = der::next(&mut attribute)?.whole;
        if is(identifier, FRIENDLY_NAME) {
            let mut values = der::take(&mut attribute, SET)?;
            let text = der::take(&mut values, BMP_STRING)?;
            let units = text.chunks_exact(2).map(|pair| u16::from_be_bytes([pair[0], pair[1]]));
            let name = String::from_utf16_lossy(&units.collect::<Vec<_>>());
            return Some(name).filter(|name| !name.is_empty());
        }
    }
    None
}

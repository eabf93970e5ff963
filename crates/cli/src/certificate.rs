// SPDX-License-Identifier: Apache-2.0
//! Certificates in a token: found and stored.

use crate::failure::{Failure, Result};
use crate::key::{self, Key};
use crate::uri::{Class, Uri};
use crate::x509::{self, Certificate};
use metaslot_ck::*;
use metaslot_client::{Session, Template};
use std::cmp::Reverse;

/// One object of a token. It may be no certificate that can be read.
#[derive(Debug)]
pub(crate) struct Stored {
    pub(crate) handle: ObjectHandle,
    pub(crate) der: Vec<u8>,
    pub(crate) label: String,
    pub(crate) id: Vec<u8>,
    /// The security officer's word, or that of another module.
    pub(crate) is_trusted: bool,
}

impl Stored {
    /// Its URI on a token.
    pub(crate) fn uri(&self, token: &Uri) -> Uri {
        Uri {
            object: (!self.label.is_empty()).then(|| self.label.clone()),
            id: (!self.id.is_empty()).then(|| self.id.clone()),
            class: Some(Class::Certificate),
            ..token.clone()
        }
    }
}

/// The certificates of the session's token that have a label, where one is said.
pub(crate) fn labelled(session: &Session, label: Option<&str>) -> Result<Vec<Stored>> {
    let template = Template::new().class(CKO_CERTIFICATE).token(true);
    let template = match label {
        Some(label) => template.label(label),
        None => template,
    };
    let mut found = Vec::new();
    for handle in session.find(&template)? {
        let values = session.attributes(handle, &[CKA_VALUE, CKA_LABEL, CKA_ID])?;
        let [der, label, id] = <[_; 3]>::try_from(values).unwrap_or_default();
        found.push(Stored {
            handle,
            der: der.unwrap_or_default(),
            label: String::from_utf8_lossy(&label.unwrap_or_default()).into_owned(),
            id: id.unwrap_or_default(),
            is_trusted: session.attribute_bool(handle, CKA_TRUSTED).unwrap_or_default(),
        });
    }
    Ok(found)
}

/// What stands in a certificate.
pub(crate) fn read(der: &[u8]) -> Result<Certificate<'_>> {
    Certificate::read(der).ok_or_else(|| Failure::failed("that is no certificate"))
}

/// Puts a certificate into the session's token, for everybody to see.
pub(crate) fn store(session: &Session, der: &[u8], label: &str, id: &[u8]) -> Result<ObjectHandle> {
    Ok(session.create(&object(der, label, id)?.bool(CKA_PRIVATE, false))?)
}

/// The object of a certificate, but for who sees it.
pub(crate) fn object(der: &[u8], label: &str, id: &[u8]) -> Result<Template> {
    let certificate = read(der)?;
    // PKCS#11 3.2 §4.6.3: an authority, or what is not said.
    let category = if x509::certifies(certificate.extensions) {
        CK_CERTIFICATE_CATEGORY_AUTHORITY
    } else {
        CK_CERTIFICATE_CATEGORY_UNSPECIFIED
    };
    Ok(Template::new()
        .class(CKO_CERTIFICATE)
        .ulong(CKA_CERTIFICATE_TYPE, CKC_X_509)
        .ulong(CKA_CERTIFICATE_CATEGORY, category)
        .token(true)
        .label(label)
        .bytes(CKA_ID, id)
        .bytes(CKA_SUBJECT, certificate.subject)
        .bytes(CKA_ISSUER, certificate.issuer)
        .bytes(CKA_SERIAL_NUMBER, certificate.serial_number)
        .bytes(CKA_VALUE, der))
}

/// The token's key of a certificate.
pub(crate) fn key_of(session: &Session, public_key: &[u8]) -> Result<Option<Key>> {
    let is_it = |key: &Key| {
        let public = key.part(Class::Public);
        public.is_some_and(|handle| {
            key::public_key(session, key, handle).is_ok_and(|it| it == public_key)
        })
    };
    Ok(key::search(session, &Uri::default())?.into_iter().find(is_it))
}

/// A private key that is here already would be two keys of one value.
pub(crate) fn refuse_known(session: &Session, public_key: &[u8], is_private: bool) -> Result<()> {
    let known = key_of(session, public_key)?;
    match known.filter(|key| key.part(Class::Private).is_some() || !is_private) {
        None => Ok(()),
        Some(key) => Err(Failure::failed(format!("the token has this key: '{}'", key.label)).hint(
            "'metaslot key copy' makes another of it, 'metaslot key set' gives it another name",
        )),
    }
}

/// The certificates of a key, by what stands in them.
pub(crate) fn of_key(session: &Session, key: &Key) -> Result<Vec<Stored>> {
    let Some(handle) = key.part(Class::Public) else { return Ok(Vec::new()) };
    let Ok(public) = key::public_key(session, key, handle) else { return Ok(Vec::new()) };
    let is_its = |der: &[u8]| Certificate::read(der).is_some_and(|read| read.public_key == public);
    let mut all = labelled(session, None)?;
    all.retain(|one| is_its(&one.der));
    Ok(all)
}

/// The issuers of a certificate in the token, up to the root. Several may have the name of one, for a CA changes its key: the one
/// counts whose key has signed.
pub(crate) fn issuers(session: &Session, der: &[u8]) -> Result<Vec<Stored>> {
    let mut all = labelled(session, None)?;
    all.retain(|one| one.der != der);
    let mut chain: Vec<Stored> = Vec::new();
    // Each is taken once: names that go round end.
    loop {
        let last = read(chain.last().map_or(der, |last| &last.der))?;
        let found = match last.is_by(session, &last) {
            true => None,
            false => issuer(session, &last, &all),
        };
        match found {
            Some(at) => chain.push(all.swap_remove(at)),
            None => return Ok(chain),
        }
    }
}

/// Which of these is the issuer of a certificate: of several with its key the one that is valid for longest.
fn issuer(session: &Session, of: &Certificate<'_>, all: &[Stored]) -> Option<usize> {
    let known = all.iter().enumerate();
    let mut candidates: Vec<_> =
        known.filter_map(|(at, one)| Some((at, Certificate::read(&one.der)?))).collect();
    candidates
        .sort_by_key(|(_, one)| (of.names_key_of(one) != Some(true), Reverse(one.until.clone())));
    candidates.iter().find(|(_, one)| of.is_by(session, one)).map(|(at, _)| *at)
}

// SPDX-License-Identifier: Apache-2.0
//! `pktool signcsr`

use super::arguments::{Args, yes};
use super::certificates::serial;
use super::certify::{encoded, extensions, lifetime};
use super::files::{contents, write_new};
use crate::app::App;
use crate::certificate::{key_of, store};
use crate::encoding::der_of;
use crate::failure::{Failure, Result};
use crate::find;
use crate::key::Key;
use crate::personality::material::named;
use crate::personality::operands::Operands;
use crate::uri::{Class, Uri};
use crate::x509::{self, Algorithm, How, Request, Subject};
use metaslot_ck::ObjectHandle;
use metaslot_client::{Access, Session};
use std::path::Path;

pub(super) fn signcsr(app: &App, args: &Args, operands: &Operands<'_>) -> Result<()> {
    let issuer = x509::name(operands.needed("issuer")?)?;
    let (serial, seconds) = (serial(operands.needed("serial")?)?, lifetime(operands)?);
    let other_name = operands.value("subject").map(x509::name).transpose()?;
    let extensions = extensions(operands)?;
    let (signer, file) = (operands.needed("signkey")?, operands.needed("outcert")?);
    let asked = operands.needed("csr")?;
    let labels = ["CERTIFICATE REQUEST", "NEW CERTIFICATE REQUEST"];
    let der = der_of(&contents(Path::new(asked))?, &labels).ok_or_else(|| unknown(asked))?;
    let request = Request::read(&der).ok_or_else(|| unknown(asked))?;
    let key = request.key().ok_or_else(|| unknown(asked))?;
    if key.is_weak() {
        return Err(Failure::failed(format!("the key in {asked} is too weak: {}", key.kind)));
    }
    if other_name.is_none() && !x509::is_name(request.subject) {
        return Err(Failure::failed(format!("the subject in {asked} is no name to be certified"))
            .hint("give one with subject="));
    }
    let (session, token) = args.log_in(app, operands, Access::ReadWrite)?;
    if !request.signed.is_by(&session, key)? {
        return Err(Failure::failed(format!(
            "the request in {asked} is not signed by its own key"
        )));
    }
    let subject = Subject {
        name: other_name.unwrap_or_else(|| request.subject.to_vec()),
        public_key: request.public_key.to_vec(),
        extensions,
    };
    let (algorithm, private) = signing_key(&session, &token, signer)?;
    let how = How { algorithm, session: &session, key: private, again: None };
    let made = x509::certificate(&subject, &issuer, &serial, seconds, how)?;
    let stored = match yes(operands, "store", false) {
        true => {
            let label = operands.value("outlabel").unwrap_or_default();
            let id = key_of(&session, request.public_key)?.map_or_else(Vec::new, |key| key.id);
            Some(store(&session, &made, label, &id)?)
        }
        false => None,
    };
    let written = write_new(Path::new(file), &encoded(operands, "CERTIFICATE", made), 0o644);
    if let (Err(_), Some(handle)) = (&written, stored) {
        // Why it came to this is the failure that counts.
        session.destroy(handle).ok();
    }
    written
}

fn unknown(file: &str) -> Failure {
    Failure::failed(format!("{file} is no request for a certificate, or of an unknown algorithm"))
}

/// The private key that signs, and how.
fn signing_key(
    session: &Session,
    token: &Uri,
    label: &str,
) -> Result<(&'static Algorithm, ObjectHandle)> {
    let key = find::one::<Key>(session, token, &named(label, Class::Private)?)?;
    let missing = || Failure::not_found(format!("the token has no private key '{label}'"));
    let private = key.part(Class::Private).ok_or_else(missing)?;
    Ok((Algorithm::find(&key.kind, "sha256")?, private))
}

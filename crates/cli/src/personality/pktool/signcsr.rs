// SPDX-License-Identifier: Apache-2.0
//! `pktool signcsr`

use super::arguments::{Args, yes};
use super::certificates::serial;
use super::certify::{encoded, extensions, lifetime};
use super::files::{contents, write_new};
use crate::app::App;
use crate::certificate::{Stored, key_of, of_key, store};
use crate::encoding::der_of;
use crate::failure::{Failure, Result};
use crate::find;
use crate::issuer;
use crate::key::Key;
use crate::personality::material::named;
use crate::personality::operands::Operands;
use crate::uri::{Class, Uri};
use crate::x509::{self, Algorithm, Certificate, How, Request, Subject, Time};
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
            .hint("it has characters of no text, or a part that is too long, such as a CN of more than 64 characters; give one with subject="));
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
    let (algorithm, private, own) = signing_key(&session, &token, signer)?;
    let own = permitting(&own, &issuer, x509::certifies(&subject.extensions))?;
    let (until, remark) = match own {
        Some(own) => issuer::end(&own, seconds),
        None => (Time::from_now(seconds), None),
    };
    let how = How { algorithm, session: &session, key: private, again: None };
    let made = x509::certificate(&subject, &issuer, &serial, &until, how)?;
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
    remark.filter(|_| written.is_ok()).iter().for_each(|remark| app.output.note(remark));
    written
}

fn unknown(file: &str) -> Failure {
    Failure::failed(format!("{file} is no request for a certificate, or of an unknown algorithm"))
}

/// The private key that signs, how, and its certificates.
fn signing_key(
    session: &Session,
    token: &Uri,
    label: &str,
) -> Result<(&'static Algorithm, ObjectHandle, Vec<Stored>)> {
    let key = find::one::<Key>(session, token, &named(label, Class::Private)?)?;
    let missing = || Failure::not_found(format!("the token has no private key '{label}'"));
    let private = key.part(Class::Private).ok_or_else(missing)?;
    Ok((Algorithm::find(&key.kind, "sha256")?, private, of_key(session, &key)?))
}

/// The one of these that allows what is to be signed under this name; `None` where the token has none of that name, and only who
/// asks knows what the issuer may do.
fn permitting<'a>(
    all: &'a [Stored],
    issuer: &[u8],
    is_of_ca: bool,
) -> Result<Option<Certificate<'a>>> {
    let mut refused = None;
    for stored in all {
        let Some(own) = Certificate::read(&stored.der).filter(|own| own.subject == issuer) else {
            continue;
        };
        let checked = issuer::check_signs(&own, &stored.label, is_of_ca);
        match checked.and_then(|()| issuer::check_time(&own, &stored.label)) {
            Ok(()) => return Ok(Some(own)),
            Err(failure) => refused = Some(failure),
        }
    }
    refused.map_or(Ok(None), Err)
}

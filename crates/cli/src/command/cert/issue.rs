// SPDX-License-Identifier: Apache-2.0
//! What the verbs share that sign: the key, the certificate's number, and where the certificate goes.

use super::found::{numbered, twin};
use crate::app::App;
use crate::certificate::{Stored, key_of, read, store};
use crate::command::payload::write_beside;
use crate::encoding::pem;
use crate::failure::{Failure, Result};
use crate::issuer;
use crate::key::{Key, public_key};
use crate::output::{Report, take_back, warn};
use crate::uri::{Class, Uri};
use crate::x509::{self, Algorithm, Certificate, How};
use metaslot_ck::{CKM_SHA256, ObjectHandle};
use metaslot_client::{Access, Session};
use metaslot_memory::Secret;
use serde_json::json;
use std::path::PathBuf;

/// A key that signs.
pub(super) struct Signer<'a> {
    session: &'a Session,
    algorithm: &'static Algorithm,
    private: ObjectHandle,
    again: Option<&'a Secret>,
    /// `SubjectPublicKeyInfo`
    pub(super) public_key: Vec<u8>,
}

impl<'a> Signer<'a> {
    pub(super) fn new(
        (session, pin): (&'a Session, &'a Secret),
        key: &'a Key,
        hash: &HashArg,
    ) -> Result<Self> {
        let half = |class, name: &str| {
            let missing = format!("the token does not have the {name} half of key '{}'", key.label);
            key.part(class).ok_or_else(|| Failure::not_found(missing))
        };
        let algorithm = Algorithm::of(&key.kind, hash.hash.as_deref())?;
        let (private, public) = (half(Class::Private, "private")?, half(Class::Public, "public")?);
        let public_key = public_key(session, key, public)?;
        let again = key.always_authenticate.then_some(pin);
        Ok(Self { session, algorithm, private, again, public_key })
    }

    pub(super) const fn how(&self) -> How<'a> {
        let Self { session, algorithm, private, again, .. } = *self;
        How { algorithm, session, key: private, again }
    }
}

/// What is signed.
#[derive(clap::Args, Debug)]
pub(super) struct HashArg {
    /// The hash: sha256, sha384, sha512 [default: one as strong as the key]
    #[arg(long, value_name = "NAME")]
    hash: Option<String>,
}

/// When it may sign.
#[derive(clap::Args, Debug)]
pub(super) struct ForceArg {
    /// Sign even where the issuer's certificate is not valid now
    #[arg(long)]
    force: bool,
}

/// Whose certificate in the token is that of a CA.
#[derive(clap::Args, Debug)]
pub(super) struct IssuerArg {
    /// The issuer's certificate in the token, beside its key: a PKCS#11 URI or its label
    #[arg(long, value_name = "URI|LABEL")]
    pub(super) issuer: String,
    /// Its serial number in hexadecimal, where several have one URI
    #[arg(long, value_name = "HEX")]
    issuer_serial: Option<String>,
}

/// A CA in the token: its certificate, and its key.
pub(super) struct Issuer {
    stored: Stored,
    pub(super) key: Key,
}

impl Issuer {
    /// The one that a URI names, if it may be used so, and now.
    pub(super) fn find(
        (session, token): (&Session, &Uri),
        uri: &Uri,
        named: &IssuerArg,
        (usage, force): (&str, &ForceArg),
    ) -> Result<Self> {
        let stored = numbered(session, token, uri, named.issuer_serial.as_deref())?;
        let certificate = read(&stored.der)?;
        let label = &stored.label;
        issuer::check(&certificate, label, usage)?;
        if !force.force {
            issuer::check_time(&certificate, label).map_err(|failure| {
                failure
                    .hint("name another certificate of its key, or sign nevertheless with --force")
            })?;
        }
        let key = key_of(session, certificate.public_key)?.ok_or_else(|| {
            Failure::not_found(format!("the token does not have the key of '{label}'"))
        })?;
        Ok(Self { stored, key })
    }

    pub(super) fn label(&self) -> &str {
        &self.stored.label
    }

    pub(super) fn certificate(&self) -> Result<Certificate<'_>> {
        read(&self.stored.der)
    }
}

/// The identifier of a key (RFC 7093, 2, method 1).
pub(super) fn identifier(session: &Session, public_key: &[u8]) -> Result<Vec<u8>> {
    let bits = x509::key_bits(public_key).ok_or_else(|| Failure::failed("that is no key"))?;
    let mut identifier = session.digest(&CKM_SHA256.into(), bits)?;
    identifier.truncate(20);
    Ok(identifier)
}

/// A number that no other certificate has (RFC 5280, 4.1.2.2).
pub(super) fn serial(session: &Session) -> Result<Vec<u8>> {
    let mut serial = [0; 16];
    session.random(&mut serial)?;
    // Neither negative nor shorter.
    serial[0] = serial[0] & 0x3f | 0x40;
    Ok(serial.to_vec())
}

/// How a certificate is made, and where it goes.
#[derive(clap::Args, Debug)]
pub(super) struct Made {
    /// How long it is valid, in days
    #[arg(long, value_name = "N", default_value_t = 365, value_parser = clap::value_parser!(u64).range(1..=36_500))]
    days: u64,
    #[command(flatten)]
    pub(super) hash: HashArg,
    /// Put it into the token, beside its key
    #[arg(long)]
    store: bool,
    /// Where it goes, in PEM [default: standard output, unless it is stored]
    #[arg(long = "out", short, value_name = "FILE")]
    output: Option<PathBuf>,
}

impl Made {
    pub(super) const fn access(&self) -> Access {
        if self.store { Access::ReadWrite } else { Access::ReadOnly }
    }

    pub(super) const fn seconds(&self) -> u64 {
        self.days * 24 * 60 * 60
    }

    /// Writes and stores it, under the names of its key.
    pub(super) fn finish(
        &self,
        app: &App,
        (session, token): (&Session, &Uri),
        der: Vec<u8>,
        (label, id): (String, Vec<u8>),
    ) -> Result<()> {
        let text = pem("CERTIFICATE", &der);
        let stored = match self.store {
            true => {
                let handle = store(session, &der, &label, &id)?;
                Some(Stored { handle, der, label, id, is_trusted: false })
            }
            false => None,
        };
        let uri = stored.as_ref().map(|stored| stored.uri(token).to_string());
        let json = json!({"certificate": text, "stored": uri});
        let report = |text| Report { text, json, uris: uri.iter().cloned().collect() };
        let warning = stored.as_ref().and_then(|stored| twin(session, token, stored));
        warning.iter().cloned().for_each(warn);
        let written = match (&uri, &self.output) {
            (Some(uri), None) => app.output.print(&report(format!("stored {uri}\n"))),
            (_, file) => {
                write_beside(&app.output, file.as_deref(), text.as_bytes(), &report(String::new()))
            }
        };
        if let (Err(_), Some(stored)) = (&written, stored) {
            // Why it came to this is the failure that counts, and the older one is the only one again.
            session.destroy(stored.handle).ok();
            warning.iter().for_each(|warning| take_back(warning));
        }
        written
    }
}

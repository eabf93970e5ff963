// SPDX-License-Identifier: Apache-2.0
//! `pktool gencert` and `pktool gencsr`

use super::arguments::Args;
use super::certificates::serial;
use super::files::write_new;
use super::generate::{list_curves, made, pair_kind};
use crate::app::App;
use crate::certificate::store;
use crate::encoding::pem;
use crate::failure::{Failure, Result};
use crate::key::{self, Key, Kind};
use crate::personality::operands::{Choice, Operands};
use crate::uri::Class;
use crate::x509::{self, Algorithm, How, Subject, Time, seconds};
use metaslot_ck::ObjectHandle;
use metaslot_client::{Access, Session};
use std::path::Path;

/// `hash=`
pub(super) const HASHES: &[Choice] = &[
    Choice("sha1", None),
    Choice("sha256", None),
    Choice("sha384", None),
    Choice("sha512", None),
    Choice("md5", Some("MD5 does not protect a signature; sha256 does its work")),
];

/// Without `lifetime=`.
const LIFETIME: &str = "1-year";

/// What both verbs are told; all of it is checked before a key is made.
struct Wish<'a> {
    label: &'a str,
    kind: Kind,
    algorithm: &'static Algorithm,
    name: Vec<u8>,
    extensions: Vec<u8>,
}

/// A pair that was made for this, and is destroyed where nothing comes of it.
struct Pair<'a> {
    session: &'a Session,
    key: Key,
    private: ObjectHandle,
    public: ObjectHandle,
}

impl<'a> Wish<'a> {
    fn read(operands: &Operands<'a>) -> Result<Self> {
        let kind = pair_kind(operands)?;
        let hash = operands.value("hash").unwrap_or("sha256");
        Ok(Self {
            label: operands.needed("label")?,
            algorithm: Algorithm::find(&kind, hash)?,
            kind,
            name: x509::name(operands.needed("subject")?)?,
            extensions: extensions(operands)?,
        })
    }

    fn pair(&self, session: &'a Session) -> Result<Pair<'a>> {
        let keys = made(session, self.label, &self.kind, true, false)?;
        let key = keys.into_iter().next();
        let missing = || Failure::failed("the new key is not to be found");
        let key = key.ok_or_else(missing)?;
        let (private, public) = (key.part(Class::Private), key.part(Class::Public));
        let (private, public) = (private.ok_or_else(missing)?, public.ok_or_else(missing)?);
        Ok(Pair { session, key, private, public })
    }

    fn subject(self, pair: &Pair<'_>) -> Result<Subject> {
        let public_key = key::public_key(pair.session, &pair.key, pair.public)?;
        Ok(Subject { name: self.name, public_key, extensions: self.extensions })
    }
}

impl Pair<'_> {
    /// The result, with which the pair stays, or without which it goes.
    fn kept<T>(&self, result: Result<T>) -> Result<T> {
        if result.is_err() {
            for handle in [self.private, self.public] {
                // Why it came to this is the failure that counts.
                self.session.destroy(handle).ok();
            }
        }
        result
    }
}

/// `lifetime=`, in seconds.
pub(super) fn lifetime(operands: &Operands<'_>) -> Result<u64> {
    seconds(operands.value("lifetime").unwrap_or(LIFETIME))
}

/// `altname=`, `keyusage=` and `eku=`. Whose key signs certificates is a CA (RFC 5280, 4.2.1.3).
pub(super) fn extensions(operands: &Operands<'_>) -> Result<Vec<u8>> {
    let given = |name, encode: fn(&str) -> Result<Vec<u8>>| {
        operands.value(name).map(encode).transpose().map(Option::unwrap_or_default)
    };
    let usage = given("keyusage", x509::usage)?;
    let constraints = match !usage.is_empty() && x509::may(&usage, "keyCertSign") {
        true => x509::constraints(true),
        false => Vec::new(),
    };
    let usage = [usage, given("eku", x509::extended_usage)?, constraints].concat();
    Ok([usage, given("altname", x509::alternative_names)?].concat())
}

pub(super) fn gencert(app: &App, args: &Args, operands: &Operands<'_>) -> Result<()> {
    if operands.has("listcurves") {
        return list_curves();
    }
    let wish = Wish::read(operands)?;
    let serial = serial(operands.needed("serial")?)?;
    let until = Time::from_now(lifetime(operands)?);
    let (session, _) = args.log_in(app, operands, Access::ReadWrite)?;
    let pair = wish.pair(&session)?;
    let (label, algorithm) = (wish.label, wish.algorithm);
    let make = || {
        let subject = wish.subject(&pair)?;
        let signer = How { algorithm, session: &session, key: pair.private, again: None };
        let der = x509::certificate(&subject, &subject.name, &serial, &until, signer)?;
        store(&session, &der, label, &pair.key.id)
    };
    pair.kept(make()).map(drop)
}

pub(super) fn gencsr(app: &App, args: &Args, operands: &Operands<'_>) -> Result<()> {
    if operands.has("listcurves") {
        return list_curves();
    }
    let wish = Wish::read(operands)?;
    let file = Path::new(operands.needed("outcsr")?);
    let (session, _) = args.log_in(app, operands, Access::ReadWrite)?;
    let pair = wish.pair(&session)?;
    let algorithm = wish.algorithm;
    let make = || {
        let subject = wish.subject(&pair)?;
        let der = x509::request(
            &subject,
            How { algorithm, session: &session, key: pair.private, again: None },
        )?;
        write_new(file, &encoded(operands, "CERTIFICATE REQUEST", der), 0o644)
    };
    pair.kept(make())
}

/// As `format=` says.
pub(super) fn encoded(operands: &Operands<'_>, label: &str, der: Vec<u8>) -> Vec<u8> {
    match operands.value("format") {
        Some("der") => der,
        _ => pem(label, &der).into_bytes(),
    }
}

// SPDX-License-Identifier: Apache-2.0
//! `metaslot sign`

use super::arguments::{Opened, UserArg};
use super::payload::{self, Payload};
use super::pss::PssArg;
use crate::app::App;
use crate::certificate;
use crate::encoding::{base64, der, pem};
use crate::failure::{Failure, Result};
use crate::key::{self, Key, ONE_TIME};
use crate::output::Report;
use crate::scheme::Scheme;
use crate::uri::Class;
use crate::x509::{self, Algorithm, How};
use clap::ValueEnum;
use metaslot_ck::{self as ck, ObjectHandle};
use metaslot_client::{Access, Session, User};
use metaslot_memory::Secret;
use serde_json::json;
use std::io::{IsTerminal, stdout};
use std::path::PathBuf;

const EXAMPLES: &str = "\
Examples:
  metaslot sign --key site --in release.tar --out release.tar.sig
  metaslot sign --key 'pkcs11:token=web;object=site' -m rsa-pss --hash sha384 < data > data.sig";

/// Arguments of `sign`.
#[derive(clap::Args, Debug)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Args {
    /// The key: a PKCS#11 URI or its label
    #[arg(long, value_name = "URI|LABEL")]
    key: String,
    /// The mechanism, such as rsa-pss, ecdsa or CKM_SHA384_RSA_PKCS [default: the key's usual one]
    #[arg(long, short, value_name = "NAME")]
    mechanism: Option<String>,
    /// The hash: sha1, sha224, sha256, sha384, sha512, sha3-224 ... sha3-512
    #[arg(long, value_name = "NAME")]
    hash: Option<String>,
    #[command(flatten)]
    pss: PssArg,
    /// The data to sign [default: standard input]
    #[arg(long = "in", short, value_name = "FILE")]
    input: Option<PathBuf>,
    /// Where the signature goes [default: standard output]
    #[arg(long = "out", short, value_name = "FILE")]
    output: Option<PathBuf>,
    /// The form of the signature [default: der for ECDSA, else raw; base64 on a terminal]
    #[arg(long, short, value_enum)]
    format: Option<Format>,
    #[command(flatten)]
    user: UserArg,
}

/// Forms of a signature.
#[derive(Clone, Copy, Debug, Eq, PartialEq, ValueEnum)]
pub(crate) enum Format {
    /// As PKCS#11 gives it: for ECDSA, r and s beside each other
    Raw,
    /// For ECDSA, the DER that OpenSSL and X.509 use; the same as raw for others
    Der,
    /// The default form in base64, one line
    Base64,
    /// CMS (PKCS #7) beside the file, in PEM, with the key's certificate and its issuers that are in the token
    Cms,
}

pub(crate) fn run(app: &App, args: &Args) -> Result<()> {
    let mut payload = Payload::open(args.input.as_deref())?.shown(app.output);
    let opened = args.user.open::<Key>(app, &args.key, Access::ReadOnly)?;
    let Opened { session, pin, token, it: key, .. } = &opened;
    let handle = signing_part(key)?;
    if args.format == Some(Format::Cms) {
        return cms(app, args, &opened, &mut payload);
    }
    let offered = session.module().mechanisms(token.slot)?;
    let (mechanism, hash) = (args.mechanism.as_deref(), args.hash.as_deref());
    let scheme = Scheme::choose(&key.kind, mechanism, hash, &offered)?;
    let scheme = args.pss.applied(scheme, &key.kind)?;
    let again = key.always_authenticate.then_some(pin);
    let raw = sign(session, &scheme, handle, again, &mut payload)
        .map_err(|failure| key::limited(session, key, handle, failure))?;
    let is_der = scheme.number != 0 && args.format != Some(Format::Raw);
    let signature = if is_der { der::signature(&raw) } else { raw };
    let report = Report {
        json: json!({
            "key": opened.uri(),
            "mechanism": scheme.name(),
            "format": if is_der { "der" } else { "raw" },
            "signature": base64(&signature),
        }),
        ..Report::default()
    };
    let is_text = match args.format {
        Some(format) => format == Format::Base64,
        None => args.output.is_none() && stdout().is_terminal(),
    };
    let bytes = if is_text { format!("{}\n", base64(&signature)).into_bytes() } else { signature };
    payload::write_beside(&app.output, args.output.as_deref(), &bytes, &report)
}

/// A signature that says who made it, and when.
fn cms(app: &App, args: &Args, opened: &Opened<Key>, payload: &mut Payload) -> Result<()> {
    let Opened { session, pin, token, it: key, .. } = opened;
    if args.mechanism.is_some() || args.pss.is_said() {
        return Err(Failure::usage("--format cms goes with --hash, and with no --mechanism"));
    }
    let own = certificate::of_key(session, key)?.into_iter().next().ok_or_else(|| {
        Failure::not_found(format!("the token has no certificate of key '{}'", key.label))
            .hint("'metaslot cert import' and 'metaslot cert selfsign --store' put one there")
    })?;
    let issuers = certificate::issuers(session, &own.der)?;
    let chain = std::iter::once(&own).chain(&issuers).map(|stored| &*stored.der);
    if ONE_TIME.iter().any(|row| row.family == key.kind.family) {
        // RFC 9708 wants the hash of its trees for the file.
        return Err(Failure::usage(format!("{} keys sign no CMS", key.kind)));
    }
    let algorithm = Algorithm::of(&key.kind, args.hash.as_deref())?;
    let (digest, identifier) = x509::cms::digest(algorithm.hash())?;
    let value = digest_of(session, digest, payload)?;
    let again = key.always_authenticate.then_some(pin);
    let how = How { algorithm, session, key: signing_part(key)?, again };
    let chain: Vec<&[u8]> = chain.collect();
    let text = pem("PKCS7", &x509::cms::detached(&chain, (&identifier, &value), how)?);
    let json = json!({
        "key": opened.uri(),
        "certificate": own.uri(&token.uri()).to_string(),
        "format": "cms",
        "signature": text,
    });
    let report = Report { json, ..Report::default() };
    payload::write_beside(&app.output, args.output.as_deref(), text.as_bytes(), &report)
}

fn signing_part(key: &Key) -> Result<ObjectHandle> {
    let part = key.part(Class::Private).or_else(|| key.part(Class::Secret));
    part.ok_or_else(|| {
        Failure::not_found(format!("the token has only the public half of key '{}'", key.label))
    })
}

fn sign(
    session: &Session,
    scheme: &Scheme,
    key: ObjectHandle,
    again: Option<&Secret>,
    payload: &mut Payload,
) -> Result<Vec<u8>> {
    let init = || -> Result<()> {
        session.sign_init(&scheme.mechanism, key)?;
        again.map_or(Ok(()), |pin| session.login(User::ContextSpecific, pin.expose()))?;
        Ok(())
    };
    if scheme.one_shot {
        let data = payload.all()?;
        scheme.check_length(data.len())?;
        init()?;
        return Ok(session.sign_initialized(&data)?);
    }
    if let Some(digest) = scheme.digest {
        let digest = digest_of(session, digest, payload)?;
        init()?;
        return Ok(session.sign_initialized(&digest)?);
    }
    init()?;
    let mut signature = Vec::new();
    let whole = |data: &[u8]| {
        signature = session.sign_initialized(data)?;
        Ok(())
    };
    if payload.feed(whole, |data| Ok(session.sign_update(data)?))? {
        return Ok(signature);
    }
    Ok(session.sign_final()?)
}

/// The token digests the data.
pub(crate) fn digest_of(
    session: &Session,
    mechanism: ck::CK_MECHANISM_TYPE,
    payload: &mut Payload,
) -> Result<Vec<u8>> {
    session.digest_init(&mechanism.into())?;
    let update = |data: &[u8]| Ok(session.digest_update(data)?);
    payload.feed(update, update)?;
    Ok(session.digest_final()?)
}

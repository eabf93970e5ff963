// SPDX-License-Identifier: Apache-2.0
//! `metaslot verify`

use super::arguments::UserArg;
use super::payload::Payload;
use super::pss::PssArg;
use super::sign::digest_of;
use crate::app::App;
use crate::encoding::{der, from_base64};
use crate::failure::{Exit, Failure, Result};
use crate::key::{self, Key};
use crate::output::Report;
use crate::scheme::Scheme;
use crate::uri::{Class, Uri};
use metaslot_ck::{Error, ObjectHandle};
use metaslot_client::{Access, Session};
use serde_json::{Value, json};
use std::path::PathBuf;

const EXAMPLES: &str = "\
Examples:
  metaslot verify --key site --in release.tar --signature release.tar.sig";

/// Arguments of `verify`.
#[derive(clap::Args, Debug)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Args {
    /// The key: a PKCS#11 URI or its label
    #[arg(long, value_name = "URI|LABEL")]
    key: String,
    /// The signature, in any form that 'metaslot sign' writes
    #[arg(long, short, value_name = "FILE")]
    signature: PathBuf,
    /// The mechanism, as for 'metaslot sign'
    #[arg(long, short, value_name = "NAME")]
    mechanism: Option<String>,
    /// The hash, as for 'metaslot sign'
    #[arg(long, value_name = "NAME")]
    hash: Option<String>,
    #[command(flatten)]
    pss: PssArg,
    /// The data that was signed [default: standard input]
    #[arg(long = "in", short, value_name = "FILE")]
    input: Option<PathBuf>,
    #[command(flatten)]
    user: UserArg,
}

pub(crate) fn run(app: &App, args: &Args) -> Result<()> {
    let uri = args.user.key(&args.key)?;
    let login = args.user.login_with(app, &uri)?;
    let mut payload = Payload::open(args.input.as_deref())?.shown(app.output);
    let signature = Payload::short(Some(&args.signature))?;
    let token = login.token.uri();
    // The public half of a pair is there without a login; a secret key is not.
    let mut session = app.host(&uri)?.module().open_session(login.token.slot, Access::ReadOnly)?;
    let mut keys = key::search(&session, &uri)?;
    if keys.iter().all(|key| verifying_part(key).is_none()) {
        session = app.log_in(&login, Access::ReadOnly)?.0;
        keys = key::search(&session, &uri)?;
    }
    let (key, handle) = chosen(keys, &uri, &token)?;
    let offered = session.module().mechanisms(login.token.slot)?;
    let (mechanism, hash) = (args.mechanism.as_deref(), args.hash.as_deref());
    let scheme = Scheme::choose(&key.kind, mechanism, hash, &offered)?;
    let scheme = args.pss.applied(scheme, &key.kind)?;
    let signature = raw(signature, &scheme);
    let name = key.uri(&token).to_string();
    match verify(&session, &scheme, handle, &signature, &mut payload) {
        Ok(()) => {}
        Err(failure) if is_invalid(&failure) => {
            if app.output.json {
                app.output
                    .print(&Report { json: json(false, &name, &scheme), ..Report::default() })?;
            }
            let failure = Failure::new(Exit::Invalid, "the signature is not valid");
            return Err(failure.hint(format!("checked with {} and {name}", scheme.name())));
        }
        Err(failure) => return Err(failure),
    }
    app.output.print(&Report {
        text: format!("valid: {} by {name}\n", scheme.name()),
        json: json(true, &name, &scheme),
        uris: vec![name],
    })
}

/// The stable form for programs, whatever the outcome.
fn json(valid: bool, key: &str, scheme: &Scheme) -> Value {
    json!({"valid": valid, "key": key, "mechanism": scheme.name()})
}

fn verifying_part(key: &Key) -> Option<ObjectHandle> {
    key.part(Class::Public).or_else(|| key.part(Class::Secret))
}

fn chosen(keys: Vec<Key>, uri: &Uri, token: &Uri) -> Result<(Key, ObjectHandle)> {
    let key = key::only(keys, uri, token)?;
    match verifying_part(&key) {
        Some(handle) => Ok((key, handle)),
        None => {
            Err(Failure::not_found(format!("the token has no public half of key '{}'", key.label)))
        }
    }
}

/// The form that PKCS#11 takes, from any that [`super::sign`] writes.
fn raw(signature: Vec<u8>, scheme: &Scheme) -> Vec<u8> {
    let signature = from_base64(&signature).unwrap_or(signature);
    if scheme.number == 0 {
        return signature;
    }
    der::raw_signature(&signature, scheme.number).unwrap_or(signature)
}

fn is_invalid(failure: &Failure) -> bool {
    matches!(failure.code(), Some(Error::SIGNATURE_INVALID | Error::SIGNATURE_LEN_RANGE))
}

fn verify(
    session: &Session,
    scheme: &Scheme,
    key: ObjectHandle,
    signature: &[u8],
    payload: &mut Payload,
) -> Result<()> {
    let data = match (scheme.one_shot, scheme.digest) {
        (true, _) => Some(payload.all()?),
        (false, Some(digest)) => Some(digest_of(session, digest, payload)?),
        (false, None) => None,
    };
    if let (Some(data), true) = (&data, scheme.one_shot) {
        scheme.check_length(data.len())?;
    }
    session.verify_init(&scheme.mechanism, key)?;
    if let Some(data) = data {
        return Ok(session.verify_initialized(&data, signature)?);
    }
    let whole = |data: &[u8]| Ok(session.verify_initialized(data, signature)?);
    if payload.feed(whole, |data| Ok(session.verify_update(data)?))? {
        return Ok(());
    }
    Ok(session.verify_final(signature)?)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::encoding::base64;

    #[test]
    fn every_form_of_a_signature_is_read() {
        let kind = "ec:p256".parse().unwrap();
        let scheme = Scheme::choose(&kind, None, None, &[]).unwrap();
        let plain = [7; 64];
        let der = der::signature(&plain);
        for form in
            [plain.to_vec(), der.clone(), base64(&der).into_bytes(), base64(&plain).into_bytes()]
        {
            assert_eq!(raw(form, &scheme), plain);
        }
        assert_eq!(raw(vec![1, 2, 3], &scheme), [1, 2, 3]);
    }
}

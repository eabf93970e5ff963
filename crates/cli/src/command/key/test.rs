// SPDX-License-Identifier: Apache-2.0
//! `metaslot key test`

use crate::app::App;
use crate::command::arguments::{Opened, UserArg};
use crate::command::encapsulate;
use crate::failure::{Failure, Result};
use crate::key::{self, Family, Key};
use crate::output::Report;
use crate::scheme::Scheme;
use crate::uri::Class;
use metaslot_ck::*;
use metaslot_client::{Access, Mechanism, Params, Session, Template, User};
use metaslot_memory::Secret;
use serde_json::json;

/// Arguments of `key test`.
#[derive(clap::Args, Debug)]
pub(crate) struct Args {
    /// The key: a PKCS#11 URI or its label
    #[arg(value_name = "URI|LABEL")]
    key: String,
    #[command(flatten)]
    user: UserArg,
}

/// What was done, and by which mechanism.
type Done = (&'static str, String);

pub(crate) fn run(app: &App, args: &Args) -> Result<()> {
    let opened = args.user.open::<Key>(app, &args.key, Access::ReadOnly)?;
    let Opened { session, pin, token, it: key, .. } = &opened;
    let usages = key.usages.names();
    let (what, mechanism) = if usages.contains(&"sign") {
        let offered = session.module().mechanisms(token.slot)?;
        signs(session, key, &offered, pin)?
    } else if usages.contains(&"encrypt") && key.kind.family == Family::Aes {
        encrypts(session, key)?
    } else if usages.contains(&"encapsulate") {
        encapsulates(session, key)?
    } else {
        let message = match usages.as_slice() {
            [] => String::from("a key that may be used for nothing cannot be tested"),
            _ => format!("{} keys for {} cannot be tested", key.kind, usages.join(", ")),
        };
        return Err(Failure::failed(message)
            .hint("keys that sign, pairs that decapsulate, and AES keys that encrypt can"));
    };
    let name = opened.uri();
    app.output.print(&Report {
        text: format!("works: {what} by {mechanism} with {name}\n"),
        json: json!({"works": true, "done": what, "mechanism": mechanism, "key": name}),
        uris: vec![name],
    })
}

/// A message of this command's own: no one can ask for a signature of something else by it.
const MESSAGE: &[u8] = b"metaslot key test: this text says nothing";

fn signs(
    session: &Session,
    key: &Key,
    offered: &[CK_MECHANISM_TYPE],
    pin: &Secret,
) -> Result<Done> {
    let missing =
        || Failure::not_found(format!("the token has only the public half of '{}'", key.label));
    let signer =
        key.part(Class::Private).or_else(|| key.part(Class::Secret)).ok_or_else(missing)?;
    let scheme = scheme(session, key, signer, offered)?;
    let data = match scheme.digest {
        Some(digest) => session.digest(&digest.into(), MESSAGE)?,
        None => MESSAGE.to_vec(),
    };
    session
        .sign_init(&scheme.mechanism, signer)
        .map_err(|error| key::limited(session, key, signer, error.into()))?;
    if key.always_authenticate {
        session.login(User::ContextSpecific, pin.expose())?;
    }
    let signature = session.sign_initialized(&data)?;
    let Some(verifier) = key.part(Class::Public).or_else(|| key.part(Class::Secret)) else {
        return Ok(("signed (the token has no public half to verify with)", scheme.name()));
    };
    session.verify(&scheme.mechanism, verifier, &data, &signature)?;
    Ok(("signed and verified", scheme.name()))
}

/// The usual way to sign; of a key that is limited to others the first of them that wants no more said.
fn scheme(
    session: &Session,
    key: &Key,
    signer: ObjectHandle,
    offered: &[CK_MECHANISM_TYPE],
) -> Result<Scheme> {
    let usual = Scheme::choose(&key.kind, None, None, offered)?;
    let only = key::only_mechanisms(session, signer);
    if only.is_empty() || only.contains(&usual.name()) {
        return Ok(usual);
    }
    let named = |name: &String| Scheme::choose(&key.kind, Some(name), None, offered).ok();
    Ok(only.iter().find_map(named).unwrap_or(usual))
}

/// Both sides' secrets are the same if their MACs are: no value has to be readable for that.
fn encapsulates(session: &Session, key: &Key) -> Result<Done> {
    let half = |class| {
        let missing =
            || Failure::not_found(format!("the token has one half of '{}' only", key.label));
        key.part(class).ok_or_else(missing)
    };
    let (public, private) = (half(Class::Public)?, half(Class::Private)?);
    let template = Template::new().class(CKO_SECRET_KEY).key_type(CKK_GENERIC_SECRET);
    let template = template.token(false).ulong(CKA_VALUE_LEN, 32).bool(CKA_SIGN, true);
    let mechanism = encapsulate::mechanism(&key.kind, &key.label)?;
    let (ciphertext, ours) = session.encapsulate(&mechanism, public, &template)?;
    let theirs = session.decapsulate(&mechanism, private, &ciphertext, &template)?;
    let mac = |secret| session.sign(&CKM_SHA256_HMAC.into(), secret, MESSAGE);
    match mac(ours)? == mac(theirs)? {
        true => {
            let by = mechanism_name(mechanism.number).unwrap_or_default();
            Ok(("encapsulated and decapsulated", by.to_owned()))
        }
        false => Err(Failure::failed("what was decapsulated is not what was encapsulated")),
    }
}

fn encrypts(session: &Session, key: &Key) -> Result<Done> {
    let missing = || Failure::not_found(format!("'{}' is no secret key", key.label));
    let handle = key.part(Class::Secret).ok_or_else(missing)?;
    let mut iv = [0; 16];
    session.random(&mut iv)?;
    let mechanism = Mechanism::with(CKM_AES_CBC_PAD, Params::Bytes(&iv));
    let sealed = session.encrypt(&mechanism, handle, MESSAGE)?;
    let opened = session.decrypt(&mechanism, handle, &sealed)?;
    match opened == MESSAGE {
        true => Ok(("encrypted and decrypted", String::from("CKM_AES_CBC_PAD"))),
        false => Err(Failure::failed("what was decrypted is not what was encrypted")),
    }
}

// SPDX-License-Identifier: Apache-2.0
//! `pktool list` and `pktool delete`

use super::arguments::{Args, token};
use crate::app::App;
use crate::failure::{Failure, Result};
use crate::key::{self, Family, Key};
use crate::output;
use crate::personality::operands::{Choice, Operands};
use crate::pin;
use crate::uri::{Class, Uri};
use metaslot_client::{Access, Session};

/// `objtype=`, and the classes of keys that each value means; `CERTIFICATES` are not shown yet.
pub(super) const TYPES: &[Choice] = &[
    Choice("private", None),
    Choice("public", None),
    Choice("both", None),
    Choice("key", None),
    Choice("key:private", None),
    Choice("key:public", None),
    Choice("key:both", None),
    Choice("cert", Some(CERTIFICATES)),
    Choice("cert:private", Some(CERTIFICATES)),
    Choice("cert:public", Some(CERTIFICATES)),
    Choice("cert:both", Some(CERTIFICATES)),
    Choice("crl", Some(CRL)),
];

pub(super) const CERTIFICATES: &str = "this command does not make or show certificates: 'openssl x509' with a provider for PKCS#11 does";
pub(super) const CRL: &str = "a revocation list is a file: 'openssl crl' shows it";

/// The classes of keys in the order in which they come, and the original's names for them: in a list, and
/// in a question.
const CLASSES: [(Class, &str, &str); 3] = [
    (Class::Private, "asymmetric private", "private"),
    (Class::Secret, "symmetric", "symmetric"),
    (Class::Public, "asymmetric public", "public"),
];

fn classes(objtype: Option<&str>, otherwise: &'static [Class]) -> &'static [Class] {
    match objtype {
        None => otherwise,
        Some("private" | "key:private") => &[Class::Private, Class::Secret],
        Some("public" | "key:public") => &[Class::Public],
        Some(_) => &[Class::Private, Class::Secret, Class::Public],
    }
}

pub(super) fn list(app: &App, args: &Args, operands: &Operands<'_>) -> Result<()> {
    let wanted = classes(operands.value("objtype"), &[Class::Public]);
    let session = match wanted {
        [Class::Public] => {
            let uri = token(operands)?;
            let slot = app.token(&uri)?.slot;
            app.host(&uri)?.module().open_session(slot, Access::ReadOnly)?
        }
        _ => args.log_in(app, operands, Access::ReadOnly)?.0,
    };
    let keys = labelled(&session, operands)?;
    let mut text = String::new();
    for (class, name, _) in CLASSES.iter().filter(|row| wanted.contains(&row.0)) {
        let its: Vec<&Key> = keys.iter().filter(|key| key.part(*class).is_some()).collect();
        if !its.is_empty() {
            text += &format!("Found {} {name} keys.\n", its.len());
        }
        for (at, key) in its.iter().enumerate() {
            text += &format!("Key #{} - {}\n", at + 1, described(key, *class));
        }
    }
    output::write_out(text.as_bytes())
}

pub(super) fn delete(app: &App, args: &Args, operands: &Operands<'_>) -> Result<()> {
    let every = &[Class::Private, Class::Secret, Class::Public];
    let wanted = classes(operands.value("objtype"), every);
    let (session, _) = args.log_in(app, operands, Access::ReadWrite)?;
    let keys = labelled(&session, operands)?;
    let mut found = false;
    for (class, _, name) in CLASSES.iter().filter(|row| wanted.contains(&row.0)) {
        let handles: Vec<_> = keys.iter().filter_map(|key| key.part(*class)).collect();
        found |= !handles.is_empty();
        if handles.is_empty() || !confirmed(args, handles.len(), name)? {
            continue;
        }
        for handle in handles {
            session.destroy(handle)?;
        }
    }
    match found {
        true => Ok(()),
        false => Err(Failure::not_found("no matching key was found")),
    }
}

fn confirmed(args: &Args, number: usize, name: &str) -> Result<bool> {
    if args.yes {
        return Ok(true);
    }
    if !pin::is_interactive() {
        return Err(Failure::failed("no terminal to ask on whether to delete keys")
            .hint("--yes deletes them without asking"));
    }
    pin::confirm(&format!("{number} {name} key(s) found, do you want to delete them?"))
}

fn labelled(session: &Session, operands: &Operands<'_>) -> Result<Vec<Key>> {
    let object = operands.value("label").map(str::to_owned);
    key::search(session, &Uri { object, ..Uri::default() })
}

/// As the original describes a key.
fn described(key: &Key, class: Class) -> String {
    let family = match key.kind.family {
        Family::Aes => "AES",
        Family::Rc4 => "ARCFOUR",
        Family::Des2 | Family::Des3 => "Triple-DES",
        Family::Rsa => "RSA",
        Family::Ec => "EC",
        Family::Ed25519 => "Ed25519",
        Family::X25519 => "X25519",
        Family::ChaCha20 => "ChaCha20",
        Family::Generic | Family::Other => "GENERIC",
    };
    let label = if key.label.is_empty() { "No label" } else { &key.label };
    let bits = if key.kind.family == Family::Generic { key.kind.size * 8 } else { key.kind.size };
    match (class, key.sensitive, key.extractable) {
        (Class::Private, ..) => format!("{family} private key:  {label}"),
        (Class::Public, ..) => format!("{family} public key:  {label}"),
        (_, Some(true), _) => format!("{family}:  {label} (sensitive)"),
        (_, _, Some(false)) => format!("{family}:  {label} (non-extractable)"),
        _ => format!("{family}:  {label} ({bits} bits)"),
    }
}

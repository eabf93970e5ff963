// SPDX-License-Identifier: Apache-2.0
//! `pktool list` and `pktool delete`

use super::arguments::Args;
use super::certificates;
use crate::app::App;
use crate::encoding::printable;
use crate::failure::{Failure, Result};
use crate::key::{self, Family, Key};
use crate::output;
use crate::personality::operands::{Choice, Operands};
use crate::pin;
use crate::uri::{Class, Uri};
use metaslot_client::{Access, Session};

/// `objtype=`
pub(super) const TYPES: &[Choice] = &[
    Choice("private", None),
    Choice("public", None),
    Choice("both", None),
    Choice("key", None),
    Choice("key:private", None),
    Choice("key:public", None),
    Choice("key:both", None),
    Choice("cert", None),
    Choice("cert:private", None),
    Choice("cert:public", None),
    Choice("cert:both", None),
    Choice("crl", Some(CRL)),
];

pub(super) const CRL: &str = "a revocation list is a file: 'openssl crl' shows it";

/// The classes of keys in the order in which they come, and the original's names for them: in a list, and
/// in a question.
const CLASSES: [(Class, &str, &str); 3] = [
    (Class::Private, "asymmetric private", "private"),
    (Class::Secret, "symmetric", "symmetric"),
    (Class::Public, "asymmetric public", "public"),
];

/// What is looked for: these classes of keys, and whether certificates.
type Wanted = (&'static [Class], bool);

const EVERYTHING: Wanted = (&[Class::Private, Class::Secret, Class::Public], true);

/// An operand that only certificates have says that it is one.
fn wanted(operands: &Operands<'_>, otherwise: Wanted) -> Result<Wanted> {
    let certificate = certificates::FILTERS.iter().find(|name| operands.has(name));
    let wanted: Wanted = match (operands.value("objtype"), certificate) {
        (None, None) => otherwise,
        (None, Some(_)) => (&[], true),
        (Some("private" | "key:private"), _) => (&[Class::Private, Class::Secret], false),
        (Some("public"), _) => (&[Class::Public], true),
        (Some("key:public"), _) => (&[Class::Public], false),
        (Some("both"), _) => EVERYTHING,
        (Some(key), _) if key.starts_with("key") => (EVERYTHING.0, false),
        (Some(_), _) => (&[], true),
    };
    match certificate {
        Some(name) if !wanted.0.is_empty() => {
            Err(Failure::usage(format!("{name}= is for objtype=cert")))
        }
        _ => Ok(wanted),
    }
}

pub(super) fn list(app: &App, args: &Args, operands: &Operands<'_>) -> Result<()> {
    let (classes, certificates) = wanted(operands, (&[Class::Public], true))?;
    let session = match classes.contains(&Class::Private) {
        false => args.session(app, operands)?,
        true => args.log_in(app, operands, Access::ReadOnly)?.0,
    };
    let keys = labelled(&session, operands)?;
    let mut text = String::new();
    for (class, name, _) in CLASSES.iter().filter(|row| classes.contains(&row.0)) {
        let its: Vec<&Key> = keys.iter().filter(|key| key.part(*class).is_some()).collect();
        if !its.is_empty() {
            text += &format!("Found {} {name} keys.\n", its.len());
        }
        for (at, key) in its.iter().enumerate() {
            text += &format!("Key #{} - {}\n", at + 1, described(key, *class));
        }
    }
    if certificates {
        text += &certificates::listed(&certificates::find(&session, operands)?);
    }
    output::write_out(text.as_bytes())
}

pub(super) fn delete(app: &App, args: &Args, operands: &Operands<'_>) -> Result<()> {
    let (classes, certificates) = wanted(operands, EVERYTHING)?;
    let (session, _) = args.log_in(app, operands, Access::ReadWrite)?;
    let keys = labelled(&session, operands)?;
    let mut all = Vec::new();
    for (class, _, name) in CLASSES.iter().filter(|row| classes.contains(&row.0)) {
        let handles: Vec<_> = keys.iter().filter_map(|key| key.part(*class)).collect();
        all.push((handles, format!("{name} key(s)")));
    }
    if certificates {
        let found = certificates::find(&session, operands)?;
        let handles = found.iter().map(|certificate| certificate.handle).collect();
        all.push((handles, "certificate(s)".to_owned()));
    }
    all.retain(|(handles, _)| !handles.is_empty());
    if all.is_empty() {
        return Err(Failure::not_found("nothing that matches was found"));
    }
    for (handles, what) in all {
        if confirmed(args, handles.len(), &what)? {
            handles.into_iter().try_for_each(|handle| session.destroy(handle))?;
        }
    }
    Ok(())
}

fn confirmed(args: &Args, number: usize, what: &str) -> Result<bool> {
    if args.yes {
        return Ok(true);
    }
    if !pin::is_interactive() {
        return Err(Failure::failed("no terminal to ask on whether to delete")
            .hint("--yes deletes without asking"));
    }
    pin::confirm(&format!("{number} {what} found, do you want to delete them?"))
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
        Family::Dh => "Diffie-Hellman",
        Family::Dsa => "DSA",
        Family::Rsa => "RSA",
        Family::Ec => "EC",
        Family::Edwards if key.kind.size == 57 => "Ed448",
        Family::Edwards => "Ed25519",
        Family::MlDsa => "ML-DSA",
        Family::MlKem => "ML-KEM",
        Family::Hss => "HSS",
        Family::Xmss => "XMSS",
        Family::Xmssmt => "XMSS^MT",
        Family::SlhDsa => "SLH-DSA",
        Family::Montgomery if key.kind.size == 56 => "X448",
        Family::Montgomery => "X25519",
        Family::ChaCha20 => "ChaCha20",
        Family::Hotp => "HOTP",
        Family::Generic | Family::Old | Family::Other => "GENERIC",
    };
    let label = if key.label.is_empty() { "No label" } else { &printable(&key.label) };
    let bits = if key.kind.family == Family::Generic { key.kind.size * 8 } else { key.kind.size };
    match (class, key.sensitive, key.extractable) {
        (Class::Private, ..) => format!("{family} private key:  {label}"),
        (Class::Public, ..) => format!("{family} public key:  {label}"),
        (_, Some(true), _) => format!("{family}:  {label} (sensitive)"),
        (_, _, Some(false)) => format!("{family}:  {label} (non-extractable)"),
        _ => format!("{family}:  {label} ({bits} bits)"),
    }
}

// SPDX-License-Identifier: Apache-2.0
//! `pktool genkey` and `pktool genkeypair`

use super::arguments::{Args, key_length, yes};
use crate::app::App;
use crate::failure::{Failure, Result};
use crate::key::{self, Key, Kind, Order};
use crate::output;
use crate::personality::operands::{Choice, Operands};
use crate::uri::Class;
use metaslot_client::{Access, Session, Template};
use metaslot_memory::Secret;

/// `keytype=` of secret keys.
pub(super) const SECRETS: &[Choice] = &[
    Choice("aes", None),
    Choice("3des", None),
    Choice("arcfour", None),
    Choice("generic", None),
    Choice("des", Some("there is no single DES here; aes does its work")),
];

/// `keytype=` of pairs.
pub(super) const PAIRS: &[Choice] = &[
    Choice("rsa", None),
    Choice("ec", None),
    Choice("dsa", Some("there is no DSA here; ec does its work")),
];

/// The original's names of curves, and ours.
const CURVES: &[(&str, &str)] = &[
    ("secp224r1", "p224"),
    ("secp256k1", "secp256k1"),
    ("secp256r1", "p256"),
    ("secp384r1", "p384"),
    ("secp521r1", "p521"),
    ("prime256v1", "p256"),
    ("sect163k1", "sect163k1"),
    ("sect163r1", "sect163r1"),
    ("sect163r2", "sect163r2"),
    ("sect233k1", "sect233k1"),
    ("sect233r1", "sect233r1"),
    ("sect283k1", "sect283k1"),
    ("sect283r1", "sect283r1"),
    ("sect409k1", "sect409k1"),
    ("sect409r1", "sect409r1"),
    ("sect571k1", "sect571k1"),
    ("sect571r1", "sect571r1"),
];

/// A secret key's type, of so many bits.
pub(super) fn secret_kind(keytype: &str, bits: Option<usize>) -> Result<Kind> {
    let name = match (keytype, bits) {
        ("3des", _) => "des3".to_owned(),
        (_, None) => {
            let message = "keylen= is missing: aes, arcfour and generic keys have any of several";
            return Err(Failure::usage(message));
        }
        ("aes", Some(bits)) => format!("aes:{bits}"),
        ("arcfour", Some(bits)) => format!("rc4:{bits}"),
        (_, Some(bits)) => format!("generic:{}", bits / 8),
    };
    name.parse().map_err(Failure::usage)
}

/// A pair's type.
pub(super) fn pair_kind(operands: &Operands<'_>) -> Result<Kind> {
    let name = match (operands.value("keytype"), operands.value("curve")) {
        (Some("ec"), None) => return Err(Failure::usage("curve= is missing")),
        (Some("ec"), Some(curve)) => {
            let row = CURVES.iter().find(|row| row.0 == curve);
            let unknown = || Failure::usage(format!("there is no curve '{curve}'"));
            let row =
                row.ok_or_else(|| unknown().hint("'pktool genkeypair listcurves' lists them"));
            format!("ec:{}", row?.1)
        }
        (_, Some(_)) => return Err(Failure::usage("curve= is for keytype=ec")),
        (_, None) => format!("rsa:{}", key_length(operands)?.unwrap_or(2048)),
    };
    name.parse().map_err(Failure::usage)
}

pub(super) fn genkey(app: &App, args: &Args, operands: &Operands<'_>) -> Result<()> {
    let label = operands.needed("label")?;
    let kind = secret_kind(operands.value("keytype").unwrap_or("generic"), key_length(operands)?)?;
    let (sensitive, extractable) =
        (yes(operands, "sensitive", false), yes(operands, "extractable", true));
    let (session, _) = args.log_in(app, operands, Access::ReadWrite)?;
    let made = made(&session, label, &kind, sensitive, extractable)?;
    match (yes(operands, "print", false), sensitive || !extractable) {
        (false, _) => Ok(()),
        (true, true) => {
            app.output
                .note("warning: the value of a sensitive or non-extractable key is not shown");
            Ok(())
        }
        (true, false) => {
            let handle = made.iter().find_map(|key| key.part(Class::Secret));
            let handle = handle.ok_or_else(|| Failure::failed("the new key is not to be found"))?;
            output::write_out(b"\tKey Value =\"")?;
            output::write_out(digits(&key::value(&session, handle)?).expose())?;
            output::write_out(b"\"\n")
        }
    }
}

/// In hexadecimal.
fn digits(value: &Secret) -> Secret {
    let mut text = Secret::zeroed(2 * value.len());
    for (byte, pair) in value.expose().iter().zip(text.expose_mut().chunks_exact_mut(2)) {
        pair.copy_from_slice(
            &[byte >> 4, byte & 15].map(|digit| b"0123456789abcdef"[usize::from(digit)]),
        );
    }
    text
}

pub(super) fn genkeypair(app: &App, args: &Args, operands: &Operands<'_>) -> Result<()> {
    if operands.has("listcurves") {
        return list_curves();
    }
    let label = operands.needed("label")?;
    let kind = pair_kind(operands)?;
    let (session, _) = args.log_in(app, operands, Access::ReadWrite)?;
    made(&session, label, &kind, true, false).map(drop)
}

pub(super) fn list_curves() -> Result<()> {
    let names: Vec<&str> = CURVES.iter().map(|curve| curve.0).collect();
    let lines: Vec<String> = names.chunks(5).map(|names| names.join(", ")).collect();
    let text = format!("Supported ECC curve names:\n{}\n", lines.join(",\n"));
    output::write_out(text.as_bytes())
}

/// A new key in the session's token.
pub(super) fn made(
    session: &Session,
    label: &str,
    kind: &Kind,
    sensitive: bool,
    extractable: bool,
) -> Result<Vec<Key>> {
    let slot = session.info()?.slot;
    let order = Order {
        label,
        kind,
        id: None,
        usages: None,
        sensitive,
        extractable,
        same_label: true,
        limits: Template::new(),
    };
    key::make(session, slot, order)
}

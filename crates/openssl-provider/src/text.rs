// SPDX-License-Identifier: Apache-2.0
//! A key in words, as `openssl pkey -text` shows it.

use crate::abi::Answer;
use crate::key::{Key, Private};
use crate::kind::Form;
use crate::pss::{Pss, SALT_OF_SHA1};
use crate::public::{Public, group};
use metaslot_ck::{CKA_PRIME, CKA_SUBPRIME, CKK_ML_KEM, CKM_SHA_1};
use metaslot_spi::curves::Curve;
use std::fmt::Write as _;

/// Bytes in a line.
const LINE: usize = 15;

/// What OpenSSL calls the parts of a private RSA key.
const RSA: [(&str, &str); 6] = [
    ("d", "privateExponent:"),
    ("rsa-factor1", "prime1:"),
    ("rsa-factor2", "prime2:"),
    ("rsa-exponent1", "exponent1:"),
    ("rsa-exponent2", "exponent2:"),
    ("rsa-coefficient1", "coefficient:"),
];

/// A key as OpenSSL shows its own; of one in a token its kind, where it is, and its public half.
pub(crate) fn of(key: &Key, with_private: bool) -> String {
    let mut text = String::new();
    let parts = key.parts().filter(|_| with_private);
    let parts: Vec<_> = parts.iter().flat_map(|parts| parts.named(key.kind)).collect();
    let half = match &key.private {
        Some(Private::Named(_)) if with_private => "Private-Key in a token",
        Some(Private::Own(_)) if with_private => "Private-Key",
        _ => "Public-Key",
    };
    let (kind, bits) = (key.kind.text(), key.public.bits(key.kind));
    let kind = if kind == "DHX" { "DH" } else { kind };
    let value_name = if kind == "DSA" { "pub: " } else { "public-key:" };
    // OpenSSL says the kind of the others.
    let is_named = !matches!(key.public, Public::Number(_)) && kind != "DH";
    let is_named = is_named && !half.ends_with("token");
    let kind = if is_named { String::new() } else { format!("{kind} ") };
    let is_kem = key.kind.key_type == CKK_ML_KEM;
    let primes = if parts.len() > 1 { 2 } else { 0 };
    // Writing into a string does not fail.
    match &key.public {
        Public::Number(_) => writeln!(text, "{kind}{half}:"),
        Public::Rsa { .. } if !parts.is_empty() => {
            writeln!(text, "{kind}{half}: ({bits} bit, {primes} primes)")
        }
        _ => writeln!(text, "{kind}{half}: ({bits} bit)"),
    }
    .ok();
    if let Some(uri) = key.uri().filter(|_| with_private) {
        writeln!(text, "URI: {}", uri.key_part()).ok();
    }
    if !matches!(key.public, Public::Rsa { .. }) {
        // A seed comes before what is made of it.
        for (name, part) in parts.iter().rev() {
            let name = if is_kem && *name == "priv" { "dk" } else { *name };
            lines(&mut text, &format!("{name}:"), part);
        }
    }
    match &key.public {
        Public::Rsa { modulus, exponent } => {
            let names = ["Modulus:", "Exponent:", "modulus:", "publicExponent:"];
            let names = &names[if parts.is_empty() { 0 } else { 2 }..];
            number(&mut text, names[0], modulus);
            number(&mut text, names[1], exponent);
            for (name, part) in &parts {
                let shown = RSA.iter().find(|row| row.0 == *name).map_or(*name, |row| row.1);
                number(&mut text, shown, part);
            }
            if matches!(key.kind.form, Form::Rsa { pss: true }) {
                restrictions(&mut text, key.pss);
            }
        }
        Public::Ec { curve, point } => {
            lines(&mut text, "pub:", point);
            named(&mut text, curve);
        }
        Public::Number(number) => lines(&mut text, if is_kem { "ek:" } else { "pub:" }, number),
        Public::Field { group, value } => {
            number(&mut text, value_name, value);
            if let Some(Answer::Text(name)) = key.public.answer(key.kind, b"group") {
                writeln!(text, "GROUP: {name}").ok();
                return text;
            }
            for (attribute, digits) in group {
                let name = match *attribute {
                    CKA_PRIME => "P:   ",
                    CKA_SUBPRIME => "Q:   ",
                    _ => "G:   ",
                };
                number(&mut text, name, digits);
            }
        }
    }
    text
}

/// What a key of RSA-PSS is for.
fn restrictions(text: &mut String, pss: Option<Pss>) {
    let Some(Pss { hash, mgf, salt }) = pss else {
        text.push_str("No PSS parameter restrictions\n");
        return;
    };
    let usual = |is: bool| if is { " (default)" } else { "" };
    let [of_hash, of_mgf] = [hash, mgf].map(|hash| usual(hash.digest == CKM_SHA_1));
    let (hash, mgf, of_salt) = (hash.names[0], mgf.names[0], usual(salt == SALT_OF_SHA1));
    writeln!(
        text,
        "PSS parameter restrictions:\n  Hash Algorithm: {hash}{of_hash}\n  Mask Algorithm: MGF1 with {mgf}{of_mgf}\n  \
         Minimum Salt Length: {salt}{of_salt}\n  Trailer Field: 0x1 (default)"
    )
    .ok();
}

/// What a key on a curve shares with others; nothing of other keys.
pub(crate) fn parameters(key: &Key) -> Option<String> {
    let Public::Ec { curve, .. } = &key.public else { return None };
    let mut text = format!("EC-Parameters: ({} bit)\n", key.public.bits(key.kind));
    named(&mut text, curve);
    Some(text)
}

/// A curve by its names.
fn named(text: &mut String, curve: &'static Curve) {
    writeln!(text, "ASN1 OID: {}", group(curve).to_string_lossy()).ok();
    let of_nist = |name: &&&str| ["P-", "K-", "B-"].iter().any(|one| name.starts_with(one));
    if let Some(name) = curve.others.iter().find(of_nist) {
        writeln!(text, "NIST CURVE: {name}").ok();
    }
}

/// A small one in its line, and a larger one as bytes that do not begin with a sign.
fn number(text: &mut String, name: &str, digits: &[u8]) {
    let zeros = digits.iter().take_while(|byte| **byte == 0).count();
    let digits = &digits[zeros..];
    if digits.len() <= size_of::<u64>() {
        let value = digits.iter().fold(0_u64, |sum, byte| sum << 8 | u64::from(*byte));
        writeln!(text, "{name} {value} (0x{value:x})").ok();
    } else {
        let zero: &[u8] = if digits[0] >= 0x80 { &[0] } else { &[] };
        lines(text, name, &[zero, digits].concat());
    }
}

fn lines(text: &mut String, name: &str, bytes: &[u8]) {
    text.push_str(name);
    for (place, byte) in bytes.iter().enumerate() {
        let before = if place % LINE == 0 { "\n    " } else { "" };
        let after = if place + 1 < bytes.len() { ":" } else { "" };
        write!(text, "{before}{byte:02x}{after}").ok();
    }
    text.push('\n');
}

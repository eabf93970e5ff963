// SPDX-License-Identifier: Apache-2.0
//! A key in words, as `openssl pkey -text` shows it.

use crate::key::{Key, Private};
use crate::public::{Public, group};
use metaslot_ck::{CKA_PRIME, CKA_SUBPRIME};
use std::fmt::Write as _;

/// Bytes in a line.
const LINE: usize = 15;

/// Its kind, where it is, and its public half.
pub(crate) fn of(key: &Key, with_private: bool) -> String {
    let mut text = String::new();
    let half = match &key.private {
        Some(Private::Named(_)) if with_private => "Private-Key in a token",
        Some(Private::Own(_)) if with_private => "Private-Key",
        _ => "Public-Key",
    };
    let kind = key.kind.text();
    let bits = key.public.bits(key.kind);
    // Writing into a string does not fail.
    writeln!(text, "{kind} {half}: ({bits} bit)").ok();
    if let Some(uri) = key.uri().filter(|_| with_private) {
        writeln!(text, "URI: {}", uri.key_part()).ok();
    }
    for (name, part) in
        key.parts().iter().filter(|_| with_private).flat_map(|parts| parts.named(key.kind))
    {
        lines(&mut text, &format!("{name}:"), part);
    }
    match &key.public {
        Public::Rsa { modulus, exponent } => {
            let zero: &[u8] =
                if modulus.first().is_some_and(|byte| *byte >= 0x80) { &[0] } else { &[] };
            lines(&mut text, "Modulus:", &[zero, modulus].concat());
            let digits = exponent.iter().map(|byte| format!("{byte:02x}")).collect::<String>();
            writeln!(text, "Exponent: 0x{}", digits.trim_start_matches('0')).ok();
        }
        Public::Ec { curve, point } => {
            lines(&mut text, "pub:", point);
            writeln!(text, "ASN1 OID: {}", group(curve).to_string_lossy()).ok();
        }
        Public::Number(number) => lines(&mut text, "pub:", number),
        Public::Field { group, value } => {
            lines(&mut text, "public-key:", value);
            for (attribute, number) in group {
                let name = match *attribute {
                    CKA_PRIME => "P:",
                    CKA_SUBPRIME => "Q:",
                    _ => "G:",
                };
                lines(&mut text, name, number);
            }
        }
    }
    text
}

fn lines(text: &mut String, name: &str, bytes: &[u8]) {
    text.push_str(name);
    text.push('\n');
    let count = bytes.chunks(LINE).len();
    for (place, line) in bytes.chunks(LINE).enumerate() {
        let line = line.iter().map(|byte| format!("{byte:02x}")).collect::<Vec<_>>().join(":");
        let end = if place + 1 < count { ":" } else { "" };
        writeln!(text, "    {line}{end}").ok();
    }
}

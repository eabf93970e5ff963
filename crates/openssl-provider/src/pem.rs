// SPDX-License-Identifier: Apache-2.0
//! PEM (RFC 7468) and what names a key in it: a SEQUENCE of a `VisibleString` that says what it is and a `UTF8String`, the URI. The form is
//! pkcs11-provider's, and of no standard.

use metaslot_spi::der::{Reader, only, tag};

/// What the lines of PEM say.
pub(crate) const LABEL: &str = "PKCS#11 PROVIDER URI";
/// What the first string says.
const VERSION: &[u8] = b"PKCS#11 Provider URI v1.0";
const VISIBLE_STRING: u8 = 0x1a;
const UTF8_STRING: u8 = 0x0c;

const ALPHABET: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

/// DER between lines of PEM.
pub(crate) fn written(label: &str, der: &[u8]) -> String {
    // It may be a secret, of which nothing is left behind where there is room for all.
    let mut text = String::with_capacity(der.len() * 3 / 2 + 2 * label.len() + 64);
    text.extend(["-----BEGIN ", label, "-----\n"]);
    for line in der.chunks(48) {
        for group in line.chunks(3) {
            let byte = |place: usize| u32::from(group.get(place).copied().unwrap_or_default());
            let number = byte(0) << 16 | byte(1) << 8 | byte(2);
            for place in 0..4 {
                let digit = (number >> (18 - 6 * place)) & 63;
                let is_digit = place <= group.len();
                text.push(if is_digit { char::from(ALPHABET[digit as usize]) } else { '=' });
            }
        }
        text.push('\n');
    }
    text.extend(["-----END ", label, "-----\n"]);
    text
}

/// The bytes of the lines between those of PEM.
pub(crate) fn decoded(text: &[u8]) -> Option<Vec<u8>> {
    let (mut bytes, mut group, mut digits) = (Vec::new(), 0_u32, 0);
    for character in text.iter().filter(|character| !character.is_ascii_whitespace()) {
        if *character == b'=' {
            continue;
        }
        let digit = ALPHABET.iter().position(|other| other == character)?;
        group = group << 6 | u32::try_from(digit).ok()?;
        digits += 1;
        if digits % 4 == 0 {
            bytes.extend_from_slice(&group.to_be_bytes()[1..]);
            group = 0;
        }
    }
    match digits % 4 {
        0 => {}
        2 => bytes.push(group.to_be_bytes()[2] << 4 | group.to_be_bytes()[3] >> 4),
        3 => bytes.extend_from_slice(&(group >> 2).to_be_bytes()[2..]),
        _ => return None,
    }
    Some(bytes)
}

/// The DER that names a key.
pub(crate) fn document(uri: &str) -> Vec<u8> {
    let element = |tag: u8, content: &[u8]| {
        let length = content.len().to_be_bytes();
        let length = &length[length.iter().take_while(|byte| **byte == 0).count().min(7)..];
        let head = match (content.len(), length) {
            (..0x80, _) => length.to_vec(),
            (_, bytes) => [&[0x80 | bytes.len().to_le_bytes()[0]], bytes].concat(),
        };
        [&[tag], &*head, content].concat()
    };
    let parts = [element(VISIBLE_STRING, VERSION), element(UTF8_STRING, uri.as_bytes())];
    element(tag::SEQUENCE, &parts.concat())
}

/// The URI in it.
pub(crate) fn uri(der: &[u8]) -> Option<&str> {
    let mut strings = Reader::new(only(der, tag::SEQUENCE).ok()?);
    if strings.element(VISIBLE_STRING).ok()? != VERSION {
        return None;
    }
    let uri = strings.element(UTF8_STRING).ok()?;
    strings.end().ok()?;
    str::from_utf8(uri).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_is_read() {
        for length in [1, 2, 3, 50, 90, 200, 300] {
            let text = "pkcs11:token=a;".repeat(length)[..length].to_owned();
            let der = document(&text);
            assert_eq!(uri(&der), Some(&*text));
            let pem = written(LABEL, &der);
            let body: Vec<_> = pem.lines().filter(|line| !line.starts_with('-')).collect();
            assert_eq!(decoded(body.join("\n").as_bytes()).as_ref(), Some(&der));
        }
        assert!(written(LABEL, &document("pkcs11:token=a")).starts_with("-----BEGIN PKCS#11 PROVIDER URI-----\nMCsaGVBLQ1MjMTEgUHJvdmlkZXIgVVJJIHYxLjAMDnBrY3MxMTp0b2tlbj1h\n"));
        assert_eq!(uri(b"\x30\x03\x1a\x01a"), None);
    }
}

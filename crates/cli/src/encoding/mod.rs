// SPDX-License-Identifier: Apache-2.0
//! Hexadecimal, base64, PEM and the little DER that signatures, keys and certificates need; and text for a terminal.

mod base64;
mod ber;
pub(crate) mod der;
mod pem;

pub(crate) use base64::{base64, from_base64, secret_from_base64};
pub(crate) use ber::definite;
pub(crate) use pem::{Block, blocks, der_of, pem};

/// Lower-case hexadecimal.
pub(crate) fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// From hexadecimal, with or without `0x` and colons; `None` when it is not.
pub(crate) fn from_hex(text: &str) -> Option<Vec<u8>> {
    let text = text.strip_prefix("0x").unwrap_or(text).replace(':', "");
    let digits = text.bytes().all(|c| c.is_ascii_hexdigit());
    if text.is_empty() || !text.len().is_multiple_of(2) || !digits {
        return None;
    }
    (0..text.len()).step_by(2).map(|at| u8::from_str_radix(&text[at..at + 2], 16).ok()).collect()
}

/// Text that another one may have written, in one line and without what a terminal obeys.
pub(crate) fn printable(text: &str) -> String {
    let mut printable = String::with_capacity(text.len());
    for character in text.chars() {
        match character {
            // Lines, and the direction of writing.
            '\u{200e}' | '\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{2069}' => {
                printable.extend(character.escape_default());
            }
            other if other.is_control() => printable.extend(other.escape_default()),
            other => printable.push(other),
        }
    }
    printable
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_terminal_is_not_commanded() {
        assert_eq!(printable("a\\b é\t\r\n\u{1b}[2J\u{9b}"), "a\\b é\\t\\r\\n\\u{1b}[2J\\u{9b}");
        assert_eq!(printable("\u{202e}gpj.exe\u{2028}"), "\\u{202e}gpj.exe\\u{2028}");
    }

    #[test]
    fn hexadecimal_goes_both_ways() {
        assert_eq!(hex(&[0, 0xab]), "00ab");
        assert_eq!(from_hex("00aB"), Some(vec![0, 0xab]));
        assert_eq!(from_hex("0x00:ab"), Some(vec![0, 0xab]));
        for bad in ["", "0", "0x", "zz", "+1", "é0"] {
            assert_eq!(from_hex(bad), None, "{bad}");
        }
    }
}

// SPDX-License-Identifier: Apache-2.0
//! Hexadecimal, base64, PEM and the little DER that signatures, keys and certificates need; and text for a terminal.

mod base64;
mod ber;
pub(crate) mod der;
mod pem;

pub(crate) use base64::{base64, from_base64, secret_from_base64};
pub(crate) use ber::definite;
pub(crate) use pem::{Block, blocks, der_of, pem};

use metaslot_memory::Secret;
use std::fmt::Display;

/// Lower-case hexadecimal.
pub(crate) fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// The same of a secret, as a line.
pub(crate) fn hex_line(secret: &Secret) -> Secret {
    const DIGITS: &[u8; 16] = b"0123456789abcdef";
    let mut line = Secret::zeroed(2 * secret.len() + 1);
    let (pairs, end) = line.expose_mut().as_chunks_mut::<2>();
    for (pair, byte) in pairs.iter_mut().zip(secret.expose()) {
        *pair = [byte >> 4, byte & 15].map(|digit| DIGITS[usize::from(digit)]);
    }
    end.fill(b'\n');
    line
}

/// A number without the zeros before it.
pub(crate) fn significant(number: &[u8]) -> &[u8] {
    let zeros = number.iter().take_while(|byte| **byte == 0).count();
    &number[zeros..]
}

/// From hexadecimal, with or without `0x` and colons; `None` when it is not.
pub(crate) fn from_hex(text: &str) -> Option<Vec<u8>> {
    secret_from_hex(text.as_bytes()).map(|bytes| bytes.expose().to_vec())
}

/// The same into protected memory.
pub(crate) fn secret_from_hex(text: &[u8]) -> Option<Secret> {
    let text = text.strip_prefix(b"0x").unwrap_or(text);
    let mut bytes = Secret::zeroed(text.len().div_ceil(2));
    let mut digits = 0;
    for character in text.iter().filter(|character| **character != b':') {
        let digit = u8::try_from(char::from(*character).to_digit(16)?).ok()?;
        bytes.expose_mut()[digits / 2] |= if digits % 2 == 0 { digit << 4 } else { digit };
        digits += 1;
    }
    (digits > 0 && digits.is_multiple_of(2)).then(|| bytes.truncated(digits / 2))
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

/// As one word of a shell's command.
pub(crate) fn word(text: impl Display) -> String {
    let text = text.to_string();
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "/._-+:@,%".contains(c);
    match !text.is_empty() && text.chars().all(is_plain) {
        true => text,
        false => format!("'{}'", text.replace('\'', r"'\''")),
    }
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
    fn a_shell_reads_one_word() {
        assert_eq!(word("/etc/metaslot/metaslot.toml"), "/etc/metaslot/metaslot.toml");
        for text in ["", "a b", "$(id)", "it's; id", "*", "~", "a\\b", "é"] {
            let command = format!("printf %s {}", word(text));
            let said = std::process::Command::new("sh").args(["-c", &command]).output().unwrap();
            assert_eq!(String::from_utf8(said.stdout).unwrap(), text);
        }
    }

    #[test]
    fn hexadecimal_goes_both_ways() {
        assert_eq!(hex(&[0, 0xab]), "00ab");
        assert_eq!(hex_line(&Secret::copy_of(&[0, 0xab])).expose(), b"00ab\n");
        assert_eq!(from_hex("00aB"), Some(vec![0, 0xab]));
        assert_eq!(from_hex("0x00:ab"), Some(vec![0, 0xab]));
        for bad in ["", "0", "0x", "zz", "+1", "é0"] {
            assert_eq!(from_hex(bad), None, "{bad}");
        }
    }
}

// SPDX-License-Identifier: Apache-2.0
//! Base64 (RFC 4648 §4). Reading takes the same time whatever the digits are: they may be a private key's.

use metaslot_memory::Secret;

const ALPHABET: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

/// One line, padded.
pub(crate) fn base64(bytes: &[u8]) -> String {
    let mut text = String::with_capacity(bytes.len().div_ceil(3) * 4);
    for group in bytes.chunks(3) {
        let padded = [group[0], *group.get(1).unwrap_or(&0), *group.get(2).unwrap_or(&0)];
        let number = u32::from_be_bytes([0, padded[0], padded[1], padded[2]]);
        for place in 0..4 {
            let digit = (number >> (18 - 6 * place)) & 63;
            let has_data = place <= group.len();
            text.push(if has_data { char::from(ALPHABET[digit as usize]) } else { '=' });
        }
    }
    text
}

/// The bytes, line ends and blanks ignored; `None` when it is not base64.
pub(crate) fn from_base64(text: &[u8]) -> Option<Vec<u8>> {
    let mut bytes = vec![0; text.len() / 4 * 3 + 3];
    let length = decode(text, &mut bytes)?;
    bytes.truncate(length);
    Some(bytes)
}

/// The same into protected memory.
pub(crate) fn secret_from_base64(text: &[u8]) -> Option<Secret> {
    let mut bytes = Secret::zeroed(text.len() / 4 * 3 + 3);
    let length = decode(text, bytes.expose_mut())?;
    Some(bytes.truncated(length))
}

/// How many bytes there are, in a buffer that has room for them.
fn decode(text: &[u8], bytes: &mut [u8]) -> Option<usize> {
    let (mut length, mut digits, mut padding, mut group) = (0, 0_usize, 0, 0_u32);
    for character in text.iter().filter(|character| !character.is_ascii_whitespace()) {
        match character {
            b'=' if digits % 4 >= 2 => padding += 1,
            b'=' => return None,
            _ if padding > 0 => return None,
            other => {
                group = group << 6 | u32::try_from(digit(*other)).ok()?;
                digits += 1;
            }
        }
        if padding == 0 && digits.is_multiple_of(4) {
            bytes.get_mut(length..length + 3)?.copy_from_slice(&group.to_be_bytes()[1..]);
            (length, group) = (length + 3, 0);
        }
    }
    let left = digits % 4;
    if digits == 0 || padding != (4 - left) % 4 {
        return None;
    }
    if left > 0 {
        let all = (group << (6 * padding)).to_be_bytes();
        let (used, rest) = all[1..].split_at(left - 1);
        bytes.get_mut(length..length + used.len())?.copy_from_slice(used);
        length += used.len();
        if rest.iter().any(|byte| *byte != 0) {
            return None;
        }
    }
    Some(length)
}

/// The number of a digit, negative where it is none; without a branch and without a table.
const fn digit(character: u8) -> i32 {
    const fn within(value: i32, low: u8, high: u8) -> i32 {
        ((low as i32 - 1 - value) & (value - high as i32 - 1)) >> 8
    }
    let value = character as i32;
    -1 + (within(value, b'A', b'Z') & (value - 64))
        + (within(value, b'a', b'z') & (value - 70))
        + (within(value, b'0', b'9') & (value + 5))
        + (within(value, b'+', b'+') & 63)
        + (within(value, b'/', b'/') & 64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn base64_goes_both_ways() {
        // RFC 4648 §10
        let rows = [
            ("f", "Zg=="),
            ("fo", "Zm8="),
            ("foo", "Zm9v"),
            ("foob", "Zm9vYg=="),
            ("fooba", "Zm9vYmE="),
            ("foobar", "Zm9vYmFy"),
        ];
        for (bytes, text) in rows {
            assert_eq!(base64(bytes.as_bytes()), text);
            assert_eq!(from_base64(text.as_bytes()).as_deref(), Some(bytes.as_bytes()));
        }
        assert_eq!(base64(&[0xff, 0xef, 0xfe]), "/+/+");
        assert_eq!(from_base64(b"Zm9v\nYmFy\n").as_deref(), Some(&b"foobar"[..]));
    }

    #[test]
    fn each_digit_has_its_number_and_nothing_else_has_one() {
        for character in 0..=u8::MAX {
            let number = ALPHABET.iter().position(|known| *known == character);
            let number = number.map_or(-1, |number| i32::try_from(number).unwrap());
            assert_eq!(digit(character), number, "{character}");
        }
    }

    #[test]
    fn what_is_not_base64_is_refused() {
        for bad in ["", "Zg", "Zg=", "Z===", "====", "Z=g=", "Zh==", "Zm9-", "\u{0}\u{1}\u{2}\u{3}"]
        {
            assert_eq!(from_base64(bad.as_bytes()), None, "{bad:?}");
        }
    }
}

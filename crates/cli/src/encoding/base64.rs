// SPDX-License-Identifier: Apache-2.0
//! Base64 (RFC 4648 §4). For signatures and public keys only: it is not constant-time.

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
    let text: Vec<u8> = text.iter().copied().filter(|c| !c.is_ascii_whitespace()).collect();
    if text.is_empty() || !text.len().is_multiple_of(4) {
        return None;
    }
    let padding = text.iter().rev().take_while(|c| **c == b'=').count();
    let digits = &text[..text.len() - padding];
    if padding > 2 {
        return None;
    }
    let mut bytes = Vec::with_capacity(text.len() / 4 * 3);
    for group in digits.chunks(4) {
        let mut number = 0_u32;
        for place in 0..4 {
            let digit = match group.get(place) {
                Some(c) => ALPHABET.iter().position(|known| known == c)?,
                None => 0,
            };
            number = number << 6 | u32::try_from(digit).ok()?;
        }
        let all = number.to_be_bytes();
        let (used, rest) = all[1..].split_at(group.len() - 1);
        bytes.extend(used);
        if rest.iter().any(|byte| *byte != 0) {
            return None;
        }
    }
    Some(bytes)
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
    fn what_is_not_base64_is_refused() {
        for bad in ["", "Zg", "Zg=", "Z===", "====", "Z=g=", "Zh==", "Zm9-", "\u{0}\u{1}\u{2}\u{3}"]
        {
            assert_eq!(from_base64(bad.as_bytes()), None, "{bad:?}");
        }
    }
}

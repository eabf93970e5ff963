// SPDX-License-Identifier: Apache-2.0
//! BER (X.690) as some programs write it in a stream: lengths that are not known before, and strings in pieces. Made into DER.

use super::der::{OCTET_STRING, element};
use metaslot_memory::Secret;

/// Of other elements.
const CONSTRUCTED: u8 = 0x20;
/// A length that is not said: two zeros end the element.
const INDEFINITE: u8 = 0x80;

/// Nothing that anybody writes lies deeper.
const DEPTH: usize = 32;

/// The same element with lengths before its contents; `None` when it is no BER, or more than one element.
pub(crate) fn definite(ber: &[u8]) -> Option<Secret> {
    let mut rest = ber;
    let der = Secret::taken(converted(&mut rest, DEPTH)?);
    rest.is_empty().then_some(der)
}

/// Takes the first element off.
fn converted(rest: &mut &[u8], depth: usize) -> Option<Vec<u8>> {
    let (&tag, after) = rest.split_first().filter(|_| depth > 0)?;
    let (&first, after) = after.split_first()?;
    // Tags of several bytes are not in keys and certificates.
    if tag & 0x1f == 0x1f {
        return None;
    }
    let is_constructed = tag & CONSTRUCTED != 0;
    if first == INDEFINITE {
        *rest = after;
        return is_constructed.then(|| joined(tag, rest, depth, true))?;
    }
    let (length, after) = length(first, after)?;
    let (content, after) = after.split_at_checked(length)?;
    *rest = after;
    match is_constructed {
        true => joined(tag, &mut &*content, depth, false),
        false => Some(element(tag, content)),
    }
}

/// An element of others, up to the end of the bytes, or of the element where its length is not said.
fn joined(tag: u8, rest: &mut &[u8], depth: usize, is_open: bool) -> Option<Vec<u8>> {
    let mut content = Vec::new();
    loop {
        match rest.split_at_checked(2) {
            Some(([0, 0], after)) if is_open => {
                *rest = after;
                break;
            }
            _ if rest.is_empty() && !is_open => break,
            _ => {}
        }
        let mut part = converted(rest, depth - 1)?;
        let is_piece = tag == OCTET_STRING | CONSTRUCTED;
        content.extend_from_slice(if is_piece { piece(&part)? } else { &part });
        part.fill(0);
    }
    let tag = if tag == OCTET_STRING | CONSTRUCTED { OCTET_STRING } else { tag };
    let whole = element(tag, &content);
    content.fill(0);
    Some(whole)
}

/// What is in a piece of a string.
fn piece(der: &[u8]) -> Option<&[u8]> {
    super::der::take(&mut &*der, OCTET_STRING)
}

/// A length, in whatever form.
fn length(first: u8, rest: &[u8]) -> Option<(usize, &[u8])> {
    match first {
        0..=0x7f => Some((usize::from(first), rest)),
        0x81..=0x84 => {
            let (bytes, rest) = rest.split_at_checked(usize::from(first & 0x7f))?;
            let length = bytes.iter().fold(0, |length, byte| length << 8 | usize::from(*byte));
            Some((length, rest))
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn converted(ber: &[u8]) -> Option<Vec<u8>> {
        definite(ber).map(|der| der.expose().to_vec())
    }

    #[test]
    fn lengths_are_said_and_strings_are_whole() {
        let rows: [(&[u8], &[u8]); 4] = [
            (&[0x30, 0x80, 2, 1, 7, 0, 0], &[0x30, 3, 2, 1, 7]),
            (&[0x24, 0x80, 4, 1, 7, 4, 2, 8, 9, 0, 0], &[4, 3, 7, 8, 9]),
            (&[0x30, 0x81, 3, 2, 1, 7], &[0x30, 3, 2, 1, 7]),
            (&[0xa0, 0x80, 0x24, 3, 4, 1, 7, 0, 0], &[0xa0, 3, 4, 1, 7]),
        ];
        for (ber, der) in rows {
            assert_eq!(converted(ber).as_deref(), Some(der), "{ber:02x?}");
            assert_eq!(converted(der).as_deref(), Some(der), "DER stays");
        }
    }

    #[test]
    fn what_has_no_end_is_refused() {
        let rows: [&[u8]; 7] = [
            &[],
            &[0x30],
            &[0x30, 0x80],
            &[0x30, 0x80, 2, 1, 7, 0],
            &[4, 0x80, 0, 0],
            &[0x30, 3, 2, 1],
            &[0x24, 3, 2, 1, 7],
        ];
        for ber in rows {
            assert_eq!(converted(ber), None, "{ber:02x?}");
        }
        assert_eq!(converted(&[[0x30, 0x80].repeat(100), [0, 0].repeat(100)].concat()), None);
    }
}

// SPDX-License-Identifier: Apache-2.0
//! BER (X.690) as some programs write it in a stream: lengths that are not known before, and strings in pieces. Made into DER.

use super::der::{OCTET_STRING, head, take};
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
    // A key may stand in it: what is written stays where it is, until it is wiped.
    let mut out = Vec::with_capacity(room(ber.len()));
    let is_one = convert(&mut rest, DEPTH, &mut out).is_some() && rest.is_empty();
    let der = Secret::taken(out);
    is_one.then_some(der)
}

/// As much as DER of so much BER takes: a length of more than two bytes is longer than the two zeros in place of it.
const fn room(length: usize) -> usize {
    length + length / 0x1_0000 * 2 * DEPTH + 2 * DEPTH
}

/// Takes the first element off, and writes it.
fn convert(rest: &mut &[u8], depth: usize, out: &mut Vec<u8>) -> Option<()> {
    let (&tag, after) = rest.split_first().filter(|_| depth > 0)?;
    let (&first, after) = after.split_first()?;
    // Tags of several bytes are not in keys and certificates.
    if tag & 0x1f == 0x1f {
        return None;
    }
    let is_constructed = tag & CONSTRUCTED != 0;
    if first == INDEFINITE {
        *rest = after;
        return is_constructed.then(|| join(tag, (rest, true), depth, out))?;
    }
    let (length, after) = length(first, after)?;
    let (content, after) = after.split_at_checked(length)?;
    *rest = after;
    if is_constructed {
        return join(tag, (&mut &*content, false), depth, out);
    }
    out.extend(head(tag, length));
    out.extend_from_slice(content);
    Some(())
}

/// An element of others, up to the end of the bytes, or of the element where its length is not said.
fn join(
    tag: u8,
    (rest, is_open): (&mut &[u8], bool),
    depth: usize,
    out: &mut Vec<u8>,
) -> Option<()> {
    let is_string = tag == OCTET_STRING | CONSTRUCTED;
    let start = out.len();
    loop {
        match rest.split_at_checked(2) {
            Some(([0, 0], after)) if is_open => {
                *rest = after;
                break;
            }
            _ if rest.is_empty() && !is_open => break,
            _ => {}
        }
        let at = out.len();
        convert(rest, depth - 1, out)?;
        if is_string {
            // Of a piece only what is in it.
            let piece = take(&mut out.get(at..)?, OCTET_STRING)?.len();
            let piece = out.len() - piece..out.len();
            out.copy_within(piece.clone(), at);
            out.truncate(at + piece.len());
        }
    }
    let head = head(if is_string { OCTET_STRING } else { tag }, out.len() - start);
    out.splice(start..start, head);
    Some(())
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
    fn no_key_is_moved_while_it_is_converted() {
        for length in [0, 1, 127, 128, 0xffff, 0x1_0000, 0x2_0000] {
            let string = [&head(OCTET_STRING, length)[..], &vec![7; length]].concat();
            for depth in [0, 1, DEPTH - 1] {
                let ber = [[0x30, 0x80].repeat(depth), string.clone(), [0, 0].repeat(depth)];
                let ber = ber.concat();
                let mut out = Vec::with_capacity(room(ber.len()));
                let before = out.capacity();
                convert(&mut &*ber, DEPTH, &mut out).expect("BER");
                assert_eq!(out.capacity(), before, "{length} {depth}");
            }
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

// SPDX-License-Identifier: Apache-2.0
//! DER (X.690): its elements, ECDSA signatures (RFC 3279 §2.2.3) and public keys (RFC 5280 §4.1.2.7).

use super::significant;

pub(crate) const BOOLEAN: u8 = 1;
pub(crate) const INTEGER: u8 = 2;
pub(crate) const BIT_STRING: u8 = 3;
pub(crate) const OCTET_STRING: u8 = 4;
pub(crate) const OBJECT_IDENTIFIER: u8 = 6;
pub(crate) const UTF8_STRING: u8 = 12;
pub(crate) const NUMERIC_STRING: u8 = 18;
pub(crate) const PRINTABLE_STRING: u8 = 19;
pub(crate) const TELETEX_STRING: u8 = 20;
pub(crate) const IA5_STRING: u8 = 22;
pub(crate) const UTC_TIME: u8 = 23;
pub(crate) const GENERALIZED_TIME: u8 = 24;
pub(crate) const VISIBLE_STRING: u8 = 26;
pub(crate) const SEQUENCE: u8 = 0x30;
pub(crate) const SET: u8 = 0x31;
/// `[n]`, primitive.
pub(crate) const CONTEXT: u8 = 0x80;
/// `[n]`, of other elements.
pub(crate) const CONSTRUCTED: u8 = 0xa0;

/// `1.2.840.113549.1.1.1`, with its NULL parameter.
const RSA_ENCRYPTION: &[u8] =
    &[0x06, 0x09, 0x2a, 0x86, 0x48, 0x86, 0xf7, 0x0d, 0x01, 0x01, 0x01, 0x05, 0x00];
/// `1.2.840.10045.2.1`; the curve follows.
const EC_PUBLIC_KEY: &[u8] = &[0x06, 0x07, 0x2a, 0x86, 0x48, 0xce, 0x3d, 0x02, 0x01];

/// `r` and `s` beside each other, as PKCS#11 has them, into the SEQUENCE that X.509 and OpenSSL
/// have.
pub(crate) fn signature(raw: &[u8]) -> Vec<u8> {
    let (r, s) = raw.split_at(raw.len() / 2);
    element(SEQUENCE, &[integer(r), integer(s)].concat())
}

/// The reverse, for a curve whose numbers have `length` bytes; `None` when it is not such a
/// signature.
pub(crate) fn raw_signature(der: &[u8], length: usize) -> Option<Vec<u8>> {
    let (content, rest) = open(SEQUENCE, der)?;
    let (r, after) = open(INTEGER, content)?;
    let (s, end) = open(INTEGER, after)?;
    if !rest.is_empty() || !end.is_empty() {
        return None;
    }
    Some([padded(r, length)?, padded(s, length)?].concat())
}

/// `SubjectPublicKeyInfo` of an RSA key.
pub(crate) fn rsa_public_key(modulus: &[u8], exponent: &[u8]) -> Vec<u8> {
    let key = element(SEQUENCE, &[integer(modulus), integer(exponent)].concat());
    public_key(RSA_ENCRYPTION, &key)
}

/// `SubjectPublicKeyInfo` of a key on a short Weierstrass curve: `CKA_EC_PARAMS`, and the point.
pub(crate) fn ec_public_key(params: &[u8], point: &[u8]) -> Vec<u8> {
    public_key(&[EC_PUBLIC_KEY, params].concat(), point)
}

/// `SubjectPublicKeyInfo` whose algorithm is its curve (RFC 8410).
pub(crate) fn edwards_public_key(oid: &[u8], point: &[u8]) -> Vec<u8> {
    public_key(oid, point)
}

/// `SubjectPublicKeyInfo` of an algorithm, with its parameters, and a key.
pub(crate) fn public_key(algorithm: &[u8], key: &[u8]) -> Vec<u8> {
    let bits = element(BIT_STRING, &[&[0], key].concat());
    element(SEQUENCE, &[element(SEQUENCE, algorithm), bits].concat())
}

/// The point inside `CKA_EC_POINT`, which is an OCTET STRING; older modules give the bare point,
/// known by its `length`.
pub(crate) fn point(attribute: &[u8], length: usize) -> &[u8] {
    match open(OCTET_STRING, attribute) {
        Some((point, [])) if attribute.len() != length => point,
        _ => attribute,
    }
}

/// One element.
pub(crate) fn element(tag: u8, content: &[u8]) -> Vec<u8> {
    let mut der = head(tag, content.len());
    der.extend(content);
    der
}

/// What stands before the content of an element.
pub(super) fn head(tag: u8, length: usize) -> Vec<u8> {
    let bytes = length.to_be_bytes();
    let significant = &bytes[length.leading_zeros() as usize / 8..];
    let mut der = vec![tag];
    match length {
        0 => der.push(0),
        1..=127 => der.push(significant[0]),
        _ => {
            der.push(0x80 | significant.len().to_le_bytes()[0]);
            der.extend(significant);
        }
    }
    der
}

/// A SEQUENCE of elements.
pub(crate) fn sequence(parts: &[&[u8]]) -> Vec<u8> {
    element(SEQUENCE, &parts.concat())
}

/// A BIT STRING of whole bytes.
pub(crate) fn bit_string(bytes: &[u8]) -> Vec<u8> {
    element(BIT_STRING, &[&[0], bytes].concat())
}

/// An OBJECT IDENTIFIER.
pub(crate) fn identifier(arcs: &[u32]) -> Vec<u8> {
    let (first, rest) = arcs.split_at(arcs.len().min(2));
    let first = first.iter().fold(0, |number, arc| number * 40 + arc);
    let content = std::iter::once(first).chain(rest.iter().copied()).flat_map(|arc| {
        let groups = (32 - arc.leading_zeros()).div_ceil(7).max(1);
        (0..groups).rev().map(move |group| {
            let [low, ..] = (arc >> (7 * group) & 127).to_le_bytes();
            if group == 0 { low } else { low | 128 }
        })
    });
    element(OBJECT_IDENTIFIER, &content.collect::<Vec<u8>>())
}

/// The first element of some bytes.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Element<'a> {
    pub(crate) tag: u8,
    pub(crate) content: &'a [u8],
    /// With tag and length.
    pub(crate) whole: &'a [u8],
}

/// Takes the first element off. Only lengths in minimal form.
pub(crate) fn next<'a>(der: &mut &'a [u8]) -> Option<Element<'a>> {
    let (&tag, rest) = der.split_first()?;
    let (&first, rest) = rest.split_first()?;
    let (length, rest) = match first {
        0..=0x7f => (usize::from(first), rest),
        0x81..=0x84 => {
            let (bytes, rest) = rest.split_at_checked(usize::from(first & 0x7f))?;
            let length = bytes.iter().fold(0, |length, byte| length << 8 | usize::from(*byte));
            let is_minimal = length > 0x7f && bytes[0] != 0;
            (Some(length).filter(|_| is_minimal)?, rest)
        }
        _ => return None,
    };
    let (content, after) = rest.split_at_checked(length)?;
    let (whole, _) = der.split_at(der.len() - after.len());
    *der = after;
    Some(Element { tag, content, whole })
}

/// The content of the first element, which has this tag.
pub(crate) fn take<'a>(der: &mut &'a [u8], tag: u8) -> Option<&'a [u8]> {
    let mut rest = *der;
    let found = next(&mut rest).filter(|element| element.tag == tag)?;
    *der = rest;
    Some(found.content)
}

/// Unsigned and of minimal length.
pub(crate) fn integer(number: &[u8]) -> Vec<u8> {
    let number = significant(number);
    let sign = number.first().is_none_or(|byte| byte & 0x80 != 0);
    let content = if sign { [&[0], number].concat() } else { number.to_vec() };
    element(INTEGER, &content)
}

/// Whether this is what an INTEGER holds: in two's complement, of minimal length.
pub(crate) const fn is_integer(content: &[u8]) -> bool {
    !matches!(content, [] | [0, 0..=0x7f, ..] | [0xff, 0x80..=0xff, ..])
}

/// The content of an element with this tag, and what follows it.
fn open(tag: u8, der: &[u8]) -> Option<(&[u8], &[u8])> {
    let mut rest = der;
    take(&mut rest, tag).map(|content| (content, rest))
}

/// A positive integer's content in exactly `length` bytes.
fn padded(integer: &[u8], length: usize) -> Option<Vec<u8>> {
    let negative = integer.first().is_none_or(|byte| byte & 0x80 != 0);
    let number = integer.strip_prefix(&[0]).unwrap_or(integer);
    if negative || number.len() > length {
        return None;
    }
    Some([&vec![0; length - number.len()], number].concat())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn signatures_go_both_ways() {
        let rows: [(&[u8], &[u8]); 4] = [
            (&[1, 2, 3, 4], &[0x30, 8, 2, 2, 1, 2, 2, 2, 3, 4]),
            (&[0x80, 0, 0, 5], &[0x30, 8, 2, 3, 0, 0x80, 0, 2, 1, 5]),
            (&[0, 0, 0, 0], &[0x30, 6, 2, 1, 0, 2, 1, 0]),
            (&[0, 0x80, 0x7f, 0xff], &[0x30, 8, 2, 2, 0, 0x80, 2, 2, 0x7f, 0xff]),
        ];
        for (raw, der) in rows {
            assert_eq!(signature(raw), der);
            assert_eq!(raw_signature(der, 2).as_deref(), Some(raw));
        }
    }

    #[test]
    fn a_signature_of_p521_has_a_long_length() {
        let raw = [0xff; 132];
        let der = signature(&raw);
        assert_eq!(der[..3], [0x30, 0x81, 138]);
        assert_eq!(raw_signature(&der, 66).as_deref(), Some(&raw[..]));
    }

    #[test]
    fn what_is_no_signature_is_refused() {
        let rows: [&[u8]; 6] = [
            &[],
            &[0x30],
            &[0x30, 8, 2, 2, 1, 2, 2, 2, 3],
            &[0x30, 8, 2, 2, 1, 2, 2, 2, 3, 4, 5],
            &[0x30, 8, 2, 2, 0x81, 2, 2, 2, 3, 4],
            &[0x30, 9, 2, 3, 1, 2, 3, 2, 2, 3, 4],
        ];
        for der in rows {
            assert_eq!(raw_signature(der, 2), None, "{der:02x?}");
        }
    }

    #[test]
    fn identifiers_are_base_128() {
        assert_eq!(identifier(&[2, 5, 4, 3]), [6, 3, 0x55, 4, 3]);
        assert_eq!(identifier(&[1, 2, 840, 113_549, 1, 1])[2..], RSA_ENCRYPTION[2..10]);
    }

    #[test]
    fn an_integer_has_no_byte_too_many() {
        for good in [&[0][..], &[0x7f], &[0x80], &[0, 0x80], &[0xff], &[0xff, 0x7f]] {
            assert!(is_integer(good), "{good:02x?}");
        }
        for bad in [&[][..], &[0, 0], &[0, 0x7f], &[0xff, 0xff], &[0xff, 0x80, 0]] {
            assert!(!is_integer(bad), "{bad:02x?}");
        }
    }

    #[test]
    fn elements_are_taken_one_after_the_other() {
        let long = element(OCTET_STRING, &[7; 300]);
        let bytes = [&long[..], &[5, 0]].concat();
        let mut rest = &*bytes;
        assert_eq!(take(&mut rest, SEQUENCE), None);
        assert_eq!(take(&mut rest, OCTET_STRING), Some(&[7; 300][..]));
        assert_eq!(next(&mut rest).map(|it| (it.tag, it.whole.len())), Some((5, 2)));
        for bad in [&[4, 0x81, 1, 0][..], &[4, 0x82, 0, 0x80], &[4, 0x80], &[4, 2, 0], &[4]] {
            assert!(next(&mut &*bad).is_none(), "{bad:02x?}");
        }
    }

    #[test]
    fn a_point_is_taken_out_of_its_octet_string() {
        assert_eq!(point(&[4, 3, 4, 1, 2], 3), [4, 1, 2]);
        assert_eq!(point(&[4, 1, 2], 3), [4, 1, 2]);
    }

    #[test]
    fn an_rsa_key_has_the_layout_of_rfc_3279() {
        let der = rsa_public_key(&[0x80; 128], &[1, 0, 1]);
        assert_eq!(der[..3], [0x30, 0x81, 159]);
        assert_eq!(der[3..5], [0x30, 13]);
        assert_eq!(der[der.len() - 5..], [2, 3, 1, 0, 1]);
    }
}

// SPDX-License-Identifier: Apache-2.0
//! Extensions: what a key is for, other names of its owner, whether it certifies others (RFC 5280, 4.2).

use crate::encoding::der::{
    self, BIT_STRING, BOOLEAN, CONTEXT, INTEGER, OBJECT_IDENTIFIER, OCTET_STRING, SEQUENCE,
};
use crate::failure::{Failure, Result};
use std::net::IpAddr;

const KEY_IDENTIFIER: &[u32] = &[2, 5, 29, 14];
const KEY_USAGE: &[u32] = &[2, 5, 29, 15];
const ALTERNATIVE_NAME: &[u32] = &[2, 5, 29, 17];
const CONSTRAINTS: &[u32] = &[2, 5, 29, 19];
const LIST_NUMBER: &[u32] = &[2, 5, 29, 20];
const AUTHORITY: &[u32] = &[2, 5, 29, 35];
const EXTENDED_USAGE: &[u32] = &[2, 5, 29, 37];

/// In the order of their bits.
const USAGES: &[&str] = &[
    "digitalSignature",
    "nonRepudiation",
    "keyEncipherment",
    "dataEncipherment",
    "keyAgreement",
    "keyCertSign",
    "cRLSign",
    "encipherOnly",
    "decipherOnly",
];

const EXTENDED: &[(&str, &[u32])] = &[
    ("serverAuth", &[1, 3, 6, 1, 5, 5, 7, 3, 1]),
    ("clientAuth", &[1, 3, 6, 1, 5, 5, 7, 3, 2]),
    ("codeSigning", &[1, 3, 6, 1, 5, 5, 7, 3, 3]),
    ("emailProtection", &[1, 3, 6, 1, 5, 5, 7, 3, 4]),
    ("ipsecEndSystem", &[1, 3, 6, 1, 5, 5, 7, 3, 5]),
    ("ipsecTunnel", &[1, 3, 6, 1, 5, 5, 7, 3, 6]),
    ("ipsecUser", &[1, 3, 6, 1, 5, 5, 7, 3, 7]),
    ("timeStamping", &[1, 3, 6, 1, 5, 5, 7, 3, 8]),
    ("OCSPSigning", &[1, 3, 6, 1, 5, 5, 7, 3, 9]),
    ("KPClientAuth", &[1, 3, 6, 1, 5, 2, 3, 4]),
    ("KPKdc", &[1, 3, 6, 1, 5, 2, 3, 5]),
    ("scLogon", &[1, 3, 6, 1, 4, 1, 311, 20, 2, 2]),
];

/// The value, and whether it stood behind `critical:`.
fn critical(text: &str) -> (bool, &str) {
    text.strip_prefix("critical:").map_or((false, text), |rest| (true, rest))
}

fn extension(identifier: &[u32], critical: bool, value: &[u8]) -> Vec<u8> {
    let critical = if critical { der::element(BOOLEAN, &[0xff]) } else { Vec::new() };
    let value = der::element(OCTET_STRING, value);
    der::sequence(&[&der::identifier(identifier), &critical, &value])
}

fn unknown(what: &str, text: &str, known: impl Iterator<Item = &'static str>) -> Failure {
    let known: Vec<_> = known.collect();
    Failure::usage(format!("there is no {what} '{text}'"))
        .hint(format!("there are {}", known.join(", ")))
}

/// `[critical:]use,use`
pub(crate) fn usage(text: &str) -> Result<Vec<u8>> {
    let (critical, list) = critical(text);
    let mut bits = 0_u16;
    for word in list.split(',').map(str::trim) {
        let at = USAGES.iter().position(|usage| usage.eq_ignore_ascii_case(word));
        let at = at.ok_or_else(|| unknown("key usage", word, USAGES.iter().copied()))?;
        bits |= 0x8000 >> at;
    }
    let [first, second] = bits.to_be_bytes();
    let used = if second == 0 { vec![first] } else { vec![first, second] };
    let unused = used.last().map_or(0, |last| last.trailing_zeros());
    let [unused, ..] = unused.to_le_bytes();
    let value = der::element(BIT_STRING, &[&[unused], &*used].concat());
    Ok(extension(KEY_USAGE, critical, &value))
}

/// `[critical:]use,use`
pub(crate) fn extended_usage(text: &str) -> Result<Vec<u8>> {
    let (critical, list) = critical(text);
    let mut identifiers = Vec::new();
    for word in list.split(',').map(str::trim) {
        let row = EXTENDED.iter().find(|row| row.0.eq_ignore_ascii_case(word));
        let names = EXTENDED.iter().map(|row| row.0);
        let row = row.ok_or_else(|| unknown("extended key usage", word, names))?;
        identifiers.extend(der::identifier(row.1));
    }
    Ok(extension(EXTENDED_USAGE, critical, &der::sequence(&[&identifiers])))
}

/// `[critical:]type=value,type=value`
pub(crate) fn alternative_names(text: &str) -> Result<Vec<u8>> {
    let (critical, list) = critical(text);
    let names: Vec<Vec<u8>> =
        list.split(',').map(|word| alternative_name(word.trim())).collect::<Result<_>>()?;
    Ok(extension(ALTERNATIVE_NAME, critical, &der::sequence(&[&names.concat()])))
}

/// Names that [`alternative_name`] and [`wanted_names`] gave; critical where there is no other name (RFC 5280, 4.2.1.6).
pub(crate) fn names(names: &[Vec<u8>], critical: bool) -> Vec<u8> {
    match names.is_empty() {
        true => Vec::new(),
        false => extension(ALTERNATIVE_NAME, critical, &der::sequence(&[&names.concat()])),
    }
}

/// Whether it certifies others.
pub(crate) fn constraints(certifies: bool) -> Vec<u8> {
    let certifies = if certifies { der::element(BOOLEAN, &[0xff]) } else { Vec::new() };
    extension(CONSTRAINTS, true, &der::sequence(&[&certifies]))
}

/// The identifier of the subject's key.
pub(crate) fn key_identifier(identifier: &[u8]) -> Vec<u8> {
    extension(KEY_IDENTIFIER, false, &der::element(OCTET_STRING, identifier))
}

/// The number of a list of revoked certificates.
pub(crate) fn list_number(number: u64) -> Vec<u8> {
    extension(LIST_NUMBER, false, &der::integer(&number.to_be_bytes()))
}

/// The number in the extensions of such a list, 0 where it has none; `None` for one that is not small.
pub(crate) fn list_number_in(extensions: &[u8]) -> Option<u64> {
    let Some(mut value) = value(extensions, LIST_NUMBER) else { return Some(0) };
    let integer = der::take(&mut value, INTEGER)?;
    let is_small = integer.len() <= 8 && integer.first().is_some_and(|byte| byte & 0x80 == 0);
    is_small.then(|| integer.iter().fold(0, |number, byte| number << 8 | u64::from(*byte)))
}

/// The identifier of the key that signs.
pub(crate) fn authority(identifier: &[u8]) -> Vec<u8> {
    extension(AUTHORITY, false, &der::sequence(&[&der::element(CONTEXT, identifier)]))
}

/// The identifier of the key that signed, in a certificate's extensions.
pub(super) fn authority_in(extensions: &[u8]) -> Option<&[u8]> {
    der::take(&mut der::take(&mut value(extensions, AUTHORITY)?, SEQUENCE)?, CONTEXT)
}

/// The identifier of its key in a certificate's extensions.
pub(crate) fn identifier_in(extensions: &[u8]) -> Option<&[u8]> {
    der::take(&mut value(extensions, KEY_IDENTIFIER)?, OCTET_STRING)
}

/// Whether a certificate with these extensions may certify others.
pub(crate) fn certifies(extensions: &[u8]) -> bool {
    let constraints = value(extensions, CONSTRAINTS);
    constraints.and_then(|mut value| der::take(&mut value, SEQUENCE)).is_some_and(|mut inner| {
        der::take(&mut inner, BOOLEAN).is_some_and(|certifies| certifies != [0])
    })
}

/// Whether a certificate with these extensions may do no more than certify others' keys that certify nothing.
pub(crate) fn certifies_no_issuer(extensions: &[u8]) -> bool {
    let constraints = value(extensions, CONSTRAINTS);
    constraints.and_then(|mut value| der::take(&mut value, SEQUENCE)).is_some_and(|mut inner| {
        der::take(&mut inner, BOOLEAN);
        der::take(&mut inner, INTEGER) == Some(&[0])
    })
}

/// Whether a key with these extensions may be used so; without such an extension it may be used for everything.
pub(crate) fn may(extensions: &[u8], usage: &str) -> bool {
    let Some(mut value) = value(extensions, KEY_USAGE) else { return true };
    let bits = der::take(&mut value, BIT_STRING).and_then(|bits| bits.get(1..)).unwrap_or_default();
    let at = USAGES.iter().position(|known| *known == usage);
    at.is_some_and(|at| bits.get(at / 8).is_some_and(|byte| byte & (0x80 >> (at % 8)) != 0))
}

/// The alternative names in a request's extensions; `None` where there is one that is not written here.
pub(crate) fn wanted_names(extensions: &[u8]) -> Option<Vec<Vec<u8>>> {
    let Some(mut value) = value(extensions, ALTERNATIVE_NAME) else { return Some(Vec::new()) };
    let mut rest = der::take(&mut value, SEQUENCE)?;
    let mut names = Vec::new();
    while !rest.is_empty() {
        let name = der::next(&mut rest)?;
        let is_known = match name.tag & !CONTEXT {
            7 => matches!(name.content.len(), 4 | 16),
            kind => is_name(kind, name.content),
        };
        (is_known && name.tag & 0xe0 == CONTEXT).then_some(())?;
        names.push(name.whole.to_vec());
    }
    Some(names)
}

const EMAIL: u8 = 1;
const DNS: u8 = 2;
const URI: u8 = 6;

/// Whether a name of this kind may be so: what compares names in programs is not to be misled.
fn is_name(kind: u8, content: &[u8]) -> bool {
    let is_of_host = |byte: &u8| byte.is_ascii_alphanumeric() || b"-._*".contains(byte);
    let fits = match kind {
        DNS => content.iter().all(is_of_host),
        EMAIL | URI => content.iter().all(u8::is_ascii_graphic),
        _ => false,
    };
    fits && !content.is_empty()
}

/// A name as [`alternative_name`] reads it.
pub(crate) fn shown_name(name: &[u8]) -> Option<String> {
    let element = der::next(&mut &*name)?;
    let text = || String::from_utf8_lossy(element.content);
    Some(match element.tag & !CONTEXT {
        EMAIL => format!("EMAIL={}", text()),
        DNS => format!("DNS={}", text()),
        URI => format!("URI={}", text()),
        _ => match element.content.len() {
            4 => format!("IP={}", IpAddr::from(<[u8; 4]>::try_from(element.content).ok()?)),
            _ => format!("IP={}", IpAddr::from(<[u8; 16]>::try_from(element.content).ok()?)),
        },
    })
}

/// The value of one among extensions.
fn value<'a>(mut extensions: &'a [u8], identifier: &[u32]) -> Option<&'a [u8]> {
    let wanted = der::identifier(identifier);
    while !extensions.is_empty() {
        let mut extension = der::take(&mut extensions, SEQUENCE)?;
        let kind = der::next(&mut extension).filter(|it| it.tag == OBJECT_IDENTIFIER)?;
        if kind.whole == wanted {
            der::take(&mut extension, BOOLEAN);
            return der::take(&mut extension, OCTET_STRING);
        }
    }
    None
}

/// Whether a program may leave each of them unread.
pub(crate) fn none_is_critical(mut extensions: &[u8]) -> bool {
    while !extensions.is_empty() {
        let mut extension = der::take(&mut extensions, SEQUENCE).unwrap_or_default();
        let is_one = der::take(&mut extension, OBJECT_IDENTIFIER).is_some();
        if !is_one || der::take(&mut extension, BOOLEAN).is_some_and(|critical| critical != [0]) {
            return false;
        }
    }
    true
}

/// `type=value`
pub(crate) fn alternative_name(text: &str) -> Result<Vec<u8>> {
    let wrong = || {
        Failure::usage(format!("'{text}' is no alternative name"))
            .hint("it is EMAIL=, DNS=, URI= or IP= with a value")
    };
    let (kind, value) = text.split_once('=').ok_or_else(wrong)?;
    let tag = match kind.to_ascii_uppercase().as_str() {
        "EMAIL" => EMAIL,
        "DNS" => DNS,
        "URI" => URI,
        "IP" => {
            let address = match value.parse().map_err(|_| wrong())? {
                IpAddr::V4(address) => address.octets().to_vec(),
                IpAddr::V6(address) => address.octets().to_vec(),
            };
            return Ok(der::element(CONTEXT | 7, &address));
        }
        _ => return Err(wrong()),
    };
    match is_name(tag, value.as_bytes()) {
        true => Ok(der::element(CONTEXT | tag, value.as_bytes())),
        false if tag == DNS && !value.is_empty() => Err(wrong()
            .hint("a host's name has letters, digits, '-' and '.'; another one is written xn--…")),
        false => Err(wrong()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_usage_is_a_bit() {
        let end = |text: &str| usage(text).unwrap().split_off(7);
        assert_eq!(end("digitalSignature"), [4, 4, 3, 2, 7, 0x80]);
        assert_eq!(end("critical:keyCertSign,crlsign"), [1, 1, 0xff, 4, 4, 3, 2, 1, 6]);
        assert_eq!(end("decipherOnly"), [4, 5, 3, 3, 7, 0, 0x80]);
        assert!(usage("everything").is_err());
    }

    #[test]
    fn a_key_may_be_used_for_what_its_usage_says() {
        let both = usage("keyCertSign,decipherOnly").unwrap();
        assert!(may(&both, "keyCertSign") && may(&both, "decipherOnly"));
        assert!(!may(&both, "cRLSign") && !may(&both, "encipherOnly"));
        assert!(may(&constraints(true), "cRLSign"), "nothing is said");
        let empty = extension(KEY_USAGE, true, &der::element(BIT_STRING, &[]));
        assert!(!may(&empty, "digitalSignature"));
    }

    #[test]
    fn other_names_are_checked() {
        for bad in
            ["", "DNS", "DNS=", "IP=1.2.3", "DN=x", "EMAIL=é", "DNS=a\nb", "DNS=a b", "URI=a b"]
        {
            assert!(alternative_names(bad).is_err(), "{bad}");
        }
        assert!(alternative_names("critical:DNS=a.example,IP=::1").is_ok());
        assert!(extended_usage("serverauth, clientAuth").is_ok());
        assert!(extended_usage("").is_err());
    }
}

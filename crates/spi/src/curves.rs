// SPDX-License-Identifier: Apache-2.0
//! Table: the curves in short Weierstrass form that have names, over prime and binary fields (SEC 2, X9.62, RFC 5639), for every provider
//! and for the rules.

use crate::key_info::{self, EcParams};
use crate::number_key;
use metaslot_ck::{Error, Result};
use std::ffi::CStr;

/// A curve.
#[derive(Debug, Eq, PartialEq)]
pub struct Curve {
    /// What its standard calls it.
    pub name: &'static CStr,
    /// Other names that `CKA_EC_PARAMS` may have.
    pub others: &'static [&'static str],
    /// Content of the object identifier.
    pub oid: &'static [u8],
    /// Whether the field is one of 2^m elements.
    pub is_binary: bool,
    /// Length of the field's elements, in bits.
    pub field_bits: u16,
    /// Length of the base point's order, in bits.
    pub bits: u16,
    /// How many times more points the curve has.
    pub cofactor: u16,
}

const fn prime(
    name: &'static CStr,
    others: &'static [&'static str],
    oid: &'static [u8],
    field_bits: u16,
    bits: u16,
    cofactor: u16,
) -> Curve {
    Curve { name, others, oid, is_binary: false, field_bits, bits, cofactor }
}

const fn binary(
    name: &'static CStr,
    others: &'static [&'static str],
    oid: &'static [u8],
    field_bits: u16,
    bits: u16,
    cofactor: u16,
) -> Curve {
    Curve { is_binary: true, ..prime(name, others, oid, field_bits, bits, cofactor) }
}

/// All of them.
#[rustfmt::skip]
static CURVES: [Curve; 68] = [
    prime(c"secp256r1", &["P-256", "prime256v1"], b"\x2a\x86\x48\xce\x3d\x03\x01\x07", 256, 256, 1),
    prime(c"secp384r1", &["P-384"], b"\x2b\x81\x04\x00\x22", 384, 384, 1),
    prime(c"secp521r1", &["P-521"], b"\x2b\x81\x04\x00\x23", 521, 521, 1),
    prime(c"secp224r1", &["P-224"], b"\x2b\x81\x04\x00\x21", 224, 224, 1),
    prime(c"secp256k1", &[], b"\x2b\x81\x04\x00\x0a", 256, 256, 1),
    prime(c"brainpoolP160r1", &[], b"\x2b\x24\x03\x03\x02\x08\x01\x01\x01", 160, 160, 1),
    prime(c"brainpoolP160t1", &[], b"\x2b\x24\x03\x03\x02\x08\x01\x01\x02", 160, 160, 1),
    prime(c"brainpoolP192r1", &[], b"\x2b\x24\x03\x03\x02\x08\x01\x01\x03", 192, 192, 1),
    prime(c"brainpoolP192t1", &[], b"\x2b\x24\x03\x03\x02\x08\x01\x01\x04", 192, 192, 1),
    prime(c"brainpoolP224r1", &[], b"\x2b\x24\x03\x03\x02\x08\x01\x01\x05", 224, 224, 1),
    prime(c"brainpoolP224t1", &[], b"\x2b\x24\x03\x03\x02\x08\x01\x01\x06", 224, 224, 1),
    prime(c"brainpoolP256r1", &[], b"\x2b\x24\x03\x03\x02\x08\x01\x01\x07", 256, 256, 1),
    prime(c"brainpoolP256t1", &[], b"\x2b\x24\x03\x03\x02\x08\x01\x01\x08", 256, 256, 1),
    prime(c"brainpoolP320r1", &[], b"\x2b\x24\x03\x03\x02\x08\x01\x01\x09", 320, 320, 1),
    prime(c"brainpoolP320t1", &[], b"\x2b\x24\x03\x03\x02\x08\x01\x01\x0a", 320, 320, 1),
    prime(c"brainpoolP384r1", &[], b"\x2b\x24\x03\x03\x02\x08\x01\x01\x0b", 384, 384, 1),
    prime(c"brainpoolP384t1", &[], b"\x2b\x24\x03\x03\x02\x08\x01\x01\x0c", 384, 384, 1),
    prime(c"brainpoolP512r1", &[], b"\x2b\x24\x03\x03\x02\x08\x01\x01\x0d", 512, 512, 1),
    prime(c"brainpoolP512t1", &[], b"\x2b\x24\x03\x03\x02\x08\x01\x01\x0e", 512, 512, 1),
    prime(c"secp112r1", &[], b"\x2b\x81\x04\x00\x06", 112, 112, 1),
    prime(c"secp112r2", &[], b"\x2b\x81\x04\x00\x07", 112, 110, 4),
    prime(c"secp128r1", &[], b"\x2b\x81\x04\x00\x1c", 128, 128, 1),
    prime(c"secp128r2", &[], b"\x2b\x81\x04\x00\x1d", 128, 126, 4),
    prime(c"secp160k1", &[], b"\x2b\x81\x04\x00\x09", 160, 161, 1),
    prime(c"secp160r1", &[], b"\x2b\x81\x04\x00\x08", 160, 161, 1),
    prime(c"secp160r2", &[], b"\x2b\x81\x04\x00\x1e", 160, 161, 1),
    prime(c"secp192k1", &[], b"\x2b\x81\x04\x00\x1f", 192, 192, 1),
    prime(c"secp224k1", &[], b"\x2b\x81\x04\x00\x20", 224, 225, 1),
    prime(c"prime192v1", &["P-192", "secp192r1"], b"\x2a\x86\x48\xce\x3d\x03\x01\x01", 192, 192, 1),
    prime(c"prime192v2", &[], b"\x2a\x86\x48\xce\x3d\x03\x01\x02", 192, 192, 1),
    prime(c"prime192v3", &[], b"\x2a\x86\x48\xce\x3d\x03\x01\x03", 192, 192, 1),
    prime(c"prime239v1", &[], b"\x2a\x86\x48\xce\x3d\x03\x01\x04", 239, 239, 1),
    prime(c"prime239v2", &[], b"\x2a\x86\x48\xce\x3d\x03\x01\x05", 239, 239, 1),
    prime(c"prime239v3", &[], b"\x2a\x86\x48\xce\x3d\x03\x01\x06", 239, 239, 1),
    binary(c"sect113r1", &[], b"\x2b\x81\x04\x00\x04", 113, 113, 2),
    binary(c"sect113r2", &[], b"\x2b\x81\x04\x00\x05", 113, 113, 2),
    binary(c"sect131r1", &[], b"\x2b\x81\x04\x00\x16", 131, 131, 2),
    binary(c"sect131r2", &[], b"\x2b\x81\x04\x00\x17", 131, 131, 2),
    binary(c"sect163k1", &["K-163"], b"\x2b\x81\x04\x00\x01", 163, 163, 2),
    binary(c"sect163r1", &[], b"\x2b\x81\x04\x00\x02", 163, 162, 2),
    binary(c"sect163r2", &["B-163"], b"\x2b\x81\x04\x00\x0f", 163, 163, 2),
    binary(c"sect193r1", &[], b"\x2b\x81\x04\x00\x18", 193, 193, 2),
    binary(c"sect193r2", &[], b"\x2b\x81\x04\x00\x19", 193, 193, 2),
    binary(c"sect233k1", &["K-233"], b"\x2b\x81\x04\x00\x1a", 233, 232, 4),
    binary(c"sect233r1", &["B-233"], b"\x2b\x81\x04\x00\x1b", 233, 233, 2),
    binary(c"sect239k1", &[], b"\x2b\x81\x04\x00\x03", 239, 238, 4),
    binary(c"sect283k1", &["K-283"], b"\x2b\x81\x04\x00\x10", 283, 281, 4),
    binary(c"sect283r1", &["B-283"], b"\x2b\x81\x04\x00\x11", 283, 282, 2),
    binary(c"sect409k1", &["K-409"], b"\x2b\x81\x04\x00\x24", 409, 407, 4),
    binary(c"sect409r1", &["B-409"], b"\x2b\x81\x04\x00\x25", 409, 409, 2),
    binary(c"sect571k1", &["K-571"], b"\x2b\x81\x04\x00\x26", 571, 570, 4),
    binary(c"sect571r1", &["B-571"], b"\x2b\x81\x04\x00\x27", 571, 570, 2),
    binary(c"c2pnb163v1", &[], b"\x2a\x86\x48\xce\x3d\x03\x00\x01", 163, 163, 2),
    binary(c"c2pnb163v2", &[], b"\x2a\x86\x48\xce\x3d\x03\x00\x02", 163, 162, 2),
    binary(c"c2pnb163v3", &[], b"\x2a\x86\x48\xce\x3d\x03\x00\x03", 163, 162, 2),
    binary(c"c2pnb176v1", &[], b"\x2a\x86\x48\xce\x3d\x03\x00\x04", 176, 161, 65390),
    binary(c"c2tnb191v1", &[], b"\x2a\x86\x48\xce\x3d\x03\x00\x05", 191, 191, 2),
    binary(c"c2tnb191v2", &[], b"\x2a\x86\x48\xce\x3d\x03\x00\x06", 191, 190, 4),
    binary(c"c2tnb191v3", &[], b"\x2a\x86\x48\xce\x3d\x03\x00\x07", 191, 189, 6),
    binary(c"c2pnb208w1", &[], b"\x2a\x86\x48\xce\x3d\x03\x00\x0a", 208, 193, 65096),
    binary(c"c2tnb239v1", &[], b"\x2a\x86\x48\xce\x3d\x03\x00\x0b", 239, 238, 4),
    binary(c"c2tnb239v2", &[], b"\x2a\x86\x48\xce\x3d\x03\x00\x0c", 239, 237, 6),
    binary(c"c2tnb239v3", &[], b"\x2a\x86\x48\xce\x3d\x03\x00\x0d", 239, 236, 10),
    binary(c"c2pnb272w1", &[], b"\x2a\x86\x48\xce\x3d\x03\x00\x10", 272, 257, 65286),
    binary(c"c2pnb304w1", &[], b"\x2a\x86\x48\xce\x3d\x03\x00\x11", 304, 289, 65070),
    binary(c"c2tnb359v1", &[], b"\x2a\x86\x48\xce\x3d\x03\x00\x12", 359, 353, 76),
    binary(c"c2pnb368w1", &[], b"\x2a\x86\x48\xce\x3d\x03\x00\x13", 368, 353, 65392),
    binary(c"c2tnb431r1", &[], b"\x2a\x86\x48\xce\x3d\x03\x00\x14", 431, 418, 10080),
];

/// No order below this, in bits: it is found in half as many steps.
const MIN_ORDER: u16 = 224;

impl Curve {
    /// All of them.
    pub fn all() -> impl Iterator<Item = &'static Self> {
        CURVES.iter()
    }

    /// Length of a coordinate and of a shared secret, in bytes.
    #[must_use]
    pub fn length(&self) -> usize {
        usize::from(self.field_bits).div_ceil(8)
    }

    /// Length of a scalar and of each half of a signature, in bytes.
    #[must_use]
    pub fn order_length(&self) -> usize {
        usize::from(self.bits).div_ceil(8)
    }

    /// Length of an uncompressed point, in bytes.
    #[must_use]
    pub fn point_length(&self) -> usize {
        1 + 2 * self.length()
    }

    /// A point as it is, or inside a DER OCTET STRING.
    #[must_use]
    pub fn point<'a>(&self, bytes: &'a [u8]) -> &'a [u8] {
        key_info::ec_point(self.length(), bytes)
    }

    /// Whether it has less than 112 bits of security. Those over fields whose degree is 16 times another count so: logarithms on
    /// them are moved to easier places (Galbraith, Hess and Smart, "Extending the GHS Weil descent attack", 2002).
    #[must_use]
    pub fn is_weak(&self) -> bool {
        self.bits < MIN_ORDER || self.is_binary && self.field_bits.is_multiple_of(16)
    }

    /// The curve that a DER `CKA_EC_PARAMS` names: by object identifier or by name.
    ///
    /// # Errors
    /// `CKR_CURVE_NOT_SUPPORTED` for another; as [`EcParams::parse`].
    pub fn named(params: &[u8]) -> Result<&'static Self> {
        let is = |curve: &&Self, name: &[u8]| {
            let others = curve.others.iter().map(|name| name.as_bytes());
            curve.name.to_bytes() == name || others.into_iter().any(|other| other == name)
        };
        let found = match EcParams::parse(params)? {
            EcParams::Oid(oid) => Self::of_oid(oid),
            EcParams::Name(name) => CURVES.iter().find(|curve| is(curve, name)),
        };
        found.ok_or(Error::CURVE_NOT_SUPPORTED)
    }

    /// The curve of the content of an object identifier.
    #[must_use]
    pub fn of_oid(oid: &[u8]) -> Option<&'static Self> {
        CURVES.iter().find(|curve| curve.oid == oid)
    }
}

/// Whether two DER `CKA_EC_PARAMS` name one curve of any form, each by object identifier or by name.
#[must_use]
pub fn are_one(one: &[u8], other: &[u8]) -> bool {
    fn oid(params: &[u8]) -> Option<&[u8]> {
        let named = Curve::named(params).map(|curve| curve.oid);
        named.ok().or_else(|| number_key::oid(EcParams::parse(params).ok()?))
    }
    oid(one).is_some_and(|one| oid(other) == Some(one))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_curve_is_weak_by_its_order_and_its_field() {
        let weak = |name: &str| {
            let length = u8::try_from(name.len()).unwrap();
            Curve::named(&[&[0x13, length], name.as_bytes()].concat()).map(Curve::is_weak)
        };
        // The last one is large, over a field of composite degree.
        for name in ["P-192", "secp112r1", "secp160r1", "brainpoolP192t1", "B-163", "c2pnb368w1"] {
            assert_eq!(weak(name), Ok(true), "{name}");
        }
        for name in ["P-224", "secp224k1", "brainpoolP224r1", "K-233", "prime239v3", "c2tnb239v3"] {
            assert_eq!(weak(name), Ok(false), "{name}");
        }
        assert_eq!(weak("P-193"), Err(Error::CURVE_NOT_SUPPORTED));
        assert_eq!(Curve::all().filter(|curve| curve.is_weak()).count(), 35);
    }

    #[test]
    fn what_names_a_curve_names_it_by_identifier_and_by_name() {
        let [p256, other] = [&b"\x06\x08\x2a\x86\x48\xce\x3d\x03\x01\x07"[..], b"\x13\x05P-256"];
        let [ed25519, name] = [&b"\x06\x03\x2b\x65\x70"[..], b"\x13\x0cedwards25519"];
        let unknown = b"\x06\x01\x2a";
        for (one, same) in [(p256, other), (ed25519, name), (unknown, unknown)] {
            assert!(are_one(one, same) && are_one(same, one) && are_one(same, same));
            for third in [b"\x06\x03\x2b\x65\x6e", &b"\x13\x05P-384"[..], b"\x13\x01x", b""] {
                assert!(!are_one(one, third) && !are_one(third, same), "{third:?}");
            }
        }
        assert!(!are_one(p256, ed25519) && !are_one(other, name) && !are_one(b"", b""));
    }

    #[test]
    fn no_two_curves_have_a_name_in_common() {
        for curve in Curve::all() {
            assert_eq!(Curve::of_oid(curve.oid), Some(curve));
            let named = |name: &[u8]| {
                Curve::named(&[&[0x13, u8::try_from(name.len()).unwrap()], name].concat())
            };
            assert_eq!(named(curve.name.to_bytes()), Ok(curve));
            for other in curve.others {
                assert_eq!(named(other.as_bytes()), Ok(curve));
            }
        }
    }
}

// SPDX-License-Identifier: Apache-2.0
//! What the rules ask of an object, read from its attributes.

use crate::purpose::{Purposes, ROLES};
use metaslot_ck::attribute::is_secret;
use metaslot_ck::*;
use metaslot_spi::curves::Curve;
use metaslot_spi::known_groups::is_known_group;
use metaslot_spi::{Attributes, Value};

/// What every use of a key asks, read from its attributes once.
#[derive(Clone, Copy, Debug)]
pub struct Facts {
    /// `CKA_CLASS`
    pub class: u64,
    /// `CKA_KEY_TYPE`
    pub key_type: u64,
    /// A bit for each of [`ROLES`].
    usages: u64,
    /// What it is for.
    pub purposes: Purposes,
    /// Whether the value of a secret or private key may be read: then it has nothing to protect.
    pub readable: bool,
    pub(crate) private: bool,
    /// `CKA_ALWAYS_AUTHENTICATE`
    pub always_authenticate: bool,
    /// Whether `CKA_ALLOWED_MECHANISMS` limits it.
    pub restricted: bool,
    /// Of an RSA key, else 0.
    pub modulus_bits: u64,
    /// Whether it lies on a curve that policy may refuse.
    pub weak_curve: bool,
    /// Whether it agrees in a group that policy may refuse.
    pub weak_group: bool,
}

impl Facts {
    /// `verified`: written during a login. What an unverified row says of its purposes, which
    /// was not authenticated, does not count.
    pub(crate) fn new(attributes: &Attributes, verified: bool) -> Self {
        let class = attributes.ulong(CKA_CLASS).unwrap_or(UNAVAILABLE);
        let purposes = Purposes::of_key(attributes);
        let readable = !attributes.bool(CKA_SENSITIVE) && attributes.bool(CKA_EXTRACTABLE);
        Self {
            class,
            key_type: attributes.ulong(CKA_KEY_TYPE).unwrap_or(UNAVAILABLE),
            usages: usages(attributes),
            purposes: if verified { purposes } else { purposes.without(Purposes::SEALED) },
            readable: readable && is_secret(class),
            private: attributes.bool(CKA_PRIVATE),
            always_authenticate: attributes.bool(CKA_ALWAYS_AUTHENTICATE),
            restricted: has_elements(attributes.get(CKA_ALLOWED_MECHANISMS)),
            modulus_bits: attributes.bytes(CKA_MODULUS).map_or(0, bits),
            weak_curve: weak_curve(attributes),
            weak_group: weak_group(attributes, MIN_NUMBER),
        }
    }

    /// Whether its class is one of keys.
    #[must_use]
    pub const fn is_key(&self) -> bool {
        self.class == CKO_PUBLIC_KEY || is_secret(self.class)
    }

    /// Whether the caller can encrypt what it likes by this key, or compute it outside.
    pub fn encrypts(&self) -> bool {
        let by_use = self.purposes.has(Purposes::DATA) && self.may(CKA_ENCRYPT);
        self.readable || self.class == CKO_PUBLIC_KEY || by_use
    }

    /// Whether the caller can decrypt what it likes by this key, or compute it outside.
    pub fn decrypts(&self) -> bool {
        self.readable || (self.purposes.has(Purposes::DATA) && self.may(CKA_DECRYPT))
    }

    /// Whether the key has this usage (`CKA_SIGN`, …).
    pub fn may(&self, usage: CK_ATTRIBUTE_TYPE) -> bool {
        let bit = ROLES.iter().position(|role| *role == usage);
        bit.is_some_and(|bit| self.usages >> bit & 1 == 1)
    }
}

fn usages(attributes: &Attributes) -> u64 {
    let on = attributes.iter().filter(|(_, value)| *value == &Value::Bool(true));
    let roles = on.filter_map(|(usage, _)| ROLES.iter().position(|role| *role == usage));
    roles.fold(0, |bits, at| bits | 1 << at)
}

/// Bits of a big integer without leading zeros.
pub fn bits(number: &[u8]) -> u64 {
    number.first().map_or(0, |first| number.len() as u64 * 8 - u64::from(first.leading_zeros()))
}

/// Whether a key lies, or shall lie, on a curve that [is weak](Curve::is_weak): none is made there, and none signs.
pub fn weak_curve(attributes: &Attributes) -> bool {
    let on_curve = attributes.ulong(CKA_KEY_TYPE) == Some(CKK_EC);
    let params = attributes.bytes(CKA_EC_PARAMS).filter(|_| on_curve);
    params.and_then(|params| Curve::named(params).ok()).is_some_and(Curve::is_weak)
}

/// No exponent of Diffie-Hellman below this, in bits: it is found in half as many steps (SP 800-56A rev. 3 §5.6.1.1.1).
pub const MIN_EXPONENT: u64 = 224;

/// The same of a number that is there: one that was drawn from that many bits begins with more zeros once in 65,536 times.
const MIN_NUMBER: u64 = MIN_EXPONENT - 16;

/// Whether a key of Diffie-Hellman is, or shall be, in a group that is none of the known ones, or its exponent shorter than
/// `least` bits. What a template does not say is not looked at.
pub fn weak_group(attributes: &Attributes, least: u64) -> bool {
    if !matches!(attributes.ulong(CKA_KEY_TYPE), Some(CKK_DH | CKK_X9_42_DH)) {
        return false;
    }
    let number = |attribute| attributes.bytes(attribute);
    let order = number(CKA_SUBPRIME);
    let unknown = number(CKA_PRIME)
        .is_some_and(|prime| !is_known_group(prime, number(CKA_BASE).unwrap_or_default(), order));
    let bits = attributes.ulong(CKA_VALUE_BITS);
    unknown || bits.is_some_and(|bits| (1..least).contains(&bits))
}

/// Whether an array or a template limits anything.
pub fn has_elements(value: Option<&Value>) -> bool {
    match value {
        Some(Value::Ulongs(numbers)) => !numbers.is_empty(),
        Some(Value::Template(template)) => !template.is_empty(),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use metaslot_spi::known_groups;

    #[test]
    fn a_number_that_begins_with_zeros_is_not_a_short_exponent() {
        let key = |bits| {
            let prime = Value::Bytes(known_groups::prime(2048).expect("it is one"));
            let attributes = [
                (CKA_KEY_TYPE, Value::Ulong(CKK_DH)),
                (CKA_PRIME, prime),
                (CKA_BASE, Value::Bytes(vec![2])),
                (CKA_VALUE_BITS, Value::Ulong(bits)),
            ];
            attributes.into_iter().collect::<Attributes>()
        };
        for (bits, asked, there) in
            [(225, false, false), (223, true, false), (208, true, false), (207, true, true)]
        {
            assert_eq!(weak_group(&key(bits), MIN_EXPONENT), asked, "{bits}");
            assert_eq!(Facts::new(&key(bits), true).weak_group, there, "{bits}");
        }
    }
}

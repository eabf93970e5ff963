// SPDX-License-Identifier: Apache-2.0
//! What the rules are about.

use crate::facts::Facts;
use metaslot_ck::attribute::{AttributeRow, Kind, Standing, TOLD_TO_32_BITS};
use metaslot_ck::*;
use metaslot_spi::{Attributes, Value};
use std::sync::Arc;

/// The first number of more than 32 bits.
const LARGE: CK_ULONG = 1 << 32;

/// An object's attributes, and the facts read from them.
#[derive(Clone, Debug)]
pub struct Subject {
    attributes: Arc<Attributes>,
    facts: Facts,
}

impl Subject {
    /// `verified`: written during a login. What an unverified row says of its purposes, which was not authenticated, does not count.
    #[must_use]
    pub fn new(attributes: Attributes, verified: bool) -> Self {
        let facts = Facts::new(&attributes, verified);
        Self { attributes: Arc::new(attributes), facts }
    }

    /// What may be shown of it, and the token's own.
    #[must_use]
    pub fn attributes(&self) -> &Attributes {
        &self.attributes
    }

    /// The same, to keep.
    #[must_use]
    pub fn shared(&self) -> Arc<Attributes> {
        Arc::clone(&self.attributes)
    }

    /// What each use asks.
    #[must_use]
    pub const fn facts(&self) -> &Facts {
        &self.facts
    }

    /// `CKA_CLASS`
    #[must_use]
    pub const fn class(&self) -> u64 {
        self.facts.class
    }

    /// `CKA_PRIVATE`
    #[must_use]
    pub const fn private(&self) -> bool {
        self.facts.private
    }

    /// Whether `CKA_ALLOWED_MECHANISMS` of a key has this one, or says nothing.
    #[must_use]
    pub fn allows(&self, mechanism: CK_MECHANISM_TYPE) -> bool {
        // Most keys are not restricted, and the attribute is looked for at each operation.
        let allowed = || self.attributes.get(CKA_ALLOWED_MECHANISMS);
        !self.facts.restricted
            || !matches!(allowed(), Some(Value::Ulongs(allowed)) if !allowed.contains(&mechanism))
    }

    /// Whether the values of this key may be shown: never those of a sensitive or unextractable one (PKCS#11 3.2 §5.7.5).
    #[must_use]
    pub fn shows_secrets(&self) -> bool {
        !self.attributes.bool(CKA_SENSITIVE) && self.attributes.bool(CKA_EXTRACTABLE)
    }

    /// Whether every attribute of `query` has the same value here (PKCS#11 3.2 §5.7.7). A secret
    /// never matches: a search must not be an oracle for key values.
    #[must_use]
    pub fn matches(&self, query: &Attributes) -> bool {
        query.iter().all(|(attribute, value)| self.told(attribute) == Some(value))
    }

    /// What a caller is told of an attribute that is no secret, written or standing.
    #[must_use]
    pub fn told(&self, attribute: CK_ATTRIBUTE_TYPE) -> Option<&Value> {
        let row = || AttributeRow::of(attribute, self.class());
        match self.attributes.get(attribute) {
            Some(Value::Ulong(LARGE..)) if row().is_some_and(|row| row.may(TOLD_TO_32_BITS)) => {
                Some(&Value::Ulong(LARGE - 1))
            }
            Some(written) => Some(written),
            None => row().and_then(|row| row.absent.map(|absent| standing(absent, row.kind))),
        }
    }
}

/// A standing value, as an attribute of this kind has it.
#[must_use]
pub(crate) const fn standing(standing: Standing, kind: Kind) -> &'static Value {
    static NO_BYTES: Value = Value::Bytes(Vec::new());
    static NO_NUMBERS: Value = Value::Ulongs(Vec::new());
    static NO_ATTRIBUTES: Value = Value::Template(Attributes::new());
    match (standing, kind) {
        (Standing::False, _) => &Value::Bool(false),
        (Standing::True, _) => &Value::Bool(true),
        (Standing::Zero, _) => &Value::Ulong(0),
        (Standing::Empty, Kind::Ulongs) => &NO_NUMBERS,
        (Standing::Empty, Kind::Template) => &NO_ATTRIBUTES,
        (Standing::Empty, _) => &NO_BYTES,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_one_time_keys_have_left_is_told_up_to_32_bits() {
        let most = u64::from(u32::MAX);
        for (left, told) in [(0, 0), (most, most), (most + 1, most), (1 << 60, most)] {
            let number = [(CKA_CLASS, CKO_PRIVATE_KEY), (CKA_HSS_KEYS_REMAINING, left)];
            let query = |left| [(CKA_HSS_KEYS_REMAINING, Value::Ulong(left))].into_iter().collect();
            let key = number.map(|(attribute, number)| (attribute, Value::Ulong(number)));
            let key = Subject::new(key.into_iter().collect(), true);
            assert_eq!(key.told(CKA_HSS_KEYS_REMAINING), Some(&Value::Ulong(told)));
            assert_eq!(key.attributes().ulong(CKA_HSS_KEYS_REMAINING), Some(left));
            assert!(key.matches(&query(told)));
            assert_eq!(key.matches(&query(left)), left == told);
        }
        let large = [(CKA_CLASS, CKO_PUBLIC_KEY), (CKA_MODULUS_BITS, u64::MAX)];
        let large = large.map(|(attribute, number)| (attribute, Value::Ulong(number)));
        let large = Subject::new(large.into_iter().collect(), true);
        assert_eq!(large.told(CKA_MODULUS_BITS), Some(&Value::Ulong(u64::MAX)));
    }
}

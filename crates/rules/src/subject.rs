// SPDX-License-Identifier: Apache-2.0
//! What the rules are about.

use crate::facts::Facts;
use metaslot_ck::attribute::{AttributeRow, Kind, Standing};
use metaslot_ck::*;
use metaslot_spi::{Attributes, Value};
use std::sync::Arc;

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
        query.iter().all(|(attribute, value)| match self.attributes.get(attribute) {
            Some(there) => there == value,
            None => AttributeRow::of(attribute, self.class())
                .and_then(|row| row.absent.map(|standing| self::standing(standing, row.kind)))
                .is_some_and(|absent| absent == value),
        })
    }
}

/// A standing value, as an attribute of this kind has it.
#[must_use]
pub const fn standing(standing: Standing, kind: Kind) -> &'static Value {
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

// SPDX-License-Identifier: Apache-2.0
//! Objects: attributes and, for keys, material.

pub(crate) mod attribute;
pub(crate) mod rules;
pub(crate) mod session_objects;

use crate::key::Material;
use crate::metaslot::policy::weak_curve;
use crate::{Attributes, Key, Secrets, Value};
use attribute::{AttributeRow, INDEXED, Kind, class_bit};
use metaslot_ck::*;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};

/// Where an object lives.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Place {
    /// In memory, until its session closes.
    Session,
    /// In the store: row and the version that was read.
    Token { id: u64, version: u64, verified: bool },
}

/// One object as it was at one version. Immutable: a change makes a new one under the same handle
/// and marks this one stale.
#[derive(Debug)]
pub struct Object {
    pub(crate) handle: ObjectHandle,
    pub(crate) slot: SlotId,
    pub(crate) place: Place,
    attributes: Arc<Attributes>,
    facts: Facts,
    has_secrets: bool,
    key: OnceLock<Arc<Key>>,
    stale: AtomicBool,
    /// The store's generation at which this version was known to be current.
    seen: AtomicU64,
}

/// What every use of a key asks, read from its attributes once.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Facts {
    pub(crate) class: u64,
    pub(crate) key_type: u64,
    /// As [`rules::roles`].
    usages: u64,
    private: bool,
    pub(crate) always_authenticate: bool,
    pub(crate) restricted: bool,
    /// Of an RSA key, else 0.
    pub(crate) modulus_bits: u64,
    /// Whether it lies on a curve that policy may refuse.
    pub(crate) weak_curve: bool,
}

impl Facts {
    fn new(attributes: &Attributes) -> Self {
        Self {
            class: attributes.ulong(CKA_CLASS).unwrap_or(UNAVAILABLE),
            key_type: attributes.ulong(CKA_KEY_TYPE).unwrap_or(UNAVAILABLE),
            usages: rules::roles(attributes),
            private: attributes.bool(CKA_PRIVATE),
            always_authenticate: attributes.bool(CKA_ALWAYS_AUTHENTICATE),
            restricted: attributes.get(CKA_ALLOWED_MECHANISMS).is_some(),
            modulus_bits: attributes.bytes(CKA_MODULUS).map_or(0, bits),
            weak_curve: weak_curve(attributes),
        }
    }

    pub(crate) const fn is_key(&self) -> bool {
        matches!(self.class, CKO_PUBLIC_KEY | CKO_PRIVATE_KEY | CKO_SECRET_KEY)
    }

    /// Whether the key has this usage (`CKA_SIGN`, …).
    pub(crate) fn may(&self, usage: CK_ATTRIBUTE_TYPE) -> bool {
        self.usages & rules::role(usage) != 0
    }
}

/// Bits of a big integer without leading zeros.
pub(crate) fn bits(number: &[u8]) -> u64 {
    number.first().map_or(0, |first| number.len() as u64 * 8 - u64::from(first.leading_zeros()))
}

/// One attribute's answer to `C_GetAttributeValue`.
#[derive(Clone, Copy, Debug)]
pub enum Answer<'a> {
    /// A value that may be shown to anybody.
    Value(&'a Value),
    /// Bytes of a key whose owner allows them to be shown.
    Secret(&'a [u8]),
}

impl Object {
    pub(crate) fn new(
        handle: ObjectHandle,
        slot: SlotId,
        place: Place,
        attributes: Attributes,
        has_secrets: bool,
    ) -> Self {
        let facts = Facts::new(&attributes);
        let attributes = Arc::new(attributes);
        let (stale, seen) = (AtomicBool::new(false), AtomicU64::new(u64::MAX));
        Self {
            handle,
            slot,
            place,
            attributes,
            facts,
            has_secrets,
            key: OnceLock::new(),
            stale,
            seen,
        }
    }

    pub(crate) fn with_secrets(
        handle: ObjectHandle,
        slot: SlotId,
        place: Place,
        attributes: Attributes,
        secrets: Secrets,
    ) -> Self {
        let object = Self::new(handle, slot, place, attributes, !secrets.is_empty());
        object.attach(Arc::new(Material::new(secrets)));
        object
    }

    /// Gives the object its material; the first one counts.
    pub(crate) fn attach(&self, material: Arc<Material>) -> &Arc<Key> {
        self.key.get_or_init(|| Arc::new(Key::new(Arc::clone(&self.attributes), material)))
    }

    /// The key, where its material is at hand.
    pub(crate) fn key(&self) -> Option<&Arc<Key>> {
        self.key.get()
    }

    pub(crate) fn attributes(&self) -> &Attributes {
        &self.attributes
    }

    pub(crate) const fn has_secrets(&self) -> bool {
        self.has_secrets
    }

    /// `CKO_…`
    #[must_use]
    pub const fn class(&self) -> u64 {
        self.facts.class
    }

    pub(crate) const fn private(&self) -> bool {
        self.facts.private
    }

    pub(crate) const fn facts(&self) -> &Facts {
        &self.facts
    }

    pub(crate) const fn on_token(&self) -> bool {
        matches!(self.place, Place::Token { .. })
    }

    pub(crate) fn retire(&self) {
        self.stale.store(true, Ordering::Release);
    }

    pub(crate) fn is_stale(&self) -> bool {
        self.stale.load(Ordering::Acquire)
    }

    /// Whether this version was current at `generation` of its store.
    pub(crate) fn seen_at(&self, generation: Option<u64>) -> bool {
        generation.is_some_and(|now| now & 1 == 0 && self.seen.load(Ordering::Relaxed) == now)
    }

    pub(crate) fn mark_seen(&self, generation: Option<u64>) {
        self.seen.store(generation.unwrap_or(u64::MAX), Ordering::Relaxed);
    }

    /// Whether the values of this key may be shown: never those of a sensitive or unextractable
    /// one (PKCS#11 3.2 §5.7.5).
    pub(crate) fn shows_secrets(&self) -> bool {
        !self.attributes.bool(CKA_SENSITIVE) && self.attributes.bool(CKA_EXTRACTABLE)
    }

    /// One attribute. The material must be attached when `shows_secrets`.
    ///
    /// # Errors
    /// `CKR_ATTRIBUTE_SENSITIVE`, `CKR_ATTRIBUTE_TYPE_INVALID`
    pub fn answer(&self, attribute: CK_ATTRIBUTE_TYPE) -> Result<Answer<'_>> {
        if attribute == attribute::CKA_BIRTH_ROLES {
            return Err(Error::ATTRIBUTE_TYPE_INVALID);
        }
        if let Some(value) = self.attributes.get(attribute) {
            return Ok(Answer::Value(value));
        }
        let row = AttributeRow::find(attribute).ok_or(Error::ATTRIBUTE_TYPE_INVALID)?;
        let on = class_bit(self.class()).is_some_and(|bit| row.on & bit != 0);
        if row.kind != Kind::Secret || !on || !self.has_secrets {
            return Err(Error::ATTRIBUTE_TYPE_INVALID);
        }
        if !self.shows_secrets() {
            return Err(Error::ATTRIBUTE_SENSITIVE);
        }
        let value = self.key.get().and_then(|key| key.secrets().get(attribute));
        value.map(Answer::Secret).ok_or(Error::ATTRIBUTE_TYPE_INVALID)
    }

    /// Whether every attribute of `query` has the same value here (PKCS#11 3.2 §5.7.7). A secret
    /// never matches: a search must not be an oracle for key values.
    pub(crate) fn matches(&self, query: &Attributes) -> bool {
        query.iter().all(|(attribute, value)| self.attributes.get(attribute) == Some(value))
    }
}

/// The rows of the store's index for these attributes.
pub(crate) fn terms(attributes: &Attributes) -> Vec<crate::store::Term> {
    INDEXED.iter().filter_map(|attribute| term(attributes, *attribute)).collect()
}

pub(crate) fn term(attributes: &Attributes, attribute: u64) -> Option<crate::store::Term> {
    let bytes = match attributes.get(attribute)? {
        Value::Ulong(number) => number.to_le_bytes().to_vec(),
        Value::Bytes(bytes) if !bytes.is_empty() => bytes.clone(),
        _ => return None,
    };
    Some((attribute, bytes))
}

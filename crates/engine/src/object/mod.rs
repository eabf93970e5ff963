// SPDX-License-Identifier: Apache-2.0
//! Objects: attributes and, for keys, material.

pub(crate) mod one_time;
pub(crate) mod recent;
pub(crate) mod session_objects;

use crate::token::epoch::Epoch;
use metaslot_ck::attribute::{
    AttributeRow, CKA_BIRTH_ROLES, CKA_COUNTED_SINCE, CKA_FOREIGN_ROW, CKA_IV_SERIES, CKA_PURPOSES,
};
use metaslot_ck::*;
use metaslot_rules::Subject;
use metaslot_rules::counted::Taken;
use metaslot_rules::facts::Facts;
use metaslot_spi::Material;
use metaslot_spi::key::OneTime;
use metaslot_spi::store::{Record, Store, Term};
use metaslot_spi::{Attributes, Key, Secrets, Value};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};

/// Where an object lives.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Location {
    /// In memory, until its session closes.
    Session,
    /// In the store: row and the version that was read.
    Token { id: u64, version: u64, verified: bool },
}

/// Shared by every version of an object that is in use: the thread that destroys the object finds them all.
#[derive(Debug, Default)]
pub(crate) struct Life {
    over: AtomicBool,
    /// Of a session's object.
    taken: Arc<Taken>,
}

impl Life {
    pub(crate) fn end(&self) {
        self.over.store(true, Ordering::Release);
    }

    fn is_over(&self) -> bool {
        self.over.load(Ordering::Acquire)
    }
}

/// One object as it was at one version. Immutable: a change makes a new one under the same handle,
/// with the same life, and supersedes this one.
#[derive(Debug)]
pub struct Object {
    pub(crate) handle: ObjectHandle,
    pub(crate) slot: SlotId,
    pub(crate) place: Location,
    subject: Subject,
    has_secrets: bool,
    key: OnceLock<Arc<Key>>,
    taken: OnceLock<Arc<Taken>>,
    /// In which epoch of its token it was read or made.
    pub(crate) epoch: Epoch,
    life: Arc<Life>,
    superseded: AtomicBool,
    /// The store's generation at which this version was known to be current.
    seen: AtomicU64,
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
        place: Location,
        attributes: Attributes,
        has_secrets: bool,
        epoch: Epoch,
    ) -> Self {
        let verified = !matches!(place, Location::Token { verified: false, .. });
        let subject = Subject::new(attributes, verified);
        let (superseded, seen) = (AtomicBool::new(false), AtomicU64::new(u64::MAX));
        Self {
            handle,
            slot,
            place,
            subject,
            has_secrets,
            key: OnceLock::new(),
            taken: OnceLock::new(),
            epoch,
            life: Arc::default(),
            superseded,
            seen,
        }
    }

    /// The object as another version of the one whose life this is.
    pub(crate) fn living(self, life: Arc<Life>) -> Self {
        Self { life, ..self }
    }

    /// The next version of this one: other attributes, the same material.
    pub(crate) fn changed(&self, attributes: Attributes) -> Self {
        let Self { handle, slot, place, has_secrets, epoch, .. } = *self;
        let new = Self::new(handle, slot, place, attributes, has_secrets, epoch);
        if let Some(key) = self.key() {
            new.attach(Arc::clone(key.material()));
        }
        new.living(Arc::clone(&self.life))
    }

    pub(crate) fn with_secrets(
        handle: ObjectHandle,
        slot: SlotId,
        place: Location,
        attributes: Attributes,
        secrets: Secrets,
        epoch: Epoch,
    ) -> Self {
        let object = Self::new(handle, slot, place, attributes, !secrets.is_empty(), epoch);
        object.attach(Arc::new(Material::new(secrets)));
        object
    }

    /// Gives the object its material; the first one counts.
    pub(crate) fn attach(&self, material: Arc<Material>) -> &Arc<Key> {
        self.key.get_or_init(|| Arc::new(Key::new(self.subject.shared(), material)))
    }

    /// The same for a key of one-time keys.
    pub(crate) fn attach_counted(
        &self,
        material: Arc<Material>,
        one_time: Arc<dyn OneTime>,
    ) -> &Arc<Key> {
        let key = || Key::new(self.subject.shared(), material).with_one_time(one_time);
        self.key.get_or_init(|| Arc::new(key()))
    }

    /// The key, where its material is at hand.
    pub(crate) fn key(&self) -> Option<&Arc<Key>> {
        self.key.get()
    }

    /// What the rules ask.
    pub(crate) const fn subject(&self) -> &Subject {
        &self.subject
    }

    pub(crate) fn attributes(&self) -> &Attributes {
        self.subject.attributes()
    }

    pub(crate) const fn has_secrets(&self) -> bool {
        self.has_secrets
    }

    /// `CKO_…`
    #[must_use]
    pub const fn class(&self) -> u64 {
        self.subject.class()
    }

    pub(crate) const fn private(&self) -> bool {
        self.subject.private()
    }

    pub(crate) const fn facts(&self) -> &Facts {
        self.subject.facts()
    }

    pub(crate) const fn on_token(&self) -> bool {
        matches!(self.place, Location::Token { .. })
    }

    /// Another version has taken this one's place. Operations under way go on with this one.
    pub(crate) fn supersede(&self) {
        self.superseded.store(true, Ordering::Release);
    }

    /// Whether its row is not in the store any more, or in one that was made anew.
    pub(crate) fn is_gone_from(&self, store: &dyn Store) -> bool {
        let Location::Token { id, .. } = self.place else { return false };
        matches!(store.read(id), Ok(None) | Err(Error::USER_NOT_LOGGED_IN))
    }

    /// The object is destroyed, in every version.
    pub(crate) fn end(&self) {
        self.life.end();
    }

    /// Whether it was destroyed.
    pub(crate) fn has_ended(&self) -> bool {
        self.life.is_over()
    }

    /// What was taken of it; `of_row` finds that of a row and a `CKA_UNIQUE_ID`.
    pub(crate) fn taken(&self, of_row: impl FnOnce(u64, &[u8]) -> Arc<Taken>) -> &Arc<Taken> {
        self.taken.get_or_init(|| match self.place {
            Location::Session => Arc::clone(&self.life.taken),
            Location::Token { id, .. } => {
                of_row(id, self.attributes().bytes(CKA_UNIQUE_ID).unwrap_or_default())
            }
        })
    }

    /// Whether it shares this life.
    pub(crate) fn shares(&self, life: &Arc<Life>) -> bool {
        Arc::ptr_eq(&self.life, life)
    }

    /// Whether anybody holds another version of it, or is about to.
    pub(crate) fn has_others(&self) -> bool {
        Arc::strong_count(&self.life) > 1
    }

    /// Whether another version has its place.
    pub(crate) fn is_superseded(&self) -> bool {
        self.superseded.load(Ordering::Acquire)
    }

    /// Whether nothing may be done with it in this epoch, not even in an operation that began before:
    /// it was destroyed, or the login ended in which it could be used.
    pub(crate) fn is_over(&self, now: Epoch) -> bool {
        self.life.is_over() || (self.needs_login() && self.epoch != now)
    }

    /// Whether it goes at logout: a private object, or one whose secrets a login opened.
    pub(crate) const fn needs_login(&self) -> bool {
        self.private() || (self.on_token() && self.has_secrets)
    }

    /// Whether this version was current at `generation` of its store.
    pub(crate) fn seen_at(&self, generation: Option<u64>) -> bool {
        generation.is_some_and(|now| now & 1 == 0 && self.seen.load(Ordering::Relaxed) == now)
    }

    /// Whether it is a version that was current when its store was last looked at, and nothing has changed since.
    pub(crate) fn is_current_in(&self, store: &dyn Store) -> bool {
        matches!(self.place, Location::Token { id, .. } if self.seen_at(store.generation_of(id)))
    }

    pub(crate) fn mark_seen(&self, generation: Option<u64>) {
        self.seen.store(generation.unwrap_or(u64::MAX), Ordering::Relaxed);
    }

    /// One attribute. The material is attached when `shows_secrets`, but for a login that there is not.
    ///
    /// # Errors
    /// `CKR_ATTRIBUTE_SENSITIVE`, `CKR_ATTRIBUTE_TYPE_INVALID`
    pub fn answer(&self, attribute: CK_ATTRIBUTE_TYPE) -> Result<Answer<'_>> {
        if is_our_own(attribute) {
            return Err(Error::ATTRIBUTE_TYPE_INVALID);
        }
        if let Some(value) = self.subject.told(attribute) {
            return Ok(Answer::Value(value));
        }
        let row = AttributeRow::of(attribute, self.class()).ok_or(Error::ATTRIBUTE_TYPE_INVALID)?;
        if !row.secret || !self.has_secrets {
            return Err(Error::ATTRIBUTE_TYPE_INVALID);
        }
        if !self.subject.shows_secrets() {
            return Err(Error::ATTRIBUTE_SENSITIVE);
        }
        let key = self.key.get().ok_or(Error::ATTRIBUTE_SENSITIVE)?;
        key.secrets().get(attribute).map(Answer::Secret).ok_or(Error::ATTRIBUTE_TYPE_INVALID)
    }
}

/// Whether an attribute is kept with objects and never shown, neither by a value nor by what a search finds.
pub(crate) const fn is_our_own(attribute: CK_ATTRIBUTE_TYPE) -> bool {
    matches!(
        attribute,
        CKA_BIRTH_ROLES | CKA_PURPOSES | CKA_FOREIGN_ROW | CKA_IV_SERIES | CKA_COUNTED_SINCE
    )
}

/// A row of the store. `CKA_TOKEN` and `CKA_PRIVATE` stand in it like any other attribute.
pub(crate) fn record(attributes: &Attributes, secrets: &Secrets) -> Result<Record> {
    Ok(Record {
        private: attributes.bool(CKA_PRIVATE),
        attributes: attributes.encode(),
        secrets: (!secrets.is_empty()).then(|| secrets.encode()).transpose()?,
        terms: AttributeRow::indexed().filter_map(|named| term(attributes, named)).collect(),
    })
}

/// The row of the store's index for an attribute.
pub(crate) fn term(attributes: &Attributes, attribute: u64) -> Option<Term> {
    let bytes = match attributes.get(attribute)? {
        Value::Ulong(number) => number.to_le_bytes().to_vec(),
        Value::Bytes(bytes) if !bytes.is_empty() => bytes.clone(),
        _ => return None,
    };
    Some((attribute, bytes))
}

// SPDX-License-Identifier: Apache-2.0
//! Which of the module's handles is which row of ours. Row numbers never come back.

use crate::value;
use metaslot_ck::*;
use metaslot_client::Template;
use metaslot_spi::Attributes;
use metaslot_spi::store::{Found, Scope, Term};
use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// What is known of a token's objects.
#[derive(Debug, Default)]
pub(crate) struct Objects {
    last: u64,
    rows: BTreeMap<u64, Known>,
    by_handle: HashMap<u64, u64>,
    /// Goes up by two with every change and search: until then what was read counts.
    generation: Arc<AtomicU64>,
    /// Goes up with every loss of the connection: handles from before are those of nothing, or of something else.
    losses: u64,
    /// What was found last, for a search that is read in pieces.
    search: Option<(Vec<Term>, Scope, Vec<Found>)>,
}

#[derive(Debug)]
struct Known {
    /// `None` since the connection was lost.
    handle: Option<ObjectHandle>,
    private: bool,
    version: u64,
    attributes: Attributes,
}

/// What tells an object from others, when its handle is lost.
const TELLING: [u64; 8] = [
    CKA_CLASS,
    CKA_KEY_TYPE,
    CKA_ID,
    CKA_LABEL,
    CKA_MODULUS,
    CKA_EC_POINT,
    CKA_ISSUER,
    CKA_SERIAL_NUMBER,
];

/// What does not change while an object is there.
const FIXED: [u64; 13] = [
    CKA_CLASS,
    CKA_KEY_TYPE,
    CKA_MODULUS,
    CKA_EC_PARAMS,
    CKA_EC_POINT,
    CKA_UNIQUE_ID,
    CKA_CHECK_VALUE,
    CKA_VALUE_LEN,
    CKA_LOCAL,
    CKA_KEY_GEN_MECHANISM,
    CKA_ALWAYS_SENSITIVE,
    CKA_NEVER_EXTRACTABLE,
    CKA_ALWAYS_AUTHENTICATE,
];

impl Objects {
    /// The number of the last change, for those who look without the lock.
    pub(crate) fn generation(&self) -> Arc<AtomicU64> {
        Arc::clone(&self.generation)
    }

    /// What was read is to be read again.
    pub(crate) fn changed(&mut self) {
        self.generation.fetch_add(2, Ordering::AcqRel);
        self.search = None;
    }

    /// The row of a handle that is known.
    pub(crate) fn row(&self, handle: ObjectHandle) -> Option<Found> {
        let id = *self.by_handle.get(&handle.0)?;
        Some(Found { id, private: self.rows.get(&id)?.private })
    }

    /// The row of a handle, new if it was not known.
    pub(crate) fn add(&mut self, handle: ObjectHandle, private: bool) -> Found {
        if let Some(found) = self.row(handle) {
            return found;
        }
        self.last += 1;
        let attributes = Attributes::new();
        let known = Known { handle: Some(handle), private, version: 1, attributes };
        self.rows.insert(self.last, known);
        self.by_handle.insert(handle.0, self.last);
        Found { id: self.last, private }
    }

    /// How often the connection was lost.
    pub(crate) const fn losses(&self) -> u64 {
        self.losses
    }

    pub(crate) fn handle(&self, row: u64) -> Option<ObjectHandle> {
        self.rows.get(&row)?.handle
    }

    pub(crate) fn is_private(&self, row: u64) -> Option<bool> {
        self.rows.get(&row).map(|known| known.private)
    }

    /// By which an object is found again.
    pub(crate) fn description(&self, row: u64) -> Option<Template> {
        let known = self.rows.get(&row)?;
        let telling = TELLING.iter().filter_map(|attribute| {
            Some((*attribute, value::encoded(known.attributes.get(*attribute)?)))
        });
        let template: Template = telling.collect();
        (template.len() > 1).then(|| template.bool(CKA_TOKEN, true))
    }

    /// Whether there are rows of which no handle is known.
    pub(crate) fn has_lost(&self) -> bool {
        self.rows.len() > self.by_handle.len()
    }

    /// Those of them that can be an object's with these attributes.
    pub(crate) fn lost(&self, now: &Attributes) -> Vec<u64> {
        let tells = |known: &Known| {
            let told = |attribute: &u64| known.attributes.get(*attribute) == now.get(*attribute);
            known.handle.is_none() && TELLING.iter().all(told)
        };
        let lost = self.rows.iter().filter(|(row, known)| tells(known) && self.is_same(**row, now));
        lost.map(|(row, _)| *row).collect()
    }

    /// An object has this handle now.
    pub(crate) fn revive(&mut self, row: u64, handle: ObjectHandle) {
        if let Some(known) = self.rows.get_mut(&row) {
            known.handle = Some(handle);
            self.by_handle.insert(handle.0, row);
        }
    }

    /// What was read of a row; gives its version, which is new if anything in it is. Where the module has given
    /// the handle to another object, the row is gone.
    pub(crate) fn read(&mut self, row: u64, attributes: &Attributes) -> Option<u64> {
        if !self.is_same(row, attributes) {
            self.forget(row);
        }
        let known = self.rows.get_mut(&row)?;
        if known.attributes != *attributes {
            known.version += 1;
            known.attributes = attributes.clone();
        }
        Some(known.version)
    }

    /// Whether these can be a row's: what is fixed in an object is as it was.
    pub(crate) fn is_same(&self, row: u64, now: &Attributes) -> bool {
        self.rows.get(&row).is_some_and(|known| {
            let same =
                |attribute: &u64| match (known.attributes.get(*attribute), now.get(*attribute)) {
                    (Some(then), Some(now)) => then == now,
                    _ => true,
                };
            now.bool(CKA_PRIVATE) == known.private && FIXED.iter().all(same)
        })
    }

    /// Whether a row is as it was at this version.
    pub(crate) fn is_at(&self, row: u64, version: u64) -> bool {
        self.rows.get(&row).is_some_and(|known| known.version == version)
    }

    /// The attributes as they were read last.
    pub(crate) fn attributes(&self, row: u64) -> Option<&Attributes> {
        self.rows.get(&row).map(|known| &known.attributes)
    }

    pub(crate) fn forget(&mut self, row: u64) {
        if let Some(handle) = self.rows.remove(&row).and_then(|known| known.handle) {
            self.by_handle.remove(&handle.0);
        }
        self.changed();
    }

    pub(crate) fn forget_private(&mut self) {
        self.rows.retain(|_, known| !known.private);
        let rows = &self.rows;
        self.by_handle.retain(|_, row| rows.contains_key(row));
        self.changed();
    }

    pub(crate) fn forget_all(&mut self) {
        self.rows.clear();
        self.by_handle.clear();
        self.changed();
    }

    /// The module's handles mean nothing any more.
    pub(crate) fn disconnect(&mut self) {
        self.losses += 1;
        self.rows.values_mut().for_each(|known| known.handle = None);
        self.by_handle.clear();
        self.changed();
    }

    /// Remembers what a search found.
    pub(crate) fn found(&mut self, query: &[Term], scope: Scope, mut all: Vec<Found>) {
        all.sort_unstable_by_key(|found| found.id);
        self.search = Some((query.to_vec(), scope, all));
    }

    /// More of what was found, if that is the same search.
    pub(crate) fn more(
        &self,
        query: &[Term],
        scope: Scope,
        after: u64,
        limit: usize,
    ) -> Option<Vec<Found>> {
        let (_, _, all) = self.search.as_ref().filter(|old| old.0 == query && old.1 == scope)?;
        let from = all.partition_point(|found| found.id <= after);
        Some(all[from..].iter().take(limit).copied().collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_never_come_back() {
        let mut objects = Objects::default();
        let (one, two) = (objects.add(ObjectHandle(7), true), objects.add(ObjectHandle(8), false));
        assert_eq!(objects.add(ObjectHandle(7), true), one);
        objects.forget_private();
        assert_eq!(objects.handle(one.id), None);
        assert_eq!(objects.handle(two.id), Some(ObjectHandle(8)));
        assert!(objects.add(ObjectHandle(7), true).id > two.id);
    }

    #[test]
    fn a_search_that_is_read_in_pieces_gives_each_row_once() {
        let mut objects = Objects::default();
        let all: Vec<_> = (1..=5).map(|n| objects.add(ObjectHandle(n), false)).collect();
        objects.found(&[], Scope::Both, all.clone());
        assert_eq!(objects.more(&[], Scope::Both, 0, 2).as_deref(), Some(&all[..2]));
        assert_eq!(objects.more(&[], Scope::Both, 2, 9).as_deref(), Some(&all[2..]));
        assert_eq!(objects.more(&[], Scope::Public, 2, 9), None);
        objects.changed();
        assert_eq!(objects.more(&[], Scope::Both, 2, 9), None);
    }
}

// SPDX-License-Identifier: Apache-2.0
//! What was read since the last change: rows as they are stored, and what searches found. Rows are sealed here as they are in the
//! database; the keys that open them, and what these open, are in locked memory.

use crate::link::lock;
use metaslot_keystore::elsewhere::{KeyId, Stored};
use metaslot_spi::store::{Found, Scope, Term};
use std::collections::HashMap;
use std::hash::Hash;
use std::sync::{Arc, Mutex};

/// How much is kept, in bytes.
const MOST: usize = 32 << 20;
/// What an entry takes besides what is in it, in bytes.
const ENTRY: usize = 128;

/// When something was read, and for whom: nothing else may be answered with it.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) struct Moment {
    pub(crate) generation: u64,
    pub(crate) key: Option<KeyId>,
}

/// What a search asks for.
#[derive(Clone, Debug, Eq, Hash, PartialEq)]
pub(crate) struct Query {
    pub(crate) terms: Vec<Term>,
    pub(crate) scope: u8,
    pub(crate) after: u64,
    pub(crate) limit: usize,
}

impl Query {
    pub(crate) fn new(terms: &[Term], scope: Scope, after: u64, limit: usize) -> Self {
        Self { terms: terms.to_vec(), scope: scope as u8, after, limit }
    }

    fn size(&self) -> usize {
        self.terms.iter().map(|(_, value)| value.len() + 32).sum()
    }
}

#[derive(Debug, Default)]
pub(crate) struct Cache(Mutex<Kept>);

#[derive(Debug, Default)]
struct Kept {
    moment: Option<Moment>,
    rows: HashMap<u64, Option<Arc<Stored>>>,
    searches: HashMap<Query, Arc<[Found]>>,
    size: usize,
}

impl Kept {
    /// What is kept, unless it is of another moment.
    fn of(&mut self, moment: Moment) -> &mut Self {
        if self.moment != Some(moment) {
            *self = Self { moment: Some(moment), ..Self::default() };
        }
        self
    }

    /// Takes things out until there is room.
    fn make_room(&mut self, needed: usize) -> bool {
        while self.size + needed > MOST {
            let row = any(&self.rows);
            let search = any(&self.searches);
            if let Some((id, size)) = row.map(|(id, row)| (id, row_size(row.as_deref()))) {
                self.rows.remove(&id);
                self.size -= size;
            } else if let Some((query, found)) = search {
                self.searches.remove(&query);
                self.size -= search_size(&query, &found);
            } else {
                return false;
            }
        }
        self.size += needed;
        true
    }
}

fn any<K: Clone + Eq + Hash, V: Clone>(map: &HashMap<K, V>) -> Option<(K, V)> {
    map.iter().next().map(|(key, value)| (key.clone(), value.clone()))
}

fn row_size(row: Option<&Stored>) -> usize {
    row.map_or(0, |row| {
        row.attributes.len() + row.secrets.as_ref().map_or(0, Vec::len) + row.terms.len() + 64
    }) + ENTRY
}

fn search_size(query: &Query, found: &[Found]) -> usize {
    query.size() + size_of_val(found) + ENTRY
}

impl Cache {
    /// A row that was read at this moment; inside, `None` where there was none.
    pub(crate) fn row(&self, moment: Moment, id: u64) -> Option<Option<Arc<Stored>>> {
        lock(&self.0).of(moment).rows.get(&id).cloned()
    }

    pub(crate) fn keep_row(&self, moment: Moment, id: u64, row: Option<Arc<Stored>>) {
        let mut kept = lock(&self.0);
        let kept = kept.of(moment);
        if !kept.rows.contains_key(&id) && kept.make_room(row_size(row.as_deref())) {
            kept.rows.insert(id, row);
        }
    }

    pub(crate) fn search(&self, moment: Moment, query: &Query) -> Option<Arc<[Found]>> {
        lock(&self.0).of(moment).searches.get(query).cloned()
    }

    pub(crate) fn keep_search(&self, moment: Moment, query: Query, found: Arc<[Found]>) {
        let mut kept = lock(&self.0);
        let kept = kept.of(moment);
        if !kept.searches.contains_key(&query) && kept.make_room(search_size(&query, &found)) {
            kept.searches.insert(query, found);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(length: usize) -> Option<Arc<Stored>> {
        Some(Arc::new(Stored {
            version: 1,
            private: false,
            verified: false,
            attributes: vec![0; length],
            secrets: None,
            terms: Vec::new(),
            tag: None,
        }))
    }

    #[test]
    fn what_is_kept_is_of_one_moment_and_bounded() {
        let (cache, now) = (Cache::default(), Moment { generation: 2, key: None });
        for id in 0..200 {
            cache.keep_row(now, id, row(1 << 20));
            assert!(cache.row(now, id).is_some());
            assert!(lock(&cache.0).size <= MOST);
        }
        cache.keep_row(now, 200, row(MOST));
        assert!(cache.row(now, 200).is_none());
        cache.keep_row(now, 201, None);
        assert!(cache.row(now, 201).is_some());
        assert!(cache.row(Moment { generation: 4, ..now }, 201).is_none());
        assert!(cache.row(now, 201).is_none());
        assert_eq!(lock(&cache.0).size, 0);
    }
}

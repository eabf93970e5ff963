// SPDX-License-Identifier: Apache-2.0
//! What was read last: rows as they are stored, and what searches found. While there is a database only what was read since the
//! last change is used; while it is away, what is older is as well. Rows are sealed here as they are in the
//! database; the keys that open them, and what these open, are in locked memory.

use crate::link::lock;
use metaslot_keystore::elsewhere::{KeyId, Stored};
use metaslot_spi::store::{Found, Scope, Term};
use std::collections::HashMap;
use std::hash::Hash;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

/// How much is kept, in bytes.
const MOST: usize = 32 << 20;
/// What an entry takes besides what is in it, in bytes.
const ENTRY: usize = 128;

/// When something is asked, and for whom.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Moment {
    /// `None` while it is not known.
    pub(crate) generation: Option<u64>,
    pub(crate) key: Option<KeyId>,
    /// What [`Cache::forgotten`] said before it was read.
    pub(crate) forgotten: u64,
}

/// What was read, and when.
#[derive(Clone, Debug)]
struct Read<T> {
    generation: u64,
    value: T,
}

impl<T: Clone> Read<T> {
    /// It, where nothing has changed since, or `or_older`.
    fn at(&self, moment: Moment, or_older: bool) -> Option<T> {
        let holds = or_older || moment.generation == Some(self.generation);
        holds.then(|| self.value.clone())
    }
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

type Row = Option<Arc<Stored>>;
type Owned<K> = (Option<KeyId>, K);

#[derive(Debug, Default)]
pub(crate) struct Cache(Mutex<Kept>, AtomicU64);

#[derive(Debug, Default)]
struct Kept {
    rows: HashMap<Owned<u64>, Read<Row>>,
    searches: HashMap<Owned<Query>, Read<Arc<[Found]>>>,
    size: usize,
}

impl Kept {
    fn drop_row(&mut self, which: &Owned<u64>) {
        if let Some(row) = self.rows.remove(which) {
            self.size -= row_size(row.value.as_deref());
        }
    }

    fn drop_search(&mut self, which: &Owned<Query>) {
        if let Some(found) = self.searches.remove(which) {
            self.size -= search_size(&which.1, &found.value);
        }
    }

    /// Takes things out until there is room.
    fn make_room(&mut self, needed: usize) -> bool {
        while self.size + needed > MOST {
            let row = self.rows.keys().next().copied();
            let search = self.searches.keys().next().filter(|_| row.is_none()).cloned();
            row.iter().for_each(|row| self.drop_row(row));
            search.iter().for_each(|search| self.drop_search(search));
            if row.is_none() && search.is_none() {
                return false;
            }
        }
        self.size += needed;
        true
    }
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
    /// A row as it was read last, where it is that still, or `or_older`; inside, `None` where there was none.
    pub(crate) fn row(&self, moment: Moment, id: u64, or_older: bool) -> Option<Row> {
        lock(&self.0).rows.get(&(moment.key, id))?.at(moment, or_older)
    }

    pub(crate) fn keep_row(&self, moment: Moment, id: u64, row: Row) {
        let (mut kept, which) = (lock(&self.0), (moment.key, id));
        let Some(generation) = self.generation_of(moment) else { return };
        kept.drop_row(&which);
        if kept.make_room(row_size(row.as_deref())) {
            kept.rows.insert(which, Read { generation, value: row });
        }
    }

    /// What a search found last, as [`Self::row`].
    pub(crate) fn search(
        &self,
        moment: Moment,
        query: &Query,
        or_older: bool,
    ) -> Option<Arc<[Found]>> {
        lock(&self.0).searches.get(&(moment.key, query.clone()))?.at(moment, or_older)
    }

    pub(crate) fn keep_search(&self, moment: Moment, query: Query, found: Arc<[Found]>) {
        let (mut kept, which) = (lock(&self.0), (moment.key, query));
        let Some(generation) = self.generation_of(moment) else { return };
        kept.drop_search(&which);
        if kept.make_room(search_size(&which.1, &found)) {
            kept.searches.insert(which, Read { generation, value: found });
        }
    }

    /// How often something was forgotten.
    pub(crate) fn forgotten(&self) -> u64 {
        self.1.load(Ordering::Acquire)
    }

    /// When that was read which is to be kept, where that is known: not what was read while something was forgotten, which it may be. The
    /// caller has the lock.
    fn generation_of(&self, read: Moment) -> Option<u64> {
        read.generation.filter(|_| read.forgotten == self.forgotten())
    }

    /// Forgets these objects, which this process has changed, and has what is being read of them now not be kept.
    pub(crate) fn forget(&self, ids: &[u64]) {
        if ids.is_empty() {
            return;
        }
        let mut kept = lock(&self.0);
        self.1.fetch_add(1, Ordering::AcqRel);
        let rows: Vec<_> = kept.rows.keys().filter(|(_, id)| ids.contains(id)).copied().collect();
        rows.iter().for_each(|row| kept.drop_row(row));
        let has = |found: &Read<Arc<[Found]>>| found.value.iter().any(|row| ids.contains(&row.id));
        let searches = kept.searches.iter().filter(|(_, found)| has(found));
        let searches: Vec<_> = searches.map(|(which, _)| which.clone()).collect();
        searches.iter().for_each(|search| kept.drop_search(search));
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

    const NOW: Moment = Moment { generation: Some(2), key: None, forgotten: 0 };

    #[test]
    fn what_is_kept_is_of_one_moment_and_bounded() {
        let cache = Cache::default();
        for id in 0..200 {
            cache.keep_row(NOW, id, row(1 << 20));
            assert!(cache.row(NOW, id, false).is_some());
            assert!(lock(&cache.0).size <= MOST);
        }
        cache.keep_row(NOW, 200, row(MOST));
        assert!(cache.row(NOW, 200, true).is_none());
        cache.keep_row(NOW, 201, None);
        let later = Moment { generation: Some(4), ..NOW };
        assert!(cache.row(NOW, 201, false).is_some() && cache.row(later, 201, false).is_none());
        assert!(cache.row(Moment { generation: None, ..NOW }, 201, false).is_none());
        // What another login has is another one's.
        assert!(cache.row(Moment { key: Some([1; 16]), ..NOW }, 201, true).is_none());
    }

    #[test]
    fn what_was_read_before_a_change_is_told_apart_and_what_was_changed_here_is_forgotten() {
        let (cache, later) = (Cache::default(), Moment { generation: Some(4), ..NOW });
        let found: Arc<[Found]> = [Found { id: 7, private: true }].into();
        let query = Query::new(&[], Scope::Both, 0, 9);
        cache.keep_row(NOW, 7, row(1));
        cache.keep_search(NOW, query.clone(), found);
        assert!(cache.row(later, 7, false).is_none() && cache.row(later, 7, true).is_some());
        assert!(cache.search(later, &query, false).is_none());
        assert!(cache.search(later, &query, true).is_some());
        cache.forget(&[8]);
        assert!(cache.row(later, 7, true).is_some());
        cache.forget(&[7]);
        assert!(cache.row(later, 7, true).is_none() && cache.search(later, &query, true).is_none());
        assert_eq!(lock(&cache.0).size, 0);
    }

    /// While the database is away it would be used, although this process has changed it.
    #[test]
    fn what_was_read_before_a_change_of_this_process_is_not_kept_after_it() {
        let cache = Cache::default();
        let (query, found) = (Query::new(&[], Scope::Both, 0, 9), [Found { id: 7, private: true }]);
        let before = Moment { forgotten: cache.forgotten(), ..NOW };
        cache.forget(&[7]);
        cache.keep_row(before, 7, row(1));
        cache.keep_search(before, query.clone(), found.into());
        assert!(cache.row(NOW, 7, true).is_none() && cache.search(NOW, &query, true).is_none());
        cache.keep_row(Moment { forgotten: cache.forgotten(), ..NOW }, 7, row(1));
        assert!(cache.row(NOW, 7, true).is_some());
    }
}

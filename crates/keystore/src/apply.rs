// SPDX-License-Identifier: Apache-2.0
//! Changes of objects inside a transaction: sealing, indexing, and the tree of hashes.

use crate::crypto::{self, Keys, LOOKUP, RowContext};
use crate::error::{Error, Result};
use crate::rows::{Rows, RowsMut};
use crate::schema::{Head, Stored};
use crate::state::{Difference, Known, Memory};
use crate::tree::{self, Tree};
use metaslot_ck::CKA_UNIQUE_ID;
use metaslot_memory::Secret;
use metaslot_spi::store::{Change, Record, Term};
use std::sync::Arc;

/// The change sets of one transaction.
pub(crate) struct Batch<'a> {
    connection: &'a dyn RowsMut,
    head: Head,
    /// The next id as it was stored.
    first: u64,
    /// The authenticated rows, opened by the first change that needs them.
    rows: Option<(Arc<Keys>, Known)>,
    memory: &'a Memory,
}

/// The keys that sealed a row may be gone: the token was initialised anew by another process.
pub(crate) fn current<'a>(keys: Option<&'a Arc<Keys>>, head: &Head) -> Result<&'a Arc<Keys>> {
    keys.filter(|keys| keys.id == head.key_id).ok_or(Error::NotLoggedIn)
}

impl<'a> Batch<'a> {
    pub(crate) fn begin(connection: &'a dyn RowsMut, memory: &'a Memory) -> Result<Self> {
        let head = connection.head()?;
        Ok(Self { connection, first: head.next_id, head, rows: None, memory })
    }

    /// Applies one change set. When it fails the whole transaction must be given up.
    pub(crate) fn apply(
        &mut self,
        changes: &[Change],
        keys: Option<&Arc<Keys>>,
    ) -> Result<Vec<u64>> {
        let mut ids = Vec::new();
        for change in changes {
            match change {
                Change::Insert(record) => ids.push(self.insert(record, keys)?),
                Change::Update { id, version, record } => {
                    self.update(*id, *version, record, keys)?;
                }
                Change::Delete { id, version, unique_id } => {
                    self.delete(*id, *version, unique_id.as_ref(), keys)?;
                }
            }
        }
        Ok(ids)
    }

    /// Writes what the token's own row must know of the changes. Gives the keys that sealed it;
    /// `None` where its state is the same.
    pub(crate) fn finish(self) -> Result<Option<Arc<Keys>>> {
        let Self { connection, head, rows, memory, .. } = self;
        if let Some((keys, mut known)) = rows {
            known.state.next_id = head.next_id;
            known.write(connection, &keys, memory)?;
            return Ok(Some(keys));
        }
        connection.write_head(head.next_id, None)?;
        Ok(None)
    }

    fn insert(&mut self, record: &Record, keys: Option<&Arc<Keys>>) -> Result<u64> {
        if keys.is_some() {
            // An id below the last one must not be given again.
            self.rows(current(keys, &self.head)?)?;
        }
        let id = self.head.next_id;
        self.head.next_id += 1;
        let row = self.seal(id, 1, record, record.secrets.as_ref(), keys)?;
        self.connection.insert(id, &row)?;
        self.admit(id, None, &row, keys)?;
        Ok(id)
    }

    fn update(
        &mut self,
        id: u64,
        version: u64,
        record: &Record,
        keys: Option<&Arc<Keys>>,
    ) -> Result<()> {
        let old = self.stored(id)?;
        let name = record.terms.iter().find(|(attribute, _)| *attribute == CKA_UNIQUE_ID);
        if old.version != version || !self.is_of(&old, name, keys)? {
            return Err(Error::Gone { id });
        }
        let mut kept = None;
        if old.private || old.verified || old.secrets.is_some() {
            let keys = current(keys, &self.head)?;
            check(keys, id, &old)?;
            self.check_last(keys, id, &old)?;
            if record.secrets.is_none()
                && let Some(sealed) = &old.secrets
            {
                let place = place(keys, id, &old);
                let opened = keys.open_secrets(&place, &old.attributes, sealed)?;
                kept = Some(opened.ok_or_else(|| Error::damaged(id, "its secrets do not open"))?);
            }
        }
        self.unlist(id, &old)?;
        let secrets = record.secrets.as_ref().or(kept.as_ref());
        let row = self.seal(id, version + 1, record, secrets, keys)?;
        self.connection.update(id, &row)?;
        self.admit(id, Some(&old), &row, keys)
    }

    /// Takes a row out, damaged or not.
    fn delete(
        &mut self,
        id: u64,
        version: u64,
        name: Option<&Term>,
        keys: Option<&Arc<Keys>>,
    ) -> Result<()> {
        let old = self.stored(id)?;
        if old.version != version || !self.is_of(&old, name, keys)? {
            return Err(Error::Gone { id });
        }
        if old.private || old.verified {
            current(keys, &self.head)?;
        }
        self.unlist(id, &old)?;
        // Whatever the row says of itself: what is gone must not be expected.
        if let Some(keys) = keys.filter(|keys| keys.id == self.head.key_id) {
            self.expect(keys, id, None)?;
        }
        self.connection.delete(id)
    }

    /// Whether a row is of the object of this name: in an older store that was put back another may have the same version.
    fn is_of(&self, row: &Stored, name: Option<&Term>, keys: Option<&Arc<Keys>>) -> Result<bool> {
        let Some(name) = name else { return Ok(true) };
        let keys = if row.private { Some(current(keys, &self.head)?.as_ref()) } else { None };
        let name = crypto::lookup(keys, name)?;
        Ok(row.terms.as_chunks().0.contains(&name))
    }

    fn stored(&self, id: u64) -> Result<Stored> {
        self.connection.stored(id)?.ok_or(Error::Gone { id })
    }

    /// The row for a record: authenticated during a login.
    fn seal(
        &self,
        id: u64,
        version: u64,
        record: &Record,
        secrets: Option<&Secret>,
        keys: Option<&Arc<Keys>>,
    ) -> Result<Stored> {
        let private = record.private;
        let keys = match keys {
            None if !private && secrets.is_none() => None,
            keys => Some(current(keys, &self.head)?),
        };
        let terms = terms(keys.filter(|_| private), &record.terms)?;
        let mut row = Stored {
            version,
            private,
            verified: keys.is_some(),
            attributes: Vec::new(),
            secrets: None,
            terms,
            tag: None,
        };
        let Some(keys) = keys else {
            row.attributes.clone_from(&record.attributes);
            return Ok(row);
        };
        let place = place(keys, id, &row);
        row.attributes = match private {
            true => keys.seal_attributes(&place, &record.attributes)?,
            false => record.attributes.clone(),
        };
        if let Some(secrets) = secrets {
            row.secrets = Some(keys.seal_secrets(&place, &row.attributes, secrets)?);
        }
        let tag = keys.tag(&place, &row.attributes, row.secrets.as_deref(), &row.terms)?;
        row.tag = Some(tag.to_vec());
        Ok(row)
    }

    /// Index and tree of a row that comes.
    fn admit(
        &mut self,
        id: u64,
        old: Option<&Stored>,
        row: &Stored,
        keys: Option<&Arc<Keys>>,
    ) -> Result<()> {
        self.connection.list(id, row.terms.as_chunks().0)?;
        let Some((keys, tag)) = keys.zip(row.tag.as_ref()) else { return Ok(()) };
        let before = self.expect(keys, id, Some(tree::entry(tag)?))?;
        // A row that is there although it should not, or is not although it should.
        match before.is_some() == old.is_some_and(|old| old.verified) {
            true => Ok(()),
            false => Err(Error::damaged(id, NOT_LAST)),
        }
    }

    /// Takes a row out of the index.
    fn unlist(&self, id: u64, row: &Stored) -> Result<()> {
        self.connection.unlist(id, row.terms.as_chunks().0)
    }

    /// Which row there is to be under this id from now on. Gives which there was.
    fn expect(
        &mut self,
        keys: &Arc<Keys>,
        id: u64,
        entry: Option<tree::Entry>,
    ) -> Result<Option<tree::Entry>> {
        let connection = self.connection;
        let Known { state, tree, .. } = self.rows(keys)?;
        let before = tree.set(connection, keys, id, entry)?;
        state.count += u64::from(entry.is_some());
        state.count -= u64::from(before.is_some());
        Ok(before)
    }

    fn check_last(&mut self, keys: &Arc<Keys>, id: u64, row: &Stored) -> Result<()> {
        let connection = self.connection;
        check_last(connection, keys, &mut self.rows(keys)?.tree, id, Some(row))
    }

    fn rows(&mut self, keys: &Arc<Keys>) -> Result<&mut Known> {
        let rows = match self.rows.take() {
            Some(opened) => opened,
            None => {
                let known = Known::recall(self.memory, keys, &self.head.state)?;
                if !known.state.has_ids(self.first) {
                    return Err(Error::tampered(Difference::NextId.sentence()));
                }
                (Arc::clone(keys), known)
            }
        };
        Ok(&mut self.rows.insert(rows).1)
    }
}

/// What is wrong with a row that is not there.
pub(crate) const TAKEN_OUT: &str = "it was taken out of the file";
/// What is wrong with a row that once was right.
const NOT_LAST: &str = "it is not the row that was last written";

/// Checks that a row, or its absence, is what was last written under this id.
pub(crate) fn check_last(
    connection: &dyn Rows,
    keys: &Keys,
    tree: &mut Tree,
    id: u64,
    row: Option<&Stored>,
) -> Result<()> {
    compare(id, row, tree.get(connection, keys, id)?)
}

/// Whether a row, or its absence, is what the tree says.
pub(crate) fn compare(id: u64, row: Option<&Stored>, expected: Option<tree::Entry>) -> Result<()> {
    let tag = row.filter(|row| row.verified).and_then(|row| row.tag.as_deref());
    match (expected, tag) {
        (None, None) => Ok(()),
        (Some(expected), Some(tag)) if tag.starts_with(&expected) => Ok(()),
        (Some(_), None) if row.is_none() => Err(Error::damaged(id, TAKEN_OUT)),
        (Some(_), None) => Err(Error::damaged(id, "it was put there without a login")),
        (_, Some(_)) => Err(Error::damaged(id, NOT_LAST)),
    }
}

/// What a row's seals are bound to.
pub(crate) fn place(keys: &Keys, id: u64, row: &Stored) -> RowContext {
    RowContext { serial: keys.serial, id, version: row.version, private: row.private }
}

/// Whether a row is as it was written, as far as that can be known.
pub(crate) fn check(keys: &Keys, id: u64, row: &Stored) -> Result<()> {
    if !row.verified {
        // Nothing but a public row without secrets or a tag is ever written so.
        return match row.private || row.secrets.is_some() || row.tag.is_some() {
            true => Err(Error::damaged(id, "it is not authenticated")),
            false => Ok(()),
        };
    }
    let place = place(keys, id, row);
    let tag = keys.tag(&place, &row.attributes, row.secrets.as_deref(), &row.terms)?;
    match row.tag.as_deref().is_some_and(|stored| crypto::equal(stored, &tag)) {
        true => Ok(()),
        false => Err(Error::damaged(id, "its authentication tag does not match")),
    }
}

/// The index entries of a row, sorted, none twice.
fn terms(keys: Option<&Arc<Keys>>, terms: &[Term]) -> Result<Vec<u8>> {
    let keys = keys.map(AsRef::as_ref);
    let mut values = terms
        .iter()
        .map(|term| crypto::lookup(keys, term))
        .collect::<Result<Vec<[u8; LOOKUP]>>>()?;
    values.sort_unstable();
    values.dedup();
    Ok(values.into_flattened())
}

// SPDX-License-Identifier: Apache-2.0
//! Changes of objects inside a transaction: sealing, indexing, and the set hash.

use crate::crypto::{self, Keys, LOOKUP, Place};
use crate::error::{Error, Result};
use crate::schema::{Head, Stored, signed};
use crate::set::Set;
use metaslot_memory::Secret;
use metaslot_spi::store::{Change, Record, Term};
use rusqlite::Connection;
use std::sync::Arc;

/// The change sets of one transaction.
#[derive(Debug)]
pub(crate) struct Batch<'a> {
    connection: &'a Connection,
    head: Head,
    /// The set hash, opened by the first change that needs it.
    set: Option<(Arc<Keys>, Set)>,
}

/// The keys that sealed a row may be gone: the token was initialised anew by somebody else.
pub(crate) fn current<'a>(keys: Option<&'a Arc<Keys>>, head: &Head) -> Result<&'a Arc<Keys>> {
    keys.filter(|keys| keys.id == head.key_id).ok_or(Error::NotLoggedIn)
}

impl<'a> Batch<'a> {
    pub(crate) fn begin(connection: &'a Connection) -> Result<Self> {
        Ok(Self { connection, head: Head::read(connection)?, set: None })
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
                Change::Delete { id, version } => self.delete(*id, *version, keys)?,
            }
        }
        Ok(ids)
    }

    /// Writes what the token's own row must know of the changes.
    pub(crate) fn finish(mut self) -> Result<()> {
        let next_id = signed(self.head.next_id);
        match &mut self.set {
            Some((keys, set)) => {
                set.next_id = self.head.next_id;
                let sealed = set.seal(keys)?;
                self.connection
                    .prepare_cached("UPDATE token SET next_id = ?1, row_set = ?2")?
                    .execute((next_id, sealed))?;
            }
            None => {
                self.connection
                    .prepare_cached("UPDATE token SET next_id = ?1")?
                    .execute([next_id])?;
            }
        }
        Ok(())
    }

    fn insert(&mut self, record: &Record, keys: Option<&Arc<Keys>>) -> Result<u64> {
        let id = self.head.next_id;
        self.head.next_id += 1;
        let row = self.seal(id, 1, record, record.secrets.as_ref(), keys)?;
        self.connection
            .prepare_cached(
                "INSERT INTO object(id, version, private, verified, attributes, secrets, terms, tag)
                 VALUES(?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8)",
            )?
            .execute(columns(id, &row))?;
        self.admit(id, &row, keys)?;
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
        if old.version != version {
            return Err(Error::Gone { id });
        }
        let mut kept = None;
        if old.private || old.verified || old.secrets.is_some() {
            let keys = current(keys, &self.head)?;
            check(keys, id, &old)?;
            if record.secrets.is_none()
                && let Some(sealed) = &old.secrets
            {
                let place = place(keys, id, &old);
                let opened = keys.open_secrets(&place, &old.attributes, sealed)?;
                kept = Some(opened.ok_or_else(|| Error::damaged(id, "its secrets do not open"))?);
            }
        }
        self.dismiss(id, &old, keys)?;
        let secrets = record.secrets.as_ref().or(kept.as_ref());
        let row = self.seal(id, version + 1, record, secrets, keys)?;
        self.connection
            .prepare_cached(
                "UPDATE object SET version = ?2, private = ?3, verified = ?4, attributes = ?5,
                                   secrets = ?6, terms = ?7, tag = ?8 WHERE id = ?1",
            )?
            .execute(columns(id, &row))?;
        self.admit(id, &row, keys)
    }

    /// Takes a row out, damaged or not.
    fn delete(&mut self, id: u64, version: u64, keys: Option<&Arc<Keys>>) -> Result<()> {
        let old = self.stored(id)?;
        if old.version != version {
            return Err(Error::Gone { id });
        }
        if old.private || old.verified {
            current(keys, &self.head)?;
        }
        self.dismiss(id, &old, keys)?;
        self.connection
            .prepare_cached("DELETE FROM object WHERE id = ?1")?
            .execute([signed(id)])?;
        Ok(())
    }

    fn stored(&self, id: u64) -> Result<Stored> {
        Stored::read(self.connection, id)?.ok_or(Error::Gone { id })
    }

    /// The row for a record: authenticated when somebody is logged in.
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

    /// Index and set hash of a row that comes.
    fn admit(&mut self, id: u64, row: &Stored, keys: Option<&Arc<Keys>>) -> Result<()> {
        let mut insert = self
            .connection
            .prepare_cached("INSERT OR IGNORE INTO lookup(value, object) VALUES(?1, ?2)")?;
        for value in row.terms.chunks(LOOKUP) {
            insert.execute((value, signed(id)))?;
        }
        drop(insert);
        if let Some((keys, tag)) = keys.zip(row.tag.as_ref()).filter(|_| row.verified) {
            let member = keys.member(id, row.version, tag)?;
            self.set(keys)?.add(&member);
        }
        Ok(())
    }

    /// Index and set hash of a row that goes.
    fn dismiss(&mut self, id: u64, row: &Stored, keys: Option<&Arc<Keys>>) -> Result<()> {
        let mut delete = self
            .connection
            .prepare_cached("DELETE FROM lookup WHERE value = ?1 AND object = ?2")?;
        for value in row.terms.chunks(LOOKUP) {
            delete.execute((value, signed(id)))?;
        }
        drop(delete);
        if let Some((keys, tag)) = keys.zip(row.tag.as_ref()).filter(|_| row.verified) {
            let member = keys.member(id, row.version, tag)?;
            self.set(keys)?.remove(&member);
        }
        Ok(())
    }

    fn set(&mut self, keys: &Arc<Keys>) -> Result<&mut Set> {
        let entry = match self.set.take() {
            Some(opened) => opened,
            None => {
                let set = Set::open(keys, &self.head.set)?;
                let set = set.ok_or_else(|| Error::not_token("its set hash is damaged"))?;
                (Arc::clone(keys), set)
            }
        };
        Ok(&mut self.set.insert(entry).1)
    }
}

/// What a row's seals are bound to.
pub(crate) fn place(keys: &Keys, id: u64, row: &Stored) -> Place {
    Place { serial: keys.serial, id, version: row.version, private: row.private }
}

/// Whether a row is as it was written, as far as that can be known.
pub(crate) fn check(keys: &Keys, id: u64, row: &Stored) -> Result<()> {
    if !row.verified {
        // Nothing but a public row without secrets is ever written so.
        return match row.private || row.secrets.is_some() {
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

type Columns<'a> = (i64, i64, bool, bool, &'a [u8], Option<&'a [u8]>, &'a [u8], Option<&'a [u8]>);

fn columns(id: u64, row: &Stored) -> Columns<'_> {
    (
        signed(id),
        signed(row.version),
        row.private,
        row.verified,
        &row.attributes,
        row.secrets.as_deref(),
        &row.terms,
        row.tag.as_deref(),
    )
}

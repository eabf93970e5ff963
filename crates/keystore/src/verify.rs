// SPDX-License-Identifier: Apache-2.0
//! Looking at every row: is it as it was written, is it found, and are these all of them?

use crate::apply;
use crate::crypto::{Keys, LOOKUP};
use crate::error::{Error, Result};
use crate::schema::{Head, Stored, signed, unsigned};
use crate::set::Set;
use crate::store::{Announce, SqliteStore};
use rusqlite::Connection;
use std::sync::Arc;

/// What [`SqliteStore::verify`] found.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct Report {
    /// How many rows were looked at.
    pub rows: u64,
    /// How many of them were written before anybody had logged in, and can be anybody's.
    pub unverified: u64,
    /// Rows that fail a check, by id, with the check.
    pub damaged: Vec<(u64, &'static str)>,
    /// Rows that a search does not find, or finds by something that they do not have.
    pub misindexed: Vec<u64>,
    /// How many authenticated rows there should be.
    pub expected: u64,
    /// Whether the authenticated rows are exactly those that were last written: none was deleted,
    /// restored or swapped behind the token's back.
    pub set_matches: bool,
}

impl Report {
    /// Whether nothing is wrong.
    #[must_use]
    pub const fn is_sound(&self) -> bool {
        self.damaged.is_empty() && self.misindexed.is_empty() && self.set_matches
    }
}

impl SqliteStore {
    /// Checks the whole token. Needs a login; other processes may go on working.
    ///
    /// # Errors
    /// [`Error::NotLoggedIn`]; [`Error::Database`] where the file cannot be read.
    pub fn verify(&self) -> std::result::Result<Report, Error> {
        let keys = self.keys().ok_or(Error::NotLoggedIn)?;
        self.gate.read(|database| {
            // One read transaction, so that the rows and the set hash are of one moment.
            let snapshot = database.connection.unchecked_transaction()?;
            survey(&snapshot, &keys).map(|(report, _)| report)
        })
    }

    /// Takes the rows that pass their checks as the new truth for the set hash: after a person has
    /// looked at the report and has restored or deleted what was damaged.
    ///
    /// # Errors
    /// As [`Self::verify`], and [`Error::WriteProtected`].
    pub fn accept(&self) -> std::result::Result<Report, Error> {
        let keys = self.keys().ok_or(Error::NotLoggedIn)?;
        self.transact(Announce::Yes, |database| {
            let connection = &database.connection;
            let (report, mut set) = survey(connection, &keys)?;
            set.next_id = Head::read(connection)?.next_id;
            connection.execute("UPDATE token SET row_set = ?1", [set.seal(&keys)?])?;
            Ok(report)
        })
    }
}

fn survey(connection: &Connection, keys: &Arc<Keys>) -> Result<(Report, Set)> {
    let head = Head::read(connection)?;
    apply::current(Some(keys), &head)?;
    let stored = Set::open(keys, &head.set)?;
    let mut report = Report { expected: stored.map_or(0, |set| set.count), ..Report::default() };
    let mut set = Set::empty(head.next_id);
    let mut entries = 0;
    let mut statement = connection.prepare(
        "SELECT id, version, private, verified, attributes, secrets, terms, tag FROM object",
    )?;
    let mut rows = statement.query(())?;
    while let Some(row) = rows.next()? {
        report.rows += 1;
        let id = unsigned(row, 0)?;
        let Ok(row) = Stored::from_row(row, 1) else {
            report.damaged.push((id, "a column has the wrong type"));
            continue;
        };
        if let Err(Error::Damaged { reason, .. }) = check_row(keys, id, &row) {
            report.damaged.push((id, reason));
        }
        if let Some(tag) = row.tag.as_ref().filter(|_| row.verified) {
            set.add(&keys.member(id, row.version, tag)?);
        } else {
            report.unverified += 1;
        }
        if indexed(connection, id, &row)? {
            entries += (row.terms.len() / LOOKUP) as u64;
        } else {
            report.misindexed.push(id);
        }
    }
    if report.misindexed.is_empty() && entries != count(connection)? {
        report.misindexed.extend(strangers(connection)?);
    }
    report.set_matches =
        stored.is_some_and(|stored| stored.same_rows(&set) && head.next_id >= stored.next_id);
    Ok((report, set))
}

fn check_row(keys: &Keys, id: u64, row: &Stored) -> Result<()> {
    apply::check(keys, id, row)?;
    let place = apply::place(keys, id, row);
    if row.private && keys.open_attributes(&place, &row.attributes)?.is_none() {
        return Err(Error::damaged(id, "its attributes do not open"));
    }
    if let Some(sealed) = &row.secrets
        && keys.open_secrets(&place, &row.attributes, sealed)?.is_none()
    {
        return Err(Error::damaged(id, "its secrets do not open"));
    }
    Ok(())
}

/// Whether every entry of the row is in the index.
fn indexed(connection: &Connection, id: u64, row: &Stored) -> Result<bool> {
    let mut statement = connection
        .prepare_cached("SELECT EXISTS(SELECT 1 FROM lookup WHERE value = ?1 AND object = ?2)")?;
    for value in row.terms.chunks(LOOKUP) {
        if !statement.query_row((value, signed(id)), |row| row.get::<_, bool>(0))? {
            return Ok(false);
        }
    }
    Ok(true)
}

fn count(connection: &Connection) -> Result<u64> {
    Ok(connection.query_row("SELECT count(*) FROM lookup", (), |row| unsigned(row, 0))?)
}

/// Rows with entries in the index that they do not have themselves.
fn strangers(connection: &Connection) -> Result<Vec<u64>> {
    let mut found = Vec::new();
    let mut statement = connection.prepare("SELECT value, object FROM lookup ORDER BY object")?;
    let mut rows = statement.query(())?;
    while let Some(row) = rows.next()? {
        let (value, id): (Vec<u8>, u64) = (row.get(0)?, unsigned(row, 1)?);
        let owner = Stored::read(connection, id).ok().flatten();
        let owned = owner.is_some_and(|row| row.terms.chunks(LOOKUP).any(|term| term == value));
        if !owned && found.last() != Some(&id) {
            found.push(id);
        }
    }
    Ok(found)
}

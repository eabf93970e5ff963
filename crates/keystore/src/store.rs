// SPDX-License-Identifier: Apache-2.0
//! The engine's trait.

use crate::commit::Group;
use crate::crypto::Keys;
use crate::elsewhere::{self, nothing};
use crate::error::{Error, Result};
use crate::gate::Database;
use crate::open::{Announce, SqliteStore};
use crate::schema::{Head, Stored, Token};
use crate::search::Asked;
use crate::state::{Known, State};
use crate::{apply, backup, label, named, pin, schema, search, uncounted, verify};
use metaslot_ck as ck;
use metaslot_counters as counters;
use metaslot_memory::Secret;
use metaslot_spi::detail;
use metaslot_spi::store::{
    Change, Examination, Examined, Found, Name, ObjectRow, Remark, Role, Scope, Store, Term,
    TokenRow,
};
use rusqlite::Connection;
use std::sync::atomic::Ordering;
use std::sync::{Arc, PoisonError};

impl SqliteStore {
    fn report<T>(&self, result: Result<T>) -> ck::Result<T> {
        result.map_err(|error| {
            let mut last = self.last_error.lock().unwrap_or_else(PoisonError::into_inner);
            if matches!(error, Error::Damaged { .. }) {
                counters::event(counters::Event::DamagedRow);
            }
            let text = error.to_string();
            detail::set(format_args!("{text}"));
            *last = Some(text);
            error.into()
        })
    }

    /// What may write.
    fn change<T>(&self, work: impl FnOnce() -> Result<T>) -> ck::Result<T> {
        self.report(self.gate.around(work))
    }

    fn write_by(&self, who: Option<(Name, u64)>, changes: Vec<Change>) -> Result<Vec<u64>> {
        let keys = self.current_keys()?;
        self.queue.submit(changes, (keys, who), |take| self.commit_group(take))
    }

    pub(crate) fn commit_group(&self, take: &dyn Fn() -> Group) {
        let mut group = None;
        let failed = self.gate.write_in_turn(|database| {
            let group = group.insert(take());
            let applied = self.commit(database, Announce::Yes, || {
                if group.keys().next().is_some() {
                    database.check_current()?;
                    self.advance_held_of(database, group.keys())?;
                }
                group.refuse_revoked(|keys, who| self.check_there_now(database, keys, who))?;
                group.apply(&database.connection, &self.written_last)
            });
            let anchored = applied.and_then(|outcomes| {
                if let Some(keys) = &outcomes.keys {
                    self.advance_held(database, keys)?;
                }
                Ok(outcomes)
            });
            self.counts.writes.fetch_add(group.len() as u64, Ordering::Relaxed);
            anchored.map(|outcomes| group.succeed(outcomes))
        });
        if let Err(error) = failed {
            group.unwrap_or_else(take).fail(&error);
        }
    }

    pub(crate) fn token_row(&self) -> Result<TokenRow> {
        self.gate.follow_replacement();
        let read = self.gate.read(|database| {
            let token = Token::read(&database.connection)?;
            let mut token = token.ok_or_else(|| Error::not_token("its own row is missing"))?;
            let now = schema::now();
            if !database.writable {
                let bases = &self.config.volatile;
                for (role, row) in [(Role::So, &mut token.so), (Role::User, &mut token.user)] {
                    let (failures, at) = uncounted::failures(bases, &token.serial, role, row);
                    // What is yet to come, by a clock that was set back since, is one of now with the next attempt.
                    let past = |at| if at > now { 0 } else { at };
                    row.failed_at = past(row.failed_at);
                    row.failed_elsewhere((failures, past(at)));
                }
            }
            Ok(TokenRow {
                initialized: true,
                user_pin_set: token.user.wrap.is_some(),
                so: pin::state(&token.so, now),
                user: pin::state(&token.user, now),
                serial: token.serial.iter().map(|byte| format!("{byte:02x}")).collect(),
                label: token.label,
                writable: database.writable,
                shortest_pin: self.config.shortest_pin,
                other: None,
            })
        });
        match read {
            Err(Error::Uninitialized { .. }) => Ok(TokenRow {
                writable: true,
                shortest_pin: self.config.shortest_pin,
                ..TokenRow::default()
            }),
            read => read,
        }
    }

    fn read_row(&self, id: u64) -> Result<Option<ObjectRow>> {
        let keys = self.current_keys()?;
        self.gate.read(|database| {
            let row = match &keys {
                None => Stored::read(&database.connection, id)?,
                Some(keys) => self.authentic(database, keys, id)?,
            };
            let opened = row.map(|row| elsewhere::open(&row, keys.as_deref(), id));
            Ok(opened.transpose()?.flatten())
        })
    }

    /// A row that is the one that was last written. `None` where there is to be none.
    fn authentic(&self, database: &Database, keys: &Arc<Keys>, id: u64) -> Result<Option<Stored>> {
        if let Some(row) = self.read_remembered(database, keys, id)? {
            row.as_ref().map_or(Ok(()), |row| apply::check(keys, id, row))?;
            return Ok(row);
        }
        database.snapshot(|connection| {
            let mut known = None;
            let row = self.last_written(connection, keys, &mut known, id)?;
            self.remember(database, known);
            Ok(row)
        })
    }

    /// The same within a snapshot, whose tree is `known` once it was read.
    fn last_written(
        &self,
        connection: &Connection,
        keys: &Arc<Keys>,
        known: &mut Option<Known>,
        id: u64,
    ) -> Result<Option<Stored>> {
        let known = match known {
            Some(known) => known,
            None => {
                let head = Head::read(connection)?;
                // After another process made the token anew, our keys are those of the old one.
                apply::current(Some(keys), &head)?;
                known.insert(Known::recall(&self.read_last, keys, &head.state)?)
            }
        };
        let row = Stored::read(connection, id)?;
        apply::check_last(connection, keys, &mut known.tree, id, row.as_ref())?;
        row.as_ref().map_or(Ok(()), |row| apply::check(keys, id, row))?;
        Ok(row)
    }

    fn remember(&self, database: &Database, known: Option<Known>) {
        if let Some(known) = known {
            known.keep(&self.read_last);
            database.remember();
        }
    }

    /// The same, in one statement. `None` where the tree has to be read with the row.
    fn read_remembered(
        &self,
        database: &Database,
        keys: &Arc<Keys>,
        id: u64,
    ) -> Result<Option<Option<Stored>>> {
        if !database.may_remember() || !Known::reaches(&self.read_last, id) {
            return Ok(None);
        }
        let (head, row) = schema::read_together(&database.connection, id)?;
        apply::current(Some(keys), &head)?;
        match Known::remembered(&self.read_last, keys, &head.state, id) {
            Some(expected) => apply::compare(id, row.as_ref(), expected).map(|()| Some(row)),
            None => Ok(None),
        }
    }

    /// What the index has for a query, compared with the rows, all of one moment: who writes the file may have moved entries. A
    /// row that is damaged is not found, and the others are.
    fn find(
        &self,
        database: &Database,
        keys: Option<&Arc<Keys>>,
        asked: &Asked,
        (mut after, limit): (u64, usize),
    ) -> Result<Vec<Found>> {
        database.snapshot(|connection| {
            let (mut known, mut all) = (None, Vec::new());
            loop {
                let wanted = limit - all.len();
                let found = search::search(connection, asked, after, wanted)?;
                let is_last = found.len() < wanted;
                for found in found {
                    after = found.id;
                    let row = match keys {
                        Some(keys) => self.last_written(connection, keys, &mut known, after),
                        None => Stored::read(connection, after),
                    };
                    match row {
                        Ok(row) if row.as_ref().is_some_and(|row| asked.is_in(row, found)) => {
                            all.push(found);
                        }
                        Ok(_) => return Err(Error::damaged(after, search::MOVED)),
                        Err(Error::Damaged { .. }) => counters::event(counters::Event::DamagedRow),
                        Err(error) => return Err(error),
                    }
                }
                if is_last || all.len() == limit {
                    break;
                }
            }
            self.remember(database, known);
            Ok(all)
        })
    }

    fn read_secrets(&self, id: u64, version: u64) -> Result<Secret> {
        let keys = self.current_keys()?.ok_or(Error::NotLoggedIn)?;
        self.gate.read(|database| {
            let row = self.authentic(database, &keys, id)?.ok_or(Error::Gone { id })?;
            elsewhere::secrets(&row, &keys, id, version)
        })
    }
}

impl Store for SqliteStore {
    fn token(&self) -> ck::Result<TokenRow> {
        self.report(self.token_row())
    }

    fn initialize(&self, so_pin: &[u8], label: &str) -> ck::Result<()> {
        self.change(|| pin::initialize(self, so_pin, label))
    }

    fn login(&self, role: Role, pin: &[u8]) -> ck::Result<()> {
        let result = self.change(|| pin::login(self, role, pin));
        if result.is_ok() {
            counters::event(counters::Event::Login);
        }
        result
    }

    fn check_pin(&self, role: Role, pin: &[u8]) -> ck::Result<()> {
        self.change(|| pin::check(self, role, pin))
    }

    fn login_as(&self, name: Name, pin: &[u8]) -> ck::Result<()> {
        let result = self.change(|| named::login(self, name, pin));
        if result.is_ok() {
            counters::event(counters::Event::Login);
        }
        result
    }

    fn check_pin_as(&self, name: Name, pin: &[u8]) -> ck::Result<()> {
        self.change(|| named::check(self, name, pin))
    }

    fn set_pin_as(&self, name: Name, old: &[u8], new: &[u8]) -> ck::Result<()> {
        self.change(|| named::change(self, name, old, new))
    }

    fn incarnation(&self, name: Name) -> ck::Result<Option<u64>> {
        match nothing(self.incarnation_of(self.keys().as_deref(), name)) {
            // None of them is one that the officer has added.
            Err(Error::Tampered { .. }) => Ok(None),
            found => self.report(found),
        }
    }

    fn retry_at(&self, name: Option<Name>) -> ck::Result<u64> {
        match name {
            None => self.report(nothing(pin::user_retry_at(self))),
            Some(name) => self.report(nothing(named::retry_at(self, name))),
        }
    }

    fn share_login(&self) -> ck::Result<()> {
        let keys = self.keys().map(|keys| keys.unbound()).transpose();
        self.report(keys.map(|keys| self.set_keys(keys)))
    }

    fn logout(&self) {
        self.set_keys(None);
    }

    fn keeps_login(&self) -> bool {
        let Some(keys) = self.keys().filter(|keys| self.is_still_there(keys)) else {
            return false;
        };
        let now = self.gate.generation().filter(|now| now & 1 == 0);
        if now == Some(self.kept_login.load(Ordering::Relaxed)) {
            return true;
        }
        let key = self.gate.read(|database| Ok(Head::read(&database.connection)?.key_id));
        if let (Ok(key), Some(now)) = (&key, now)
            && *key == keys.id
        {
            self.kept_login.store(now, Ordering::Relaxed);
        }
        key.map_or_else(|error| !matches!(error, Error::Uninitialized { .. }), |key| key == keys.id)
    }

    fn init_pin(&self, pin: &[u8]) -> ck::Result<()> {
        self.change(|| pin::init_user(self, pin))
    }

    fn set_pin(&self, role: Role, old: &[u8], new: &[u8]) -> ck::Result<()> {
        self.change(|| pin::change(self, role, old, new))
    }

    fn write(&self, changes: Vec<Change>) -> ck::Result<Vec<u64>> {
        self.change(|| self.write_by(None, changes))
    }

    fn write_as(&self, identity: (Name, u64), changes: Vec<Change>) -> ck::Result<Vec<u64>> {
        self.change(|| self.write_by(Some(identity), changes))
    }

    fn read(&self, id: u64) -> ck::Result<Option<ObjectRow>> {
        self.report(nothing(self.read_row(id)))
    }

    fn secrets(&self, id: u64, version: u64) -> ck::Result<Secret> {
        self.report(self.read_secrets(id, version))
    }

    fn search(
        &self,
        query: &[Term],
        scope: Scope,
        after: u64,
        limit: usize,
    ) -> ck::Result<Vec<Found>> {
        let keys = self.report(self.current_keys())?;
        let scope = match scope {
            Scope::Private if keys.is_none() => return Ok(Vec::new()),
            Scope::Both if keys.is_none() => Scope::Public,
            scope => scope,
        };
        let found = Asked::new(query, scope, keys.as_deref()).and_then(|asked| {
            self.gate.read(|database| match asked.is_all() {
                true => search::search(&database.connection, &asked, after, limit),
                false => self.find(database, keys.as_ref(), &asked, (after, limit)),
            })
        });
        self.report(nothing(found))
    }

    fn examine(
        &self,
        role: Role,
        pin: &[u8],
        what: Examination<'_>,
        remark: &mut dyn FnMut(Remark<'_>) -> bool,
    ) -> ck::Result<Examined> {
        self.change(|| match what {
            Examination::Look => verify::examine(self, role, pin, false, remark),
            Examination::Repair => verify::examine(self, role, pin, true, remark),
            Examination::Backup(to) => backup::backup(self, role, pin, to, remark),
            Examination::Restore(from) => backup::restore(self, role, pin, from, remark),
            Examination::Rename(label) => label::rename(self, role, pin, label),
            Examination::Remove(label) => label::remove(self, role, pin, label),
            Examination::Identities(asked) => named::administer(self, (role, pin), asked, remark),
        })
    }

    fn restored(&self) -> ck::Result<u64> {
        let keys = self.current_keys();
        self.report(keys.and_then(|keys| {
            let keys = keys.ok_or(Error::NotLoggedIn)?;
            // What asks has just written, perhaps to files that have taken the names since the last read.
            self.gate.look(|database| {
                let head = Head::read(&database.connection)?;
                apply::current(Some(&keys), &head)?;
                Ok(State::open(&keys, &head.state)?.restored)
            })
        }))
    }

    fn generation(&self) -> Option<u64> {
        self.gate.generation()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kdf::{Cost, Kdf};
    use crate::open::Config;
    use metaslot_spi::store::Record;
    use std::fs;

    #[test]
    fn a_change_moves_the_anchor_when_a_logout_comes_before_its_commit() {
        let name = format!("metaslot-keystore-{}-logout", std::process::id());
        let place = std::env::temp_dir().join(name);
        let anchor = place.with_extension("anchor");
        fs::write(&anchor, "").unwrap();
        let store = SqliteStore::new(Config {
            kdf: Cost::Fixed(Kdf::Argon2id { memory_kib: 64, passes: 1, lanes: 1 }),
            anchor: Some(anchor.clone()),
            ..Config::new(place.join("token.db"))
        });
        store.initialize(b"so-pin-1", "test token").unwrap();
        store.login(Role::So, b"so-pin-1").unwrap();
        let before = fs::read(&anchor).unwrap();
        let record =
            Record { private: false, attributes: vec![1], secrets: None, terms: Vec::new() };
        let commit = |take: &dyn Fn() -> Group| {
            store.logout();
            store.commit_group(take);
        };
        store.queue.submit(vec![Change::Insert(record)], (store.keys(), None), commit).unwrap();
        let after = fs::read(&anchor).unwrap();
        drop(store);
        fs::remove_dir_all(&place).unwrap();
        fs::remove_file(&anchor).unwrap();
        assert_ne!(before, after);
    }
}

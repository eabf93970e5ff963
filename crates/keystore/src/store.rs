// SPDX-License-Identifier: Apache-2.0
//! The store itself: configuration, state, and the engine's trait.

use crate::commit::{Group, Queue};
use crate::crypto::Keys;
use crate::error::{Error, Result};
use crate::files::Files;
use crate::format::FORMAT;
use crate::gate::{Database, Gate};
use crate::kdf::Cost;
use crate::schema::{Head, Stored, Token};
use crate::state::{self, Known, Memory, State};
use crate::{anchor, apply, pin, search, v1, verify};
use metaslot_ck as ck;
use metaslot_counters as counters;
use metaslot_memory::Secret;
use metaslot_spi::detail;
use metaslot_spi::store::{
    Change, Examined, Found, Remark, Role, Row, Scope, Store, Term, TokenRow,
};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError, RwLock};
use std::time::Duration;

/// How a store is kept.
#[derive(Clone, Debug)]
pub struct Config {
    /// The database file. Its directory belongs to the store.
    pub path: PathBuf,
    /// A group whose members use the token: name or number. Matters when the directory is made.
    pub group: Option<String>,
    /// How long a fast login lasts after a login that took the long way; `None` for never. Only with
    /// PINs of 8 bytes or more, and where the kernel keeps secrets for the user.
    pub fast_login: Option<Duration>,
    /// The runtime directory, where releases before this one kept fast login's secret: a login
    /// removes it.
    pub runtime: Option<PathBuf>,
    /// What makes guessing PINs expensive, for wraps written from now on.
    pub kdf: Cost,
    /// A file of this machine, at least 16 bytes, that every PIN set from now on is mixed with:
    /// without it a copied database cannot be opened, and neither can the original.
    pub pepper: Option<PathBuf>,
    /// The shortest PIN that may be set, in bytes, where that is more than the engine's own.
    pub shortest_pin: usize,
    /// A file outside of the store, where no one who can write the store can write, that remembers
    /// the store's last state: an older one is refused. It begins as an empty file.
    pub anchor: Option<PathBuf>,
}

impl Config {
    /// The defaults: for one user, Argon2id, no fast login.
    #[must_use]
    pub fn new(path: impl Into<PathBuf>) -> Self {
        Self {
            path: path.into(),
            group: None,
            fast_login: None,
            runtime: None,
            kdf: Cost::Argon2id,
            pepper: None,
            shortest_pin: 0,
            anchor: None,
        }
    }
}

/// What a store did since it was opened in this process.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct Statistics {
    /// Transactions committed. Each is one sync of the log; a checkpoint, each thousand pages of
    /// log, adds two.
    pub commits: u64,
    /// Change sets acknowledged (one commit serves several threads).
    pub writes: u64,
    /// Logins by the fast way.
    pub fast_hits: u64,
    /// Logins for which the fast way was configured, but did not open.
    pub fast_misses: u64,
}

#[derive(Debug, Default)]
pub(crate) struct Counts {
    pub(crate) commits: AtomicU64,
    pub(crate) writes: AtomicU64,
    pub(crate) fast_hits: AtomicU64,
    pub(crate) fast_misses: AtomicU64,
}

/// A token in a SQLite database. Opens nothing, and creates nothing, before it is used.
#[derive(Debug)]
pub struct SqliteStore {
    pub(crate) config: Config,
    pub(crate) files: Files,
    pub(crate) gate: Gate,
    pub(crate) counts: Counts,
    keys: RwLock<Option<Arc<Keys>>>,
    queue: Queue,
    read_last: Memory,
    written_last: Memory,
    last_error: Mutex<Option<String>>,
}

/// Whether other processes must look again after a commit.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Announce {
    /// Objects, or the token, have changed.
    Yes,
    /// Only counters of PINs and the like.
    No,
}

impl SqliteStore {
    /// A store at `config.path`, whether or not a token is there.
    #[must_use]
    pub fn new(config: Config) -> Self {
        let files = Files::new(&config.path);
        Self {
            gate: Gate::new(files.clone()),
            files,
            config,
            counts: Counts::default(),
            keys: RwLock::new(None),
            queue: Queue::default(),
            read_last: Memory::default(),
            written_last: Memory::default(),
            last_error: Mutex::new(None),
        }
    }

    /// The text of the last error that a call of the trait gave, for a person.
    #[must_use]
    pub fn last_error(&self) -> Option<String> {
        self.last_error.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// What happened so far in this process.
    #[must_use]
    pub fn statistics(&self) -> Statistics {
        let Counts { commits, writes, fast_hits, fast_misses } = &self.counts;
        Statistics {
            commits: commits.load(Ordering::Relaxed),
            writes: writes.load(Ordering::Relaxed),
            fast_hits: fast_hits.load(Ordering::Relaxed),
            fast_misses: fast_misses.load(Ordering::Relaxed),
        }
    }

    pub(crate) fn keys(&self) -> Option<Arc<Keys>> {
        self.keys.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    pub(crate) fn set_keys(&self, keys: Option<Keys>) {
        *self.keys.write().unwrap_or_else(PoisonError::into_inner) = keys.map(Arc::new);
    }

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

    /// One transaction of our own, behind the writers' queue.
    pub(crate) fn transact<R>(
        &self,
        announce: Announce,
        work: impl FnOnce(&Database) -> Result<R>,
    ) -> Result<R> {
        let locks = self.gate.locks()?;
        let _turn = locks.queue.hold()?;
        self.gate.write(|database| self.commit(database, announce, || work(database)))
    }

    /// [`Self::transact`] for work that writes the token's state.
    pub(crate) fn transact_sealed<R>(
        &self,
        keys: &Keys,
        work: impl FnOnce(&Database) -> Result<R>,
    ) -> Result<R> {
        let locks = self.gate.locks()?;
        let _turn = locks.queue.hold()?;
        self.gate.write(|database| {
            let done = self.commit(database, Announce::Yes, || work(database))?;
            self.advance_held(database, keys)?;
            Ok(done)
        })
    }

    /// Compares the state with the anchor, where there is one, and moves the anchor on to it. The
    /// writers' queue is held.
    fn advance_held(&self, database: &Database, keys: &Keys) -> Result<()> {
        let Some(anchor) = &self.config.anchor else { return Ok(()) };
        let head = Head::read(&database.connection)?;
        if head.key_id != keys.id {
            // The token was made anew by another process, which has seen to the anchor.
            return Ok(());
        }
        let state = State::open(keys, &head.state)?;
        anchor::advance(anchor, &self.config.path, &keys.serial, &state)
    }

    /// [`Self::advance_held`] for callers without the lock.
    pub(crate) fn advance_anchor(&self, keys: &Keys) -> Result<()> {
        if self.config.anchor.is_none() {
            return Ok(());
        }
        let locks = self.gate.locks()?;
        let _turn = locks.queue.hold()?;
        self.gate.write(|database| self.advance_held(database, keys))
    }

    /// BEGIN, `work`, COMMIT, with the generation around the commit. The writers' queue is held.
    pub(crate) fn commit<R>(
        &self,
        database: &Database,
        announce: Announce,
        work: impl FnOnce() -> Result<R>,
    ) -> Result<R> {
        let run = |statement: &str| -> Result<()> {
            database.connection.prepare_cached(statement)?.execute(())?;
            Ok(())
        };
        if !database.connection.is_autocommit() {
            // A call that panicked between BEGIN and COMMIT ended without either.
            run("ROLLBACK")?;
        }
        run("BEGIN IMMEDIATE")?;
        let page = self.gate.generation().filter(|_| announce == Announce::Yes);
        let done = work().and_then(|value| {
            if let Some(page) = page {
                page.begin()?;
            }
            let committed = run("COMMIT");
            committed.map(|()| value)
        });
        if done.is_err() && !database.connection.is_autocommit() {
            run("ROLLBACK")?;
        }
        if let Some(page) = page
            && page.is_odd()
        {
            // It is committed, or not, whatever this says; an odd number is always safe.
            page.end().unwrap_or_default();
        }
        if done.is_ok() {
            self.counts.commits.fetch_add(1, Ordering::Relaxed);
        }
        done
    }

    /// Lets somebody in whose PIN was right: unless the token is not as it was last written.
    pub(crate) fn admit(&self, keys: Keys) -> Result<()> {
        self.upgrade(&keys)?;
        self.gate.write(|database| {
            database.snapshot(|connection| state::of(connection, &keys)?.check_count(connection))
        })?;
        self.advance_anchor(&keys)?;
        self.set_keys(Some(keys));
        Ok(())
    }

    /// Makes a store of an older format the current one.
    pub(crate) fn upgrade(&self, keys: &Keys) -> Result<()> {
        let is_old = |database: &Database| -> Result<bool> {
            Ok(database.pragma::<i64>("user_version")? < FORMAT)
        };
        if !self.gate.write(is_old)? {
            return Ok(());
        }
        self.transact_sealed(keys, |database| match is_old(database)? {
            true => v1::upgrade(&database.connection, keys),
            // Another process was faster.
            false => Ok(()),
        })
    }

    fn commit_group(&self, take: &dyn Fn() -> Group) {
        let failed = self
            .gate
            .locks()
            .and_then(|locks| {
                let _turn = locks.queue.hold()?;
                self.gate.write(|database| {
                    let group = take();
                    let applied = self.commit(database, Announce::Yes, || {
                        group.apply(&database.connection, &self.written_last)
                    });
                    let anchored = applied.and_then(|outcomes| {
                        if let Some(keys) = &outcomes.keys {
                            self.advance_held(database, keys)?;
                        }
                        Ok(outcomes)
                    });
                    match anchored {
                        Ok(outcomes) => group.succeed(outcomes),
                        Err(error) => group.fail(&error.at(&database.files.database)),
                    }
                    self.counts.writes.fetch_add(group.len() as u64, Ordering::Relaxed);
                    Ok(())
                })
            })
            .err();
        if let Some(error) = failed {
            take().fail(&error);
        }
    }

    fn token_row(&self) -> Result<TokenRow> {
        self.gate.follow_replacement();
        let read = self.gate.read(|database| {
            let token = Token::read(&database.connection)?;
            let token = token.ok_or_else(|| Error::not_token("its own row is missing"))?;
            let now = pin::now();
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

    fn read_row(&self, id: u64) -> Result<Option<Row>> {
        let keys = self.keys();
        self.gate.read(|database| {
            let Some(keys) = keys else {
                let row = Stored::read(&database.connection, id)?;
                return Ok(row.filter(|row| !row.private).map(|row| public(row, false)));
            };
            let row = database.snapshot(|connection| {
                // After another process made the token anew, our keys are those of the old one.
                let head = Head::read(connection)?;
                apply::current(Some(&keys), &head)?;
                let row = Stored::read(connection, id)?;
                let mut known = Known::recall(&self.read_last, &keys, &head.state)?;
                apply::check_last(connection, &keys, &mut known.tree, id, row.as_ref())?;
                known.keep(&self.read_last);
                Ok(row)
            })?;
            let Some(row) = row else { return Ok(None) };
            apply::check(&keys, id, &row)?;
            if !row.private {
                let verified = row.verified;
                return Ok(Some(public(row, verified)));
            }
            let place = apply::place(&keys, id, &row);
            let attributes = keys.open_attributes(&place, &row.attributes)?;
            let attributes =
                attributes.ok_or_else(|| Error::damaged(id, "its attributes do not open"))?;
            Ok(Some(Row { attributes, ..public(row, true) }))
        })
    }

    fn read_secrets(&self, id: u64, version: u64) -> Result<Secret> {
        let keys = self.keys().ok_or(Error::NotLoggedIn)?;
        self.gate.read(|database| {
            let row = Stored::read(&database.connection, id)?.ok_or(Error::Gone { id })?;
            if row.version != version {
                return Err(Error::Gone { id });
            }
            let Some(sealed) = &row.secrets else {
                return Err(Error::damaged(id, "it has no secrets"));
            };
            let place = apply::place(&keys, id, &row);
            if let Some(secrets) = keys.open_secrets(&place, &row.attributes, sealed)? {
                return Ok(secrets);
            }
            apply::current(Some(&keys), &Head::read(&database.connection)?)?;
            Err(Error::damaged(id, "its secrets do not open"))
        })
    }

    /// Where the database is or will be.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.config.path
    }
}

fn public(row: Stored, verified: bool) -> Row {
    Row {
        version: row.version,
        private: row.private,
        verified,
        has_secrets: row.secrets.is_some(),
        attributes: row.attributes,
    }
}

/// What an uninitialised place answers to a question about objects.
fn nothing<T: Default>(result: Result<T>) -> Result<T> {
    match result {
        Err(Error::Uninitialized { .. }) => Ok(T::default()),
        result => result,
    }
}

impl Store for SqliteStore {
    fn token(&self) -> ck::Result<TokenRow> {
        self.report(self.token_row())
    }

    fn initialize(&self, so_pin: &[u8], label: &str) -> ck::Result<()> {
        self.report(pin::initialize(self, so_pin, label))
    }

    fn login(&self, role: Role, pin: &[u8]) -> ck::Result<()> {
        let result = self.report(pin::login(self, role, pin));
        if result.is_ok() {
            counters::event(counters::Event::Login);
        }
        result
    }

    fn check_pin(&self, role: Role, pin: &[u8]) -> ck::Result<()> {
        self.report(pin::check(self, role, pin))
    }

    fn logout(&self) {
        self.set_keys(None);
    }

    fn init_pin(&self, pin: &[u8]) -> ck::Result<()> {
        self.report(pin::init_user(self, pin))
    }

    fn set_pin(&self, role: Role, old: &[u8], new: &[u8]) -> ck::Result<()> {
        self.report(pin::change(self, role, old, new))
    }

    fn write(&self, changes: Vec<Change>) -> ck::Result<Vec<u64>> {
        self.report(self.queue.submit(changes, self.keys(), |take| self.commit_group(take)))
    }

    fn read(&self, id: u64) -> ck::Result<Option<Row>> {
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
        let keys = if scope == Scope::Public { None } else { self.keys() };
        let scope = match scope {
            Scope::Private if keys.is_none() => return Ok(Vec::new()),
            Scope::Both if keys.is_none() => Scope::Public,
            scope => scope,
        };
        let found = self.gate.read(|database| {
            search::search(&database.connection, keys.as_deref(), query, scope, after, limit)
        });
        self.report(nothing(found))
    }

    fn examine(
        &self,
        role: Role,
        pin: &[u8],
        repair: bool,
        remark: &mut dyn FnMut(Remark<'_>) -> bool,
    ) -> ck::Result<Examined> {
        self.report(verify::examine(self, role, pin, repair, remark))
    }

    fn generation(&self) -> Option<u64> {
        self.gate.generation().and_then(crate::generation::Generation::now)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kdf::Kdf;
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
        store.queue.submit(vec![Change::Insert(record)], store.keys(), commit).unwrap();
        let after = fs::read(&anchor).unwrap();
        drop(store);
        fs::remove_dir_all(&place).unwrap();
        fs::remove_file(&anchor).unwrap();
        assert_ne!(before, after);
    }
}

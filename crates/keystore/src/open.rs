// SPDX-License-Identifier: Apache-2.0
//! A store as it is open in this process: its configuration, its keys, and transactions on it.

use crate::anchor;
use crate::commit::Queue;
use crate::crypto::{Keys, Serial};
use crate::error::{Error, Result};
use crate::files::Files;
use crate::format::FORMAT;
use crate::gate::{Database, Gate};
use crate::identity::Identities;
use crate::kdf::Cost;
use crate::schema::{Head, Token};
use crate::state::{self, Memory, State};
use crate::v1;
use metaslot_counters::Around;
use metaslot_spi::store::{Name, Role};
use rusqlite::Connection;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock};
use std::time::Duration;

/// How a store is kept.
#[derive(Clone, Debug)]
pub struct Config {
    /// The database file. Its directory belongs to the store.
    pub path: PathBuf,
    /// A group whose members use the token: name or number. Matters when the directory is made.
    pub group: Option<String>,
    /// How long a fast login lasts after a login that took the long way; `None` for never. Only with
    /// PINs of 8 bytes or more, and where the kernel keeps secrets for the user or there is a directory in memory.
    pub fast_login: Option<Duration>,
    /// Directories in which there may be one of this user's, in memory: for secrets that the kernel does not keep, and counts
    /// of attempts that the store cannot take.
    pub volatile: Vec<PathBuf>,
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
    /// Runs what may write files: where a signal that a file's greatest length sends waits, say.
    pub around: Around,
}

impl Config {
    /// The defaults: for one user, Argon2id, no fast login.
    #[must_use]
    pub fn new(path: impl Into<PathBuf>) -> Self {
        Self {
            path: path.into(),
            group: None,
            fast_login: None,
            volatile: Vec::new(),
            runtime: None,
            kdf: Cost::Argon2id,
            pepper: None,
            shortest_pin: 0,
            anchor: None,
            around: |work| work(),
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
    /// The generation at which the keys were seen to be the token's.
    pub(crate) kept_login: AtomicU64,
    pub(crate) queue: Queue,
    pub(crate) read_last: Memory,
    pub(crate) written_last: Memory,
    pub(crate) last_error: Mutex<Option<String>>,
    /// The identities, and the generation at which they were read.
    identities: Mutex<Option<(u64, Identities)>>,
    /// Of the SO and the user: failures before a right PIN, and its own count, that could not be cleared yet.
    owed: Mutex<[Option<Owed>; 2]>,
}

/// Failures that a right PIN ends.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Owed {
    /// The name of the wrap that they were tried at.
    pub(crate) wrap: state::Digest,
    pub(crate) failures: u32,
}

/// Whether other processes must look again after a commit.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Announce {
    /// Objects, or the token, have changed.
    Yes,
    /// Only counters of PINs and the like.
    No,
}

/// Those that the token's state knows, as far as there are keys to open that.
fn identities(connection: &Connection, keys: Option<&Keys>) -> Result<Identities> {
    let token = Token::read(connection)?;
    let token = token.ok_or_else(|| Error::not_token("its own row is missing"))?;
    keys.map_or(Ok(()), |keys| state::of(connection, keys).map(drop))?;
    Ok(token.identities)
}

/// Whether what was found is this incarnation. What cannot be looked at now is.
fn is_it(found: &Result<Option<u64>>, incarnation: u64) -> bool {
    match found {
        Ok(now) => *now == Some(incarnation),
        Err(error) => !matches!(error, Error::Uninitialized { .. } | Error::Tampered { .. }),
    }
}

impl SqliteStore {
    /// A store at `config.path`, whether or not a token is there.
    #[must_use]
    pub fn new(config: Config) -> Self {
        let files = Files::new(&config.path);
        Self {
            gate: Gate::new(files.clone(), config.around),
            files,
            config,
            counts: Counts::default(),
            keys: RwLock::new(None),
            kept_login: AtomicU64::new(u64::MAX),
            queue: Queue::default(),
            read_last: Memory::default(),
            written_last: Memory::default(),
            last_error: Mutex::new(None),
            identities: Mutex::default(),
            owed: Mutex::default(),
        }
    }

    pub(crate) fn owed(&self, role: Role) -> Option<Owed> {
        self.owed.lock().unwrap_or_else(PoisonError::into_inner)[role as usize]
    }

    pub(crate) fn set_owed(&self, role: Role, owed: Option<Owed>) {
        self.owed.lock().unwrap_or_else(PoisonError::into_inner)[role as usize] = owed;
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

    /// The same, unless they are of an identity that is not there any more.
    pub(crate) fn current_keys(&self) -> Result<Option<Arc<Keys>>> {
        let keys = self.keys();
        match keys.as_deref().is_none_or(|keys| self.is_still_there(keys)) {
            true => Ok(keys),
            false => Err(Error::NotLoggedIn),
        }
    }

    /// Whether the identity of these keys is. One that cannot be looked at now is.
    pub(crate) fn is_still_there(&self, keys: &Keys) -> bool {
        let Some((name, incarnation)) = keys.bound else { return true };
        is_it(&self.incarnation_of(Some(keys), name), incarnation)
    }

    /// Refuses an identity that is not, within a transaction of a writer, who may have waited for that while it was revoked.
    ///
    /// # Errors
    /// [`Error::NotLoggedIn`]; what is wrong with a token that does not tell.
    pub(crate) fn check_there_now(
        &self,
        database: &Database,
        keys: &Keys,
        (name, incarnation): (Name, u64),
    ) -> Result<()> {
        let read = || identities(&database.connection, Some(keys));
        let found = self.incarnation_in(&read, Some(keys), name);
        match is_it(&found, incarnation) {
            true => Ok(()),
            false => found.and(Err(Error::NotLoggedIn)),
        }
    }

    /// Which incarnation an identity has that the token's state knows, as far as there are keys to open that.
    pub(crate) fn incarnation_of(&self, keys: Option<&Keys>, name: Name) -> Result<Option<u64>> {
        let look = |connection: &Connection| identities(connection, keys);
        let read = || self.gate.read(|database| database.snapshot(look));
        self.incarnation_in(&read, keys, name)
    }

    fn incarnation_in(
        &self,
        read: &dyn Fn() -> Result<Identities>,
        keys: Option<&Keys>,
        name: Name,
    ) -> Result<Option<u64>> {
        let now = self.gate.generation().filter(|now| now & 1 == 0);
        let of = |identities: &Identities| {
            identities.iter().find(|one| one.name == name).map(|one| one.incarnation)
        };
        if let Some((at, identities)) = &*self.known_identities()
            && now == Some(*at)
        {
            return Ok(of(identities));
        }
        let read = read()?;
        let found = of(&read);
        // Without keys what is read was not authenticated.
        if let (Some(now), Some(_)) = (now, keys) {
            *self.known_identities() = Some((now, read));
        }
        Ok(found)
    }

    /// Locked for no longer than it takes to look.
    fn known_identities(&self) -> MutexGuard<'_, Option<(u64, Identities)>> {
        self.identities.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn set_keys(&self, keys: Option<Keys>) {
        *self.keys.write().unwrap_or_else(PoisonError::into_inner) = keys.map(Arc::new);
    }

    /// One transaction of our own, behind the writers' queue.
    pub(crate) fn transact<R>(
        &self,
        announce: Announce,
        work: impl FnOnce(&Database) -> Result<R>,
    ) -> Result<R> {
        self.gate.write_in_turn(|database| self.commit(database, announce, || work(database)))
    }

    /// [`Self::transact`] for what a power cut may take back: it is on the disk with the next change that it may not.
    pub(crate) fn transact_unsynced<R>(
        &self,
        work: impl FnOnce(&Database) -> Result<R>,
    ) -> Result<R> {
        self.gate.write_in_turn(|database| {
            let _unsynced = database.unsynced()?;
            self.commit(database, Announce::No, || work(database))
        })
    }

    /// [`Self::transact`] for work that writes the token's state.
    pub(crate) fn transact_sealed<R>(
        &self,
        keys: &Keys,
        work: impl FnOnce(&Database) -> Result<R>,
    ) -> Result<R> {
        self.gate.write_in_turn(|database| {
            self.check_anchor(&keys.serial)?;
            let done = self.commit(database, Announce::Yes, || {
                // A store that is older than its anchor would become newer by enough changes.
                self.advance_held(database, keys)?;
                work(database)
            })?;
            self.advance_held(database, keys)?;
            Ok(done)
        })
    }

    /// Compares the state with the anchor, where there is one, and moves the anchor on to it. The
    /// writers' queue is held.
    pub(crate) fn advance_held(&self, database: &Database, keys: &Keys) -> Result<()> {
        self.advance_held_of(database, [keys])
    }

    /// The same with those of these keys that are the token's.
    pub(crate) fn advance_held_of<'k>(
        &self,
        database: &Database,
        keys: impl IntoIterator<Item = &'k Keys>,
    ) -> Result<()> {
        self.with_anchor(database, keys, anchor::advance)
    }

    fn with_anchor<'k>(
        &self,
        database: &Database,
        keys: impl IntoIterator<Item = &'k Keys>,
        judge: impl FnOnce(&Path, &Path, &Serial, &State) -> Result<()>,
    ) -> Result<()> {
        let Some(anchor) = &self.config.anchor else { return Ok(()) };
        let head = Head::read(&database.connection)?;
        // Where there are none the token was made anew by another process, which has seen to the anchor.
        let Some(keys) = keys.into_iter().find(|keys| keys.id == head.key_id) else {
            return Ok(());
        };
        if database.pragma::<i64>("user_version")? < FORMAT {
            // It has no count of changes yet.
            return Ok(());
        }
        let state = State::open(keys, &head.state)?;
        judge(anchor, &self.config.path, &keys.serial, &state)
    }

    /// Refuses a change of the state that the anchor, where there is one, could not follow. Gives how many it
    /// has seen.
    pub(crate) fn check_anchor(&self, serial: &Serial) -> Result<u64> {
        let anchor = self.config.anchor.as_deref();
        anchor.map_or(Ok(0), |anchor| anchor::check(anchor, &self.config.path, serial))
    }

    /// Empties the anchor of a token that was hardly made, as far as that can be had.
    pub(crate) fn forget_anchor(&self, serial: &Serial) {
        let forget = |anchor: &PathBuf| anchor::forget(anchor, &self.config.path, serial);
        self.config.anchor.as_ref().map_or(Ok(()), forget).unwrap_or_default();
    }

    /// [`Self::advance_held`] for callers without the lock.
    pub(crate) fn advance_anchor(&self, keys: &Keys) -> Result<()> {
        if self.config.anchor.is_none() {
            return Ok(());
        }
        match self.gate.read(|database| Ok(database.writable))? {
            true => self.gate.write_in_turn(|database| self.advance_held(database, keys)),
            false => self.gate.read(|database| self.with_anchor(database, [keys], anchor::compare)),
        }
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
        let commit = || run("COMMIT");
        // Both may have been changed since the file was opened, and are not while this lasts.
        let done = database.check_format().and_then(|()| work()).and_then(|value| {
            match announce {
                Announce::Yes => self.gate.announce(database, commit)?,
                Announce::No => {
                    commit()?;
                    self.gate.check_place(database)?;
                }
            }
            Ok(value)
        });
        if done.is_err() && !database.connection.is_autocommit() {
            run("ROLLBACK")?;
        }
        if done.is_ok() {
            self.counts.commits.fetch_add(1, Ordering::Relaxed);
        }
        done
    }

    /// Logs in, after the PIN was right: unless the token is not as it was last written.
    pub(crate) fn admit(&self, keys: Keys) -> Result<()> {
        self.confirm(&keys)?;
        self.set_keys(Some(keys));
        Ok(())
    }

    /// Refuses a token that is not as it was last written, as far as a login looks.
    pub(crate) fn confirm(&self, keys: &Keys) -> Result<()> {
        self.upgrade(keys)?;
        self.gate.look(|database| {
            database.snapshot(|connection| {
                database.check_format()?;
                state::of(connection, keys)?.check_count(connection)
            })
        })?;
        self.advance_anchor(keys)
    }

    /// Makes a store of an older format the current one.
    pub(crate) fn upgrade(&self, keys: &Keys) -> Result<()> {
        let is_old = |database: &Database| -> Result<bool> {
            Ok(database.pragma::<i64>("user_version")? < FORMAT)
        };
        if !self.gate.look(is_old)? {
            return Ok(());
        }
        self.transact_sealed(keys, |database| match is_old(database)? {
            true => v1::upgrade(&database.connection, keys),
            // Another process was faster.
            false => Ok(()),
        })
    }

    /// Where the database is or will be.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.config.path
    }
}

// SPDX-License-Identifier: Apache-2.0
//! A store as it is open in this process: its configuration, its keys, and transactions.

use crate::address::Address;
use crate::cache::Cache;
use crate::levels::Levels;
use crate::link::{Link, Open, Password, lock};
use crate::rows::Whole;
use metaslot_keystore::elsewhere::{self, Head, Identities, Keys, Memory, Pins, Queue, Reading};
use metaslot_keystore::{Cost, Error};
use metaslot_spi::store::TokenRow;
use std::fmt;
use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError, RwLock};
use std::time::Duration;

pub(crate) type Result<T> = std::result::Result<T, Error>;

/// Begins a look at all of one moment.
pub(crate) const SNAPSHOT: &str = "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY";

/// How a token in PostgreSQL is kept.
#[derive(Clone)]
pub struct Config {
    /// Where it is.
    pub address: Address,
    /// What the role proves itself by, where it has a password.
    pub password: Option<Password>,
    /// For how long what was read goes on being used while the database is away.
    pub away: Duration,
    /// What makes guessing PINs expensive, for PINs that are set from now on.
    pub kdf: Cost,
    /// A file of this machine that every PIN set from now on is mixed with.
    pub pepper: Option<PathBuf>,
    /// The shortest PIN that may be set, in bytes, where that is more than the engine's own.
    pub shortest_pin: usize,
    /// A file of this machine that remembers the token's last state: an older one is refused. It begins as an empty file.
    pub anchor: Option<PathBuf>,
}

impl Config {
    /// The defaults: no password, Argon2id, ten minutes without the database.
    #[must_use]
    pub const fn new(address: Address) -> Self {
        Self {
            address,
            password: None,
            away: Duration::from_mins(10),
            kdf: Cost::Argon2id,
            pepper: None,
            shortest_pin: 0,
            anchor: None,
        }
    }
}

impl fmt::Debug for Config {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Config").field("address", &self.address.as_str()).finish_non_exhaustive()
    }
}

/// A token in a PostgreSQL database. Connects when it is used first.
#[derive(Debug)]
pub struct PostgresStore {
    pub(crate) config: Config,
    pub(crate) link: Arc<Link>,
    keys: RwLock<Option<Arc<Keys>>>,
    /// The generation at which the keys were seen to be the token's.
    pub(crate) kept_login: AtomicU64,
    pub(crate) written_last: Memory,
    pub(crate) read_last: Memory,
    /// Held while rows are compared with what was read last, which is not there meanwhile.
    pub(crate) comparing: Mutex<()>,
    pub(crate) levels: Levels,
    pub(crate) queue: Queue,
    pub(crate) cache: Cache,
    /// How many changes the token had when it was last looked at with these keys.
    newest: Mutex<Option<(elsewhere::KeyId, u64)>>,
    /// The token's own row as it was when there was a database.
    pub(crate) known: Mutex<Option<TokenRow>>,
    /// The identities, and the generation at which they were read.
    pub(crate) identities: Mutex<Option<(u64, Identities)>>,
}

impl PostgresStore {
    /// A store at `config.address`, whether or not a token is there.
    #[must_use]
    pub fn new(config: Config) -> Self {
        Self {
            link: Link::new(config.address.clone(), config.password.clone(), config.away),
            config,
            keys: RwLock::new(None),
            kept_login: AtomicU64::new(u64::MAX),
            written_last: Memory::default(),
            read_last: Memory::default(),
            comparing: Mutex::default(),
            levels: Levels::default(),
            queue: Queue::default(),
            cache: Cache::default(),
            newest: Mutex::default(),
            known: Mutex::default(),
            identities: Mutex::default(),
        }
    }

    /// How many calls wait for the token's row to write what they have queued; what waits together is one transaction.
    #[must_use]
    pub fn waiting(&self) -> usize {
        self.queue.waiting()
    }

    pub(crate) fn pins(&self) -> Pins<'_> {
        Pins { cost: self.config.kdf, pepper: self.config.pepper.as_deref() }
    }

    pub(crate) fn keys(&self) -> Option<Arc<Keys>> {
        self.keys.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    pub(crate) fn set_keys(&self, keys: Option<Keys>) {
        *self.keys.write().unwrap_or_else(PoisonError::into_inner) = keys.map(Arc::new);
    }

    /// One transaction with the token's row locked, in the turn that the caller has. `work` says whether anything has changed
    /// that others must hear of.
    pub(crate) fn transact<R>(
        &self,
        open: &Open<'_>,
        work: impl FnOnce(Whole) -> Result<(R, bool)>,
    ) -> Result<R> {
        self.around(open, "BEGIN", || {
            let whole = Whole::locked(open)?;
            // No other writer is in between.
            let next = whole.generation + 1;
            let (done, announce) = work(whole)?;
            if announce {
                let sql = "WITH next AS (UPDATE metaslot.token SET generation = $2 WHERE name = $1)
                           SELECT pg_notify('metaslot', $2 || ' ' || $1)";
                open.later(sql, vec![Box::new(open.name().to_owned()), Box::new(next)]);
            }
            Ok((done, announce.then_some(next)))
        })
    }

    /// From the beginning of a transaction to its end; `work` gives the generation that it has made.
    pub(crate) fn around<R>(
        &self,
        open: &Open<'_>,
        begin: &str,
        work: impl FnOnce() -> Result<(R, Option<i64>)>,
    ) -> Result<R> {
        let begun = &open.lines.begun;
        if begun.swap(true, Ordering::Relaxed) {
            open.run("ROLLBACK")?;
        }
        open.run_later(begin);
        let done = work().and_then(|(done, generation)| {
            open.commit()?;
            Ok((done, generation))
        });
        match done {
            Ok((done, generation)) => {
                begun.store(false, Ordering::Relaxed);
                generation.into_iter().for_each(|generation| self.link.heard(generation));
                Ok(done)
            }
            Err(error) => {
                open.forget();
                match open.run("ROLLBACK") {
                    Ok(()) => begun.store(false, Ordering::Relaxed),
                    Err(_) => open.give_up(),
                }
                Err(error)
            }
        }
    }

    /// Compares the state with this machine's anchor, and moves that on.
    pub(crate) fn advance_anchor(&self, keys: &Keys, head: &Head) -> Result<()> {
        let Some(anchor) = &self.config.anchor else { return Ok(()) };
        elsewhere::advance_anchor(anchor, self.link.place(), keys, head)
    }

    /// The same after a commit: another process of this machine may have moved it on already.
    pub(crate) fn follow(&self, open: &Open<'_>, keys: &Keys, head: &Head) -> Result<()> {
        self.note(keys, head);
        match self.advance_anchor(keys, head) {
            Err(Error::Tampered { .. }) => self.advance_anchor(keys, &Whole::read(open)?.head),
            done => done,
        }
    }

    /// Remembers how far the token has come.
    fn note(&self, keys: &Keys, head: &Head) {
        if elsewhere::current(keys, head).is_err() {
            return;
        }
        self.reached(keys, elsewhere::commits(keys, head));
    }

    fn reached(&self, keys: &Keys, commits: u64) {
        let mut newest = lock(&self.newest);
        match &mut *newest {
            Some((key, last)) if *key == keys.id() => *last = commits.max(*last),
            newest => *newest = Some((keys.id(), commits)),
        }
    }

    /// How many changes the token must have from now on.
    pub(crate) fn floor(&self, keys: &Keys) -> u64 {
        let newest = *lock(&self.newest);
        newest.filter(|(key, _)| *key == keys.id()).map_or(0, |(_, commits)| commits)
    }

    /// Refuses a token that has gone back since, and remembers it otherwise.
    pub(crate) fn check_floor(&self, keys: &Keys, head: &Head, floor: u64) -> Result<()> {
        not_older(elsewhere::commits(keys, head), floor)?;
        self.note(keys, head);
        Ok(())
    }

    /// The same of what objects were compared with, which is remembered, too.
    pub(crate) fn finish(&self, reading: Reading<'_>, keys: &Keys, floor: u64) -> Result<()> {
        not_older(reading.commits(), floor)?;
        self.reached(keys, reading.commits());
        reading.keep(&self.read_last);
        Ok(())
    }
}

fn not_older(commits: u64, floor: u64) -> Result<()> {
    if commits < floor {
        return Err(Error::tampered(&format!(
            "the database has gone back behind this process: it has seen change {floor}, and this is change {commits}"
        )));
    }
    Ok(())
}

/// The next generation, told to all who listen once the transaction is committed.
pub(crate) fn announced(open: &Open<'_>) -> Result<i64> {
    let sql = "WITH next AS (UPDATE metaslot.token SET generation = generation + 1 WHERE name = $1
                             RETURNING generation)
               SELECT generation, pg_notify('metaslot', generation || ' ' || $1) FROM next";
    let rows = open.write(sql, &[&open.name()])?;
    let next = rows.first().and_then(|row| row.try_get(0).ok());
    next.ok_or_else(|| Error::Uninitialized { path: open.place().to_owned() })
}

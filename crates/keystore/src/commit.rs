// SPDX-License-Identifier: Apache-2.0
//! Group commit: threads put their changes into a queue, one of them commits for all.
//!
//! There is no thread of ours. A thread that finds no leader becomes it, waits for the writers'
//! queue among processes, applies whatever is waiting by then, commits once, and wakes the others;
//! those that came too late choose the next leader among themselves.

use crate::apply::Batch;
use crate::crypto::Keys;
use crate::error::{Error, Result};
use crate::rows::RowsMut;
use crate::state::Memory;
use metaslot_spi::store::{Change, Name};
use rusqlite::Connection;
use std::mem;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};

/// The change sets that wait.
#[derive(Debug, Default)]
pub struct Queue {
    state: Mutex<State>,
    turned: Condvar,
}

#[derive(Debug, Default)]
struct State {
    leading: bool,
    /// How many threads wait for a leader to step down.
    parked: usize,
    waiting: Vec<Arc<Job>>,
}

#[derive(Debug)]
struct Job {
    keys: Option<Arc<Keys>>,
    /// Which identity wants it, if one does.
    identity: Option<(Name, u64)>,
    state: Mutex<JobState>,
}

#[derive(Debug)]
enum JobState {
    Waiting(Vec<Change>),
    Taken,
    Done(Result<Vec<u64>>),
}

/// What became of a group.
#[derive(Debug)]
pub struct Outcomes {
    /// The ids for each job; `None` for those that have failed.
    ids: Vec<Option<Vec<u64>>>,
    /// The keys that sealed the token's state, which a logout meanwhile does not take away; `None`
    /// where it is the same.
    pub keys: Option<Arc<Keys>>,
}

/// What the leader took out of the queue. Whatever is not answered when it goes away has failed.
#[derive(Debug)]
pub struct Group {
    jobs: Vec<Arc<Job>>,
    /// The changes of each; `None` for those that have failed.
    work: Vec<Option<Vec<Change>>>,
}

impl Queue {
    /// Queues a change set and waits until it is durable. It is by the login that has these keys, and
    /// by an identity where that is another than theirs. `commit` is run by the leader: it takes
    /// a [`Group`] by the closure that it is given, once it holds every lock.
    ///
    /// # Errors
    /// What the change set was answered with.
    pub fn submit(
        &self,
        changes: Vec<Change>,
        (keys, identity): (Option<Arc<Keys>>, Option<(Name, u64)>),
        commit: impl FnOnce(&dyn Fn() -> Group),
    ) -> Result<Vec<u64>> {
        let identity = identity.or_else(|| keys.as_ref()?.bound);
        let job = Arc::new(Job { keys, identity, state: Mutex::new(JobState::Waiting(changes)) });
        let mut state = self.lock();
        state.waiting.push(Arc::clone(&job));
        loop {
            if let Some(result) = job.result() {
                return result;
            }
            if !state.leading {
                break;
            }
            state.parked += 1;
            state = self.turned.wait(state).unwrap_or_else(PoisonError::into_inner);
            state.parked -= 1;
        }
        state.leading = true;
        drop(state);
        let leader = Leader(self);
        commit(&|| Group::new(mem::take(&mut self.lock().waiting)));
        // The leader's own job was in the queue, so it is answered, unless no group was taken.
        let result = job.result();
        if result.is_none() {
            self.lock().waiting.retain(|other| !Arc::ptr_eq(other, &job));
        }
        drop(leader);
        result.unwrap_or(Err(Error::Cryptography))
    }

    /// How many change sets wait to be taken, that of a leader which waits for its locks among them.
    #[must_use]
    pub fn waiting(&self) -> usize {
        self.lock().waiting.len()
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Steps down, whatever happened.
struct Leader<'a>(&'a Queue);

impl Drop for Leader<'_> {
    fn drop(&mut self) {
        let mut state = self.0.lock();
        state.leading = false;
        // A wake that wakes no thread is a system call all the same.
        if state.parked > 0 {
            self.0.turned.notify_all();
        }
    }
}

impl Job {
    fn lock(&self) -> MutexGuard<'_, JobState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn take(&self) -> Option<Vec<Change>> {
        match mem::replace(&mut *self.lock(), JobState::Taken) {
            JobState::Waiting(changes) => Some(changes),
            _ => None,
        }
    }

    fn result(&self) -> Option<Result<Vec<u64>>> {
        let mut state = self.lock();
        match mem::replace(&mut *state, JobState::Taken) {
            JobState::Done(result) => Some(result),
            other => {
                *state = other;
                None
            }
        }
    }
}

impl Group {
    fn new(jobs: Vec<Arc<Job>>) -> Self {
        let work = jobs.iter().map(|job| job.take()).collect();
        Self { jobs, work }
    }

    /// How many change sets.
    pub(crate) const fn len(&self) -> usize {
        self.jobs.len()
    }

    /// The keys of the logins under which they were queued.
    pub fn keys(&self) -> impl Iterator<Item = &Keys> {
        self.jobs.iter().filter_map(|job| job.keys.as_deref())
    }

    /// Whether there are identities among those that want something.
    #[must_use]
    pub fn has_identities(&self) -> bool {
        self.jobs.iter().any(|job| job.identity.is_some())
    }

    /// Answers those whose identity was revoked while they waited, or of whom that cannot be said, as `is_there` says of an identity and
    /// the keys that it had.
    ///
    /// # Errors
    /// What the last one was answered, where none is left.
    pub fn refuse_revoked(
        &mut self,
        is_there: impl Fn(&Keys, (Name, u64)) -> Result<()>,
    ) -> Result<()> {
        for at in 0..self.jobs.len() {
            let Job { keys, identity, .. } = &*self.jobs[at];
            let who = keys.as_deref().zip(*identity).filter(|_| self.work[at].is_some());
            let refused = who.and_then(|(keys, identity)| is_there(keys, identity).err());
            if let Some(error) = refused
                && !self.refuse(at, &error)
            {
                return Err(error);
            }
        }
        Ok(())
    }

    /// Whether all have failed.
    #[must_use]
    pub fn is_answered(&self) -> bool {
        self.work.iter().all(Option::is_none)
    }

    /// Applies every change set inside the transaction that is open. A set that fails is answered
    /// at once, the transaction is begun anew, and the others are applied again: savepoints would
    /// have SQLite copy every page that is changed, for the sake of what hardly ever happens. The
    /// ids of the others are given back until the commit is done.
    pub(crate) fn apply(&mut self, connection: &Connection, memory: &Memory) -> Result<Outcomes> {
        loop {
            let (failed, error) = match self.apply_once(connection, memory) {
                Ok(outcomes) => return Ok(outcomes),
                Err((Some(failed), error)) => (failed, error),
                Err((None, error)) => return Err(error),
            };
            if !self.refuse(failed, &error) {
                return Err(error);
            }
            if !connection.is_autocommit() {
                connection.execute_batch("ROLLBACK")?;
            }
            connection.execute_batch("BEGIN IMMEDIATE")?;
        }
    }

    /// What becomes of each job, or which one failed; none did where it is the transaction.
    pub(crate) fn apply_once(
        &self,
        rows: &dyn RowsMut,
        memory: &Memory,
    ) -> std::result::Result<Outcomes, (Option<usize>, Error)> {
        let mut batch = Batch::begin(rows, memory).map_err(|error| (None, error))?;
        let mut all_ids = Vec::with_capacity(self.work.len());
        for (at, (job, changes)) in self.jobs.iter().zip(&self.work).enumerate() {
            let ids = changes.as_ref().map(|changes| batch.apply(changes, job.keys.as_ref()));
            all_ids.push(ids.transpose().map_err(|error| (Some(at), error))?);
        }
        let keys = batch.finish().map_err(|error| (None, error))?;
        Ok(Outcomes { ids: all_ids, keys })
    }

    /// Answers one job, which takes no part any more. Whether there is another.
    pub fn refuse(&mut self, failed: usize, error: &Error) -> bool {
        self.work[failed] = None;
        *self.jobs[failed].lock() = JobState::Done(Err(error.clone()));
        !self.is_answered()
    }

    /// Answers those whose changes are durable.
    pub fn succeed(&self, outcomes: Outcomes) {
        for (job, ids) in self.jobs.iter().zip(outcomes.ids) {
            if let Some(ids) = ids {
                *job.lock() = JobState::Done(Ok(ids));
            }
        }
    }

    /// Answers every job that has no answer yet.
    pub fn fail(&self, error: &Error) {
        for job in &self.jobs {
            let mut state = job.lock();
            if !matches!(*state, JobState::Done(_)) {
                *state = JobState::Done(Err(error.clone()));
            }
        }
    }

    /// Each by itself, of those that have no answer yet.
    #[must_use]
    pub fn split(mut self) -> Vec<Self> {
        let all = mem::take(&mut self.jobs).into_iter().zip(mem::take(&mut self.work));
        let left = all.filter(|(_, work)| work.is_some());
        left.map(|(job, work)| Self { jobs: vec![job], work: vec![work] }).collect()
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        self.fail(&Error::Cryptography);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::crypto;
    use crate::kdf::{Cost, Kdf};
    use crate::open::{Config, SqliteStore};
    use crate::schema::Head;
    use metaslot_spi::store::{Record, Role, Store as _};
    use std::{fs, thread};

    /// An older file would become newer than its anchor by enough changes.
    #[test]
    fn who_is_logged_in_to_another_token_has_no_anchor_left_out() {
        let name = format!("metaslot-keystore-{}-anchor-of-all", std::process::id());
        let place = std::env::temp_dir().join(name);
        let anchor = place.with_extension("anchor");
        fs::write(&anchor, "").expect("it is written");
        let store = SqliteStore::new(Config {
            kdf: Cost::Fixed(Kdf::Argon2id { memory_kib: 64, passes: 1, lanes: 1 }),
            anchor: Some(anchor.clone()),
            ..Config::new(place.join("token.db"))
        });
        store.initialize(b"so-pin-1", "test token").expect("it is made");
        store.login(Role::So, b"so-pin-1").expect("the PIN");
        // It has seen a change that the file does not have.
        let mut seen = fs::read(&anchor).expect("it is there");
        seen[8] += 1;
        fs::write(&anchor, seen).expect("it is written");
        let state = || {
            let head = store.gate.look(|database| Ok(Head::read(&database.connection)?));
            head.expect("it is read").state
        };
        let keys = store.keys().expect("there is a login");
        let key = crypto::random_key().expect("random bytes");
        let others = Arc::new(Keys::new(key, keys.serial, Role::User).expect("keys"));
        let (before, keys) = (state(), Some(keys));
        let insert = || {
            let record =
                Record { private: false, attributes: vec![], secrets: None, terms: vec![] };
            vec![Change::Insert(record)]
        };
        let written = thread::scope(|scope| {
            let mut second = None;
            let write = || store.queue.submit(insert(), (keys, None), |_| {});
            let first = store.queue.submit(insert(), (Some(others), None), |take| {
                second = Some(scope.spawn(write));
                while store.queue.lock().parked == 0 {
                    thread::yield_now();
                }
                store.commit_group(take);
            });
            [Some(first), second.map(|second| second.join().expect("no panic"))]
        });
        assert!(
            matches!(written, [Some(Err(_)), Some(Err(Error::Tampered { .. }))]),
            "{written:?}"
        );
        assert!(before == state(), "it is written all the same");
        drop(store);
        fs::remove_dir_all(&place).expect("it goes");
        fs::remove_file(&anchor).expect("it goes");
    }
}

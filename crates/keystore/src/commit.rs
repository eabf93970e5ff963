// SPDX-License-Identifier: Apache-2.0
//! Group commit: threads put their changes into a queue, one of them commits for all.
//!
//! There is no thread of ours. A thread that finds no leader becomes it, waits for the writers'
//! queue among processes, applies whatever is waiting by then, commits once, and wakes the others;
//! those that came too late choose the next leader among themselves.

use crate::apply::Batch;
use crate::crypto::Keys;
use crate::error::{Error, Result};
use metaslot_engine::store::Change;
use rusqlite::Connection;
use std::mem;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};

/// The change sets that wait.
#[derive(Debug, Default)]
pub(crate) struct Queue {
    state: Mutex<State>,
    turned: Condvar,
}

#[derive(Debug, Default)]
struct State {
    leading: bool,
    waiting: Vec<Arc<Job>>,
}

#[derive(Debug)]
struct Job {
    keys: Option<Arc<Keys>>,
    state: Mutex<JobState>,
}

#[derive(Debug)]
enum JobState {
    Waiting(Vec<Change>),
    Taken,
    Done(Result<Vec<u64>>),
}

/// What the leader took out of the queue. Whatever is not answered when it goes away has failed.
#[derive(Debug)]
pub(crate) struct Group(Vec<Arc<Job>>);

impl Queue {
    /// Queues a change set and waits until it is durable. `commit` is run by the leader: it takes
    /// a [`Group`] by the closure that it is given, once it holds every lock.
    pub(crate) fn submit(
        &self,
        changes: Vec<Change>,
        keys: Option<Arc<Keys>>,
        commit: impl FnOnce(&dyn Fn() -> Group),
    ) -> Result<Vec<u64>> {
        let job = Arc::new(Job { keys, state: Mutex::new(JobState::Waiting(changes)) });
        let mut state = self.lock();
        state.waiting.push(Arc::clone(&job));
        loop {
            if let Some(result) = job.result() {
                return result;
            }
            if !state.leading {
                break;
            }
            state = self.turned.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
        state.leading = true;
        drop(state);
        let leader = Leader(self);
        commit(&|| Group(mem::take(&mut self.lock().waiting)));
        // The leader's own job was in the queue, so it is answered, unless no group was taken.
        let result = job.result();
        if result.is_none() {
            self.lock().waiting.retain(|other| !Arc::ptr_eq(other, &job));
        }
        drop(leader);
        result.unwrap_or(Err(Error::Cryptography))
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Steps down, whatever happened.
struct Leader<'a>(&'a Queue);

impl Drop for Leader<'_> {
    fn drop(&mut self) {
        self.0.lock().leading = false;
        self.0.turned.notify_all();
    }
}

impl Job {
    fn lock(&self) -> MutexGuard<'_, JobState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
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
    /// How many change sets.
    pub(crate) fn len(&self) -> usize {
        self.0.len()
    }

    /// Applies each change set, inside one transaction. A set that fails is answered at once and
    /// harms no other; the ids of the others are given back until the commit is done.
    pub(crate) fn apply(&self, connection: &Connection) -> Result<Vec<Option<Vec<u64>>>> {
        let mut batch = Batch::begin(connection)?;
        let mut outcomes = Vec::with_capacity(self.0.len());
        for job in &self.0 {
            let JobState::Waiting(changes) = mem::replace(&mut *job.lock(), JobState::Taken) else {
                outcomes.push(None);
                continue;
            };
            match batch.apply(changes, job.keys.as_ref()) {
                Ok(ids) => outcomes.push(Some(ids)),
                // The transaction is over when SQLite rolled it back by itself (disk full).
                Err(error) if connection.is_autocommit() => return Err(error),
                Err(error) => {
                    *job.lock() = JobState::Done(Err(error));
                    outcomes.push(None);
                }
            }
        }
        if outcomes.iter().any(Option::is_some) {
            batch.finish()?;
        }
        Ok(outcomes)
    }

    /// Answers those whose changes are durable.
    pub(crate) fn succeed(&self, outcomes: Vec<Option<Vec<u64>>>) {
        for (job, outcome) in self.0.iter().zip(outcomes) {
            if let Some(ids) = outcome {
                *job.lock() = JobState::Done(Ok(ids));
            }
        }
    }

    /// Answers everybody who has no answer yet.
    pub(crate) fn fail(&self, error: &Error) {
        for job in &self.0 {
            let mut state = job.lock();
            if !matches!(*state, JobState::Done(_)) {
                *state = JobState::Done(Err(error.clone()));
            }
        }
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        self.fail(&Error::Cryptography);
    }
}

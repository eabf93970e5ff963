// SPDX-License-Identifier: Apache-2.0
//! Signatures inside jobs of OpenSSL's: one is begun in an asynchronous session, the job pauses, and the first one
//! that comes back has a batch computed for all. Everything else is done at once.

use crate::abi::{Job, Waits, deep};
use crate::host::{Lease, Token};
use crate::key::Key;
use metaslot_ck::*;
use metaslot_client::{Error, Mechanism, PendingSignature, Progress};
use metaslot_memory::PerProcess;
use std::ptr;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Jobs that may be away at a time. Those that the program has given up never come back: each leaves it 32 KiB of stack that nothing frees, and from
/// so many on no job pauses any more.
const MAX_AWAY: usize = 1000;

/// How often one operation pauses, while other threads compute.
const MAX_PAUSES: usize = 1000;

/// Jobs of this process.
static JOBS: PerProcess<Jobs> = PerProcess::new(|_| Jobs::default());

#[derive(Debug, Default)]
struct Jobs {
    away: AtomicUsize,
    numbers: AtomicU64,
}

/// What is pending with one wait context, in the process that began it.
#[derive(Debug)]
struct Waiter {
    jobs: &'static Jobs,
    pending: Mutex<Vec<(u64, PendingSignature)>>,
}

impl Waits for Waiter {
    fn gone(self: Arc<Self>) {
        if self.is_own() {
            // Cancelled, and their sessions closed; their jobs stay counted.
            drop(std::mem::take(&mut *self.pending()));
        } else {
            // The parent's: its lock may be held, its sessions are none here.
            std::mem::forget(self);
        }
    }
}

impl Waiter {
    fn is_own(&self) -> bool {
        ptr::eq(self.jobs, JOBS.get())
    }

    fn pending(&self) -> MutexGuard<'_, Vec<(u64, PendingSignature)>> {
        self.pending.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn put(&self, operation: PendingSignature) -> u64 {
        let number = self.jobs.numbers.fetch_add(1, Ordering::Relaxed);
        self.pending().push((number, operation));
        number
    }

    fn take(&self, number: u64) -> Option<PendingSignature> {
        let mut pending = self.pending();
        let place = pending.iter().position(|(other, _)| *other == number)?;
        Some(pending.swap_remove(place).1)
    }
}

/// A signature to be made.
pub(crate) struct Signing<'a> {
    pub(crate) key: &'a Key,
    pub(crate) mechanism: &'a Mechanism<'a>,
    pub(crate) data: &'a [u8],
}

impl Signing<'_> {
    /// Makes it, in a batch where this is a job.
    pub(crate) fn run(
        &self,
        token: &Arc<Token>,
        handle: ObjectHandle,
    ) -> metaslot_client::Result<Vec<u8>> {
        let core = &self.key.provider.core;
        let at_once = || core.unless_failed(|| self.at_once(token, handle));
        self.in_job(token, handle).unwrap_or_else(|| deep(at_once))
    }

    fn longest(&self) -> usize {
        // Of curves: twice the length of their order.
        self.key.answer_length().max(64)
    }

    fn at_once(
        &self,
        token: &Arc<Token>,
        handle: ObjectHandle,
    ) -> metaslot_client::Result<Vec<u8>> {
        let mut lease = token.lease()?;
        let made = self.made(&lease, handle);
        let signature = made.inspect_err(|error| token.hears(*error))?;
        lease.succeeded();
        Ok(signature)
    }

    fn made(&self, lease: &Lease, handle: ObjectHandle) -> metaslot_client::Result<Vec<u8>> {
        lease.sign_init(self.mechanism, handle)?;
        self.key.authorize(lease)?;
        let mut signature = vec![0; self.longest()];
        let length = lease.sign_into(self.data, &mut signature)?;
        signature.truncate(length);
        Ok(signature)
    }

    /// `None` where it is to be done at once.
    fn in_job(
        &self,
        token: &Arc<Token>,
        handle: ObjectHandle,
    ) -> Option<metaslot_client::Result<Vec<u8>>> {
        if !self.key.may_pause() || !token.is_metaslot() {
            return None;
        }
        let (job, jobs) = (Job::current()?, JOBS.get());
        if jobs.away.load(Ordering::Relaxed) >= MAX_AWAY {
            return None;
        }
        let begun = deep(|| {
            let session = token.async_session().ok()?;
            Some(session.sign_begin(self.mechanism, handle, self.data, self.longest()))
        });
        let pending = match begun? {
            Ok(Progress::Pending(pending)) => pending,
            Ok(done) => return arrived(token, done).ok(),
            Err(error) => return Some(Err(error)),
        };
        // The program learns of a descriptor when the job pauses, and never of one that is made without.
        let waiter = job.waits(|| Waiter { jobs, pending: Mutex::default() });
        let Some((waiter, new)) = waiter.filter(|(waiter, _)| waiter.is_own()) else {
            deep(|| drop(pending));
            return None;
        };
        away(token, &job, waiter, new, pending)
    }
}

/// Pauses until the result is there. `None`: it will not be.
fn away(
    token: &Arc<Token>,
    job: &Job,
    waiter: Arc<Waiter>,
    mut new: bool,
    mut pending: PendingSignature,
) -> Option<metaslot_client::Result<Vec<u8>>> {
    for _ in 0..MAX_PAUSES {
        let number = waiter.put(pending);
        // One that never comes back stays counted.
        waiter.jobs.away.fetch_add(1, Ordering::Relaxed);
        let paused = job.pause::<Waiter>(new);
        new = false;
        if !waiter.is_own() {
            // A forked child was given the job: it has neither the session nor the memory, and begins anew.
            std::mem::forget(waiter);
            let gone = metaslot_ck::Error::CRYPTOKI_NOT_INITIALIZED;
            return Some(Err(Error::new(Function::AsyncComplete, gone)));
        }
        waiter.jobs.away.fetch_sub(1, Ordering::Relaxed);
        let progress =
            waiter.take(number).map(|pending| deep(|| arrived(token, pending.complete())));
        pending = match progress {
            Some(Err(pending)) if paused => pending,
            // What is not there yet is dropped, and so cancelled. Where its session or its login went meanwhile, what is done at once says so or
            // has another.
            done => return deep(|| done?.ok()?.ok().map(Ok)),
        };
    }
    deep(|| drop(pending));
    None
}

/// The answer, if it is there.
fn arrived(
    token: &Token,
    progress: Progress,
) -> std::result::Result<metaslot_client::Result<Vec<u8>>, PendingSignature> {
    match progress {
        Progress::Pending(pending) => Err(pending),
        Progress::Done(session, answer) => {
            if answer.is_ok() {
                token.keep(session);
            }
            Ok(answer)
        }
    }
}

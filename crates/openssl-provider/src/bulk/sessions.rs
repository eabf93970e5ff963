// SPDX-License-Identifier: Apache-2.0
//! Sessions: taken for a call, or for as long as a message is in one.

use crate::abi::deep;
use crate::failure::{Failure, Result};
use crate::host::Token;
use metaslot_client::{Access, Session};
use std::cell::Cell;
use std::ops::Deref;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

/// Who has them: a provider.
pub(crate) trait Whose {
    /// What this process has.
    fn bulk(&self) -> &'static Bulk;
    /// The token for it.
    fn any(&self) -> Result<Arc<Token>>;
}

/// Sessions for calls: threads share one only where there are more of them.
const NEAR: usize = 32;

/// Sessions that are kept for messages.
const IDLE: usize = 64;

/// What one process has for it.
#[derive(Debug)]
pub(crate) struct Bulk {
    process: u32,
    token: OnceLock<Arc<Token>>,
    near: [Mutex<Option<Session>>; NEAR],
    idle: Mutex<Vec<Session>>,
    /// That of the objects.
    keeper: Mutex<Option<Arc<Session>>>,
    /// How often all of them were gone.
    generation: AtomicUsize,
}

/// A session that is given back where its operation succeeded, and closed where it did not: what it began may go on there.
#[derive(Debug)]
pub(crate) struct Held {
    session: Option<Session>,
    bulk: &'static Bulk,
}

impl Bulk {
    pub(crate) fn new(_: Option<&'static Self>) -> Self {
        let (token, near, idle, keeper, generation) = Default::default();
        Self { process: std::process::id(), token, near, idle, keeper, generation }
    }

    /// The token that does it.
    fn token(&self, provider: &impl Whose) -> Result<&Arc<Token>> {
        if let Some(token) = self.token.get() {
            return Ok(token);
        }
        let token = provider.any()?;
        Ok(self.token.get_or_init(|| token))
    }

    /// A session.
    pub(crate) fn session(&'static self, provider: &impl Whose) -> Result<Held> {
        let idle = lock(&self.idle).pop();
        let session = idle.map_or_else(|| self.open(provider), Ok)?;
        Ok(Held { session: Some(session), bulk: self })
    }

    /// The session that has the objects of this process.
    pub(crate) fn keeper(&self, provider: &impl Whose) -> Result<Arc<Session>> {
        let mut keeper = lock(&self.keeper);
        match &*keeper {
            Some(keeper) => Ok(Arc::clone(keeper)),
            None => Ok(Arc::clone(keeper.insert(Arc::new(self.open(provider)?)))),
        }
    }

    /// Objects of an earlier one are no longer there.
    #[inline]
    pub(crate) fn generation(&self) -> usize {
        self.generation.load(Ordering::Relaxed)
    }

    /// Whether these are its objects of now.
    #[inline]
    pub(crate) fn is_now(&self, whose: &Self, generation: usize) -> bool {
        std::ptr::eq(self, whose) && self.generation() == generation
    }

    /// What `call` does; once more where another part of the program closed the sessions, or finalised the module.
    #[inline]
    pub(crate) fn again<T>(&self, mut call: impl FnMut() -> Result<T>) -> Result<T> {
        let mut is_first = true;
        loop {
            let before = self.generation();
            match call() {
                Err(failure) if is_first && failure.stale => self.renew(before),
                done => return done,
            }
            is_first = false;
        }
    }

    /// Begins anew, unless another thread has done that since it was this generation.
    #[cold]
    #[inline(never)]
    fn renew(&self, before: usize) {
        let mut keeper = lock(&self.keeper);
        if self.generation() != before {
            return;
        }
        self.generation.fetch_add(1, Ordering::Relaxed);
        // One that is in use is closed by who uses it.
        let near: Vec<_> =
            self.near.iter().filter_map(|near| near.try_lock().ok()?.take()).collect();
        let gone = (near, std::mem::take(&mut *lock(&self.idle)), keeper.take());
        deep(|| {
            drop(gone);
            self.token.get().map(|token| token.revive())
        });
    }

    fn open(&self, provider: &impl Whose) -> Result<Session> {
        deep(|| self.token(provider)?.open(Access::ReadOnly))
    }

    /// What one call does or two do, in a session that nothing goes on in; once more where that is gone.
    #[inline]
    pub(crate) fn with<T>(
        &'static self,
        provider: &impl Whose,
        what: &str,
        mut call: impl FnMut(&Session) -> metaslot_client::Result<T>,
    ) -> Result<T> {
        self.again(|| self.once(provider, what, &mut call))
    }

    /// The same, once.
    #[inline]
    pub(crate) fn once<T>(
        &'static self,
        provider: &impl Whose,
        what: &str,
        call: impl FnOnce(&Session) -> metaslot_client::Result<T>,
    ) -> Result<T> {
        let Ok(mut near) = self.near[this_thread()].try_lock() else {
            let held = self.session(provider)?;
            let done = held.call(provider, what, call)?;
            held.back();
            return Ok(done);
        };
        let session = match &*near {
            Some(session) => session,
            None => near.insert(self.open(provider)?),
        };
        match deep(|| call(session)) {
            Ok(done) => Ok(done),
            Err(error) => {
                let failure = self.failed(provider, what, error);
                // What it began may go on there.
                *near = None;
                Err(failure)
            }
        }
    }

    /// Random bytes.
    pub(crate) fn random(&'static self, provider: &impl Whose, out: &mut [u8]) -> Result<()> {
        self.with(provider, "make random bytes", |session| session.random(out))
    }

    /// A failed call in words.
    #[cold]
    pub(crate) fn failed(
        &self,
        provider: &impl Whose,
        what: &str,
        error: metaslot_client::Error,
    ) -> Failure {
        match self.token(provider) {
            Ok(token) => token.failed(what, error),
            Err(failure) => failure,
        }
    }

    /// At the end of the provider.
    pub(crate) fn close(&self) {
        let near = self.near.iter().filter_map(|near| lock(near).take());
        let sessions: Vec<Session> = near.chain(std::mem::take(&mut *lock(&self.idle))).collect();
        let all = (sessions, lock(&self.keeper).take());
        if !self.token.get().is_some_and(|token| token.is_metaslot()) {
            // As the rest of what the process has: other modules do not stand calls in exit handlers.
            std::mem::forget(all);
        }
    }
}

/// A number below `NEAR`.
#[inline]
fn this_thread() -> usize {
    static THREADS: AtomicUsize = AtomicUsize::new(0);
    thread_local! {
        static NUMBER: Cell<usize> = const { Cell::new(NEAR) };
    }
    let number = NUMBER.get();
    if number < NEAR {
        return number;
    }
    NUMBER.set(THREADS.fetch_add(1, Ordering::Relaxed) % NEAR);
    NUMBER.get()
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Held {
    /// Something done in it, in the process that has it.
    pub(crate) fn call<T>(
        &self,
        provider: &impl Whose,
        what: &str,
        call: impl FnOnce(&Session) -> metaslot_client::Result<T>,
    ) -> Result<T> {
        let bulk = provider.bulk();
        if !std::ptr::eq(self.bulk, bulk) {
            return Err(Failure::input("what was begun before the process was forked ends there"));
        }
        deep(|| call(self)).map_err(|error| bulk.failed(provider, what, error))
    }

    /// Its operation is at its end.
    pub(crate) fn back(mut self) {
        let session = self.session.take();
        let mut idle = lock(&self.bulk.idle);
        if idle.len() < IDLE {
            idle.extend(session);
        }
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        let Some(session) = self.session.take() else { return };
        if self.bulk.process == std::process::id() {
            deep(|| drop(session));
        } else {
            // Its number may be another session's here.
            std::mem::forget(session);
        }
    }
}

impl Deref for Held {
    type Target = Session;

    #[inline]
    fn deref(&self) -> &Session {
        self.session.as_ref().expect("there until it is dropped")
    }
}

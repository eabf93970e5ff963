// SPDX-License-Identifier: Apache-2.0
//! Sessions: taken for a call, or for as long as a message is in one.

use crate::abi::deep;
use crate::failure::{Failure, Gone, Result};
use crate::host::{Token, lock};
use metaslot_ck::SessionHandle;
use metaslot_client::{Access, Mechanism, Module, Session, Whole};
use metaslot_memory::is_own_stack;
use std::cell::Cell;
use std::ops::Deref;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, OnceLock};

/// Who has them: a provider.
pub(crate) trait Whose {
    /// What this process has.
    fn bulk(&self) -> &'static Bulk;
    /// The token for it.
    fn any(&self) -> Result<Arc<Token>>;
}

impl<T: Deref<Target: Whose>> Whose for T {
    #[inline]
    fn bulk(&self) -> &'static Bulk {
        (**self).bulk()
    }

    fn any(&self) -> Result<Arc<Token>> {
        (**self).any()
    }
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
    near: [Mutex<Option<Open>>; NEAR],
    shared: [Shared; NEAR],
    /// The sessions that `shared` names.
    named: Mutex<Vec<Open>>,
    idle: Mutex<Vec<Open>>,
    /// That of the objects.
    keeper: Mutex<Option<Arc<Open>>>,
    /// How often all of them were gone.
    generation: AtomicUsize,
}

/// A session in which nothing goes on: any number of calls may be in it, and no lock is taken for it here.
#[derive(Debug, Default)]
struct Shared {
    handle: AtomicU64,
    /// And one; zero where there is none. Written after the handle.
    generation: AtomicUsize,
}

/// A session that is closed in the end, if it is still this process's.
#[derive(Debug)]
pub(crate) struct Open {
    session: Option<Session>,
    bulk: &'static Bulk,
    generation: usize,
}

/// A session that is given back where its operation succeeded, and closed where it did not: what it began may go on there.
#[derive(Debug)]
pub(crate) struct Held(Open);

impl Bulk {
    pub(crate) fn new(_: Option<&'static Self>) -> Self {
        let (token, near, shared, named, idle, keeper, generation) = Default::default();
        let process = std::process::id();
        Self { process, token, near, shared, named, idle, keeper, generation }
    }

    /// The token that does it.
    #[inline(always)]
    fn token(&self, provider: &dyn Whose) -> Result<&Arc<Token>> {
        match self.token.get() {
            Some(token) => Ok(token),
            None => self.find(provider),
        }
    }

    #[cold]
    #[inline(never)]
    fn find(&self, provider: &dyn Whose) -> Result<&Arc<Token>> {
        let token = provider.any()?;
        Ok(self.token.get_or_init(|| token))
    }

    /// A session.
    pub(crate) fn session(&'static self, provider: &dyn Whose) -> Result<Held> {
        while let Some(open) = lock(&self.idle).pop() {
            if open.is_now() {
                return Ok(Held(open));
            }
        }
        self.open(provider).map(Held)
    }

    /// The session that has the objects of this process.
    pub(crate) fn keeper(&'static self, provider: &dyn Whose) -> Result<Arc<Open>> {
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
            // Not the result as it is: a copy of what has just been written in other pieces takes longer than the rest of this.
            let failure = match call() {
                Ok(done) => return Ok(done),
                Err(failure) => failure,
            };
            if !is_first || failure.gone != Some(Gone::Sessions) {
                return Err(failure);
            }
            self.renew(before);
            is_first = false;
        }
    }

    /// Begins anew, unless another thread has done that since it was this generation. None of the sessions is closed: their numbers may be those of
    /// other parts of the program now.
    #[cold]
    #[inline(never)]
    fn renew(&self, before: usize) {
        let mut keeper = lock(&self.keeper);
        if self.generation() != before {
            return;
        }
        self.generation.fetch_add(1, Ordering::Relaxed);
        *keeper = None;
        deep(|| self.token.get().map(|token| token.revive()));
    }

    fn open(&'static self, provider: &dyn Whose) -> Result<Open> {
        let generation = self.generation();
        let session = deep(|| self.token(provider)?.open(Access::ReadOnly))?;
        Ok(Open { session: Some(session), bulk: self, generation })
    }

    /// What one call does or two do, in a session that nothing goes on in; once more where that is gone.
    #[inline]
    pub(crate) fn with<T>(
        &'static self,
        provider: &dyn Whose,
        what: &str,
        mut call: impl FnMut(&Session) -> metaslot_client::Result<T>,
    ) -> Result<T> {
        self.again(|| self.once(provider, what, &mut call))
    }

    /// The same, once.
    #[inline]
    pub(crate) fn once<T>(
        &'static self,
        provider: &dyn Whose,
        what: &str,
        call: impl FnOnce(&Session) -> metaslot_client::Result<T>,
    ) -> Result<T> {
        let Ok(mut near) = self.near[this_thread()].try_lock() else {
            let held = self.session(provider)?;
            let done = held.call(provider, what, call)?;
            held.back();
            return Ok(done);
        };
        let open = match &*near {
            Some(open) if open.is_now() => open,
            _ => near.insert(self.open(provider)?),
        };
        match deep(|| call(open)) {
            Ok(done) => Ok(done),
            Err(error) => {
                let failure = open.failed(provider, what, error);
                if failure.gone != Some(Gone::Object) {
                    // What it began may go on there.
                    *near = None;
                }
                Err(failure)
            }
        }
    }

    /// What is done with data that is whole, by one call where the module has that for both functions. For calls of a few nanoseconds: what is
    /// usual is all here.
    #[inline(always)]
    pub(crate) fn whole(
        &'static self,
        provider: &dyn Whose,
        what: Whole,
        mechanism: &Mechanism<'_>,
        data: &[u8],
        out: &mut [u8],
    ) -> Result<usize> {
        match self.ready(what).filter(|_| is_own_stack()) {
            Some((module, session)) => module
                .whole(session, what, mechanism, data, out)
                .map_err(|error| self.failed(provider, name(what), error)),
            None => self.whole_elsewhere(provider, what, mechanism, data, out),
        }
    }

    /// A digest of the whole, once more as [`Self::again`] does it.
    #[inline(always)]
    pub(crate) fn hash(
        &'static self,
        provider: &dyn Whose,
        mechanism: &Mechanism<'_>,
        data: &[u8],
        out: &mut [u8],
    ) -> Result<()> {
        let before = self.generation();
        match self.whole(provider, Whole::Digest, mechanism, data, out) {
            Ok(_) => Ok(()),
            Err(failure) => self.hash_again(provider, mechanism, (data, out), before, failure),
        }
    }

    #[cold]
    #[inline(never)]
    fn hash_again(
        &'static self,
        provider: &dyn Whose,
        mechanism: &Mechanism<'_>,
        (data, out): (&[u8], &mut [u8]),
        before: usize,
        failure: Failure,
    ) -> Result<()> {
        if failure.gone != Some(Gone::Sessions) {
            return Err(failure);
        }
        self.renew(before);
        self.whole_elsewhere(provider, Whole::Digest, mechanism, data, out).map(drop)
    }

    /// What [`Self::whole`] does inside a job, or where there is no such session yet.
    #[cold]
    #[inline(never)]
    fn whole_elsewhere(
        &'static self,
        provider: &dyn Whose,
        what: Whole,
        mechanism: &Mechanism<'_>,
        data: &[u8],
        out: &mut [u8],
    ) -> Result<usize> {
        let Some((module, session)) = self.shared(provider, what)? else {
            let call = |session: &Session| session.whole_in_two(what, mechanism, data, out);
            return self.once(provider, name(what), call);
        };
        deep(|| module.whole(session, what, mechanism, data, out))
            .map_err(|error| self.failed(provider, name(what), error))
    }

    /// What [`Self::shared`] gives, where it is there.
    #[inline(always)]
    fn ready(&'static self, what: Whole) -> Option<(&'static Module, SessionHandle)> {
        let module = self.token.get().map(|token| token.module());
        let module = module.filter(|one| one.has_whole(what))?;
        let shared = &self.shared[this_thread()];
        let is_now = shared.generation.load(Ordering::Acquire) == self.generation() + 1;
        is_now.then(|| (module, SessionHandle(shared.handle.load(Ordering::Relaxed))))
    }

    /// The session of this thread for that, if the module has it.
    fn shared(
        &'static self,
        provider: &dyn Whose,
        what: Whole,
    ) -> Result<Option<(&'static Module, SessionHandle)>> {
        let module = self.token(provider)?.module();
        if !module.has_whole(what) {
            return Ok(None);
        }
        if let Some(ready) = self.ready(what) {
            return Ok(Some(ready));
        }
        Ok(Some((module, self.share(provider, &self.shared[this_thread()])?)))
    }

    #[cold]
    #[inline(never)]
    fn share(&'static self, provider: &dyn Whose, shared: &Shared) -> Result<SessionHandle> {
        let open = self.open(provider)?;
        let (handle, mut named) = (open.handle(), lock(&self.named));
        named.retain(Open::is_now);
        if open.is_now() {
            // Under the lock: no thread that is late writes one of these over those of the next generation.
            shared.handle.store(handle.0, Ordering::Relaxed);
            shared.generation.store(open.generation + 1, Ordering::Release);
        }
        named.push(open);
        Ok(handle)
    }

    /// Random bytes.
    pub(crate) fn random(&'static self, provider: &dyn Whose, out: &mut [u8]) -> Result<()> {
        self.with(provider, "make random bytes", |session| session.random(out))
    }

    /// A failed call in words.
    #[cold]
    pub(crate) fn failed(
        &self,
        provider: &dyn Whose,
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
        let sessions: Vec<Open> = near.chain(std::mem::take(&mut *lock(&self.idle))).collect();
        let mut named = lock(&self.named);
        self.shared.iter().for_each(|shared| shared.generation.store(0, Ordering::Release));
        let sessions = (sessions, std::mem::take(&mut *named));
        let all = (sessions, lock(&self.keeper).take());
        if !self.token.get().is_some_and(|token| token.is_metaslot()) {
            // As the rest of what the process has: other modules do not stand calls in exit handlers.
            std::mem::forget(all);
        }
    }
}

/// What fails, in words.
const fn name(what: Whole) -> &'static str {
    match what {
        Whole::Digest => "hash",
        Whole::Encrypt(_) => "encrypt",
        Whole::Decrypt(_) => "decrypt",
        Whole::Sign(_) => "make a MAC",
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

impl Open {
    #[inline]
    fn is_now(&self) -> bool {
        self.generation == self.bulk.generation()
    }

    /// A call in it failed, and why in words.
    #[cold]
    pub(crate) fn failed(
        &self,
        provider: &dyn Whose,
        what: &str,
        error: metaslot_client::Error,
    ) -> Failure {
        let failure = self.bulk.failed(provider, what, error);
        if failure.gone == Some(Gone::Sessions) {
            self.bulk.renew(self.generation);
        }
        failure
    }
}

impl Held {
    /// Something done in it, in the process that has it.
    pub(crate) fn call<T>(
        &self,
        provider: &dyn Whose,
        what: &str,
        call: impl FnOnce(&Session) -> metaslot_client::Result<T>,
    ) -> Result<T> {
        if !std::ptr::eq(self.0.bulk, provider.bulk()) {
            return Err(Failure::input("what was begun before the process was forked ends there"));
        }
        deep(|| call(&self.0)).map_err(|error| self.0.failed(provider, what, error))
    }

    /// Its operation is at its end.
    pub(crate) fn back(self) {
        let mut idle = lock(&self.0.bulk.idle);
        if idle.len() < IDLE {
            idle.push(self.0);
        }
    }
}

impl Drop for Open {
    fn drop(&mut self) {
        let Some(session) = self.session.take() else { return };
        if self.is_now() && self.bulk.process == std::process::id() {
            deep(|| drop(session));
        } else {
            // Its number may be another session's here.
            std::mem::forget(session);
        }
    }
}

impl Deref for Open {
    type Target = Session;

    #[inline]
    fn deref(&self) -> &Session {
        self.session.as_ref().expect("there until it is dropped")
    }
}

// SPDX-License-Identifier: Apache-2.0
//! What the module does where no key of a token is meant (mode `all`): digests, and what is done with secrets that the program itself has. The calls
//! are many and short: a session is taken for a call, or for as long as a message is in it.

pub(crate) mod digest;

use crate::failure::{Failure, Result};
use crate::host::Token;
use crate::provider::Provider;
use metaslot_client::{Access, Session};
use std::cell::Cell;
use std::ops::Deref;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

/// Lists of idle sessions: threads share one only where there are more of them.
const LISTS: usize = 32;

/// Sessions that each keeps.
const IDLE: usize = 8;

/// What one process has for it.
#[derive(Debug)]
pub(crate) struct Bulk {
    process: u32,
    token: OnceLock<Arc<Token>>,
    idle: [Mutex<Vec<Session>>; LISTS],
}

/// A session that is given back where its operation succeeded, and closed where it did not: what it began may go on there.
#[derive(Debug)]
pub(crate) struct Held {
    session: Option<Session>,
    bulk: &'static Bulk,
}

impl Bulk {
    pub(crate) fn new(_: Option<&'static Self>) -> Self {
        Self { process: std::process::id(), token: OnceLock::new(), idle: Default::default() }
    }

    /// The token that does it.
    fn token(&self, provider: &Provider) -> Result<&Arc<Token>> {
        if let Some(token) = self.token.get() {
            return Ok(token);
        }
        let token = provider.any()?;
        Ok(self.token.get_or_init(|| token))
    }

    /// A session.
    pub(crate) fn session(&'static self, provider: &Provider) -> Result<Held> {
        let idle = self.idle().pop();
        let session = match idle {
            Some(session) => session,
            None => self.token(provider)?.open(Access::ReadOnly)?,
        };
        Ok(Held { session: Some(session), bulk: self })
    }

    /// Something that one call or two do.
    #[inline]
    pub(crate) fn with<T>(
        &'static self,
        provider: &Provider,
        what: &str,
        call: impl FnOnce(&Session) -> metaslot_client::Result<T>,
    ) -> Result<T> {
        let held = self.session(provider)?;
        match call(&held) {
            Ok(done) => {
                held.back();
                Ok(done)
            }
            Err(error) => Err(self.failed(provider, what, error)),
        }
    }

    /// A failed call in words.
    #[cold]
    pub(crate) fn failed(
        &self,
        provider: &Provider,
        what: &str,
        error: metaslot_client::Error,
    ) -> Failure {
        match self.token(provider) {
            Ok(token) => token.failed(what, error),
            Err(failure) => failure,
        }
    }

    /// This thread's list.
    fn idle(&self) -> MutexGuard<'_, Vec<Session>> {
        static THREADS: AtomicUsize = AtomicUsize::new(0);
        thread_local! {
            static LIST: Cell<usize> = const { Cell::new(usize::MAX) };
        }
        let mut list = LIST.get();
        if list == usize::MAX {
            list = THREADS.fetch_add(1, Ordering::Relaxed) % LISTS;
            LIST.set(list);
        }
        self.idle[list].lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// At the end of the provider.
    pub(crate) fn close(&self) {
        for list in &self.idle {
            let sessions =
                std::mem::take(&mut *list.lock().unwrap_or_else(PoisonError::into_inner));
            // As the rest of what the process has: other modules do not stand calls in exit handlers.
            if !self.token.get().is_some_and(|token| token.is_metaslot()) {
                std::mem::forget(sessions);
            }
        }
    }
}

impl Held {
    /// Its operation is at its end.
    #[inline]
    pub(crate) fn back(mut self) {
        let session = self.session.take();
        let mut idle = self.bulk.idle();
        if idle.len() < IDLE {
            idle.extend(session);
        }
    }

    /// Whether it is of the process that has this.
    pub(crate) fn is_of(&self, bulk: &'static Bulk) -> bool {
        std::ptr::eq(self.bulk, bulk)
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        if self.session.is_some() && self.bulk.process != std::process::id() {
            // Its number may be another session's here.
            std::mem::forget(self.session.take());
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

/// What the contexts of all these operations have in common.
pub(crate) trait Work {
    fn provider(&self) -> &Arc<Provider>;
}

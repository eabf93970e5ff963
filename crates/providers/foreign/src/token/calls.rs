// SPDX-License-Identifier: Apache-2.0
//! The calls of a token's module, and when one is made again. What each gives is set aside, so that the loops are there once and
//! not for every kind of result.

use super::{AGAIN, GONE, Token};
use crate::error::fails_itself;
use crate::isolated::{ABSENCE, Bound};
use metaslot_ck::{Error, Result};
use metaslot_client::{Result as Called, Session};
use std::thread;
use std::time::{Duration, Instant};

/// What is done in a session.
type Work<'a> = &'a mut dyn FnMut(&Session) -> Called<()>;

impl Token {
    /// A call that needs no session.
    pub(crate) fn call<T>(&self, mut work: impl FnMut() -> Called<T>) -> Result<T> {
        let mut made = None;
        self.once(&mut || work().map(|value| made = Some(value)))?;
        made.ok_or(Error::GENERAL_ERROR)
    }

    fn once(&self, work: &mut dyn FnMut() -> Called<()>) -> Result<()> {
        let mut answer = None;
        self.apart(|| answer = Some(work()));
        answer.ok_or(Error::GENERAL_ERROR)?.map_err(|failure| {
            if fails_itself(failure.code) {
                self.module.has_failed();
            }
            self.told(failure)
        })
    }

    /// Where no thread is cancelled, nothing calls back, and the module is not started again.
    pub(crate) fn apart(&self, mut work: impl FnMut()) {
        (self.around)(&mut || {
            let _inside = self.module.inside();
            work();
        });
    }

    /// [`Self::call`], once more where the module as a whole was what failed, and works again.
    pub(super) fn call_again<T>(&self, mut work: impl FnMut() -> Called<T>) -> Result<T> {
        let mut made = None;
        self.call_while(&|| true, &mut || work().map(|value| made = Some(value)))?;
        made.ok_or(Error::GENERAL_ERROR)
    }

    /// [`Self::call`], once more where the module has begun anew, or a server is back.
    pub(crate) fn call_anew<T>(&self, mut work: impl FnMut() -> Called<T>) -> Result<T> {
        let mut made = None;
        let mut work = || work().map(|value| made = Some(value));
        let is_server = || self.module.server().is_some();
        self.call_while(&is_server, &mut || match work() {
            Err(failure) if failure.code == Error::CRYPTOKI_NOT_INITIALIZED => {
                self.module.initialize()?;
                work()
            }
            answer => answer,
        })?;
        made.ok_or(Error::GENERAL_ERROR)
    }

    /// The same for as long as that is said.
    fn call_while(
        &self,
        may: &dyn Fn() -> bool,
        work: &mut dyn FnMut() -> Called<()>,
    ) -> Result<()> {
        let (life, begin, mut pause) = (self.module.life(), Instant::now(), Duration::ZERO);
        let (answer, failure) = loop {
            let mut failure = None;
            let answer = self.once(&mut || work().inspect_err(|why| failure = Some(*why)));
            let lost = failure.is_some_and(|why| self.module.may_return(why));
            if !lost || !may() || begin.elapsed() >= ABSENCE {
                break (answer, failure);
            }
            // One that is there and refuses is not asked as fast as it answers.
            thread::sleep(std::mem::replace(&mut pause, AGAIN));
        };
        let failed = matches!(answer, Err(Error::DEVICE_ERROR | Error::DEVICE_REMOVED));
        // What kept a process busy until it was killed would do so again.
        let in_vain = failure
            .is_some_and(|why| why.code == Error::FUNCTION_CANCELED || self.module.is_away(why));
        let again = failed && !in_vain && may() && self.is_restarted(life);
        if again { self.once(work) } else { answer }
    }

    pub(super) fn is_restarted(&self, life: u64) -> bool {
        let mut works = false;
        (self.around)(&mut || works = self.module.restart(life));
        works
    }

    /// Does `work` in a session of the pool. Where the session is gone everything is opened again, and
    /// it is done once more.
    pub(crate) fn with<T>(&self, work: impl FnMut(&Session) -> Called<T>) -> Result<T> {
        self.with_while(&|| true, work)
    }

    /// The same for as long as it may be done once more.
    pub(crate) fn with_while<T>(
        &self,
        may: &dyn Fn() -> bool,
        mut work: impl FnMut(&Session) -> Called<T>,
    ) -> Result<T> {
        let mut made = None;
        self.in_session(may, &mut |session| work(session).map(|value| made = Some(value)))?;
        made.ok_or(Error::GENERAL_ERROR)
    }

    fn in_session(&self, may: &dyn Fn() -> bool, work: Work<'_>) -> Result<()> {
        self.call_while(may, &mut || match self.attempt(work) {
            Err(failure) if may() && self.may_repeat(failure.code) => self.attempt(work),
            first => first,
        })
    }

    fn attempt(&self, work: Work<'_>) -> Called<()> {
        let taken = self.take()?;
        let answer = {
            let _bound = Bound::to(taken.link);
            work(&taken.session)
        };
        // What was done in a session that became another's meanwhile was done there.
        let answer = match self.is_still_ours(&taken.session, taken.life) {
            true => answer,
            false => Err(GONE),
        };
        match &answer {
            Err(failure) => self.failed(taken, failure.code),
            Ok(()) => self.give(taken),
        }
        answer
    }
}

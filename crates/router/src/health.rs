// SPDX-License-Identifier: Apache-2.0
//! Which providers work: one that keeps failing is left alone for a while.

use metaslot_ck::Error;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// So many failures within [`WINDOW`] are too many.
const STRIKES: u32 = 3;
/// As long as the slowest may take for one: an isolated module that hangs.
const WINDOW: Duration = Duration::from_secs(60);
/// How long it is left alone then, and after each failure of its next chance; where that took longer to fail, as long as that.
const PAUSE: Duration = Duration::from_millis(500);
/// How long the first operation after a pause is the only one; where the last that was it took longer to fail, as long as that.
const TRIAL: Duration = Duration::from_millis(20);

/// The providers, by their numbers.
#[derive(Debug)]
pub(crate) struct Health {
    /// A bit for each provider that is left alone: what each operation reads.
    out: AtomicU64,
    began: Instant,
    providers: Box<[Known]>,
}

/// What is known of a provider.
#[derive(Debug, Default)]
struct Known {
    /// When its pause or its trial ends, in microseconds from `began` on: until then no operation takes the lock.
    due: AtomicU64,
    record: Mutex<Record>,
}

/// What is remembered of a provider.
#[derive(Debug, Default)]
struct Record {
    strikes: u32,
    /// When the first of these was.
    since: Option<Instant>,
    /// Since when one operation tries whether it works again.
    trial: Option<Instant>,
    /// How long the last of these took to fail.
    took: Duration,
    /// Failures altogether.
    failures: u64,
}

impl Health {
    /// Of so many providers, all of which work.
    pub(crate) fn new(providers: usize) -> Self {
        let providers = (0..providers).map(|_| Known::default()).collect();
        Self { out: AtomicU64::new(0), began: Instant::now(), providers }
    }

    /// Whether the operation that asks is to be done by this provider: it works, or its pause is over and this is the first
    /// operation that finds out whether it works again.
    #[inline]
    pub(crate) fn takes(&self, provider: usize) -> bool {
        !self.is_marked(provider) || self.may_try(provider, Instant::now())
    }

    /// Whether a provider is left alone.
    pub(crate) fn is_out(&self, provider: usize) -> bool {
        self.is_marked(provider) && !self.is_due(provider, Instant::now())
    }

    fn is_marked(&self, provider: usize) -> bool {
        self.out.load(Ordering::Relaxed) & bit(provider) != 0
    }

    fn is_due(&self, provider: usize, now: Instant) -> bool {
        let due = |known: &Known| self.microseconds(now) >= known.due.load(Ordering::Relaxed);
        self.providers.get(provider).is_some_and(due)
    }

    fn microseconds(&self, at: Instant) -> u64 {
        let since = at.saturating_duration_since(self.began);
        u64::try_from(since.as_micros()).unwrap_or(u64::MAX)
    }

    #[cold]
    fn may_try(&self, provider: usize, now: Instant) -> bool {
        if !self.is_due(provider, now) {
            return false;
        }
        let Some((known, mut record)) = self.record(provider) else { return true };
        // Another operation may have been faster.
        if !self.is_marked(provider) || !self.is_due(provider, now) {
            return !self.is_marked(provider);
        }
        match record.trial {
            None => {
                record.trial = Some(now);
                let end = now + record.took.max(TRIAL);
                known.due.store(self.microseconds(end), Ordering::Relaxed);
            }
            // The one that tried has not failed. The next failure puts the provider out again.
            Some(_) => {
                let (strikes, since) = (STRIKES - 1, Some(now));
                *record = Record { strikes, since, failures: record.failures, ..Record::default() };
                self.out.fetch_and(!bit(provider), Ordering::Relaxed);
            }
        }
        true
    }

    fn record(&self, provider: usize) -> Option<(&Known, MutexGuard<'_, Record>)> {
        let known = self.providers.get(provider)?;
        Some((known, known.record.lock().unwrap_or_else(PoisonError::into_inner)))
    }

    /// A provider failed at what another one then did.
    pub(crate) fn strike(&self, provider: usize, now: Instant) {
        let Some((known, mut record)) = self.record(provider) else { return };
        record.failures += 1;
        if record.since.is_none_or(|since| since + WINDOW < now) {
            (record.strikes, record.since) = (0, Some(now));
        }
        record.strikes += 1;
        let trial = record.trial.take();
        if let Some(began) = trial {
            record.took = now.saturating_duration_since(began).min(WINDOW);
        }
        if record.strikes >= STRIKES || trial.is_some() {
            let end = now + record.took.max(PAUSE);
            known.due.store(self.microseconds(end), Ordering::Relaxed);
            self.out.fetch_or(bit(provider), Ordering::Relaxed);
        }
    }

    /// How often a provider failed.
    pub(crate) fn failures(&self, provider: usize) -> u64 {
        self.record(provider).map_or(0, |(_, record)| record.failures)
    }
}

/// None for the numbers that have no bit: such a provider is never left alone.
const fn bit(provider: usize) -> u64 {
    if provider < 64 { 1 << provider } else { 0 }
}

/// Whether an error says that a provider failed, and not that its caller is wrong.
#[must_use]
pub const fn is_providers(error: Error) -> bool {
    matches!(
        error,
        Error::DEVICE_ERROR
            | Error::DEVICE_MEMORY
            | Error::DEVICE_REMOVED
            | Error::FUNCTION_FAILED
            | Error::GENERAL_ERROR
            | Error::TOKEN_NOT_PRESENT
    )
}

/// Whether an error says that somebody failed, the provider or the machine, and not that something is wrong with what was asked.
pub(crate) const fn is_failure(error: Error) -> bool {
    is_providers(error) || matches!(error, Error::HOST_MEMORY)
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: Duration = Duration::from_secs(1);
    const MOMENT: Duration = Duration::from_millis(1);

    impl Health {
        /// [`Self::takes`], at another time.
        fn takes_at(&self, provider: usize, now: Instant) -> bool {
            !self.is_marked(provider) || self.may_try(provider, now)
        }
    }

    /// A provider that failed three times at once, and when that was.
    fn out() -> (Health, Instant) {
        let health = Health::new(3);
        let start = health.began;
        for _ in 0..STRIKES {
            assert!(health.takes_at(2, start));
            health.strike(2, start);
        }
        (health, start)
    }

    #[test]
    fn after_its_pause_one_operation_tries_a_provider_and_the_others_wait_for_it() {
        let (health, start) = out();
        assert!(!health.takes_at(2, start + PAUSE - MOMENT));
        assert!(health.takes_at(2, start + PAUSE), "the first");
        assert!(!health.takes_at(2, start + PAUSE), "the second");
        assert!(!health.takes_at(2, start + PAUSE + TRIAL - MOMENT), "any until it can be told");
        assert!(health.takes_at(1, start + PAUSE), "another provider");
        let back = start + PAUSE + TRIAL;
        assert!(health.takes_at(2, back) && health.takes_at(2, back) && !health.is_marked(2));
    }

    #[test]
    fn one_that_fails_its_trial_is_left_alone_again() {
        let (health, start) = out();
        assert!(health.takes_at(2, start + PAUSE));
        health.strike(2, start + PAUSE + MOMENT);
        assert!(!health.takes_at(2, start + PAUSE + TRIAL));
        assert!(health.takes_at(2, start + 2 * PAUSE + MOMENT));
        assert_eq!(health.failures(2), 4);
    }

    #[test]
    fn who_fails_slowly_is_left_alone_as_long_as_that_takes() {
        let (health, start) = (Health::new(2), Instant::now());
        for failed in [10, 20, 30] {
            health.strike(1, start + failed * SECOND);
        }
        assert!(!health.takes_at(1, start + 30 * SECOND), "three in a minute");
        let trial = start + 30 * SECOND + PAUSE;
        assert!(health.takes_at(1, trial), "its next chance");
        health.strike(1, trial + 10 * SECOND);
        assert!(!health.takes_at(1, trial + 19 * SECOND));
        assert!(health.takes_at(1, trial + 20 * SECOND));
        assert!(!health.takes_at(1, trial + 29 * SECOND), "the next may take as long");
        // Quick failures cost no more than the shortest pause.
        health.strike(1, trial + 30 * SECOND - 10 * SECOND + MOMENT);
        assert!(health.takes_at(1, trial + 20 * SECOND + MOMENT + PAUSE));
    }

    #[test]
    fn what_began_before_its_pause_and_fails_late_does_not_shorten_it() {
        let (health, start) = out();
        let trial = start + PAUSE;
        assert!(health.takes_at(2, trial));
        health.strike(2, trial + 10 * SECOND);
        health.strike(2, trial + 11 * SECOND);
        assert!(!health.takes_at(2, trial + 20 * SECOND));
        assert!(health.takes_at(2, trial + 21 * SECOND));
    }

    #[test]
    fn one_that_came_back_and_fails_later_has_the_shortest_pause() {
        let (health, start) = out();
        let back = start + PAUSE + TRIAL;
        assert!(health.takes_at(2, start + PAUSE) && health.takes_at(2, back));
        health.strike(2, back + 30 * SECOND);
        assert!(!health.takes_at(2, back + 30 * SECOND), "it is on probation");
        assert!(health.takes_at(2, back + 30 * SECOND + PAUSE));
    }

    #[test]
    fn rare_failures_put_no_provider_out() {
        let health = Health::new(1);
        for second in 0..20 {
            health.strike(0, health.began + second * 2 * WINDOW);
        }
        assert_eq!((health.takes(0), health.failures(0)), (true, 20));
        health.strike(70, health.began);
        assert!(health.takes(70));
    }
}

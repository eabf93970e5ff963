// SPDX-License-Identifier: Apache-2.0
//! Which providers work: one that keeps failing is left alone for a while.

use metaslot_ck::Error;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

/// So many failures within [`WINDOW`] are too many.
const STRIKES: u32 = 3;
const WINDOW: Duration = Duration::from_secs(1);
/// How long it is left alone then.
const PAUSE: Duration = Duration::from_millis(500);

/// The providers, by their numbers.
#[derive(Debug, Default)]
pub(crate) struct Health {
    /// A bit for each provider that is left alone: what each operation reads.
    out: AtomicU64,
    records: Mutex<Vec<Record>>,
}

/// What is remembered of a provider.
#[derive(Clone, Debug, Default)]
struct Record {
    strikes: u32,
    /// When the first of these was.
    since: Option<Instant>,
    /// Until when it is left alone.
    until: Option<Instant>,
    /// Failures altogether.
    failures: u64,
}

impl Health {
    /// A bit for each provider that is to be left alone now.
    pub(crate) fn out(&self) -> u64 {
        match self.out.load(Ordering::Relaxed) {
            0 => 0,
            _ => self.look(Instant::now()),
        }
    }

    /// Lets those back in whose pause is over. The next failure puts such a one out again.
    #[cold]
    fn look(&self, now: Instant) -> u64 {
        let mut records = self.records.lock().unwrap_or_else(PoisonError::into_inner);
        for (number, record) in records.iter_mut().enumerate() {
            if record.until.is_some_and(|until| until <= now) {
                *record = Record {
                    strikes: STRIKES - 1,
                    since: Some(now),
                    until: None,
                    failures: record.failures,
                };
                self.out.fetch_and(!bit(number), Ordering::Relaxed);
            }
        }
        self.out.load(Ordering::Relaxed)
    }

    /// A provider failed at what another one then did.
    pub(crate) fn strike(&self, provider: usize, now: Instant) {
        let mut records = self.records.lock().unwrap_or_else(PoisonError::into_inner);
        if records.len() <= provider {
            records.resize(provider + 1, Record::default());
        }
        let record = &mut records[provider];
        record.failures += 1;
        if record.since.is_none_or(|since| since + WINDOW < now) {
            (record.strikes, record.since) = (0, Some(now));
        }
        record.strikes += 1;
        if record.strikes >= STRIKES {
            record.until = Some(now + PAUSE);
            self.out.fetch_or(bit(provider), Ordering::Relaxed);
        }
    }

    /// How often a provider failed, and whether it is left alone.
    pub(crate) fn of(&self, provider: usize) -> (u64, bool) {
        let out = self.out() & bit(provider) != 0;
        let records = self.records.lock().unwrap_or_else(PoisonError::into_inner);
        (records.get(provider).map_or(0, |record| record.failures), out)
    }
}

/// None for the numbers that have no bit: such a provider is never left alone.
pub(crate) const fn bit(provider: usize) -> u64 {
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

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    #[test]
    fn three_failures_in_a_second_put_a_provider_out_until_its_pause_is_over() {
        let (health, start) = (Health::default(), Instant::now());
        health.strike(2, start);
        health.strike(2, start);
        assert_eq!(health.out.load(Ordering::Relaxed), 0);
        health.strike(2, start);
        assert_eq!(health.look(start), bit(2));
        assert_eq!(health.look(start + PAUSE), 0);
        // It is on probation.
        health.strike(2, start + PAUSE);
        assert_eq!(health.look(start + PAUSE), bit(2));
        assert_eq!(health.of(2).0, 4);
    }

    #[test]
    fn rare_failures_put_no_provider_out() {
        let (health, start) = (Health::default(), Instant::now());
        for second in 0..20 {
            health.strike(0, start + second * 2 * SECOND);
        }
        assert_eq!((health.look(start), health.of(0)), (0, (20, false)));
        health.strike(70, start);
        assert_eq!(health.of(70), (1, false));
    }
}

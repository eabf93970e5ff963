// SPDX-License-Identifier: Apache-2.0
//! Which providers work: one that keeps failing is left alone for a while.

use metaslot_ck::Error;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, OnceLock, PoisonError};
use std::time::{Duration, Instant};

/// So many failures within [`WINDOW`] are too many.
const STRIKES: u32 = 3;
/// As long as the slowest may take for one: an isolated module that hangs.
const WINDOW: Duration = Duration::from_secs(60);
/// How long it is left alone then, and after each failure of its next chance; where that took longer to fail, as long as that.
const PAUSE: Duration = Duration::from_millis(500);

/// The providers, by their numbers.
#[derive(Debug, Default)]
pub(crate) struct Health {
    /// A bit for each provider that is left alone: what each operation reads.
    out: AtomicU64,
    /// When the first of these has its next chance, in microseconds from `began` on: until then no operation takes the lock.
    due: AtomicU64,
    began: OnceLock<Instant>,
    records: Mutex<Vec<Record>>,
}

/// What is remembered of a provider.
#[derive(Clone, Debug, Default)]
struct Record {
    strikes: u32,
    /// When the first of these was.
    since: Option<Instant>,
    /// Since when it has its next chance.
    back: Option<Instant>,
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
            out => self.out_at(out, Instant::now()),
        }
    }

    #[cold]
    fn out_at(&self, out: u64, now: Instant) -> u64 {
        match self.microseconds(now) < self.due.load(Ordering::Relaxed) {
            true => out,
            false => self.look(now),
        }
    }

    fn microseconds(&self, at: Instant) -> u64 {
        let began = *self.began.get_or_init(|| at);
        u64::try_from(at.saturating_duration_since(began).as_micros()).unwrap_or(u64::MAX)
    }

    /// Keeps when the first pause is over.
    fn keep_due(&self, records: &[Record]) {
        let first = records.iter().filter_map(|record| record.until).min();
        let due = first.map_or(0, |until| self.microseconds(until));
        self.due.store(due, Ordering::Relaxed);
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
                    back: Some(now),
                    until: None,
                    failures: record.failures,
                };
                self.out.fetch_and(!bit(number), Ordering::Relaxed);
            }
        }
        self.keep_due(&records);
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
            (record.strikes, record.since, record.back) = (0, Some(now), None);
        }
        record.strikes += 1;
        if record.strikes >= STRIKES {
            let took = record.back.take().map_or(PAUSE, |back| now - back);
            record.until = Some(now + took.clamp(PAUSE, WINDOW));
            // Its clock begins with the first of these.
            self.microseconds(now);
            self.keep_due(&records);
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
    fn who_fails_slowly_is_left_alone_as_long_as_that_takes() {
        let (health, start) = (Health::default(), Instant::now());
        for failed in [10, 20, 30] {
            health.strike(1, start + failed * SECOND);
        }
        assert_eq!(health.look(start + 30 * SECOND), bit(1), "three in a minute");
        let back = start + 30 * SECOND + PAUSE;
        assert_eq!(health.look(back), 0, "its next chance");
        health.strike(1, back + 10 * SECOND);
        assert_eq!(health.look(back + 19 * SECOND), bit(1));
        assert_eq!(health.look(back + 20 * SECOND), 0);
        // Quick failures cost no more than the shortest pause.
        health.strike(1, back + 20 * SECOND);
        assert_eq!(health.look(back + 20 * SECOND + PAUSE), 0);
    }

    #[test]
    fn three_failures_in_a_second_put_a_provider_out_until_its_pause_is_over() {
        let (health, start) = (Health::default(), Instant::now());
        health.strike(2, start);
        health.strike(2, start);
        assert_eq!(health.out.load(Ordering::Relaxed), 0);
        health.strike(2, start);
        assert_eq!(health.look(start), bit(2));
        let before_its_end = start + PAUSE - Duration::from_millis(1);
        assert_eq!(health.out_at(bit(2), before_its_end), bit(2));
        assert_eq!(health.out_at(bit(2), start + PAUSE), 0);
        // It is on probation.
        health.strike(2, start + PAUSE);
        assert_eq!(health.look(start + PAUSE), bit(2));
        assert_eq!(health.of(2).0, 4);
    }

    #[test]
    fn rare_failures_put_no_provider_out() {
        let (health, start) = (Health::default(), Instant::now());
        for second in 0..20 {
            health.strike(0, start + second * 2 * WINDOW);
        }
        assert_eq!((health.look(start), health.of(0)), (0, (20, false)));
        health.strike(70, start);
        assert_eq!(health.of(70), (1, false));
    }
}

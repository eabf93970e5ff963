// SPDX-License-Identifier: Apache-2.0
//! Who serves a mechanism: of the providers whose rows have the operation the first in the order of the
//! configuration, or the one that is expected to take least.

use crate::cost::{self, Cost, Line, is_clearly_less};
use crate::health::Health;
use crate::material::Pairs;
use crate::meeting::Meeting;
use crate::selftest::{self, Test};
use crate::tested::{self, ALL_KINDS, Failed, Kind, State, Tested};
use crate::versions::Versions;
use crate::{Candidate, Count, Job};
use metaslot_ck::mechanism::MechanismRow;
use metaslot_ck::{
    CK_MECHANISM_TYPE, CKF_DECRYPT, CKF_DIGEST, CKF_ENCRYPT, CKF_SIGN, CKF_UNWRAP, CKF_VERIFY,
    CKF_WRAP, Error, Result, mechanism_name,
};
use metaslot_counters::Subject;
use metaslot_spi::detail;
use metaslot_spi::provider::{Algorithm, Digest, Direction, Provider, Signature};
use smallvec::SmallVec;
use std::panic::AssertUnwindSafe;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Instant;

/// Who serves each mechanism.
#[derive(Debug)]
pub struct Routes {
    pub(crate) providers: &'static [&'static dyn Provider],
    table: Versions<Table>,
    health: Health,
    /// Threads with which the costs of a crowd were measured.
    pub(crate) crowd: u32,
    /// Keys to measure with.
    pub(crate) pairs: Pairs,
    /// Where they meet.
    pub(crate) meeting: Meeting,
}

/// For each mechanism of the vocabulary the rows that serve it, in order.
#[derive(Debug, Default)]
struct Table {
    rows: Vec<Rows>,
    settings: Settings,
}

/// What routes go by besides the providers' own tables.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Settings {
    /// Mechanisms that a provider, by its name, may not do.
    pub disabled: Vec<(String, CK_MECHANISM_TYPE)>,
    /// Providers that are not asked for anything else either.
    pub left_out: Vec<String>,
    /// What operations cost, for the choice between providers.
    pub costs: Vec<Cost>,
    /// Whether what is done with key pairs is tested, too: such a test takes as long as the operation, or several.
    pub pairs_tested: bool,
}

/// The rows of one mechanism, in place: most have one provider or two.
#[derive(Debug, Default)]
struct Rows {
    all: SmallVec<[Row; 2]>,
    /// There where a later row may be the cheaper one, for only then are costs compared: operations that are on their way,
    /// by any provider, where such take longer than counting them.
    in_flight: Option<Box<AtomicU32>>,
}

/// A row of a provider.
#[derive(Debug)]
struct Row {
    /// The provider's place in the list of them.
    provider: usize,
    /// What its operations are counted under.
    subject: Subject,
    algorithm: &'static Algorithm,
    /// What its self tests said.
    state: &'static State,
    /// Of what there are any.
    tested: Kind,
    /// What is only needed where costs are compared: the rest is read at each `*Init`.
    costs: Option<Box<Costs>>,
}

/// What the operations of a row cost.
#[derive(Debug, Default)]
struct Costs {
    lines: Vec<Line>,
}

/// An operation on its way.
#[derive(Debug)]
pub struct Flight<'a>(&'a AtomicU32);

impl Drop for Flight<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

/// What somebody is expected to take.
#[derive(Clone, Copy, Debug)]
pub struct Estimate {
    /// The provider's place in the list of them.
    pub provider: usize,
    /// In nanoseconds; `None` where it was not measured.
    pub nanoseconds: Option<f32>,
    /// How often it failed at what another one did.
    pub failures: u64,
    /// It is left alone for a while.
    pub out: bool,
}

/// What a self test of a row said.
#[derive(Clone, Copy, Debug)]
pub struct SelfTest {
    /// The provider's place in the list of them.
    pub provider: usize,
    /// `CKM_…`
    pub mechanism: CK_MECHANISM_TYPE,
    /// What of it.
    pub kind: Kind,
    /// `None` where no answer is known.
    pub right: Result<Option<bool>>,
}

/// What a row answers in its self test.
#[derive(Clone, Debug)]
pub struct Answer {
    /// `CKM_…`
    pub mechanism: CK_MECHANISM_TYPE,
    /// What of it.
    pub kind: Kind,
    /// As the table has it, or one of many.
    pub answer: std::result::Result<u32, Vec<u8>>,
}

/// An operation that takes longer is counted while it is on its way, in nanoseconds.
const COUNTED: f32 = 2_000.0;
/// The largest data that a choice is foreseen for.
const LARGEST: usize = 1 << 24;
/// What is tested, and of what it says whether it is right.
const KINDS: [(Kind, u64); 3] = [
    (tested::DIGEST, CKF_DIGEST),
    (tested::CIPHER, CKF_ENCRYPT | CKF_DECRYPT | CKF_WRAP | CKF_UNWRAP),
    (tested::SIGNATURE, CKF_SIGN | CKF_VERIFY),
];
/// Lines of a row that count: three times as many as are measured of any. Each choice looks at them.
const MOST_LINES: usize = 64;

impl Routes {
    /// The rows of these providers, in their order.
    #[must_use]
    pub fn new(providers: &'static [&'static dyn Provider], settings: Settings) -> Self {
        Self {
            providers,
            table: Versions::new(Table::new(providers, settings)),
            health: Health::new(providers.len()),
            crowd: cost::crowd(),
            pairs: Pairs::default(),
            meeting: Meeting::default(),
        }
    }

    /// What they go by now.
    #[must_use]
    pub fn settings(&self) -> &Settings {
        &self.table.get().settings
    }

    /// Operations that begin from here on are routed by these settings; says whether anything changed.
    pub fn change(&self, settings: Settings) -> bool {
        // What is changed to and fro takes room once.
        *self.settings() != settings
            && (self.table.again(|table| table.settings == settings)
                || self.table.replace(Table::new(self.providers, settings)))
    }

    /// The providers, in order.
    #[must_use]
    pub const fn providers(&self) -> &'static [&'static dyn Provider] {
        self.providers
    }

    /// Who serves a mechanism, or could, in order, and apart from them who does not because the configuration says so.
    #[must_use]
    pub fn candidates(&self, mechanism: CK_MECHANISM_TYPE) -> [Vec<Candidate>; 2] {
        let disabled = self.settings().disabled.iter().filter(|row| row.1 == mechanism);
        let disabled = disabled.map(|(name, _)| Candidate {
            provider: name.clone(),
            flags: 0,
            remark: String::from("disabled in the configuration"),
        });
        let disabled: Vec<_> = disabled.collect();
        let may = |name: &str| !disabled.iter().any(|other| other.provider == name);
        let candidate = |provider: &&'static dyn Provider| {
            let rows = provider.algorithms().iter().filter(|row| row.mechanism == mechanism);
            let (flags, remark) =
                (rows.fold(0, |flags, row| flags | row.flags()), provider.remark(mechanism));
            let says = may(provider.name()) && (flags != 0 || !remark.is_empty());
            says.then(|| Candidate { provider: provider.name().to_owned(), flags, remark })
        };
        let ours = self.providers.iter().filter_map(candidate).collect();
        [ours, disabled]
    }

    /// Mechanisms that a provider serves, sorted.
    pub fn served(&self) -> impl Iterator<Item = CK_MECHANISM_TYPE> {
        MechanismRow::all()
            .iter()
            .zip(&self.table.get().rows)
            .filter(|(_, rows)| !rows.all.is_empty())
            .map(|row| row.0.number)
    }

    /// Smallest and largest key and the flags, over all providers (PKCS#11 3.2 §5.5.6).
    ///
    /// # Errors
    /// `CKR_MECHANISM_INVALID` when no provider serves it.
    pub fn info(&self, mechanism: CK_MECHANISM_TYPE) -> Result<(u64, u64, u64)> {
        let rows = self.rows_of(mechanism)?.all.iter().map(|row| row.algorithm);
        let rows = rows.map(|row| (row.key_sizes.0, row.key_sizes.1, row.flags()));
        rows.reduce(|a, b| (a.0.min(b.0), a.1.max(b.1), a.2 | b.2)).ok_or(Error::MECHANISM_INVALID)
    }

    fn rows_of(&self, mechanism: CK_MECHANISM_TYPE) -> Result<&Rows> {
        let at = MechanismRow::index(mechanism).ok_or(Error::MECHANISM_INVALID)?;
        Ok(&self.table.get().rows[at])
    }

    /// The first provider's implementation of one operation of a mechanism, of those that work. One that was never used in this
    /// process is tested.
    ///
    /// # Errors
    /// `CKR_MECHANISM_INVALID` when no provider has it, `CKR_FIPS_SELF_TEST_FAILED` when those that have it compute wrong.
    #[inline]
    pub fn find<T: Tested>(
        &self,
        mechanism: CK_MECHANISM_TYPE,
        operation: impl Fn(&'static Algorithm) -> Option<T>,
    ) -> Result<(Count, T)> {
        let rows = self.rows_of(mechanism)?;
        let mut failed = Failed::default();
        for (at, row) in rows.all.iter().enumerate() {
            let Some(found) = operation(row.algorithm).filter(|_| self.health.takes(row.provider))
            else {
                continue;
            };
            if row.state.is_good(T::KIND, row.tested) || self.passes(rows, at, T::KIND, &mut failed)
            {
                return Ok((Count::new(row.subject, rows.in_flight.is_some()), found));
            }
        }
        // One that fails is better than none.
        let able = |row: &Row| operation(row.algorithm).is_some();
        let row = self.one_of(mechanism, T::KIND, failed, &able)?;
        let found = operation(row.algorithm).ok_or(Error::MECHANISM_INVALID)?;
        Ok((Count::new(row.subject, false), found))
    }

    /// As [`Self::find`], but none of those that were tried, and whether it works or not.
    ///
    /// # Errors
    /// As [`Self::find`].
    #[cold]
    pub fn another<T: Tested>(
        &self,
        mechanism: CK_MECHANISM_TYPE,
        tried: impl Iterator<Item = usize> + Clone,
        operation: impl Fn(&'static Algorithm) -> Option<T>,
    ) -> Result<(Count, T)> {
        let able = |row: &Row| {
            !tried.clone().any(|tried| tried == row.provider) && operation(row.algorithm).is_some()
        };
        let row = self.one_of(mechanism, T::KIND, Failed::default(), &able)?;
        let found = operation(row.algorithm).ok_or(Error::MECHANISM_INVALID)?;
        Ok((Count::new(row.subject, false), found))
    }

    /// The first of those that are able whose self test does not speak against it.
    #[cold]
    #[inline(never)]
    fn one_of(
        &self,
        mechanism: CK_MECHANISM_TYPE,
        kind: Kind,
        mut failed: Failed,
        able: &dyn Fn(&Row) -> bool,
    ) -> Result<&Row> {
        let rows = self.rows_of(mechanism)?;
        for (at, row) in rows.all.iter().enumerate().filter(|(_, row)| able(row)) {
            if !failed.has(at) && self.passes(rows, at, kind, &mut failed) {
                return Ok(row);
            }
        }
        let Some((provider, error)) = failed.why else { return Err(Error::MECHANISM_INVALID) };
        let name = self.providers[provider].name();
        let what = mechanism_name(mechanism).unwrap_or("this mechanism");
        let [does, how] = match error {
            Error::FIPS_SELF_TEST_FAILED => ["computes", " wrong, as its self test showed,"],
            _ => ["fails in its self test of", ","],
        };
        detail::set(format_args!("{name} {does} {what}{how} and no other provider does it"));
        Err(error)
    }

    /// Whether the row at a place passes its self test, or has passed it; one that does not is added to those that failed.
    #[cold]
    #[inline(never)]
    fn passes(&self, rows: &Rows, at: usize, kind: Kind, failed: &mut Failed) -> bool {
        let row = &rows.all[at];
        let tested = self.test_once(rows, row, kind);
        tested.map_err(|error| failed.add(at, row.provider, error)).is_ok()
    }

    /// Whether a row passes its self test, or has passed it.
    #[inline]
    fn computes_right(&self, rows: &Rows, row: &Row, kind: Kind) -> bool {
        row.state.is_good(kind, row.tested) || self.test_once(rows, row, kind).is_ok()
    }

    /// Tests a row, unless that was done. Two threads may do it at once.
    ///
    /// # Errors
    /// `CKR_FIPS_SELF_TEST_FAILED` for good; what keeps it from computing is no answer, and it is not used until it has given one.
    #[cold]
    #[inline(never)]
    fn test_once(&self, rows: &Rows, row: &Row, kind: Kind) -> Result<()> {
        if row.state.is_bad(kind) {
            return Err(Error::FIPS_SELF_TEST_FAILED);
        }
        if row.state.is_good(kind, row.tested) {
            return Ok(());
        }
        let said = if self.providers[row.provider].answers_for_itself() {
            Ok(None)
        } else {
            // What a test says explains no call of the caller's.
            let _aside = detail::aside();
            self.test(rows, row, kind)
        };
        let error = match said {
            Ok(Some(false)) if row.state.bad(kind) => Error::FIPS_SELF_TEST_FAILED,
            Ok(None | Some(true)) if row.state.good(kind) => return Ok(()),
            // Another thread was faster.
            Ok(_) => return Err(Error::FIPS_SELF_TEST_FAILED),
            Err(error) => error,
        };
        self.failed_over(std::iter::once(Count::new(row.subject, false)), true);
        Err(error)
    }

    fn test(&self, rows: &Rows, row: &Row, kind: Kind) -> Result<Option<bool>> {
        let (mechanism, providers) = (row.algorithm.mechanism, self.providers);
        let rows: SmallVec<[_; 4]> = rows.all.iter().map(|row| row.algorithm).collect();
        let test = || Test { providers, rows: &rows, mechanism, kind }.of(row.algorithm);
        // A panic is for the call that computes.
        std::panic::catch_unwind(AssertUnwindSafe(test)).unwrap_or(Err(Error::GENERAL_ERROR))
    }

    /// Tests all rows, whatever is known of them.
    #[must_use]
    pub fn self_tests(&self) -> Vec<SelfTest> {
        self.each_kind(|rows, row, kind| {
            let (provider, mechanism) = (row.provider, row.algorithm.mechanism);
            let right = self.test(rows, row, kind);
            Some(SelfTest { provider, mechanism, kind, right })
        })
    }

    /// What the table of known answers is made of: those of the last provider of each mechanism, which is the plainest.
    #[must_use]
    pub fn answers(&self) -> Vec<Answer> {
        let providers = self.providers;
        let mut all: Vec<Answer> = self.each_kind(|_, row, kind| {
            let (mechanism, rows) = (row.algorithm.mechanism, &[][..]);
            let test = Test { providers, rows, mechanism, kind };
            let answer = selftest::answer(&test, row.algorithm)?;
            Some(Answer { mechanism, kind, answer })
        });
        all.reverse();
        all.sort_by_key(|one| (one.mechanism, one.kind));
        all.dedup_by_key(|one| (one.mechanism, one.kind));
        all
    }

    fn each_kind<T>(&self, each: impl Fn(&Rows, &Row, Kind) -> Option<T>) -> Vec<T> {
        let all = self.table.get().rows.iter();
        let rows = all.flat_map(|rows| rows.all.iter().map(move |row| (rows, row)));
        let each_of = |(rows, row): (&Rows, &Row)| -> Vec<T> {
            let there = KINDS.iter().filter(|kind| kind.1 & row.algorithm.flags() != 0);
            there.filter_map(|kind| each(rows, row, kind.0)).collect()
        };
        rows.flat_map(each_of).collect()
    }

    /// Of those that are able to do a job and work, the one that is expected to take least, where that is not who
    /// was found; and the job's place among those that are on their way.
    pub fn cheaper<T: Tested>(
        &self,
        found: Count,
        job: Job,
        operation: impl Fn(&'static Algorithm) -> Option<T>,
    ) -> (Option<(Count, T)>, Option<Flight<'_>>) {
        let Ok(of_it @ Rows { all: rows, in_flight: Some(in_flight) }) =
            self.rows_of(job.mechanism)
        else {
            return (None, None);
        };
        let Some(first) = rows.iter().position(|row| row.provider == found.provider()) else {
            return (None, None);
        };
        let able = |row: &Row| {
            operation(row.algorithm).is_some()
                && self.health.takes(row.provider)
                && self.computes_right(of_it, row, T::KIND)
        };
        let (least, expected) = Self::least(rows, first, job, self.load(in_flight), able);
        let row = &rows[least];
        let flight = expected.is_some_and(|time| time > COUNTED).then(|| {
            in_flight.fetch_add(1, Ordering::Relaxed);
            Flight(in_flight)
        });
        let cheaper = (least != first).then(|| operation(row.algorithm)).flatten();
        metaslot_counters::routed(rows[first].subject, row.subject, job.bytes);
        let count = Count::new(row.subject, false);
        (cheaper.map(|algorithm| (count, algorithm)), flight)
    }

    /// The place of the row that is expected to take least, and how long: the first, or one that is clearly cheaper.
    fn least(
        rows: &[Row],
        first: usize,
        job: Job,
        load: f32,
        able: impl Fn(&Row) -> bool,
    ) -> (usize, Option<f32>) {
        let Some(expected) = rows[first].expected(job, load) else { return (first, None) };
        let (mut at, mut least) = (first, expected);
        for (place, row) in rows.iter().enumerate() {
            if let Some(expected) = row.expected(job, load)
                && is_clearly_less(expected, least)
                && able(row)
            {
                (at, least) = (place, expected);
            }
        }
        (at, Some(least))
    }

    /// What the first provider says that has something to say about it.
    ///
    /// # Errors
    /// What the last one says that knows the kind of thing it was asked about, `unknown` where none does.
    pub fn first<T>(
        &self,
        unknown: Error,
        mut ask: impl FnMut(&'static dyn Provider) -> Result<T>,
    ) -> Result<T> {
        let mut answer = Err(unknown);
        let left_out = &self.settings().left_out;
        let asked = |one: &&&dyn Provider| left_out.iter().all(|name| name != one.name());
        for provider in self.providers.iter().filter(asked) {
            match ask(*provider) {
                Err(Error::FUNCTION_NOT_SUPPORTED) => {}
                Err(
                    error @ (Error::CURVE_NOT_SUPPORTED
                    | Error::PARAMETER_SET_NOT_SUPPORTED
                    | Error::KEY_NOT_WRAPPABLE
                    | Error::WRAPPED_KEY_INVALID
                    | Error::RANDOM_NO_RNG),
                ) => answer = Err(error),
                said => return said,
            }
        }
        answer
    }

    /// How crowded a mechanism is now, from 0 to 1. Who does it does not count: it is what a provider would meet that all
    /// of them took.
    fn load(&self, in_flight: &AtomicU32) -> f32 {
        in_flight.load(Ordering::Relaxed).min(self.crowd) as f32 / self.crowd as f32
    }

    /// Operations that providers failed at are over: another one has `done` them, or says what the caller got wrong. Then
    /// no provider is to blame.
    #[cold]
    pub fn failed_over(&self, counts: impl Iterator<Item = Count>, done: bool) {
        for count in counts {
            if done {
                self.health.strike(count.provider(), Instant::now());
            }
            count.failed_over(done);
        }
    }

    /// Everyone who has the operation of a job, in order, by the place in the list of providers.
    pub(crate) fn rows_for(&self, job: Job) -> Vec<(usize, &'static Algorithm)> {
        let Ok(rows) = self.rows_of(job.mechanism) else { return Vec::new() };
        let able = rows.all.iter().filter(|row| row.algorithm.flags() & job.operation != 0);
        able.map(|row| (row.provider, row.algorithm)).collect()
    }

    /// Everyone who has the operation of a job and can do it here, in order, with what they are expected to take, and
    /// which provider would be taken for a caller that waits. They are tested as before that.
    #[must_use]
    pub fn estimates(&self, job: Job) -> (Vec<Estimate>, Option<usize>) {
        let Ok(of_it) = self.rows_of(job.mechanism) else { return (Vec::new(), None) };
        let (rows, load) =
            (&of_it.all, of_it.in_flight.as_deref().map_or(0.0, |count| self.load(count)));
        let kind = KINDS.iter().find(|kind| kind.1 & job.operation != 0);
        let kind = kind.map_or(tested::NOTHING, |kind| kind.0);
        let able = |row: &Row| {
            let remark = self.providers[row.provider].remark(job.mechanism);
            row.algorithm.flags() & job.operation != 0 && remark.is_empty()
        };
        let gains = |row: &Row| able(row) && for_waiting(row.algorithm, job.operation);
        let right = |row: &Row| self.computes_right(of_it, row, kind);
        let works = |row: &Row| gains(row) && right(row) && !self.health.is_out(row.provider);
        let first = rows.iter().position(works).or_else(|| rows.iter().position(gains));
        let least = first.map(|first| Self::least(rows, first, job, load, works).0);
        let estimate = |row: &Row| {
            let (health, provider) = (&self.health, row.provider);
            let out = health.is_out(provider) || !right(row);
            let failures = health.failures(provider);
            Estimate { provider, nanoseconds: row.expected(job, load), failures, out }
        };
        let mut all: Vec<_> = rows.iter().filter(|row| able(row)).map(estimate).collect();
        // A provider has several rows where it has several kernels.
        all.dedup_by_key(|one| one.provider);
        (all, least.map(|at| rows[at].provider))
    }
}

/// Whether a caller that waits gains anything by a row's operation.
fn for_waiting(row: &Algorithm, operation: u64) -> bool {
    match operation {
        CKF_DIGEST => row.digest.is_some_and(Digest::for_waiting),
        CKF_ENCRYPT => row.encrypt.is_some_and(|row| row.for_waiting(Direction::Forward)),
        CKF_DECRYPT => row.decrypt.is_some_and(|row| row.for_waiting(Direction::Backward)),
        CKF_SIGN => row.sign.is_some_and(Signature::for_waiting),
        CKF_VERIFY => row.verify.is_some_and(Signature::for_waiting),
        _ => true,
    }
}

impl Table {
    fn new(providers: &'static [&'static dyn Provider], settings: Settings) -> Self {
        let mut rows: Vec<_> = MechanismRow::all().iter().map(|_| Rows::default()).collect();
        let may = |name, mechanism| {
            !settings.disabled.iter().any(|row| row.0 == name && row.1 == mechanism)
        };
        for (provider, served) in providers.iter().enumerate() {
            let algorithms = served.algorithms();
            let all = algorithms.iter().zip(tested::states(algorithms));
            let is_tested =
                |row: &MechanismRow| settings.pairs_tested || !selftest::with_pairs(row);
            for (algorithm, state) in all.filter(|row| may(served.name(), row.0.mechanism)) {
                if let Some(at) = MechanismRow::index(algorithm.mechanism) {
                    let subject = Subject::new(provider, at);
                    let tested = is_tested(&MechanismRow::all()[at]);
                    let tested = if tested { ALL_KINDS } else { tested::NOTHING };
                    let row = Row { provider, subject, algorithm, state, tested, costs: None };
                    rows[at].all.push(row);
                }
            }
        }
        let place = |name: &str| providers.iter().position(|other| other.name() == name);
        for Cost { provider, mechanism, line } in &settings.costs {
            if let (Some(at), Some(provider)) = (MechanismRow::index(*mechanism), place(provider)) {
                let counts =
                    |row: &&mut Row| row.provider == provider && row.lines().len() < MOST_LINES;
                let rows = rows[at].all.iter_mut().filter(counts);
                rows.for_each(|row| row.costs.get_or_insert_default().lines.push(*line));
            }
        }
        for rows in &mut rows {
            rows.in_flight = rows.may_differ().then(Box::default);
        }
        Self { rows, settings }
    }
}

impl Rows {
    /// Whether a later row is cheaper than the first that has costs (one without does nothing for a caller that waits) at
    /// an end of the sizes, without a crowd or with one. Costs are lines: one that is so between the ends only saves some
    /// tens of nanoseconds there.
    fn may_differ(&self) -> bool {
        self.all.iter().flat_map(Row::lines).any(|line| {
            let Line { operation, key_bits, .. } = *line;
            [0, LARGEST].into_iter().any(|bytes| {
                let job = Job { mechanism: 0, operation, key_bits, bytes };
                let Some(own) = self.all.iter().find_map(|row| row.line(job)) else { return false };
                let cheaper =
                    |load| is_clearly_less(line.expected(bytes, load), own.expected(bytes, load));
                cheaper(0.0) || cheaper(1.0)
            })
        })
    }
}

impl Row {
    /// Nanoseconds that a job is expected to take.
    fn expected(&self, job: Job, load: f32) -> Option<f32> {
        Some(self.line(job)?.expected(job.bytes, load))
    }

    fn lines(&self) -> &[Line] {
        self.costs.as_deref().map_or(&[], |costs| &costs.lines)
    }

    /// The line that fits best: that of the key's size, of the next larger, or of any. Sizes are compared in bytes,
    /// because that is what is known of a key ([`key_bits`](crate::key_bits)): P-521's are 66.
    fn line(&self, job: Job) -> Option<&Line> {
        let (size, wanted) = (|line: &Line| line.key_bits.div_ceil(8), job.key_bits.div_ceil(8));
        // One for all keys fits worse than any larger one.
        let larger = |line: &Line| size(line).wrapping_sub(1);
        let of_it = self.lines().iter().filter(|line| line.operation == job.operation);
        let fits = of_it.filter(|line| larger(line) >= wanted.saturating_sub(1));
        fits.min_by_key(|line| (size(line) != wanted, larger(line)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use metaslot_ck::CKM_SHA256;
    use metaslot_spi::provider::DigestStream;

    fn row(lines: &[Line]) -> Row {
        let costs = Some(Box::new(Costs { lines: lines.to_vec() }));
        let (algorithm, state) = (&Algorithm::NONE, &tested::states(&[Algorithm::NONE])[0]);
        let (provider, subject, tested) = (0, Subject::new(0, 0), ALL_KINDS);
        Row { provider, subject, algorithm, state, tested, costs }
    }

    #[test]
    fn a_key_has_the_line_of_its_size_or_of_the_next_larger_or_of_all() {
        let sizes = |bits: &[u32]| {
            bits.iter()
                .map(|bits| Line { operation: 1, key_bits: *bits, ..Line::default() })
                .collect()
        };
        let found = |lines: Vec<Line>, bits| {
            let job = Job { mechanism: 0, operation: 1, key_bits: bits, bytes: 0 };
            row(&lines).line(job).map(|line| line.key_bits)
        };
        for (lines, bits, line) in [
            (&[256, 384, 521][..], 256, Some(256)),
            (&[521, 384, 256], 300, Some(384)),
            // 66 bytes.
            (&[256, 521], 528, Some(521)),
            (&[256, 521], 600, None),
            (&[0, 256, 521], 600, Some(0)),
            (&[0, 256], 256, Some(256)),
            (&[0, 256], 0, Some(0)),
            (&[384, 256], 0, Some(256)),
        ] {
            assert_eq!(found(sizes(lines), bits), line, "{lines:?} {bits}");
        }
    }

    #[derive(Debug)]
    struct Named(&'static str, [Algorithm; 1]);

    impl Provider for Named {
        fn name(&self) -> &'static str {
            self.0
        }

        fn algorithms(&'static self) -> &'static [Algorithm] {
            &self.1
        }

        fn answers_for_itself(&self) -> bool {
            true
        }
    }

    /// Whether it is for callers that wait.
    #[derive(Debug)]
    struct Nothing(bool);

    impl Digest for Nothing {
        fn for_waiting(&self) -> bool {
            self.0
        }

        fn length(&self) -> usize {
            32
        }

        fn digest(&self, _: &[u8], _: &mut [u8]) -> Result<()> {
            Ok(())
        }

        fn start(&self) -> Result<Box<dyn DigestStream>> {
            Err(Error::DEVICE_MEMORY)
        }

        fn restore(&self, _: &[u8]) -> Result<Box<dyn DigestStream>> {
            Err(Error::SAVED_STATE_INVALID)
        }
    }

    const fn digests(by: &'static Nothing) -> [Algorithm; 1] {
        [Algorithm { mechanism: CKM_SHA256, digest: Some(by), ..Algorithm::NONE }]
    }

    const DIGESTS: [Algorithm; 1] = digests(&Nothing(true));
    static THREE: [&dyn Provider; 3] =
        [&Named("one", DIGESTS), &Named("two", DIGESTS), &Named("three", DIGESTS)];

    fn cost(provider: &str, key_bits: u32, time: f32) -> Cost {
        let operation = CKF_DIGEST;
        let line = Line { operation, key_bits, fixed: time, crowded: time, ..Line::default() };
        Cost { provider: provider.to_owned(), mechanism: CKM_SHA256, line }
    }

    fn has_choice(routes: &Routes) -> bool {
        routes.find(CKM_SHA256, |row| row.digest).unwrap().0.has_choice()
    }

    #[test]
    fn costs_are_compared_among_those_that_are_not_disabled() {
        let costs = vec![cost("one", 0, 100.0), cost("two", 0, 1000.0), cost("three", 0, 200.0)];
        let routes = |disabled| {
            Routes::new(&THREE, Settings { costs: costs.clone(), disabled, ..Settings::default() })
        };
        assert!(!has_choice(&routes(Vec::new())));
        assert!(has_choice(&routes(vec![("one".to_owned(), CKM_SHA256)])));
    }

    #[test]
    fn a_provider_that_no_caller_waits_for_keeps_no_other_from_being_compared() {
        static FOUR: [&dyn Provider; 4] =
            [&Named("later", digests(&Nothing(false))), THREE[0], THREE[1], THREE[2]];
        let taken = |costs: &[Cost]| {
            let costs = costs.to_vec();
            let routes = Routes::new(&FOUR, Settings { costs, ..Settings::default() });
            let found = routes.find(CKM_SHA256, |row| row.digest.filter(|row| row.for_waiting()));
            let job = Job { mechanism: CKM_SHA256, operation: CKF_DIGEST, key_bits: 0, bytes: 64 };
            (found.unwrap().0.has_choice(), routes.estimates(job).1)
        };
        assert_eq!(taken(&[]), (false, Some(1)));
        assert_eq!(taken(&[cost("one", 0, 1000.0), cost("three", 0, 100.0)]), (true, Some(3)));
        assert_eq!(taken(&[cost("one", 0, 100.0), cost("three", 0, 1000.0)]), (false, Some(1)));
    }

    #[test]
    fn a_provider_that_knows_nothing_of_a_kind_says_nothing_of_it() {
        let routes = Routes::new(&THREE, Settings::default());
        let (set, curve) = (Error::PARAMETER_SET_NOT_SUPPORTED, Error::CURVE_NOT_SUPPORTED);
        let (unknown, anothers) = (Error::ATTRIBUTE_VALUE_INVALID, Error::FUNCTION_NOT_SUPPORTED);
        for (said, answer) in [
            ([set, anothers, anothers], set),
            ([anothers, set, anothers], set),
            ([anothers, set, curve], curve),
            ([curve, unknown, set], unknown),
            ([anothers; 3], unknown),
        ] {
            let mut said = said.into_iter();
            let ask = |_| Err::<(), _>(said.next().expect("one for each"));
            assert_eq!(routes.first(unknown, ask), Err(answer));
        }
    }

    #[test]
    fn a_provider_that_is_left_out_is_asked_for_nothing() {
        let left_out = vec!["one".to_owned()];
        let routes = Routes::new(&THREE, Settings { left_out, ..Settings::default() });
        assert_eq!(routes.first(Error::RANDOM_NO_RNG, |provider| Ok(provider.name())), Ok("two"));
    }

    #[test]
    fn a_row_has_no_more_lines_than_a_choice_can_look_at() {
        let costs = (1..1000).map(|bits| cost("one", bits, 100.0)).collect();
        let routes = Routes::new(&THREE, Settings { costs, ..Settings::default() });
        let lines =
            routes.table.get().rows.iter().flat_map(|rows| &rows.all).map(|row| row.lines().len());
        assert_eq!(lines.max(), Some(MOST_LINES));
    }
}

// SPDX-License-Identifier: Apache-2.0
//! Counting.

use crate::layout::{self, CALLS, CODE_COUNT, CODES, EVENTS, FUNCTIONS, OTHERS, PROVIDERS, ROWS};
use crate::shard::Shard;
use crate::{Event, page};
use metaslot_ck::{CK_MECHANISM_TYPE, CK_RV, CKR_OK, CKR_PENDING, Function, mechanism_name};
use metaslot_probes as probes;
use rustix::time::{ClockId, clock_gettime};
use std::cell::Cell;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU8, Ordering};
use std::time::Instant;

/// Counts a finished call of the C interface.
pub fn call(function: Function, rv: CK_RV) {
    let shard = Shard::current();
    let at = CALLS + 2 * (function as usize % FUNCTIONS);
    shard.add(at, 1);
    if rv != CKR_OK && rv != CKR_PENDING {
        failed(shard, at, function, rv);
    }
}

#[cold]
fn failed(shard: Shard, at: usize, function: Function, rv: CK_RV) {
    shard.add(at + 1, 1);
    let key = (function as u64 + 1) << 32 | (rv & 0xffff_ffff);
    for place in 0..CODE_COUNT {
        let at = CODES + 2 * place;
        let word = &shard.words[at];
        let mut there = word.load(Ordering::Relaxed);
        if there == 0 {
            // Free: it is ours, unless another thread of the shared shard is first.
            there = word
                .compare_exchange(0, key, Ordering::Relaxed, Ordering::Relaxed)
                .map_or_else(|first| first, |_| key);
        }
        if there == key {
            return shard.add(at + 1, 1);
        }
    }
}

/// Counts a rare event.
pub fn event(event: Event) {
    events(event, 1);
}

/// Counts something that happened so many times.
pub fn events(event: Event, times: u64) {
    Shard::current().add(EVENTS + event as usize, times);
}

/// Sets the level of something that is not a count.
pub fn set(event: Event, level: u64) {
    page::shard(layout::SHARDS - 1)[EVENTS + event as usize].store(level, Ordering::Relaxed);
}

/// The calling thread goes into another module's code, or comes out of it.
pub fn outside(is_outside: bool) {
    let shard = Shard::current();
    // The last shard is many threads'.
    if shard.index < layout::EXCLUSIVE {
        let since = if is_outside { now().max(1) } else { 0 };
        shard.words[layout::OUTSIDE].store(since, Ordering::Relaxed);
    }
}

/// Milliseconds of the monotonic clock, which is the same in all processes.
pub(crate) fn now() -> u64 {
    let time = clock_gettime(ClockId::MonotonicCoarse);
    let [seconds, nanoseconds] = [time.tv_sec, time.tv_nsec].map(i64::unsigned_abs);
    seconds * 1000 + nanoseconds / 1_000_000
}

/// The start of an operation, if its time is taken: that is so for one in 64.
#[derive(Clone, Copy, Debug)]
#[must_use]
pub struct Watch(Option<Instant>);

impl Watch {
    /// The time is not taken.
    pub const OFF: Self = Self(None);
}

thread_local! {
    static CHANCE: Cell<u32> = const { Cell::new(0x9e37_79b9) };
}

/// Call before an operation; one in 64, by chance, has its time taken.
pub fn begin() -> Watch {
    probes::operation_start();
    // By chance, not every 64th: callers alternate between mechanisms.
    let drawn = CHANCE.get().wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
    CHANCE.set(drawn);
    Watch((drawn >> 26 == 0).then(Instant::now))
}

/// How many mechanisms can have rows: more than the vocabulary has.
const MECHANISMS: usize = 512;

/// The row of a provider and a mechanism's index, plus one; 0 while there is none.
static ROW_OF: [AtomicU8; PROVIDERS * MECHANISMS] =
    [const { AtomicU8::new(0) }; PROVIDERS * MECHANISMS];

/// What an operation is counted under: a provider and a mechanism.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Subject(u32);

impl Subject {
    /// `provider` is its place in the list of providers, `mechanism` its place in the vocabulary.
    #[must_use]
    #[expect(clippy::cast_possible_truncation, reason = "it is compared before")]
    pub const fn new(provider: usize, mechanism: usize) -> Self {
        let subject = provider.saturating_mul(MECHANISMS).saturating_add(mechanism % MECHANISMS);
        // One that is too large is one of the others.
        Self(if subject < u32::MAX as usize { subject as u32 } else { u32::MAX })
    }

    /// The provider's place.
    #[must_use]
    pub const fn provider(self) -> usize {
        self.0 as usize / MECHANISMS
    }

    fn provider_name(self) -> probes::Provider {
        page::name_of(self.provider())
    }

    fn mechanism(self) -> &'static str {
        let number = NUMBER.get().map(|number| number(self.0 as usize % MECHANISMS));
        number.and_then(mechanism_name).unwrap_or("?")
    }
}

/// Costs were compared for so many bytes: the first provider in order, and the one that was taken.
#[inline]
pub fn routed(first: Subject, taken: Subject, bytes: usize) {
    let (first, name) = (|| first.provider_name(), || first.mechanism());
    probes::route(name, first, || taken.provider_name(), bytes);
}

/// A provider failed at an operation that another one has `done`, or none.
pub fn failed_over(subject: Subject, done: bool) {
    probes::failover(|| subject.mechanism(), || subject.provider_name(), done);
    event(Event::Fallback);
}

/// Counts an operation that was finished on `bytes` of input.
pub fn operation(subject: Subject, bytes: usize, ok: bool, watch: Watch) {
    probes::operation_end(|| subject.provider_name(), || subject.mechanism(), bytes, ok);
    let shard = Shard::current();
    let cell = layout::cell(row(subject), layout::size_class(bytes));
    shard.add(cell + layout::OPERATIONS, 1);
    shard.add(cell + layout::BYTES, bytes as u64);
    if !ok || watch.0.is_some() {
        more(shard, cell, ok, watch);
    }
}

/// What is counted of few operations.
#[cold]
#[inline(never)]
fn more(shard: Shard, cell: usize, ok: bool, watch: Watch) {
    if !ok {
        shard.add(cell + layout::ERRORS, 1);
    }
    if let Some(start) = watch.0 {
        let time = u64::try_from(start.elapsed().as_nanos()).unwrap_or(u64::MAX);
        shard.add(cell + layout::NANOSECONDS, time);
        shard.add(cell + layout::BUCKETS + layout::bucket(time), 1);
    }
}

fn row(subject: Subject) -> usize {
    let Some(place) = ROW_OF.get(subject.0 as usize) else { return ROWS - 1 };
    match place.load(Ordering::Relaxed) {
        0 => new_row(place, subject),
        row => usize::from(row) - 1,
    }
}

/// Says which `CKM_…` each place in the vocabulary has; to be called before the first operation.
pub fn name_mechanisms(number: fn(usize) -> CK_MECHANISM_TYPE) {
    // The second call of a process says the same.
    NUMBER.get_or_init(|| number);
}

static NUMBER: OnceLock<fn(usize) -> CK_MECHANISM_TYPE> = OnceLock::new();

#[cold]
fn new_row(place: &AtomicU8, Subject(subject): Subject) -> usize {
    let (header, subject) = (page::header(), subject as usize);
    let number = NUMBER.get().map_or(OTHERS, |number| number(subject % MECHANISMS));
    let key = ((subject / MECHANISMS) as u64) << 56 | (number & 0x00ff_ffff_ffff_ffff);
    // Two threads may come here for the same pair: the directory then names it twice, and readers
    // add the rows up.
    let taken = header[layout::ROWS_USED].fetch_add(1, Ordering::Relaxed);
    let row = usize::try_from(taken).unwrap_or(ROWS).min(ROWS - 1);
    let key = if row == ROWS - 1 { OTHERS } else { key };
    header[layout::ROW_KEYS + row].store(key, Ordering::Relaxed);
    place.store(u8::try_from(row + 1).unwrap_or(0), Ordering::Relaxed);
    row
}

/// Names a provider in the page: its place in the list and at most 16 bytes.
pub fn name_provider(provider: usize, name: &str) {
    if provider >= PROVIDERS {
        return;
    }
    let words = || page::name_of(provider).each_ref().map(|word| word.load(Ordering::Relaxed));
    let before = words();
    page::write_text(layout::PROVIDER_NAMES + 2 * provider, name.as_bytes());
    if before != [0; 2] && before != words() {
        retire(provider);
    }
}

/// What another provider did at this place, before the module was initialised again, is from now on the others'.
fn retire(provider: usize) {
    let header = page::header();
    let used = usize::try_from(header[layout::ROWS_USED].load(Ordering::Relaxed)).unwrap_or(ROWS);
    for key in &header[layout::ROW_KEYS..][..used.min(ROWS)] {
        if key.load(Ordering::Relaxed) >> 56 == provider as u64 {
            key.store(OTHERS, Ordering::Relaxed);
        }
    }
    for place in &ROW_OF[provider * MECHANISMS..][..MECHANISMS] {
        place.store(0, Ordering::Relaxed);
    }
}

/// A new page has no rows and no names yet.
pub(crate) fn forget_rows() {
    for place in &ROW_OF {
        place.store(0, Ordering::Relaxed);
    }
}

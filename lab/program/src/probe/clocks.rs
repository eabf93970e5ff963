// SPDX-License-Identifier: Apache-2.0
//! The time stamp counter against the kernel's clock, and the core's frequency against both.

use super::files::flags;
use super::outcome::{Outcome, Trouble};
use crate::statistics::{median, quantile};
use metaslot_system::cycles::{ADDITIONS, additions, time_stamp};
use rustix::time::{ClockId, clock_gettime};
use std::time::{Duration, Instant};

type Attempt = Result<Outcome, Trouble>;

/// Stretches over which the rate is taken.
const STRETCHES: usize = 9;
const STRETCH: Duration = Duration::from_millis(12);
/// A rate that wanders more than so is no clock.
const STEADY: f64 = 1e-3;
/// Rounds of the loop of additions in one sample: some 50 µs, mostly between two interrupts.
const ROUNDS: u64 = 2_000;
const SAMPLES: usize = 60;

fn no_counter() -> Trouble {
    Trouble::reason("this processor has no time stamp that can be read", "an x86-64 processor")
}

/// The rate of the time stamp counter, from several stretches.
pub(crate) fn time_stamp_rate() -> Attempt {
    let rates = rates()?;
    let (rate, low, high) = (median(&rates), quantile(&rates, 0.0), quantile(&rates, 1.0));
    let flags = flags()?;
    let promised = |name: &str| flags.iter().any(|flag| flag == name);
    let kind = match (promised("constant_tsc"), promised("nonstop_tsc")) {
        (true, true) => "constant, nonstop",
        (true, false) => "constant, but stops in sleep",
        _ => "not said to be constant",
    };
    let says = format!("{:.6} GHz ({:.6}–{:.6}), {kind}", rate / 1e9, low / 1e9, high / 1e9);
    let doubt = (high - low > STEADY * rate).then(|| format!("the rate wanders: {says}"));
    Ok(Outcome::new(says)
        .figure("hz", rate)
        .figure("hz_low", low)
        .figure("hz_high", high)
        .doubted(doubt))
}

/// Ticks per second over each stretch.
fn rates() -> Result<Vec<f64>, Trouble> {
    let mut before = both()?;
    let mut rates = Vec::new();
    for _ in 0..STRETCHES {
        std::thread::sleep(STRETCH);
        let after = both()?;
        let seconds = after.1.saturating_sub(before.1).as_secs_f64();
        rates.push(after.0.wrapping_sub(before.0) as f64 / seconds.max(1e-9));
        before = after;
    }
    Ok(rates)
}

/// Both clocks at the same moment: of several pairs, the one that was read fastest, because no thread
/// came in between.
fn both() -> Result<(u64, Duration), Trouble> {
    let pairs = (0..15).filter_map(|_| {
        let before = time_stamp()?;
        let time = clock_gettime(ClockId::MonotonicRaw);
        let length = time_stamp()?.wrapping_sub(before);
        let (seconds, nanoseconds) = (time.tv_sec.unsigned_abs(), time.tv_nsec);
        let time = Duration::new(seconds, u32::try_from(nanoseconds).unwrap_or(0));
        Some((length, before.wrapping_add(length / 2), time))
    });
    let best = pairs.min_by_key(|(length, ..)| *length);
    best.map(|(_, stamp, time)| (stamp, time)).ok_or_else(no_counter)
}

/// How many core cycles pass in one tick: a loop that takes one cycle per addition says so.
pub(crate) fn core_factor() -> Attempt {
    let mut ticks = Vec::new();
    for _ in 0..SAMPLES {
        let before = time_stamp().ok_or_else(no_counter)?;
        if !additions(ROUNDS) {
            return Err(no_counter());
        }
        let spent = time_stamp().ok_or_else(no_counter)?.wrapping_sub(before);
        ticks.push(spent as f64 / (ROUNDS * ADDITIONS) as f64);
    }
    // Interrupts and neighbours only lengthen: the low quantiles are the core's own.
    let (best, usual) = (1.0 / quantile(&ticks, 0.05), 1.0 / median(&ticks));
    let says = format!("{best:.3} core cycles per tick (median of samples {usual:.3})");
    let doubt =
        (!(0.1..10.0).contains(&best)).then(|| format!("no processor is like that: {says}"));
    Ok(Outcome::new(says).figure("factor", best).figure("median", usual).doubted(doubt))
}

/// What one reading of the kernel's clock takes.
pub(crate) fn clock_reading() -> Attempt {
    const READINGS: u32 = 2_000;
    let cost = (0..9).map(|_| {
        let started = Instant::now();
        for _ in 0..READINGS {
            std::hint::black_box(clock_gettime(ClockId::MonotonicRaw));
        }
        started.elapsed().as_secs_f64() * 1e9 / f64::from(READINGS)
    });
    let cost = quantile(&cost.collect::<Vec<_>>(), 0.0);
    Ok(Outcome::new(format!("{cost:.0} ns per reading")).figure("ns", cost))
}

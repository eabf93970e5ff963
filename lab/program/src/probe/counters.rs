// SPDX-License-Identifier: Apache-2.0
//! Counters of `perf_event_open`: whether they open, and whether what they count can be true.

use super::outcome::{Outcome, Trouble};
use crate::clock::thread_cpu;
use metaslot_perf::{Counter, Event, Reading, Samples, Scope};
use metaslot_system::cycles::{ADDITIONS, additions};
use rustix::io::Errno;
use std::io;
use std::time::Duration;

type Attempt = Result<Outcome, Trouble>;

/// Rounds of the shorter loop: some 4 ms, so that a timer tick does not matter.
const ROUNDS: u64 = 150_000;
/// So many times as long is the longer one.
const LONGER: u64 = 4;

/// What a counter counted during two loops of known lengths.
#[derive(Clone, Copy, Debug)]
struct Loops {
    short: Reading,
    long: Reading,
    /// What the shorter loop does, at least and at most.
    expected: (f64, f64),
}

/// Core cycles: one per addition, more where the core is shared with another thread.
pub(crate) fn cycles() -> Attempt {
    let one = (ROUNDS * ADDITIONS) as f64;
    hardware(Event::Cycles, (0.9 * one, 4.0 * one))
}

/// Instructions: the additions and two more per round, and what the kernel does meanwhile.
pub(crate) fn instructions() -> Attempt {
    let all = (ROUNDS * (ADDITIONS + 2)) as f64;
    hardware(Event::Instructions, (0.95 * all, 1.3 * all))
}

fn hardware(event: Event, expected: (f64, f64)) -> Attempt {
    let (counter, scope) = open(event)?;
    let short = during(&counter, ROUNDS)?;
    let long = during(&counter, LONGER * ROUNDS)?;
    let says = format!("{} in the loop of {} additions{scope}", short.count, ROUNDS * ADDITIONS);
    Ok(Outcome::new(says)
        .figure("count", short.count as f64)
        .figure("expected_low", expected.0)
        .figure("expected_high", expected.1)
        .doubted(doubt(Loops { short, long, expected })))
}

/// With the kernel's part, or without where this user may not see that.
fn open(event: Event) -> io::Result<(Counter, &'static str)> {
    match Counter::open(event, Scope::Thread) {
        Err(error) if refused(&error) => {
            Ok((Counter::open(event, Scope::ThreadInUser)?, ", outside the kernel only"))
        }
        other => other.map(|counter| (counter, "")),
    }
}

fn refused(error: &io::Error) -> bool {
    matches!(Errno::from_io_error(error), Some(Errno::ACCESS | Errno::PERM))
}

fn during(counter: &Counter, rounds: u64) -> Result<Reading, Trouble> {
    let before = counter.read()?;
    if !additions(rounds) {
        let why = "there is no loop of known length for this processor";
        return Err(Trouble::reason(why, "an x86-64 or aarch64 processor"));
    }
    Ok(counter.read()?.since(before))
}

/// Why the counter cannot be believed, if so.
fn doubt(loops: Loops) -> Option<String> {
    let Loops { short, long, expected } = loops;
    if short.running == 0 || long.running == 0 {
        return Some("opened, but it never counted (time_running is 0)".to_owned());
    }
    let scaled =
        |reading: Reading| reading.count as f64 * reading.enabled as f64 / reading.running as f64;
    let (count, ratio) = (scaled(short), scaled(long) / scaled(short).max(1.0));
    if !(expected.0..=expected.1).contains(&count) {
        let (low, high) = expected;
        return Some(format!("counted {count:.0} where {low:.0} to {high:.0} happened"));
    }
    let longer = LONGER as f64;
    if !(0.75 * longer..=1.5 * longer).contains(&ratio) {
        return Some(format!("counted {ratio:.2} times as much in a loop {LONGER} times as long"));
    }
    None
}

/// The time of this thread by the CPU's timer.
pub(crate) fn cpu_clock() -> Attempt {
    timer(Event::CpuClock)
}

/// The time of this thread by the scheduler.
pub(crate) fn task_clock() -> Attempt {
    timer(Event::TaskClock)
}

/// A timer of a thread has to agree with the thread's CPU time.
fn timer(event: Event) -> Attempt {
    const WORK: Duration = Duration::from_millis(5);
    let (counter, scope) = open(event)?;
    let before = counter.read()?;
    let spent = work_for(WORK).as_secs_f64() * 1e3;
    let counted = counter.read()?.since(before).count as f64 / 1e6;
    let says = format!("{counted:.2} ms of {spent:.2} ms of CPU time{scope}");
    let doubt = !(0.7 * spent..=1.3 * spent).contains(&counted);
    Ok(Outcome::new(&says).figure("ms", counted).doubted(doubt.then_some(says)))
}

/// Samples at every so many cycles.
pub(crate) fn cycle_samples() -> Attempt {
    const PERIOD: u64 = 100_000;
    let rounds = ROUNDS / 2;
    let (samples, scope) = sampled(Event::Cycles, PERIOD)?;
    additions(rounds);
    enough(samples.count(), rounds * ADDITIONS / PERIOD, scope)
}

/// Samples at every so many nanoseconds.
pub(crate) fn clock_samples() -> Attempt {
    const PERIOD: Duration = Duration::from_micros(100);
    const EXPECTED: u32 = 50;
    let period = u64::try_from(PERIOD.as_nanos()).unwrap_or(u64::MAX);
    let (samples, scope) = sampled(Event::CpuClock, period)?;
    work_for(PERIOD * EXPECTED);
    enough(samples.count(), EXPECTED.into(), scope)
}

/// Works until so much CPU time is spent, outside the kernel nearly all the time, and says how much
/// it became.
fn work_for(time: Duration) -> Duration {
    let started = thread_cpu();
    loop {
        let spent = thread_cpu().saturating_sub(started);
        if spent >= time {
            return spent;
        }
        for number in 0..10_000 {
            std::hint::black_box(number);
        }
    }
}

fn sampled(event: Event, period: u64) -> io::Result<(Samples, &'static str)> {
    match Samples::open(event, Scope::Thread, period) {
        Err(error) if refused(&error) => {
            Ok((Samples::open(event, Scope::ThreadInUser, period)?, ", outside the kernel only"))
        }
        other => other.map(|samples| (samples, "")),
    }
}

/// Timers of virtual machines come late, and then several samples are one.
fn enough(count: u64, expected: u64, scope: &str) -> Attempt {
    let says = format!("{count} samples where {expected} were due{scope}");
    let doubt = !(expected / 4..=4 * expected).contains(&count);
    Ok(Outcome::new(&says)
        .figure("count", count as f64)
        .figure("expected", expected as f64)
        .doubted(doubt.then_some(says)))
}

/// Switches of this thread, which sleeps a known number of times.
pub(crate) fn context_switches() -> Attempt {
    const SLEEPS: u64 = 5;
    let counter = Counter::open(Event::ContextSwitches, Scope::Thread)?;
    let before = counter.read()?;
    for _ in 0..SLEEPS {
        std::thread::sleep(Duration::from_micros(200));
    }
    let count = counter.read()?.since(before).count;
    let says = format!("{count} while the thread slept {SLEEPS} times");
    let doubt = (count < SLEEPS).then(|| says.clone());
    Ok(Outcome::new(says).figure("count", count as f64).doubted(doubt))
}

/// A CPU as a whole, the work of all processes.
pub(crate) fn whole_cpu() -> Attempt {
    let counter = Counter::open(Event::CpuClock, Scope::Cpu(0))?;
    let before = counter.read()?;
    std::thread::sleep(Duration::from_millis(2));
    let counted = counter.read()?.since(before).count as f64 / 1e6;
    let doubt = (counted == 0.0).then(|| "CPU 0 counted nothing".to_owned());
    Ok(Outcome::new("CPU 0, everybody's work").doubted(doubt))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn loops(short: u64, long: u64, running: u64) -> Loops {
        let reading = |count| Reading { count, enabled: 1000, running };
        Loops { short: reading(short), long: reading(long), expected: (900.0, 4000.0) }
    }

    #[test]
    fn counters_that_cannot_be_true_are_doubted() {
        assert_eq!(doubt(loops(1000, 4000, 1000)), None);
        let says = |loops| doubt(loops).unwrap();
        assert!(says(loops(1000, 4000, 0)).contains("time_running"));
        assert!(says(loops(3, 12, 1000)).contains("counted 3"));
        assert!(says(loops(1000, 1000, 1000)).contains("1.00 times"));
    }

    #[test]
    fn a_counter_that_shared_its_time_is_scaled() {
        assert_eq!(doubt(loops(500, 2000, 500)), None);
    }
}

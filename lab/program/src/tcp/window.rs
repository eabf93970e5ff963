// SPDX-License-Identifier: Apache-2.0
//! The steady window: traffic runs before it and after it, and only what happens inside counts.

use super::counts::{Io, Segments, has_ended};
use crate::experiment::Measured;
use crate::meter::{Account, Meter};
use crate::{Failure, Result};
use std::thread::sleep;
use std::time::{Duration, Instant};

/// How long what takes.
#[derive(Clone, Copy, Debug)]
pub(super) struct Timing {
    /// Part of the warm-up: two of them must carry about the same.
    pub(super) step: Duration,
    /// So many of them at most.
    pub(super) steps: usize,
    pub(super) window: Duration,
}

impl Timing {
    pub(super) const fn of_window(window: Duration) -> Self {
        let step = Duration::from_millis(25);
        Self { step, steps: 12, window }
    }

    /// How long a sample will take about.
    pub(super) fn expected(&self) -> Duration {
        self.step * 3 + self.window + Duration::from_millis(10)
    }
}

/// Two parts of the warm-up are alike within this.
const ALIKE: f64 = 0.1;
/// The two halves of the window are.
const STEADY: f64 = 0.2;

/// CPU time of the experiment's own that a window holds at least, as a share of its length.
const LEAST: f64 = 0.25;
/// Traffic that does not come within this does not come.
const PATIENCE: Duration = Duration::from_secs(30);

/// Takes a sample of traffic that has begun, from the sender to the receiver.
pub(super) fn sample(
    meter: &Meter,
    account: Account<'_>,
    pids: [u32; 2],
    timing: Timing,
) -> Result<Measured> {
    let [sender, receiver] = pids;
    let warm = warm_up(receiver, timing)?;
    let segments = Segments::of(pids);
    let (sent, received) = (Io::of(sender)?, Io::of(receiver)?);
    let window = meter.open(account)?;
    let (began, spent) = (Instant::now(), account.read()?.cpu);
    sleep(timing.window / 2);
    let (half, middle) = (Io::of(receiver)?, began.elapsed());
    sleep(timing.window / 2);
    // Where others take the CPU, a window of time may hold no work at all: it lasts until there was some.
    let least = timing.window.as_secs_f64() * 1e9 * LEAST;
    while account.read()?.cpu - spent < least || Io::of(receiver)?.read <= received.read {
        if pids.into_iter().any(has_ended) {
            return Err(Failure::new("a process of the generator has ended"));
        }
        if began.elapsed() > PATIENCE {
            return Err(Failure::new(format!("no traffic within {} s", PATIENCE.as_secs()))
                .hint("others use the machine, or the receiver does not get its bytes"));
        }
        sleep(timing.step);
    }
    let all = began.elapsed();
    let (sent_after, received_after) = (Io::of(sender)?, Io::of(receiver)?);
    let bytes = received_after.read - received.read;
    let mut measured = window.close(bytes)?;
    let counted = [
        ("writes", sent_after.writes - sent.writes),
        ("reads", received_after.reads - received.reads),
        ("bytes_sent", sent_after.written - sent.written),
    ];
    let counted = counted.into_iter().chain(Segments::of(pids).since(segments));
    measured.counters.extend(counted.map(|(name, value)| (name.to_owned(), value)));
    let rate = |bytes: f64, time: Duration| bytes / time.as_secs_f64();
    let first = rate(half.read - received.read, middle);
    let second = rate(received_after.read - half.read, all.saturating_sub(middle));
    flag(&mut measured, "not_warm", !warm);
    flag(&mut measured, "not_steady", !alike(first, second, STEADY));
    Ok(measured)
}

pub(super) fn flag(measured: &mut Measured, name: &str, raised: bool) {
    if raised {
        measured.flags.push(name.to_owned());
    }
}

/// Waits until two steps in a row carry about the same; `false`: they never did.
fn warm_up(receiver: u32, timing: Timing) -> Result<bool> {
    let (mut before, mut carried) = (Io::of(receiver)?.read, 0.0);
    for _ in 0..timing.steps {
        sleep(timing.step);
        let now = Io::of(receiver)?.read;
        if alike(carried, now - before, ALIKE) {
            return Ok(true);
        }
        (carried, before) = (now - before, now);
    }
    Ok(false)
}

/// Whether the larger one is larger by no more than that share; nothing is not like nothing.
fn alike(one: f64, other: f64, share: f64) -> bool {
    one.max(other) > 0.0 && one.min(other) >= one.max(other) * (1.0 - share)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_is_not_steady() {
        assert!(alike(90.0, 100.0, 0.1) && alike(100.0, 90.0, 0.1));
        assert!(!alike(89.0, 100.0, 0.1) && !alike(100.0, 89.0, 0.1));
        assert!(!alike(0.0, 0.0, 0.1) && !alike(0.0, 5.0, 0.1));
    }
}

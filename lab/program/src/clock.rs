// SPDX-License-Identifier: Apache-2.0
//! The lab's two clocks, and what the rest of the machine did meanwhile.

use rustix::time::{ClockId, clock_gettime};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

/// What one stretch of work took: CPU time of the calling thread, and wall time.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Spent {
    pub(crate) cpu: Duration,
    pub(crate) wall: Duration,
}

/// Runs `work` between two readings of both clocks. The wall clock is outside, so the CPU time
/// holds nothing but the work and one reading.
pub(crate) fn measure<T>(work: impl FnOnce() -> T) -> (T, Spent) {
    let wall = Instant::now();
    let cpu = read(ClockId::ThreadCPUTime);
    let result = work();
    let cpu = read(ClockId::ThreadCPUTime).saturating_sub(cpu);
    (result, Spent { cpu, wall: wall.elapsed() })
}

/// CPU time of the calling thread so far.
pub(crate) fn thread_cpu() -> Duration {
    read(ClockId::ThreadCPUTime)
}

/// CPU time of this process so far, all threads.
pub(crate) fn process_cpu() -> Duration {
    read(ClockId::ProcessCPUTime)
}

/// The clock that [`Instant`] reads, as the kernel's samples have it.
pub(crate) fn monotonic() -> Duration {
    read(ClockId::Monotonic)
}

fn read(clock: ClockId) -> Duration {
    let time = clock_gettime(clock);
    let (seconds, nanoseconds) = (time.tv_sec.max(0), time.tv_nsec.max(0));
    Duration::new(seconds.unsigned_abs(), u32::try_from(nanoseconds).unwrap_or(0))
}

/// CPU time of a living process so far, from `/proc` (units of 10 ms).
pub(crate) fn cpu_of(pid: u32) -> Duration {
    let text = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    Duration::from_millis(ticks(&text).unwrap_or(0) * 10)
}

/// CPU time of this process's children that have ended so far, and of theirs (units of 10 ms).
pub(crate) fn children_cpu() -> Duration {
    let text = std::fs::read_to_string("/proc/self/stat").unwrap_or_default();
    Duration::from_millis(ticks_from(&text, 13).unwrap_or(0) * 10)
}

/// User and system time; the program's name in parentheses, which may hold anything, comes before.
fn ticks(stat: &str) -> Option<u64> {
    ticks_from(stat, 11)
}

/// Two times, after so many fields behind the name.
fn ticks_from(stat: &str, fields: usize) -> Option<u64> {
    let mut fields = stat.rsplit_once(')')?.1.split_ascii_whitespace().skip(fields);
    let mut next = || fields.next()?.parse::<u64>().ok();
    Some(next()? + next()?)
}

/// Waits for the others by spinning: a sleeper would start late.
pub(crate) fn wait(gate: &AtomicUsize) {
    gate.fetch_sub(1, Ordering::AcqRel);
    let mut spins = 0_u32;
    while gate.load(Ordering::Acquire) != 0 {
        spins += 1;
        if spins.is_multiple_of(1024) {
            std::thread::yield_now();
        }
        std::hint::spin_loop();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_process_tells_what_it_used() {
        let stat = "7 (a) b) S 1 7 7 0 -1 4194304 100 0 0 0 250 30 0 0 20 0 1 0 9";
        assert_eq!(ticks(stat), Some(280));
        assert_eq!(ticks_from(stat, 13), Some(0));
        assert_eq!(ticks("7 (a) S"), None);
        assert_eq!(cpu_of(u32::MAX), Duration::ZERO);
    }
}

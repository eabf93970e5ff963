// SPDX-License-Identifier: Apache-2.0
//! The lab's two clocks, and what the rest of the machine did meanwhile.

use rustix::time::{ClockId, clock_gettime};
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

/// CPU time of this process so far, all threads.
pub(crate) fn process_cpu() -> Duration {
    read(ClockId::ProcessCPUTime)
}

fn read(clock: ClockId) -> Duration {
    let time = clock_gettime(clock);
    let (seconds, nanoseconds) = (time.tv_sec.max(0), time.tv_nsec.max(0));
    Duration::new(seconds.unsigned_abs(), u32::try_from(nanoseconds).unwrap_or(0))
}

/// Watches for foreign work: CPU time that the machine spent outside this process.
#[derive(Debug)]
pub(crate) struct Watch {
    started: Instant,
    busy: Option<Duration>,
    own: Duration,
}

impl Watch {
    pub(crate) fn start() -> Self {
        Self { started: Instant::now(), busy: machine_busy(), own: process_cpu() }
    }

    /// Foreign CPU time as a share of one CPU since the start; `None` where the system does not
    /// say. 0.1 means that others used a tenth of one CPU.
    pub(crate) fn foreign(&self) -> Option<f64> {
        let busy = machine_busy()?.saturating_sub(self.busy?);
        let foreign = busy.saturating_sub(process_cpu().saturating_sub(self.own));
        Some(foreign.as_secs_f64() / self.started.elapsed().as_secs_f64().max(1e-9))
    }
}

/// Time of all CPUs that was neither idle nor waiting, from `/proc/stat` (units of 10 ms).
fn machine_busy() -> Option<Duration> {
    let text = std::fs::read_to_string("/proc/stat").ok()?;
    let mut fields = text.lines().next()?.split_ascii_whitespace().skip(1);
    let mut ticks = 0;
    // user, nice, system, idle, iowait, irq, softirq, steal
    for column in 0..8 {
        let value: u64 = fields.next()?.parse().ok()?;
        if !matches!(column, 3 | 4 | 7) {
            ticks += value;
        }
    }
    Some(Duration::from_millis(ticks * 10))
}

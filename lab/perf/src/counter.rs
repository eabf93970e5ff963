// SPDX-License-Identifier: Apache-2.0
//! Counters, and how many samples came.

use crate::event::{Event, Request, Scope, USER_ONLY, Wanted, open, tell};
use crate::ring::Ring;
use metaslot_system::bpf;
use std::fs::File;
use std::io::{self, Read};
use std::os::fd::AsRawFd;

/// `PERF_FORMAT_TOTAL_TIME_ENABLED | PERF_FORMAT_TOTAL_TIME_RUNNING`
const TIMES: u64 = 3;
/// `PERF_SAMPLE_IP`
const SAMPLE_ADDRESS: u64 = 1;

/// A counter that runs from its opening until it is dropped.
#[derive(Debug)]
pub struct Counter(File);

/// One reading of a counter.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct Reading {
    /// Events so far.
    pub count: u64,
    /// Nanoseconds during which the counter was wanted.
    pub enabled: u64,
    /// Nanoseconds during which it counted; fewer where counters share the processor's.
    pub running: u64,
}

impl Counter {
    /// Opens a counter, which counts from now on.
    ///
    /// # Errors
    /// The kernel's: ENOENT for an event that the machine does not have, EACCES or EPERM for one
    /// that this user may not count.
    pub fn open(event: Event, scope: Scope) -> io::Result<Self> {
        open(event, scope.whom(), attributes(scope)).map(Self)
    }

    /// What was counted so far.
    ///
    /// # Errors
    /// The kernel's.
    pub fn read(&self) -> io::Result<Reading> {
        let mut bytes = [0; 24];
        (&self.0).read_exact(&mut bytes)?;
        let mut words =
            bytes.chunks_exact(8).map(|word| word.try_into().map_or(0, u64::from_ne_bytes));
        let mut next = || words.next().unwrap_or(0);
        Ok(Reading { count: next(), enabled: next(), running: next() })
    }

    /// Runs a program at each event, as long as the counter lives.
    ///
    /// # Errors
    /// The kernel's.
    pub fn attach(&self, program: &bpf::Program) -> io::Result<()> {
        tell(&self.0, Request::Program, program.descriptor().as_raw_fd())
    }
}

fn attributes(scope: Scope) -> Wanted {
    let flags = if scope == Scope::ThreadInUser { USER_ONLY } else { 0 };
    Wanted { read_format: TIMES, flags, ..Wanted::default() }
}

/// Samples of an event, which are only counted.
#[derive(Debug)]
pub struct Samples {
    /// Keeps the event going.
    _event: File,
    ring: Ring,
}

impl Samples {
    /// Opens an event that is sampled from now on, each time when `period` more were counted.
    ///
    /// # Errors
    /// The kernel's, as of [`Counter::open`]; EPERM too where no memory may be locked for it.
    pub fn open(event: Event, scope: Scope, period: u64) -> io::Result<Self> {
        let samples = Wanted { period, sample: SAMPLE_ADDRESS, ..attributes(scope) };
        let event = open(event, scope.whom(), samples)?;
        let ring = Ring::map(&event, 1)?;
        Ok(Self { _event: event, ring })
    }

    /// How many samples came; at most as many as fit the page.
    pub fn count(&self) -> u64 {
        /// A header and an address.
        const SAMPLE: u64 = 16;
        self.ring.written() / SAMPLE
    }
}

impl Reading {
    /// What happened between an earlier reading and this one.
    pub fn since(self, earlier: Self) -> Self {
        Self {
            count: self.count.saturating_sub(earlier.count),
            enabled: self.enabled.saturating_sub(earlier.enabled),
            running: self.running.saturating_sub(earlier.running),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tracepoint_that_does_not_exist_is_refused() {
        Counter::open(Event::Tracepoint(u64::from(u32::MAX)), Scope::Thread).unwrap_err();
    }
}

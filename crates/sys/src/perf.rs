// SPDX-License-Identifier: Apache-2.0
//! Counters of `perf_event_open`.

use crate::{bpf, done, opened};
use std::fs::File;
use std::io::{self, Read};
use std::mem::size_of;
use std::os::fd::AsRawFd;

/// What is counted.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Event {
    /// Core cycles, counted by the processor.
    Cycles,
    /// Instructions, counted by the processor.
    Instructions,
    /// Nanoseconds by a timer of the CPU.
    CpuClock,
    /// Nanoseconds during which the thread ran.
    TaskClock,
    /// Switches to another thread.
    ContextSwitches,
    /// Hits of the tracepoint with this number.
    Tracepoint(u64),
}

/// Whose events are counted.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Scope {
    /// The calling thread, on every CPU, in the kernel too.
    Thread,
    /// The calling thread, outside the kernel.
    ThreadInUser,
    /// Everybody on this CPU.
    Cpu(u16),
}

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

/// The first version of the kernel's `perf_event_attr`, which every kernel takes.
#[repr(C)]
#[derive(Default)]
struct Attributes {
    kind: u32,
    size: u32,
    config: u64,
    sample_period: u64,
    sample_type: u64,
    read_format: u64,
    flags: u64,
    wakeup: u32,
    breakpoint: u32,
    address: u64,
}

const TYPE_HARDWARE: u32 = 0;
const TYPE_SOFTWARE: u32 = 1;
const TYPE_TRACEPOINT: u32 = 2;
/// `PERF_FORMAT_TOTAL_TIME_ENABLED | PERF_FORMAT_TOTAL_TIME_RUNNING`
const TIMES: u64 = 3;
/// `exclude_kernel` and `exclude_hv`
const USER_ONLY: u64 = 1 << 5 | 1 << 6;
const CLOSE_ON_EXEC: libc::c_ulong = 8;
/// `PERF_EVENT_IOC_SET_BPF`
const SET_BPF: libc::c_ulong = 0x4004_2408;

impl Event {
    fn numbers(self) -> (u32, u64) {
        match self {
            Self::Cycles => (TYPE_HARDWARE, 0),
            Self::Instructions => (TYPE_HARDWARE, 1),
            Self::CpuClock => (TYPE_SOFTWARE, 0),
            Self::TaskClock => (TYPE_SOFTWARE, 1),
            Self::ContextSwitches => (TYPE_SOFTWARE, 3),
            Self::Tracepoint(number) => (TYPE_TRACEPOINT, number),
        }
    }
}

impl Counter {
    /// Opens a counter, which counts from now on.
    ///
    /// # Errors
    /// The kernel's: ENOENT for an event that the machine does not have, EACCES or EPERM for one
    /// that this user may not count.
    pub fn open(event: Event, scope: Scope) -> io::Result<Self> {
        let (kind, config) = event.numbers();
        let (pid, cpu): (libc::c_long, libc::c_long) = match scope {
            Scope::Thread | Scope::ThreadInUser => (0, -1),
            Scope::Cpu(number) => (-1, number.into()),
        };
        let size = u32::try_from(size_of::<Attributes>()).unwrap_or(0);
        let flags = if scope == Scope::ThreadInUser { USER_ONLY } else { 0 };
        let attributes =
            Attributes { kind, size, config, read_format: TIMES, flags, ..Attributes::default() };
        let attributes = &raw const attributes;
        let (number, no_group): (_, libc::c_long) = (libc::SYS_perf_event_open, -1);
        // SAFETY: the structure lives during the call and says its own size.
        let result =
            unsafe { libc::syscall(number, attributes, pid, cpu, no_group, CLOSE_ON_EXEC) };
        // SAFETY: this call opens a descriptor.
        unsafe { opened(result) }.map(|counter| Self(counter.into()))
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
        let (counter, program) = (self.0.as_raw_fd(), program.descriptor().as_raw_fd());
        // SAFETY: both descriptors are open, and this request takes a number, no memory.
        done(unsafe { libc::ioctl(counter, SET_BPF, program) })
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
    fn the_structure_has_the_size_of_the_first_version() {
        assert_eq!(size_of::<Attributes>(), 64);
    }

    #[test]
    fn a_tracepoint_that_does_not_exist_is_refused() {
        Counter::open(Event::Tracepoint(u64::from(u32::MAX)), Scope::Thread).unwrap_err();
    }
}

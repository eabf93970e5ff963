// SPDX-License-Identifier: Apache-2.0
//! Counters and samples of `perf_event_open`.

use crate::{bpf, done, opened};
use std::fs::File;
use std::io::{self, Read};
use std::mem::size_of;
use std::os::fd::AsRawFd;
use std::ptr::{self, NonNull};
use std::sync::atomic::{AtomicU64, Ordering};

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
/// `PERF_SAMPLE_IP`
const SAMPLE_ADDRESS: u64 = 1;
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
        open(event, scope, Attributes::default()).map(Self)
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

/// Opens an event with what is already said about samples.
fn open(event: Event, scope: Scope, samples: Attributes) -> io::Result<File> {
    let (kind, config) = event.numbers();
    let (pid, cpu): (libc::c_long, libc::c_long) = match scope {
        Scope::Thread | Scope::ThreadInUser => (0, -1),
        Scope::Cpu(number) => (-1, number.into()),
    };
    let size = u32::try_from(size_of::<Attributes>()).unwrap_or(0);
    let flags = if scope == Scope::ThreadInUser { USER_ONLY } else { 0 };
    let attributes = Attributes { kind, size, config, read_format: TIMES, flags, ..samples };
    let attributes = &raw const attributes;
    let (number, no_group): (_, libc::c_long) = (libc::SYS_perf_event_open, -1);
    // SAFETY: the structure lives during the call and says its own size.
    let result = unsafe { libc::syscall(number, attributes, pid, cpu, no_group, CLOSE_ON_EXEC) };
    // SAFETY: this call opens a descriptor.
    unsafe { opened(result) }.map(File::from)
}

/// Samples of an event: where the program was, each time when enough of them were counted.
#[derive(Debug)]
pub struct Samples {
    /// Keeps the event going.
    _event: File,
    /// The kernel's page about the ring, and one page of ring.
    ring: NonNull<u8>,
}

impl Samples {
    /// Opens an event that is sampled from now on, each time when `period` more were counted.
    ///
    /// # Errors
    /// The kernel's, as of [`Counter::open`]; EPERM too where no memory may be locked for it.
    pub fn open(event: Event, scope: Scope, period: u64) -> io::Result<Self> {
        let samples = Attributes {
            sample_period: period,
            sample_type: SAMPLE_ADDRESS,
            ..Attributes::default()
        };
        let event = open(event, scope, samples)?;
        let (length, number) = (Self::length(), event.as_raw_fd());
        let (access, shared) = (libc::PROT_READ | libc::PROT_WRITE, libc::MAP_SHARED);
        // SAFETY: maps fresh memory at an address that the kernel chooses.
        let ring = unsafe { libc::mmap(ptr::null_mut(), length, access, shared, number, 0) };
        match NonNull::new(ring.cast()).filter(|_| ring != libc::MAP_FAILED) {
            Some(ring) => Ok(Self { _event: event, ring }),
            None => Err(io::Error::last_os_error()),
        }
    }

    /// How many samples came; at most as many as fit the page.
    pub fn count(&self) -> u64 {
        /// Where the page about the ring says how many bytes were written.
        const HEAD: usize = 1024;
        /// A header and an address.
        const SAMPLE: u64 = 16;
        // SAFETY: the first page is mapped and longer than that.
        let head = unsafe { self.ring.as_ptr().add(HEAD) };
        // SAFETY: the page is mapped as long as this lives, the word is aligned, and the kernel
        // writes it atomically.
        let head = unsafe { AtomicU64::from_ptr(head.cast()) };
        head.load(Ordering::Acquire) / SAMPLE
    }

    fn length() -> usize {
        2 * rustix::param::page_size()
    }
}

impl Drop for Samples {
    fn drop(&mut self) {
        let start = self.ring.as_ptr().cast();
        // SAFETY: the two pages were mapped by `open`, and nothing refers to them any more.
        unsafe { libc::munmap(start, Self::length()) };
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

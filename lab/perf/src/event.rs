// SPDX-License-Identifier: Apache-2.0
//! Opening events: what is counted, whose, and what is said of each sample.

use std::fs::File;
use std::io;
use std::mem::size_of;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};

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
    /// All processes on this CPU.
    Cpu(u16),
}

/// The kernel's `perf_event_attr` as of Linux 4.1 (`PERF_ATTR_SIZE_VER5`).
#[repr(C)]
#[derive(Clone, Copy, Default)]
struct Attributes {
    kind: u32,
    size: u32,
    config: u64,
    period: u64,
    sample: u64,
    read_format: u64,
    flags: u64,
    wakeup: u32,
    breakpoint: u32,
    config_1: u64,
    config_2: u64,
    branches: u64,
    user_registers: u64,
    user_stack: u32,
    clock: i32,
    interrupt_registers: u64,
    auxiliary: u32,
    depth: u16,
    reserved: u16,
}

/// How an event is wanted: fields of the structure, with the kernel's numbers.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Wanted {
    /// Events between two samples; 0: none are taken.
    pub(crate) period: u64,
    /// What is said of a sample.
    pub(crate) sample: u64,
    pub(crate) read_format: u64,
    pub(crate) flags: u64,
    /// The clock of records, if the flags say so.
    pub(crate) clock: i32,
}

/// Whom the kernel is asked about: `pid` and `cpu` of the system call.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Whom {
    pub(crate) pid: i32,
    pub(crate) cpu: i32,
}

const TYPE_HARDWARE: u32 = 0;
const TYPE_SOFTWARE: u32 = 1;
const TYPE_TRACEPOINT: u32 = 2;
/// `exclude_kernel` and `exclude_hv`
pub(crate) const USER_ONLY: u64 = 1 << 5 | 1 << 6;
const CLOSE_ON_EXEC: libc::c_ulong = 8;

/// What an event is told later. All of these take a number or nothing, no memory.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Request {
    Enable = 0x2400,
    Disable = 0x2401,
    /// Samples go into the ring of the event with this descriptor.
    Output = 0x2405,
    /// Runs the BPF program with this descriptor.
    Program = 0x4004_2408,
}

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

impl Scope {
    pub(crate) fn whom(self) -> Whom {
        match self {
            Self::Thread | Self::ThreadInUser => Whom { pid: 0, cpu: -1 },
            Self::Cpu(number) => Whom { pid: -1, cpu: number.into() },
        }
    }
}

/// Opens an event.
pub(crate) fn open(event: Event, whom: Whom, wanted: Wanted) -> io::Result<File> {
    let (kind, config) = event.numbers();
    let size = u32::try_from(size_of::<Attributes>()).unwrap_or(0);
    let Wanted { period, sample, read_format, flags, clock } = wanted;
    let rest = Attributes::default();
    let attributes =
        Attributes { kind, size, config, period, sample, read_format, flags, clock, ..rest };
    let attributes = &raw const attributes;
    let (pid, cpu) = (libc::c_long::from(whom.pid), libc::c_long::from(whom.cpu));
    let (number, no_group): (_, libc::c_long) = (libc::SYS_perf_event_open, -1);
    // SAFETY: the structure lives during the call and says its own size.
    let result = unsafe { libc::syscall(number, attributes, pid, cpu, no_group, CLOSE_ON_EXEC) };
    let descriptor = i32::try_from(result).ok().filter(|number| *number >= 0);
    let descriptor = descriptor.ok_or_else(io::Error::last_os_error)?;
    // SAFETY: the kernel has just opened it for this caller, and no other code knows it.
    Ok(File::from(unsafe { OwnedFd::from_raw_fd(descriptor) }))
}

/// Tells an event something.
pub(crate) fn tell(event: &File, request: Request, argument: libc::c_int) -> io::Result<()> {
    // SAFETY: the descriptor is open, and none of the requests takes memory.
    let result = unsafe { libc::ioctl(event.as_raw_fd(), request as libc::c_ulong, argument) };
    if result == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_structure_has_the_size_of_its_version() {
        assert_eq!(size_of::<Attributes>(), 112);
    }
}

// SPDX-License-Identifier: Apache-2.0
//! Safe functions over the system calls and the instructions that the lab needs and no safe
//! library offers. Each answers as the kernel did; what an answer means is the lab's business.

pub mod bpf;
mod child;
pub mod cycles;
pub mod memory;
pub mod namespace;
pub mod pipe;
pub mod ring;
pub mod signal;
pub mod socket;

use std::io;
use std::os::fd::{FromRawFd, OwnedFd};

/// The descriptor that a system call has opened, or why it did not.
///
/// # Safety
/// `result` is what a system call that opens a descriptor has just returned.
unsafe fn opened(result: libc::c_long) -> io::Result<OwnedFd> {
    let number = i32::try_from(result).ok().filter(|number| *number >= 0);
    let number = number.ok_or_else(io::Error::last_os_error)?;
    // SAFETY: the kernel has just opened it for this caller, and no other code knows it.
    Ok(unsafe { OwnedFd::from_raw_fd(number) })
}

/// Nothing, or why a system call that returns 0 or -1 failed.
fn done(result: libc::c_int) -> io::Result<()> {
    if result == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

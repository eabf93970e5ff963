// SPDX-License-Identifier: Apache-2.0
//! `io_uring`.

use crate::opened;
use std::io;

/// Sets up a ring of one entry and closes it.
///
/// # Errors
/// The kernel's: ENOSYS where it has none, EPERM where `kernel.io_uring_disabled` forbids it.
pub fn setup() -> io::Result<()> {
    // The parameters have 120 bytes; zeros ask for nothing special.
    let mut parameters = [0_u32; 30];
    let (parameters, entries): (_, libc::c_long) = (parameters.as_mut_ptr(), 1);
    // SAFETY: the kernel reads and writes the 120 bytes, which live during the call.
    let result = unsafe { libc::syscall(libc::SYS_io_uring_setup, entries, parameters) };
    // SAFETY: this call opens a descriptor.
    unsafe { opened(result) }.map(drop)
}

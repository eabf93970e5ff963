// SPDX-License-Identifier: Apache-2.0
//! `vmsplice`.

use std::io;
use std::os::fd::{AsRawFd, BorrowedFd};

/// Puts the pages of `bytes` into a pipe.
///
/// # Errors
/// The kernel's.
pub fn vmsplice(pipe: BorrowedFd<'_>, bytes: &'static [u8]) -> io::Result<usize> {
    // The structure has no pointer to constant bytes; without SPLICE_F_GIFT the kernel only reads.
    let part = libc::iovec { iov_base: bytes.as_ptr().cast_mut().cast(), iov_len: bytes.len() };
    let (number, part) = (pipe.as_raw_fd(), &raw const part);
    // SAFETY: the pipe refers to the pages until they are read from it: they live forever.
    let moved = unsafe { libc::vmsplice(number, part, 1, 0) };
    usize::try_from(moved).map_err(|_| io::Error::last_os_error())
}

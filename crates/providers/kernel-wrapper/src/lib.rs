// SPDX-License-Identifier: Apache-2.0
//! The cryptography of the operating system's kernel (Linux's `AF_ALG`) behind safe functions.
//!
//! An algorithm, by the kernel's name for it, is a socket that is bound to it and has the key; what is done with it goes over a
//! second socket, which the first one accepts. Both are opened and closed within a call, so that nothing is left that the host
//! could close or a forked child share; only a hash of several calls keeps one ([`hash::Stream`]).
//!
//! No function here is a point at which a thread is cancelled, and none waits.

pub mod cipher;
pub mod hash;
mod socket;

pub use rustix::io::{Errno, Result};
pub use socket::{Kind, has};

/// Whether the kernel has `AF_ALG`, and this process may use it.
///
/// # Errors
/// Why not: `EAFNOSUPPORT` where there is none.
pub fn available() -> Result<()> {
    socket::open().map(drop)
}

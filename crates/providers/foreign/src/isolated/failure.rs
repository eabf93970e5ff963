// SPDX-License-Identifier: Apache-2.0
//! Why a process gave no answer.

use rustix::io::Errno;

/// Why there is no answer.
#[derive(Debug, Eq, PartialEq)]
pub(super) enum Failure {
    /// The process has gone.
    Gone,
    /// It says nothing.
    Silent,
    /// What it says is too long.
    Wrong,
}

impl From<std::io::Error> for Failure {
    fn from(_: std::io::Error) -> Self {
        Self::Gone
    }
}

impl From<Errno> for Failure {
    fn from(_: Errno) -> Self {
        Self::Gone
    }
}

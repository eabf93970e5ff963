// SPDX-License-Identifier: Apache-2.0
//! Waits that end at a time.

use super::failure::Failure;
use rustix::event::{PollFd, Timespec, poll};
use rustix::io::Errno;
use std::time::{Duration, Instant};

/// What is left until then.
pub(super) fn left(until: Instant) -> Result<Duration, Failure> {
    let left = until.saturating_duration_since(Instant::now());
    if left.is_zero() { Err(Failure::Silent) } else { Ok(left) }
}

/// Waits until one of these is ready.
pub(super) fn wait(any: &mut [PollFd<'_>], until: Instant) -> Result<(), Failure> {
    loop {
        let left = until.saturating_duration_since(Instant::now());
        let limit = Timespec::try_from(left).map_err(|_| Failure::Silent)?;
        match poll(any, Some(&limit)) {
            Ok(0) if left.is_zero() => return Err(Failure::Silent),
            Ok(0) | Err(Errno::INTR) => {}
            Ok(_) => return Ok(()),
            Err(error) => return Err(error.into()),
        }
    }
}

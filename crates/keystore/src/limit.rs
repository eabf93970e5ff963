// SPDX-License-Identifier: Apache-2.0
//! How often a PIN may be tried, and how soon, wherever attempts are counted.

use crate::error::{Error, Result};

/// What stands about one PIN.
#[derive(Clone, Debug)]
pub struct PinRow {
    /// The master key under the PIN; none where there is no PIN yet.
    pub wrap: Option<Vec<u8>>,
    /// Attempts since the last success.
    pub failures: u32,
    /// When the last was, in seconds since 1970.
    pub failed_at: u64,
}

impl PinRow {
    /// Adds failures that were counted elsewhere: how many and when the last was.
    pub(crate) fn failed_elsewhere(&mut self, (failures, failed_at): (u64, u64)) {
        let failures = u32::try_from(failures).unwrap_or(u32::MAX);
        self.failures = self.failures.saturating_add(failures);
        self.failed_at = self.failed_at.max(failed_at);
    }
}

/// After so many failures in a row a PIN is locked.
pub(crate) const MAX_FAILURES: u32 = 10;
/// After so many the next attempt has to wait: 1 second, 2, 4, …
const FREE_FAILURES: u32 = 3;

/// When an attempt may be made after so many failures; 0 for now.
pub(crate) fn retry_at(failures: u32, failed_at: u64, now: u64) -> u64 {
    match failures.checked_sub(FREE_FAILURES) {
        Some(more) if failures < MAX_FAILURES => {
            let delay = 1_u64 << more.min(MAX_FAILURES);
            // Where the clock was set back since, an attempt makes it a failure of now.
            let at = failed_at.saturating_add(delay).min(now + delay);
            if at > now { at } else { 0 }
        }
        _ => 0,
    }
}

/// Whether an attempt may be made now.
pub(crate) fn may_try(failures: u32, failed_at: u64, now: u64) -> Result<()> {
    if failures >= MAX_FAILURES {
        return Err(Error::PinLocked);
    }
    match retry_at(failures, failed_at, now) {
        0 => Ok(()),
        retry_at => Err(Error::TooSoon { retry_at }),
    }
}

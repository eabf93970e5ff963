// SPDX-License-Identifier: Apache-2.0
//! CPU time so far.

use std::time::Duration;

/// CPU time so far, in nanoseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct Spent {
    pub(crate) cpu: f64,
    pub(crate) user: Option<f64>,
    pub(crate) system: Option<f64>,
}

impl Spent {
    pub(super) fn of(time: Duration) -> Self {
        Self { cpu: time.as_secs_f64() * 1e9, user: None, system: None }
    }

    pub(super) fn since(self, earlier: Self) -> Self {
        let less = |now: Option<f64>, then: Option<f64>| Some((now? - then?).max(0.0));
        Self {
            cpu: (self.cpu - earlier.cpu).max(0.0),
            user: less(self.user, earlier.user),
            system: less(self.system, earlier.system),
        }
    }
}

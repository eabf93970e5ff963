// SPDX-License-Identifier: Apache-2.0
//! Where threads wait for each other that measure together.

use std::sync::atomic::{AtomicU32, Ordering};
use std::thread;
use std::time::{Duration, Instant};

/// Where the threads of a crowd meet, again and again: how often one came.
#[derive(Debug, Default)]
pub(crate) struct Meeting(AtomicU32);

/// How long those who came wait for the rest: one that fails does not come.
const PATIENCE: Duration = Duration::from_millis(500);

impl Meeting {
    /// Until so many are here.
    pub(crate) fn wait(&self, threads: u32) {
        let before = self.0.fetch_add(1, Ordering::Relaxed);
        let all = (before / threads).wrapping_add(1).wrapping_mul(threads);
        let began = Instant::now();
        while self.0.load(Ordering::Relaxed) < all && began.elapsed() < PATIENCE {
            thread::sleep(Duration::from_micros(50));
        }
    }
}

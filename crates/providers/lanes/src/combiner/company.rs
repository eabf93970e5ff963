// SPDX-License-Identifier: Apache-2.0
//! Threads that serve other processes.

use super::platform::COMPANY;
use std::sync::atomic::Ordering;

/// A thread that serves another process: between two requests it sleeps, and is in no combiner.
#[derive(Debug)]
pub struct Company(());

impl Company {
    /// One more, for as long as this lives.
    #[must_use]
    pub fn one_more() -> Self {
        COMPANY.fetch_add(1, Ordering::Relaxed);
        Self(())
    }
}

impl Drop for Company {
    fn drop(&mut self) {
        COMPANY.fetch_sub(1, Ordering::Relaxed);
    }
}

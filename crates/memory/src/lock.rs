// SPDX-License-Identifier: Apache-2.0
//! A lock for a few instructions. It has no poisoning, no owner and no destructor, so it works in
//! exit handlers and in threads that are being torn down.

use crate::os;
use std::sync::atomic::{AtomicU32, Ordering};

const FREE: u32 = 0;
const HELD: u32 = 1;
const AWAITED: u32 = 2;

/// How often to look again before sleeping.
const SPINS: u32 = 100;

#[derive(Debug, Default)]
pub(crate) struct Lock(AtomicU32);

/// Holds the lock until dropped.
#[derive(Debug)]
pub(crate) struct Held<'a>(&'a Lock);

impl Lock {
    pub(crate) const fn new() -> Self {
        Self(AtomicU32::new(FREE))
    }

    pub(crate) fn hold(&self) -> Held<'_> {
        if self.0.compare_exchange(FREE, HELD, Ordering::Acquire, Ordering::Relaxed).is_err() {
            self.wait();
        }
        Held(self)
    }

    #[cold]
    fn wait(&self) {
        for _ in 0..SPINS {
            if self.0.load(Ordering::Relaxed) == FREE
                && self.0.compare_exchange(FREE, HELD, Ordering::Acquire, Ordering::Relaxed).is_ok()
            {
                return;
            }
            std::hint::spin_loop();
        }
        while self.0.swap(AWAITED, Ordering::Acquire) != FREE {
            os::futex_wait(&self.0, AWAITED);
        }
    }
}

impl Drop for Held<'_> {
    fn drop(&mut self) {
        if self.0.0.swap(FREE, Ordering::Release) == AWAITED {
            os::futex_wake(&self.0.0);
        }
    }
}

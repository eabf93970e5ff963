// SPDX-License-Identifier: Apache-2.0
//! Numbers by chance, and pauses by chance: where threads may meet, they shall.

use std::cell::Cell;
use std::time::Duration;

/// A generator (xorshift64*), one for each thread.
#[derive(Clone, Copy, Debug)]
pub struct Chance(u64);

impl Chance {
    /// The numbers that follow from `seed`.
    pub const fn new(seed: u64) -> Self {
        Self(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1)
    }

    /// The next number, of 48 bits.
    pub const fn next(&mut self) -> u64 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        self.0.wrapping_mul(0x2545_f491_4f6c_dd1d) >> 16
    }

    /// A number below `limit`.
    pub const fn below(&mut self, limit: u64) -> u64 {
        self.next() % limit
    }

    /// True in `part` of `whole` cases.
    pub const fn is(&mut self, part: u64, whole: u64) -> bool {
        self.below(whole) < part
    }

    /// A number below `count`.
    pub fn index(&mut self, count: usize) -> usize {
        usize::try_from(self.below(count as u64)).unwrap_or(0)
    }

    /// One of `all`.
    pub fn one_of<T: Copy>(&mut self, all: &[T]) -> T {
        all[self.index(all.len())]
    }
}

thread_local! {
    static PAUSES: Cell<Option<Chance>> = const { Cell::new(None) };
}

/// From now on this thread pauses by chance.
pub fn seed(seed: u64) {
    PAUSES.set(Some(Chance::new(seed)));
}

/// Often nothing, often a few hundred nanoseconds, now and then another thread's turn.
pub fn pause() {
    let Some(mut chance) = PAUSES.get() else { return };
    match chance.below(64) {
        0..8 => std::thread::yield_now(),
        8..24 => (0..chance.below(400)).for_each(|_| std::hint::spin_loop()),
        24 => std::thread::sleep(Duration::from_micros(chance.below(60))),
        _ => {}
    }
    PAUSES.set(Some(chance));
}

// SPDX-License-Identifier: Apache-2.0
//! Which part of the page the calling thread writes.

use crate::layout::{EXCLUSIVE, SHARD, SHARDS};
use crate::page;
use std::cell::Cell;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

/// A part of the page. `index` below [`EXCLUSIVE`] belongs to one thread alone.
#[derive(Clone, Copy)]
pub(crate) struct Shard {
    pub(crate) words: &'static [AtomicU64; SHARD],
    pub(crate) index: usize,
}

const SHARED: usize = SHARDS - 1;

thread_local! {
    // Without `Drop`: reading it is one address computation, also while a thread ends.
    static CURRENT: Cell<Shard> =
        const { Cell::new(Shard { words: page::NOWHERE, index: SHARED }) };
}

/// One bit for each exclusive shard that a thread has.
static TAKEN: AtomicU32 = AtomicU32::new(0);

impl Shard {
    pub(crate) fn current() -> Self {
        CURRENT.get()
    }

    /// Adds to the word at `at`. Nobody else writes an exclusive shard, so no atomic addition.
    pub(crate) fn add(self, at: usize, amount: u64) {
        let Some(word) = self.words.get(at) else { return };
        if self.index < EXCLUSIVE {
            word.store(word.load(Ordering::Relaxed).wrapping_add(amount), Ordering::Relaxed);
        } else {
            word.fetch_add(amount, Ordering::Relaxed);
        }
    }
}

/// Gives the calling thread a shard of the page; of its own while there are some. Called by the
/// C edge at a thread's first call, and again when the page is another one.
pub fn enter_thread() {
    let mut index = CURRENT.get().index;
    if index == SHARED {
        index = take().unwrap_or(SHARED);
    }
    CURRENT.set(Shard { words: page::shard(index), index });
}

/// Gives the calling thread's shard back; what it counted stays. Called when the thread ends.
pub fn leave_thread() {
    let Shard { index, .. } = CURRENT.replace(Shard { words: page::shard(SHARED), index: SHARED });
    if index < EXCLUSIVE {
        TAKEN.fetch_and(!(1 << index), Ordering::Release);
    }
}

/// In a forked child no thread but the calling one is left.
pub(crate) fn forget_other_threads() {
    let index = CURRENT.get().index;
    let own = if index < EXCLUSIVE { 1 << index } else { 0 };
    TAKEN.store(own, Ordering::Release);
}

fn take() -> Option<usize> {
    let mut taken = TAKEN.load(Ordering::Relaxed);
    loop {
        let free = taken.trailing_ones() as usize;
        if free >= EXCLUSIVE {
            return None;
        }
        let wanted = taken | 1 << free;
        match TAKEN.compare_exchange_weak(taken, wanted, Ordering::Acquire, Ordering::Relaxed) {
            Ok(_) => return Some(free),
            Err(now) => taken = now,
        }
    }
}

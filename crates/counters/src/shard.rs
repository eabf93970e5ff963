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

/// The shard of all threads that have none of their own.
const SHARED: usize = SHARDS - 1;
/// The thread has not counted since the page was made.
const NONE: usize = SHARDS;

const NOWHERE: Shard = Shard { words: page::NOWHERE, index: NONE };

thread_local! {
    // Without `Drop`: reading it is one address computation, also while a thread ends.
    static CURRENT: Cell<Shard> = const { Cell::new(NOWHERE) };
}

/// One bit for each exclusive shard that a thread has.
static TAKEN: AtomicU32 = AtomicU32::new(0);

impl Shard {
    #[inline]
    pub(crate) fn current() -> Self {
        let current = CURRENT.get();
        if current.index == NONE { take() } else { current }
    }

    /// Adds to the word at `at`. An exclusive shard has one writer, so the addition need not be atomic.
    pub(crate) fn add(self, at: usize, amount: u64) {
        let Some(word) = self.words.get(at) else { return };
        if self.index < EXCLUSIVE {
            word.store(word.load(Ordering::Relaxed).wrapping_add(amount), Ordering::Relaxed);
        } else {
            word.fetch_add(amount, Ordering::Relaxed);
        }
    }
}

/// Gives the calling thread a shard of the page, of its own while there are some. Before it is
/// decided which page that is, what is counted is lost: those are the calls that found nothing
/// initialised yet.
#[cold]
fn take() -> Shard {
    if !page::is_decided() {
        return NOWHERE;
    }
    let index = take_exclusive().unwrap_or(SHARED);
    let shard = Shard { words: page::begin_shard(index), index };
    CURRENT.set(shard);
    shard
}

/// Gives the calling thread's shard back; what it counted stays. To be called when a thread ends.
pub fn leave_thread() {
    let Shard { index, .. } = CURRENT.replace(NOWHERE);
    if index < EXCLUSIVE {
        TAKEN.fetch_and(!(1 << index), Ordering::Release);
    }
}

/// In a forked child no thread but the calling one is left, and that one counts elsewhere.
pub(crate) fn forget_threads() {
    CURRENT.set(NOWHERE);
    TAKEN.store(0, Ordering::Release);
}

fn take_exclusive() -> Option<usize> {
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

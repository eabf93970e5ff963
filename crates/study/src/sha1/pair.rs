// SPDX-License-Identifier: Apache-2.0
//! Two threads: one expands, the other one does the rounds; between them is a ring of expanded blocks.

use super::BLOCK;
use super::rounds::{Working, expanded, schedule};
use std::array;
use std::sync::atomic::{AtomicU32, AtomicUsize, Ordering};
use std::thread;

/// Blocks in the ring at most: 40 KiB of words, which stay in a second-level cache.
const SLOTS: usize = 128;
/// Looks at the other thread's count before the processor is given away: the other thread may be
/// waiting for this very one.
const PATIENCE: u32 = 64;

/// Alone in its lines of the cache.
#[repr(align(128))]
struct Count(AtomicUsize);

struct Ring {
    slots: Vec<[AtomicU32; 80]>,
    /// Blocks that are in the ring or have been in it.
    expanded: Count,
    /// Blocks that were taken out.
    done: Count,
}

impl Ring {
    fn new(slots: usize) -> Self {
        let slot = |_| array::from_fn(|_| AtomicU32::new(0));
        let count = || Count(AtomicUsize::new(0));
        Self { slots: (0..slots).map(slot).collect(), expanded: count(), done: count() }
    }
}

/// Waits until a count is above `least`, and says what it is.
fn wait(count: &Count, least: usize) -> usize {
    let mut looks = 0;
    loop {
        let seen = count.0.load(Ordering::Acquire);
        if seen > least {
            return seen;
        }
        looks += 1;
        if looks % PATIENCE == 0 {
            thread::yield_now();
        } else {
            std::hint::spin_loop();
        }
    }
}

pub(super) fn compress(state: &mut Working, blocks: &[[u8; BLOCK]], begin: impl FnOnce() + Send) {
    if blocks.is_empty() {
        return;
    }
    let ring = Ring::new(blocks.len().min(SLOTS));
    thread::scope(|scope| {
        scope.spawn(|| {
            begin();
            expand(&ring, blocks);
        });
        rounds(&ring, state, blocks.len());
    });
}

#[inline(never)]
fn expand(ring: &Ring, blocks: &[[u8; BLOCK]]) {
    for (at, block) in blocks.iter().enumerate() {
        if at >= SLOTS {
            wait(&ring.done, at - SLOTS);
        }
        let slot = &ring.slots[at % SLOTS];
        schedule(block, |at, word| slot[at].store(word, Ordering::Relaxed));
        ring.expanded.0.store(at + 1, Ordering::Release);
    }
}

#[inline(never)]
fn rounds(ring: &Ring, state: &mut Working, blocks: usize) {
    let mut there = 0;
    for at in 0..blocks {
        if there <= at {
            there = wait(&ring.expanded, at);
        }
        let slot = &ring.slots[at % SLOTS];
        expanded(state, |at| slot[at].load(Ordering::Relaxed));
        ring.done.0.store(at + 1, Ordering::Release);
    }
}

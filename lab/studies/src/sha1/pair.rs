// SPDX-License-Identifier: Apache-2.0
//! Two threads: one expands, the other one does the rounds; between them is a ring of expanded blocks.

use super::rounds::{BLOCK, Working, expanded, schedule};
use std::array;
use std::sync::atomic::{AtomicU32, AtomicUsize, Ordering};
use std::thread;
use std::time::Duration;

/// Blocks in the ring at most: 40 KiB of words, which stay in a second-level cache.
const SLOTS: usize = 128;
/// Blocks that are passed on together: each time the counts, and the lines around them, travel from one
/// processor to the other and back.
const BATCH: usize = 16;
/// Looks at the other thread's count before this one goes to sleep: some blocks' time.
const PATIENCE: u32 = 200;
/// How long it sleeps: who is not there after so many looks does not run now, and may be waiting for
/// this very processor.
const NAP: Duration = Duration::from_micros(20);

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
            thread::sleep(NAP);
        } else {
            std::hint::spin_loop();
        }
    }
}

/// Tells the other thread, at the end of each batch and of all.
fn tell(count: &Count, now: usize, all: usize) {
    if now.is_multiple_of(BATCH) || now == all {
        count.0.store(now, Ordering::Release);
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
        tell(&ring.expanded, at + 1, blocks.len());
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
        tell(&ring.done, at + 1, blocks);
    }
}

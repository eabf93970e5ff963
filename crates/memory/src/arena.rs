// SPDX-License-Identifier: Apache-2.0
//! The one arena of a process: memory that is locked, left out of core dumps, wiped in forked
//! children and zeroised when freed.
//!
//! What keeps books of the arena lies outside of it, because the arena's pages are wiped in a
//! child. A child gives its inherited region up as a whole: old pointers read as zeros, freeing
//! them does nothing, and the first allocation makes a fresh region. So no lock of the arena is
//! ever inherited, and fork needs no hook here.
//!
//! There are no threads, no destructors and no thread-locals that need one: allocation works in
//! exit handlers.

mod pages;
mod region;
mod slab;

pub use region::Stats;

use region::Region;
use std::cell::Cell;
use std::ptr::{self, NonNull};
use std::sync::atomic::{AtomicPtr, AtomicU32, Ordering};

/// What every allocation is aligned to, in bytes.
pub const ALIGNMENT: usize = 16;

static CURRENT: AtomicPtr<Region> = AtomicPtr::new(ptr::null_mut());

/// How the arena of this process stands; all zero before its first use.
#[must_use]
pub fn stats() -> Stats {
    match existing() {
        Some(region) if region.alive() => region.stats(),
        _ => Stats { locked: 0, unlocked: 0, live: 0, degraded: false },
    }
}

/// Zeroed memory of at least `size` bytes, aligned to [`ALIGNMENT`]; `None` when there is no more.
#[must_use]
pub fn allocate(size: usize) -> Option<NonNull<u8>> {
    current()?.allocate(size, thread_number())
}

/// Zeroises and frees. A pointer from before a fork is ignored.
///
/// # Safety
/// `start` came from [`allocate`] in this process or in one that it was forked from, was not freed
/// since, and nothing uses it any more.
pub unsafe fn free(start: NonNull<u8>) {
    if let Some(region) = existing()
        && region.holds(start)
        && region.alive()
    {
        // SAFETY: the caller's promise; the region is this process's own.
        unsafe { region.free(start) };
    }
}

/// How many bytes an allocation really has; 0 for memory that is not the arena's.
#[must_use]
pub fn size_of_allocation(start: NonNull<u8>) -> usize {
    let mut region = existing();
    while let Some(candidate) = region {
        if candidate.holds(start) {
            return candidate.size_of_allocation(start);
        }
        region = candidate.previous();
    }
    0
}

fn existing() -> Option<&'static Region> {
    let region = CURRENT.load(Ordering::Acquire);
    // SAFETY: NULL, or a region that is never freed once it was published here.
    unsafe { region.as_ref() }
}

fn current() -> Option<&'static Region> {
    match existing() {
        Some(region) if region.alive() => Some(region),
        stale => replace(stale),
    }
}

/// The first region of a process, also of a forked one.
#[cold]
fn replace(stale: Option<&'static Region>) -> Option<&'static Region> {
    let expected = stale.map_or(ptr::null_mut(), |region| ptr::from_ref(region).cast_mut());
    let fresh = Box::into_raw(Box::new(Region::new(stale)?));
    let published = CURRENT.compare_exchange(expected, fresh, Ordering::AcqRel, Ordering::Acquire);
    if published.is_err() {
        // SAFETY: another thread was first; ours was never published, so it is taken back whole.
        drop(unsafe { Box::from_raw(fresh) });
    }
    existing()
}

/// Numbers threads, so that each keeps to a part of the arena of its own.
fn thread_number() -> u32 {
    thread_local!(static NUMBER: Cell<u32> = const { Cell::new(u32::MAX) });
    static NEXT: AtomicU32 = AtomicU32::new(0);
    NUMBER.with(|number| {
        if number.get() == u32::MAX {
            number.set(NEXT.fetch_add(1, Ordering::Relaxed) % (1 << 30));
        }
        number.get()
    })
}

#[cfg(test)]
mod tests;

// SPDX-License-Identifier: Apache-2.0
//! Runs of pages: a pool hands them out and takes them back, committing space as it is needed.

use crate::lock::Lock;
use crate::os;
use std::ptr::NonNull;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};

/// The arena's own unit, in bytes.
pub(super) const PAGE: usize = 4096;

/// How many pages are committed at a time: a multiple of every page size of the system.
const STRETCH: usize = 64;

/// How many of the first stretch are touched when it is committed: what a process needs that logs in and signs once.
const AT_ONCE: usize = 24;

/// A part of the region whose pages are treated alike.
#[derive(Debug)]
pub(super) struct Pool {
    lock: Lock,
    /// Start of the region.
    base: NonNull<u8>,
    /// The pool's first page, and the one after its last.
    first: usize,
    end: usize,
    /// The one after the last page that is committed.
    frontier: AtomicUsize,
    /// No free page lies before this one.
    hint: AtomicUsize,
    /// One bit for each page of the region: free and committed.
    free: &'static [AtomicU64],
    lockable: AtomicBool,
    pub(super) locked: AtomicUsize,
    pub(super) unlocked: AtomicUsize,
    pub(super) degraded: AtomicBool,
    /// Whether the kernel refused to wipe the pages in forked children (Linux before 4.14).
    pub(super) unwiped: AtomicBool,
}

// SAFETY: `base` is an address; what lies there is reached under the lock.
unsafe impl Send for Pool {}
// SAFETY: as above.
unsafe impl Sync for Pool {}

impl Pool {
    pub(super) fn new(
        base: NonNull<u8>,
        pages: std::ops::Range<usize>,
        free: &'static [AtomicU64],
        lockable: bool,
    ) -> Self {
        Self {
            lock: Lock::new(),
            base,
            first: pages.start,
            end: pages.end,
            frontier: AtomicUsize::new(pages.start),
            hint: AtomicUsize::new(pages.start),
            free,
            lockable: AtomicBool::new(lockable),
            locked: AtomicUsize::new(0),
            unlocked: AtomicUsize::new(0),
            degraded: AtomicBool::new(false),
            unwiped: AtomicBool::new(false),
        }
    }

    /// Whether the pool has this page.
    pub(super) const fn holds(&self, page: usize) -> bool {
        self.first <= page && page < self.end
    }

    /// Takes `count` pages in a row, all zero; gives the first.
    pub(super) fn take(&self, count: usize) -> Option<usize> {
        let _held = self.lock.hold();
        let page = match self.find(count) {
            Some(page) => page,
            None => {
                self.commit(count)?;
                self.find(count)?
            }
        };
        for taken in page..page + count {
            self.set(taken, false);
        }
        if page == self.hint.load(Ordering::Relaxed) {
            self.hint.store(page + count, Ordering::Relaxed);
        }
        Some(page)
    }

    /// Takes pages back, all zero.
    pub(super) fn give(&self, page: usize, count: usize) {
        let _held = self.lock.hold();
        for given in page..page + count {
            self.set(given, true);
        }
        self.hint.fetch_min(page, Ordering::Relaxed);
    }

    /// Whether pages given back may be returned to the system.
    pub(super) fn discards(&self) -> bool {
        self.locked.load(Ordering::Relaxed) == 0
    }

    fn find(&self, count: usize) -> Option<usize> {
        let frontier = self.frontier.load(Ordering::Relaxed);
        let mut page = self.hint.load(Ordering::Relaxed);
        let mut run = 0;
        while page < frontier {
            let word = self.free[page / 64].load(Ordering::Relaxed) >> (page % 64);
            if word == 0 {
                run = 0;
                page += 64 - page % 64;
                continue;
            }
            run = if word & 1 == 1 { run + 1 } else { 0 };
            page += 1;
            if run == count {
                return Some(page - count);
            }
        }
        None
    }

    fn set(&self, page: usize, free: bool) {
        let word = &self.free[page / 64];
        let bit = 1 << (page % 64);
        if free {
            word.fetch_or(bit, Ordering::Relaxed);
        } else {
            word.fetch_and(!bit, Ordering::Relaxed);
        }
    }

    /// Commits at least `count` more pages.
    fn commit(&self, count: usize) -> Option<()> {
        let frontier = self.frontier.load(Ordering::Relaxed);
        let pages = count.checked_next_multiple_of(STRETCH)?.min(self.end - frontier);
        if pages < count {
            return None;
        }
        let length = pages * PAGE;
        // SAFETY: the frontier lies within the region.
        let start = unsafe { self.base.as_ptr().add(frontier * PAGE) };
        // SAFETY: reserved space from the frontier on, aligned to stretches.
        let wiped = unsafe { os::commit(start, length) }.ok()?;
        if !wiped {
            self.unwiped.store(true, Ordering::Relaxed);
            self.degraded.store(true, Ordering::Relaxed);
        }
        let at_once = if frontier == self.first { AT_ONCE * PAGE } else { 0 };
        // SAFETY: just committed.
        if self.lockable.load(Ordering::Relaxed) && unsafe { os::lock(start, length, at_once) } {
            self.locked.fetch_add(length, Ordering::Relaxed);
        } else {
            // Locking fails where other parts of the process used the limit up: no more is tried.
            if self.lockable.swap(false, Ordering::Relaxed) {
                self.degraded.store(true, Ordering::Relaxed);
            }
            self.unlocked.fetch_add(length, Ordering::Relaxed);
        }
        for page in frontier..frontier + pages {
            self.set(page, true);
        }
        self.frontier.store(frontier + pages, Ordering::Relaxed);
        Some(())
    }
}

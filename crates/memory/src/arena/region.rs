// SPDX-License-Identifier: Apache-2.0
//! One process's part of the arena: reserved address space, its books beside it.

use super::pages::{PAGE, Pool};
use super::slab::{self, Page, RUN, SLAB, Shard};
use crate::os;
use std::ptr::NonNull;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

/// How the arena stands.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Stats {
    /// Bytes that may hold secrets and are locked into memory.
    pub locked: usize,
    /// Bytes that may hold secrets and could be swapped out.
    pub unlocked: usize,
    /// Allocations that are not freed.
    pub live: u64,
    /// Whether something could not be protected as wanted: locked, or wiped on fork.
    pub degraded: bool,
}

/// How much is locked at most, in bytes.
const LOCKED: usize = 4 << 20;

/// Larger allocations are never locked, in pages.
const LARGEST_LOCKED: usize = 16;

/// Address space to ask for, in bytes; less where a limit forbids it.
const SPACES: [usize; 4] = [1 << 30, 256 << 20, 64 << 20, 16 << 20];

const SHARDS: u32 = 16;

#[derive(Debug)]
pub(super) struct Region {
    base: NonNull<u8>,
    length: usize,
    books: &'static [Page],
    /// Where the books lie, for giving them back.
    mapping: (NonNull<u8>, usize),
    locked: Pool,
    unlocked: Pool,
    shards: [Shard; SHARDS as usize],
    /// The region of the process that this one was forked from.
    previous: Option<&'static Self>,
    /// The process, where the kernel cannot wipe pages on fork.
    process: Option<u32>,
}

// SAFETY: `base` and `mapping` are addresses; what lies there is reached by the rules of the
// pools and shards.
unsafe impl Send for Region {}
// SAFETY: as above.
unsafe impl Sync for Region {}

impl Region {
    /// Reserves and prepares a region; `None` when the system has no room at all.
    pub(super) fn new(previous: Option<&'static Self>) -> Option<Self> {
        let (base, length) =
            SPACES.iter().find_map(|space| Some((os::reserve(*space).ok()?, *space)))?;
        let pages = length / PAGE;
        let bitmap = pages / 8;
        let mapping_length = pages * size_of::<Page>() + bitmap;
        let Ok(mapping) = os::map_zeroed(mapping_length) else {
            // SAFETY: nothing refers to the space yet.
            unsafe { os::unmap(base, length) };
            return None;
        };
        // SAFETY: zeroed memory is valid books; the mapping is as long and lives as long as the
        // region, which outlives every use once it is published.
        let books = unsafe { std::slice::from_raw_parts(mapping.cast::<Page>().as_ptr(), pages) };
        // SAFETY: within the mapping.
        let bits = unsafe { mapping.add(pages * size_of::<Page>()) };
        // SAFETY: as for the books.
        let free =
            unsafe { std::slice::from_raw_parts(bits.cast::<AtomicU64>().as_ptr(), pages / 64) };
        let budget = (LOCKED.min(os::lock_limit() / 2) / PAGE).next_multiple_of(64);
        // At least one stretch, for the sentinel's page.
        let border = budget.max(64);
        let region = Self {
            base,
            length,
            books,
            mapping: (mapping, mapping_length),
            locked: Pool::new(base, 0..border, free, os::lock_limit() >= 2 * 64 * PAGE),
            unlocked: Pool::new(base, border..pages, free, false),
            shards: [const { Shard::new() }; SHARDS as usize],
            previous,
            process: None,
        };
        region.armed()
    }

    /// Takes the first page for the sentinel: page number 0 can then mean "none".
    fn armed(mut self) -> Option<Self> {
        if self.locked.take(1) != Some(0) {
            return None;
        }
        if os::lock_limit() < 2 * 64 * PAGE {
            self.locked.degraded.store(true, Ordering::Relaxed);
        }
        self.sentinel().store(1, Ordering::Relaxed);
        if self.locked.unwiped.load(Ordering::Relaxed) {
            self.process = Some(std::process::id());
        }
        Some(self)
    }

    fn sentinel(&self) -> &AtomicU32 {
        // SAFETY: the first page is committed, aligned and used for nothing else.
        unsafe { self.base.cast::<AtomicU32>().as_ref() }
    }

    /// Whether the region belongs to this process, and not to one that it was forked from.
    pub(super) fn alive(&self) -> bool {
        self.sentinel().load(Ordering::Relaxed) != 0
            && self.process.is_none_or(|process| process == std::process::id())
    }

    pub(super) fn holds(&self, start: NonNull<u8>) -> bool {
        start.as_ptr().addr().wrapping_sub(self.base.as_ptr().addr()) < self.length
    }

    pub(super) const fn previous(&self) -> Option<&'static Self> {
        self.previous
    }

    pub(super) fn allocate(&self, size: usize, thread: u32) -> Option<NonNull<u8>> {
        let shard_number = thread % SHARDS;
        let shard = &self.shards[shard_number as usize];
        if size > slab::LARGEST {
            return self.allocate_run(size, shard_number);
        }
        let class = slab::class_of(size);
        let _held = shard.lock.hold();
        let page = match shard.partial(class) {
            Some(page) => page,
            None => {
                let page = self.take_pages(slab::slab_pages(class))?;
                shard.add(self.books, u32::try_from(page).ok()?, class, shard_number);
                page
            }
        };
        let block = shard.take(self.books, page, class)?;
        Some(self.address(page * PAGE + block * slab::block_size(class)))
    }

    fn allocate_run(&self, size: usize, shard_number: u32) -> Option<NonNull<u8>> {
        let pages = size.div_ceil(PAGE);
        let page = self.take_pages(pages)?;
        let books = &self.books[page];
        books.kind.store(RUN, Ordering::Relaxed);
        books.head.store(u32::try_from(page).ok()?, Ordering::Relaxed);
        books.shard.store(shard_number, Ordering::Relaxed);
        books.count.store(u32::try_from(pages).ok()?, Ordering::Relaxed);
        let shard = &self.shards[shard_number as usize];
        let _held = shard.lock.hold();
        shard.live.store(shard.live.load(Ordering::Relaxed) + 1, Ordering::Relaxed);
        Some(self.address(page * PAGE))
    }

    fn take_pages(&self, count: usize) -> Option<usize> {
        let locked = if count <= LARGEST_LOCKED { self.locked.take(count) } else { None };
        locked.or_else(|| self.unlocked.take(count))
    }

    fn give_pages(&self, page: usize, count: usize) {
        let pool = if self.locked.holds(page) { &self.locked } else { &self.unlocked };
        pool.give(page, count);
    }

    fn address(&self, offset: usize) -> NonNull<u8> {
        // SAFETY: offsets of pages and blocks lie within the region.
        unsafe { self.base.add(offset) }
    }

    /// Zeroises and frees.
    ///
    /// # Safety
    /// `start` is an allocation of this region that nothing uses any more.
    pub(super) unsafe fn free(&self, start: NonNull<u8>) {
        let offset = start.as_ptr().addr() - self.base.as_ptr().addr();
        let page = offset / PAGE;
        match self.books[page].kind.load(Ordering::Relaxed) {
            SLAB => {
                let head = self.books[page].head.load(Ordering::Relaxed);
                // SAFETY: the caller's promise; the block is of this slab.
                unsafe { self.free_block(start, head, offset - head as usize * PAGE) };
            }
            // SAFETY: the caller's promise; the run begins here.
            RUN => unsafe { self.free_run(start, page) },
            _ => {}
        }
    }

    unsafe fn free_block(&self, start: NonNull<u8>, head: u32, offset: usize) {
        let books = &self.books[head as usize];
        let class = books.class.load(Ordering::Relaxed) as usize;
        let size = slab::block_size(class);
        // SAFETY: the block has this size and is the caller's alone until it is put back.
        unsafe { os::wipe(start.as_ptr(), size) };
        let shard = &self.shards[books.shard.load(Ordering::Relaxed) as usize];
        let held = shard.lock.hold();
        let empty = shard.put(self.books, head, class, offset / size);
        drop(held);
        if empty {
            self.give_pages(head as usize, slab::slab_pages(class));
        }
    }

    unsafe fn free_run(&self, start: NonNull<u8>, page: usize) {
        let books = &self.books[page];
        let pages = books.count.load(Ordering::Relaxed) as usize;
        // SAFETY: the run has this length and is the caller's alone.
        unsafe { os::wipe(start.as_ptr(), pages * PAGE) };
        if !self.locked.holds(page) && self.unlocked.discards() {
            // SAFETY: whole pages of the run; nothing in them is needed.
            unsafe { os::discard(start.as_ptr(), pages * PAGE) };
        }
        books.kind.store(0, Ordering::Relaxed);
        let shard = &self.shards[books.shard.load(Ordering::Relaxed) as usize];
        let held = shard.lock.hold();
        shard.live.store(shard.live.load(Ordering::Relaxed) - 1, Ordering::Relaxed);
        drop(held);
        self.give_pages(page, pages);
    }

    pub(super) fn size_of_allocation(&self, start: NonNull<u8>) -> usize {
        let page = (start.as_ptr().addr() - self.base.as_ptr().addr()) / PAGE;
        let books = &self.books[page];
        match books.kind.load(Ordering::Relaxed) {
            SLAB => {
                let head = &self.books[books.head.load(Ordering::Relaxed) as usize];
                slab::block_size(head.class.load(Ordering::Relaxed) as usize)
            }
            RUN => books.count.load(Ordering::Relaxed) as usize * PAGE,
            _ => 0,
        }
    }

    pub(super) fn stats(&self) -> Stats {
        let pools = [&self.locked, &self.unlocked];
        Stats {
            locked: pools.iter().map(|pool| pool.locked.load(Ordering::Relaxed)).sum(),
            unlocked: pools.iter().map(|pool| pool.unlocked.load(Ordering::Relaxed)).sum(),
            live: self.shards.iter().map(|shard| shard.live.load(Ordering::Relaxed)).sum(),
            degraded: pools.iter().any(|pool| pool.degraded.load(Ordering::Relaxed)),
        }
    }
}

impl Drop for Region {
    fn drop(&mut self) {
        // SAFETY: only a region that was never published is dropped: nothing refers to it.
        unsafe { os::unmap(self.base, self.length) };
        // SAFETY: as above; the books are used through the region alone.
        unsafe { os::unmap(self.mapping.0, self.mapping.1) };
    }
}

// SPDX-License-Identifier: Apache-2.0
//! Size classes, and the books kept of each page.

use super::pages::PAGE;
use crate::lock::Lock;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

/// Sizes of blocks, in bytes; what is larger gets pages of its own.
const CLASSES: [u16; 17] =
    [16, 32, 48, 64, 96, 128, 192, 256, 384, 512, 768, 1024, 1280, 1536, 2048, 3072, 4096];

/// The largest block that is cut out of a slab, in bytes.
pub(super) const LARGEST: usize = 4096;

/// Slabs of larger blocks have several pages.
const WIDE: usize = 4;

/// The class for `size` bytes, which are at most [`LARGEST`].
pub(super) fn class_of(size: usize) -> usize {
    CLASSES.partition_point(|block| usize::from(*block) < size)
}

pub(super) fn block_size(class: usize) -> usize {
    usize::from(CLASSES[class])
}

pub(super) fn slab_pages(class: usize) -> usize {
    if block_size(class) <= 512 { 1 } else { WIDE }
}

fn capacity(class: usize) -> usize {
    slab_pages(class) * PAGE / block_size(class)
}

/// What a page is used for.
pub(super) const SLAB: u32 = 1;
pub(super) const RUN: u32 = 2;

/// The books of one page. Fields are written under the lock of the shard that owns the page, and
/// read without it where they cannot change: while a block of the page is allocated.
#[derive(Debug)]
#[repr(C)]
pub(super) struct Page {
    /// [`SLAB`], [`RUN`] or 0.
    pub(super) kind: AtomicU32,
    /// The first page of the slab.
    pub(super) head: AtomicU32,
    pub(super) class: AtomicU32,
    pub(super) shard: AtomicU32,
    /// Free blocks of a slab; pages of a run.
    pub(super) count: AtomicU32,
    /// Neighbours in the shard's list of slabs that have a free block; 0 is none.
    next: AtomicU32,
    previous: AtomicU32,
    unused: AtomicU32,
    /// One bit for each block that is free.
    blocks: [AtomicU64; 4],
}

/// The lists of one part of the arena, used by some of the threads.
#[derive(Debug)]
#[repr(align(128))]
pub(super) struct Shard {
    pub(super) lock: Lock,
    /// For each class the first slab that has a free block; 0 is none.
    partial: [AtomicU32; CLASSES.len()],
    pub(super) live: AtomicU64,
}

impl Shard {
    pub(super) const fn new() -> Self {
        Self {
            lock: Lock::new(),
            partial: [const { AtomicU32::new(0) }; CLASSES.len()],
            live: AtomicU64::new(0),
        }
    }

    /// A slab with a free block. Under the lock, like all that follow.
    pub(super) fn partial(&self, class: usize) -> Option<usize> {
        match self.partial[class].load(Ordering::Relaxed) {
            0 => None,
            page => Some(page as usize),
        }
    }

    fn link(&self, pages: &[Page], page: u32, class: usize) {
        let next = self.partial[class].load(Ordering::Relaxed);
        let books = &pages[page as usize];
        books.next.store(next, Ordering::Relaxed);
        books.previous.store(0, Ordering::Relaxed);
        if next != 0 {
            pages[next as usize].previous.store(page, Ordering::Relaxed);
        }
        self.partial[class].store(page, Ordering::Relaxed);
    }

    fn unlink(&self, pages: &[Page], page: u32, class: usize) {
        let books = &pages[page as usize];
        let next = books.next.load(Ordering::Relaxed);
        let previous = books.previous.load(Ordering::Relaxed);
        if next != 0 {
            pages[next as usize].previous.store(previous, Ordering::Relaxed);
        }
        if previous == 0 {
            self.partial[class].store(next, Ordering::Relaxed);
        } else {
            pages[previous as usize].next.store(next, Ordering::Relaxed);
        }
    }

    /// Makes a slab of fresh pages.
    pub(super) fn add(&self, pages: &[Page], page: u32, class: usize, shard: u32) {
        let capacity = capacity(class);
        for at in page..page + u32::try_from(slab_pages(class)).unwrap_or(0) {
            pages[at as usize].kind.store(SLAB, Ordering::Relaxed);
            pages[at as usize].head.store(page, Ordering::Relaxed);
        }
        let books = &pages[page as usize];
        books.class.store(u32::try_from(class).unwrap_or(0), Ordering::Relaxed);
        books.shard.store(shard, Ordering::Relaxed);
        books.count.store(u32::try_from(capacity).unwrap_or(0), Ordering::Relaxed);
        for (at, word) in books.blocks.iter().enumerate() {
            let bits = capacity.saturating_sub(at * 64).min(64);
            let mask = if bits == 64 { u64::MAX } else { (1 << bits) - 1 };
            word.store(mask, Ordering::Relaxed);
        }
        self.link(pages, page, class);
    }

    /// Takes a block out of a slab that has one; gives its number.
    pub(super) fn take(&self, pages: &[Page], page: usize, class: usize) -> Option<usize> {
        let books = &pages[page];
        let (at, word) =
            books.blocks.iter().enumerate().find(|(_, word)| word.load(Ordering::Relaxed) != 0)?;
        let bits = word.load(Ordering::Relaxed);
        let bit = bits.trailing_zeros() as usize;
        word.store(bits & (bits - 1), Ordering::Relaxed);
        let left = books.count.load(Ordering::Relaxed) - 1;
        books.count.store(left, Ordering::Relaxed);
        if left == 0 {
            self.unlink(pages, u32::try_from(page).ok()?, class);
        }
        self.live.store(self.live.load(Ordering::Relaxed) + 1, Ordering::Relaxed);
        Some(at * 64 + bit)
    }

    /// Puts a block back. `true` when the slab is all free and not the only one of its class: then
    /// it was taken off the list and its pages are the caller's. A block that is free already is
    /// left alone.
    pub(super) fn put(&self, pages: &[Page], page: u32, class: usize, block: usize) -> bool {
        let books = &pages[page as usize];
        let word = &books.blocks[block / 64];
        let bits = word.load(Ordering::Relaxed);
        if bits & (1 << (block % 64)) != 0 {
            return false;
        }
        word.store(bits | (1 << (block % 64)), Ordering::Relaxed);
        let free = books.count.load(Ordering::Relaxed) + 1;
        books.count.store(free, Ordering::Relaxed);
        self.live.store(self.live.load(Ordering::Relaxed) - 1, Ordering::Relaxed);
        if free == 1 {
            self.link(pages, page, class);
        }
        let only =
            self.partial(class) == Some(page as usize) && books.next.load(Ordering::Relaxed) == 0;
        if free as usize != capacity(class) || only {
            return false;
        }
        self.unlink(pages, page, class);
        for at in 0..slab_pages(class) {
            pages[page as usize + at].kind.store(0, Ordering::Relaxed);
        }
        true
    }
}

const _: () = assert!(size_of::<Page>() == 64, "one cache line for each page");

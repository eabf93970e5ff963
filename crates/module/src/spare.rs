// SPDX-License-Identifier: Apache-2.0
//! Memory for small allocations where there is none left. Rust ends the process in which one fails, which is the host's: a call that has begun
//! gets what it needs from here, and those that come next are refused.

use std::alloc::{GlobalAlloc, Layout, System};
use std::ptr;
use std::sync::atomic::{AtomicIsize, AtomicU8, AtomicU64, Ordering};

/// Pages that nobody touches until then.
const LENGTH: usize = 1 << 20;
/// What is longer is asked for by code that knows what to do without.
const LARGEST: usize = 1 << 16;
const ALIGNMENT: usize = 128;

#[repr(align(128))]
struct Room([AtomicU8; LENGTH]);

static ROOM: Room = Room([const { AtomicU8::new(0) }; LENGTH]);

/// Of each region of the room, the upper half: how many bytes from its beginning have been given. The lower: how many pieces are in use.
static GIVEN: [AtomicU64; LENGTH / LARGEST] = [const { AtomicU64::new(0) }; LENGTH / LARGEST];

/// How many bytes have been given in all.
static BYTES: AtomicIsize = AtomicIsize::new(0);

fn start() -> *mut u8 {
    ROOM.0.as_ptr().cast_mut().cast()
}

/// Bytes and pieces.
fn halves(given: u64) -> (usize, u64) {
    (usize::try_from(given >> 32).unwrap_or(LARGEST), given & u64::from(u32::MAX))
}

fn count_bytes(change: usize) -> isize {
    isize::try_from(change).unwrap_or(0)
}

/// A piece, of zeros, from the first region that has one; NULL where there is none.
#[cold]
fn piece(layout: Layout) -> *mut u8 {
    if layout.size() > LARGEST || layout.align() > ALIGNMENT {
        return ptr::null_mut();
    }
    let begin = |given| halves(given).0.next_multiple_of(layout.align());
    let mut regions = GIVEN.iter().zip(ROOM.0.as_chunks::<LARGEST>().0);
    let found = regions.find_map(|(given, room)| {
        let before = given.fetch_update(Ordering::AcqRel, Ordering::Acquire, |given| {
            let end = begin(given) + layout.size();
            (end <= LARGEST).then_some((end as u64) << 32 | (halves(given).1 + 1))
        });
        let before = before.ok()?;
        let end = begin(before) + layout.size();
        BYTES.fetch_add(count_bytes(end - halves(before).0), Ordering::Relaxed);
        Some(&room[begin(before)..end])
    });
    let Some(room) = found else { return ptr::null_mut() };
    room.iter().for_each(|byte| byte.store(0, Ordering::Relaxed));
    start().wrapping_add(room.as_ptr().addr() - start().addr())
}

fn is_piece(at: *mut u8) -> bool {
    at.addr().wrapping_sub(start().addr()) < LENGTH
}

/// The last one of a region that is given back makes room in it: one that stays keeps no other region.
#[cold]
fn give_back(at: *mut u8) {
    let given = &GIVEN[(at.addr() - start().addr()) / LARGEST];
    let before = given.update(Ordering::AcqRel, Ordering::Acquire, |given| match halves(given).1 {
        0 | 1 => 0,
        _ => given - 1,
    });
    if let (bytes, 0 | 1) = halves(before) {
        BYTES.fetch_sub(count_bytes(bytes), Ordering::Relaxed);
    }
}

/// Whether memory is out, and much of what is here in use.
pub(crate) fn is_out() -> bool {
    BYTES.load(Ordering::Relaxed) > count_bytes(LENGTH / 2) && is_there_none()
}

#[cold]
fn is_there_none() -> bool {
    let mut room = Vec::<u8>::new();
    let none = room.try_reserve_exact(LARGEST + 1).is_err();
    // Not a pair of calls that the compiler leaves out.
    std::hint::black_box(room.as_ptr());
    none
}

struct WithSpare;

#[global_allocator]
static ALLOCATOR: WithSpare = WithSpare;

// SAFETY: what the system's allocator gives, or a piece of the room that nobody else has until it is given back.
unsafe impl GlobalAlloc for WithSpare {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        // SAFETY: the caller's promise.
        let at = unsafe { System.alloc(layout) };
        if at.is_null() { piece(layout) } else { at }
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        // SAFETY: the caller's promise.
        let at = unsafe { System.alloc_zeroed(layout) };
        if at.is_null() { piece(layout) } else { at }
    }

    unsafe fn dealloc(&self, at: *mut u8, layout: Layout) {
        if is_piece(at) {
            return give_back(at);
        }
        // SAFETY: the caller's promise, and it is the system's.
        unsafe { System.dealloc(at, layout) };
    }

    unsafe fn realloc(&self, at: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        if !is_piece(at) {
            // SAFETY: the caller's promise, and it is the system's.
            let moved = unsafe { System.realloc(at, layout, size) };
            if !moved.is_null() {
                return moved;
            }
        }
        // SAFETY: the caller's promise: the size is not 0, and no longer than a layout may be.
        let wanted = unsafe { Layout::from_size_align_unchecked(size, layout.align()) };
        // SAFETY: as above.
        let moved = unsafe { self.alloc(wanted) };
        if !moved.is_null() {
            // SAFETY: both are so long, and the second is new.
            unsafe { at.copy_to_nonoverlapping(moved, layout.size().min(size)) };
            // SAFETY: the caller's promise.
            unsafe { self.dealloc(at, layout) };
        }
        moved
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pieces_are_apart_and_all_come_back() {
        let layout = |size, align| Layout::from_size_align(size, align).expect("a layout");
        let (a, b) = (piece(layout(3, 1)), piece(layout(8, 8)));
        assert!(is_piece(a) && is_piece(b) && b.addr() >= a.addr() + 3 && b.addr() % 8 == 0);
        assert!(piece(layout(LARGEST + 1, 1)).is_null() && piece(layout(1, 256)).is_null());
        let mut more = Vec::from([a, b]);
        while let at = piece(layout(LARGEST, 128))
            && !at.is_null()
        {
            more.push(at);
        }
        assert_eq!(more.len(), 2 + LENGTH / LARGEST - 1);
        assert!(!is_out(), "there is memory");
        // One that stays, for an hour of times without memory.
        let stays = more.remove(0);
        more.drain(..).for_each(give_back);
        for _ in 0..1000 {
            let large = piece(layout(LARGEST / 2 + 1, 1));
            assert!(is_piece(large));
            give_back(large);
        }
        give_back(stays);
        assert_eq!((piece(layout(1, 1)), BYTES.load(Ordering::Relaxed)), (start(), 1));
        give_back(start());
        assert_eq!(BYTES.load(Ordering::Relaxed), 0);
    }
}

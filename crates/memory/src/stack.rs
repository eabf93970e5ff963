// SPDX-License-Identifier: Apache-2.0
//! The stack: wiping what computations left there, and whose it is.

use crate::os;
use crate::registers::wipe_registers;
use std::cell::Cell;
use std::mem::MaybeUninit;
use std::ptr;

/// How much of the stack is overwritten, in bytes: more than AWS-LC's deepest private-key
/// operation uses, and little enough for a thread of 128 KiB.
const DEPTH: usize = 24 * 1024;

/// For kernels that compute many requests side by side, in bytes.
const DEEP: usize = 40 * 1024;

/// Enough for a call that goes a few frames deep, in bytes.
const SHALLOW: usize = 4 * 1024;

/// Enough for one call of a library that has a table of some hundred bytes in a frame.
const TABLE: usize = 2560;

/// Enough for one call of a library whose frames are small, in bytes.
const SLIGHT: usize = 1024;

/// Overwrites the stack below the caller, where the frames of earlier calls lay, and vector registers, as all of these do.
#[inline(never)]
pub fn wipe_stack() {
    wipe::<DEPTH>();
}

/// Overwrites the first 4 KiB below the caller: for the key setup of symmetric algorithms, which
/// goes no deeper. Takes some 50 ns.
#[inline(never)]
pub fn wipe_shallow_stack() {
    wipe::<SHALLOW>();
}

/// Overwrites the first 2.5 KiB below the caller: for messages under a key that a library makes a table of. Takes some 25 ns.
#[inline(never)]
pub fn wipe_table_stack() {
    wipe::<TABLE>();
}

/// Overwrites the first KiB below the caller: for what is done thousands of times in a millisecond. Takes some 10 ns.
#[inline(never)]
pub fn wipe_slight_stack() {
    wipe::<SLIGHT>();
}

/// Overwrites the first 40 KiB below the caller: for what computes many requests side by side.
#[inline(never)]
pub fn wipe_deep_stack() {
    wipe::<DEEP>();
}

/// Calls `run` in a frame of its own, and overwrites that and what lay below it as [`wipe_deep_stack`] does.
pub fn wiping<R>(run: impl FnOnce() -> R) -> R {
    #[inline(never)]
    fn apart<R>(run: impl FnOnce() -> R) -> R {
        run()
    }
    let result = apart(run);
    wipe_deep_stack();
    result
}

#[inline(always)]
fn wipe<const DEPTH: usize>() {
    let mut below = MaybeUninit::<[u8; DEPTH]>::uninit();
    // SAFETY: the array is writable; it needs no value before.
    unsafe { os::wipe(below.as_mut_ptr().cast(), DEPTH) };
    wipe_registers();
}

/// In bytes, of a thread's own stack from its beginning, what is told from all else. Below the beginning of the first thread's the kernel leaves 128 MiB
/// at least to it, however much of that it uses.
const OWN: usize = 8 * 1024 * 1024;

thread_local! {
    /// The thread's own stack: where it begins, and how long it is; `usize::MAX` where that is not known yet.
    static STACK: Cell<(usize, usize)> = const { Cell::new((0, usize::MAX)) };
}

unsafe extern "C" {
    /// pthread_self(3)
    safe fn pthread_self() -> libc::pthread_t;
}

/// Whether this runs on the stack that the thread began on, and not on another, as coroutines do. No, where that is not known or where it is deeper than
/// 8 MiB. Takes some instructions, but for a thread's first time.
#[inline]
pub fn is_own_stack() -> bool {
    let here = 0_u8;
    let here = ptr::from_ref(std::hint::black_box(&here)).addr();
    let (top, length) = match STACK.get() {
        (_, usize::MAX) => look(),
        known => known,
    };
    top.wrapping_sub(here) < length
}

/// Asks the C library for the bounds, which it does not know without `/proc`.
#[cold]
#[inline(never)]
fn look() -> (usize, usize) {
    let mut attributes = MaybeUninit::<libc::pthread_attr_t>::uninit();
    let (mut start, mut size, mut bounds) = (ptr::null_mut(), 0, (0, 0));
    // SAFETY: the attributes of this thread go into a place for them.
    if unsafe { libc::pthread_getattr_np(pthread_self(), attributes.as_mut_ptr()) } == 0 {
        let of = attributes.as_mut_ptr();
        // SAFETY: they were filled, and the other two are places for what is asked.
        if unsafe { libc::pthread_attr_getstack(of, &raw mut start, &raw mut size) } == 0 {
            bounds = (start.addr().wrapping_add(size), size.min(OWN));
        }
        // SAFETY: they were filled, and are not used any more.
        unsafe { libc::pthread_attr_destroy(of) };
    }
    STACK.set(bounds);
    bounds
}

#[cfg(test)]
mod tests {
    use super::*;

    #[inline(never)]
    fn leaves_a_secret() -> usize {
        let mut secret = [0x5a_u8; 512];
        std::hint::black_box(&mut secret);
        secret.as_ptr().addr()
    }

    #[test]
    fn what_a_call_left_behind_is_gone() {
        let place = leaves_a_secret();
        wipe_stack();
        let read = ptr::with_exposed_provenance::<u8>(place + 256);
        // SAFETY: the address lies in this thread's stack, which stays mapped.
        assert_ne!(unsafe { read.read_volatile() }, 0x5a);
    }

    #[test]
    fn a_thread_knows_its_own_stack() {
        let own = || {
            let elsewhere = vec![0_u8; 1 << 20];
            let (top, length) = look();
            is_own_stack() && top.wrapping_sub(elsewhere.as_ptr().addr()) >= length
        };
        assert!(own());
        assert!(std::thread::spawn(own).join().unwrap());
    }

    #[test]
    fn works_on_a_small_stack() {
        let small = std::thread::Builder::new().stack_size(128 * 1024).spawn(wipe_stack).unwrap();
        small.join().unwrap();
    }
}

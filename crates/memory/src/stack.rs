// SPDX-License-Identifier: Apache-2.0
//! Wiping what computations left on the stack.

use crate::os;
use std::mem::MaybeUninit;

/// How much of the stack is overwritten, in bytes: more than AWS-LC's deepest private-key
/// operation uses, and little enough for a thread of 128 KiB.
const DEPTH: usize = 24 * 1024;

/// For kernels that compute many requests side by side, in bytes.
const DEEP: usize = 40 * 1024;

/// Enough for a call that goes a few frames deep, in bytes.
const SHALLOW: usize = 4 * 1024;

/// Overwrites the stack below the caller, where the frames of earlier calls lay.
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
        let read = std::ptr::with_exposed_provenance::<u8>(place + 256);
        // SAFETY: the address lies in this thread's stack, which stays mapped.
        assert_ne!(unsafe { read.read_volatile() }, 0x5a);
    }

    #[test]
    fn works_on_a_small_stack() {
        let small = std::thread::Builder::new().stack_size(128 * 1024).spawn(wipe_stack).unwrap();
        small.join().unwrap();
    }
}

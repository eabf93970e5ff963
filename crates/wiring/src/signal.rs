// SPDX-License-Identifier: Apache-2.0
//! Signals that a write would end the host by: the other end of a pipe has gone, or a file may not be as long. Another module
//! writes, too.

use libc::{SIGPIPE, SIGXFSZ, c_int};
use std::mem::MaybeUninit;
use std::ptr;

const SIGNALS: [c_int; 2] = [SIGPIPE, SIGXFSZ];

/// While it lives, these signals of this thread wait, and it takes away what came meanwhile.
pub(crate) struct Unbroken {
    /// What was blocked before.
    before: libc::sigset_t,
    /// Those of ours that were not: what else comes is the host's.
    own: libc::sigset_t,
}

impl Unbroken {
    pub(crate) fn begin() -> Self {
        let (set, mut before) = (these(|_| true), these(|_| false));
        // SAFETY: a set of signals, and room for the set that was.
        unsafe { libc::pthread_sigmask(libc::SIG_BLOCK, &raw const set, &raw mut before) };
        // SAFETY: a set that the call above has written, or an empty one.
        let own = these(|signal| unsafe { libc::sigismember(&raw const before, signal) } == 0);
        Self { before, own }
    }
}

impl Drop for Unbroken {
    fn drop(&mut self) {
        let now = libc::timespec { tv_sec: 0, tv_nsec: 0 };
        // Of each there is one at most.
        for _ in SIGNALS {
            // SAFETY: the set and the time live meanwhile; nothing is told of the signal.
            let came =
                unsafe { libc::sigtimedwait(&raw const self.own, ptr::null_mut(), &raw const now) };
            if came < 0 {
                break;
            }
        }
        // SAFETY: as it was at the beginning.
        unsafe {
            libc::pthread_sigmask(libc::SIG_SETMASK, &raw const self.before, ptr::null_mut())
        };
    }
}

/// Runs what writes files: where one may not be as long, that is an error.
pub(crate) fn unbroken(work: &mut dyn FnMut()) {
    let _unbroken = Unbroken::begin();
    work();
}

/// Some of the signals.
fn these(is_one: impl Fn(c_int) -> bool) -> libc::sigset_t {
    let mut set = MaybeUninit::zeroed();
    // SAFETY: room for a set, which the call makes.
    unsafe { libc::sigemptyset(set.as_mut_ptr()) };
    for signal in SIGNALS.into_iter().filter(|signal| is_one(*signal)) {
        // SAFETY: a set that the call above has made.
        unsafe { libc::sigaddset(set.as_mut_ptr(), signal) };
    }
    // SAFETY: a set is a field of bits, and no value of them is wrong.
    unsafe { set.assume_init() }
}

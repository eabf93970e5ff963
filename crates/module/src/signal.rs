// SPDX-License-Identifier: Apache-2.0
//! Signals that a write of ours would end the host by: another module that talks to a process which has gone writes into
//! a closed pipe, and a file may be as long as files may be.

use std::mem::MaybeUninit;
use std::ptr;

/// While it lives, a signal of this thread waits (`SIGPIPE`, `SIGXFSZ`), and it takes away what came meanwhile.
pub(crate) struct Unbroken {
    signal: libc::c_int,
    /// What was blocked before; `None` where the host had blocked the signal by itself.
    before: Option<libc::sigset_t>,
}

impl Unbroken {
    pub(crate) fn begin(signal: libc::c_int) -> Self {
        let (set, mut before) = (one(signal), none());
        // SAFETY: a set of signals, and room for the set that was.
        unsafe { libc::pthread_sigmask(libc::SIG_BLOCK, &raw const set, &raw mut before) };
        // SAFETY: a set that the call above has written, or an empty one.
        let own = unsafe { libc::sigismember(&raw const before, signal) } == 0;
        Self { signal, before: own.then_some(before) }
    }
}

impl Drop for Unbroken {
    fn drop(&mut self) {
        let Some(before) = self.before else { return };
        let (set, now) = (one(self.signal), libc::timespec { tv_sec: 0, tv_nsec: 0 });
        // SAFETY: the set and the time live in this frame; nothing is told of the signal.
        unsafe { libc::sigtimedwait(&raw const set, ptr::null_mut(), &raw const now) };
        // SAFETY: as it was at the beginning.
        unsafe { libc::pthread_sigmask(libc::SIG_SETMASK, &raw const before, ptr::null_mut()) };
    }
}

/// Runs what writes files: where one may not be as long, that is an error.
pub(crate) fn unbroken(work: &mut dyn FnMut()) {
    let _unbroken = Unbroken::begin(libc::SIGXFSZ);
    work();
}

fn none() -> libc::sigset_t {
    let mut set = MaybeUninit::zeroed();
    // SAFETY: room for a set, which the call makes.
    unsafe { libc::sigemptyset(set.as_mut_ptr()) };
    // SAFETY: a set is a field of bits, and no value of them is wrong.
    unsafe { set.assume_init() }
}

fn one(signal: libc::c_int) -> libc::sigset_t {
    let mut set = none();
    // SAFETY: a set that lives in this frame.
    unsafe { libc::sigaddset(&raw mut set, signal) };
    set
}

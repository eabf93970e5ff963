// SPDX-License-Identifier: Apache-2.0
//! Signals that end a program, put off for a moment.

use std::io;
use std::marker::PhantomData;
use std::ptr;

const ENDS: [libc::c_int; 3] = [libc::SIGHUP, libc::SIGINT, libc::SIGTERM];

/// While it lives, ^C and its like wait until it is dropped: for what has to be taken away again.
/// It holds for the thread that made it, so for the whole program where that is the only one.
pub struct Deferred {
    before: libc::sigset_t,
    /// Only the thread that made it can restore what was before.
    _of_this_thread: PhantomData<*const ()>,
}

impl std::fmt::Debug for Deferred {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Deferred").finish_non_exhaustive()
    }
}

impl Deferred {
    /// Puts them off.
    ///
    /// # Errors
    /// The kernel's.
    pub fn new() -> io::Result<Self> {
        // SAFETY: a set of signals is a set of bits, and zeros are the empty one.
        let mut set: libc::sigset_t = unsafe { std::mem::zeroed() };
        let mut before = set;
        for signal in ENDS {
            // SAFETY: the set is initialised, and these signals exist.
            unsafe { libc::sigaddset(&raw mut set, signal) };
        }
        let (set, old) = (&raw const set, &raw mut before);
        // SAFETY: both sets live during the call.
        let result = unsafe { libc::pthread_sigmask(libc::SIG_BLOCK, set, old) };
        if result != 0 {
            return Err(io::Error::from_raw_os_error(result));
        }
        Ok(Self { before, _of_this_thread: PhantomData })
    }
}

impl Drop for Deferred {
    fn drop(&mut self) {
        let before = &raw const self.before;
        // SAFETY: the set lives during the call and was this thread's own.
        unsafe { libc::pthread_sigmask(libc::SIG_SETMASK, before, ptr::null_mut()) };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn blocked() -> u64 {
        let status = std::fs::read_to_string("/proc/thread-self/status").unwrap();
        let line = status.lines().find_map(|line| line.strip_prefix("SigBlk:")).unwrap();
        u64::from_str_radix(line.trim(), 16).unwrap()
    }

    #[test]
    fn signals_wait_as_long_as_it_lives() {
        let before = blocked();
        let deferred = Deferred::new().unwrap();
        let ends = ENDS.iter().fold(0, |set, signal| set | 1_u64 << (signal - 1));
        assert_eq!(blocked(), before | ends);
        drop(deferred);
        assert_eq!(blocked(), before);
    }
}

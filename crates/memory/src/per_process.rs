// SPDX-License-Identifier: Apache-2.0
//! Values of which each process has its own.

use crate::shared::wiped_on_fork;
use std::ptr;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicPtr, AtomicU64, Ordering};

/// A value that a forked child makes anew at first use, also a child that was made without the C library's
/// knowledge. What its parent had stays as the fork left it, locked mutexes included.
///
/// Where the kernel cannot wipe on fork (Linux before 4.14) a child goes on with its parent's.
#[derive(Debug)]
pub struct PerProcess<T: 'static> {
    make: fn(parents: Option<&'static T>) -> T,
    /// The number of this process; zero in a child.
    word: OnceLock<&'static AtomicU64>,
    /// The value that was made last, by this process or by one that it comes from.
    last: AtomicPtr<Made<T>>,
}

#[derive(Debug)]
struct Made<T> {
    /// The number of the process that made it.
    process: u64,
    value: T,
}

/// The numbers that have been given: a child goes on counting where it was forked, so that none of those it
/// comes from has its number.
static NUMBERS: AtomicU64 = AtomicU64::new(0);

impl<T: Send + Sync> PerProcess<T> {
    /// `make` is given what the parent of a forked child had; it must wait for no lock in it.
    #[must_use]
    pub const fn new(make: fn(parents: Option<&'static T>) -> T) -> Self {
        Self { make, word: OnceLock::new(), last: AtomicPtr::new(ptr::null_mut()) }
    }

    /// This process's value.
    #[inline]
    pub fn get(&self) -> &'static T {
        let process = self.process();
        // SAFETY: null, or a leaked box that was complete before its address was stored.
        match unsafe { self.last.load(Ordering::Acquire).as_ref() } {
            Some(made) if made.process == process => &made.value,
            parents => self.first(process, parents),
        }
    }

    #[inline]
    fn process(&self) -> u64 {
        let word = self.word.get_or_init(|| match wiped_on_fork() {
            Ok(words) => &words[0],
            Err(_) => Box::leak(Box::new(AtomicU64::new(0))),
        });
        match word.load(Ordering::Acquire) {
            0 => {
                let number = NUMBERS.fetch_add(1, Ordering::Relaxed) + 1;
                let first = word.compare_exchange(0, number, Ordering::AcqRel, Ordering::Acquire);
                first.map_or_else(|faster| faster, |_| number)
            }
            number => number,
        }
    }

    #[cold]
    fn first(&self, process: u64, parents: Option<&'static Made<T>>) -> &'static T {
        let value = (self.make)(parents.map(|parents| &parents.value));
        // Never given back, not even where another thread is faster.
        let made: &'static Made<T> = Box::leak(Box::new(Made { process, value }));
        let before = parents.map_or(ptr::null_mut(), |parents| ptr::from_ref(parents).cast_mut());
        let after = ptr::from_ref(made).cast_mut();
        // From here on a child finds it as its parent's: before anyone in this process has it.
        match self.last.compare_exchange(before, after, Ordering::AcqRel, Ordering::Acquire) {
            Ok(_) => &made.value,
            Err(_) => self.get(),
        }
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use std::sync::Mutex;

    /// What a forked child says.
    pub(crate) fn is_so_in_a_child(question: impl FnOnce() -> bool) -> bool {
        // SAFETY: the child reads memory, allocates a few bytes at most and leaves by `_exit`.
        let child = unsafe { libc::fork() };
        if child == 0 {
            let answer = question();
            // SAFETY: ends the child without running anything of the parent's.
            unsafe { libc::_exit(i32::from(!answer)) };
        }
        let mut status = -1;
        // SAFETY: `status` is ours.
        let waited = unsafe { libc::waitpid(child, &raw mut status, 0) };
        assert_eq!(waited, child);
        status == 0
    }

    #[test]
    fn a_child_has_its_own_though_the_parents_is_locked() {
        static VALUE: PerProcess<Mutex<u32>> =
            PerProcess::new(|parents| Mutex::new(if parents.is_some() { 9 } else { 1 }));
        let locked = VALUE.get().lock().expect("no panic");
        assert_eq!(*locked, 1);
        assert!(is_so_in_a_child(|| VALUE.get().try_lock().is_ok_and(|value| *value == 9)));
        drop(locked);
        assert_eq!(*VALUE.get().lock().expect("no panic"), 1);
    }

    #[test]
    fn threads_that_come_first_together_get_one_value() {
        static VALUE: PerProcess<u8> = PerProcess::new(|_| 0);
        let addresses: Vec<usize> = std::thread::scope(|scope| {
            let threads = [(); 4].map(|()| scope.spawn(|| ptr::from_ref(VALUE.get()).addr()));
            threads.map(|thread| thread.join().expect("no panic")).into()
        });
        assert!(addresses.iter().all(|address| *address == addresses[0]));
    }
}

// SPDX-License-Identifier: Apache-2.0
//! A value that is replaced while others read it.

use std::iter;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Mutex, OnceLock, PoisonError};

/// The last of several values. It is read without a lock, and one that was replaced stays until all go: a reader may
/// have it for as long as it likes, and replacements are rare.
#[derive(Debug)]
pub(crate) struct Versions<T> {
    /// Most programs see no other.
    first: T,
    /// The place of the value that counts; 0 is the first's.
    last: AtomicU32,
    /// The others. Each row has twice the places of the one before.
    rows: [OnceLock<Box<[OnceLock<T>]>>; ROWS],
    adding: Mutex<()>,
}

/// Enough for 2³² - 1 values.
const ROWS: usize = 32;

impl<T> Versions<T> {
    pub(crate) fn new(first: T) -> Self {
        Self {
            first,
            last: AtomicU32::new(0),
            rows: [const { OnceLock::new() }; ROWS],
            adding: Mutex::new(()),
        }
    }

    /// The value that counts now.
    #[inline]
    pub(crate) fn get(&self) -> &T {
        match self.last.load(Ordering::Acquire) {
            0 => &self.first,
            last => self.later(last),
        }
    }

    #[cold]
    #[inline(never)]
    fn later(&self, at: u32) -> &T {
        let (row, column) = row_of(at);
        let value = self.rows[row].get().and_then(|row| row[column].get());
        value.expect("a value is there before its place is the last")
    }

    /// An earlier value counts again, where one is this.
    pub(crate) fn again(&self, is_it: impl Fn(&T) -> bool) -> bool {
        let _adding = self.adding.lock().unwrap_or_else(PoisonError::into_inner);
        let later = self.rows.iter().filter_map(OnceLock::get).flatten();
        let all = iter::once(&self.first).chain(later.map_while(OnceLock::get));
        let found = (0..).zip(all).find(|(_, value)| is_it(value));
        found.map(|(at, _)| self.last.store(at, Ordering::Release)).is_some()
    }

    /// Replaces the value; says whether there was room.
    pub(crate) fn replace(&self, value: T) -> bool {
        let _adding = self.adding.lock().unwrap_or_else(PoisonError::into_inner);
        let all = self.rows.iter().filter_map(OnceLock::get).flatten();
        let known = all.map_while(OnceLock::get).count();
        let Ok(next) = u32::try_from(known + 1) else { return false };
        let (row, column) = row_of(next);
        let new_row = || (0..1_usize << row).map(|_| OnceLock::new()).collect();
        let is_new = self.rows[row].get_or_init(new_row)[column].set(value).is_ok();
        if is_new {
            self.last.store(next, Ordering::Release);
        }
        is_new
    }
}

/// Row and column of a place: 1; 2, 3; 4, 5, 6, 7; …
#[inline]
const fn row_of(at: u32) -> (usize, usize) {
    let row = at.ilog2();
    (row as usize, (at - (1 << row)) as usize)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::thread;

    #[test]
    fn places_follow_each_other() {
        let places: Vec<_> = (1..9).map(row_of).collect();
        let wanted = [(0, 0), (1, 0), (1, 1), (2, 0), (2, 1), (2, 2), (2, 3), (3, 0)];
        assert_eq!(places, wanted);
        assert_eq!(row_of(u32::MAX), (ROWS - 1, (1 << (ROWS - 1)) - 1));
    }

    #[test]
    fn readers_see_values_in_their_order_and_keep_what_they_have() {
        let versions = Versions::new(0);
        let first = versions.get();
        thread::scope(|scope| {
            for _ in 0..3 {
                scope.spawn(|| {
                    let mut seen = 0;
                    while seen < 1_000 {
                        let now = *versions.get();
                        assert!(now >= seen);
                        seen = now;
                    }
                });
            }
            for value in 1..=1_000 {
                assert!(versions.replace(value));
            }
        });
        assert_eq!((*first, *versions.get()), (0, 1_000));
        for value in [0, 7, 1_000, 1] {
            assert!(versions.again(|one| *one == value));
            assert_eq!(*versions.get(), value);
        }
        assert!(!versions.again(|one| *one == 1_001) && versions.replace(1_001));
        assert_eq!(*versions.get(), 1_001);
    }
}

// SPDX-License-Identifier: Apache-2.0
//! How much of the token's tree a search asks for: nodes that are remembered need not be read, but which rows it finds, and so
//! which nodes lead to them, is not known before.

use std::sync::atomic::{AtomicU8, AtomicU32, AtomicU64, Ordering};

/// What was seen of the tree.
#[derive(Debug, Default)]
pub(crate) struct Levels {
    height: AtomicU8,
    /// How many levels had to be read for each of the last four searches, a byte each.
    last: AtomicU32,
    /// When it was asked last, as changes are counted.
    generation: AtomicU64,
}

/// The levels that a search asks for: so many of a tree that is so high, from the lowest on.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub(crate) struct Asked {
    pub(crate) height: u8,
    pub(crate) levels: u8,
}

impl Levels {
    /// As many as the last searches had to read; after a change all, as what is remembered is not of its state. There are three
    /// statements, not one for each number: where more than the leaves are needed, it asks for all.
    pub(crate) fn usual(&self, generation: Option<u64>) -> Asked {
        let (whole, now) = (self.whole(), generation.unwrap_or(u64::MAX));
        if self.generation.swap(now, Ordering::Relaxed) != now {
            return whole;
        }
        let last = self.last.load(Ordering::Relaxed).to_le_bytes();
        match last.into_iter().max() {
            Some(levels @ ..2) => Asked { levels: levels.min(whole.height), ..whole },
            _ => whole,
        }
    }

    pub(crate) fn whole(&self) -> Asked {
        let height = self.height.load(Ordering::Relaxed);
        Asked { height, levels: height }
    }

    /// The tree never becomes less high.
    pub(crate) fn grown(&self, height: u8) {
        self.height.fetch_max(height, Ordering::Relaxed);
    }

    /// A search had to read so many levels.
    pub(crate) fn needed(&self, levels: u8) {
        let next = |last: u32| Some(last << 8 | u32::from(levels));
        // It always has a value to set.
        self.last.fetch_update(Ordering::Relaxed, Ordering::Relaxed, next).unwrap_or_default();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_search_asks_for_what_the_last_four_needed() {
        let levels = Levels::default();
        levels.grown(3);
        levels.grown(2);
        levels.usual(Some(2));
        let asked = |needed| {
            levels.needed(needed);
            levels.usual(Some(2)).levels
        };
        assert_eq!([0, 1, 0, 0, 0, 0].map(asked), [0, 1, 1, 1, 1, 0]);
        assert_eq!([2, 0, 1, 1, 1].map(asked), [3, 3, 3, 3, 1]);
        assert_eq!(levels.whole(), Asked { height: 3, levels: 3 });
        // Once after each change it asks for all.
        assert_eq!([4, 4, 6].map(|now| levels.usual(Some(now)).levels), [3, 1, 3]);
    }

    #[test]
    fn a_search_asks_for_no_level_that_is_not_there() {
        let levels = Levels::default();
        levels.needed(1);
        assert_eq!([2, 2].map(|now| levels.usual(Some(now))), [Asked { height: 0, levels: 0 }; 2]);
    }
}

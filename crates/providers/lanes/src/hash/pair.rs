// SPDX-License-Identifier: Apache-2.0
//! Two vectors side by side: twice the lanes, and work for the processor while one waits for its own results.

use super::rows::Rows;
use super::vector::{COLUMNS, Vector};

/// The lanes of the first, then those of the second.
#[derive(Clone, Copy)]
pub(super) struct Pair<V>(V, V);

impl<V: Vector> Vector for Pair<V> {
    type Word = V::Word;
    const LANES: usize = 2 * V::LANES;
    const ROW: usize = V::ROW;

    #[inline(always)]
    fn splat(word: V::Word) -> Self {
        Self(V::splat(word), V::splat(word))
    }

    #[inline(always)]
    fn add(self, other: Self) -> Self {
        Self(self.0.add(other.0), self.1.add(other.1))
    }

    #[inline(always)]
    fn settled(self) -> Self {
        Self(self.0.settled(), self.1.settled())
    }

    #[inline(always)]
    fn xor(self, other: Self) -> Self {
        Self(self.0.xor(other.0), self.1.xor(other.1))
    }

    #[inline(always)]
    fn rotate(self, count: u32) -> Self {
        Self(self.0.rotate(count), self.1.rotate(count))
    }

    #[inline(always)]
    fn shift_right(self, count: u32) -> Self {
        Self(self.0.shift_right(count), self.1.shift_right(count))
    }

    #[inline(always)]
    fn ternary<const TABLE: i32>(self, b: Self, c: Self) -> Self {
        Self(self.0.ternary::<TABLE>(b.0, c.0), self.1.ternary::<TABLE>(b.1, c.1))
    }

    #[inline(always)]
    fn swap_bytes(self) -> Self {
        Self(self.0.swap_bytes(), self.1.swap_bytes())
    }

    #[inline(always)]
    fn load(from: &[u8]) -> Self {
        let (first, second) = from.split_at(size_of::<V>());
        Self(V::load(first), V::load(second))
    }

    #[inline(always)]
    fn store(self, to: &mut [u8]) {
        let (first, second) = to.split_at_mut(size_of::<V>());
        self.0.store(first);
        self.1.store(second);
    }

    #[inline(always)]
    fn transpose(rows: &Rows<'_>, first: usize, at: usize, count: usize) -> [Self; COLUMNS] {
        let one = V::transpose(rows, first, at, count);
        let two = V::transpose(rows, first + V::LANES, at, count);
        let mut both = [Self(one[0], two[0]); COLUMNS];
        for (i, both) in both.iter_mut().enumerate() {
            *both = Self(one[i], two[i]);
        }
        both
    }
}

// SPDX-License-Identifier: Apache-2.0
//! A vector of one word, for processors without the instructions of the others: a single message at a time, by the same code.

use super::rows::Rows;
use super::vector::{COLUMNS, Vector};
use std::ops::{BitAnd, BitOr, BitXor, Not};

/// One word.
#[derive(Clone, Copy)]
pub(super) struct One<W>(W);

/// What is done with a word beside logic.
pub(super) trait Word:
    Copy + BitAnd<Output = Self> + BitOr<Output = Self> + BitXor<Output = Self> + Not<Output = Self>
{
    const ZERO: Self;
    fn add(self, other: Self) -> Self;
    fn rotate(self, count: u32) -> Self;
    fn shift_right(self, count: u32) -> Self;
    fn swap_bytes(self) -> Self;
    /// Of the first bytes, the least significant first.
    fn read(from: &[u8]) -> Self;
    /// The reverse of [`Self::read`].
    fn write(self, to: &mut [u8]);
}

impl Word for u32 {
    const ZERO: Self = 0;

    fn add(self, other: Self) -> Self {
        self.wrapping_add(other)
    }

    fn rotate(self, count: u32) -> Self {
        self.rotate_left(count)
    }

    fn shift_right(self, count: u32) -> Self {
        self >> count
    }

    fn swap_bytes(self) -> Self {
        self.swap_bytes()
    }

    fn read(from: &[u8]) -> Self {
        Self::from_le_bytes(*from.first_chunk().expect("a whole word"))
    }

    fn write(self, to: &mut [u8]) {
        *to.first_chunk_mut().expect("a whole word") = self.to_le_bytes();
    }
}

impl Word for u64 {
    const ZERO: Self = 0;

    fn add(self, other: Self) -> Self {
        self.wrapping_add(other)
    }

    fn rotate(self, count: u32) -> Self {
        self.rotate_left(count)
    }

    fn shift_right(self, count: u32) -> Self {
        self >> count
    }

    fn swap_bytes(self) -> Self {
        self.swap_bytes()
    }

    fn read(from: &[u8]) -> Self {
        Self::from_le_bytes(*from.first_chunk().expect("a whole word"))
    }

    fn write(self, to: &mut [u8]) {
        *to.first_chunk_mut().expect("a whole word") = self.to_le_bytes();
    }
}

impl<W: Word> Vector for One<W> {
    type Word = W;
    const LANES: usize = 1;
    const ROW: usize = 8;

    #[inline(always)]
    fn splat(word: W) -> Self {
        Self(word)
    }

    #[inline(always)]
    fn add(self, other: Self) -> Self {
        Self(self.0.add(other.0))
    }

    #[inline(always)]
    fn settled(self) -> Self {
        self
    }

    #[inline(always)]
    fn xor(self, other: Self) -> Self {
        Self(self.0 ^ other.0)
    }

    #[inline(always)]
    fn rotate(self, count: u32) -> Self {
        Self(self.0.rotate(count))
    }

    #[inline(always)]
    fn shift_right(self, count: u32) -> Self {
        Self(self.0.shift_right(count))
    }

    #[inline(always)]
    fn ternary<const TABLE: i32>(self, b: Self, c: Self) -> Self {
        // The bits of each row of the truth table that says 1.
        let of = |word: W, there: i32| if there == 0 { !word } else { word };
        let mut all = W::ZERO;
        for row in 0..8 {
            if TABLE >> row & 1 == 1 {
                all = all | (of(self.0, row & 4) & of(b.0, row & 2) & of(c.0, row & 1));
            }
        }
        Self(all)
    }

    #[inline(always)]
    fn swap_bytes(self) -> Self {
        Self(self.0.swap_bytes())
    }

    #[inline(always)]
    fn load(from: &[u8]) -> Self {
        Self(W::read(from))
    }

    #[inline(always)]
    fn store(self, to: &mut [u8]) {
        self.0.write(to);
    }

    #[inline(always)]
    fn transpose(rows: &Rows<'_>, first: usize, at: usize, count: usize) -> [Self; COLUMNS] {
        let mut columns = [Self(W::ZERO); COLUMNS];
        let bytes = rows.read(first, at, count * size_of::<W>());
        for (column, word) in columns.iter_mut().zip(bytes.chunks_exact(size_of::<W>())) {
            *column = Self::load(word);
        }
        columns
    }
}

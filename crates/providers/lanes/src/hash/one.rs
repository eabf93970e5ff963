// SPDX-License-Identifier: Apache-2.0
//! A vector of one word, for processors without the instructions of the others: a single message at a time, by the same code.

use super::rows::Rows;
use super::vector::{COLUMNS, Vector};

/// One word.
#[derive(Clone, Copy)]
pub(super) struct One<W>(W);

/// A function of three bits of each word, by its truth table: of the rows of ones, which bits are in them.
macro_rules! ternary {
    ($word:ty, $table:expr, $a:expr, $b:expr, $c:expr) => {{
        let mut all: $word = 0;
        let mut row = 0;
        while row < 8 {
            if $table >> row & 1 == 1 {
                let of = |bits: $word, there: i32| if there == 0 { !bits } else { bits };
                all |= of($a, row & 4) & of($b, row & 2) & of($c, row & 1);
            }
            row += 1;
        }
        all
    }};
}

macro_rules! word {
    ($word:ty) => {
        impl Vector for One<$word> {
            type Word = $word;
            const LANES: usize = 1;
            const ROW: usize = 8;

            #[inline(always)]
            fn splat(word: $word) -> Self {
                Self(word)
            }

            #[inline(always)]
            fn add(self, other: Self) -> Self {
                Self(self.0.wrapping_add(other.0))
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
                Self(self.0.rotate_left(count))
            }

            #[inline(always)]
            fn shift_right(self, count: u32) -> Self {
                Self(self.0 >> count)
            }

            #[inline(always)]
            fn ternary<const TABLE: i32>(self, b: Self, c: Self) -> Self {
                Self(ternary!($word, TABLE, self.0, b.0, c.0))
            }

            #[inline(always)]
            fn swap_bytes(self) -> Self {
                Self(self.0.swap_bytes())
            }

            #[inline(always)]
            fn load(from: &[u8]) -> Self {
                Self(<$word>::from_le_bytes(*from.first_chunk().expect("a whole word")))
            }

            #[inline(always)]
            fn store(self, to: &mut [u8]) {
                *to.first_chunk_mut().expect("a whole word") = self.0.to_le_bytes();
            }

            #[inline(always)]
            fn transpose(
                rows: &Rows<'_>,
                first: usize,
                at: usize,
                count: usize,
            ) -> [Self; COLUMNS] {
                let mut columns = [Self(0); COLUMNS];
                let bytes = rows.read(first, at, count * size_of::<$word>());
                for (column, word) in columns.iter_mut().zip(bytes.chunks_exact(size_of::<$word>()))
                {
                    *column = Self::load(word);
                }
                columns
            }
        }
    };
}

word!(u32);
word!(u64);

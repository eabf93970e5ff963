// SPDX-License-Identifier: Apache-2.0
//! Vectors of 256 bits with the instructions that AVX-512 adds for them. (Why the intrinsics may be called: see [`Vector`].)

use super::avx2::Ymm;
use super::rows::Rows;
use super::vector::{COLUMNS, Vector};
use core::arch::x86_64::*;

/// 4 words of 64 bits.
#[derive(Clone, Copy)]
pub(super) struct Short(Ymm<u64>);

impl Vector for Short {
    type Word = u64;
    const LANES: usize = 4;
    const ROW: usize = 4;

    #[inline(always)]
    fn splat(word: u64) -> Self {
        Self(Ymm::<u64>::splat(word))
    }

    #[inline(always)]
    fn add(self, other: Self) -> Self {
        Self(self.0.add(other.0))
    }

    #[inline(always)]
    fn settled(self) -> Self {
        Self(self.0.settled())
    }

    #[inline(always)]
    fn xor(self, other: Self) -> Self {
        Self(self.0.xor(other.0))
    }

    #[inline(always)]
    fn rotate(self, count: u32) -> Self {
        let count = Self::splat(u64::from(count));
        // SAFETY: only the kernels of this width with AVX-512, which run where the instructions exist, come here.
        Self(Ymm::of(unsafe { _mm256_rolv_epi64(self.0.register(), count.0.register()) }))
    }

    #[inline(always)]
    fn shift_right(self, count: u32) -> Self {
        Self(self.0.shift_right(count))
    }

    #[inline(always)]
    fn ternary<const TABLE: i32>(self, b: Self, c: Self) -> Self {
        let [a, b, c] = [self, b, c].map(|vector| vector.0.register());
        // SAFETY: as in `rotate`.
        Self(Ymm::of(unsafe { _mm256_ternarylogic_epi64::<TABLE>(a, b, c) }))
    }

    #[inline(always)]
    fn swap_bytes(self) -> Self {
        Self(self.0.swap_bytes())
    }

    #[inline(always)]
    fn load(from: &[u8]) -> Self {
        Self(Ymm::<u64>::load(from))
    }

    #[inline(always)]
    fn store(self, to: &mut [u8]) {
        self.0.store(to);
    }

    #[inline(always)]
    fn transpose(rows: &Rows<'_>, first: usize, at: usize, count: usize) -> [Self; COLUMNS] {
        Ymm::<u64>::transpose(rows, first, at, count).map(Self)
    }
}

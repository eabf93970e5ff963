// SPDX-License-Identifier: Apache-2.0
//! Vectors of 512 bits. (Why the intrinsics may be called: see [`Vector`].)

use super::rows::Rows;
use super::vector::{COLUMNS, Vector};
use core::arch::asm;
use core::arch::x86_64::*;
use std::marker::PhantomData;

/// 16 words of 32 bits or 8 of 64.
#[derive(Clone, Copy)]
pub(super) struct Zmm<W>(__m512i, PhantomData<W>);

type Two = unsafe fn(__m512i, __m512i) -> __m512i;

/// An intrinsic that needs nothing but its instructions.
#[inline(always)]
fn two(operation: Two, a: __m512i, b: __m512i) -> __m512i {
    // SAFETY: only the kernels of this width, which run where the instructions exist, come here; the operation is one of
    // the intrinsics below.
    unsafe { operation(a, b) }
}

#[inline(always)]
fn settled(vector: __m512i) -> __m512i {
    #[target_feature(enable = "avx512f")]
    #[inline]
    fn unseen(mut vector: __m512i) -> __m512i {
        // SAFETY: there is no instruction in it.
        unsafe {
            asm!("/* {0} */", inout(zmm_reg) vector, options(pure, nomem, nostack, preserves_flags))
        };
        vector
    }
    // SAFETY: as in `two`.
    unsafe { unseen(vector) }
}

#[inline(always)]
fn splat32(word: u32) -> __m512i {
    // SAFETY: as in `two`.
    unsafe { _mm512_set1_epi32(word.cast_signed()) }
}

#[inline(always)]
fn splat64(word: u64) -> __m512i {
    // SAFETY: as in `two`.
    unsafe { _mm512_set1_epi64(word.cast_signed()) }
}

#[inline(always)]
fn ternary<const TABLE: i32>(a: __m512i, b: __m512i, c: __m512i) -> __m512i {
    // SAFETY: as in `two`.
    unsafe { _mm512_ternarylogic_epi32::<TABLE>(a, b, c) }
}

#[inline(always)]
fn load(from: &[u8]) -> __m512i {
    let from: &[u8; 64] = from.first_chunk().expect("a whole vector");
    // SAFETY: as in `two`; 64 bytes are readable.
    unsafe { _mm512_loadu_si512(from.as_ptr().cast()) }
}

#[inline(always)]
fn store(vector: __m512i, to: &mut [u8]) {
    let to: &mut [u8; 64] = to.first_chunk_mut().expect("a whole vector");
    // SAFETY: as in `two`; 64 bytes are writable.
    unsafe { _mm512_storeu_si512(to.as_mut_ptr().cast(), vector) }
}

/// The first `words` words of 32 bits, at most 16, of one lane; zeros after them.
#[inline(always)]
fn row(rows: &Rows<'_>, lane: usize, at: usize, words: usize) -> __m512i {
    let start = rows.start(lane, at, 4 * words);
    let mask = u16::MAX >> (16 - words);
    // SAFETY: as in `two`; `words` words are readable from there, and the mask leaves the others alone.
    unsafe { _mm512_maskz_loadu_epi32(mask, start.cast()) }
}

/// The quarters of `a`, then of `b`, whose numbers `WHICH` has: 0x88 for 0 and 2, 0xdd for 1 and 3.
#[inline(always)]
fn quarters<const WHICH: i32>(a: __m512i, b: __m512i) -> __m512i {
    // SAFETY: as in `two`.
    unsafe { _mm512_shuffle_i64x2::<WHICH>(a, b) }
}

/// Swaps neighbours' halves: `(a0 b0 a2 b2 ...)` and `(a1 b1 a3 b3 ...)`, in units of the two operations.
#[inline(always)]
fn weave<const N: usize>(v: &mut [__m512i; N], distance: usize, low: Two, high: Two) {
    for i in 0..N {
        if i & distance == 0 {
            let (a, b) = (v[i], v[i + distance]);
            v[i] = two(low, a, b);
            v[i + distance] = two(high, a, b);
        }
    }
}

impl Vector for Zmm<u32> {
    type Word = u32;
    const LANES: usize = 16;
    const ROW: usize = 16;

    #[inline(always)]
    fn splat(word: u32) -> Self {
        Self(splat32(word), PhantomData)
    }

    #[inline(always)]
    fn add(self, other: Self) -> Self {
        Self(two(_mm512_add_epi32, self.0, other.0), PhantomData)
    }

    #[inline(always)]
    fn settled(self) -> Self {
        Self(settled(self.0), PhantomData)
    }

    #[inline(always)]
    fn xor(self, other: Self) -> Self {
        Self(two(_mm512_xor_si512, self.0, other.0), PhantomData)
    }

    #[inline(always)]
    fn rotate(self, count: u32) -> Self {
        Self(two(_mm512_rolv_epi32, self.0, splat32(count)), PhantomData)
    }

    #[inline(always)]
    fn shift_right(self, count: u32) -> Self {
        Self(two(_mm512_srlv_epi32, self.0, splat32(count)), PhantomData)
    }

    #[inline(always)]
    fn ternary<const TABLE: i32>(self, b: Self, c: Self) -> Self {
        Self(ternary::<TABLE>(self.0, b.0, c.0), PhantomData)
    }

    #[inline(always)]
    fn swap_bytes(self) -> Self {
        let order = splat_quarter([0x0405_0607_0001_0203, 0x0c0d_0e0f_0809_0a0b]);
        Self(two(_mm512_shuffle_epi8, self.0, order), PhantomData)
    }

    #[inline(always)]
    fn load(from: &[u8]) -> Self {
        Self(load(from), PhantomData)
    }

    #[inline(always)]
    fn store(self, to: &mut [u8]) {
        store(self.0, to);
    }

    #[inline(always)]
    fn transpose(rows: &Rows<'_>, first: usize, at: usize, count: usize) -> [Self; COLUMNS] {
        let mut v = [splat32(0); 16];
        for (lane, v) in v.iter_mut().enumerate() {
            *v = row(rows, first + lane, at, count);
        }
        weave(&mut v, 1, _mm512_unpacklo_epi32, _mm512_unpackhi_epi32);
        weave(&mut v, 2, _mm512_unpacklo_epi64, _mm512_unpackhi_epi64);
        weave(&mut v, 4, quarters::<0x88>, quarters::<0xdd>);
        weave(&mut v, 8, quarters::<0x88>, quarters::<0xdd>);
        // Now v[i] has the column of i with the bits of its number rearranged by the three kinds of steps.
        let mut columns = [Self(v[0], PhantomData); COLUMNS];
        for (column, i) in columns.iter_mut().zip(COLUMN_OF_32) {
            column.0 = v[i];
        }
        columns
    }
}

/// Where [`Vector::transpose`] leaves each column.
const COLUMN_OF_32: [usize; 16] = [0, 2, 1, 3, 4, 6, 5, 7, 8, 10, 9, 11, 12, 14, 13, 15];
const COLUMN_OF_64: [usize; 8] = [0, 1, 2, 3, 4, 5, 6, 7];

#[inline(always)]
fn splat_quarter(words: [u64; 2]) -> __m512i {
    let [low, high] = words.map(splat64);
    // SAFETY: as in `two`.
    unsafe { _mm512_unpacklo_epi64(low, high) }
}

impl Vector for Zmm<u64> {
    type Word = u64;
    const LANES: usize = 8;
    const ROW: usize = 8;

    #[inline(always)]
    fn splat(word: u64) -> Self {
        Self(splat64(word), PhantomData)
    }

    #[inline(always)]
    fn add(self, other: Self) -> Self {
        Self(two(_mm512_add_epi64, self.0, other.0), PhantomData)
    }

    #[inline(always)]
    fn settled(self) -> Self {
        Self(settled(self.0), PhantomData)
    }

    #[inline(always)]
    fn xor(self, other: Self) -> Self {
        Self(two(_mm512_xor_si512, self.0, other.0), PhantomData)
    }

    #[inline(always)]
    fn rotate(self, count: u32) -> Self {
        Self(two(_mm512_rolv_epi64, self.0, splat64(u64::from(count))), PhantomData)
    }

    #[inline(always)]
    fn shift_right(self, count: u32) -> Self {
        Self(two(_mm512_srlv_epi64, self.0, splat64(u64::from(count))), PhantomData)
    }

    #[inline(always)]
    fn ternary<const TABLE: i32>(self, b: Self, c: Self) -> Self {
        Self(ternary::<TABLE>(self.0, b.0, c.0), PhantomData)
    }

    #[inline(always)]
    fn swap_bytes(self) -> Self {
        let order = splat_quarter([0x0001_0203_0405_0607, 0x0809_0a0b_0c0d_0e0f]);
        Self(two(_mm512_shuffle_epi8, self.0, order), PhantomData)
    }

    #[inline(always)]
    fn load(from: &[u8]) -> Self {
        Self(load(from), PhantomData)
    }

    #[inline(always)]
    fn store(self, to: &mut [u8]) {
        store(self.0, to);
    }

    #[inline(always)]
    fn transpose(rows: &Rows<'_>, first: usize, at: usize, count: usize) -> [Self; COLUMNS] {
        let mut v = [splat64(0); 8];
        for (lane, v) in v.iter_mut().enumerate() {
            *v = row(rows, first + lane, at, 2 * count);
        }
        weave(&mut v, 1, _mm512_unpacklo_epi64, _mm512_unpackhi_epi64);
        weave(&mut v, 2, quarters::<0x88>, quarters::<0xdd>);
        weave(&mut v, 4, quarters::<0x88>, quarters::<0xdd>);
        let mut columns = [Self(v[0], PhantomData); COLUMNS];
        for (column, i) in columns.iter_mut().zip(COLUMN_OF_64) {
            column.0 = v[i];
        }
        columns
    }
}

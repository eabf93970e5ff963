// SPDX-License-Identifier: Apache-2.0
//! Vectors of 256 bits. (Why the intrinsics may be called: see [`Vector`].)

use super::rows::Rows;
use super::vector::{COLUMNS, Vector, table};
use core::arch::asm;
use core::arch::x86_64::*;
use std::marker::PhantomData;

/// 8 words of 32 bits or 4 of 64.
#[derive(Clone, Copy)]
pub(super) struct Ymm<W>(__m256i, PhantomData<W>);

impl<W> Ymm<W> {
    #[inline(always)]
    pub(super) fn of(register: __m256i) -> Self {
        Self(register, PhantomData)
    }

    #[inline(always)]
    pub(super) fn register(self) -> __m256i {
        self.0
    }
}

type Two = unsafe fn(__m256i, __m256i) -> __m256i;

/// An intrinsic that needs nothing but its instructions.
#[inline(always)]
fn two(operation: Two, a: __m256i, b: __m256i) -> __m256i {
    // SAFETY: only the kernels of this width, which run where the instructions exist, come here; the operation is one of
    // the intrinsics below.
    unsafe { operation(a, b) }
}

#[inline(always)]
fn settled(vector: __m256i) -> __m256i {
    #[target_feature(enable = "avx2")]
    #[inline]
    fn unseen(mut vector: __m256i) -> __m256i {
        // SAFETY: there is no instruction in it.
        unsafe {
            asm!("/* {0} */", inout(ymm_reg) vector, options(pure, nomem, nostack, preserves_flags))
        };
        vector
    }
    // SAFETY: as in `two`.
    unsafe { unseen(vector) }
}

#[inline(always)]
fn splat32(word: u32) -> __m256i {
    // SAFETY: as in `two`.
    unsafe { _mm256_set1_epi32(word.cast_signed()) }
}

#[inline(always)]
fn splat64(word: u64) -> __m256i {
    // SAFETY: as in `two`.
    unsafe { _mm256_set1_epi64x(word.cast_signed()) }
}

#[inline(always)]
fn xor(a: __m256i, b: __m256i) -> __m256i {
    two(_mm256_xor_si256, a, b)
}

#[inline(always)]
fn or(a: __m256i, b: __m256i) -> __m256i {
    two(_mm256_or_si256, a, b)
}

#[inline(always)]
fn ternary<const TABLE: i32>(a: __m256i, b: __m256i, c: __m256i) -> __m256i {
    let and = |a, b| two(_mm256_and_si256, a, b);
    match TABLE {
        table::PARITY => xor(xor(a, b), c),
        table::CHOOSE => xor(c, and(a, xor(b, c))),
        table::MAJORITY => or(and(a, b), and(c, xor(a, b))),
        table::EITHER => xor(b, or(a, xor(c, splat32(u32::MAX)))),
        table::CHI => xor(a, two(_mm256_andnot_si256, b, c)),
        _ => unreachable!("no such table"),
    }
}

#[inline(always)]
fn load(from: &[u8]) -> __m256i {
    let from: &[u8; 32] = from.first_chunk().expect("a whole vector");
    // SAFETY: as in `two`; 32 bytes are readable.
    unsafe { _mm256_loadu_si256(from.as_ptr().cast()) }
}

#[inline(always)]
fn store(vector: __m256i, to: &mut [u8]) {
    let to: &mut [u8; 32] = to.first_chunk_mut().expect("a whole vector");
    // SAFETY: as in `two`; 32 bytes are writable.
    unsafe { _mm256_storeu_si256(to.as_mut_ptr().cast(), vector) }
}

/// Ones in the first `words` words of 32 bits.
const MASKS: [[i32; 8]; 9] = {
    let mut masks = [[0; 8]; 9];
    let mut words = 0;
    while words < 9 {
        let mut i = 0;
        while i < words {
            masks[words][i] = -1;
            i += 1;
        }
        words += 1;
    }
    masks
};

/// The first `words` words of 32 bits, at most 8, of one lane; zeros after them.
#[inline(always)]
fn row(rows: &Rows<'_>, lane: usize, at: usize, words: usize) -> __m256i {
    let start = rows.start(lane, at, 4 * words);
    if words == 8 {
        // SAFETY: as in `two`; 32 bytes are readable from there.
        return unsafe { _mm256_loadu_si256(start.cast()) };
    }
    // SAFETY: as in `two`; 32 bytes are readable.
    let mask = unsafe { _mm256_loadu_si256(MASKS[words].as_ptr().cast()) };
    // SAFETY: as in `two`; `words` words are readable from there, and the mask leaves the others alone.
    unsafe { _mm256_maskload_epi32(start.cast(), mask) }
}

/// The halves of `a` and `b` that `WHICH` has: 0x20 for the first, 0x31 for the second.
#[inline(always)]
fn halves<const WHICH: i32>(a: __m256i, b: __m256i) -> __m256i {
    // SAFETY: as in `two`.
    unsafe { _mm256_permute2x128_si256::<WHICH>(a, b) }
}

/// Swaps between neighbours: `low` of both to the first, `high` of both to the second.
#[inline(always)]
fn weave<const N: usize>(v: &mut [__m256i; N], distance: usize, low: Two, high: Two) {
    for i in 0..N {
        if i & distance == 0 {
            let (a, b) = (v[i], v[i + distance]);
            v[i] = two(low, a, b);
            v[i + distance] = two(high, a, b);
        }
    }
}

#[inline(always)]
fn shuffle_bytes(vector: __m256i, order: [u64; 2]) -> __m256i {
    let [low, high] = order.map(splat64);
    two(_mm256_shuffle_epi8, vector, two(_mm256_unpacklo_epi64, low, high))
}

impl Vector for Ymm<u32> {
    type Word = u32;
    const LANES: usize = 8;
    const ROW: usize = 8;

    #[inline(always)]
    fn splat(word: u32) -> Self {
        Self(splat32(word), PhantomData)
    }

    #[inline(always)]
    fn add(self, other: Self) -> Self {
        Self(two(_mm256_add_epi32, self.0, other.0), PhantomData)
    }

    #[inline(always)]
    fn settled(self) -> Self {
        Self(settled(self.0), PhantomData)
    }

    #[inline(always)]
    fn xor(self, other: Self) -> Self {
        Self(xor(self.0, other.0), PhantomData)
    }

    #[inline(always)]
    fn rotate(self, count: u32) -> Self {
        let left = two(_mm256_sllv_epi32, self.0, splat32(count));
        Self(or(left, self.shift_right(u32::BITS - count).0), PhantomData)
    }

    #[inline(always)]
    fn shift_right(self, count: u32) -> Self {
        Self(two(_mm256_srlv_epi32, self.0, splat32(count)), PhantomData)
    }

    #[inline(always)]
    fn ternary<const TABLE: i32>(self, b: Self, c: Self) -> Self {
        Self(ternary::<TABLE>(self.0, b.0, c.0), PhantomData)
    }

    #[inline(always)]
    fn swap_bytes(self) -> Self {
        let order = [0x0405_0607_0001_0203, 0x0c0d_0e0f_0809_0a0b];
        Self(shuffle_bytes(self.0, order), PhantomData)
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
        let mut v = [splat32(0); 8];
        for (lane, v) in v.iter_mut().enumerate() {
            *v = row(rows, first + lane, at, count);
        }
        weave(&mut v, 1, _mm256_unpacklo_epi32, _mm256_unpackhi_epi32);
        weave(&mut v, 2, _mm256_unpacklo_epi64, _mm256_unpackhi_epi64);
        weave(&mut v, 4, halves::<0x20>, halves::<0x31>);
        let mut columns = [Self(v[0], PhantomData); COLUMNS];
        // The first two steps leave columns 1 and 2 of each quarter in each other's place.
        for (column, i) in columns.iter_mut().zip([0, 2, 1, 3, 4, 6, 5, 7]) {
            column.0 = v[i];
        }
        columns
    }
}

impl Vector for Ymm<u64> {
    type Word = u64;
    const LANES: usize = 4;
    const ROW: usize = 4;

    #[inline(always)]
    fn splat(word: u64) -> Self {
        Self(splat64(word), PhantomData)
    }

    #[inline(always)]
    fn add(self, other: Self) -> Self {
        Self(two(_mm256_add_epi64, self.0, other.0), PhantomData)
    }

    #[inline(always)]
    fn settled(self) -> Self {
        Self(settled(self.0), PhantomData)
    }

    #[inline(always)]
    fn xor(self, other: Self) -> Self {
        Self(xor(self.0, other.0), PhantomData)
    }

    #[inline(always)]
    fn rotate(self, count: u32) -> Self {
        let left = two(_mm256_sllv_epi64, self.0, splat64(u64::from(count)));
        Self(or(left, self.shift_right(u64::BITS - count).0), PhantomData)
    }

    #[inline(always)]
    fn shift_right(self, count: u32) -> Self {
        Self(two(_mm256_srlv_epi64, self.0, splat64(u64::from(count))), PhantomData)
    }

    #[inline(always)]
    fn ternary<const TABLE: i32>(self, b: Self, c: Self) -> Self {
        Self(ternary::<TABLE>(self.0, b.0, c.0), PhantomData)
    }

    #[inline(always)]
    fn swap_bytes(self) -> Self {
        let order = [0x0001_0203_0405_0607, 0x0809_0a0b_0c0d_0e0f];
        Self(shuffle_bytes(self.0, order), PhantomData)
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
        let mut v = [splat64(0); 4];
        for (lane, v) in v.iter_mut().enumerate() {
            *v = row(rows, first + lane, at, 2 * count);
        }
        weave(&mut v, 1, _mm256_unpacklo_epi64, _mm256_unpackhi_epi64);
        weave(&mut v, 2, halves::<0x20>, halves::<0x31>);
        let mut columns = [Self(v[0], PhantomData); COLUMNS];
        for (column, v) in columns.iter_mut().zip(v) {
            column.0 = v;
        }
        columns
    }
}

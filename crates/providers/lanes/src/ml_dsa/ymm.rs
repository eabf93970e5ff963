// SPDX-License-Identifier: Apache-2.0
//! Rows of two times 256 bits. (Why the intrinsics may be called: see [`Row`].)

use super::ring::{Q, Q_INVERSE};
use super::row::{Numbers, Row};
use core::arch::x86_64::*;

/// Eight numbers, and eight.
#[derive(Clone, Copy)]
pub(super) struct Ymm([__m256i; 2]);

type Two = unsafe fn(__m256i, __m256i) -> __m256i;

/// An intrinsic that needs nothing but its instructions.
#[inline(always)]
fn two(operation: Two, a: __m256i, b: __m256i) -> __m256i {
    // SAFETY: only the kernels of this width, which run where the instructions exist, come here; the operation is one of
    // the intrinsics below.
    unsafe { operation(a, b) }
}

#[inline(always)]
fn both(operation: Two, Ymm([a, b]): Ymm, Ymm([c, d]): Ymm) -> Ymm {
    Ymm([two(operation, a, c), two(operation, b, d)])
}

/// Numbers of odd places in even ones.
#[inline(always)]
fn odd(a: __m256i) -> __m256i {
    // SAFETY: as in `two`.
    unsafe { _mm256_srli_epi64::<32>(a) }
}

/// Numbers of even places of `a`, and of odd ones of `b`.
#[inline(always)]
fn blend(a: __m256i, b: __m256i) -> __m256i {
    // SAFETY: as in `two`.
    unsafe { _mm256_blend_epi32::<0xaa>(a, b) }
}

/// Numbers within each half in another order.
#[inline(always)]
fn shuffled<const ORDER: i32>(a: __m256i) -> __m256i {
    // SAFETY: as in `two`.
    unsafe { _mm256_shuffle_epi32::<ORDER>(a) }
}

/// A half of each.
#[inline(always)]
fn halves<const WHICH: i32>(a: __m256i, b: __m256i) -> __m256i {
    // SAFETY: as in `two`.
    unsafe { _mm256_permute2x128_si256::<WHICH>(a, b) }
}

#[inline(always)]
fn reduced(wide: __m256i) -> __m256i {
    let factor = two(_mm256_mul_epi32, wide, Ymm::splat(Q_INVERSE).0[0]);
    two(_mm256_sub_epi64, wide, two(_mm256_mul_epi32, factor, Ymm::splat(Q).0[0]))
}

#[inline(always)]
fn woven(a: __m256i, b: __m256i, distance: usize) -> [__m256i; 2] {
    match distance {
        1 => [blend(a, shuffled::<0xa0>(b)), blend(shuffled::<0xf5>(a), b)],
        2 => [two(_mm256_unpacklo_epi64, a, b), two(_mm256_unpackhi_epi64, a, b)],
        _ => [halves::<0x20>(a, b), halves::<0x31>(a, b)],
    }
}

impl Row for Ymm {
    /// Of even places, and of odd ones.
    type Wide = (Self, Self);

    #[inline(always)]
    fn load(from: &Numbers) -> Self {
        // SAFETY: as in `two`; 64 bytes are readable, and vectors are numbers.
        Self(unsafe { from.as_ptr().cast::<[__m256i; 2]>().read_unaligned() })
    }

    #[inline(always)]
    fn store(self, to: &mut Numbers) {
        // SAFETY: as in `two`; 64 bytes are writable.
        unsafe { to.as_mut_ptr().cast::<[__m256i; 2]>().write_unaligned(self.0) }
    }

    #[inline(always)]
    fn splat(number: i32) -> Self {
        // SAFETY: as in `two`.
        Self([unsafe { _mm256_set1_epi32(number) }; 2])
    }

    #[inline(always)]
    fn add(self, other: Self) -> Self {
        both(_mm256_add_epi32, self, other)
    }

    #[inline(always)]
    fn sub(self, other: Self) -> Self {
        both(_mm256_sub_epi32, self, other)
    }

    #[inline(always)]
    fn and(self, other: Self) -> Self {
        both(_mm256_and_si256, self, other)
    }

    #[inline(always)]
    fn or(self, other: Self) -> Self {
        both(_mm256_or_si256, self, other)
    }

    #[inline(always)]
    fn times(self, other: Self) -> Self {
        both(_mm256_mullo_epi32, self, other)
    }

    #[inline(always)]
    fn shift_right<const COUNT: u32>(self) -> Self {
        both(_mm256_srav_epi32, self, Self::splat(COUNT.cast_signed()))
    }

    #[inline(always)]
    fn wide(self, other: Self) -> (Self, Self) {
        let (Self([a, b]), Self([c, d])) = (self, other);
        let odds = both(_mm256_mul_epi32, Self([odd(a), odd(b)]), Self([odd(c), odd(d)]));
        (both(_mm256_mul_epi32, self, other), odds)
    }

    #[inline(always)]
    fn wide_sum(one: (Self, Self), other: (Self, Self)) -> (Self, Self) {
        (both(_mm256_add_epi64, one.0, other.0), both(_mm256_add_epi64, one.1, other.1))
    }

    #[inline(always)]
    fn high((Self([a, b]), Self([c, d])): (Self, Self)) -> Self {
        Self([blend(shuffled::<0xf5>(a), c), blend(shuffled::<0xf5>(b), d)])
    }

    #[inline(always)]
    fn reduced((Self([a, b]), Self([c, d])): (Self, Self)) -> Self {
        Self::high((Self([reduced(a), reduced(b)]), Self([reduced(c), reduced(d)])))
    }

    #[inline(always)]
    fn weave(Self([a, b]): Self, Self([c, d]): Self, distance: usize) -> (Self, Self) {
        if distance == 8 {
            return (Self([a, c]), Self([b, d]));
        }
        let ([a, c], [b, d]) = (woven(a, c, distance), woven(b, d, distance));
        (Self([a, b]), Self([c, d]))
    }
}

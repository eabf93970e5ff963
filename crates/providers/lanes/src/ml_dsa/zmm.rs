// SPDX-License-Identifier: Apache-2.0
//! Rows of 512 bits. (Why the intrinsics may be called: see [`Row`].)

use super::ring::{Q, Q_INVERSE};
use super::row::{Numbers, Row};
use core::arch::x86_64::*;

/// Sixteen numbers.
#[derive(Clone, Copy)]
pub(super) struct Zmm(__m512i);

type Two = unsafe fn(__m512i, __m512i) -> __m512i;

/// An intrinsic that needs nothing but its instructions.
#[inline(always)]
fn two(operation: Two, a: __m512i, b: __m512i) -> __m512i {
    // SAFETY: only the kernels of this width, which run where the instructions exist, come here; the operation is one of
    // the intrinsics below.
    unsafe { operation(a, b) }
}

/// Numbers of odd places in even ones.
#[inline(always)]
fn odd(a: __m512i) -> __m512i {
    // SAFETY: as in `two`.
    unsafe { _mm512_srli_epi64::<32>(a) }
}

/// Numbers of even places of `a`, and of odd ones of `b`.
#[inline(always)]
fn blend(a: __m512i, b: __m512i) -> __m512i {
    // SAFETY: as in `two`.
    unsafe { _mm512_mask_blend_epi32(0xaaaa, a, b) }
}

/// Numbers within each quarter in another order.
#[inline(always)]
fn shuffled<const ORDER: i32>(a: __m512i) -> __m512i {
    // SAFETY: as in `two`.
    unsafe { _mm512_shuffle_epi32::<ORDER>(a) }
}

/// Pairs of numbers of both, by number.
#[inline(always)]
fn pairs(a: __m512i, b: __m512i, which: &[u64; 8]) -> __m512i {
    // SAFETY: as in `two`; 64 bytes are readable.
    let which = unsafe { _mm512_loadu_si512(which.as_ptr().cast()) };
    // SAFETY: as in `two`.
    unsafe { _mm512_permutex2var_epi64(a, which, b) }
}

const FOURS: [[u64; 8]; 2] = [[0, 1, 8, 9, 4, 5, 12, 13], [2, 3, 10, 11, 6, 7, 14, 15]];
const EIGHTS: [[u64; 8]; 2] = [[0, 1, 2, 3, 8, 9, 10, 11], [4, 5, 6, 7, 12, 13, 14, 15]];

#[inline(always)]
fn reduced(wide: __m512i) -> __m512i {
    let factor = two(_mm512_mul_epi32, wide, Zmm::splat(Q_INVERSE).0);
    two(_mm512_sub_epi64, wide, two(_mm512_mul_epi32, factor, Zmm::splat(Q).0))
}

impl Row for Zmm {
    /// Of even places, and of odd ones.
    type Wide = (__m512i, __m512i);

    #[inline(always)]
    fn load(from: &Numbers) -> Self {
        // SAFETY: as in `two`; 64 bytes are readable.
        Self(unsafe { _mm512_loadu_si512(from.as_ptr().cast()) })
    }

    #[inline(always)]
    fn store(self, to: &mut Numbers) {
        // SAFETY: as in `two`; 64 bytes are writable.
        unsafe { _mm512_storeu_si512(to.as_mut_ptr().cast(), self.0) }
    }

    #[inline(always)]
    fn splat(number: i32) -> Self {
        // SAFETY: as in `two`.
        Self(unsafe { _mm512_set1_epi32(number) })
    }

    #[inline(always)]
    fn add(self, other: Self) -> Self {
        Self(two(_mm512_add_epi32, self.0, other.0))
    }

    #[inline(always)]
    fn sub(self, other: Self) -> Self {
        Self(two(_mm512_sub_epi32, self.0, other.0))
    }

    #[inline(always)]
    fn and(self, other: Self) -> Self {
        Self(two(_mm512_and_si512, self.0, other.0))
    }

    #[inline(always)]
    fn or(self, other: Self) -> Self {
        Self(two(_mm512_or_si512, self.0, other.0))
    }

    #[inline(always)]
    fn times(self, other: Self) -> Self {
        Self(two(_mm512_mullo_epi32, self.0, other.0))
    }

    #[inline(always)]
    fn shift_right<const COUNT: u32>(self) -> Self {
        // SAFETY: as in `two`.
        Self(unsafe { _mm512_srai_epi32::<COUNT>(self.0) })
    }

    #[inline(always)]
    fn wide(self, other: Self) -> (__m512i, __m512i) {
        let odds = two(_mm512_mul_epi32, odd(self.0), odd(other.0));
        (two(_mm512_mul_epi32, self.0, other.0), odds)
    }

    #[inline(always)]
    fn wide_sum(one: Self::Wide, other: Self::Wide) -> Self::Wide {
        (two(_mm512_add_epi64, one.0, other.0), two(_mm512_add_epi64, one.1, other.1))
    }

    #[inline(always)]
    fn high(wide: Self::Wide) -> Self {
        Self(blend(shuffled::<0xf5>(wide.0), wide.1))
    }

    #[inline(always)]
    fn reduced(wide: Self::Wide) -> Self {
        Self::high((reduced(wide.0), reduced(wide.1)))
    }

    #[inline(always)]
    fn weave(Self(a): Self, Self(b): Self, distance: usize) -> (Self, Self) {
        let (low, high) = match distance {
            1 => (blend(a, shuffled::<0xa0>(b)), blend(shuffled::<0xf5>(a), b)),
            2 => (two(_mm512_unpacklo_epi64, a, b), two(_mm512_unpackhi_epi64, a, b)),
            4 => (pairs(a, b, &FOURS[0]), pairs(a, b, &FOURS[1])),
            _ => (pairs(a, b, &EIGHTS[0]), pairs(a, b, &EIGHTS[1])),
        };
        (Self(low), Self(high))
    }
}

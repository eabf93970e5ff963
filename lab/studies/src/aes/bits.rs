// SPDX-License-Identifier: Apache-2.0
//! 128 bits with the operators of a bit.

use crate::vector::from_bytes;
use std::arch::x86_64::{__m128i, _mm_and_si128, _mm_xor_si128};
use std::ops::{BitAnd, BitXor, Not};

#[derive(Clone, Copy, Debug)]
pub(super) struct Bits(pub(super) __m128i);

impl BitXor for Bits {
    type Output = Self;

    #[inline(always)]
    fn bitxor(self, other: Self) -> Self {
        // SAFETY: every processor of this architecture has SSE2.
        Self(unsafe { _mm_xor_si128(self.0, other.0) })
    }
}

impl BitAnd for Bits {
    type Output = Self;

    #[inline(always)]
    fn bitand(self, other: Self) -> Self {
        // SAFETY: as above.
        Self(unsafe { _mm_and_si128(self.0, other.0) })
    }
}

impl Not for Bits {
    type Output = Self;

    #[inline(always)]
    fn not(self) -> Self {
        self ^ Self(from_bytes([0xff; 16]))
    }
}

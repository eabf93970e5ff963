// SPDX-License-Identifier: Apache-2.0
//! Words multiplied by PCLMULQDQ, one product at a time.

use super::field::Field;
use super::single::{self, Product};
use crate::cpu::{Cpu, cpu};
use core::arch::x86_64::_mm_unpackhi_epi64;
use core::arch::x86_64::{_mm_clmulepi64_si128, _mm_cvtsi64_si128, _mm_cvtsi128_si64};

/// Proof that the processor has the instruction.
#[derive(Clone, Copy, Debug)]
pub(super) struct Clmul(());

impl Clmul {
    pub(super) fn detect() -> Option<Self> {
        cpu().has(Cpu::AES).then_some(Self(()))
    }
}

impl Product for Clmul {
    #[inline(always)]
    fn product(self, a: u64, b: u64) -> u128 {
        // SAFETY: `self` exists only where the processor has the instruction.
        unsafe { product(a, b) }
    }

    fn mul<F: Field<W>, const W: usize>(self, a: &[u64; W], b: &[u64; W]) -> [u64; W] {
        // SAFETY: as in `product`.
        unsafe { mul::<F, W>(self, a, b) }
    }

    fn square_times<F: Field<W>, const W: usize>(self, a: &[u64; W], times: usize) -> [u64; W] {
        // SAFETY: as in `product`.
        unsafe { square_times::<F, W>(self, a, times) }
    }
}

#[inline]
#[target_feature(enable = "pclmulqdq")]
fn product(a: u64, b: u64) -> u128 {
    let (a, b) = (_mm_cvtsi64_si128(a.cast_signed()), _mm_cvtsi64_si128(b.cast_signed()));
    let wide = _mm_clmulepi64_si128::<0>(a, b);
    let low = _mm_cvtsi128_si64(wide).cast_unsigned();
    let high = _mm_cvtsi128_si64(_mm_unpackhi_epi64(wide, wide)).cast_unsigned();
    u128::from(low) | u128::from(high) << 64
}

#[target_feature(enable = "pclmulqdq")]
fn mul<F: Field<W>, const W: usize>(form: Clmul, a: &[u64; W], b: &[u64; W]) -> [u64; W] {
    single::mul::<_, F, W>(form, a, b)
}

#[target_feature(enable = "pclmulqdq")]
fn square_times<F: Field<W>, const W: usize>(form: Clmul, a: &[u64; W], times: usize) -> [u64; W] {
    single::square_times::<F, W>(
        a,
        times,
        #[inline(always)]
        |word| form.product(word, word),
    )
}

// SPDX-License-Identifier: Apache-2.0
//! The instructions on registers of eight words.

use crate::cpu::{Cpu, cpu};
use core::arch::x86_64::{
    __m512i, _mm512_and_si512, _mm512_clmulepi64_epi128, _mm512_mask_blend_epi64, _mm512_set_epi64,
    _mm512_set1_epi64, _mm512_shldv_epi64, _mm512_shrdv_epi64, _mm512_unpackhi_epi64,
    _mm512_unpacklo_epi64, _mm512_xor_si512,
};

pub(super) type Z = __m512i;

/// Proof that the processor has the instructions.
#[derive(Clone, Copy, Debug)]
pub(super) struct Vector(());

impl Vector {
    pub(super) fn detect() -> Option<Self> {
        let there = cpu().has(Cpu::VPCLMUL) && is_x86_feature_detected!("avx512vbmi2");
        there.then_some(Self(()))
    }
}

/// The instructions. All is inlined into the functions that enable them.
impl Vector {
    #[inline(always)]
    pub(super) fn zero(self) -> Z {
        self.all(0)
    }

    /// The same word everywhere.
    #[inline(always)]
    pub(super) fn all(self, word: u64) -> Z {
        // SAFETY: `self` exists only where the processor has the instructions; so below.
        unsafe { _mm512_set1_epi64(word.cast_signed()) }
    }

    #[inline(always)]
    pub(super) fn words(self, [a, b, c, d, e, f, g, h]: [u64; 8]) -> Z {
        let [a, b, c, d, e, f, g, h] = [a, b, c, d, e, f, g, h].map(u64::cast_signed);
        // SAFETY: see `all`.
        unsafe { _mm512_set_epi64(h, g, f, e, d, c, b, a) }
    }

    #[inline(always)]
    pub(super) fn xor(self, a: Z, b: Z) -> Z {
        // SAFETY: see `all`.
        unsafe { _mm512_xor_si512(a, b) }
    }

    #[inline(always)]
    pub(super) fn and(self, a: Z, b: Z) -> Z {
        // SAFETY: see `all`.
        unsafe { _mm512_and_si512(a, b) }
    }

    /// Word by word `b` where the mask has a bit, else `a`.
    #[inline(always)]
    pub(super) fn choose(self, mask: u8, a: Z, b: Z) -> Z {
        // SAFETY: see `all`.
        unsafe { _mm512_mask_blend_epi64(mask, a, b) }
    }

    /// (low of a | low of b) in each element.
    #[inline(always)]
    pub(super) fn lows(self, a: Z, b: Z) -> Z {
        // SAFETY: see `all`.
        unsafe { _mm512_unpacklo_epi64(a, b) }
    }

    /// (high of a | high of b) in each element.
    #[inline(always)]
    pub(super) fn highs(self, a: Z, b: Z) -> Z {
        // SAFETY: see `all`.
        unsafe { _mm512_unpackhi_epi64(a, b) }
    }

    /// The product of one word of each element of `a` and of `b`.
    #[inline(always)]
    pub(super) fn product<const WHICH: i32>(self, a: Z, b: Z) -> Z {
        // SAFETY: see `all`.
        unsafe { _mm512_clmulepi64_epi128::<WHICH>(a, b) }
    }

    /// The upper word of (`high`, `low`) shifted left by `count`, from 1 to 63.
    #[inline(always)]
    pub(super) fn left(self, high: Z, low: Z, count: usize) -> Z {
        let count = self.all(count as u64);
        // SAFETY: see `all`.
        unsafe { _mm512_shldv_epi64(high, low, count) }
    }

    /// The lower word of (`high`, `low`) shifted right by `count`, from 1 to 63.
    #[inline(always)]
    pub(super) fn right(self, low: Z, high: Z, count: usize) -> Z {
        let count = self.all(count as u64);
        // SAFETY: see `all`.
        unsafe { _mm512_shrdv_epi64(low, high, count) }
    }
}

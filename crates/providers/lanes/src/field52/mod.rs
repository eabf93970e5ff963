// SPDX-License-Identifier: Apache-2.0
//! Arithmetic on eight numbers side by side, in limbs of 52 bits: one 512-bit vector holds the same limb of eight
//! numbers, so that an instruction multiplies and adds in eight lanes (`vpmadd52luq`, `vpmadd52huq`).
//!
//! Nothing branches on, or takes an address from, a number's value: comparisons are masks, and the instructions used
//! take the same time for all operands. The one scalar part, [`inverse`], has a fixed number of steps.

#![expect(clippy::needless_range_loop, reason = "limbs of several numbers are walked together")]

pub(crate) mod bytes;
pub(crate) mod inverse;
pub(crate) mod modulus;
pub(crate) mod montgomery;
#[cfg(test)]
mod tests;

use core::arch::x86_64::*;
use metaslot_memory::Secret;

/// Eight 64-bit lanes.
pub(crate) type V = __m512i;
/// Which lanes.
pub(crate) type Mask = __mmask8;

/// How many numbers are computed side by side.
pub(crate) const LANES: usize = 8;
/// Bits of a limb.
pub(crate) const BITS: u32 = 52;
/// All bits of a limb.
pub(crate) const LIMB: u64 = (1 << BITS) - 1;

/// The rows of a table that is made once. Without memory it panics, which fails one batch: an allocation that fails ends the host.
pub(crate) fn rows<T: Clone>(row: T, count: usize) -> Vec<T> {
    let mut rows = Vec::new();
    assert!(rows.try_reserve_exact(count).is_ok(), "there is no memory for a table");
    rows.resize(count, row);
    rows
}

/// Eight numbers: limb `i` of all of them is vector `i`, least significant first.
#[derive(Clone, Copy)]
#[repr(transparent)]
pub(crate) struct Num<const N: usize>(pub(crate) [V; N]);

/// Eight numbers as words: limb first, then lane.
pub(crate) type Columns<const N: usize> = [[u64; LANES]; N];

/// Eight words into a vector.
#[target_feature(enable = "avx512f,avx512ifma")]
#[inline]
pub(crate) fn load(words: &[u64; LANES]) -> V {
    // SAFETY: 64 readable bytes; the instruction needs no alignment.
    unsafe { _mm512_loadu_si512(words.as_ptr().cast()) }
}

/// A vector into eight words.
#[target_feature(enable = "avx512f,avx512ifma")]
#[inline]
pub(crate) fn store(vector: V) -> [u64; LANES] {
    let mut words = [0; LANES];
    // SAFETY: 64 writable bytes; the instruction needs no alignment.
    unsafe { _mm512_storeu_si512(words.as_mut_ptr().cast(), vector) };
    words
}

/// The same word in every lane.
#[target_feature(enable = "avx512f,avx512ifma")]
#[inline]
pub(crate) fn splat(word: u64) -> V {
    _mm512_set1_epi64(word.cast_signed())
}

/// `sum + low 52 bits of a·b`, of the operands' low 52 bits.
#[target_feature(enable = "avx512f,avx512ifma")]
#[inline]
pub(crate) fn low(sum: V, a: V, b: V) -> V {
    _mm512_madd52lo_epu64(sum, a, b)
}

/// `sum + (a·b >> 52)`, of the operands' low 52 bits.
#[target_feature(enable = "avx512f,avx512ifma")]
#[inline]
pub(crate) fn high(sum: V, a: V, b: V) -> V {
    _mm512_madd52hi_epu64(sum, a, b)
}

impl<const N: usize> Num<N> {
    /// The same number in every lane.
    #[target_feature(enable = "avx512f,avx512ifma")]
    #[inline]
    pub(crate) fn splat(limbs: &[u64; N]) -> Self {
        let mut out = [_mm512_setzero_si512(); N];
        for i in 0..N {
            out[i] = splat(limbs[i]);
        }
        Self(out)
    }

    /// Eight numbers from their words.
    #[target_feature(enable = "avx512f,avx512ifma")]
    #[inline]
    pub(crate) fn load(columns: &Columns<N>) -> Self {
        let mut out = [_mm512_setzero_si512(); N];
        for i in 0..N {
            out[i] = load(&columns[i]);
        }
        Self(out)
    }

    /// The words of eight numbers.
    #[target_feature(enable = "avx512f,avx512ifma")]
    #[inline]
    pub(crate) fn store(&self) -> Columns<N> {
        let mut out = [[0; LANES]; N];
        for i in 0..N {
            out[i] = store(self.0[i]);
        }
        out
    }

    /// `other` in the lanes of `mask`, `self` in the others.
    #[target_feature(enable = "avx512f,avx512ifma")]
    #[inline]
    pub(crate) fn blend(&self, mask: Mask, other: &Self) -> Self {
        let mut out = self.0;
        for i in 0..N {
            out[i] = _mm512_mask_mov_epi64(out[i], mask, other.0[i]);
        }
        Self(out)
    }

    /// Limb by limb, without carrying.
    #[target_feature(enable = "avx512f,avx512ifma")]
    #[inline]
    pub(crate) fn plus(&self, other: &Self) -> Self {
        let mut out = self.0;
        for i in 0..N {
            out[i] = _mm512_add_epi64(out[i], other.0[i]);
        }
        Self(out)
    }

    /// Limb by limb, without borrowing: limbs may become negative.
    #[target_feature(enable = "avx512f,avx512ifma")]
    #[inline]
    pub(crate) fn minus(&self, other: &Self) -> Self {
        let mut out = self.0;
        for i in 0..N {
            out[i] = _mm512_sub_epi64(out[i], other.0[i]);
        }
        Self(out)
    }

    /// Negated limb by limb in the lanes of `mask`.
    #[target_feature(enable = "avx512f,avx512ifma")]
    #[inline]
    pub(crate) fn negated(&self, mask: Mask) -> Self {
        let mut out = self.0;
        for i in 0..N {
            out[i] = _mm512_mask_sub_epi64(out[i], mask, _mm512_setzero_si512(), out[i]);
        }
        Self(out)
    }

    /// Every limb times 2^K, without carrying.
    #[target_feature(enable = "avx512f,avx512ifma")]
    #[inline]
    pub(crate) fn shifted<const K: u32>(&self) -> Self {
        let mut out = self.0;
        for i in 0..N {
            out[i] = _mm512_slli_epi64::<K>(out[i]);
        }
        Self(out)
    }

    /// Limbs below 2^52 again; the topmost keeps what is above.
    #[target_feature(enable = "avx512f,avx512ifma")]
    #[inline]
    pub(crate) fn carried(&self) -> Self {
        let mut out = self.0;
        for i in 0..N - 1 {
            out[i + 1] = _mm512_add_epi64(out[i + 1], _mm512_srai_epi64::<BITS>(out[i]));
            out[i] = _mm512_and_si512(out[i], splat(LIMB));
        }
        Self(out)
    }

    /// The lanes that are zero, of numbers whose limbs are carried.
    #[target_feature(enable = "avx512f,avx512ifma")]
    #[inline]
    pub(crate) fn zeros(&self) -> Mask {
        let mut any = self.0[0];
        for i in 1..N {
            any = _mm512_or_si512(any, self.0[i]);
        }
        _mm512_testn_epi64_mask(any, any)
    }

    /// The lanes that are odd.
    #[target_feature(enable = "avx512f,avx512ifma")]
    #[inline]
    pub(crate) fn odds(&self) -> Mask {
        _mm512_test_epi64_mask(self.0[0], splat(1))
    }

    /// `width` bits from bit `start` up, of numbers whose limbs are carried; bits beyond the last limb are zero.
    #[target_feature(enable = "avx512f,avx512ifma")]
    #[inline]
    pub(crate) fn window(&self, start: usize, width: u32) -> V {
        let (limb, bit) = (start / BITS as usize, (start % BITS as usize) as u64);
        let shift = |count: u64| splat(count);
        let mut bits = _mm512_setzero_si512();
        if limb < N {
            bits = _mm512_srlv_epi64(self.0[limb], shift(bit));
        }
        if limb + 1 < N {
            let above = _mm512_sllv_epi64(self.0[limb + 1], shift(u64::from(BITS) - bit));
            bits = _mm512_or_si512(bits, above);
        }
        _mm512_and_si512(bits, splat((1 << width) - 1))
    }
}

/// Numbers that depend on secrets, in protected memory that is zeroised when dropped.
pub(crate) struct Workspace(Secret);

impl Workspace {
    /// Room for `count` times eight numbers.
    pub(crate) fn new<const N: usize>(count: usize) -> Self {
        Self(Secret::zeroed((count + 1) * size_of::<Num<N>>()))
    }

    /// The room, aligned for vectors.
    pub(crate) fn numbers<const N: usize>(&mut self) -> &mut [Num<N>] {
        // SAFETY: every bit pattern is a vector of integers.
        unsafe { self.0.expose_mut().align_to_mut::<Num<N>>().1 }
    }
}

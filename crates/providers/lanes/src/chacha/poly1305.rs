// SPDX-License-Identifier: Apache-2.0
//! Poly1305 (RFC 8439 §2.5) over whole blocks, in limbs of 44, 44 and 42 bits: 8 blocks in the lanes of a register, fewer one by one.

use super::stream::BLOCK as KEYS;
use crate::cpu::{Cpu, cpu};
use std::arch::x86_64::{
    __m512i, _mm512_add_epi64, _mm512_and_si512, _mm512_loadu_si512, _mm512_madd52hi_epu64,
    _mm512_madd52lo_epu64, _mm512_or_si512, _mm512_reduce_add_epi64, _mm512_set1_epi64,
    _mm512_setr_epi64, _mm512_setzero_si512, _mm512_slli_epi64, _mm512_srli_epi64,
    _mm512_unpackhi_epi64, _mm512_unpacklo_epi64,
};

/// Length of a tag, in bytes.
pub const TAG: usize = 16;
/// Length of a block, in bytes.
const BLOCK: usize = TAG;
/// Blocks that are multiplied at a time.
const LANES: usize = 8;
/// From so many blocks on lanes gain what the powers of the key cost.
const WORTH_LANES: usize = 3 * LANES;

const LOW44: u64 = (1 << 44) - 1;
const LOW42: u64 = (1 << 42) - 1;

/// A number below 2¹³¹ or so.
type Limbs = [u64; 3];

/// What was authenticated so far.
#[derive(Clone, Copy)]
pub(super) struct Poly1305 {
    sum: Limbs,
    /// The first powers of the key's first half, as many as are known: that one, or all.
    powers: [Limbs; LANES],
    has_all: bool,
    /// The key's second half.
    end: u128,
    /// What is no whole block yet, and of how many bytes.
    rest: [u8; BLOCK],
    kept: usize,
}

impl Poly1305 {
    pub(super) const ZERO: Self = Self {
        sum: [0; 3],
        powers: [[0; 3]; LANES],
        has_all: false,
        end: 0,
        rest: [0; BLOCK],
        kept: 0,
    };

    /// With the first half of a block as the key.
    pub(super) fn begin(&mut self, key: &[u8; KEYS]) {
        let half = |at: usize| key.as_chunks().0.get(at).copied().map_or(0, u128::from_le_bytes);
        self.powers[0] = limbs(half(0) & 0x0fff_fffc_0fff_fffc_0fff_fffc_0fff_ffff);
        self.end = half(1);
    }

    #[cfg(test)]
    pub(super) fn is_zero(&self) -> bool {
        (self.sum, self.powers, self.end, self.rest) == ([0; 3], [[0; 3]; LANES], 0, [0; BLOCK])
    }

    /// More data.
    pub(super) fn update(&mut self, mut data: &[u8]) {
        if self.kept > 0 {
            let (first, others) = data.split_at(data.len().min(BLOCK - self.kept));
            self.keep(first);
            data = others;
            if self.kept < BLOCK {
                return;
            }
            self.pad();
        }
        let (mut blocks, rest) = data.as_chunks::<BLOCK>();
        if blocks.len() >= WORTH_LANES && cpu().has(Cpu::AVX512_IFMA) {
            let (side_by_side, others) = blocks.split_at(blocks.len() / LANES * LANES);
            self.find_powers();
            // SAFETY: the instructions are there.
            self.sum = unsafe { summed(self.sum, &self.powers, side_by_side) };
            blocks = others;
        }
        blocks.iter().for_each(|block| self.block(block));
        self.keep(rest);
    }

    fn keep(&mut self, data: &[u8]) {
        self.rest[self.kept..self.kept + data.len()].copy_from_slice(data);
        self.kept += data.len();
    }

    /// Zeros up to a whole number of blocks.
    pub(super) fn pad(&mut self) {
        if self.kept > 0 {
            self.rest[self.kept..].fill(0);
            let block = self.rest;
            self.block(&block);
            self.kept = 0;
        }
    }

    fn block(&mut self, block: &[u8; BLOCK]) {
        let [a, b, c] = limbs(u128::from_le_bytes(*block));
        let [d, e, f] = self.sum;
        // Each block is whole, and so has its bit behind it.
        self.sum = product([a + d, b + e, c + f + (1 << 40)], self.powers[0]);
    }

    fn find_powers(&mut self) {
        if !self.has_all {
            let first = self.powers[0];
            for at in 1..LANES {
                self.powers[at] = product(self.powers[at - 1], first);
            }
            self.has_all = true;
        }
    }

    /// The tag.
    pub(super) fn finish(&self, tag: &mut [u8; TAG]) {
        let mut sum = self.sum;
        for _ in 0..2 {
            sum = carried(sum);
        }
        // Less the prime, where it is not below: as 5 more and 2¹³⁰ less.
        let [a, b, c] = sum;
        let a5 = a + 5;
        let b5 = b + (a5 >> 44);
        let c5 = (c + (b5 >> 44)).wrapping_sub(1 << 42);
        // All ones where the prime is more.
        let keep = (c5 >> 63).wrapping_neg();
        let choose = |less: u64, same: u64| (less & !keep) | (same & keep);
        let [a, b, c] = [choose(a5 & LOW44, a), choose(b5 & LOW44, b), choose(c5 & LOW42, c)];
        let whole = u128::from(a) | u128::from(b) << 44 | u128::from(c) << 88;
        *tag = whole.wrapping_add(self.end).to_le_bytes();
    }
}

#[expect(clippy::cast_possible_truncation, reason = "that is how they are cut")]
const fn limbs(whole: u128) -> Limbs {
    [whole as u64 & LOW44, (whole >> 44) as u64 & LOW44, (whole >> 88) as u64]
}

/// Each limb within its bits, but for a bit that goes once around.
const fn carried([a, b, c]: Limbs) -> Limbs {
    let b = b + (a >> 44);
    let c = c + (b >> 44);
    let a = (a & LOW44) + 5 * (c >> 42);
    [a & LOW44, (b & LOW44) + (a >> 44), c & LOW42]
}

/// A product modulo 2¹³⁰ - 5: what is beyond 2¹³² comes back 20 times.
#[expect(clippy::cast_possible_truncation, reason = "what is cut off is carried")]
fn product([a, b, c]: Limbs, [r, s, t]: Limbs) -> Limbs {
    let times = |x: u64, y: u64| u128::from(x) * u128::from(y);
    let low = times(a, r) + times(b, 20 * t) + times(c, 20 * s);
    let middle = times(a, s) + times(b, r) + times(c, 20 * t) + (low >> 44);
    let high = times(a, t) + times(b, s) + times(c, r) + (middle >> 44);
    let low = (low as u64 & LOW44) + 5 * (high >> 42) as u64;
    [low & LOW44, (middle as u64 & LOW44) + (low >> 44), high as u64 & LOW42]
}

/// The limbs of eight numbers.
type Lanes = [__m512i; 3];

/// The sum after a whole number of times eight blocks.
#[target_feature(enable = "avx512f,avx512ifma")]
fn summed(sum: Limbs, powers: &[Limbs; LANES], blocks: &[[u8; BLOCK]]) -> Limbs {
    let mut lanes = sum.map(|limb| _mm512_setr_epi64(limb.cast_signed(), 0, 0, 0, 0, 0, 0, 0));
    let mut eights = blocks.as_chunks::<LANES>().0.iter();
    let all = Factor::new(powers[LANES - 1].map(|limb| _mm512_set1_epi64(limb.cast_signed())));
    if let Some(eight) = eights.next() {
        lanes = added(lanes, eight);
    }
    for eight in eights {
        lanes = added(multiplied(lanes, &all), eight);
    }
    let each = [0, 1, 2].map(|limb| {
        let of = |power: usize| powers[power - 1][limb].cast_signed();
        _mm512_setr_epi64(of(8), of(4), of(7), of(3), of(6), of(2), of(5), of(1))
    });
    lanes = multiplied(lanes, &Factor::new(each));
    // Eight limbs of 45 bits.
    carried(lanes.map(|limb| _mm512_reduce_add_epi64(limb).cast_unsigned()))
}

/// With eight blocks added, each with its bit behind it: the blocks 0, 4, 1, 5, 2, 6, 3, 7.
#[inline]
#[target_feature(enable = "avx512f")]
fn added([a, b, c]: Lanes, blocks: &[[u8; BLOCK]; LANES]) -> Lanes {
    let from: *const __m512i = blocks.as_ptr().cast();
    // SAFETY: eight blocks are as long as two registers.
    let one = unsafe { _mm512_loadu_si512(from) };
    // SAFETY: as above.
    let other = unsafe { _mm512_loadu_si512(from.wrapping_add(1)) };
    let (low, high) = (_mm512_unpacklo_epi64(one, other), _mm512_unpackhi_epi64(one, other));
    let low44 = _mm512_set1_epi64(LOW44.cast_signed());
    let middle = _mm512_or_si512(_mm512_srli_epi64::<44>(low), _mm512_slli_epi64::<20>(high));
    let end = _mm512_or_si512(_mm512_srli_epi64::<24>(high), _mm512_set1_epi64(1 << 40));
    [
        _mm512_add_epi64(a, _mm512_and_si512(low, low44)),
        _mm512_add_epi64(b, _mm512_and_si512(middle, low44)),
        _mm512_add_epi64(c, end),
    ]
}

/// Eight factors, and 20 times their upper limbs.
struct Factor {
    limbs: Lanes,
    twenty: [__m512i; 2],
}

impl Factor {
    #[inline]
    #[target_feature(enable = "avx512f")]
    fn new(limbs: Lanes) -> Self {
        Self { limbs, twenty: [times_20(limbs[1]), times_20(limbs[2])] }
    }
}

#[inline]
#[target_feature(enable = "avx512f")]
fn times_20(x: __m512i) -> __m512i {
    _mm512_add_epi64(_mm512_slli_epi64::<4>(x), _mm512_slli_epi64::<2>(x))
}

/// Eight products modulo 2¹³⁰ - 5, from limbs below 2⁵²; what is above 52 bits of a product of limbs is 2⁸ times the next limb.
#[inline]
#[target_feature(enable = "avx512f,avx512ifma")]
fn multiplied([a, b, c]: Lanes, factor: &Factor) -> Lanes {
    let ([r, s, t], [s20, t20]) = (factor.limbs, factor.twenty);
    let [low, over_low] = three([(a, r), (b, t20), (c, s20)]);
    let [middle, over_middle] = three([(a, s), (b, r), (c, t20)]);
    let [high, over_high] = three([(a, t), (b, s), (c, r)]);
    let low = _mm512_add_epi64(low, _mm512_slli_epi64::<8>(times_20(over_high)));
    let middle = _mm512_add_epi64(middle, _mm512_slli_epi64::<8>(over_low));
    let high = _mm512_add_epi64(high, _mm512_slli_epi64::<8>(over_middle));
    let low44 = _mm512_set1_epi64(LOW44.cast_signed());
    let middle = _mm512_add_epi64(middle, _mm512_srli_epi64::<44>(low));
    let high = _mm512_add_epi64(high, _mm512_srli_epi64::<44>(middle));
    let around = _mm512_srli_epi64::<42>(high);
    let around = _mm512_add_epi64(around, _mm512_slli_epi64::<2>(around));
    [
        _mm512_add_epi64(_mm512_and_si512(low, low44), around),
        _mm512_and_si512(middle, low44),
        _mm512_and_si512(high, _mm512_set1_epi64(LOW42.cast_signed())),
    ]
}

/// The sums of the low 52 bits of three products, and of what is above.
#[inline]
#[target_feature(enable = "avx512f,avx512ifma")]
fn three(pairs: [(__m512i, __m512i); 3]) -> [__m512i; 2] {
    let mut sums = [_mm512_setzero_si512(); 2];
    for (x, y) in pairs {
        sums[0] = _mm512_madd52lo_epu64(sums[0], x, y);
        sums[1] = _mm512_madd52hi_epu64(sums[1], x, y);
    }
    sums
}

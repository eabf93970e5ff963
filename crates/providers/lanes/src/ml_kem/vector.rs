// SPDX-License-Identifier: Apache-2.0
//! Sixteen coefficients in a register of AVX2.

#![expect(clippy::cast_possible_truncation, reason = "places in 16 bytes")]

use core::arch::x86_64::*;

/// Sixteen coefficients in memory.
pub(super) type Sixteen = [i16; 16];

/// How eight numbers lie in their bytes.
pub(super) struct Packing {
    /// Of each word that has a number, the bytes.
    bytes: [u8; 32],
    /// The number's first bit in that word: words, too, the least significant byte first.
    shifts: [u8; 32],
}

impl Packing {
    /// Of numbers of so many bits, at most twelve, without a gap.
    pub(super) const fn of(bits: usize) -> Self {
        let mut packing = Self { bytes: [0; 32], shifts: [0; 32] };
        let mut at = 0;
        while at < 32 {
            let first = bits * (at / 4);
            packing.bytes[at] = (first / 8 + at % 4) as u8;
            if at % 4 == 0 {
                packing.shifts[at] = (first % 8) as u8;
            }
            at += 1;
        }
        packing
    }
}

/// The same in a register, modulo 2^16.
#[derive(Clone, Copy)]
pub(super) struct Vector(__m256i);

impl Vector {
    #[target_feature(enable = "avx2")]
    #[inline]
    pub(super) fn load(from: &Sixteen) -> Self {
        // SAFETY: 32 bytes are readable.
        Self(unsafe { _mm256_loadu_si256(from.as_ptr().cast()) })
    }

    #[target_feature(enable = "avx2")]
    #[inline]
    pub(super) fn store(self, to: &mut Sixteen) {
        // SAFETY: 32 bytes are writable.
        unsafe { _mm256_storeu_si256(to.as_mut_ptr().cast(), self.0) }
    }

    #[target_feature(enable = "avx2")]
    #[inline]
    pub(super) fn all(number: i16) -> Self {
        Self(_mm256_set1_epi16(number))
    }

    /// Of bytes, the less significant first.
    #[target_feature(enable = "avx2")]
    #[inline]
    pub(super) fn bytes(from: &[u8; 32]) -> Self {
        // SAFETY: 32 bytes are readable.
        Self(unsafe { _mm256_loadu_si256(from.as_ptr().cast()) })
    }

    /// Eight numbers from each of two places: of words of 32 bits, which begin at such bytes of it, so many bits from such a bit on.
    #[target_feature(enable = "avx2")]
    #[inline]
    pub(super) fn unpacked(from: [&[u8; 16]; 2], packing: &Packing, bits: u32) -> Self {
        let [bytes, shifts] = [packing.bytes, packing.shifts].map(|from| Self::bytes(&from).0);
        let mask = _mm256_set1_epi32((1 << bits) - 1);
        let [first, second] = from.map(|from| {
            // SAFETY: 16 bytes are readable.
            let both =
                _mm256_broadcastsi128_si256(unsafe { _mm_loadu_si128(from.as_ptr().cast()) });
            let words = _mm256_srlv_epi32(_mm256_shuffle_epi8(both, bytes), shifts);
            _mm256_and_si256(words, mask)
        });
        // Out of the order of quarters in which halves are packed.
        Self(_mm256_permute4x64_epi64::<0xd8>(_mm256_packus_epi32(first, second)))
    }

    /// One number in every even place, another in every odd one.
    #[target_feature(enable = "avx2")]
    #[inline]
    pub(super) fn pairs(even: i16, odd: i16) -> Self {
        Self(_mm256_unpacklo_epi16(_mm256_set1_epi16(even), _mm256_set1_epi16(odd)))
    }

    #[target_feature(enable = "avx2")]
    #[inline]
    pub(super) fn add(self, other: Self) -> Self {
        Self(_mm256_add_epi16(self.0, other.0))
    }

    #[target_feature(enable = "avx2")]
    #[inline]
    pub(super) fn sub(self, other: Self) -> Self {
        Self(_mm256_sub_epi16(self.0, other.0))
    }

    #[target_feature(enable = "avx2")]
    #[inline]
    pub(super) fn and(self, other: Self) -> Self {
        Self(_mm256_and_si256(self.0, other.0))
    }

    /// Bits shifted to the right; zeros come in.
    #[target_feature(enable = "avx2")]
    #[inline]
    pub(super) fn right<const COUNT: i32>(self) -> Self {
        Self(_mm256_srli_epi16::<COUNT>(self.0))
    }

    /// All ones where this is less, else zero.
    #[target_feature(enable = "avx2")]
    #[inline]
    pub(super) fn less(self, other: Self) -> Self {
        Self(_mm256_cmpgt_epi16(other.0, self.0))
    }

    /// The lower half of a product.
    #[target_feature(enable = "avx2")]
    #[inline]
    pub(super) fn low(self, other: Self) -> Self {
        Self(_mm256_mullo_epi16(self.0, other.0))
    }

    /// The upper half of a product.
    #[target_feature(enable = "avx2")]
    #[inline]
    pub(super) fn high(self, other: Self) -> Self {
        Self(_mm256_mulhi_epi16(self.0, other.0))
    }

    /// A product over 2^15, rounded.
    #[target_feature(enable = "avx2")]
    #[inline]
    pub(super) fn rounded(self, other: Self) -> Self {
        Self(_mm256_mulhrs_epi16(self.0, other.0))
    }

    /// Of each half of both, the first four numbers in turn, and the last four.
    #[target_feature(enable = "avx2")]
    #[inline]
    pub(super) fn interleaved(self, other: Self) -> [Self; 2] {
        let low = _mm256_unpacklo_epi16(self.0, other.0);
        [Self(low), Self(_mm256_unpackhi_epi16(self.0, other.0))]
    }

    /// The first half of both, and the second.
    #[target_feature(enable = "avx2")]
    #[inline]
    pub(super) fn halves(self, other: Self) -> [Self; 2] {
        let first = _mm256_permute2x128_si256::<0x20>(self.0, other.0);
        [Self(first), Self(_mm256_permute2x128_si256::<0x31>(self.0, other.0))]
    }

    /// Sums of two products each, added to eight sums.
    #[target_feature(enable = "avx2")]
    #[inline]
    pub(super) fn products(self, other: Self, sums: Sums) -> Sums {
        Sums(_mm256_add_epi32(sums.0, _mm256_madd_epi16(self.0, other.0)))
    }
}

/// Eight numbers of 32 bits.
#[derive(Clone, Copy)]
pub(super) struct Sums(__m256i);

impl Sums {
    #[target_feature(enable = "avx2")]
    #[inline]
    pub(super) fn zero() -> Self {
        Self(_mm256_setzero_si256())
    }

    /// The lower and the upper halves of the sums that came from interleaved vectors, in the order of before.
    #[target_feature(enable = "avx2")]
    #[inline]
    pub(super) fn parts([a, b]: [Self; 2]) -> [Vector; 2] {
        let zero = _mm256_setzero_si256();
        let (a_low, b_low) =
            (_mm256_blend_epi16::<0xaa>(a.0, zero), _mm256_blend_epi16::<0xaa>(b.0, zero));
        let high = _mm256_packs_epi32(_mm256_srai_epi32::<16>(a.0), _mm256_srai_epi32::<16>(b.0));
        [Vector(_mm256_packus_epi32(a_low, b_low)), Vector(high)]
    }

    /// Numbers of so many bits by two, the first one in the lower bits.
    #[target_feature(enable = "avx2")]
    #[inline]
    pub(super) fn joined(self, bits: i32) -> [u64; 4] {
        let gap = 32 - bits;
        let shifts = _mm256_unpacklo_epi32(_mm256_set1_epi32(gap), _mm256_setzero_si256());
        let both = _mm256_srl_epi64(_mm256_sllv_epi32(self.0, shifts), _mm_cvtsi32_si128(gap));
        let mut numbers = [0; 4];
        // SAFETY: 32 bytes are writable.
        unsafe { _mm256_storeu_si256(numbers.as_mut_ptr().cast(), both) };
        numbers
    }
}

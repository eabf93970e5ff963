// SPDX-License-Identifier: Apache-2.0
//! What a pass computes with: one bit of each of many blocks, and gates of three inputs.

#[cfg(target_arch = "x86_64")]
use std::arch::x86_64::{
    __m256i, __m512i, _mm_cvtsi32_si128, _mm256_and_si256, _mm256_loadu_si256, _mm256_set1_epi64x,
    _mm256_sll_epi64, _mm256_srl_epi64, _mm256_storeu_si256, _mm256_xor_si256, _mm512_loadu_si512,
    _mm512_set1_epi64, _mm512_slli_epi64, _mm512_srli_epi64, _mm512_storeu_si512,
    _mm512_ternarylogic_epi64,
};

/// Words at most.
pub(super) const MAX_WORDS: usize = 8;

/// `WORDS` times 64 bits. Implementations are inlined into functions that are called only where their instructions exist; nothing else
/// makes one.
pub(super) trait Word: Copy {
    /// How many words.
    const WORDS: usize;

    /// The first words.
    fn load(words: &[u64; MAX_WORDS]) -> Self;

    /// Leaves the other words as they are.
    fn store(self, words: &mut [u64; MAX_WORDS]);

    /// All words the same.
    fn splat(word: u64) -> Self;

    fn and(self, other: Self) -> Self;

    fn xor(self, other: Self) -> Self;

    /// Each word shifted towards its high bits.
    fn up<const BY: u32>(self) -> Self;

    /// Each word shifted towards its low bits.
    fn down<const BY: u32>(self) -> Self;

    /// The gate whose truth table is `TABLE`: bit 4a + 2b + c is its value.
    #[inline(always)]
    fn gate<const TABLE: i32>(a: Self, b: Self, c: Self) -> Self {
        let (when_set, when_clear) = (pair(TABLE >> 4, b, c), pair(TABLE, b, c));
        when_clear.xor(a.and(when_set.xor(when_clear)))
    }
}

/// The gate of two inputs whose truth table is the low four bits of `table`: its algebraic normal form, which the compiler shortens.
#[inline(always)]
fn pair<W: Word>(table: i32, b: W, c: W) -> W {
    let value = |at: i32| (table >> at) & 1;
    let mask = |set: i32| W::splat(if set == 0 { 0 } else { u64::MAX });
    let constant = mask(value(0));
    let by_c = c.and(mask(value(0) ^ value(1)));
    let by_b = b.and(mask(value(0) ^ value(2)));
    let by_both = b.and(c).and(mask(value(0) ^ value(1) ^ value(2) ^ value(3)));
    constant.xor(by_c).xor(by_b).xor(by_both)
}

impl Word for u64 {
    const WORDS: usize = 1;

    #[inline(always)]
    fn load(words: &[u64; MAX_WORDS]) -> Self {
        words[0]
    }

    #[inline(always)]
    fn store(self, words: &mut [u64; MAX_WORDS]) {
        words[0] = self;
    }

    #[inline(always)]
    fn splat(word: u64) -> Self {
        word
    }

    #[inline(always)]
    fn and(self, other: Self) -> Self {
        self & other
    }

    #[inline(always)]
    fn xor(self, other: Self) -> Self {
        self ^ other
    }

    #[inline(always)]
    fn up<const BY: u32>(self) -> Self {
        self << BY
    }

    #[inline(always)]
    fn down<const BY: u32>(self) -> Self {
        self >> BY
    }
}

/// 256 bits; where there is AVX2.
#[cfg(target_arch = "x86_64")]
#[derive(Clone, Copy)]
pub(super) struct Avx2(__m256i);

#[cfg(target_arch = "x86_64")]
impl Word for Avx2 {
    const WORDS: usize = 4;

    #[inline(always)]
    fn load(words: &[u64; MAX_WORDS]) -> Self {
        // SAFETY: four words are read; AVX2 is there (see the trait).
        Self(unsafe { _mm256_loadu_si256(words.as_ptr().cast()) })
    }

    #[inline(always)]
    fn store(self, words: &mut [u64; MAX_WORDS]) {
        // SAFETY: four words are written; AVX2 is there.
        unsafe { _mm256_storeu_si256(words.as_mut_ptr().cast(), self.0) };
    }

    #[inline(always)]
    fn splat(word: u64) -> Self {
        // SAFETY: AVX2 is there.
        Self(unsafe { _mm256_set1_epi64x(word.cast_signed()) })
    }

    #[inline(always)]
    fn and(self, other: Self) -> Self {
        // SAFETY: AVX2 is there.
        Self(unsafe { _mm256_and_si256(self.0, other.0) })
    }

    #[inline(always)]
    fn xor(self, other: Self) -> Self {
        // SAFETY: AVX2 is there.
        Self(unsafe { _mm256_xor_si256(self.0, other.0) })
    }

    #[inline(always)]
    fn up<const BY: u32>(self) -> Self {
        // SAFETY: AVX2 is there.
        let by = unsafe { _mm_cvtsi32_si128(BY.cast_signed()) };
        // SAFETY: as above.
        Self(unsafe { _mm256_sll_epi64(self.0, by) })
    }

    #[inline(always)]
    fn down<const BY: u32>(self) -> Self {
        // SAFETY: AVX2 is there.
        let by = unsafe { _mm_cvtsi32_si128(BY.cast_signed()) };
        // SAFETY: as above.
        Self(unsafe { _mm256_srl_epi64(self.0, by) })
    }
}

/// 512 bits; where there is AVX-512.
#[cfg(target_arch = "x86_64")]
#[derive(Clone, Copy)]
pub(super) struct Avx512(__m512i);

#[cfg(target_arch = "x86_64")]
impl Word for Avx512 {
    const WORDS: usize = 8;

    #[inline(always)]
    fn load(words: &[u64; MAX_WORDS]) -> Self {
        // SAFETY: eight words are read; AVX-512 is there (see the trait).
        Self(unsafe { _mm512_loadu_si512(words.as_ptr().cast()) })
    }

    #[inline(always)]
    fn store(self, words: &mut [u64; MAX_WORDS]) {
        // SAFETY: eight words are written; AVX-512 is there.
        unsafe { _mm512_storeu_si512(words.as_mut_ptr().cast(), self.0) };
    }

    #[inline(always)]
    fn splat(word: u64) -> Self {
        // SAFETY: AVX-512 is there.
        Self(unsafe { _mm512_set1_epi64(word.cast_signed()) })
    }

    #[inline(always)]
    fn and(self, other: Self) -> Self {
        Self::gate::<0x88>(self, self, other)
    }

    #[inline(always)]
    fn xor(self, other: Self) -> Self {
        Self::gate::<0x66>(self, self, other)
    }

    #[inline(always)]
    fn up<const BY: u32>(self) -> Self {
        // SAFETY: AVX-512 is there.
        Self(unsafe { _mm512_slli_epi64::<BY>(self.0) })
    }

    #[inline(always)]
    fn down<const BY: u32>(self) -> Self {
        // SAFETY: AVX-512 is there.
        Self(unsafe { _mm512_srli_epi64::<BY>(self.0) })
    }

    #[inline(always)]
    fn gate<const TABLE: i32>(a: Self, b: Self, c: Self) -> Self {
        // SAFETY: AVX-512 is there.
        Self(unsafe { _mm512_ternarylogic_epi64::<TABLE>(a.0, b.0, c.0) })
    }
}

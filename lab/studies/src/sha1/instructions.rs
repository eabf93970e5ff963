// SPDX-License-Identifier: Apache-2.0
//! The processor's instructions for SHA-1: four rounds, or four words, each.

use super::rounds::{BLOCK, Working};
use crate::vector::{from_bytes, to_words};
use std::arch::x86_64::{
    __m128i, _mm_add_epi32, _mm_set_epi32, _mm_set_epi64x, _mm_sha1msg1_epu32, _mm_sha1msg2_epu32,
    _mm_sha1nexte_epu32, _mm_sha1rnds4_epu32, _mm_shuffle_epi8, _mm_xor_si128,
};

/// Four of the working variables, what the fifth is made of, and the last 16 words.
struct Running {
    abcd: __m128i,
    before: __m128i,
    words: [__m128i; 4],
}

#[target_feature(enable = "sha,sse4.1,ssse3")]
#[inline(never)]
pub(super) fn compress(state: &mut Working, blocks: &[[u8; BLOCK]]) {
    let [a, b, c, d, e] = state.map(u32::cast_signed);
    let mut abcd = _mm_set_epi32(a, b, c, d);
    let mut last = _mm_set_epi32(e, 0, 0, 0);
    let swap = _mm_set_epi64x(0x0001_0203_0405_0607, 0x0809_0a0b_0c0d_0e0f);
    for block in blocks {
        let block = block.as_chunks().0;
        let word = |at: usize| _mm_shuffle_epi8(from_bytes(block[at]), swap);
        let mut run = Running { abcd, before: last, words: [word(0), word(1), word(2), word(3)] };
        run.first();
        twenty::<0>(&mut run, 4);
        twenty::<1>(&mut run, 5);
        twenty::<2>(&mut run, 5);
        twenty::<3>(&mut run, 5);
        last = _mm_sha1nexte_epu32(run.before, last);
        abcd = _mm_add_epi32(run.abcd, abcd);
    }
    let [d, c, b, a] = to_words(abcd);
    *state = [a, b, c, d, to_words(last)[3]];
}

impl Running {
    /// Four rounds, with the fifth variable as it stands.
    #[target_feature(enable = "sha,sse4.1,ssse3")]
    #[inline]
    fn first(&mut self) {
        let sum = _mm_add_epi32(self.before, self.words[0]);
        self.before = self.abcd;
        self.abcd = _mm_sha1rnds4_epu32::<0>(self.abcd, sum);
        self.advance();
    }

    /// Drops four words and makes four.
    #[target_feature(enable = "sha,sse4.1,ssse3")]
    #[inline]
    fn advance(&mut self) {
        let [a, b, c, d] = self.words;
        let partly = _mm_xor_si128(_mm_sha1msg1_epu32(a, b), c);
        self.words = [b, c, d, _mm_sha1msg2_epu32(partly, d)];
    }
}

/// Four rounds, so many times; the words that the last ones make are of no use.
#[target_feature(enable = "sha,sse4.1,ssse3")]
#[inline]
fn twenty<const KIND: i32>(run: &mut Running, times: usize) {
    for _ in 0..times {
        let sum = _mm_sha1nexte_epu32(run.before, run.words[0]);
        run.before = run.abcd;
        run.abcd = _mm_sha1rnds4_epu32::<KIND>(run.abcd, sum);
        run.advance();
    }
}

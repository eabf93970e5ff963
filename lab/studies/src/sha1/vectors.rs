// SPDX-License-Identifier: Apache-2.0
//! Expansion in vectors, beside the rounds: while the scalar units do four rounds of a block, the vector
//! units make four words of the next one.
//!
//! From word 32 on the recurrence is taken twice: then no word depends on one of its own vector.

use super::rounds::{BLOCK, CONSTANTS, Working, add, round};
use crate::vector::{from_bytes, to_words};
use std::arch::x86_64::{
    __m128i, _mm_add_epi32, _mm_alignr_epi8, _mm_or_si128, _mm_set_epi64x, _mm_set1_epi32,
    _mm_setzero_si128, _mm_shuffle_epi8, _mm_slli_epi32, _mm_slli_si128, _mm_srli_epi32,
    _mm_srli_si128, _mm_xor_si128,
};

/// Vectors of a block's words.
const VECTORS: usize = 20;

/// The words of a block so far, and the same with the rounds' constants.
struct Schedule {
    words: [__m128i; VECTORS],
    added: [[u32; 4]; VECTORS],
}

impl Schedule {
    #[target_feature(enable = "ssse3")]
    fn new() -> Self {
        Self { words: [_mm_setzero_si128(); VECTORS], added: [[0; 4]; VECTORS] }
    }

    /// The next four words.
    #[target_feature(enable = "ssse3")]
    #[inline]
    fn step<const AT: usize>(&mut self, block: &[u8; BLOCK]) {
        let of = |back: usize| self.words[AT.wrapping_sub(back) % VECTORS];
        let words = match AT {
            0..4 => {
                let swap = _mm_set_epi64x(0x0c0d_0e0f_0809_0a0b, 0x0405_0607_0001_0203);
                _mm_shuffle_epi8(from_bytes(block.as_chunks().0[AT]), swap)
            }
            4..8 => {
                let near = _mm_xor_si128(_mm_srli_si128::<4>(of(1)), of(2));
                let far = _mm_xor_si128(_mm_alignr_epi8::<8>(of(3), of(4)), of(4));
                let words = rotated::<1, 31>(_mm_xor_si128(near, far));
                // The last word depends on the first of the same four.
                _mm_xor_si128(words, rotated::<1, 31>(_mm_slli_si128::<12>(words)))
            }
            _ => {
                let near = _mm_xor_si128(_mm_alignr_epi8::<8>(of(1), of(2)), of(4));
                rotated::<2, 30>(_mm_xor_si128(near, _mm_xor_si128(of(7), of(8))))
            }
        };
        self.words[AT] = words;
        let constant = _mm_set1_epi32(CONSTANTS[AT / 5].cast_signed());
        self.added[AT] = to_words(_mm_add_epi32(words, constant));
    }
}

#[target_feature(enable = "ssse3")]
#[inline]
fn rotated<const LEFT: i32, const RIGHT: i32>(x: __m128i) -> __m128i {
    _mm_or_si128(_mm_slli_epi32::<LEFT>(x), _mm_srli_epi32::<RIGHT>(x))
}

/// The rounds of each block, with the expansion of the block after it. After the last block its own
/// expansion is made once more: the loop has no other form for it.
#[target_feature(enable = "ssse3")]
#[inline(never)]
pub(super) fn compress(state: &mut Working, blocks: &[[u8; BLOCK]]) {
    let Some(mut ahead) = blocks.first() else { return };
    let (mut now, mut next) = (Schedule::new(), Schedule::new());
    both(&mut next, ahead, &now, *state);
    for at in 1..=blocks.len() {
        std::mem::swap(&mut now, &mut next);
        ahead = blocks.get(at).unwrap_or(ahead);
        let working = both(&mut next, ahead, &now, *state);
        add(state, working);
    }
}

/// All rounds of one block, and all words of another one.
#[target_feature(enable = "ssse3")]
#[inline]
fn both(next: &mut Schedule, block: &[u8; BLOCK], now: &Schedule, working: Working) -> Working {
    let working = part::<0, 0, 1, 2, 3, 4>(next, block, now, working);
    let working = part::<1, 5, 6, 7, 8, 9>(next, block, now, working);
    let working = part::<2, 10, 11, 12, 13, 14>(next, block, now, working);
    part::<3, 15, 16, 17, 18, 19>(next, block, now, working)
}

/// Twenty rounds.
#[target_feature(enable = "ssse3")]
#[inline]
fn part<
    const KIND: usize,
    const A: usize,
    const B: usize,
    const C: usize,
    const D: usize,
    const E: usize,
>(
    next: &mut Schedule,
    block: &[u8; BLOCK],
    now: &Schedule,
    working: Working,
) -> Working {
    let four = |working: Working, at: usize| now.added[at].into_iter().fold(working, round::<KIND>);
    next.step::<A>(block);
    let working = four(working, A);
    next.step::<B>(block);
    let working = four(working, B);
    next.step::<C>(block);
    let working = four(working, C);
    next.step::<D>(block);
    let working = four(working, D);
    next.step::<E>(block);
    four(working, E)
}

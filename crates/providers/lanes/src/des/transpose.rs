// SPDX-License-Identifier: Apache-2.0
//! From blocks to bits and back.

use super::LANES;
use super::word::{MAX_WORDS, Word};

/// Bits of a block.
pub(super) const BITS: usize = 64;

/// As blocks: of [`LANES`] blocks, or as many as a word type has, each as a little-endian number; as bits: [`BITS`] words.
/// Word `at` begins at `at * MAX_WORDS` in both.
#[derive(Clone, Copy)]
#[repr(C, align(64))]
pub(super) struct Slab(pub(super) [u64; LANES]);

impl Slab {
    pub(super) const ZERO: Self = Self([0; LANES]);

    /// Where a lane's block is.
    #[inline(always)]
    pub(super) const fn place<W: Word>(lane: usize) -> usize {
        lane / W::WORDS * MAX_WORDS + lane % W::WORDS
    }

    #[inline(always)]
    pub(super) fn word<W: Word>(&self, at: usize) -> W {
        W::load(&self.0.as_chunks::<MAX_WORDS>().0[at])
    }

    #[inline(always)]
    pub(super) fn set_word<W: Word>(&mut self, at: usize, word: W) {
        word.store(&mut self.0.as_chunks_mut::<MAX_WORDS>().0[at]);
    }

    /// Exchanges bit `b` of block word `a` and bit `a` of block word `b` everywhere; its own inverse (Warren: "Hacker's Delight",
    /// §7-3). Three of the six halvings at a time stay in registers.
    #[inline(always)]
    pub(super) fn transpose<W: Word>(&mut self) {
        for first in 0..8 {
            let mut eight = self.eight::<W, 8>(first);
            exchange::<W, 32>(&mut eight, 4, 0x0000_0000_ffff_ffff);
            exchange::<W, 16>(&mut eight, 2, 0x0000_ffff_0000_ffff);
            exchange::<W, 8>(&mut eight, 1, 0x00ff_00ff_00ff_00ff);
            self.set_eight::<W, 8>(first, eight);
        }
        for first in 0..8 {
            let mut eight = self.eight::<W, 1>(8 * first);
            exchange::<W, 4>(&mut eight, 4, 0x0f0f_0f0f_0f0f_0f0f);
            exchange::<W, 2>(&mut eight, 2, 0x3333_3333_3333_3333);
            exchange::<W, 1>(&mut eight, 1, 0x5555_5555_5555_5555);
            self.set_eight::<W, 1>(8 * first, eight);
        }
    }

    #[inline(always)]
    fn eight<W: Word, const STEP: usize>(&self, first: usize) -> [W; 8] {
        let mut eight = [W::splat(0); 8];
        for (at, word) in eight.iter_mut().enumerate() {
            *word = self.word(first + STEP * at);
        }
        eight
    }

    #[inline(always)]
    fn set_eight<W: Word, const STEP: usize>(&mut self, first: usize, eight: [W; 8]) {
        for (at, word) in eight.into_iter().enumerate() {
            self.set_word(first + STEP * at, word);
        }
    }
}

/// Exchanges the high halves of words with the low halves of those `apart` behind them.
#[inline(always)]
fn exchange<W: Word, const BY: u32>(words: &mut [W; 8], apart: usize, low: u64) {
    let low = W::splat(low);
    for at in 0..8 {
        if at & apart != 0 {
            continue;
        }
        let (a, b) = (words[at], words[at + apart]);
        let differ = a.down::<BY>().xor(b).and(low);
        words[at] = a.xor(differ.up::<BY>());
        words[at + apart] = b.xor(differ);
    }
}

// SPDX-License-Identifier: Apache-2.0
//! ChaCha20's key stream (RFC 8439 §2.3, §2.4), 16 blocks in the lanes of a register's words.

use crate::aes::transposed;
use crate::cpu::{Cpu, cpu};
use std::arch::x86_64::{
    __m512i, _mm512_add_epi32, _mm512_rol_epi32, _mm512_set_epi32, _mm512_set1_epi32,
    _mm512_storeu_si512, _mm512_unpackhi_epi32, _mm512_unpackhi_epi64, _mm512_unpacklo_epi32,
    _mm512_unpacklo_epi64, _mm512_xor_si512,
};

/// Length of a key, in bytes.
pub const KEY: usize = 32;
/// Length of a nonce, in bytes.
pub const NONCE: usize = 12;
/// Length of a block of the stream, in bytes.
pub(super) const BLOCK: usize = 64;
/// Words of a block.
const WORDS: usize = 16;
/// Blocks that are computed at a time.
const LANES: usize = 16;

/// So much of the key stream.
#[derive(Clone, Copy)]
#[repr(C, align(16))]
pub(super) struct Blocks([[u8; BLOCK]; LANES]);

/// The stream of a key and a nonce.
#[derive(Clone, Copy)]
pub(super) struct Stream {
    /// As the next blocks begin.
    state: [u32; WORDS],
    blocks: Blocks,
    /// Bytes of `blocks` that are used.
    used: usize,
}

impl Stream {
    pub(super) const ZERO: Self =
        Self { state: [0; WORDS], blocks: Blocks([[0; BLOCK]; LANES]), used: 0 };

    /// The first block is computed, and others with it.
    ///
    /// # Panics
    /// When the machine lacks the instructions.
    pub(super) fn begin(&mut self, key: &[u8; KEY], nonce: &[u8; NONCE]) {
        assert!(cpu().has(Cpu::AVX512), "the instructions are there");
        // "expand 32-byte k"
        self.state[..4].copy_from_slice(&[0x6170_7865, 0x3320_646e, 0x7962_2d32, 0x6b20_6574]);
        let words = key.as_chunks().0.iter().chain(std::iter::once(&[0; 4]));
        let words = words.chain(nonce.as_chunks().0);
        for (word, bytes) in self.state[4..].iter_mut().zip(words) {
            *word = u32::from_le_bytes(*bytes);
        }
        self.refill();
    }

    /// The first block, which the text has no part in.
    pub(super) fn first(&mut self) -> &[u8; BLOCK] {
        self.used = BLOCK;
        &self.blocks.0[0]
    }

    /// How many bytes of the blocks that are there are used.
    pub(super) fn used(&self) -> usize {
        self.used % size_of::<Blocks>()
    }

    #[cfg(test)]
    pub(super) fn is_zero(&self) -> bool {
        let bytes = self.blocks.0.as_flattened();
        self.state == [0; WORDS] && bytes.iter().all(|byte| *byte == 0)
    }

    fn refill(&mut self) {
        // SAFETY: a stream that was begun has seen that the instructions are there, and no other comes here.
        unsafe { blocks(&self.state, &mut self.blocks) };
        self.state[12] = self.state[12].wrapping_add(u32::try_from(LANES).unwrap_or(0));
        self.used = 0;
    }

    /// Protected memory is zeros in a forked child: there the text must not pass as it is.
    pub(super) fn assert_begun(&self) {
        assert!(self.state[0] != 0, "a stream that was begun");
    }

    /// The text under the stream from where it is.
    pub(super) fn apply(&mut self, text: &[u8], out: &mut [u8]) {
        self.assert_begun();
        let mut at = 0;
        while at < text.len() {
            if self.used >= size_of::<Blocks>() {
                self.refill();
            }
            let stream = &self.blocks.0.as_flattened()[self.used..];
            let end = text.len().min(at + stream.len());
            // SAFETY: as in `refill`: it was begun (asserted).
            unsafe { exclusive_or(&text[at..end], stream, &mut out[at..end]) };
            self.used += end - at;
            at = end;
        }
    }
}

#[target_feature(enable = "avx512f,avx512bw,avx512vl")]
fn exclusive_or(text: &[u8], stream: &[u8], out: &mut [u8]) {
    for ((out, text), stream) in out.iter_mut().zip(text).zip(stream) {
        *out = text ^ stream;
    }
}

/// The blocks that begin with a state, and those that follow.
#[target_feature(enable = "avx512f")]
fn blocks(state: &[u32; WORDS], out: &mut Blocks) {
    let mut start = state.map(|word| _mm512_set1_epi32(word.cast_signed()));
    let counters = _mm512_set_epi32(15, 14, 13, 12, 11, 10, 9, 8, 7, 6, 5, 4, 3, 2, 1, 0);
    start[12] = _mm512_add_epi32(start[12], counters);
    let mut x = start;
    for _ in 0..10 {
        for at in 0..4 {
            quarter(&mut x, at, 4 + at, 8 + at, 12 + at);
        }
        for at in 0..4 {
            quarter(&mut x, at, 4 + (at + 1) % 4, 8 + (at + 2) % 4, 12 + (at + 3) % 4);
        }
    }
    for (x, start) in x.iter_mut().zip(start) {
        *x = _mm512_add_epi32(*x, start);
    }
    // Four words of a block together, then its four fours.
    let [a, b, c, d] = [0, 4, 8, 12].map(|at| by_fours([x[at], x[at + 1], x[at + 2], x[at + 3]]));
    for (at, (((a, b), c), d)) in a.into_iter().zip(b).zip(c).zip(d).enumerate() {
        for (quarter, block) in transposed([a, b, c, d]).into_iter().enumerate() {
            let to = out.0[4 * quarter + at].as_mut_ptr();
            // SAFETY: a block has as many bytes as a register.
            unsafe { _mm512_storeu_si512(to.cast(), block) };
        }
    }
}

/// RFC 8439 §2.1.
#[inline]
#[target_feature(enable = "avx512f")]
fn quarter(x: &mut [__m512i; WORDS], a: usize, b: usize, c: usize, d: usize) {
    x[a] = _mm512_add_epi32(x[a], x[b]);
    x[d] = _mm512_rol_epi32::<16>(_mm512_xor_si512(x[d], x[a]));
    x[c] = _mm512_add_epi32(x[c], x[d]);
    x[b] = _mm512_rol_epi32::<12>(_mm512_xor_si512(x[b], x[c]));
    x[a] = _mm512_add_epi32(x[a], x[b]);
    x[d] = _mm512_rol_epi32::<8>(_mm512_xor_si512(x[d], x[a]));
    x[c] = _mm512_add_epi32(x[c], x[d]);
    x[b] = _mm512_rol_epi32::<7>(_mm512_xor_si512(x[b], x[c]));
}

/// Of four words of each block one register with those of the blocks 0, 4, 8 and 12, one with those of 1, 5, 9 and 13, and so on.
#[inline]
#[target_feature(enable = "avx512f")]
fn by_fours([a, b, c, d]: [__m512i; 4]) -> [__m512i; 4] {
    let (ab, cd) = (_mm512_unpacklo_epi32(a, b), _mm512_unpacklo_epi32(c, d));
    let (ab2, cd2) = (_mm512_unpackhi_epi32(a, b), _mm512_unpackhi_epi32(c, d));
    [
        _mm512_unpacklo_epi64(ab, cd),
        _mm512_unpackhi_epi64(ab, cd),
        _mm512_unpacklo_epi64(ab2, cd2),
        _mm512_unpackhi_epi64(ab2, cd2),
    ]
}

// SPDX-License-Identifier: Apache-2.0
//! The modes in which the blocks of one message can be computed side by side.

use super::blocks::{REGISTER, broadcast, first, load, rounds, store};
use super::key::{BLOCK, Key, RoundKeys};
use crate::data::{Data, Way};
use std::arch::x86_64::{
    __m512i, _mm_set_epi64x, _mm512_add_epi64, _mm512_aesdeclast_epi128, _mm512_aesenclast_epi128,
    _mm512_alignr_epi64, _mm512_broadcast_i32x4, _mm512_set_epi64, _mm512_shuffle_epi8,
    _mm512_xor_si512,
};

/// A counter block of counter mode, and how much of its key stream is used.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Counter {
    block: u128,
    bits: u32,
    used: usize,
}

impl Counter {
    /// Begins with this counter block, of which the last `bits` bits are the counter, big-endian (`CK_AES_CTR_PARAMS`); it wraps
    /// around within them.
    ///
    /// # Panics
    /// When `bits` is not 1 to 128.
    #[must_use]
    pub const fn new(block: [u8; BLOCK], bits: u32) -> Self {
        assert!(bits >= 1 && bits <= 128, "a counter has 1 to 128 bits");
        Self { block: u128::from_be_bytes(block), bits, used: 0 }
    }

    /// The counter block of the next byte.
    #[must_use]
    pub const fn block(&self) -> [u8; BLOCK] {
        self.block.to_be_bytes()
    }

    /// How many bytes of that block's key stream are used: 0 to 15.
    #[must_use]
    pub const fn used(&self) -> usize {
        self.used
    }

    /// How many blocks, this one the first, can be counted in the low 64 bits alone.
    const fn run(&self) -> u128 {
        let bits = if self.bits < 64 { self.bits } else { 64 };
        let size = 1 << bits;
        size - (self.block & (size - 1))
    }

    const fn advance(&mut self, blocks: usize) {
        let counting = u128::MAX >> (128 - self.bits);
        let next = self.block.wrapping_add(blocks as u128);
        self.block = (self.block & !counting) | (next & counting);
    }
}

impl Key {
    /// ECB over whole blocks.
    ///
    /// # Panics
    /// When `data` is no whole number of blocks.
    pub fn ecb(&self, way: Way, data: Data<'_>) {
        whole_blocks(&data);
        match way {
            Way::Encrypt => self.run::<ECB_ENCRYPT>([0; BLOCK], data),
            Way::Decrypt => self.run::<ECB_DECRYPT>([0; BLOCK], data),
        }
    }

    /// CBC decryption of whole blocks; `iv` is left as the next part needs it.
    ///
    /// # Panics
    /// When `data` is no whole number of blocks.
    pub fn cbc_decrypt(&self, iv: &mut [u8; BLOCK], data: Data<'_>) {
        whole_blocks(&data);
        let before = *iv;
        if !data.is_empty() {
            data.read(data.len() - BLOCK, iv);
            self.run::<CBC_DECRYPT>(before, data);
        }
    }

    /// Counter mode; continues at the byte where the last call with this `counter` ended.
    pub fn ctr(&self, counter: &mut Counter, mut data: Data<'_>) {
        if counter.used > 0 {
            let head = data.len().min(BLOCK - counter.used);
            let (head, rest) = data.split(head);
            self.within_block(counter, head);
            data = rest;
        }
        while !data.is_empty() {
            let run = usize::try_from(counter.run()).unwrap_or(usize::MAX);
            let length = data.len().min(run.saturating_mul(BLOCK));
            let (part, rest) = data.split(length);
            self.run::<CTR>(counter.block.to_le_bytes(), part);
            counter.advance(length / BLOCK);
            counter.used = length % BLOCK;
            data = rest;
        }
    }

    /// Bytes of the key stream of one block.
    fn within_block(&self, counter: &mut Counter, mut data: Data<'_>) {
        let mut block = [0; BLOCK];
        let end = counter.used + data.len();
        data.read(0, &mut block[counter.used..end]);
        self.run::<CTR>(counter.block.to_le_bytes(), Data::in_place(&mut block));
        data.write(0, &block[counter.used..end]);
        block = [0; BLOCK];
        std::hint::black_box(&mut block);
        counter.used = end % BLOCK;
        counter.advance(end / BLOCK);
    }

    fn run<const MODE: u8>(&self, start: [u8; BLOCK], data: Data<'_>) {
        let keys = match MODE {
            ECB_ENCRYPT | CTR => self.encryption(),
            _ => self.decryption(),
        };
        match self.rounds() {
            // SAFETY: where there is a key, there are the instructions.
            10 => unsafe { message::<MODE, 10>(keys, start, data) },
            // SAFETY: as above.
            12 => unsafe { message::<MODE, 12>(keys, start, data) },
            // SAFETY: as above.
            _ => unsafe { message::<MODE, 14>(keys, start, data) },
        }
    }
}

fn whole_blocks(data: &Data<'_>) {
    assert!(data.len().is_multiple_of(BLOCK), "no whole number of blocks");
}

const ECB_ENCRYPT: u8 = 0;
const ECB_DECRYPT: u8 = 1;
/// Chained to the block before the first, in lane 3 of the state.
const CBC_DECRYPT: u8 = 2;
/// The state is the next four counters, little-endian; only their low halves count.
const CTR: u8 = 3;

#[target_feature(enable = "avx512f,avx512bw,vaes")]
fn message<const MODE: u8, const ROUNDS: usize>(
    keys: &RoundKeys,
    start: [u8; BLOCK],
    mut data: Data<'_>,
) {
    let mut state = broadcast(&start);
    if MODE == CTR {
        state = _mm512_add_epi64(state, low_halves([0, 1, 2, 3]));
    }
    let mut at = 0;
    while data.len() - at >= 8 * REGISTER {
        group::<MODE, ROUNDS, 8, true>(keys, &mut state, &mut data, at, 0);
        at += 8 * REGISTER;
    }
    if data.len() - at >= 4 * REGISTER {
        group::<MODE, ROUNDS, 4, true>(keys, &mut state, &mut data, at, 0);
        at += 4 * REGISTER;
    }
    let left = data.len() - at;
    if left == 0 {
        return;
    }
    let mask = first((left - 1) % REGISTER + 1);
    match left.div_ceil(REGISTER) {
        1 => group::<MODE, ROUNDS, 1, false>(keys, &mut state, &mut data, at, mask),
        2 => group::<MODE, ROUNDS, 2, false>(keys, &mut state, &mut data, at, mask),
        3 => group::<MODE, ROUNDS, 3, false>(keys, &mut state, &mut data, at, mask),
        _ => group::<MODE, ROUNDS, 4, false>(keys, &mut state, &mut data, at, mask),
    }
}

/// Up to `4 * N` blocks; moves the state on.
#[inline]
#[target_feature(enable = "avx512f,avx512bw,vaes")]
fn group<const MODE: u8, const ROUNDS: usize, const N: usize, const WHOLE: bool>(
    keys: &RoundKeys,
    state: &mut __m512i,
    data: &mut Data<'_>,
    at: usize,
    mask: u64,
) {
    let text = load::<MODE, ROUNDS, N, WHOLE>(data, at, mask);
    let last = broadcast(&keys[ROUNDS]);
    let mut out = if MODE == CTR { counters(state) } else { text };
    match (MODE, WHOLE) {
        (ECB_ENCRYPT, true) => rounds::<true, ROUNDS, N, 0>(keys, &mut out),
        (ECB_ENCRYPT, false) => rounds::<true, ROUNDS, N, 1>(keys, &mut out),
        (CTR, true) => rounds::<true, ROUNDS, N, 2>(keys, &mut out),
        (CTR, false) => rounds::<true, ROUNDS, N, 3>(keys, &mut out),
        (ECB_DECRYPT, true) => rounds::<false, ROUNDS, N, 0>(keys, &mut out),
        (ECB_DECRYPT, false) => rounds::<false, ROUNDS, N, 1>(keys, &mut out),
        (_, true) => rounds::<false, ROUNDS, N, 2>(keys, &mut out),
        (_, false) => rounds::<false, ROUNDS, N, 3>(keys, &mut out),
    }
    for (out, text) in out.iter_mut().zip(text) {
        *out = match MODE {
            ECB_ENCRYPT => _mm512_aesenclast_epi128(*out, last),
            ECB_DECRYPT => _mm512_aesdeclast_epi128(*out, last),
            CBC_DECRYPT => {
                let before = _mm512_alignr_epi64::<6>(text, *state);
                *state = text;
                _mm512_aesdeclast_epi128(*out, _mm512_xor_si512(last, before))
            }
            _ => _mm512_aesenclast_epi128(*out, _mm512_xor_si512(last, text)),
        };
    }
    store::<MODE, ROUNDS, N, WHOLE>(data, at, mask, &out);
}

/// The next `4 * N` counter blocks.
#[inline]
#[target_feature(enable = "avx512f,avx512bw")]
fn counters<const N: usize>(next: &mut __m512i) -> [__m512i; N] {
    let big_endian =
        _mm512_broadcast_i32x4(_mm_set_epi64x(0x0001_0203_0405_0607, 0x0809_0a0b_0c0d_0e0f));
    let mut blocks = [*next; N];
    let mut ahead = 0;
    for block in &mut blocks {
        *block = _mm512_shuffle_epi8(_mm512_add_epi64(*next, low_halves([ahead; 4])), big_endian);
        ahead += 4;
    }
    *next = _mm512_add_epi64(*next, low_halves([ahead; 4]));
    blocks
}

/// The numbers in the low halves of the four lanes.
#[inline]
#[target_feature(enable = "avx512f")]
fn low_halves([a, b, c, d]: [i64; 4]) -> __m512i {
    _mm512_set_epi64(0, d, 0, c, 0, b, 0, a)
}

// SPDX-License-Identifier: Apache-2.0
//! AES-NI: an instruction does a round of a block.

use super::{Block, Key, Stream};
use crate::vector::{from_bytes, to_bytes};
use std::arch::x86_64::{
    __m128i, _mm_aesdec_si128, _mm_aesdeclast_si128, _mm_aesenc_si128, _mm_aesenclast_si128,
    _mm_xor_si128,
};
use std::array;

/// Blocks under way at a time, where there are several.
const WIDTH: usize = 8;

/// Eight streams at a time where there are several.
#[target_feature(enable = "aes")]
#[inline(never)]
pub(super) fn encrypt(key: &Key, streams: &mut [Stream]) {
    let (groups, rest) = streams.as_chunks_mut::<WIDTH>();
    groups.iter_mut().for_each(|group| chain(key.round_keys(), group));
    for stream in rest {
        chain(key.round_keys(), array::from_mut(stream));
    }
}

#[target_feature(enable = "aes")]
#[inline]
fn chain<const N: usize>(keys: &[Block], streams: &mut [Stream; N]) {
    let mut state = streams.each_ref().map(|stream| from_bytes(stream.iv));
    for at in 0..streams[0].input.len() {
        for n in 0..N {
            state[n] = _mm_xor_si128(state[n], from_bytes(streams[n].input[at]));
        }
        state = rounds(keys, state);
        for n in 0..N {
            streams[n].output[at] = to_bytes(state[n]);
        }
    }
}

#[target_feature(enable = "aes")]
#[inline]
fn rounds<const N: usize>(keys: &[Block], mut state: [__m128i; N]) -> [__m128i; N] {
    let [first, inner @ .., last] = keys else { return state };
    state = state.map(|block| _mm_xor_si128(block, from_bytes(*first)));
    for key in inner {
        state = state.map(|block| _mm_aesenc_si128(block, from_bytes(*key)));
    }
    state.map(|block| _mm_aesenclast_si128(block, from_bytes(*last)))
}

/// Each stream, eight of its blocks at a time.
#[target_feature(enable = "aes")]
#[inline(never)]
pub(super) fn decrypt(key: &Key, streams: &mut [Stream]) {
    for stream in streams {
        let mut before = from_bytes(stream.iv);
        let (groups, rest) = stream.input.as_chunks::<WIDTH>();
        let (outputs, others) = stream.output.as_chunks_mut::<WIDTH>();
        for (input, output) in groups.iter().zip(outputs) {
            before = unchain(key.inverse_keys(), before, input, output);
        }
        for (input, output) in rest.iter().zip(others) {
            let (input, output) = (array::from_ref(input), array::from_mut(output));
            before = unchain(key.inverse_keys(), before, input, output);
        }
    }
}

/// The blocks decrypted, and the last one that went in.
#[target_feature(enable = "aes")]
#[inline]
fn unchain<const N: usize>(
    keys: &[Block],
    mut before: __m128i,
    input: &[Block; N],
    output: &mut [Block; N],
) -> __m128i {
    let [first, inner @ .., last] = keys else { return before };
    let blocks = input.map(from_bytes);
    let mut state = blocks.map(|block| _mm_xor_si128(block, from_bytes(*first)));
    for key in inner {
        state = state.map(|block| _mm_aesdec_si128(block, from_bytes(*key)));
    }
    for n in 0..N {
        let plain = _mm_aesdeclast_si128(state[n], from_bytes(*last));
        output[n] = to_bytes(_mm_xor_si128(plain, before));
        before = blocks[n];
    }
    before
}

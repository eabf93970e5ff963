// SPDX-License-Identifier: Apache-2.0
//! VAES: an instruction does a round of four blocks. One stream's encryption can use one of the four.

use super::{Block, Key, MANY, Stream};
use crate::vector::{from_bytes, wide_from_bytes, wide_to_bytes};
use std::arch::x86_64::{
    __m512i, _mm512_aesdec_epi128, _mm512_aesdeclast_epi128, _mm512_aesenc_epi128,
    _mm512_aesenclast_epi128, _mm512_broadcast_i32x4, _mm512_xor_si512,
};
use std::array;

/// Blocks in a register.
const LANES: usize = 4;
/// Registers, where there are as many blocks.
const FOUR: usize = MANY / LANES;

type Quad = [Block; LANES];

/// All streams side by side.
#[target_feature(enable = "vaes,avx512f")]
#[inline(never)]
pub(super) fn encrypt(key: &Key, streams: &mut [Stream]) {
    match streams {
        [stream] => one(key.round_keys(), stream),
        _ => {
            if let Ok(streams) = streams.try_into() {
                many(key.round_keys(), streams);
            }
        }
    }
}

fn load(blocks: Quad) -> __m512i {
    let mut bytes = [0; 64];
    bytes.copy_from_slice(blocks.as_flattened());
    wide_from_bytes(bytes)
}

fn store(vector: __m512i) -> Quad {
    let bytes = wide_to_bytes(vector);
    let blocks = bytes.as_chunks().0;
    array::from_fn(|n| blocks[n])
}

#[target_feature(enable = "vaes,avx512f")]
#[inline]
fn one(keys: &[Block], stream: &mut Stream) {
    let lane = |block| load([block, [0; 16], [0; 16], [0; 16]]);
    let mut state = [lane(stream.iv)];
    for (input, output) in stream.input.iter().zip(&mut stream.output) {
        state = rounds(keys, [_mm512_xor_si512(state[0], lane(*input))]);
        *output = store(state[0])[0];
    }
}

#[target_feature(enable = "vaes,avx512f")]
#[inline]
fn many(keys: &[Block], streams: &mut [Stream; MANY]) {
    let group = |g: usize| array::from_fn(|n| streams[LANES * g + n].iv);
    let mut state: [__m512i; FOUR] = array::from_fn(|g| load(group(g)));
    for at in 0..streams[0].input.len() {
        for g in 0..FOUR {
            let input = load(array::from_fn(|n| streams[LANES * g + n].input[at]));
            state[g] = _mm512_xor_si512(state[g], input);
        }
        state = rounds(keys, state);
        for g in 0..FOUR {
            for (n, block) in store(state[g]).into_iter().enumerate() {
                streams[LANES * g + n].output[at] = block;
            }
        }
    }
}

#[target_feature(enable = "vaes,avx512f")]
#[inline]
fn rounds<const N: usize>(keys: &[Block], mut state: [__m512i; N]) -> [__m512i; N] {
    let [first, inner @ .., last] = keys else { return state };
    let wide = |key: &Block| _mm512_broadcast_i32x4(from_bytes(*key));
    state = state.map(|blocks| _mm512_xor_si512(blocks, wide(first)));
    for key in inner {
        state = state.map(|blocks| _mm512_aesenc_epi128(blocks, wide(key)));
    }
    state.map(|blocks| _mm512_aesenclast_epi128(blocks, wide(last)))
}

/// Each stream, sixteen of its blocks at a time, and the rest alone.
#[target_feature(enable = "vaes,avx512f")]
#[inline(never)]
pub(super) fn decrypt(key: &Key, streams: &mut [Stream]) {
    for stream in streams {
        let mut before = stream.iv;
        let (groups, rest) = stream.input.as_chunks::<MANY>();
        let (outputs, others) = stream.output.as_chunks_mut::<MANY>();
        for (input, output) in groups.iter().zip(outputs) {
            unchain(key.inverse_keys(), &mut before, input, output);
        }
        for (input, output) in rest.iter().zip(others) {
            // One block is not worth a loop of its own: it goes sixteen times.
            let mut many = [[0; 16]; MANY];
            unchain(key.inverse_keys(), &mut before, &[*input; MANY], &mut many);
            *output = many[0];
        }
    }
}

#[target_feature(enable = "vaes,avx512f")]
#[inline]
fn unchain(keys: &[Block], before: &mut Block, input: &[Block; MANY], output: &mut [Block; MANY]) {
    let [first, inner @ .., last] = keys else { return };
    let wide = |key: &Block| _mm512_broadcast_i32x4(from_bytes(*key));
    let quad = |at: usize| load(array::from_fn(|n| input[at + n]));
    let mut state = [quad(0), quad(4), quad(8), quad(12)];
    // What each block is added to: the one before it.
    let begin = load([*before, input[0], input[1], input[2]]);
    let chain = [begin, quad(3), quad(7), quad(11)];
    *before = input[MANY - 1];
    state = state.map(|blocks| _mm512_xor_si512(blocks, wide(first)));
    for key in inner {
        state = state.map(|blocks| _mm512_aesdec_epi128(blocks, wide(key)));
    }
    let places = output.as_chunks_mut::<LANES>().0.iter_mut();
    for ((place, state), chain) in places.zip(state).zip(chain) {
        let plain = _mm512_aesdeclast_epi128(state, wide(last));
        *place = store(_mm512_xor_si512(plain, chain));
    }
}

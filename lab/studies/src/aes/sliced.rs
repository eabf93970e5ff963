// SPDX-License-Identifier: Apache-2.0
//! Eight blocks at a time: bit `b` of byte `p` of register `n` is bit `n` of byte `p` of block `b`. No
//! address and no branch depends on a value.

use super::bits::Bits;
use super::circuit::{restore, substitute};
use super::stream::add;
use super::{Block, Key, Stream};
use crate::vector::{from_bytes, to_bytes};
use std::arch::x86_64::{_mm_set1_epi8, _mm_shuffle_epi8, _mm_slli_epi64, _mm_srli_epi64};
use std::array;

/// Blocks side by side.
const WIDTH: usize = 8;

type Slices = [Bits; 8];

/// Where each byte comes from: the rows shifted, and shifted back.
const SHIFT: Block = [0, 5, 10, 15, 4, 9, 14, 3, 8, 13, 2, 7, 12, 1, 6, 11];
const UNSHIFT: Block = [0, 13, 10, 7, 4, 1, 14, 11, 8, 5, 2, 15, 12, 9, 6, 3];
/// The next byte of the same column, and the one after.
const NEXT: Block = [1, 2, 3, 0, 5, 6, 7, 4, 9, 10, 11, 8, 13, 14, 15, 12];
const AFTER: Block = [2, 3, 0, 1, 6, 7, 4, 5, 10, 11, 8, 9, 14, 15, 12, 13];

/// The streams, eight at a time or as many as there are.
#[target_feature(enable = "ssse3")]
#[inline(never)]
pub(super) fn encrypt(key: &Key, streams: &mut [Stream]) {
    let keys: Vec<Slices> = key.round_keys().iter().map(sliced_key).collect();
    for group in streams.chunks_mut(WIDTH) {
        let mut chain: [Block; WIDTH] = array::from_fn(|n| group.get(n).map_or([0; 16], |s| s.iv));
        let blocks = group.first().map_or(0, |stream| stream.input.len());
        for at in 0..blocks {
            for (chain, stream) in chain.iter_mut().zip(group.iter()) {
                *chain = add(*chain, stream.input[at]);
            }
            chain = encrypt_blocks(&keys, chain);
            for (chain, stream) in chain.iter().zip(group.iter_mut()) {
                stream.output[at] = *chain;
            }
        }
    }
}

/// Each stream, eight of its blocks at a time.
#[target_feature(enable = "ssse3")]
#[inline(never)]
pub(super) fn decrypt(key: &Key, streams: &mut [Stream]) {
    let keys: Vec<Slices> = key.round_keys().iter().map(sliced_key).collect();
    for stream in streams {
        let mut chain = stream.iv;
        let groups = stream.input.chunks(WIDTH).zip(stream.output.chunks_mut(WIDTH));
        for (input, output) in groups {
            let blocks = array::from_fn(|n| input.get(n).copied().unwrap_or_default());
            let plain = decrypt_blocks(&keys, blocks);
            for ((output, plain), input) in output.iter_mut().zip(plain).zip(input) {
                *output = add(plain, chain);
                chain = *input;
            }
        }
    }
}

#[target_feature(enable = "ssse3")]
fn encrypt_blocks(keys: &[Slices], blocks: [Block; WIDTH]) -> [Block; WIDTH] {
    let [first, inner @ .., last] = keys else { return blocks };
    let mut state = sum(sliced(blocks), first);
    for key in inner {
        state = sum(mixed(moved(substitute(state), SHIFT)), key);
    }
    unsliced(sum(moved(substitute(state), SHIFT), last))
}

#[target_feature(enable = "ssse3")]
fn decrypt_blocks(keys: &[Slices], blocks: [Block; WIDTH]) -> [Block; WIDTH] {
    let [first, inner @ .., last] = keys else { return blocks };
    let mut state = sum(sliced(blocks), last);
    for key in inner.iter().rev() {
        state = unmixed(sum(restore(moved(state, UNSHIFT)), key));
    }
    unsliced(sum(restore(moved(state, UNSHIFT)), first))
}

#[inline(always)]
fn sum(a: Slices, b: &Slices) -> Slices {
    array::from_fn(|n| a[n] ^ b[n])
}

#[target_feature(enable = "ssse3")]
#[inline]
fn moved(state: Slices, order: Block) -> Slices {
    let order = from_bytes(order);
    state.map(|bits| Bits(_mm_shuffle_epi8(bits.0, order)))
}

/// Each byte times two.
#[inline(always)]
fn twice([a, b, c, d, e, f, g, h]: Slices) -> Slices {
    [h, a ^ h, b, c ^ h, d ^ h, e, f, g]
}

/// The columns mixed: a byte and the next one twice, the next one, and the two after.
#[target_feature(enable = "ssse3")]
#[inline]
fn mixed(state: Slices) -> Slices {
    let next = moved(state, NEXT);
    let both = sum(state, &next);
    sum(sum(twice(both), &next), &moved(both, AFTER))
}

/// Undone: with four times the sum of every other byte added first.
#[target_feature(enable = "ssse3")]
#[inline]
fn unmixed(state: Slices) -> Slices {
    let other = sum(state, &moved(state, AFTER));
    mixed(sum(state, &twice(twice(other))))
}

/// A round key: every block gets the same.
fn sliced_key(key: &Block) -> Slices {
    array::from_fn(|n| Bits(from_bytes(key.map(|byte| 0_u8.wrapping_sub(byte >> n & 1)))))
}

#[target_feature(enable = "ssse3")]
#[inline]
fn sliced(blocks: [Block; WIDTH]) -> Slices {
    transposed(blocks.map(|block| Bits(from_bytes(block))))
}

#[target_feature(enable = "ssse3")]
#[inline]
fn unsliced(state: Slices) -> [Block; WIDTH] {
    transposed(state).map(|bits| to_bytes(bits.0))
}

/// Eight bits by eight registers, in every byte by itself.
#[target_feature(enable = "ssse3")]
#[inline]
fn transposed(mut x: Slices) -> Slices {
    for (upper, lower) in [(0, 1), (2, 3), (4, 5), (6, 7)] {
        (x[upper], x[lower]) = exchanged::<1>(x[upper], x[lower], 0x55);
    }
    for (upper, lower) in [(0, 2), (1, 3), (4, 6), (5, 7)] {
        (x[upper], x[lower]) = exchanged::<2>(x[upper], x[lower], 0x33);
    }
    for (upper, lower) in [(0, 4), (1, 5), (2, 6), (3, 7)] {
        (x[upper], x[lower]) = exchanged::<4>(x[upper], x[lower], 0x0f);
    }
    x
}

/// The upper bits of the first against the lower bits of the second.
#[target_feature(enable = "ssse3")]
#[inline]
fn exchanged<const BY: i32>(a: Bits, b: Bits, mask: i8) -> (Bits, Bits) {
    let moved = (Bits(_mm_srli_epi64::<BY>(a.0)) ^ b) & Bits(_mm_set1_epi8(mask));
    (a ^ Bits(_mm_slli_epi64::<BY>(moved.0)), b ^ moved)
}

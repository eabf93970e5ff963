// SPDX-License-Identifier: Apache-2.0
//! Chains of hashes by SHA-256 and SHAKE whose digests stay in vectors from their first step to their last, where `absorb` would have
//! each read from memory, lane by lane.
//!
//! Much of a chain's messages is the same in each step: what depends on nothing else is computed once.

use super::keccak::{only_block, permuted};
use super::rows::Rows;
use super::sha2::{compress, next, rounds, sixteen, sum};
use super::tables::SHA256;
use super::vector::{Vector, load, read, store, table};
use std::cmp::Ordering;

/// Words of the block of a step of HSS or SLH-DSA that are the same in each: where the chain is.
const SAME: usize = 5;

/// Where in such a block the digest stands: behind the number of the step, of one byte.
#[derive(Clone, Copy)]
pub(super) struct Link {
    /// Bits of the first word after those that the digest begins with: 8, 16 or 24.
    split: u32,
    words: usize,
}

impl Link {
    /// For a digest of so many bytes at the byte `at`, where it is so.
    pub(super) fn of(at: usize, length: usize) -> Option<Self> {
        let split = match (at / 4, at % 4) {
            (SAME, 1) => 24,
            (SAME, 2) => 16,
            (SAME, 3) => 8,
            _ => return None,
        };
        let words = length / 4;
        (length.is_multiple_of(4) && words <= 8).then_some(Self { split, words })
    }
}

/// Goes so many steps of chains of HSS (RFC 8554 §4) or SLH-DSA (FIPS 205 §5), from the first one on. The digests are in `state`;
/// all else of their block but the number of the step is in the rows. `start` is the chaining value before it, lane by lane.
#[inline(always)]
pub(super) fn plain<V: Vector<Word = u32>>(
    state: &mut [u8],
    rows: &Rows<'_>,
    start: &[u8],
    (Link { split, words: length }, steps): (Link, u8),
) {
    let mut block = block::<V, 16>(rows);
    let start: [V; 8] = load(start);
    let mut ahead = start;
    sixteen::<V, false, 0, SAME>(&mut ahead, &mut block, 0);
    let low = u32::MAX >> (32 - split);
    // Of each word of the block from the second one of the digest on, what is the digest's.
    let masks: [V; 8] = std::array::from_fn(|word| {
        V::splat(match (word + 1).cmp(&length) {
            Ordering::Less => u32::MAX,
            Ordering::Equal => !low,
            Ordering::Greater => 0,
        })
    });
    let low = V::splat(low);
    // The number of the step is not from the rows.
    let head = V::splat(u32::MAX << (split + 7) << 1);
    let head = head.ternary::<{ table::CHOOSE }>(block[SAME], V::splat(0));
    let mut chain: [V; 8] = load(state);
    for step in 0..steps {
        let mut words = block;
        // Each word of the digest begins in one word of the block, and ends in the next.
        let turned = chain.map(|digest| digest.rotate(split));
        let first = head.add(V::splat(u32::from(step) << split));
        words[SAME] = low.ternary::<{ table::CHOOSE }>(turned[0], first);
        for word in 0..8 {
            let after = if word < 7 { turned[word + 1] } else { turned[word] };
            let digest = low.ternary::<{ table::CHOOSE }>(after, turned[word]);
            let place = &mut words[SAME + 1 + word];
            *place = masks[word].ternary::<{ table::CHOOSE }>(digest, *place);
        }
        let mut s = ahead;
        next::<V, 0>(&mut words);
        next::<V, 1>(&mut words);
        next::<V, 2>(&mut words);
        next::<V, 3>(&mut words);
        next::<V, 4>(&mut words);
        sixteen::<V, true, SAME, 16>(&mut s, &mut words, 0);
        rounds(&mut s, &mut words, 16);
        chain = sum(&start, &s);
    }
    store(&chain, state);
}

/// Words of the longest digest of a chain by SHAKE.
const LONGEST: usize = 4;

/// Where in a block of SHAKE the digest stands, in words. The number of the step is the byte before it.
#[derive(Clone, Copy)]
pub(super) struct Place {
    first: usize,
    words: usize,
}

impl Place {
    /// For a digest of so many bytes at the byte `at`, where it is so.
    pub(super) fn of(at: usize, length: usize) -> Option<Self> {
        let whole = at.is_multiple_of(8) && length.is_multiple_of(8);
        let place = Self { first: at / 8, words: length / 8 };
        (whole && at > 0 && place.words <= LONGEST).then_some(place)
    }
}

/// Goes so many steps of chains of SLH-DSA by SHAKE256, from the first one on. The digests are in `state`; all else of their block but
/// the number of the step is in the rows.
#[inline(always)]
pub(super) fn sponge<V: Vector<Word = u64>>(
    state: &mut [u8],
    rows: &Rows<'_>,
    (Place { first, words }, steps): (Place, u8),
) {
    let mut block: [V; 25] = only_block(rows);
    // The number of the step is not from the rows.
    let low = V::splat(u64::MAX >> 8);
    let head = low.ternary::<{ table::CHOOSE }>(block[first - 1], V::splat(0));
    let mut digest: [V; LONGEST] = load(state);
    for step in 0..steps {
        block[first - 1] = head.xor(V::splat(u64::from(step) << 56));
        block[first..][..words].copy_from_slice(&digest[..words]);
        let [a, b, c, d, ..] = permuted(block);
        digest = [a, b, c, d];
    }
    store(&digest, state);
}

/// Words of an address of XMSS before the number of the step. All but the last of them make words for later rounds without it.
const PLACE: usize = 6;
const SETTLED: usize = PLACE - 1;

/// Bytes of an address of XMSS (RFC 8391 §2.5), and here of each of the three parts of what is hashed: the number of a function, a
/// key or a seed, and a node or an address (§5.1).
pub(crate) const ADDRESS: usize = ADDRESS_BITS as usize / 8;
const ADDRESS_BITS: u32 = 256;

/// Goes so many steps of chains of XMSS by SHA-256 with nodes of 256 bits (RFC 8391 §3.1.2), from the first one on. The nodes are
/// in `state`, the addresses at the beginning of the one block of the rows; `seed` is the chaining value, lane by lane, from which
/// addresses make keys and masks.
#[inline(always)]
pub(super) fn keyed<V: Vector<Word = u32>>(
    state: &mut [u8],
    addresses: &Rows<'_>,
    seed: &[u8],
    steps: u8,
) {
    let seed: [V; 8] = load(seed);
    let start = SHA256.map(|word| V::splat(u32::try_from(word).unwrap_or_default()));
    let mut place = end(&block(addresses));
    let mut ahead = seed;
    sixteen::<V, true, 0, SETTLED>(&mut ahead, &mut place, 0);
    let mut node: [V; 8] = load(state);
    for step in 0..steps {
        let mut values = [node; 2];
        for (value, which) in values.iter_mut().zip(0..) {
            let (mut s, mut words) = (ahead, place);
            words[PLACE] = V::splat(u32::from(step));
            words[PLACE + 1] = V::splat(which);
            sixteen::<V, true, SETTLED, 16>(&mut s, &mut words, 0);
            rounds(&mut s, &mut words, 16);
            *value = sum(&seed, &s);
        }
        let [key, mask] = values;
        // The number of the function is 0.
        let mut blocks = [[V::splat(0); 16]; 2];
        blocks[0][8..].copy_from_slice(&key);
        blocks[1] = end(&std::array::from_fn(|word| node[word].xor(mask[word])));
        node = start;
        for words in &mut blocks {
            compress(&mut node, words);
        }
    }
    store(&node, state);
}

/// The last block of an input, of its last eight words.
#[inline(always)]
fn end<V: Vector<Word = u32>>(last: &[V; 8]) -> [V; 16] {
    let mut words = [V::splat(0); 16];
    words[..8].copy_from_slice(last);
    words[8] = V::splat(1 << 31);
    words[15] = V::splat(3 * ADDRESS_BITS);
    words
}

/// The words of the rows' first block, as many as are wanted.
#[inline(always)]
fn block<V: Vector<Word = u32>, const WORDS: usize>(rows: &Rows<'_>) -> [V; WORDS] {
    let words = read::<V>(rows, 0);
    std::array::from_fn(|word| words[word].swap_bytes())
}

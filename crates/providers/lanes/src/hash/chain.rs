// SPDX-License-Identifier: Apache-2.0
//! Chains of hashes by SHA-256 whose digests stay in registers from their first step to their last, where `absorb` would have each
//! read from memory, lane by lane.
//!
//! Much of a chain's messages is the same in each step. What depends on nothing else is computed once, and what is a constant when
//! this is compiled: so the first sixteen rounds are written out.

use super::rows::Rows;
use super::sha2::{next, rounds, sixteen, sum};
use super::tables::SHA256;
use super::vector::{Vector, load, read, store, table};

/// Words of the message of a step of HSS that are the same in each: the name of the tree and the number of the key. The digest
/// begins in the last byte of the word after them, behind the number of the step.
const SAME: usize = 5;

/// Where in its message of one block a step of HSS has the digest.
pub(super) const AT: usize = 4 * SAME + 3;

/// Goes so many steps of chains of HSS (RFC 8554 §4), from the first one on. The digests of `WORDS` words are in `state`; all else
/// of the message is in the one block of the rows.
#[inline(always)]
pub(super) fn plain<V: Vector<Word = u32>, const WORDS: usize>(
    state: &mut [u8],
    rows: &Rows<'_>,
    start: &[u8],
    steps: u8,
) {
    let mut block = block::<V, 16>(rows);
    let start: [V; 8] = load(start);
    let mut ahead = start;
    sixteen::<V, false, 0, SAME>(&mut ahead, &mut block, 0);
    // The number of the step and the byte before the digest are not from the rows.
    let head = V::splat(0xffff).ternary::<{ table::CHOOSE }>(V::splat(0), block[SAME]);
    let low = V::splat(0xff);
    let mut chain: [V; 8] = load(state);
    for step in 0..steps {
        let mut words = [V::splat(0); 16];
        words[..SAME].copy_from_slice(&block[..SAME]);
        let mut before = head.add(V::splat(u32::from(step) << 8));
        // Each word of the digest is turned by a byte, and ends in the next.
        for (word, digest) in words[SAME..].iter_mut().zip(&chain[..WORDS]) {
            let turned = digest.rotate(8);
            *word = low.ternary::<{ table::CHOOSE }>(turned, before);
            before = turned;
        }
        words[SAME + WORDS] = low.ternary::<{ table::CHOOSE }>(V::splat(0x80), before);
        words[15] = V::splat(bits(AT + 4 * WORDS));
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

/// Words of an address of XMSS before the number of the step. All but the last of them make words for later rounds without it.
const PLACE: usize = 6;
const SETTLED: usize = PLACE - 1;

/// Bytes of an address, and of what XMSS hashes: the number of a function, a key or a seed, and a node or an address (RFC 8391
/// §5.1). Where the last begins.
pub(super) const ADDRESS: usize = 32;
pub(super) const INPUT: usize = 96;
pub(super) const LAST: usize = 64;

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
        let mut words = [V::splat(0); 16];
        words[8..].copy_from_slice(&key);
        let chain = written_out(&start, &mut words);
        let mut words = end(&std::array::from_fn(|word| node[word].xor(mask[word])));
        node = written_out(&chain, &mut words);
    }
    store(&node, state);
}

/// The last block of an input, of its last eight words.
#[inline(always)]
fn end<V: Vector<Word = u32>>(last: &[V; 8]) -> [V; 16] {
    let mut words = [V::splat(0); 16];
    words[..8].copy_from_slice(last);
    words[8] = V::splat(1 << 31);
    words[15] = V::splat(bits(INPUT));
    words
}

/// The chaining value after a block.
#[inline(always)]
fn written_out<V: Vector<Word = u32>>(chain: &[V; 8], words: &mut [V; 16]) -> [V; 8] {
    let mut s = *chain;
    sixteen::<V, true, 0, 16>(&mut s, words, 0);
    rounds(&mut s, words, 16);
    sum(chain, &s)
}

/// The words of the rows' first block, as many as are wanted.
#[inline(always)]
fn block<V: Vector<Word = u32>, const WORDS: usize>(rows: &Rows<'_>) -> [V; WORDS] {
    let words = read::<V>(rows, 0);
    std::array::from_fn(|word| words[word].swap_bytes())
}

/// The length of a message, as it ends.
const fn bits(bytes: usize) -> u32 {
    8 * bytes as u32
}

// SPDX-License-Identifier: Apache-2.0
//! MD5 (RFC 1321).

use super::rows::Rows;
use super::tables::MD5_ROUND;
use super::vector::{Vector, load, read, store, table};

/// MD5 in the lanes of `V`; see `Kernel::run`.
#[inline(always)]
pub(super) fn absorb<V: Vector<Word = u32>>(state: &mut [u8], rows: &Rows<'_>, block: usize) {
    let mut chain: [V; 4] = load(state);
    for at in (0..rows.bytes()).step_by(block) {
        compress(&mut chain, &read(rows, at), block / 4);
    }
    store(&chain, state);
}

/// The number of words, which is 16, is said by the caller so that the compiler does not know it: it would unroll the loops and
/// then compute the two halves of a pair one after the other, where neither has enough to do.
#[inline(always)]
fn compress<V: Vector<Word = u32>>(chain: &mut [V; 4], words: &[V; 16], count: usize) {
    let mut s = *chain;
    for i in (0..count).step_by(4) {
        four::<V, 0>(&mut s, words, i);
    }
    for i in (0..count).step_by(4) {
        four::<V, 1>(&mut s, words, i);
    }
    for i in (0..count).step_by(4) {
        four::<V, 2>(&mut s, words, i);
    }
    for i in (0..count).step_by(4) {
        four::<V, 3>(&mut s, words, i);
    }
    for (i, chain) in chain.iter_mut().enumerate() {
        *chain = chain.add(s[i]);
    }
}

/// Four steps, after which each variable has its own place again.
#[inline(always)]
fn four<V: Vector<Word = u32>, const ROUND: usize>(s: &mut [V; 4], words: &[V; 16], i: usize) {
    let [a, b, c, d] = *s;
    let a = step::<V, ROUND, 0>([a, b, c, d], words, i);
    let d = step::<V, ROUND, 1>([d, a, b, c], words, i + 1);
    let c = step::<V, ROUND, 2>([c, d, a, b], words, i + 2);
    let b = step::<V, ROUND, 3>([b, c, d, a], words, i + 3);
    *s = [a, b, c, d];
}

#[inline(always)]
fn step<V: Vector<Word = u32>, const ROUND: usize, const KIND: usize>(
    [a, b, c, d]: [V; 4],
    words: &[V; 16],
    i: usize,
) -> V {
    const ROTATE: [[u32; 4]; 4] =
        [[7, 12, 17, 22], [5, 9, 14, 20], [4, 11, 16, 23], [6, 10, 15, 21]];
    let (mixed, word) = match ROUND {
        0 => (b.ternary::<{ table::CHOOSE }>(c, d), i),
        1 => (d.ternary::<{ table::CHOOSE }>(b, c), 5 * i + 1),
        2 => (b.ternary::<{ table::PARITY }>(c, d), 3 * i + 5),
        _ => (b.ternary::<{ table::EITHER }>(c, d), 7 * i),
    };
    // What does not depend on the step before comes first.
    let sum = a.add(words[word % 16]).add(V::splat(MD5_ROUND[16 * ROUND + i % 16])).settled();
    sum.add(mixed).rotate(ROTATE[ROUND][KIND]).add(b)
}

// SPDX-License-Identifier: Apache-2.0
//! SHA-1 (FIPS 180-4, section 6.1).

use super::rows::Rows;
use super::vector::{Vector, load, read, store, table};

/// SHA-1 in the lanes of `V`; see `Kernel::run`.
#[inline(always)]
pub(super) fn absorb<V: Vector<Word = u32>>(state: &mut [u8], rows: &Rows<'_>, block: usize) {
    let mut chain: [V; 5] = load(state);
    for at in (0..rows.bytes()).step_by(block) {
        let mut words = read::<V>(rows, at);
        for word in &mut words {
            *word = word.swap_bytes();
        }
        compress(&mut chain, &mut words);
    }
    store(&chain, state);
}

#[inline(always)]
fn compress<V: Vector<Word = u32>>(chain: &mut [V; 5], words: &mut [V; 16]) {
    let mut s = *chain;
    sixteen::<V, 0>(&mut s, words);
    sixteen::<V, 1>(&mut s, words);
    sixteen::<V, 2>(&mut s, words);
    sixteen::<V, 3>(&mut s, words);
    sixteen::<V, 4>(&mut s, words);
    for (i, chain) in chain.iter_mut().enumerate() {
        *chain = chain.add(s[i]);
    }
}

/// The rounds that use each of the schedule's words once.
#[inline(always)]
fn sixteen<V: Vector<Word = u32>, const PASS: usize>(s: &mut [V; 5], words: &mut [V; 16]) {
    round::<V, PASS, 0>(s, words);
    round::<V, PASS, 1>(s, words);
    round::<V, PASS, 2>(s, words);
    round::<V, PASS, 3>(s, words);
    round::<V, PASS, 4>(s, words);
    round::<V, PASS, 5>(s, words);
    round::<V, PASS, 6>(s, words);
    round::<V, PASS, 7>(s, words);
    round::<V, PASS, 8>(s, words);
    round::<V, PASS, 9>(s, words);
    round::<V, PASS, 10>(s, words);
    round::<V, PASS, 11>(s, words);
    round::<V, PASS, 12>(s, words);
    round::<V, PASS, 13>(s, words);
    round::<V, PASS, 14>(s, words);
    round::<V, PASS, 15>(s, words);
}

#[inline(always)]
fn round<V: Vector<Word = u32>, const PASS: usize, const I: usize>(
    s: &mut [V; 5],
    words: &mut [V; 16],
) {
    if PASS > 0 {
        let mixed = words[I].ternary::<{ table::PARITY }>(words[(I + 2) % 16], words[(I + 8) % 16]);
        words[I] = mixed.xor(words[(I + 13) % 16]).rotate(1);
    }
    let [a, b, c, d, e] = *s;
    let (mixed, constant) = match (16 * PASS + I) / 20 {
        0 => (b.ternary::<{ table::CHOOSE }>(c, d), 0x5a82_7999),
        1 => (b.ternary::<{ table::PARITY }>(c, d), 0x6ed9_eba1),
        2 => (b.ternary::<{ table::MAJORITY }>(c, d), 0x8f1b_bcdc),
        _ => (b.ternary::<{ table::PARITY }>(c, d), 0xca62_c1d6),
    };
    // The last to be known is added last.
    let sum = e.add(words[I]).add(V::splat(constant)).settled().add(mixed).settled();
    *s = [sum.add(a.rotate(5)), a, b.rotate(30), c, d];
}

// SPDX-License-Identifier: Apache-2.0
//! SHA-2 (FIPS 180-4, sections 6.2 and 6.4): one form for words of both lengths.

use super::rows::Rows;
use super::tables::SHA2_ROUND;
use super::vector::{Vector, load, read, store, table};

/// Three rotations, or two and a shift.
type Counts = [u32; 3];

/// What the two lengths of words differ in.
pub(super) trait Sha2Word: Copy {
    const ROUNDS: usize;
    /// Rotations to the right of Σ0 and Σ1 (section 4.1).
    const SUMS: [Counts; 2];
    /// Those of σ0 and σ1; the last is a shift.
    const SCHEDULE: [Counts; 2];

    /// The constant of a round.
    fn constant(round: usize) -> Self;
}

impl Sha2Word for u32 {
    const ROUNDS: usize = 64;
    const SUMS: [Counts; 2] = [[2, 13, 22], [6, 11, 25]];
    const SCHEDULE: [Counts; 2] = [[7, 18, 3], [17, 19, 10]];

    #[inline(always)]
    fn constant(round: usize) -> Self {
        (SHA2_ROUND[round] >> 32) as Self
    }
}

impl Sha2Word for u64 {
    const ROUNDS: usize = 80;
    const SUMS: [Counts; 2] = [[28, 34, 39], [14, 18, 41]];
    const SCHEDULE: [Counts; 2] = [[1, 8, 7], [19, 61, 6]];

    #[inline(always)]
    fn constant(round: usize) -> Self {
        SHA2_ROUND[round]
    }
}

/// SHA-256 or SHA-512 in the lanes of `V`; see `Kernel::run`.
#[inline(always)]
pub(super) fn absorb<V: Vector<Word: Sha2Word>>(state: &mut [u8], rows: &Rows<'_>, block: usize) {
    let mut chain: [V; 8] = load(state);
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
pub(super) fn compress<V: Vector<Word: Sha2Word>>(chain: &mut [V; 8], words: &mut [V; 16]) {
    let mut s = *chain;
    rounds(&mut s, words, 0);
    *chain = sum(chain, &s);
}

/// What a block adds to a chaining value.
#[inline(always)]
pub(super) fn sum<V: Vector>(chain: &[V; 8], s: &[V; 8]) -> [V; 8] {
    std::array::from_fn(|word| chain[word].add(s[word]))
}

/// All rounds from `first` on, a multiple of 16.
#[inline(always)]
pub(super) fn rounds<V: Vector<Word: Sha2Word>>(s: &mut [V; 8], words: &mut [V; 16], first: usize) {
    let last = V::Word::ROUNDS - 16;
    for first in (first..last).step_by(16) {
        sixteen::<V, true, 0, 16>(s, words, first);
    }
    sixteen::<V, false, 0, 16>(s, words, last);
}

/// Of the rounds that use each of the schedule's words once those from `FROM` to `TO`; `NEXT` makes the words for the next time.
#[inline(always)]
pub(super) fn sixteen<
    V: Vector<Word: Sha2Word>,
    const NEXT: bool,
    const FROM: usize,
    const TO: usize,
>(
    s: &mut [V; 8],
    words: &mut [V; 16],
    first: usize,
) {
    part::<V, NEXT, FROM, TO, 0>(s, words, first);
    part::<V, NEXT, FROM, TO, 1>(s, words, first);
    part::<V, NEXT, FROM, TO, 2>(s, words, first);
    part::<V, NEXT, FROM, TO, 3>(s, words, first);
    part::<V, NEXT, FROM, TO, 4>(s, words, first);
    part::<V, NEXT, FROM, TO, 5>(s, words, first);
    part::<V, NEXT, FROM, TO, 6>(s, words, first);
    part::<V, NEXT, FROM, TO, 7>(s, words, first);
    part::<V, NEXT, FROM, TO, 8>(s, words, first);
    part::<V, NEXT, FROM, TO, 9>(s, words, first);
    part::<V, NEXT, FROM, TO, 10>(s, words, first);
    part::<V, NEXT, FROM, TO, 11>(s, words, first);
    part::<V, NEXT, FROM, TO, 12>(s, words, first);
    part::<V, NEXT, FROM, TO, 13>(s, words, first);
    part::<V, NEXT, FROM, TO, 14>(s, words, first);
    part::<V, NEXT, FROM, TO, 15>(s, words, first);
}

/// A round, if it is one of those.
#[inline(always)]
fn part<
    V: Vector<Word: Sha2Word>,
    const NEXT: bool,
    const FROM: usize,
    const TO: usize,
    const I: usize,
>(
    s: &mut [V; 8],
    words: &mut [V; 16],
    first: usize,
) {
    if (FROM..TO).contains(&I) {
        round::<V, I>(s, words, first);
        if NEXT {
            next::<V, I>(words);
        }
    }
}

#[inline(always)]
fn round<V: Vector<Word: Sha2Word>, const I: usize>(s: &mut [V; 8], words: &[V; 16], first: usize) {
    let [a, b, c, d, e, f, g, h] = *s;
    let [sum0, sum1] = V::Word::SUMS;
    // The next round waits for `e` and what is added to it: so the constant is not added last.
    let sum = h.add(words[I]).add(V::splat(V::Word::constant(first + I))).settled();
    let sum = sum.add(e.ternary::<{ table::CHOOSE }>(f, g)).add(rotations(e, sum1));
    let other = a.ternary::<{ table::MAJORITY }>(b, c).add(rotations(a, sum0));
    *s = [sum.add(other), a, b, c, d.add(sum), e, f, g];
}

/// The word that takes the place of the one of a round, sixteen rounds later.
#[inline(always)]
pub(super) fn next<V: Vector<Word: Sha2Word>, const I: usize>(words: &mut [V; 16]) {
    let [small0, small1] = V::Word::SCHEDULE;
    let mixed = words[I].add(shifts(words[(I + 1) % 16], small0));
    words[I] = mixed.add(words[(I + 9) % 16]).add(shifts(words[(I + 14) % 16], small1));
}

/// Σ
#[inline(always)]
fn rotations<V: Vector>(x: V, [one, two, three]: Counts) -> V {
    let (one, two) = (x.rotate_right(one), x.rotate_right(two));
    one.ternary::<{ table::PARITY }>(two, x.rotate_right(three))
}

/// σ
#[inline(always)]
fn shifts<V: Vector>(x: V, [one, two, three]: Counts) -> V {
    let (one, two) = (x.rotate_right(one), x.rotate_right(two));
    one.ternary::<{ table::PARITY }>(two, x.shift_right(three))
}

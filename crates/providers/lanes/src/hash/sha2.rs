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

/// The bytes of a word of a chain's message before the digest.
const AHEAD: usize = 3;

/// Where in a message of one block a chain of SHA-256 has its digest, of so many words: in the last byte of the word `first` and in
/// those after it. The number of the step is the byte before.
#[derive(Clone, Copy)]
pub(super) struct Link {
    pub(super) first: usize,
    pub(super) words: usize,
}

impl Link {
    /// For a digest of so many bytes at the byte `at` of a message, where it is so.
    pub(super) fn of(at: usize, length: usize) -> Option<Self> {
        let (first, words) = (at / 4, length / 4);
        let fits = at % 4 == AHEAD && length.is_multiple_of(4) && first + words < 14;
        (fits && (1..=8).contains(&words)).then_some(Self { first, words })
    }
}

/// Hashes the digests in `state` again and again, each time in the place that `link` has for them in the one block of the rows:
/// they stay in registers all the while, where `absorb` would have each read from memory, lane by lane.
#[inline(always)]
pub(super) fn chain<V: Vector<Word = u32>>(
    state: &mut [u8],
    rows: &Rows<'_>,
    start: &[u32; 8],
    Link { first, words: length }: Link,
    steps: u8,
) {
    let mut block = read::<V>(rows, 0);
    for word in &mut block {
        *word = word.swap_bytes();
    }
    let start = start.map(V::splat);
    let low = V::splat(0xff);
    // The number of the step and the byte before the digest are not from the rows.
    let head = V::splat(0xffff).ternary::<{ table::CHOOSE }>(V::splat(0), block[first]);
    let mut chain: [V; 8] = load(state);
    for step in 0..steps {
        let mut words = block;
        // The digest's words begin in the last byte of a word of the message: each is turned by one, and ends in the next.
        let mut before = head.add(V::splat(u32::from(step) << 8));
        for (word, digest) in words[first..].iter_mut().zip(&chain[..length]) {
            let turned = digest.rotate(8);
            *word = low.ternary::<{ table::CHOOSE }>(turned, before);
            before = turned;
        }
        let last = &mut words[first + length];
        *last = low.ternary::<{ table::CHOOSE }>(*last, before);
        chain = start;
        compress(&mut chain, &mut words);
    }
    store(&chain, state);
}

#[inline(always)]
fn compress<V: Vector<Word: Sha2Word>>(chain: &mut [V; 8], words: &mut [V; 16]) {
    let mut s = *chain;
    let last = V::Word::ROUNDS - 16;
    for first in (0..last).step_by(16) {
        sixteen::<V, true>(&mut s, words, first);
    }
    sixteen::<V, false>(&mut s, words, last);
    for (i, chain) in chain.iter_mut().enumerate() {
        *chain = chain.add(s[i]);
    }
}

/// The rounds that use each of the schedule's words once; then `NEXT` makes the words for the next time.
#[inline(always)]
fn sixteen<V: Vector<Word: Sha2Word>, const NEXT: bool>(
    s: &mut [V; 8],
    words: &mut [V; 16],
    first: usize,
) {
    round::<V, NEXT, 0>(s, words, first);
    round::<V, NEXT, 1>(s, words, first);
    round::<V, NEXT, 2>(s, words, first);
    round::<V, NEXT, 3>(s, words, first);
    round::<V, NEXT, 4>(s, words, first);
    round::<V, NEXT, 5>(s, words, first);
    round::<V, NEXT, 6>(s, words, first);
    round::<V, NEXT, 7>(s, words, first);
    round::<V, NEXT, 8>(s, words, first);
    round::<V, NEXT, 9>(s, words, first);
    round::<V, NEXT, 10>(s, words, first);
    round::<V, NEXT, 11>(s, words, first);
    round::<V, NEXT, 12>(s, words, first);
    round::<V, NEXT, 13>(s, words, first);
    round::<V, NEXT, 14>(s, words, first);
    round::<V, NEXT, 15>(s, words, first);
}

#[inline(always)]
fn round<V: Vector<Word: Sha2Word>, const NEXT: bool, const I: usize>(
    s: &mut [V; 8],
    words: &mut [V; 16],
    first: usize,
) {
    let [a, b, c, d, e, f, g, h] = *s;
    let [sum0, sum1] = V::Word::SUMS;
    // The next round waits for `e` and what is added to it: so the constant is not added last.
    let sum = h.add(words[I]).add(V::splat(V::Word::constant(first + I))).settled();
    let sum = sum.add(e.ternary::<{ table::CHOOSE }>(f, g)).add(rotations(e, sum1));
    let other = a.ternary::<{ table::MAJORITY }>(b, c).add(rotations(a, sum0));
    *s = [sum.add(other), a, b, c, d.add(sum), e, f, g];
    if NEXT {
        let [small0, small1] = V::Word::SCHEDULE;
        let mixed = words[I].add(shifts(words[(I + 1) % 16], small0));
        words[I] = mixed.add(words[(I + 9) % 16]).add(shifts(words[(I + 14) % 16], small1));
    }
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

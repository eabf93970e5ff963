// SPDX-License-Identifier: Apache-2.0
//! What the hash functions need of a vector of words of any width.

use super::rows::Rows;

/// Truth tables of [`Vector::ternary`]: bit `4a + 2b + c` is the result for the bits `a`, `b`, `c`.
pub(super) mod table {
    const A: i32 = 0xf0;
    const B: i32 = 0xcc;
    const C: i32 = 0xaa;
    const ALL: i32 = 0xff;

    /// `a ^ b ^ c`
    pub(in super::super) const PARITY: i32 = A ^ B ^ C;
    /// `a ? b : c`
    pub(in super::super) const CHOOSE: i32 = (A & B) | (!A & C & ALL);
    /// What two of the three say.
    pub(in super::super) const MAJORITY: i32 = (A & B) | (A & C) | (B & C);
    /// `b ^ (a | !c)`, of MD5's fourth round.
    pub(in super::super) const EITHER: i32 = B ^ (A | (!C & ALL));
    /// `a ^ (!b & c)`, of Keccak's step chi.
    pub(in super::super) const CHI: i32 = A ^ (!B & C & ALL);
}

/// As many columns as a transposition gives at most.
pub(super) const COLUMNS: usize = 16;

/// One word of each lane.
///
/// Everything is inlined into the functions of the module `kernel`, which are compiled for the instructions that a
/// vector takes. No other code names a type of vectors: that is the argument for each `unsafe` below.
pub(super) trait Vector: Copy {
    /// What a lane holds.
    type Word: Copy;
    /// How many there are.
    const LANES: usize;
    /// How many words of a lane [`Self::transpose`] takes at once.
    const ROW: usize;

    /// The same word in each lane.
    fn splat(word: Self::Word) -> Self;
    /// Sum, modulo the word.
    fn add(self, other: Self) -> Self;
    /// The same, but computed as it stands: the compiler would add in another order, and so lengthen the chain of those
    /// that wait for each other.
    fn settled(self) -> Self;
    /// Exclusive or.
    fn xor(self, other: Self) -> Self;
    /// Bits rotated to the left; `count` is less than a word and more than 0.
    fn rotate(self, count: u32) -> Self;
    /// Bits rotated to the right.
    #[inline(always)]
    fn rotate_right(self, count: u32) -> Self {
        let bits = if size_of::<Self::Word>() == 4 { 32 } else { 64 };
        self.rotate(bits - count)
    }

    /// Bits shifted to the right.
    fn shift_right(self, count: u32) -> Self;
    /// A function of three bits, out of [`table`].
    fn ternary<const TABLE: i32>(self, b: Self, c: Self) -> Self;
    /// The bytes of each word in the other order.
    fn swap_bytes(self) -> Self;
    /// Of memory: lane after lane, the least significant byte of each first.
    fn load(from: &[u8]) -> Self;
    /// The reverse of [`Self::load`].
    fn store(self, to: &mut [u8]);
    /// Reads `count` words, at most [`Self::ROW`], at the byte `at` of as many rows as there are lanes, from row `first` on.
    /// Result `i` has the word `i` of each; the rest of a row is zero.
    fn transpose(rows: &Rows<'_>, first: usize, at: usize, count: usize) -> [Self; COLUMNS];
}

/// A block of 16 words; each of these has a word of each lane.
#[inline(always)]
pub(super) fn read<V: Vector>(rows: &Rows<'_>, at: usize) -> [V; COLUMNS] {
    let mut out = V::transpose(rows, 0, at, V::ROW);
    read_group::<V, 1>(rows, at, &mut out);
    read_group::<V, 2>(rows, at, &mut out);
    read_group::<V, 3>(rows, at, &mut out);
    out
}

#[inline(always)]
fn read_group<V: Vector, const GROUP: usize>(rows: &Rows<'_>, at: usize, out: &mut [V; COLUMNS]) {
    let first = GROUP * V::ROW;
    if first < COLUMNS {
        let words = V::transpose(rows, 0, at + first * size_of::<V::Word>(), V::ROW);
        out[first..first + V::ROW].copy_from_slice(&words[..V::ROW]);
    }
}

// The loops below have as many turns as the compiler knows, so that the words come to lie in registers.

/// The state's words, as they lie in memory.
#[inline(always)]
pub(super) fn load<V: Vector, const WORDS: usize>(state: &[u8]) -> [V; WORDS] {
    let mut words = [V::load(state); WORDS];
    for (i, word) in words.iter_mut().enumerate() {
        *word = V::load(&state[i * size_of::<V>()..]);
    }
    words
}

/// The reverse of [`load`].
#[inline(always)]
pub(super) fn store<V: Vector, const WORDS: usize>(words: &[V; WORDS], state: &mut [u8]) {
    for (i, word) in words.iter().enumerate() {
        word.store(&mut state[i * size_of::<V>()..]);
    }
}

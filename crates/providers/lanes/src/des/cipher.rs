// SPDX-License-Identifier: Apache-2.0
//! Triple DES over bits (FIPS 46-3): the permutations are names, computed when this is compiled.

use super::circuits::{s1, s2, s3, s4, s5, s6, s7, s8};
use super::transpose::Slab;
use super::word::{MAX_WORDS, Word};
use crate::data::Way;

/// Key bits as the rounds take them.
pub(super) trait KeyBits {
    /// Bit `bit`, 0 to 63, of DES key `which`, 0 to 2, for every lane.
    fn bit<W: Word>(&self, which: usize, bit: u8) -> W;
}

/// One triple key for all lanes: masks of all ones or zeros.
pub(super) type Masks = [[u64; 64]; 3];

impl KeyBits for Masks {
    #[inline(always)]
    fn bit<W: Word>(&self, which: usize, bit: u8) -> W {
        W::splat(self[which][usize::from(bit & 63)])
    }
}

/// A triple key for each lane.
impl KeyBits for [Slab; 3] {
    #[inline(always)]
    fn bit<W: Word>(&self, which: usize, bit: u8) -> W {
        self[which].word(usize::from(bit & 63))
    }
}

/// Where bit `number` of the standard, which counts from 1 at the left, is in a little-endian number.
const fn place(number: u8) -> u8 {
    8 * ((number - 1) / 8) + 7 - (number - 1) % 8
}

/// The initial permutation, which is regular: rows 2, 4, 6, 8, 1, 3, 5, 7 of the columns from the right.
const INITIAL: [u8; 64] = {
    let mut places = [0; 64];
    let mut at = 0_u8;
    while at < 64 {
        let row = at / 8;
        let bit = 2 * (row % 4) + if row < 4 { 2 } else { 1 };
        places[at as usize] = place(8 * (7 - at % 8) + bit);
        at += 1;
    }
    places
};

/// Where the permutation P puts each bit of the S-boxes.
const SPREAD: [u8; 32] = {
    const P: [u8; 32] = [
        16, 7, 20, 21, 29, 12, 28, 17, 1, 15, 23, 26, 5, 18, 31, 10, 2, 8, 24, 14, 32, 27, 3, 9,
        19, 13, 30, 6, 22, 11, 4, 25,
    ];
    let mut to = [0; 32];
    let mut at = 0_u8;
    while at < 32 {
        to[P[at as usize] as usize - 1] = at;
        at += 1;
    }
    to
};

/// Which bit of a key each round takes: permuted choices 1 and 2 and the rotations together.
const SCHEDULE: [[u8; 48]; 16] = {
    const CHOICE_1: [u8; 56] = [
        57, 49, 41, 33, 25, 17, 9, 1, 58, 50, 42, 34, 26, 18, 10, 2, 59, 51, 43, 35, 27, 19, 11, 3,
        60, 52, 44, 36, 63, 55, 47, 39, 31, 23, 15, 7, 62, 54, 46, 38, 30, 22, 14, 6, 61, 53, 45,
        37, 29, 21, 13, 5, 28, 20, 12, 4,
    ];
    const CHOICE_2: [u8; 48] = [
        14, 17, 11, 24, 1, 5, 3, 28, 15, 6, 21, 10, 23, 19, 12, 4, 26, 8, 16, 7, 27, 20, 13, 2, 41,
        52, 31, 37, 47, 55, 30, 40, 51, 45, 33, 48, 44, 49, 39, 56, 34, 53, 46, 42, 50, 36, 29, 32,
    ];
    const ROTATIONS: [u8; 16] = [1, 2, 4, 6, 8, 10, 12, 14, 15, 17, 19, 21, 23, 25, 27, 28];
    let mut schedule = [[0; 48]; 16];
    let mut round = 0;
    while round < 16 {
        let mut at = 0;
        while at < 48 {
            let from = CHOICE_2[at] - 1;
            let half = from / 28 * 28;
            let turned = half + (from - half + ROTATIONS[round]) % 28;
            schedule[round][at] = place(CHOICE_1[turned as usize]);
            at += 1;
        }
        round += 1;
    }
    schedule
};

/// All lanes of `slab`, as bits, through the three ciphers: encryption, decryption, encryption, or the reverse.
#[inline(always)]
pub(super) fn triple<W: Word>(way: Way, keys: &impl KeyBits, slab: &mut Slab) {
    let mut halves = [Half([[0; MAX_WORDS]; 32]); 2];
    for (at, from) in INITIAL.into_iter().enumerate() {
        slab.word::<W>(usize::from(from)).store(&mut halves[at / 32].0[at % 32]);
    }
    let [left, right] = &mut halves;
    let mut sides = (left, right);
    for step in 0..3 {
        let which = if way == Way::Encrypt { step } else { 2 - step };
        let forward = (way == Way::Encrypt) == (step != 1);
        for pair in 0..8 {
            let (first, second) =
                if forward { (2 * pair, 2 * pair + 1) } else { (15 - 2 * pair, 14 - 2 * pair) };
            round::<W>(sides.0, sides.1, keys, which, &SCHEDULE[first]);
            round::<W>(sides.1, sides.0, keys, which, &SCHEDULE[second]);
        }
        // The last round does not exchange the halves, and the permutations between two ciphers cancel each other.
        sides = (sides.1, sides.0);
    }
    for (at, to) in INITIAL.into_iter().enumerate() {
        let side = if at < 32 { &*sides.0 } else { &*sides.1 };
        slab.set_word(usize::from(to), W::load(&side.0[at % 32]));
    }
}

/// Half of a block, as bits.
#[derive(Clone, Copy)]
#[repr(C, align(64))]
struct Half([[u64; MAX_WORDS]; 32]);

#[inline(always)]
fn round<W: Word>(
    to: &mut Half,
    from: &Half,
    keys: &impl KeyBits,
    which: usize,
    schedule: &[u8; 48],
) {
    output::<W, 0>(to, s1(inputs::<W, 0>(from, keys, which, schedule)));
    output::<W, 1>(to, s2(inputs::<W, 1>(from, keys, which, schedule)));
    output::<W, 2>(to, s3(inputs::<W, 2>(from, keys, which, schedule)));
    output::<W, 3>(to, s4(inputs::<W, 3>(from, keys, which, schedule)));
    output::<W, 4>(to, s5(inputs::<W, 4>(from, keys, which, schedule)));
    output::<W, 5>(to, s6(inputs::<W, 5>(from, keys, which, schedule)));
    output::<W, 6>(to, s7(inputs::<W, 6>(from, keys, which, schedule)));
    output::<W, 7>(to, s8(inputs::<W, 7>(from, keys, which, schedule)));
}

/// The expanded half and the round key, as S-box number `SBOX` takes them. Functions and not closures, which the compiler would not
/// inline: a call between functions with and without vector instructions costs more than the round.
#[inline(always)]
fn inputs<W: Word, const SBOX: usize>(
    from: &Half,
    keys: &impl KeyBits,
    which: usize,
    schedule: &[u8; 48],
) -> [W; 6] {
    let mut bits = [W::splat(0); 6];
    let mut at = 0;
    while at < 6 {
        let key = keys.bit::<W>(which, schedule[6 * SBOX + at]);
        bits[at] = W::load(&from.0[(4 * SBOX + at + 31) % 32]).xor(key);
        at += 1;
    }
    bits
}

#[inline(always)]
fn output<W: Word, const SBOX: usize>(to: &mut Half, bits: [W; 4]) {
    let mut at = 0;
    while at < 4 {
        let place = &mut to.0[SPREAD[4 * SBOX + at] as usize];
        W::load(place).xor(bits[at]).store(place);
        at += 1;
    }
}

// SPDX-License-Identifier: Apache-2.0
//! 64 blocks at a time: word `n` holds bit `n` of each. No address and no branch depends on a value,
//! rotations cost nothing, and a look-up is some hundred ANDs and XORs for all 64 together.

use super::equations::{s7, s9};
use super::schedule::Round;
use std::array;

/// 16 bits of each block.
type Word = [u64; 16];

/// Encrypts at most 64 blocks.
pub(super) fn encrypt(rounds: &[Round; 8], blocks: &mut [u64]) {
    let mut bits = [0; 64];
    bits[..blocks.len()].copy_from_slice(blocks);
    transpose(&mut bits);
    let word = |from: usize| array::from_fn(|n| bits[from + n]);
    let (mut left, mut right) = ([word(48), word(32)], [word(16), word(0)]);
    for [odd, even] in rounds.as_chunks().0 {
        right = sum(right, fo(fl(left, odd), odd));
        left = sum(left, fl(fo(right, even), even));
    }
    let words = [right[1], right[0], left[1], left[0]];
    bits = array::from_fn(|n| words[n / 16][n % 16]);
    transpose(&mut bits);
    let length = blocks.len();
    blocks.copy_from_slice(&bits[..length]);
}

fn sum(a: [Word; 2], b: [Word; 2]) -> [Word; 2] {
    [add(a[0], b[0]), add(a[1], b[1])]
}

fn add(a: Word, b: Word) -> Word {
    array::from_fn(|n| a[n] ^ b[n])
}

fn add_key(a: Word, key: u16) -> Word {
    array::from_fn(|n| a[n] ^ mask(key, n))
}

/// All ones where the key's bit is one.
fn mask(key: u16, bit: usize) -> u64 {
    0_u64.wrapping_sub(u64::from(key >> bit & 1))
}

fn fl([left, right]: [Word; 2], round: &Round) -> [Word; 2] {
    let [one, two] = round.kl;
    let and: Word = array::from_fn(|n| left[n] & mask(one, n));
    let right = add(right, rotated(and));
    let or: Word = array::from_fn(|n| right[n] | mask(two, n));
    [add(left, rotated(or)), right]
}

fn rotated(x: Word) -> Word {
    array::from_fn(|n| x[(n + 15) % 16])
}

fn fo([mut left, mut right]: [Word; 2], round: &Round) -> [Word; 2] {
    for (ko, ki) in round.ko.iter().zip(round.ki) {
        (left, right) = (right, add(fi(add_key(left, *ko), ki), right));
    }
    [left, right]
}

#[inline(never)]
fn fi(x: Word, key: u16) -> Word {
    let y = add_key(half(array::from_fn(|n| x[n + 7]), array::from_fn(|n| x[n])), key);
    half(array::from_fn(|n| y[n]), array::from_fn(|n| y[n + 9]))
}

/// As the half of FI by tables: seven bits above nine come out.
fn half(nine: [u64; 9], seven: [u64; 7]) -> Word {
    let mut nine = s9(nine);
    (0..7).for_each(|n| nine[n] ^= seven[n]);
    let mut seven = s7(seven);
    (0..7).for_each(|n| seven[n] ^= nine[n]);
    array::from_fn(|n| if n < 9 { nine[n] } else { seven[n - 9] })
}

/// Bit `m` of word `n` becomes bit `n` of word `m`: halves of squares are exchanged, of 64 bits by 64
/// first and of 2 by 2 last.
fn transpose(words: &mut [u64; 64]) {
    let mut mask = u64::from(u32::MAX);
    for distance in [32, 16, 8, 4, 2, 1] {
        for upper in (0..64).filter(|at| at & distance == 0) {
            let lower = upper + distance;
            let moved = (words[upper] >> distance ^ words[lower]) & mask;
            words[lower] ^= moved;
            words[upper] ^= moved << distance;
        }
        mask ^= mask << (distance / 2);
    }
}

#[cfg(test)]
mod tests {
    use super::super::tables::{S7, S9};
    use super::*;
    use crate::testing::bytes;

    #[test]
    fn transposing_moves_every_bit_to_its_place() {
        let words = bytes(1, 512);
        let before: [u64; 64] =
            array::from_fn(|n| u64::from_le_bytes(array::from_fn(|at| words[8 * n + at])));
        let mut after = before;
        transpose(&mut after);
        for (n, word) in before.iter().enumerate() {
            for (m, turned) in after.iter().enumerate() {
                assert_eq!(word >> m & 1, turned >> n & 1);
            }
        }
    }

    #[test]
    fn equations_and_tables_agree_on_every_value() {
        for value in 0..512 {
            let bits: [u64; 9] = array::from_fn(|n| mask(value, n));
            let nine = s9(bits).iter().enumerate().fold(0, |sum, (n, bit)| sum | (bit & 1) << n);
            assert_eq!(nine, u64::from(S9[usize::from(value)]));
            if let Some(seven) = S7.get(usize::from(value)) {
                let bits = s7(array::from_fn(|n| bits[n]));
                let sum = bits.iter().enumerate().fold(0, |sum, (n, bit)| sum | (bit & 1) << n);
                assert_eq!(sum, u64::from(*seven));
            }
        }
    }
}

// SPDX-License-Identifier: Apache-2.0
//! `bcrypt_pbkdf`, by which OpenSSH makes keys of passphrases: Blowfish, keyed over and over. Nothing else uses Blowfish, so
//! no module has it. Its tables are the digits of π, which are computed here.

use metaslot_memory::Secret;
use std::sync::LazyLock;

/// Words of the subkeys, and of a substitution box.
const SUBKEYS: usize = 18;
const BOX: usize = 256;
/// Words of the whole state.
const STATE: usize = SUBKEYS + 4 * BOX;

/// Bytes of one result.
const RESULT: usize = 32;

const TEXT: &[u8; RESULT] = b"OxychromaticBlowfishSwatDynamite";

/// So many bytes of a passphrase, a salt and a number of rounds; `sha512` digests parts that follow each other.
pub(super) fn pbkdf<E>(
    sha512: impl Fn(&[&[u8]], &mut [u8; 64]) -> Result<(), E>,
    passphrase: &Secret,
    (salt, rounds): (&[u8], u32),
    length: usize,
) -> Result<Secret, E> {
    let mut hashed = [0; 64];
    sha512(&[passphrase.expose()], &mut hashed)?;
    let mut made = Secret::zeroed(length);
    let results = length.div_ceil(RESULT);
    for number in 0..results {
        let block = block(&sha512, &hashed, (salt, rounds), number)?;
        // The results lie between each other.
        let places = (number..length).step_by(results);
        places.zip(block.expose()).for_each(|(place, byte)| made.expose_mut()[place] = *byte);
    }
    hashed.fill(0);
    Ok(made)
}

fn block<E>(
    sha512: &impl Fn(&[&[u8]], &mut [u8; 64]) -> Result<(), E>,
    passphrase: &[u8; 64],
    (salt, rounds): (&[u8], u32),
    number: usize,
) -> Result<Secret, E> {
    let [.., a, b, c, d] = (number + 1).to_be_bytes();
    let mut salted = [0; 64];
    sha512(&[salt, &[a, b, c, d]], &mut salted)?;
    let mut last = hash(passphrase, &salted);
    let mut sum = Secret::copy_of(&last);
    for _ in 1..rounds {
        sha512(&[&last], &mut salted)?;
        last = hash(passphrase, &salted);
        sum.expose_mut().iter_mut().zip(last).for_each(|(sum, byte)| *sum ^= byte);
    }
    Ok(sum)
}

/// One hash: Blowfish is keyed by both, and encrypts a text under what came of it.
fn hash(passphrase: &[u8; 64], salt: &[u8; 64]) -> [u8; RESULT] {
    let mut state = Blowfish(Box::new(*PI));
    state.expand(salt, passphrase);
    for _ in 0..64 {
        state.expand(&[0; 64], salt);
        state.expand(&[0; 64], passphrase);
    }
    let mut result = [0; RESULT];
    for (to, from) in result.chunks_exact_mut(8).zip(TEXT.chunks_exact(8)) {
        let mut halves = (word(from, 0), word(from, 1));
        for _ in 0..64 {
            halves = state.encipher(halves);
        }
        to[..4].copy_from_slice(&halves.0.to_le_bytes());
        to[4..].copy_from_slice(&halves.1.to_le_bytes());
    }
    state.0.fill(0);
    result
}

/// The big-endian word at a place, counted in words.
fn word(bytes: &[u8], place: usize) -> u32 {
    let at = 4 * place;
    u32::from_be_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]])
}

struct Blowfish(Box<[u32; STATE]>);

impl Blowfish {
    fn encipher(&self, (left, right): (u32, u32)) -> (u32, u32) {
        let words = &*self.0;
        let (mut left, mut right) = (left ^ words[0], right);
        for subkey in
            words[1..SUBKEYS - 1].iter().step_by(2).zip(words[2..SUBKEYS - 1].iter().step_by(2))
        {
            right ^= self.mixed(left) ^ subkey.0;
            left ^= self.mixed(right) ^ subkey.1;
        }
        (right ^ words[SUBKEYS - 1], left)
    }

    fn mixed(&self, half: u32) -> u32 {
        let [a, b, c, d] = half.to_be_bytes().map(usize::from);
        let at = |number: usize, byte: usize| self.0[SUBKEYS + number * BOX + byte];
        (at(0, a).wrapping_add(at(1, b)) ^ at(2, c)).wrapping_add(at(3, d))
    }

    /// Mixes a key into the subkeys, then replaces all words by what the state makes of the data.
    fn expand(&mut self, data: &[u8; 64], key: &[u8; 64]) {
        for (number, subkey) in self.0[..SUBKEYS].iter_mut().enumerate() {
            *subkey ^= word(key, number % 16);
        }
        let mut halves = (0, 0);
        for place in (0..STATE).step_by(2) {
            halves.0 ^= word(data, place % 16);
            halves.1 ^= word(data, (place + 1) % 16);
            halves = self.encipher(halves);
            (self.0[place], self.0[place + 1]) = halves;
        }
    }
}

/// Words beyond those that are wanted, for what is cut off meanwhile.
const GUARD: usize = 2;

/// The fraction of π. (John Machin, 1706: π is 16 arctan 1/5 − 4 arctan 1/239.)
static PI: LazyLock<[u32; STATE]> = LazyLock::new(|| {
    let mut pi = Number::zero();
    pi.add_arctangent(16, 5, false);
    pi.add_arctangent(4, 239, true);
    let mut words = [0; STATE];
    words.copy_from_slice(&pi.0[1..=STATE]);
    words
});

/// A number that is not negative: its integer, then the words of its fraction.
#[derive(Clone)]
struct Number(Vec<u32>);

impl Number {
    fn zero() -> Self {
        Self(vec![0; 1 + STATE + GUARD])
    }

    /// `factor` · arctan(1 / `inverse`), added or taken away.
    fn add_arctangent(&mut self, factor: u32, inverse: u32, negative: bool) {
        let mut power = Self::zero();
        power.0[0] = factor;
        power.divide(inverse, 0);
        let (mut odd, mut first) = (1, 0);
        while first < power.0.len() {
            let mut term = power.clone();
            term.divide(odd, first);
            self.add(&term, (odd % 4 == 3) != negative);
            power.divide(inverse * inverse, first);
            odd += 2;
            first += power.0[first..].iter().take_while(|word| **word == 0).count();
        }
    }

    /// By a small number; the words before `first` are 0.
    fn divide(&mut self, by: u32, first: usize) {
        let mut rest = 0_u64;
        for word in &mut self.0[first..] {
            let value = rest << 32 | u64::from(*word);
            rest = value % u64::from(by);
            *word = low(value / u64::from(by));
        }
    }

    fn add(&mut self, other: &Self, negative: bool) {
        let mut carry = negative;
        for (word, added) in self.0.iter_mut().zip(&other.0).rev() {
            let added = if negative { !added } else { *added };
            let sum = u64::from(*word) + u64::from(added) + u64::from(carry);
            *word = low(sum);
            carry = sum >> 32 != 0;
        }
    }
}

fn low(number: u64) -> u32 {
    let [_, _, _, _, a, b, c, d] = number.to_be_bytes();
    u32::from_be_bytes([a, b, c, d])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_digits_are_those_of_pi() {
        assert_eq!(PI[..3], [0x243f_6a88, 0x85a3_08d3, 0x1319_8a2e]);
        // The last words of the fourth box, as every implementation has them.
        assert_eq!(PI[STATE - 2..], [0x578f_dfe3, 0x3ac3_72e6]);
    }

    #[test]
    fn blowfish_is_blowfish() {
        // Schneier's first vector: a key of eight zeros, which as 64 zeros changes no subkey.
        let mut state = Blowfish(Box::new(*PI));
        state.expand(&[0; 64], &[0; 64]);
        assert_eq!(state.encipher((0, 0)), (0x4ef9_9745, 0x6198_dd78));
    }
}

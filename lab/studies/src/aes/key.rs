// SPDX-License-Identifier: Apache-2.0
//! The key schedule (FIPS 197, section 5.2), for all versions.

use super::Block;
use super::field::{SBOX, twice, undo_columns};

/// Round keys at most.
const MAX_ROUND_KEYS: usize = 15;

/// An expanded key.
#[derive(Clone, Debug)]
pub struct Key {
    keys: [Block; MAX_ROUND_KEYS],
    /// For the inverse cipher, in the order of its rounds, the inner ones with their columns unmixed
    /// (section 5.3.5).
    inverse: [Block; MAX_ROUND_KEYS],
    rounds: usize,
}

impl Key {
    /// Expands a key of 128 bits.
    #[must_use]
    pub fn new_128(key: &[u8; 16]) -> Self {
        Self::expanded(key.as_chunks().0)
    }

    /// Expands a key of 256 bits.
    #[must_use]
    pub fn new_256(key: &[u8; 32]) -> Self {
        Self::expanded(key.as_chunks().0)
    }

    fn expanded(key: &[[u8; 4]]) -> Self {
        let (length, rounds) = (key.len(), key.len() + 6);
        let mut words = [[0; 4]; 4 * MAX_ROUND_KEYS];
        words[..length].copy_from_slice(key);
        let mut constant = 1;
        for at in length..4 * (rounds + 1) {
            let mut word = words[at - 1];
            if at % length == 0 {
                word.rotate_left(1);
                word = word.map(|byte| SBOX[usize::from(byte)]);
                word[0] ^= constant;
                constant = twice(constant);
            } else if length > 6 && at % length == 4 {
                word = word.map(|byte| SBOX[usize::from(byte)]);
            }
            for (byte, before) in word.iter_mut().zip(words[at - length]) {
                *byte ^= before;
            }
            words[at] = word;
        }
        let mut keys = [[0; 16]; MAX_ROUND_KEYS];
        for (key, words) in keys.iter_mut().zip(words.as_chunks::<4>().0) {
            key.copy_from_slice(words.as_flattened());
        }
        let mut inverse = keys;
        inverse[..=rounds].reverse();
        inverse[1..rounds].iter_mut().for_each(|key| *key = undo_columns(*key));
        Self { keys, inverse, rounds }
    }

    /// The round keys, the first and the last among them.
    pub(super) fn round_keys(&self) -> &[Block] {
        &self.keys[..=self.rounds]
    }

    /// Those of the equivalent inverse cipher.
    pub(super) fn inverse_keys(&self) -> &[Block] {
        &self.inverse[..=self.rounds]
    }
}

// SPDX-License-Identifier: Apache-2.0
//! A private key's numbers.

use super::keys::{NUMBERS_1024, NUMBERS_2048};
use super::number;

/// A key of the study. The limbs of its numbers are in the order of their weight.
#[derive(Clone, Debug)]
pub struct Key {
    pub(super) p: Vec<u64>,
    pub(super) q: Vec<u64>,
    pub(super) exponents: [Vec<u64>; 2],
    pub(super) coefficient: Vec<u64>,
}

impl Key {
    /// The key of so many bits: 1024 or 2048.
    #[must_use]
    pub fn of_bits(bits: usize) -> Option<Self> {
        let numbers = match bits {
            1024 => NUMBERS_1024,
            2048 => NUMBERS_2048,
            _ => return None,
        };
        let [p, q, first, second, coefficient] = numbers.map(number::from_hex);
        Some(Self { p, q, exponents: [first, second], coefficient })
    }

    /// The modulus.
    #[must_use]
    pub fn modulus(&self) -> Vec<u8> {
        number::to_bytes(&number::product(&self.p, &self.q))
    }

    /// The public exponent.
    #[must_use]
    pub const fn public_exponent() -> [u8; 3] {
        [1, 0, 1]
    }

    pub(super) fn bytes(&self) -> usize {
        (self.p.len() + self.q.len()) * 8
    }
}

// SPDX-License-Identifier: Apache-2.0
//! The set hash: a sum, modulo 2²⁵⁶, of one keyed value per authenticated row.
//!
//! Adding and taking out cost one MAC, whatever the number of rows. It is stored sealed: whoever
//! could read the sums would learn the value of each row that came and went.

use crate::crypto::Keys;
use crate::error::Result;

/// The hash of a set of rows, with how many they are and the next object's id.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub(crate) struct Set {
    sum: [u64; 4],
    pub(crate) count: u64,
    pub(crate) next_id: u64,
}

const ENCODED: usize = 48;

impl Set {
    /// No rows.
    pub(crate) fn empty(next_id: u64) -> Self {
        Self { next_id, ..Self::default() }
    }

    pub(crate) fn add(&mut self, member: &[u8; 32]) {
        let mut carry = false;
        for (word, added) in self.sum.iter_mut().zip(words(member)) {
            let (sum, first) = word.overflowing_add(added);
            let (sum, second) = sum.overflowing_add(u64::from(carry));
            (*word, carry) = (sum, first || second);
        }
        self.count = self.count.wrapping_add(1);
    }

    pub(crate) fn remove(&mut self, member: &[u8; 32]) {
        let mut borrow = false;
        for (word, taken) in self.sum.iter_mut().zip(words(member)) {
            let (rest, first) = word.overflowing_sub(taken);
            let (rest, second) = rest.overflowing_sub(u64::from(borrow));
            (*word, borrow) = (rest, first || second);
        }
        self.count = self.count.wrapping_sub(1);
    }

    pub(crate) fn seal(&self, keys: &Keys) -> Result<Vec<u8>> {
        let mut plain = [0; ENCODED];
        let numbers = self.sum.iter().chain([&self.count, &self.next_id]);
        for (place, word) in plain.chunks_exact_mut(8).zip(numbers) {
            place.copy_from_slice(&word.to_le_bytes());
        }
        keys.seal_set(&plain)
    }

    /// `None` when it is not ours.
    pub(crate) fn open(keys: &Keys, sealed: &[u8]) -> Result<Option<Self>> {
        let Some(plain) = keys.open_set::<ENCODED>(sealed)? else { return Ok(None) };
        let mut numbers = [0; 6];
        for (number, bytes) in numbers.iter_mut().zip(plain.as_chunks().0) {
            *number = u64::from_le_bytes(*bytes);
        }
        let [a, b, c, d, count, next_id] = numbers;
        Ok(Some(Self { sum: [a, b, c, d], count, next_id }))
    }

    /// Whether both hold the same rows, whatever ids they will give next.
    pub(crate) fn same_rows(&self, other: &Self) -> bool {
        self.sum == other.sum && self.count == other.count
    }
}

fn words(member: &[u8; 32]) -> impl Iterator<Item = u64> {
    member.as_chunks().0.iter().map(|bytes| u64::from_le_bytes(*bytes))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_added_and_taken_out_in_any_order_leaves_nothing() {
        let members = [[0xff; 32], [0x80; 32], [1; 32]];
        let mut set = Set::default();
        members.iter().for_each(|member| set.add(member));
        assert_eq!(set.count, 3);
        members.iter().rev().for_each(|member| set.remove(member));
        assert_eq!(set, Set::default());
    }

    #[test]
    fn carries_run_through_all_words() {
        let mut one = [0; 32];
        one[0] = 1;
        let mut set = Set::default();
        set.add(&[0xff; 32]);
        set.add(&one);
        assert_eq!(set.sum, [0; 4]);
    }
}

// SPDX-License-Identifier: Apache-2.0
//! KASUMI (3GPP TS 35.202), encryption only: its inner function FI by two small tables, by two large
//! ones, and without tables. With tables it leaks its key through the cache.

mod equations;
mod schedule;
mod sliced;
mod tables;

use schedule::Round;
use std::array;

/// How FI is computed.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Version {
    /// Two small tables, each read twice.
    Small,
    /// Two large tables, each read once.
    Large,
    /// Equations, for 64 blocks at a time.
    Sliced,
}

impl Version {
    /// Bytes of the tables.
    #[must_use]
    pub const fn table_bytes(self) -> usize {
        match self {
            Self::Small => size_of_val(&tables::S7) + size_of_val(&tables::S9),
            Self::Large => 2 * size_of::<[u16; 1 << 16]>(),
            Self::Sliced => 0,
        }
    }
}

/// A key, expanded.
#[derive(Clone, Debug)]
pub struct Key([Round; 8]);

impl Key {
    /// Expands a key.
    #[must_use]
    pub fn new(key: &[u8; 16]) -> Self {
        Self(schedule::expand(key))
    }

    /// Encrypts blocks that do not depend on each other.
    pub fn blocks(&self, version: Version, blocks: &mut [u64]) {
        match version {
            Version::Small => self.each(blocks, small),
            Version::Large => {
                let large = &*tables::LARGE;
                self.each(blocks, |x, key| large_fi(large, x, key));
            }
            Version::Sliced => {
                for group in blocks.chunks_mut(64) {
                    sliced::encrypt(&self.0, group);
                }
            }
        }
    }

    /// Encrypts a block so often, each time what came out: no block can begin before the one before has
    /// ended, as in the stream of f8.
    #[must_use]
    pub fn chain(&self, version: Version, block: u64, times: usize) -> u64 {
        let mut blocks = [block];
        match version {
            Version::Small => (0..times).for_each(|_| self.each(&mut blocks, small)),
            Version::Large => {
                let large = &*tables::LARGE;
                (0..times).for_each(|_| self.each(&mut blocks, |x, k| large_fi(large, x, k)));
            }
            Version::Sliced => (0..times).for_each(|_| sliced::encrypt(&self.0, &mut blocks)),
        }
        blocks[0]
    }

    fn each(&self, blocks: &mut [u64], fi: impl Fn(u16, u16) -> u16) {
        for block in blocks {
            let (mut left, mut right) = halves(*block);
            for [odd, even] in self.0.as_chunks().0 {
                right ^= fo(fl(left, odd), odd, &fi);
                left ^= fl(fo(right, even, &fi), even);
            }
            *block = u64::from(left) << 32 | u64::from(right);
        }
    }
}

/// FI by the small tables.
fn small(x: u16, key: u16) -> u16 {
    let y = tables::half(x >> 7, x & 0x7f) ^ key;
    tables::half(y & 0x1ff, y >> 9)
}

/// FI by the large tables.
fn large_fi(tables: &tables::Large, x: u16, key: u16) -> u16 {
    tables.second[usize::from(tables.first[usize::from(x)] ^ key)]
}

fn fl(x: u32, round: &Round) -> u32 {
    let [left, right] = words(x);
    let right = right ^ (left & round.kl[0]).rotate_left(1);
    let left = left ^ (right | round.kl[1]).rotate_left(1);
    u32::from(left) << 16 | u32::from(right)
}

fn fo(x: u32, round: &Round, fi: &impl Fn(u16, u16) -> u16) -> u32 {
    let [mut left, mut right] = words(x);
    for (ko, ki) in round.ko.iter().zip(round.ki) {
        (left, right) = (right, fi(left ^ ko, ki) ^ right);
    }
    u32::from(left) << 16 | u32::from(right)
}

fn words(x: u32) -> [u16; 2] {
    let [a, b, c, d] = x.to_be_bytes();
    [u16::from_be_bytes([a, b]), u16::from_be_bytes([c, d])]
}

fn halves(block: u64) -> (u32, u32) {
    let bytes = block.to_be_bytes();
    let half = |from: usize| u32::from_be_bytes(array::from_fn(|at| bytes[from + at]));
    (half(0), half(4))
}

#[cfg(test)]
mod tests;

// SPDX-License-Identifier: Apache-2.0
//! RC5 (RFC 2040) of words of 16, 32 and 64 bits and any number of rounds: libraries fix them when they are compiled.

use crate::blocks::Blocks;
use metaslot_awslc_wrapper::aes::Way;
use metaslot_ck::{Error, Result};
use metaslot_memory::Held;
use std::sync::Arc;

/// The most rounds that the standard has.
const MOST_ROUNDS: usize = 255;

/// Two words for the beginning and for each round.
type Table = [u64; 2 * (MOST_ROUNDS + 1)];

#[derive(Debug)]
pub(crate) struct Rc5 {
    words: Words,
    rounds: usize,
    table: Held<Table>,
}

/// Arithmetic of words of so many bits.
#[derive(Clone, Copy, Debug)]
struct Words(u32);

impl Words {
    const fn cut(self, word: u64) -> u64 {
        word & (u64::MAX >> (64 - self.0))
    }

    /// By as many bits as the lowest of `by` say.
    const fn turn_left(self, word: u64, by: u64) -> u64 {
        let (bits, by) = (self.0 as u64, by % self.0 as u64);
        if by == 0 { word } else { self.cut(word << by) | word >> (bits - by) }
    }

    const fn turn_right(self, word: u64, by: u64) -> u64 {
        let bits = self.0 as u64;
        self.turn_left(word, bits - by % bits)
    }

    const fn sum(self, one: u64, other: u64) -> u64 {
        self.cut(one.wrapping_add(other))
    }

    const fn difference(self, one: u64, other: u64) -> u64 {
        self.cut(one.wrapping_sub(other))
    }

    const fn bytes(self) -> usize {
        self.0 as usize / 8
    }

    /// Little-endian.
    fn read(self, bytes: &[u8]) -> u64 {
        bytes.iter().rev().fold(0, |word, byte| word << 8 | u64::from(*byte))
    }
}

/// The bytes of a word and the rounds that parameters say.
fn shape(by: [u64; 2]) -> Option<(Words, usize)> {
    let bits = match by[0] {
        2 => 16,
        4 => 32,
        8 => 64,
        _ => return None,
    };
    let rounds = usize::try_from(by[1]).ok().filter(|rounds| *rounds <= MOST_ROUNDS)?;
    Some((Words(bits), rounds))
}

/// Length of a block, in bytes; 0 where there is none.
pub(crate) fn block(by: [u64; 2]) -> usize {
    shape(by).map_or(0, |(words, _)| 2 * words.bytes())
}

/// The schedule of a key, for words of so many bytes and so many rounds.
pub(crate) fn keyed(key: &[u8], by: [u64; 2]) -> Result<Arc<dyn Blocks>> {
    let (words, rounds) = shape(by).ok_or(Error::MECHANISM_PARAM_INVALID)?;
    let table = Held::new(Error::DEVICE_MEMORY, || Ok(expanded(key, words, rounds)))?;
    Ok(Arc::new(Rc5 { words, rounds, table }))
}

fn expanded(key: &[u8], words: Words, rounds: usize) -> Table {
    // e and the golden ratio, as odd numbers of so many bits.
    let (first, step): (u64, u64) = match words.0 {
        16 => (0xb7e1, 0x9e37),
        32 => (0xb7e1_5163, 0x9e37_79b9),
        _ => (0xb7e1_5162_8aed_2a6b, 0x9e37_79b9_7f4a_7c15),
    };
    let mut table = [0; 2 * (MOST_ROUNDS + 1)];
    let used = 2 * (rounds + 1);
    let mut next = first;
    for word in &mut table[..used] {
        *word = next;
        next = words.sum(next, step);
    }
    // A key has at most 255 bytes.
    let mut given = [0; 128];
    let count = key.len().div_ceil(words.bytes()).max(1);
    for (word, bytes) in given.iter_mut().zip(key.chunks(words.bytes())) {
        *word = words.read(bytes);
    }
    let (mut a, mut b) = (0, 0);
    for at in 0..3 * used.max(count) {
        let (word, other) = (&mut table[at % used], &mut given[at % count]);
        a = words.turn_left(words.sum(*word, words.sum(a, b)), 3);
        *word = a;
        let both = words.sum(a, b);
        b = words.turn_left(words.sum(*other, both), both);
        *other = b;
    }
    table
}

impl Blocks for Rc5 {
    fn length(&self) -> usize {
        2 * self.words.bytes()
    }

    fn run(&self, way: Way, blocks: &mut [u8]) -> Result<()> {
        let words = self.words;
        let table = self.table.get().ok_or(Error::DEVICE_REMOVED)?;
        let ([first, second], rounds) = ([table[0], table[1]], &table[2..2 * (self.rounds + 1)]);
        let rounds = rounds.as_chunks::<2>().0;
        for block in blocks.chunks_exact_mut(self.length()) {
            let (one, other) = block.split_at_mut(words.bytes());
            let (mut a, mut b) = (words.read(one), words.read(other));
            match way {
                Way::Encrypt => {
                    (a, b) = (words.sum(a, first), words.sum(b, second));
                    for [key, next] in rounds {
                        a = words.sum(words.turn_left(a ^ b, b), *key);
                        b = words.sum(words.turn_left(a ^ b, a), *next);
                    }
                }
                Way::Decrypt => {
                    for [key, next] in rounds.iter().rev() {
                        b = words.turn_right(words.difference(b, *next), a) ^ a;
                        a = words.turn_right(words.difference(a, *key), b) ^ b;
                    }
                    (a, b) = (words.difference(a, first), words.difference(b, second));
                }
            }
            one.copy_from_slice(&a.to_le_bytes()[..words.bytes()]);
            other.copy_from_slice(&b.to_le_bytes()[..words.bytes()]);
        }
        Ok(())
    }
}

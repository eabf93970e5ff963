// SPDX-License-Identifier: Apache-2.0
//! SEED (RFC 4269; Korea).

use crate::blocks::Blocks;
use metaslot_awslc_wrapper::aes::Way;
use metaslot_ck::{Error, Result};
use metaslot_memory::Held;

const ROUNDS: usize = 16;

/// Two words for each round.
#[derive(Debug)]
pub(crate) struct Seed(Held<[[u32; 2]; ROUNDS]>);

/// The substitutions: powers in the field of x⁸ + x⁶ + x⁵ + x + 1, then a matrix, whose rows begin with the highest bit, and a number.
static BOXES: [[u8; 256]; 2] = [
    substitution(247, [0x8a, 0xfe, 0x85, 0x42, 0x45, 0x21, 0x88, 0x14], 169),
    substitution(251, [0x45, 0x85, 0xfe, 0x21, 0x8a, 0x88, 0x42, 0x14], 56),
];

/// What G takes of each substituted byte, turned on by one for each place.
const MASKS: [u32; 4] = [0xfc, 0xf3, 0xcf, 0x3f];

const fn product(mut a: u16, mut b: u16) -> u16 {
    let mut sum = 0;
    while b > 0 {
        if b & 1 == 1 {
            sum ^= a;
        }
        a <<= 1;
        if a & 0x100 != 0 {
            a ^= 0x163;
        }
        b >>= 1;
    }
    sum
}

#[expect(clippy::cast_possible_truncation, reason = "elements of the field are bytes")]
const fn substitution(exponent: u16, matrix: [u8; 8], number: u8) -> [u8; 256] {
    let mut table = [0; 256];
    let mut at = 0;
    while at < table.len() {
        let (mut power, mut count) = (1, 0);
        while count < exponent {
            power = product(power, at as u16);
            count += 1;
        }
        let (mut byte, mut row) = (0, 0);
        while row < matrix.len() {
            byte = (byte << 1) | (matrix[row] & power as u8).count_ones() as u8 & 1;
            row += 1;
        }
        table[at] = byte ^ number;
        at += 1;
    }
    table
}

fn g(word: u32) -> u32 {
    let bytes = word.to_le_bytes();
    let boxed = |at: usize| u32::from(BOXES[at % 2][usize::from(bytes[at])]);
    let place = |to: usize| {
        let taken = (0..4).fold(0, |sum, from| sum ^ boxed(from) & MASKS[(to + from) % 4]);
        taken << (8 * to)
    };
    (0..4).fold(0, |sum, to| sum | place(to))
}

/// One round's function of a half of the block.
fn round(half: [u32; 2], key: [u32; 2]) -> [u32; 2] {
    let [c, d] = [half[0] ^ key[0], half[1] ^ key[1]];
    let t = g(c ^ d);
    let u = g(t.wrapping_add(c));
    let v = g(t.wrapping_add(u));
    [u.wrapping_add(v), v]
}

impl Seed {
    /// The schedule of a key.
    pub(crate) fn new(key: &[u8]) -> Result<Self> {
        Held::new(Error::DEVICE_MEMORY, || {
            let halves = <&[u8; 16]>::try_from(key).map_err(|_| Error::KEY_SIZE_RANGE)?;
            let [mut ab, mut cd] = halves_of(halves);
            let mut keys = [[0; 2]; ROUNDS];
            let mut number = 0x9e37_79b9_u32;
            for (at, key) in keys.iter_mut().enumerate() {
                let ([a, b], [c, d]) = (words(ab), words(cd));
                *key = [
                    g(a.wrapping_add(c).wrapping_sub(number)),
                    g(b.wrapping_sub(d).wrapping_add(number)),
                ];
                match at % 2 {
                    0 => ab = ab.rotate_right(8),
                    _ => cd = cd.rotate_left(8),
                }
                number = number.rotate_left(1);
            }
            Ok(keys)
        })
        .map(Self)
    }
}

fn halves_of(block: &[u8; 16]) -> [u64; 2] {
    [0, 1].map(|half| u64::from_be_bytes(block.as_chunks::<8>().0[half]))
}

fn words(half: u64) -> [u32; 2] {
    let bytes = half.to_be_bytes();
    [0, 1].map(|word| u32::from_be_bytes(bytes.as_chunks::<4>().0[word]))
}

impl Blocks for Seed {
    fn length(&self) -> usize {
        16
    }

    fn run(&self, way: Way, blocks: &mut [u8]) -> Result<()> {
        let keys = self.0.get().ok_or(Error::DEVICE_REMOVED)?;
        for block in blocks.as_chunks_mut::<16>().0 {
            let [left, right] = halves_of(block);
            let (mut left, mut right) = (words(left), words(right));
            for at in 0..ROUNDS {
                let key = keys[if way == Way::Encrypt { at } else { ROUNDS - 1 - at }];
                let [c, d] = round(right, key);
                (left, right) = (right, [left[0] ^ c, left[1] ^ d]);
            }
            // The last round changes no sides.
            for (bytes, word) in
                block.as_chunks_mut::<4>().0.iter_mut().zip(right.iter().chain(&left))
            {
                *bytes = word.to_be_bytes();
            }
        }
        Ok(())
    }
}

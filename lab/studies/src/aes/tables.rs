// SPDX-License-Identifier: Apache-2.0
//! Rounds by tables: substitution and mixing of columns in one look-up for each byte.

use super::field::{SBOX, inverse, product, substitution};
use super::key::Key;
use super::stream::add;
use super::{Block, Stream};

type Table = [u32; 256];

/// Of one direction: four tables of words, and one of bytes for the last round.
pub(super) const BYTES: usize = 4 * size_of::<Table>() + 256;

static INVERSE: [u8; 256] = inverse(&substitution());
static FORWARD: [Table; 4] = rotations(&substitution(), [2, 1, 1, 3]);
static BACKWARD: [Table; 4] = rotations(&inverse(&substitution()), [14, 9, 13, 11]);

/// A column of the mixing matrix for each substituted byte, and its rotations.
const fn rotations(table: &[u8; 256], column: [u8; 4]) -> [Table; 4] {
    let mut tables = [[0; 256]; 4];
    let mut at = 0;
    while at < 256 {
        let byte = table[at];
        let word = u32::from_be_bytes([
            product(byte, column[0]),
            product(byte, column[1]),
            product(byte, column[2]),
            product(byte, column[3]),
        ]);
        tables[0][at] = word;
        tables[1][at] = word.rotate_right(8);
        tables[2][at] = word.rotate_right(16);
        tables[3][at] = word.rotate_right(24);
        at += 1;
    }
    tables
}

fn columns(block: Block) -> [u32; 4] {
    let [a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p] = block;
    [[a, b, c, d], [e, f, g, h], [i, j, k, l], [m, n, o, p]].map(u32::from_be_bytes)
}

fn look(tables: &[Table; 4], [a, b, c, d]: [u8; 4]) -> u32 {
    let [one, two, three, four] = tables;
    one[usize::from(a)] ^ two[usize::from(b)] ^ three[usize::from(c)] ^ four[usize::from(d)]
}

/// The bytes of one column after the rows were shifted: each row from another column.
#[inline(always)]
fn diagonal(a: u32, b: u32, c: u32, d: u32) -> [u8; 4] {
    [a.to_be_bytes()[0], b.to_be_bytes()[1], c.to_be_bytes()[2], d.to_be_bytes()[3]]
}

/// All four columns after the rows were shifted; backwards for the inverse cipher.
#[inline(always)]
fn shifted<const BACK: bool>([a, b, c, d]: [u32; 4]) -> [[u8; 4]; 4] {
    let (b, d) = if BACK { (d, b) } else { (b, d) };
    let columns =
        [diagonal(a, b, c, d), diagonal(b, c, d, a), diagonal(c, d, a, b), diagonal(d, a, b, c)];
    if BACK { [columns[0], columns[3], columns[2], columns[1]] } else { columns }
}

/// All rounds.
#[inline(always)]
fn rounds<const BACK: bool>(
    keys: &[Block],
    tables: &[Table; 4],
    last: &[u8; 256],
    block: Block,
) -> Block {
    let [first, inner @ .., end] = keys else { return block };
    let mut state = columns(add(block, *first));
    for key in inner {
        let [a, b, c, d] = shifted::<BACK>(state);
        let key = columns(*key);
        state = [
            look(tables, a) ^ key[0],
            look(tables, b) ^ key[1],
            look(tables, c) ^ key[2],
            look(tables, d) ^ key[3],
        ];
    }
    let mut bytes = [0; 16];
    for (byte, from) in bytes.iter_mut().zip(shifted::<BACK>(state).as_flattened()) {
        *byte = last[usize::from(*from)];
    }
    add(bytes, *end)
}

pub(super) fn encrypt_block(key: &Key, block: Block) -> Block {
    rounds::<false>(key.round_keys(), &FORWARD, &SBOX, block)
}

fn decrypt_block(key: &Key, block: Block) -> Block {
    rounds::<true>(key.inverse_keys(), &BACKWARD, &INVERSE, block)
}

#[inline(never)]
pub(super) fn encrypt(key: &Key, stream: &mut Stream) {
    let mut chain = stream.iv;
    for (input, output) in stream.input.iter().zip(&mut stream.output) {
        chain = encrypt_block(key, add(*input, chain));
        *output = chain;
    }
}

#[inline(never)]
pub(super) fn decrypt(key: &Key, stream: &mut Stream) {
    let mut chain = stream.iv;
    for (input, output) in stream.input.iter().zip(&mut stream.output) {
        *output = add(decrypt_block(key, *input), chain);
        chain = *input;
    }
}

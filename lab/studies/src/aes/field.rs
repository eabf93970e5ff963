// SPDX-License-Identifier: Apache-2.0
//! The field of 256 elements, and what the cipher makes of it: the substitution and the mixing of columns.

use super::Block;

/// The substitution (FIPS 197, section 5.1.1), computed from its definition.
pub(super) static SBOX: [u8; 256] = substitution();

/// Twice an element of the field.
pub(super) const fn twice(x: u8) -> u8 {
    (x << 1) ^ if x & 0x80 == 0 { 0 } else { 0x1b }
}

pub(super) const fn product(mut a: u8, mut b: u8) -> u8 {
    let mut sum = 0;
    while b != 0 {
        if b & 1 == 1 {
            sum ^= a;
        }
        a = twice(a);
        b >>= 1;
    }
    sum
}

/// Powers of 3 run through the field, and powers of its inverse, 246, through the inverses.
pub(super) const fn substitution() -> [u8; 256] {
    let mut table = [0x63; 256];
    let (mut x, mut y) = (1_u8, 1_u8);
    loop {
        let turned = y ^ y.rotate_left(1) ^ y.rotate_left(2) ^ y.rotate_left(3) ^ y.rotate_left(4);
        table[x as usize] = turned ^ 0x63;
        x = product(x, 3);
        y = product(y, 246);
        if x == 1 {
            return table;
        }
    }
}

#[expect(clippy::cast_possible_truncation, reason = "an index below 256")]
pub(super) const fn inverse(table: &[u8; 256]) -> [u8; 256] {
    let mut inverse = [0; 256];
    let mut at = 0;
    while at < 256 {
        inverse[table[at] as usize] = at as u8;
        at += 1;
    }
    inverse
}

/// The mixing of columns undone.
pub(super) fn undo_columns(mut block: Block) -> Block {
    for column in block.as_chunks_mut::<4>().0 {
        let old = *column;
        for (at, byte) in column.iter_mut().enumerate() {
            let [a, b, c, d] = [0, 1, 2, 3].map(|next| old[(at + next) % 4]);
            *byte = product(a, 14) ^ product(b, 11) ^ product(c, 13) ^ product(d, 9);
        }
    }
    block
}

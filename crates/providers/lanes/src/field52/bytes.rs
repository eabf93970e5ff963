// SPDX-License-Identifier: Apache-2.0
//! Numbers as bytes, one lane at a time.

use super::modulus::difference;
use super::{BITS, Columns, LIMB};

/// The limbs of a number written as at most 8·N·52/64 bytes, most significant first.
pub(crate) fn big_endian<const N: usize>(bytes: &[u8]) -> [u64; N] {
    let mut out = [0; N];
    let (mut window, mut bits, mut limb) = (0_u128, 0, 0);
    for chunk in bytes.rchunks(4) {
        let value = chunk.iter().fold(0_u32, |value, byte| (value << 8) | u32::from(*byte));
        window |= u128::from(value) << bits;
        bits += 8 * chunk.len();
        if bits >= BITS as usize {
            out[limb] = lowest(window) & LIMB;
            window >>= BITS;
            bits -= BITS as usize;
            limb += 1;
        }
    }
    if limb < N {
        out[limb] = lowest(window) & LIMB;
    }
    out
}

/// The limbs of a number written as bytes, least significant first.
pub(crate) fn little_endian<const N: usize>(bytes: &[u8]) -> [u64; N] {
    let mut reversed = [0; 64];
    let reversed = &mut reversed[..bytes.len()];
    for (to, from) in reversed.iter_mut().zip(bytes.iter().rev()) {
        *to = *from;
    }
    big_endian(reversed)
}

/// Writes limbs as bytes, most significant first.
pub(crate) fn write_big_endian<const N: usize>(limbs: &[u64; N], out: &mut [u8]) {
    let (mut window, mut bits, mut limb) = (0_u128, 0, 0);
    for chunk in out.rchunks_mut(4) {
        if bits < 8 * chunk.len() && limb < N {
            window |= u128::from(limbs[limb]) << bits;
            bits += BITS as usize;
            limb += 1;
        }
        for byte in chunk.iter_mut().rev() {
            *byte = lowest(window).to_le_bytes()[0];
            window >>= 8;
        }
        bits -= 8 * chunk.len();
    }
}

/// The lowest 64 bits.
#[expect(clippy::cast_possible_truncation, reason = "what is above is taken later")]
const fn lowest(window: u128) -> u64 {
    window as u64
}

/// Puts a number into a lane.
pub(crate) fn put<const N: usize>(columns: &mut Columns<N>, lane: usize, limbs: &[u64; N]) {
    for (column, limb) in columns.iter_mut().zip(limbs) {
        column[lane] = *limb;
    }
}

/// The number in a lane.
pub(crate) fn take<const N: usize>(columns: &Columns<N>, lane: usize) -> [u64; N] {
    let mut out = [0; N];
    for (limb, column) in out.iter_mut().zip(columns) {
        *limb = column[lane];
    }
    out
}

/// Whether a < b; the time does not depend on the values.
pub(crate) const fn less<const N: usize>(a: &[u64; N], b: &[u64; N]) -> bool {
    difference(a, b).1
}

// SPDX-License-Identifier: Apache-2.0
//! Coefficients out of bytes, compressed ones, and small ones out of random bytes (FIPS 203 §4.2), without a branch or an address
//! that depends on them.

#![expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "numbers below q and bits of them, masked"
)]

use super::ring::{Poly, Q};

/// Bytes that give one polynomial of noise.
pub(super) const NOISE: usize = 128;

/// Whole numbers of `D` bits (algorithm 5).
#[inline(always)]
pub(super) fn numbers<const D: usize>(bytes: &[u8]) -> Poly {
    let mut poly = Poly::ZERO;
    let eights = poly.0.as_flattened_mut().as_chunks_mut::<8>().0;
    for (eight, bytes) in eights.iter_mut().zip(bytes.as_chunks::<D>().0) {
        let mut wide = [0; 16];
        wide[..D].copy_from_slice(bytes);
        let wide = u128::from_le_bytes(wide);
        for (at, number) in eight.iter_mut().enumerate() {
            *number = (wide >> (D * at)) as i16 & ((1 << D) - 1);
        }
    }
    poly
}

/// Decompress_D
#[inline(always)]
pub(super) fn decompressed<const D: usize>(poly: &Poly) -> Poly {
    poly.map(|number| ((number as u32 * Q as u32 + (1 << (D - 1))) >> D) as i16)
}

/// Compress_D of numbers from 0 to q − 1. A division, which takes longer for some numbers than for others, is a multiplication here.
#[inline(always)]
fn compressed<const D: usize>(number: i16) -> i16 {
    // ⌈2^35 / q⌉: exact for every number of 23 bits, as the tests show.
    const RECIPROCAL: u64 = (1_u64 << 35).div_ceil(3329);
    let rounded = ((number as u64) << D) + Q as u64 / 2;
    ((rounded * RECIPROCAL) >> 35) as i16 & ((1 << D) - 1)
}

/// Whether the compressed coefficients are others than these: zero if they are not.
#[inline(always)]
pub(super) fn difference<const D: usize>(poly: &Poly, numbers: &Poly) -> i16 {
    let mut difference = 0;
    for (a, number) in poly.0.as_flattened().iter().zip(numbers.0.as_flattened()) {
        difference |= compressed::<D>(*a) ^ number;
    }
    difference
}

/// The message in coefficients from 0 to q − 1.
#[inline(always)]
pub(super) fn message(poly: &Poly) -> [u8; 32] {
    let eights = poly.0.as_flattened().as_chunks::<8>().0;
    let mut message = [0; 32];
    for (byte, eight) in message.iter_mut().zip(eights) {
        for (bit, number) in eight.iter().enumerate() {
            *byte |= (compressed::<1>(*number) as u8) << bit;
        }
    }
    message
}

/// The coefficients of a message.
#[inline(always)]
pub(super) fn of_message(message: &[u8; 32]) -> Poly {
    let mut poly = Poly::ZERO;
    let eights = poly.0.as_flattened_mut().as_chunks_mut::<8>().0;
    for (eight, byte) in eights.iter_mut().zip(message) {
        for (bit, number) in eight.iter_mut().enumerate() {
            *number = -i16::from(byte >> bit & 1) & ((Q + 1) / 2);
        }
    }
    poly
}

/// Noise of the centered binomial distribution with η = 2 (algorithm 8).
#[inline(always)]
pub(super) fn noise(bytes: &[u8; NOISE]) -> Poly {
    let mut poly = Poly::ZERO;
    let eights = poly.0.as_flattened_mut().as_chunks_mut::<8>().0;
    for (eight, word) in eights.iter_mut().zip(bytes.as_chunks::<4>().0) {
        let word = u32::from_le_bytes(*word);
        let pairs = (word & 0x5555_5555) + (word >> 1 & 0x5555_5555);
        for (at, number) in eight.iter_mut().enumerate() {
            let four = pairs >> (4 * at);
            *number = (four & 3) as i16 - (four >> 2 & 3) as i16;
        }
    }
    poly
}

#[cfg(test)]
mod tests {
    use super::*;

    fn exact<const D: usize>() {
        for number in 0..Q {
            let wide = i64::from(number);
            let right = ((wide << (D + 1)) + 3329) / (2 * 3329) % (1 << D);
            assert_eq!(i64::from(compressed::<D>(number)), right, "{number} to {D} bits");
        }
    }

    #[test]
    fn compression_divides() {
        exact::<1>();
        exact::<4>();
        exact::<5>();
        exact::<10>();
        exact::<11>();
    }
}

// SPDX-License-Identifier: Apache-2.0
//! Coefficients out of bytes and into them, compressed ones, and small ones out of random bytes (FIPS 203 §4.2), without a branch or an address
//! that depends on them.

#![expect(clippy::cast_possible_truncation, reason = "numbers below q and bits of them, masked")]

use super::ring::{Poly, Q};
use super::vector::{Sums, Vector};

/// Whole numbers of `D` bits (algorithm 5).
#[target_feature(enable = "avx2")]
pub(super) fn numbers<const D: usize>(bytes: &[u8]) -> Poly {
    let mut poly = Poly::ZERO;
    let eights = poly.0.as_flattened_mut().as_chunks_mut::<8>().0;
    for (eight, bytes) in eights.iter_mut().zip(bytes.as_chunks::<D>().0) {
        for (at, number) in eight.iter_mut().enumerate() {
            let (byte, shift) = (D * at / 8, D * at % 8);
            let next = |more: usize| match byte + more < D && shift + D > 8 * more {
                true => u32::from(bytes[byte + more]) << (8 * more),
                false => 0,
            };
            *number = ((next(0) | next(1) | next(2)) >> shift) as i16 & ((1 << D) - 1);
        }
    }
    poly
}

/// Decompress_D
#[target_feature(enable = "avx2")]
pub(super) fn decompressed<const D: usize>(bytes: &[u8]) -> Poly {
    let mut poly = numbers::<D>(bytes);
    for row in &mut poly.0 {
        // Of the number times 2^(15 − D), which fits.
        let wide = Vector::load(row).low(Vector::all(1 << (15 - D)));
        wide.rounded(Vector::all(Q)).store(row);
    }
    poly
}

/// Compress_D of numbers from 0 to q − 1, without a division, which takes longer for some numbers than for others.
#[target_feature(enable = "avx2")]
#[inline]
fn compressed<const D: usize>(number: Vector) -> Vector {
    // 2^26 / q, rounded up: the quotient is right or too large by one, as its remainder tells.
    const RECIPROCAL: i16 = 20159;
    let quotient = number.low(Vector::all(8)).high(Vector::all(RECIPROCAL));
    let quotient = quotient.rounded(Vector::all(1 << (2 + D)));
    let rest = number.low(Vector::all(1 << D)).sub(quotient.low(Vector::all(Q)));
    let quotient = quotient.add(rest.less(Vector::all(-(Q / 2))));
    quotient.and(Vector::all((1 << D) - 1))
}

/// Compressed coefficients, of which each was between 0 and q − 1, as bytes.
#[target_feature(enable = "avx2")]
pub(super) fn encode<const D: usize>(poly: &Poly, bytes: &mut [u8]) {
    for (rows, bytes) in poly.0.iter().zip(bytes.chunks_exact_mut(2 * D)) {
        let numbers = compressed::<D>(Vector::load(rows));
        let pairs = numbers.products(Vector::pairs(1, 1 << D), Sums::zero()).numbers();
        for (four, bytes) in pairs.as_chunks::<4>().0.iter().zip(bytes.as_chunks_mut::<D>().0) {
            let [a, b, c, d] = four.map(u64::from);
            let [low, high] = [a | b << (2 * D), c | d << (2 * D)];
            let all = u128::from(low) | u128::from(high) << (4 * D);
            bytes.copy_from_slice(&all.to_le_bytes()[..D]);
        }
    }
}

/// Noise of the centered binomial distribution (algorithm 8) from 64 · `ETA` random bytes.
#[target_feature(enable = "avx2")]
pub(super) fn noise<const ETA: usize>(bytes: &[u8]) -> Poly {
    let mut poly = Poly::ZERO;
    // Two bits or three of one sum, and as many of the other, for each number: so many numbers of a word.
    let count = if ETA == 2 { 8 } else { 4 };
    let every = if ETA == 2 { 0x5555_5555 } else { 0x0024_9249 };
    let numbers = poly.0.as_flattened_mut().chunks_exact_mut(count);
    for (numbers, bytes) in numbers.zip(bytes.chunks_exact(count * ETA / 4)) {
        let mut word = [0; 4];
        word[..bytes.len()].copy_from_slice(bytes);
        let word = u32::from_le_bytes(word);
        let sums = (0..ETA).fold(0, |sums, at| sums + (word >> at & every));
        for (at, number) in numbers.iter_mut().enumerate() {
            let both = sums >> (2 * ETA * at);
            let part = |shift: usize| (both >> shift & ((1 << ETA) - 1)) as i16;
            *number = part(0) - part(ETA);
        }
    }
    poly
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cpu::{Cpu, cpu};
    use crate::testing::Random;

    #[target_feature(enable = "avx2")]
    fn exact<const D: usize>() {
        for number in 0..Q {
            let wide = i64::from(number);
            let right = ((wide << (D + 1)) + 3329) / (2 * 3329) % (1 << D);
            let mut found = [0; 16];
            compressed::<D>(Vector::all(number)).store(&mut found);
            assert_eq!(i64::from(found[0]), right, "{number} to {D} bits");
        }
        for number in 0..1 << D {
            let right = (i64::from(number) * 3329 + (1 << (D - 1))) >> D;
            let mut bytes = vec![0; 32 * D];
            bytes[..2].copy_from_slice(&u16::try_from(number).unwrap().to_le_bytes());
            let found = decompressed::<D>(&bytes).0[0][0];
            assert_eq!(i64::from(found), right, "{number} of {D} bits");
            // What was compressed comes back.
            let mut again = vec![0; 32 * D];
            encode::<D>(&decompressed::<D>(&bytes), &mut again);
            assert_eq!(again, bytes);
        }
    }

    #[target_feature(enable = "avx2")]
    fn all_exact() {
        exact::<1>();
        exact::<4>();
        exact::<5>();
        exact::<10>();
        exact::<11>();
    }

    #[test]
    fn compression_divides() {
        if cpu().has(Cpu::AVX2) {
            // SAFETY: the processor has the instructions.
            unsafe { all_exact() };
        }
    }

    #[target_feature(enable = "avx2")]
    fn counted<const ETA: usize>(bytes: &[u8]) {
        let bit = |at: usize| i16::from(bytes[at / 8] >> (at % 8) & 1);
        let sum = |first: usize| (first..first + ETA).map(bit).sum::<i16>();
        for (at, number) in noise::<ETA>(bytes).0.as_flattened().iter().enumerate() {
            assert_eq!(*number, sum(2 * ETA * at) - sum(2 * ETA * at + ETA), "{at}, η = {ETA}");
        }
    }

    #[target_feature(enable = "avx2")]
    fn all_counted(bytes: &[u8]) {
        counted::<2>(&bytes[..128]);
        counted::<3>(bytes);
    }

    #[test]
    fn noise_counts_bits() {
        if cpu().has(Cpu::AVX2) {
            let bytes = Random::new().bytes(192);
            // SAFETY: the processor has the instructions.
            unsafe { all_counted(&bytes) };
        }
    }
}

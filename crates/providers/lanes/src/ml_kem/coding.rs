// SPDX-License-Identifier: Apache-2.0
//! Coefficients out of bytes and into them, compressed ones, and small ones out of random bytes (FIPS 203 §4.2), without a branch or an address
//! that depends on them.

#![expect(clippy::cast_possible_truncation, reason = "numbers below q and bits of them, masked")]

use super::ring::{Poly, Q};
use super::vector::{Packing, Sixteen, Sums, Vector};

/// Bytes of numbers of twelve bits, the longest.
const LONGEST: usize = 384;

/// Whole numbers of `D` bits (algorithm 5).
#[target_feature(enable = "avx2")]
pub(super) fn numbers<const D: usize>(bytes: &[u8]) -> Poly {
    // What is read of the last ones begins with them.
    let mut padded = [0; LONGEST + 16];
    padded[..32 * D].copy_from_slice(&bytes[..32 * D]);
    let packing = const { &Packing::of(D) };
    let mut poly = Poly::ZERO;
    for (at, row) in poly.0.iter_mut().enumerate() {
        let eight = |from: usize| padded[from..].first_chunk().unwrap_or(&[0; 16]);
        let both = [eight(2 * D * at), eight(2 * D * at + D)];
        Vector::unpacked(both, packing, D as u32).store(row);
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
        let pairs = numbers.products(Vector::pairs(1, 1 << D), Sums::zero());
        let fours = pairs.joined(2 * D as i32);
        for ([low, high], bytes) in
            fours.as_chunks::<2>().0.iter().zip(bytes.as_chunks_mut::<D>().0)
        {
            let all = u128::from(*low) | u128::from(*high) << (4 * D);
            bytes.copy_from_slice(&all.to_le_bytes()[..D]);
        }
    }
}

/// Noise of the centered binomial distribution (algorithm 8) from 64 · `ETA` random bytes.
#[target_feature(enable = "avx2")]
pub(super) fn noise<const ETA: usize>(bytes: &[u8]) -> Poly {
    let mut poly = Poly::ZERO;
    if ETA == 2 {
        let fours = poly.0.as_chunks_mut::<4>().0.iter_mut();
        fours.zip(bytes.as_chunks::<32>().0).for_each(|(rows, bytes)| twos(rows, bytes));
    } else {
        let fours = poly.0.as_flattened_mut().as_chunks_mut::<4>().0.iter_mut();
        fours.zip(bytes.as_chunks::<3>().0).for_each(|(four, bytes)| *four = threes(*bytes));
    }
    poly
}

/// Noise of width 2: four bits for each number, of which two are added and two taken away.
#[target_feature(enable = "avx2")]
#[inline]
fn twos(rows: &mut [Sixteen; 4], bytes: &[u8; 32]) {
    let bits = Vector::bytes(bytes);
    let (one, two) = (Vector::all(0x5555), Vector::all(0x3333));
    let sums = bits.and(one).add(bits.right::<1>().and(one));
    // Of each four bits the number, and three.
    let numbers = sums.and(two).add(two).sub(sums.right::<2>().and(two));
    let number = |bits: Vector| bits.and(Vector::all(15)).sub(Vector::all(3));
    let [a, b] = [number(numbers), number(numbers.right::<4>())];
    let [c, d] = [number(numbers.right::<8>()), number(numbers.right::<12>())];
    // Four times sixteen numbers of words one after the other: the four of each word together.
    let ([ac, ac_high], [bd, bd_high]) = (a.interleaved(c), b.interleaved(d));
    let ([first, second], [third, fourth]) = (ac.interleaved(bd), ac_high.interleaved(bd_high));
    let ([low, next], [high, last]) = (first.halves(second), third.halves(fourth));
    let [zero, one, two, three] = rows;
    low.store(zero);
    high.store(one);
    next.store(two);
    last.store(three);
}

/// Noise of width 3: six bits for each of four numbers.
fn threes([a, b, c]: [u8; 3]) -> [i16; 4] {
    let word = u32::from_le_bytes([a, b, c, 0]);
    let sums = (0..3).fold(0, |sums, at| sums + (word >> at & 0x0024_9249));
    let part = |shift: usize| (sums >> shift & 7) as i16;
    [0, 6, 12, 18].map(|at| part(at) - part(at + 3))
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

// SPDX-License-Identifier: Apache-2.0
//! One element at a time, in 64-bit words: the portable form, and the same with the single carry-less multiplication
//! of older processors.
//!
//! Constant time: products of words come from integer multiplications of words with holes in them, or from PCLMULQDQ,
//! both of which take the same time for all values; there is no table, and the ladder exchanges by masks.

use super::field::{Field, LANES};
use super::form::{Form, Ladder};
use super::params::Params;

/// How two words are multiplied.
pub(super) trait Product: Copy {
    /// The carry-less product.
    fn product(self, a: u64, b: u64) -> u128;
    fn mul<F: Field<W>, const W: usize>(self, a: &[u64; W], b: &[u64; W]) -> [u64; W];
    fn square_times<F: Field<W>, const W: usize>(self, a: &[u64; W], times: usize) -> [u64; W];
}

/// No special instructions.
#[derive(Clone, Copy, Debug)]
pub(super) struct Portable;

impl Product for Portable {
    /// Each factor is cut into four words with three holes between bits, which take up the carries of an integer product:
    /// at most 15 terms meet in a place, because the upper four bits of `a` go a way of their own.
    #[inline(never)]
    fn product(self, a: u64, b: u64) -> u128 {
        const HOLES: u64 = 0x1111_1111_1111_1111;
        const WIDE: u128 = 0x1111_1111_1111_1111_1111_1111_1111_1111;
        let cut = |word: u64| [0, 1, 2, 3].map(|at| word & (HOLES << at));
        let (low, b_cut) = (cut(a & (u64::MAX >> 4)), cut(b));
        let mut product = 0;
        for place in 0..4 {
            let mut sum = 0;
            for at in 0..4 {
                sum ^= u128::from(low[at]) * u128::from(b_cut[(place + 4 - at) % 4]);
            }
            product |= sum & (WIDE << place);
        }
        for bit in 60..64 {
            let mask = u128::from(a >> bit & 1).wrapping_neg();
            product ^= (u128::from(b) << bit) & mask;
        }
        product
    }

    #[inline(never)]
    fn mul<F: Field<W>, const W: usize>(self, a: &[u64; W], b: &[u64; W]) -> [u64; W] {
        mul::<_, F, W>(self, a, b)
    }

    #[inline(never)]
    fn square_times<F: Field<W>, const W: usize>(self, a: &[u64; W], times: usize) -> [u64; W] {
        square_times::<F, W>(a, times, |word| {
            u128::from(spread(word)) | u128::from(spread(word >> 32)) << 64
        })
    }
}

/// The lower 32 bits with zeros between them.
fn spread(word: u64) -> u64 {
    let mut word = word & 0xffff_ffff;
    for (shift, mask) in [
        (16, 0x0000_ffff_0000_ffff),
        (8, 0x00ff_00ff_00ff_00ff),
        (4, 0x0f0f_0f0f_0f0f_0f0f),
        (2, 0x3333_3333_3333_3333),
        (1, 0x5555_5555_5555_5555),
    ] {
        word = (word | word << shift) & mask;
    }
    word
}

/// Carry-less product of two arrays, by Karatsuba's method on each pair of words: what the words i and j give crosswise is
/// the product of their sums less those of each with itself.
#[inline(always)]
pub(super) fn mul<P: Product, F: Field<W>, const W: usize>(
    product: P,
    a: &[u64; W],
    b: &[u64; W],
) -> [u64; W] {
    let mut own = [0; W];
    let mut wide = [0; WIDE];
    for i in 0..W {
        own[i] = product.product(a[i], b[i]);
        add(&mut wide, 2 * i, own[i]);
    }
    for i in 0..W {
        for j in i + 1..W {
            let both = product.product(a[i] ^ a[j], b[i] ^ b[j]);
            add(&mut wide, i + j, own[i] ^ own[j] ^ both);
        }
    }
    reduce::<F, W>(wide)
}

#[inline(always)]
pub(super) fn square_times<F: Field<W>, const W: usize>(
    a: &[u64; W],
    times: usize,
    square: impl Fn(u64) -> u128,
) -> [u64; W] {
    let mut a = *a;
    for _ in 0..times {
        let mut wide = [0; WIDE];
        for (at, word) in a.into_iter().enumerate() {
            add(&mut wide, 2 * at, square(word));
        }
        a = reduce::<F, W>(wide);
    }
    a
}

/// Words of the longest product.
const WIDE: usize = 18;

#[inline(always)]
#[expect(clippy::cast_possible_truncation, reason = "the two words of a double word")]
const fn add(wide: &mut [u64; WIDE], at: usize, value: u128) {
    wide[at] ^= value as u64;
    wide[at + 1] ^= (value >> 64) as u64;
}

/// Folds what lies at z^m and above, word by word from the top.
#[inline(always)]
fn reduce<F: Field<W>, const W: usize>(mut wide: [u64; WIDE]) -> [u64; W] {
    for at in (W..2 * W).rev() {
        let bits = wide[at];
        fold::<F, W>(&mut wide, 64 * at, bits);
    }
    let bits = wide[W - 1] >> (F::DEGREE % 64);
    wide[W - 1] ^= bits << (F::DEGREE % 64);
    fold::<F, W>(&mut wide, F::DEGREE, bits);
    let mut out = [0; W];
    out.copy_from_slice(&wide[..W]);
    out
}

/// Adds `bits`, which stand at z^place, where they belong modulo the field's polynomial.
#[inline(always)]
fn fold<F: Field<W>, const W: usize>(wide: &mut [u64; WIDE], place: usize, bits: u64) {
    for exponent in F::MIDDLE.iter().copied().chain([0]) {
        let to = place - F::DEGREE + exponent;
        add(wide, to / 64, u128::from(bits) << (to % 64));
    }
}

/// One lane, with the words multiplied by `P`.
#[derive(Clone, Copy, Debug)]
pub(super) struct Single<P>(pub(super) P);

impl<P: Product, F: Field<W>, const W: usize> Form<F, W> for Single<P> {
    type Element = [u64; W];
    const LANES: usize = 1;

    fn load(self, values: &[[u64; W]]) -> [u64; W] {
        values[0]
    }

    fn store(self, element: &[u64; W]) -> [[u64; W]; LANES] {
        let mut out = [[0; W]; LANES];
        out[0] = *element;
        out
    }

    fn add(self, a: &[u64; W], b: &[u64; W]) -> [u64; W] {
        let mut sum = *a;
        for (sum, b) in sum.iter_mut().zip(b) {
            *sum ^= b;
        }
        sum
    }

    fn mul(self, a: &[u64; W], b: &[u64; W]) -> [u64; W] {
        self.0.mul::<F, W>(a, b)
    }

    fn square_times(self, a: &[u64; W], times: usize) -> [u64; W] {
        self.0.square_times::<F, W>(a, times)
    }

    fn ladder(self, curve: &Params<W>, x: &[u64; W], scalars: &[[u64; W]]) -> Ladder<[u64; W]> {
        let add = |a: &[u64; W], b: &[u64; W]| Form::<F, W>::add(self, a, b);
        let mul = |a: &[u64; W], b: &[u64; W]| Form::<F, W>::mul(self, a, b);
        let square = |a: &[u64; W], times| Form::<F, W>::square_times(self, a, times);
        let mut one = [0; W];
        one[0] = 1;
        let (mut x1, mut z1, mut x2, mut z2) = (one, [0; W], *x, one);
        let mut exchanged = 0;
        for at in (0..curve.order.bits).rev() {
            let bit = scalars[0][at / 64] >> (at % 64) & 1;
            exchange((bit ^ exchanged).wrapping_neg(), [&mut x1, &mut z1], [&mut x2, &mut z2]);
            exchanged = bit;
            // Mdouble and Madd of López and Dahab (CHES 1999), the first as (X² + √b Z²)².
            let (left, right) = (mul(&x1, &z2), mul(&x2, &z1));
            z2 = square(&add(&left, &right), 1);
            x2 = add(&mul(x, &z2), &mul(&left, &right));
            let (xx, zz) = (square(&x1, 1), square(&z1, 1));
            z1 = mul(&xx, &zz);
            let zz = if curve.is_koblitz() { zz } else { mul(&curve.root_b, &zz) };
            x1 = square(&add(&xx, &zz), 1);
        }
        exchange(exchanged.wrapping_neg(), [&mut x1, &mut z1], [&mut x2, &mut z2]);
        Ladder { x1, z1, x2, z2 }
    }
}

/// Exchanges two points where `mask` is all ones, not where it is zero.
fn exchange<const W: usize>(mask: u64, a: [&mut [u64; W]; 2], b: [&mut [u64; W]; 2]) {
    for (a, b) in a.into_iter().zip(b) {
        for (a, b) in a.iter_mut().zip(b) {
            let difference = (*a ^ *b) & mask;
            *a ^= difference;
            *b ^= difference;
        }
    }
}

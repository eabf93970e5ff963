// SPDX-License-Identifier: Apache-2.0
//! Polynomials of 256 coefficients modulo 3329, and their number-theoretic transform (FIPS 203 §4.3).
//!
//! Coefficients are sixteen rows of sixteen. The first four layers of the transform combine whole rows; the last three would
//! combine coefficients within one, so that rows and columns change places in between, and stay so: every polynomial that has been transformed
//! lies in columns. No branch and no address depends on a coefficient.
//!
//! Intervals: a product after Montgomery lies between −q and q, whatever one of 16 bits is multiplied with a constant below q/2. The transform adds
//! one to each coefficient in each of seven layers: from q it comes to 8q, which is less than 2^15. Its inverse doubles sums: from q to 2q, 4q, and in the
//! third layer 8q, where they are reduced, and again in the sixth. Sums of eight products of one number of 12 bits and one below q are less than 2^15 · q.

#![expect(clippy::cast_possible_truncation, reason = "constants below q")]

use super::vector::{Sixteen, Sums, Vector};

/// The modulus q.
pub(super) const Q: i16 = 3329;
/// Its inverse modulo 2^16.
const Q_INVERSE: i16 = -3327;
/// 2^15 / q, for the reduction after Barrett.
const RECIPROCAL: i16 = 10;
/// 2^32 / 128 mod q: undoes the factors that seven layers and Montgomery's multiplication leave.
const SCALE: i16 = 1441;

/// A polynomial: in rows, or when it is transformed, in columns, or in pairs of them.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[repr(align(64))]
pub(super) struct Poly(pub(super) [Sixteen; 16]);

/// A transformed polynomial as the second factor of products.
#[derive(Clone, Copy)]
pub(super) struct Factor {
    /// Of each b₀ + b₁X, b₀ and ζb₁ in pairs.
    straight: Poly,
    /// b₁ and b₀ in pairs.
    crossed: Poly,
}

/// ζ^brv(i) · 2^16 mod q, where ζ is 17 (FIPS 203, appendix A).
const ZETAS: [i16; 128] = {
    let mut zetas = [0; 128];
    let mut at = 0;
    while at < 128 {
        let (mut power, mut times) = (1 << 16, (at as u8).reverse_bits() >> 1);
        while times > 0 {
            power = power * 17 % Q as i32;
            times -= 1;
        }
        power %= Q as i32;
        zetas[at] = (if power > Q as i32 / 2 { power - Q as i32 } else { power }) as i16;
        at += 1;
    }
    zetas
};

/// Constants over q modulo 2^16: what a number is multiplied with for the lower half of its product with the constant over q.
const fn over_q<const N: usize>(mut constants: [i16; N]) -> [i16; N] {
    let mut at = 0;
    while at < N {
        constants[at] = constants[at].wrapping_mul(Q_INVERSE);
        at += 1;
    }
    constants
}

const ZETAS_OVER_Q: [i16; 128] = over_q(ZETAS);

/// The same for layers over columns, where each row of coefficients has its own: one vector for distance 8, two for 4, four for 2.
const fn late(back: bool) -> [[Sixteen; 2]; 7] {
    let (mut vectors, mut both) = ([[0; 16]; 7], [[[0; 16]; 2]; 7]);
    let mut at = 0;
    while at < 7 {
        // Blocks in a row at this distance, and the vector's block.
        let blocks = if at == 0 {
            1
        } else if at < 3 {
            2
        } else {
            4
        };
        let block = at - (blocks - 1);
        let mut row = 0;
        while row < 16 {
            let place = blocks * row + block;
            vectors[at][row] =
                ZETAS[if back { 32 * blocks - 1 - place } else { 16 * blocks + place }];
            row += 1;
        }
        both[at] = [vectors[at], over_q(vectors[at])];
        at += 1;
    }
    both
}

/// Each over q behind it.
static FORWARD: [[Sixteen; 2]; 7] = late(false);
static BACK: [[Sixteen; 2]; 7] = late(true);

/// The same number over 2^16 modulo q, between −q and q, of a product's lower and upper half.
#[target_feature(enable = "avx2")]
#[inline]
fn montgomery(low: Vector, high: Vector) -> Vector {
    high.sub(low.low(Vector::all(Q_INVERSE)).high(Vector::all(Q)))
}

/// A constant in Montgomery's form, and over q.
#[derive(Clone, Copy)]
struct Zeta(Vector, Vector);

impl Zeta {
    /// The same in every place.
    #[target_feature(enable = "avx2")]
    #[inline]
    fn all(number: i16) -> Self {
        Self(Vector::all(number), Vector::all(number.wrapping_mul(Q_INVERSE)))
    }

    /// By its number in the standard.
    #[target_feature(enable = "avx2")]
    #[inline]
    fn number(at: usize) -> Self {
        Self(Vector::all(ZETAS[at]), Vector::all(ZETAS_OVER_Q[at]))
    }

    #[target_feature(enable = "avx2")]
    #[inline]
    fn load([zeta, over_q]: &[Sixteen; 2]) -> Self {
        Self(Vector::load(zeta), Vector::load(over_q))
    }
}

#[target_feature(enable = "avx2")]
#[inline]
fn product(a: Vector, Zeta(zeta, over_q): Zeta) -> Vector {
    a.high(zeta).sub(a.low(over_q).high(Vector::all(Q)))
}

/// The same number between −2q/3 and 2q/3.
#[target_feature(enable = "avx2")]
#[inline]
fn reduced(a: Vector) -> Vector {
    a.sub(a.rounded(Vector::all(RECIPROCAL)).low(Vector::all(Q)))
}

/// a + z · b and a − z · b.
#[target_feature(enable = "avx2")]
#[inline]
fn butterfly(rows: &mut [Vector], at: usize, distance: usize, zeta: Zeta) {
    let (a, b) = (rows[at], product(rows[at + distance], zeta));
    rows[at] = a.add(b);
    rows[at + distance] = a.sub(b);
}

/// a + b, `REDUCED` or not, and z · (b − a).
#[target_feature(enable = "avx2")]
#[inline]
fn back<const REDUCED: bool>(rows: &mut [Vector], at: usize, distance: usize, zeta: Zeta) {
    let (a, b) = (rows[at], rows[at + distance]);
    let sum = a.add(b);
    rows[at] = if REDUCED { reduced(sum) } else { sum };
    rows[at + distance] = product(b.sub(a), zeta);
}

/// Half of the rows: as many as fit into the registers of AVX2 beside what is needed for them.
type Half = [Vector; 8];

/// Rows become columns: each step has a bit of the column's number and one of the row's change places. These steps are within halves
/// of the rows; [`Vector::halves`] is the one between them.
#[target_feature(enable = "avx2")]
#[inline]
fn turned(mut rows: Half) -> Half {
    for distance in [4, 2, 1] {
        for at in 0..8 {
            if at & distance == 0 {
                let both = rows[at].interleaved(rows[at + distance]);
                [rows[at], rows[at + distance]] = both;
            }
        }
    }
    rows
}

impl Poly {
    pub(super) const ZERO: Self = Self([[0; 16]; 16]);

    #[target_feature(enable = "avx2")]
    #[inline]
    fn half(&self, half: usize) -> Half {
        let mut rows = [Vector::all(0); 8];
        for (row, numbers) in rows.iter_mut().zip(&self.0[8 * half..]) {
            *row = Vector::load(numbers);
        }
        rows
    }

    #[target_feature(enable = "avx2")]
    #[inline]
    fn store_half(&mut self, half: usize, rows: Half) {
        for (numbers, row) in self.0[8 * half..].iter_mut().zip(rows) {
            row.store(numbers);
        }
    }

    /// Does something with each row of the first half and its counterpart in the second.
    #[target_feature(enable = "avx2")]
    #[inline]
    fn across(&mut self, change: impl Fn(&mut [Vector; 2])) {
        let (first, second) = self.0.split_at_mut(8);
        for (a, b) in first.iter_mut().zip(second) {
            let mut both = [Vector::load(a), Vector::load(b)];
            change(&mut both);
            both[0].store(a);
            both[1].store(b);
        }
    }

    /// A transformed polynomial from its coefficients in the standard's order, in pairs.
    #[target_feature(enable = "avx2")]
    pub(super) fn in_pairs(&mut self) {
        self.across(|both| *both = both[0].halves(both[1]));
        for half in 0..2 {
            let mut rows = turned(self.half(half));
            for pair in rows.as_chunks_mut::<2>().0 {
                *pair = pair[0].interleaved(pair[1]);
            }
            self.store_half(half, rows);
        }
    }

    /// The transform (algorithm 9), of coefficients between −q and q.
    #[target_feature(enable = "avx2")]
    pub(super) fn transform(mut self, factor: &mut Factor) {
        let zeta = Zeta::number(1);
        self.across(|both| butterfly(both, 0, 1, zeta));
        for half in 0..2 {
            let mut rows = self.half(half);
            for distance in [4, 2, 1] {
                let blocks = 4 / distance;
                for block in 0..blocks {
                    let zeta = Zeta::number((half + 2) * blocks + block);
                    for at in 2 * distance * block..2 * distance * block + distance {
                        butterfly(&mut rows, at, distance, zeta);
                    }
                }
            }
            self.store_half(half, turned(rows));
        }
        let zeta = Zeta::load(&FORWARD[0]);
        self.across(|both| {
            *both = both[0].halves(both[1]);
            butterfly(both, 0, 1, zeta);
        });
        for half in 0..2 {
            let mut rows = self.half(half);
            for at in 0..4 {
                butterfly(&mut rows, at, 4, Zeta::load(&FORWARD[1 + half]));
            }
            for block in 0..2 {
                let zeta = Zeta::load(&FORWARD[3 + 2 * half + block]);
                for at in 4 * block..4 * block + 2 {
                    butterfly(&mut rows, at, 2, zeta);
                }
            }
            factor.fill(half, rows);
        }
    }

    /// The transform's inverse (algorithm 10), times 2^16; of coefficients between −q and q, as which they come back.
    #[target_feature(enable = "avx2")]
    #[inline(never)]
    fn back(&mut self) {
        for half in 0..2 {
            let mut rows = self.half(half);
            for block in 0..2 {
                let zeta = Zeta::load(&BACK[3 + 2 * half + block]);
                for at in 4 * block..4 * block + 2 {
                    back::<false>(&mut rows, at, 2, zeta);
                }
            }
            for at in 0..4 {
                back::<false>(&mut rows, at, 4, Zeta::load(&BACK[1 + half]));
            }
            self.store_half(half, rows);
        }
        let zeta = Zeta::load(&BACK[0]);
        self.across(|both| {
            back::<true>(both, 0, 1, zeta);
            *both = both[0].halves(both[1]);
        });
        for half in 0..2 {
            let mut rows = turned(self.half(half));
            for distance in [1, 2, 4] {
                let blocks = 4 / distance;
                for block in 0..blocks {
                    let zeta = Zeta::number((4 - half) * blocks - 1 - block);
                    for at in 2 * distance * block..2 * distance * block + distance {
                        match distance {
                            4 => back::<true>(&mut rows, at, distance, zeta),
                            _ => back::<false>(&mut rows, at, distance, zeta),
                        }
                    }
                }
            }
            self.store_half(half, rows);
        }
        let (zeta, scale) = (Zeta::number(1), Zeta::all(SCALE));
        self.across(|both| {
            back::<false>(both, 0, 1, zeta);
            *both = [product(both[0], scale), product(both[1], scale)];
        });
    }

    /// The sum of products of transformed polynomials (algorithms 11 and 12), of at most four, transformed back. The first ones lie in pairs, and may have
    /// coefficients of 12 bits.
    #[target_feature(enable = "avx2")]
    pub(super) fn product<const RANK: usize>(some: &[Self; RANK], others: &[Factor; RANK]) -> Self {
        let mut product = Self::ZERO;
        for pair in 0..8 {
            let [mut low, mut across] = [[Sums::zero(); 2]; 2];
            for (a, b) in some.iter().zip(others) {
                for half in 0..2 {
                    let at = 2 * pair + half;
                    let a = Vector::load(&a.0[at]);
                    low[half] = a.products(Vector::load(&b.straight.0[at]), low[half]);
                    across[half] = a.products(Vector::load(&b.crossed.0[at]), across[half]);
                }
            }
            for (half, sums) in [low, across].into_iter().enumerate() {
                let [low, high] = Sums::parts(sums);
                montgomery(low, high).store(&mut product.0[2 * pair + half]);
            }
        }
        product.back();
        product
    }

    /// With another added, or taken away, from 0 to q − 1.
    #[target_feature(enable = "avx2")]
    pub(super) fn with(mut self, other: &Self, sign: i16) -> Self {
        for (row, other) in self.0.iter_mut().zip(&other.0) {
            let sum = Vector::load(row).add(Vector::load(other).low(Vector::all(sign)));
            canonical(reduced(sum)).store(row);
        }
        self
    }
}

impl Factor {
    pub(super) const ZERO: Self = Self { straight: Poly::ZERO, crossed: Poly::ZERO };

    /// Of the rows of a half.
    #[target_feature(enable = "avx2")]
    #[inline]
    fn fill(&mut self, half: usize, rows: Half) {
        let straight = self.straight.0[8 * half..].as_chunks_mut::<2>().0;
        let crossed = self.crossed.0[8 * half..].as_chunks_mut::<2>().0;
        let places = straight.iter_mut().zip(crossed);
        let pairs = rows.as_chunks::<2>().0.iter().zip(places).enumerate();
        for (pair, ([a, b], (straight, crossed))) in pairs {
            let (a, b) = (reduced(*a), reduced(*b));
            let far = product(b, Zeta::load(&FORWARD[3 + 2 * half + pair / 2]));
            let far = if pair % 2 == 0 { far } else { Vector::all(0).sub(far) };
            for (place, row) in straight.iter_mut().zip(a.interleaved(far)) {
                row.store(place);
            }
            for (place, row) in crossed.iter_mut().zip(b.interleaved(a)) {
                row.store(place);
            }
        }
    }
}

/// The same number from 0 to q − 1, of a reduced one.
#[target_feature(enable = "avx2")]
#[inline]
fn canonical(a: Vector) -> Vector {
    a.add(a.less(Vector::all(0)).and(Vector::all(Q)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cpu::{Cpu, cpu};
    use crate::testing::Random;

    fn random(random: &mut Random, below: u64) -> Poly {
        let mut poly = Poly::ZERO;
        for number in poly.0.as_flattened_mut() {
            *number = (random.word() % below) as i16;
        }
        poly
    }

    /// Of the standard's order, by the definition: X^256 is −1.
    fn slow(a: &Poly, b: &Poly) -> Vec<i64> {
        let (a, b) = (a.0.as_flattened(), b.0.as_flattened());
        let mut out = vec![0; 256];
        for (i, a) in a.iter().enumerate() {
            for (j, b) in b.iter().enumerate() {
                let sign = if i + j < 256 { 1 } else { -1 };
                out[(i + j) % 256] += sign * i64::from(*a) * i64::from(*b);
            }
        }
        out.iter().map(|sum| sum.rem_euclid(3329)).collect()
    }

    /// The transform in the standard's order, and its factors.
    fn transformed(poly: &Poly) -> Poly {
        let mut zetas = ZETAS.iter().skip(1);
        let mut numbers: Vec<i64> = poly.0.as_flattened().iter().copied().map(i64::from).collect();
        // The constants are those of Montgomery's form.
        let inverse = 169;
        let mut distance = 128;
        while distance > 1 {
            for block in numbers.chunks_mut(2 * distance) {
                let zeta = i64::from(*zetas.next().unwrap()) * inverse;
                let (low, high) = block.split_at_mut(distance);
                for (a, b) in low.iter_mut().zip(high) {
                    let far = zeta * *b;
                    (*a, *b) = ((*a + far).rem_euclid(3329), (*a - far).rem_euclid(3329));
                }
            }
            distance /= 2;
        }
        let mut out = Poly::ZERO;
        for (out, number) in out.0.as_flattened_mut().iter_mut().zip(numbers) {
            *out = number as i16;
        }
        out
    }

    #[target_feature(enable = "avx2")]
    fn product_of(a: &Poly, b: &Poly, beyond: bool) -> Poly {
        let mut first = transformed(a);
        if beyond {
            // As numbers of 12 bits may be.
            first.0.as_flattened_mut().iter_mut().for_each(|n| *n += if *n < 767 { Q } else { 0 });
        }
        first.in_pairs();
        let mut second = [Factor::ZERO];
        b.transform(&mut second[0]);
        Poly::product(&[first], &second).with(&Poly::ZERO, 1)
    }

    #[test]
    fn products_of_transforms_are_transforms_of_products() {
        if !cpu().has(Cpu::AVX2) {
            return;
        }
        let mut numbers = Random::new();
        let largest = Poly([[Q - 1; 16]; 16]);
        for round in 0..40 {
            let (a, b) = match round {
                0 => (largest, largest),
                _ => (random(&mut numbers, 3329), random(&mut numbers, 3329)),
            };
            // SAFETY: the processor has the instructions.
            let product = unsafe { product_of(&a, &b, round % 2 == 1) };
            let found: Vec<i64> = product.0.as_flattened().iter().copied().map(i64::from).collect();
            assert_eq!(found, slow(&a, &b));
        }
    }

    #[target_feature(enable = "avx2")]
    fn every_number() {
        for a in i16::MIN..=i16::MAX {
            let (mut small, mut whole) = ([0; 16], [0; 16]);
            reduced(Vector::all(a)).store(&mut small);
            canonical(reduced(Vector::all(a))).store(&mut whole);
            assert!(small[0].abs() <= 2 * Q / 3, "{a}: {}", small[0]);
            assert_eq!(i32::from(whole[0]), i32::from(a).rem_euclid(3329), "{a}");
        }
    }

    #[test]
    fn every_number_is_reduced() {
        if cpu().has(Cpu::AVX2) {
            // SAFETY: the processor has the instructions.
            unsafe { every_number() };
        }
    }
}

// SPDX-License-Identifier: Apache-2.0
//! Polynomials of 256 coefficients modulo 8380417, and their number-theoretic transform (FIPS 204 §7.5).
//!
//! Coefficients are sixteen rows of sixteen. The first four layers of the transform combine whole rows; the last four would
//! combine coefficients within one, so that rows and columns change places in between, and stay so: every polynomial that has been transformed
//! lies in columns. All loops are over sixteen independent coefficients, which the compiler makes one vector of, or two. No branch and no
//! address depends on a coefficient.

#![expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "constants below q, and numbers of a few bits"
)]

use super::row::{Numbers, Row};

/// The modulus q.
pub(super) const Q: i32 = 8_380_417;
/// Its inverse modulo 2^32.
pub(super) const Q_INVERSE: i32 = 58_728_449;
/// 2^64 / 256 mod q: undoes the factors that eight layers and two of Montgomery's multiplications leave.
const SCALE: i32 = 41_978;

/// A polynomial: in rows, or when it is transformed, in columns.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[repr(align(64))]
pub(super) struct Poly(pub(super) [Numbers; 16]);

/// ζ^brv(i) · 2^32 mod q, nearest to zero, where ζ is 1753 (FIPS 204, appendix B).
const ZETAS: [i32; 256] = {
    let mut zetas = [0; 256];
    let mut at = 0;
    while at < 256 {
        let (mut power, mut times) = ((1_i64 << 32) % Q as i64, (at as u8).reverse_bits());
        while times > 0 {
            power = power * 1753 % Q as i64;
            times -= 1;
        }
        zetas[at] = (if power > Q as i64 / 2 { power - Q as i64 } else { power }) as i32;
        at += 1;
    }
    zetas
};

/// The same for layers over columns, where each row of coefficients has its own: one vector for distance 8, two for 4, four for 2, eight
/// for 1.
const fn late(back: bool) -> [Numbers; 15] {
    let mut vectors = [[0; 16]; 15];
    let mut at = 0;
    while at < 15 {
        // Blocks in a row at this distance, and the vector's block.
        let blocks = 1 << (at + 1_usize).ilog2();
        let block = at + 1 - blocks;
        let mut row = 0;
        while row < 16 {
            let place = blocks * row + block;
            let zeta = if back { 32 * blocks - 1 - place } else { 16 * blocks + place };
            vectors[at][row] = ZETAS[zeta];
            row += 1;
        }
        at += 1;
    }
    vectors
}

static FORWARD: [Numbers; 15] = late(false);
static BACK: [Numbers; 15] = late(true);

/// The same numbers modulo q, nearest to zero where that is below 2^21; at most 2^22 from zero where they were between −q and q. Of those between
/// −2q and 2q.
#[inline(always)]
fn reduced<R: Row>(a: R) -> R {
    let quotient = a.add(R::splat(1 << 22)).shift_right::<23>();
    a.sub(quotient.times(R::splat(Q)))
}

/// The same numbers from 0 to q − 1, of those between −q and q.
#[inline(always)]
fn canonical<R: Row>(a: R) -> R {
    a.add(a.shift_right::<31>().and(R::splat(Q)))
}

/// Rows and columns change places: halves of larger and larger squares do.
#[inline(always)]
fn transposed<R: Row>(rows: &mut [R; 16]) {
    for distance in [1, 2, 4, 8] {
        for block in (0..16).step_by(2 * distance) {
            for at in block..block + distance {
                let far = at + distance;
                (rows[at], rows[far]) = R::weave(rows[at], rows[far], distance);
            }
        }
    }
}

/// a + z · b and a − z · b.
#[inline(always)]
fn butterfly<R: Row>(rows: &mut [R; 16], at: usize, distance: usize, zeta: R) {
    let (a, b) = (rows[at], R::reduced(rows[at + distance].wide(zeta)));
    (rows[at], rows[at + distance]) = (a.add(b), a.sub(b));
}

/// a + b and z · (b − a).
#[inline(always)]
fn back<R: Row>(rows: &mut [R; 16], at: usize, distance: usize, zeta: R) {
    let (a, b) = (rows[at], rows[at + distance]);
    (rows[at], rows[at + distance]) = (a.add(b), R::reduced(b.sub(a).wide(zeta)));
}

/// How numbers are rounded: to multiples of 2γ2.
#[derive(Debug)]
pub(super) struct Rounding {
    /// γ2
    pub(super) half: i32,
    /// (q − 1) / 2γ2
    steps: i32,
    /// A division by 2γ2 is a multiplication by this and a shift: exact for every number that occurs, as a test shows.
    reciprocal: i32,
    shift: u32,
}

impl Rounding {
    pub(super) const fn new(half: i32, shift: u32) -> Self {
        let reciprocal = (1_u64 << (32 + shift)).div_ceil(2 * half as u64) as i32;
        Self { half, steps: (Q - 1) / (2 * half), reciprocal, shift }
    }
}

impl Poly {
    pub(super) const ZERO: Self = Self([[0; 16]; 16]);

    #[inline(always)]
    fn load<R: Row>(&self) -> [R; 16] {
        let mut rows = [R::splat(0); 16];
        for (row, numbers) in rows.iter_mut().zip(&self.0) {
            *row = R::load(numbers);
        }
        rows
    }

    #[inline(always)]
    fn store<R: Row>(&mut self, rows: &[R; 16]) {
        for (row, numbers) in rows.iter().zip(&mut self.0) {
            row.store(numbers);
        }
    }

    /// The transform (algorithm 41), of coefficients between −q and q: each layer adds less than q, so that it leaves them below 9q.
    #[inline(always)]
    pub(super) fn transform<R: Row>(&mut self) {
        let mut rows: [R; 16] = self.load();
        for distance in [8, 4, 2, 1] {
            let blocks = 8 / distance;
            for block in 0..blocks {
                let zeta = R::splat(ZETAS[blocks + block]);
                for at in 0..distance {
                    butterfly(&mut rows, 2 * distance * block + at, distance, zeta);
                }
            }
        }
        transposed(&mut rows);
        for distance in [8, 4, 2, 1] {
            let blocks = 8 / distance;
            for block in 0..blocks {
                let zeta = R::load(&FORWARD[blocks - 1 + block]);
                for at in 0..distance {
                    butterfly(&mut rows, 2 * distance * block + at, distance, zeta);
                }
            }
        }
        self.store(&rows);
    }

    /// Back (algorithm 42), times 2^32, to coefficients between −q and q. Of such as are at most 2^22 from zero: sums and
    /// differences double with each layer, to 2^30.
    #[inline(always)]
    fn back<R: Row>(&mut self) {
        let mut rows: [R; 16] = self.load();
        for distance in [1, 2, 4, 8] {
            let blocks = 8 / distance;
            for block in 0..blocks {
                let zeta = R::load(&BACK[blocks - 1 + block]);
                for at in 0..distance {
                    back(&mut rows, 2 * distance * block + at, distance, zeta);
                }
            }
        }
        transposed(&mut rows);
        for distance in [1, 2, 4, 8] {
            let blocks = 8 / distance;
            for block in 0..blocks {
                let zeta = R::splat(ZETAS[2 * blocks - 1 - block]);
                for at in 0..distance {
                    back(&mut rows, 2 * distance * block + at, distance, zeta);
                }
            }
        }
        for row in &mut rows {
            *row = R::reduced(row.wide(R::splat(SCALE)));
        }
        self.store(&rows);
    }

    /// The sum of products of transformed polynomials, transformed back to coefficients between −q and q: of one product of coefficients
    /// below 9q, or of seven of which one factor is below q, so that no sum is above 81q², which is below 2^30 · q.
    #[inline(always)]
    pub(super) fn product<R: Row>(&mut self, some: &[Self], others: &[Self]) {
        for (at, row) in self.0.iter_mut().enumerate() {
            let zero = R::splat(0);
            let mut sum = zero.wide(zero);
            for (a, b) in some.iter().zip(others) {
                sum = R::wide_sum(sum, R::load(&a.0[at]).wide(R::load(&b.0[at])));
            }
            reduced(R::reduced(sum)).store(row);
        }
        self.back::<R>();
    }

    /// With another added, or taken away, both between −q and q; nearest to zero where that is near. Whether any number is `bound` from zero, or more.
    #[inline(always)]
    pub(super) fn add<R: Row>(&mut self, other: &Self, sign: i32, bound: i32) -> bool {
        let mut beyond = R::splat(0);
        for (row, other) in self.0.iter_mut().zip(&other.0) {
            let sum = reduced(R::load(row).add(R::load(other).times(R::splat(sign))));
            sum.store(row);
            let inside = R::splat(bound - 1);
            beyond = beyond.or(inside.sub(sum)).or(inside.add(sum));
        }
        beyond.shift_right::<31>().any()
    }

    /// HighBits, and in their place LowBits (algorithm 36), of numbers between −q and q.
    #[inline(always)]
    pub(super) fn decompose<R: Row>(&mut self, rounding: &Rounding, highs: &mut [u8; 256]) {
        let splat = R::splat;
        for (row, highs) in self.0.iter_mut().zip(highs.as_chunks_mut::<16>().0) {
            let number = canonical(R::load(row));
            let above = number.add(splat(rounding.half - 1));
            let high = R::high(above.wide(splat(rounding.reciprocal)));
            let high = match rounding.shift {
                16 => high.shift_right::<16>(),
                _ => high.shift_right::<17>(),
            };
            // All ones, unless the number is within half a step of q − 1, which counts as below zero.
            let below = high.sub(splat(rounding.steps)).shift_right::<31>();
            let low = number.sub(high.times(splat(2 * rounding.half)));
            low.sub(splat(1)).sub(below).store(row);
            let mut numbers = [0; 16];
            high.and(below).store(&mut numbers);
            for (high, number) in highs.iter_mut().zip(numbers) {
                *high = number as u8;
            }
        }
    }
}

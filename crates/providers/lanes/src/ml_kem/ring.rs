// SPDX-License-Identifier: Apache-2.0
//! Polynomials of 256 coefficients modulo 3329, and their number-theoretic transform (FIPS 203 §4.3).
//!
//! Coefficients are sixteen rows of sixteen. The first four layers of the transform combine whole rows; the last three would
//! combine coefficients within one, so that rows and columns change places in between, and stay so: every polynomial that has been transformed
//! lies in columns. All loops are over sixteen independent coefficients, which the compiler makes one vector of. No branch and no
//! address depends on a coefficient.

#![expect(clippy::cast_possible_truncation, reason = "halves of products, and constants below q")]

/// The modulus q.
pub(super) const Q: i16 = 3329;
/// Its inverse modulo 2^16.
const Q_INVERSE: i16 = -3327;
/// 2^26 / q, for the reduction after Barrett.
const RECIPROCAL: i16 = 20159;
/// 2^32 / 128 mod q: undoes the factors that seven layers and Montgomery's multiplication leave.
const SCALE: i16 = 1441;

/// One for each of the sixteen coefficients of a vector.
type Vector = [i16; 16];

/// A polynomial: in rows, or when it is transformed, in columns.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[repr(align(64))]
pub(super) struct Poly(pub(super) [Vector; 16]);

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

/// The same for layers over columns, where each row of coefficients has its own: one vector for distance 8, two for 4, four for 2.
const fn late(back: bool) -> [Vector; 7] {
    let mut vectors = [[0; 16]; 7];
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
        at += 1;
    }
    vectors
}

const FORWARD: [Vector; 7] = late(false);
const BACK: [Vector; 7] = late(true);

/// Distances over columns, and where their vectors begin.
const LATE: [(usize, usize); 3] = [(8, 0), (4, 1), (2, 3)];

/// The upper half of a product.
#[inline(always)]
fn high(a: i16, b: i16) -> i16 {
    ((i32::from(a) * i32::from(b)) >> 16) as i16
}

/// a · b / 2^16 mod q, between −q and q, where |a · b| < 2^15 · q (Montgomery).
#[inline(always)]
fn product(a: i16, b: i16) -> i16 {
    let low = a.wrapping_mul(b).wrapping_mul(Q_INVERSE);
    high(a, b).wrapping_sub(high(low, Q))
}

/// The same number between −q/2 and q/2 (Barrett).
#[inline(always)]
fn reduced(a: i16) -> i16 {
    let quotient = high(a, RECIPROCAL).wrapping_add(1 << 9) >> 10;
    a.wrapping_sub(quotient.wrapping_mul(Q))
}

/// The same number from 0 to q − 1, of a reduced one.
#[inline(always)]
pub(super) fn canonical(a: i16) -> i16 {
    a.wrapping_add((a >> 15) & Q)
}

/// A loop that becomes a vector in a function that may use wide ones, which the library's own functions over arrays may not.
#[inline(always)]
fn each(one: impl Fn(usize) -> i16) -> Vector {
    let mut vector = [0; 16];
    for (at, place) in vector.iter_mut().enumerate() {
        *place = one(at);
    }
    vector
}

#[inline(always)]
fn rows(one: impl Fn(usize) -> Vector) -> [Vector; 16] {
    let mut rows = [[0; 16]; 16];
    for (at, row) in rows.iter_mut().enumerate() {
        *row = one(at);
    }
    rows
}

#[inline(always)]
fn transposed(old: &[Vector; 16]) -> [Vector; 16] {
    rows(|column| each(|row| old[row][column]))
}

/// a + z · b and a − z · b.
#[inline(always)]
fn butterfly(rows: &mut [Vector; 16], at: usize, distance: usize, zeta: &Vector) {
    let (a, b) = (rows[at], rows[at + distance]);
    let b = each(|i| product(zeta[i], b[i]));
    rows[at] = each(|i| a[i].wrapping_add(b[i]));
    rows[at + distance] = each(|i| a[i].wrapping_sub(b[i]));
}

/// a + b and z · (b − a).
#[inline(always)]
fn back(rows: &mut [Vector; 16], at: usize, distance: usize, zeta: &Vector) {
    let (a, b) = (rows[at], rows[at + distance]);
    rows[at] = each(|i| reduced(a[i].wrapping_add(b[i])));
    rows[at + distance] = each(|i| product(zeta[i], b[i].wrapping_sub(a[i])));
}

impl Poly {
    pub(super) const ZERO: Self = Self([[0; 16]; 16]);

    /// Each coefficient by itself.
    #[inline(always)]
    pub(super) fn map(&self, one: impl Fn(i16) -> i16) -> Self {
        Self(rows(|at| each(|i| one(self.0[at][i]))))
    }

    /// A transformed polynomial from its coefficients in the standard's order.
    #[inline(always)]
    pub(super) fn in_columns(&self) -> Self {
        Self(transposed(&self.0))
    }

    /// The transform (algorithm 9), of coefficients between −q and q.
    #[inline(always)]
    pub(super) fn transform(&self) -> Self {
        let mut rows = self.0;
        let mut zeta = 1;
        for distance in [8, 4, 2, 1] {
            for block in (0..16).step_by(2 * distance) {
                for at in block..block + distance {
                    butterfly(&mut rows, at, distance, &[ZETAS[zeta]; 16]);
                }
                zeta += 1;
            }
        }
        let mut columns = transposed(&rows);
        for (distance, first) in LATE {
            for block in 0..8 / distance {
                for at in 0..distance {
                    let at = 2 * distance * block + at;
                    butterfly(&mut columns, at, distance, &FORWARD[first + block]);
                }
            }
        }
        Self(columns).map(reduced)
    }

    /// Back (algorithm 10), times 2^16; of reduced coefficients.
    #[inline(always)]
    pub(super) fn back(&self) -> Self {
        let mut columns = self.0;
        for (distance, first) in [LATE[2], LATE[1], LATE[0]] {
            for block in 0..8 / distance {
                for at in 0..distance {
                    let at = 2 * distance * block + at;
                    back(&mut columns, at, distance, &BACK[first + block]);
                }
            }
        }
        let mut rows = transposed(&columns);
        for distance in [1, 2, 4, 8] {
            let blocks = 8 / distance;
            for block in 0..blocks {
                let zeta = [ZETAS[2 * blocks - 1 - block]; 16];
                for at in 0..distance {
                    back(&mut rows, 2 * distance * block + at, distance, &zeta);
                }
            }
        }
        Self(rows).map(|a| product(a, SCALE))
    }

    /// The sum of products of transformed polynomials (algorithms 11 and 12), over 2^16; of at most four.
    #[inline(always)]
    pub(super) fn sum(some: &[Self], others: &[Self]) -> Self {
        let mut sum = Self::ZERO;
        for (a, b) in some.iter().zip(others) {
            for pair in 0..8 {
                let zeta = &FORWARD[3 + pair / 2];
                let sign = if pair % 2 == 0 { 1 } else { -1 };
                let ([a0, a1], [b0, b1]) =
                    ([a.0[2 * pair], a.0[2 * pair + 1]], [b.0[2 * pair], b.0[2 * pair + 1]]);
                let [s0, s1] = [sum.0[2 * pair], sum.0[2 * pair + 1]];
                sum.0[2 * pair] = each(|i| {
                    let far = product(product(a1[i], b1[i]), zeta[i] * sign);
                    s0[i].wrapping_add(product(a0[i], b0[i])).wrapping_add(far)
                });
                sum.0[2 * pair + 1] = each(|i| {
                    let across = product(a0[i], b1[i]).wrapping_add(product(a1[i], b0[i]));
                    s1[i].wrapping_add(across)
                });
            }
        }
        sum.map(reduced)
    }

    /// With another added, or taken away, from 0 to q − 1.
    #[inline(always)]
    pub(super) fn with(&self, other: &Self, sign: i16) -> Self {
        Self(rows(|at| {
            each(|i| {
                let (a, b) = (self.0[at][i], other.0[at][i]);
                canonical(reduced(a.wrapping_add(b.wrapping_mul(sign))))
            })
        }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::Random;

    fn random(random: &mut Random) -> Poly {
        let numbers = std::cell::RefCell::new(random);
        Poly(rows(|_| each(|_| (numbers.borrow_mut().word() % 3329) as i16)))
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

    #[test]
    fn products_of_transforms_are_transforms_of_products() {
        let mut numbers = Random::new();
        for _ in 0..20 {
            let (a, b) = (random(&mut numbers), random(&mut numbers));
            let product = Poly::sum(&[a.transform()], &[b.transform()]).back();
            let found: Vec<i64> = product
                .with(&Poly::ZERO, 1)
                .0
                .as_flattened()
                .iter()
                .copied()
                .map(i64::from)
                .collect();
            assert_eq!(found, slow(&a, &b));
        }
    }

    #[test]
    fn every_number_is_reduced() {
        for a in i16::MIN..=i16::MAX {
            let (small, whole) = (reduced(a), i32::from(a).rem_euclid(3329));
            assert!(small.abs() <= Q / 2 + 1, "{a}: {small}");
            assert_eq!(i32::from(canonical(small)), whole, "{a}");
        }
    }
}

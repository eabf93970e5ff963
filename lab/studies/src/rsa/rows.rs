// SPDX-License-Identifier: Apache-2.0
//! Products row by row, then their reduction row by row: the functions of a bignum library of 2008.

use super::Function;
use super::limb::Limb;
use super::number::{doubled, radix};
use super::power::{Calls, Modulus, Tally};
use std::hint::black_box;

/// Limbs at most: 1024 bits in the smaller ones.
const MAX_LIMBS: usize = 32;

type Number<L> = [L; MAX_LIMBS];

/// A modulus of some limbs.
#[derive(Clone)]
pub(super) struct Rows<L> {
    modulus: Number<L>,
    /// The third power of the radix, and the first.
    cube: Number<L>,
    one: Number<L>,
    inverse: L,
    length: usize,
}

/// Adds a row: the limbs times one digit. What is carried is returned.
#[inline(never)]
fn mul_add_vec<L: Limb>(to: &mut [L], limbs: &[L], digit: L) -> L {
    let mut carry = L::default();
    for (to, limb) in to.iter_mut().zip(limbs) {
        (*to, carry) = limb.multiply_add(digit, *to, carry);
    }
    carry
}

/// A square: every product of two different limbs once, all of it doubled, and the squares of the limbs
/// added.
#[inline(never)]
fn sqr_vec<L: Limb>(to: &mut [L], limbs: &[L]) {
    to.fill(L::default());
    let length = limbs.len();
    for at in 0..length {
        let mut carry = L::default();
        let row = to[2 * at + 1..at + length].iter_mut();
        for (to, limb) in row.zip(&limbs[at + 1..]) {
            (*to, carry) = limb.multiply_add(limbs[at], *to, carry);
        }
        to[at + length] = carry;
    }
    let (mut shifted, mut carry) = (false, L::default());
    for (pair, limb) in to.chunks_exact_mut(2).zip(limbs) {
        let (low, first) = pair[0].doubled(shifted);
        let (high, second) = pair[1].doubled(first);
        let (low, over) = limb.multiply_add(*limb, low, carry);
        let (high, more) = high.plus(over, false);
        shifted = second;
        carry = if more { L::ONE } else { L::default() };
        (pair[0], pair[1]) = (low, high);
    }
}

impl<L: Limb> Rows<L> {
    fn product(&self, a: &Number<L>, b: &Number<L>, tally: &mut impl Tally) -> [L; 2 * MAX_LIMBS] {
        let (mut product, length) = ([L::default(); 2 * MAX_LIMBS], self.length);
        for (at, digit) in b[..length].iter().enumerate() {
            tally.row();
            product[at + length] = mul_add_vec(&mut product[at..at + length], &a[..length], *digit);
        }
        product
    }

    /// Divides by the radix: each row makes the lowest limb that is left zero.
    fn reduced(&self, mut wide: [L; 2 * MAX_LIMBS], tally: &mut impl Tally) -> Number<L> {
        let (length, modulus) = (self.length, &self.modulus[..self.length]);
        let mut carry = false;
        for at in 0..length {
            let digit = wide[at].low(self.inverse);
            tally.row();
            let over = mul_add_vec(&mut wide[at..at + length], modulus, digit);
            (wide[at + length], carry) = wide[at + length].plus(over, carry);
        }
        let mut result = [L::default(); MAX_LIMBS];
        result[..length].copy_from_slice(&wide[length..2 * length]);
        let mut less = result;
        let mut borrow = false;
        for (limb, other) in less.iter_mut().zip(modulus) {
            (*limb, borrow) = limb.minus(*other, borrow);
        }
        if carry || !borrow { less } else { result }
    }
}

impl<L: Limb> Modulus for Rows<L> {
    type Number = Number<L>;

    fn new(modulus: &[u64]) -> Self {
        let read = |limbs: &[u64]| {
            let mut number = [L::default(); MAX_LIMBS];
            L::read(limbs, &mut number);
            number
        };
        let length = modulus.len() * 8 / size_of::<L>();
        let one = read(&radix(modulus));
        let inverse = read(modulus)[0].negated_inverse();
        let mut rows = Self { modulus: read(modulus), cube: one, one, inverse, length };
        // The radix itself, doubled modulo the modulus as often as it has bits, is its square.
        let bits = modulus.len() * 64;
        let square = (0..bits).fold(radix(modulus), |square, _| doubled(&square, modulus));
        let square = read(&square);
        rows.cube = rows.multiply(&square, &square, &mut ());
        rows
    }

    fn take(&self, wide: &[u64], tally: &mut impl Tally) -> Number<L> {
        let mut limbs = [L::default(); 2 * MAX_LIMBS];
        L::read(wide, &mut limbs);
        let divided = self.reduced(limbs, tally);
        self.multiply(&divided, &self.cube, tally)
    }

    fn give(&self, number: &Number<L>, tally: &mut impl Tally) -> Vec<u64> {
        let mut wide = [L::default(); 2 * MAX_LIMBS];
        wide[..MAX_LIMBS].copy_from_slice(number);
        L::write(&self.reduced(wide, tally)[..self.length])
    }

    fn one(&self) -> Number<L> {
        self.one
    }

    fn multiply(&self, a: &Number<L>, b: &Number<L>, tally: &mut impl Tally) -> Number<L> {
        self.reduced(self.product(a, b, tally), tally)
    }

    fn square(&self, a: &Number<L>, tally: &mut impl Tally) -> Number<L> {
        tally.square();
        let mut wide = [L::default(); 2 * MAX_LIMBS];
        sqr_vec(&mut wide[..2 * self.length], &a[..self.length]);
        self.reduced(wide, tally)
    }

    fn functions(&self, calls: &Calls) -> Vec<Function> {
        let (row, square) = (self.clone(), self.clone());
        let (mut sum, mut wide) = (self.one, [L::default(); 2 * MAX_LIMBS]);
        let [row_name, square_name] = L::NAMES;
        vec![
            Function {
                name: row_name,
                calls: calls.rows,
                repeat: Box::new(move |times| {
                    let limbs = black_box(&row.modulus[..row.length]);
                    for _ in 0..times {
                        black_box(mul_add_vec(&mut sum[..row.length], limbs, row.inverse));
                    }
                }),
            },
            Function {
                name: square_name,
                calls: calls.squares,
                repeat: Box::new(move |times| {
                    let limbs = black_box(&square.cube[..square.length]);
                    for _ in 0..times {
                        sqr_vec(black_box(&mut wide[..2 * square.length]), limbs);
                    }
                }),
            },
        ]
    }
}

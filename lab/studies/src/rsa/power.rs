// SPDX-License-Identifier: Apache-2.0
//! Powers with a window of five bits, and both halves of the CRT put together.

use super::number::{add, difference, from_bytes, product, to_bytes};
use super::{Function, Key};

/// Bits of the exponent that are taken at once.
const WINDOW: usize = 5;

/// Which functions are called.
pub(super) trait Tally {
    /// A row was multiplied and added.
    fn row(&mut self) {}
    /// A number was squared, without its reduction.
    fn square(&mut self) {}
}

/// Nothing is counted.
impl Tally for () {}

/// How often each was called.
#[derive(Debug, Default)]
pub(super) struct Calls {
    pub(super) rows: u64,
    pub(super) squares: u64,
}

impl Tally for Calls {
    fn row(&mut self) {
        self.rows += 1;
    }

    fn square(&mut self) {
        self.squares += 1;
    }
}

/// Numbers modulo a prime, in Montgomery's form.
pub(super) trait Modulus: Send + 'static {
    /// A number.
    type Number: Clone + Send;

    fn new(modulus: &[u64]) -> Self;
    /// A number of twice the length, below the modulus times Montgomery's radix, in Montgomery's form.
    fn take(&self, wide: &[u64], tally: &mut impl Tally) -> Self::Number;
    /// The number itself.
    fn give(&self, number: &Self::Number, tally: &mut impl Tally) -> Vec<u64>;
    /// One, in Montgomery's form.
    fn one(&self) -> Self::Number;
    fn multiply(&self, a: &Self::Number, b: &Self::Number, tally: &mut impl Tally) -> Self::Number;
    fn square(&self, a: &Self::Number, tally: &mut impl Tally) -> Self::Number;
    /// Its functions, for a profile.
    fn functions(&self, calls: &Calls) -> Vec<Function>;
}

/// A power.
fn power<M: Modulus>(
    modulus: &M,
    base: &M::Number,
    exponent: &[u64],
    tally: &mut impl Tally,
) -> M::Number {
    let mut powers = vec![modulus.one(), base.clone()];
    for at in 2..1 << WINDOW {
        powers.push(modulus.multiply(&powers[at - 1], base, tally));
    }
    let bit = |at: usize| exponent.get(at / 64).map_or(0, |limb| limb >> (at % 64) & 1);
    let window = |from: usize| {
        let bits = (0..WINDOW).rev().fold(0, |sum, at| sum << 1 | bit(from + at));
        usize::try_from(bits).unwrap_or(0)
    };
    let windows = (exponent.len() * 64).div_ceil(WINDOW);
    let mut result = powers[window((windows - 1) * WINDOW)].clone();
    for at in (0..windows - 1).rev() {
        for _ in 0..WINDOW {
            result = modulus.square(&result, tally);
        }
        result = modulus.multiply(&result, &powers[window(at * WINDOW)], tally);
    }
    result
}

/// The private operation: a power for each prime, and their combination.
pub(super) fn private<M: Modulus>(
    key: &Key,
    [p, q]: [&M; 2],
    input: &[u8],
    tally: &mut impl Tally,
) -> Vec<u8> {
    let input = from_bytes(input);
    let mut half = |modulus: &M, exponent: &[u64]| {
        let base = modulus.take(&input, tally);
        let result = power(modulus, &base, exponent, tally);
        modulus.give(&result, tally)
    };
    let (first, second) = (half(p, &key.exponents[0]), half(q, &key.exponents[1]));
    let wide = |limbs: &[u64]| [limbs, &vec![0; limbs.len()]].concat();
    let apart = p.take(&wide(&difference(&first, &second, &key.p)), tally);
    let coefficient = p.take(&wide(&key.coefficient), tally);
    let times = p.multiply(&apart, &coefficient, tally);
    let mut result = product(&p.give(&times, tally), &key.q);
    add(&mut result, &second);
    to_bytes(&result)
}

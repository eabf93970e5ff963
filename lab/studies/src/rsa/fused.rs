// SPDX-License-Identifier: Apache-2.0
//! Product and reduction in one loop over the digits (Koç, Acar, Kaliski 1996: coarsely integrated
//! operand scanning), with a number of limbs that the compiler knows.

use super::Function;
use super::limb::Limb;
use super::number::{doubled, radix};
use super::power::{Calls, Modulus, Tally};
use std::array;

/// A modulus of `N` limbs.
pub(super) struct Fused<const N: usize> {
    modulus: [u64; N],
    square: [u64; N],
    one: [u64; N],
    inverse: u64,
}

impl<const N: usize> Fused<N> {
    #[inline(never)]
    fn product(&self, a: &[u64; N], b: &[u64; N]) -> [u64; N] {
        let (mut sum, mut top) = ([0_u64; N], 0_u64);
        for digit in b {
            let mut carry = 0;
            for n in 0..N {
                (sum[n], carry) = a[n].carrying_mul_add(*digit, sum[n], carry);
            }
            let (high, over) = top.overflowing_add(carry);
            let factor = sum[0].wrapping_mul(self.inverse);
            let (_, mut carry) = self.modulus[0].carrying_mul_add(factor, sum[0], 0);
            for n in 1..N {
                (sum[n - 1], carry) = self.modulus[n].carrying_mul_add(factor, sum[n], carry);
            }
            let (last, more) = high.overflowing_add(carry);
            sum[N - 1] = last;
            top = u64::from(over) + u64::from(more);
        }
        let (mut less, mut borrow) = (sum, false);
        for n in 0..N {
            (less[n], borrow) = sum[n].minus(self.modulus[n], borrow);
        }
        if top != 0 || !borrow { less } else { sum }
    }
}

impl<const N: usize> Modulus for Fused<N> {
    type Number = [u64; N];

    fn new(modulus: &[u64]) -> Self {
        let read = |limbs: &[u64]| array::from_fn(|n| limbs.get(n).copied().unwrap_or(0));
        let one = radix(modulus);
        let square = (0..modulus.len() * 64).fold(one.clone(), |sum, _| doubled(&sum, modulus));
        let inverse = modulus.first().copied().unwrap_or(1).negated_inverse();
        Self { modulus: read(modulus), square: read(&square), one: read(&one), inverse }
    }

    /// The high half times the radix, and the low half: each is below the radix, which is all that a
    /// product asks of one of its factors.
    fn take(&self, wide: &[u64], _tally: &mut impl Tally) -> [u64; N] {
        let read = |from: usize| array::from_fn(|n| wide.get(from + n).copied().unwrap_or(0));
        let high = self.product(&self.product(&self.square, &read(N)), &self.square);
        let low = self.product(&self.square, &read(0));
        let (mut sum, mut carry) = ([0; N], false);
        for n in 0..N {
            (sum[n], carry) = high[n].plus(low[n], carry);
        }
        let (mut less, mut borrow) = (sum, false);
        for n in 0..N {
            (less[n], borrow) = sum[n].minus(self.modulus[n], borrow);
        }
        if carry || !borrow { less } else { sum }
    }

    fn give(&self, number: &[u64; N], _tally: &mut impl Tally) -> Vec<u64> {
        let mut one = [0; N];
        one[0] = 1;
        self.product(number, &one).to_vec()
    }

    fn one(&self) -> [u64; N] {
        self.one
    }

    fn multiply(&self, a: &[u64; N], b: &[u64; N], _tally: &mut impl Tally) -> [u64; N] {
        self.product(a, b)
    }

    fn square(&self, a: &[u64; N], _tally: &mut impl Tally) -> [u64; N] {
        self.product(a, a)
    }

    fn functions(&self, _calls: &Calls) -> Vec<Function> {
        Vec::new()
    }
}

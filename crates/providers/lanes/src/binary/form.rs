// SPDX-License-Identifier: Apache-2.0
//! What a form of the fields' arithmetic has to offer. The curve code is written once, over this trait and [`Field`].

use super::field::{Field, LANES};
use super::params::Params;

/// Arithmetic on `LANES` independent elements at a time, in constant time. Elements are always reduced.
pub(super) trait Form<F: Field<W>, const W: usize>: Copy {
    type Element: Copy;
    const LANES: usize;

    /// Lane i gets `values[i]`; lanes without one get zero.
    fn load(self, values: &[[u64; W]]) -> Self::Element;
    /// The lanes, in the order of [`Self::load`].
    fn store(self, element: &Self::Element) -> [[u64; W]; LANES];
    fn add(self, a: &Self::Element, b: &Self::Element) -> Self::Element;
    fn mul(self, a: &Self::Element, b: &Self::Element) -> Self::Element;
    /// a to the power of 2^times.
    fn square_times(self, a: &Self::Element, times: usize) -> Self::Element;
    /// [`Ladder`]: for each of the lanes that `scalars` has, its multiple of the point with that x.
    fn ladder(
        self,
        curve: &Params<W>,
        x: &Self::Element,
        scalars: &[[u64; W]],
    ) -> Ladder<Self::Element>;

    /// The same value in every lane.
    fn fill(self, value: &[u64; W]) -> Self::Element {
        self.load(&[*value; LANES][..Self::LANES])
    }

    fn square(self, a: &Self::Element) -> Self::Element {
        self.square_times(a, 1)
    }

    /// The inverse (Itoh, Tsujii: Information and Computation 78, 1988), and 0 of 0: a^(2^m - 2), by way of
    /// a^(2^i - 1) for the prefixes i of m - 1 in binary.
    fn inverse(self, a: &Self::Element) -> Self::Element {
        let exponent = F::DEGREE - 1;
        let mut ones = 1;
        let mut power = *a;
        for bit in (0..exponent.ilog2()).rev() {
            power = self.mul(&self.square_times(&power, ones), &power);
            ones *= 2;
            if exponent >> bit & 1 == 1 {
                power = self.mul(&self.square(&power), a);
                ones += 1;
            }
        }
        self.square(&power)
    }

    /// h with h² + h = a where the trace of a is 0 (m is odd): the sum of a^(2^2i) for i up to (m - 1) / 2.
    fn half_trace(self, a: &Self::Element) -> Self::Element {
        let mut power = *a;
        let mut sum = *a;
        for _ in 0..(F::DEGREE - 1) / 2 {
            power = self.square_times(&power, 2);
            sum = self.add(&sum, &power);
        }
        sum
    }

    /// Lane by lane `then` where `tested` is zero, else `otherwise`; in constant time.
    fn where_zero(
        self,
        tested: &Self::Element,
        then: &Self::Element,
        otherwise: &Self::Element,
    ) -> Self::Element {
        let (tested, then, mut chosen) =
            (self.store(tested), self.store(then), self.store(otherwise));
        for (lane, chosen) in chosen.iter_mut().enumerate() {
            let any = tested[lane].iter().fold(0, |any, word| any | word);
            let nonzero = (any | any.wrapping_neg()) >> 63;
            let mask = nonzero.wrapping_sub(1);
            for (word, then) in chosen.iter_mut().zip(&then[lane]) {
                *word ^= (*word ^ then) & mask;
            }
        }
        self.load(&chosen[..Self::LANES])
    }
}

/// Where the ladder ends: the x-coordinates of kP and (k + 1)P as fractions; the denominator of infinity is zero.
#[derive(Clone, Copy)]
pub(super) struct Ladder<E> {
    pub(super) x1: E,
    pub(super) z1: E,
    pub(super) x2: E,
    pub(super) z2: E,
}

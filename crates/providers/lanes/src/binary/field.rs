// SPDX-License-Identifier: Apache-2.0
//! The five fields, and what a form of their arithmetic has to offer. The curve code above is written once, over these
//! two traits.

use super::params::Params;

/// The largest number of elements that any form works on at once.
pub(super) const LANES: usize = 8;

/// GF(2)[z] modulo z^DEGREE + the sum of z^MIDDLE + 1, in `W` words of 64 bits.
pub(super) trait Field<const W: usize>: Copy + 'static {
    /// m: odd and not a multiple of 64.
    const DEGREE: usize;
    /// The exponents between m and 0, below m - 64.
    const MIDDLE: &'static [usize];
    /// The powers of z whose trace is 1; all others' is 0.
    const TRACE: &'static [usize];

    /// The trace of an element: 0 or 1.
    fn trace(value: &[u64; W]) -> u64 {
        Self::TRACE.iter().fold(0, |sum, at| sum ^ (value[at / 64] >> (at % 64))) & 1
    }
}

#[derive(Clone, Copy)]
pub(super) struct F163;
#[derive(Clone, Copy)]
pub(super) struct F233;
#[derive(Clone, Copy)]
pub(super) struct F283;
#[derive(Clone, Copy)]
pub(super) struct F409;
#[derive(Clone, Copy)]
pub(super) struct F571;

impl Field<3> for F163 {
    const DEGREE: usize = 163;
    const MIDDLE: &'static [usize] = &[7, 6, 3];
    const TRACE: &'static [usize] = &[0, 157];
}

impl Field<4> for F233 {
    const DEGREE: usize = 233;
    const MIDDLE: &'static [usize] = &[74];
    const TRACE: &'static [usize] = &[0, 159];
}

impl Field<5> for F283 {
    const DEGREE: usize = 283;
    const MIDDLE: &'static [usize] = &[12, 7, 5];
    const TRACE: &'static [usize] = &[0, 271];
}

impl Field<7> for F409 {
    const DEGREE: usize = 409;
    const MIDDLE: &'static [usize] = &[87];
    const TRACE: &'static [usize] = &[0];
}

impl Field<9> for F571 {
    const DEGREE: usize = 571;
    const MIDDLE: &'static [usize] = &[10, 5, 2];
    const TRACE: &'static [usize] = &[0, 561, 569];
}

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

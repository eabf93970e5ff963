// SPDX-License-Identifier: Apache-2.0
//! The forms of the field against the portable one, in random and extreme elements, and the portable one against the
//! definition.

use crate::binary::curve::{Curve, Kind, Task, on};
use crate::binary::field::{Field, LANES};
use crate::binary::form::Form;
use crate::binary::params::{Affine, Params};
use crate::binary::point::multiply;
use crate::binary::single::{Portable, Product, Single};
use crate::testing::{Random, inputs};

/// One curve of each field.
const FIELDS: [Curve; 5] =
    [Curve::Sect163r2, Curve::Sect233r1, Curve::Sect283r1, Curve::Sect409r1, Curve::Sect571r1];

/// Random, or all zeros, all ones, one bit, words of zeros and ones.
pub(super) fn element<F: Field<W>, const W: usize>(random: &mut Random) -> [u64; W] {
    let mut out = [0; W];
    match random.below(8) {
        0 => {}
        1 => out = [u64::MAX; W],
        2 => {
            let bit = random.below(F::DEGREE);
            out[bit / 64] = 1 << (bit % 64);
        }
        3 => out = out.map(|_| (random.word() & 1).wrapping_neg()),
        _ => out = out.map(|_| random.word()),
    }
    out[W - 1] &= (1 << (F::DEGREE % 64)) - 1;
    out
}

struct Compare<'a>(&'a mut Random, usize);

impl Task for Compare<'_> {
    type Answer = ();

    fn run<A: Form<F, W>, F: Field<W>, const W: usize>(self, form: A, curve: &'static Params<W>) {
        let reference = Single(Portable);
        for round in 0..self.1.div_ceil(A::LANES) {
            let mut draw = || [(); LANES].map(|()| element::<F, W>(self.0));
            let (a, b) = (draw(), draw());
            let (wide_a, wide_b) = (form.load(&a[..A::LANES]), form.load(&b[..A::LANES]));
            let products = form.store(&form.mul(&wide_a, &wide_b));
            let squares = form.store(&form.square(&wide_a));
            let sums = form.store(&form.add(&wide_a, &wide_b));
            for lane in 0..A::LANES {
                let (a, b) = (&a[lane], &b[lane]);
                assert_eq!(products[lane], Form::<F, W>::mul(reference, a, b));
                assert_eq!(squares[lane], Form::<F, W>::square(reference, a));
                assert_eq!(sums[lane], Form::<F, W>::add(reference, a, b));
            }
            if round % 1000 == 0 {
                inverse_and_half_trace(form, &a);
                masks(form, curve, &a);
            }
        }
    }
}

fn inverse_and_half_trace<A: Form<F, W>, F: Field<W>, const W: usize>(
    form: A,
    a: &[[u64; W]; LANES],
) {
    let wide = form.load(&a[..A::LANES]);
    let ones = form.store(&form.mul(&wide, &form.inverse(&wide)));
    let half = form.half_trace(&wide);
    let solved = form.store(&form.add(&form.square(&half), &half));
    for lane in 0..A::LANES {
        let mut one = [0; W];
        one[0] = u64::from(a[lane] != [0; W]);
        assert_eq!(ones[lane], one);
        let mut expected = a[lane];
        expected[0] ^= F::trace(&a[lane]);
        assert_eq!(solved[lane], expected);
    }
}

fn masks<A: Form<F, W>, F: Field<W>, const W: usize>(
    form: A,
    curve: &Params<W>,
    a: &[[u64; W]; LANES],
) {
    let (then, otherwise) = (form.fill(&curve.a), form.fill(&curve.b));
    let chosen = form.where_zero(&form.load(&a[..A::LANES]), &then, &otherwise);
    for (lane, chosen) in form.store(&chosen).iter().enumerate().take(A::LANES) {
        assert_eq!(*chosen, if a[lane] == [0; W] { curve.a } else { curve.b });
    }
}

#[test]
fn all_forms_of_a_field_agree() {
    let mut random = Random::new();
    for kind in Kind::all() {
        for curve in FIELDS {
            on(curve, kind, Compare(&mut random, inputs(100_000)));
        }
    }
}

#[test]
fn the_portable_product_is_that_of_polynomials() {
    let mut random = Random::new();
    let extreme = [0, 1, u64::MAX, 1 << 63, 0x1111_1111_1111_1111, 0xf000_0000_0000_000f];
    let check = |a: u64, b: u64| {
        let bits = (0..64).filter(|bit| b >> bit & 1 == 1);
        let expected = bits.fold(0, |sum, bit| sum ^ (u128::from(a) << bit));
        assert_eq!(Portable.product(a, b), expected);
    };
    for a in extreme {
        for b in extreme {
            check(a, b);
        }
    }
    for _ in 0..inputs(100_000) {
        check(random.word(), random.word());
    }
}

struct Polynomials<'a>(&'a mut Random);

impl Task for Polynomials<'_> {
    type Answer = ();

    /// Multiplication bit by bit, each step reduced.
    fn run<A: Form<F, W>, F: Field<W>, const W: usize>(self, form: A, _: &'static Params<W>) {
        for _ in 0..200 {
            let (a, b) = (element::<F, W>(self.0), element::<F, W>(self.0));
            let mut sum = [0; W];
            for bit in (0..F::DEGREE).rev() {
                sum = times_z::<F, W>(&sum);
                let mask = (b[bit / 64] >> (bit % 64) & 1).wrapping_neg();
                for (sum, a) in sum.iter_mut().zip(a) {
                    *sum ^= a & mask;
                }
            }
            assert_eq!(form.store(&form.mul(&form.load(&[a]), &form.load(&[b])))[0], sum);
        }
    }
}

fn times_z<F: Field<W>, const W: usize>(a: &[u64; W]) -> [u64; W] {
    let mut out = [0; W];
    for at in (0..W).rev() {
        out[at] = a[at] << 1 | if at > 0 { a[at - 1] >> 63 } else { 0 };
    }
    if out[W - 1] >> (F::DEGREE % 64) == 1 {
        for exponent in F::MIDDLE.iter().chain(&[0, F::DEGREE]) {
            out[exponent / 64] ^= 1 << (exponent % 64);
        }
    }
    out
}

#[test]
fn a_product_is_reduced_by_the_polynomial() {
    let mut random = Random::new();
    for kind in Kind::all() {
        for curve in FIELDS {
            on(curve, kind, Polynomials(&mut random));
        }
    }
}

/// Multiples of random multiples of the base point.
struct Multiples<'a>(&'a mut Random, usize);

impl Task for Multiples<'_> {
    type Answer = ();

    fn run<A: Form<F, W>, F: Field<W>, const W: usize>(self, form: A, curve: &'static Params<W>) {
        for round in 0..self.1.div_ceil(LANES) {
            let mut scalar = || curve.order.reduce(&[(); W].map(|()| self.0.word()));
            let (first, second) = ([(); LANES].map(|()| scalar()), [(); LANES].map(|()| scalar()));
            let count = round % LANES + 1;
            let mut points = [curve.base; LANES];
            let mut expected = points;
            let mut got = [Affine::ZERO; LANES];
            multiply(form, curve, &[curve.base; LANES][..count], &first[..count], &mut points);
            multiply(form, curve, &points[..count], &second[..count], &mut got);
            let reference = Single(Portable);
            // (ab)G in one step of the reference.
            let products = [0, 1, 2, 3, 4, 5, 6, 7]
                .map(|at| curve.order.mul(&curve.order.to_montgomery(&first[at]), &second[at]));
            multiply::<_, F, W>(
                reference,
                curve,
                &[curve.base; LANES][..count],
                &products[..count],
                &mut expected,
            );
            assert_eq!(got[..count], expected[..count]);
        }
    }
}

#[test]
fn all_forms_agree_on_multiples_of_points() {
    let mut random = Random::new();
    for kind in Kind::all() {
        for curve in Curve::ALL {
            on(curve, kind, Multiples(&mut random, 5_000 / curve.degree()));
        }
    }
}

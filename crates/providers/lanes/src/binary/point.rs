// SPDX-License-Identifier: Apache-2.0
//! Points of a curve over any form of the field: multiples, sums, whether one is valid, the missing coordinate.

use super::field::{Field, LANES};
use super::form::Form;
use super::params::{Affine, Params};
use std::marker::PhantomData;

/// The functions below for one field in one form, to be called without knowing which.
pub(super) trait Points<const W: usize> {
    /// m.
    fn degree(&self) -> usize;
    /// How many points are computed at a time.
    fn lanes(&self) -> usize;
    /// [`multiply`]
    fn multiply(
        &self,
        curve: &Params<W>,
        points: &[Affine<W>],
        scalars: &[[u64; W]],
        out: &mut [Affine<W>],
    );
    /// [`add_x`]
    fn add_x(
        &self,
        curve: &Params<W>,
        pairs: &[(Affine<W>, Affine<W>)],
        out: &mut [Option<[u64; W]>],
    );
    /// [`are_valid`]
    fn are_valid(&self, curve: &Params<W>, points: &[Affine<W>]) -> [bool; LANES];
    /// [`decompress`]
    fn decompress(&self, curve: &Params<W>, x: &[u64; W], bit: u64) -> Option<Affine<W>>;
}

/// [`Points`] of a form of a field.
pub(super) struct Coded<A, F>(A, PhantomData<F>);

impl<A, F> Coded<A, F> {
    pub(super) const fn new(form: A) -> Self {
        Self(form, PhantomData)
    }
}

impl<A: Form<F, W>, F: Field<W>, const W: usize> Points<W> for Coded<A, F> {
    fn degree(&self) -> usize {
        F::DEGREE
    }

    fn lanes(&self) -> usize {
        A::LANES
    }

    fn multiply(
        &self,
        curve: &Params<W>,
        points: &[Affine<W>],
        scalars: &[[u64; W]],
        out: &mut [Affine<W>],
    ) {
        multiply(self.0, curve, points, scalars, out);
    }

    fn add_x(
        &self,
        curve: &Params<W>,
        pairs: &[(Affine<W>, Affine<W>)],
        out: &mut [Option<[u64; W]>],
    ) {
        add_x(self.0, curve, pairs, out);
    }

    fn are_valid(&self, curve: &Params<W>, points: &[Affine<W>]) -> [bool; LANES] {
        are_valid(self.0, curve, points)
    }

    fn decompress(&self, curve: &Params<W>, x: &[u64; W], bit: u64) -> Option<Affine<W>> {
        decompress(self.0, curve, x, bit)
    }
}

/// The multiple of each point, which has order n, by its scalar, from 1 to n - 1. In constant time.
pub(super) fn multiply<A: Form<F, W>, F: Field<W>, const W: usize>(
    form: A,
    curve: &Params<W>,
    points: &[Affine<W>],
    scalars: &[[u64; W]],
    out: &mut [Affine<W>],
) {
    let groups = points.chunks(A::LANES).zip(scalars.chunks(A::LANES));
    for ((points, scalars), out) in groups.zip(out.chunks_mut(A::LANES)) {
        multiply_group(form, curve, points, scalars, out);
    }
}

fn multiply_group<A: Form<F, W>, F: Field<W>, const W: usize>(
    form: A,
    curve: &Params<W>,
    points: &[Affine<W>],
    scalars: &[[u64; W]],
    out: &mut [Affine<W>],
) {
    let (x, y) = load(form, points);
    let end = form.ladder(curve, &x, scalars);
    let add = |a: &A::Element, b: &A::Element| form.add(a, b);
    let mul = |a: &A::Element, b: &A::Element| form.mul(a, b);
    // One inversion for the three denominators x, Z1, Z2.
    let z1_z2 = mul(&end.z1, &end.z2);
    let inverse = form.inverse(&mul(&x, &z1_z2));
    let with_x = mul(&x, &inverse);
    let x1 = mul(&end.x1, &mul(&with_x, &end.z2));
    let x2 = mul(&end.x2, &mul(&with_x, &end.z1));
    let one_over_x = mul(&z1_z2, &inverse);
    // López and Dahab, CHES 1999: y1 = (x1 + x) ((x1 + x)(x2 + x) + x² + y) / x + y.
    let (from_x1, from_x2) = (add(&x1, &x), add(&x2, &x));
    let inner = add(&add(&mul(&from_x1, &from_x2), &form.square(&x)), &y);
    let y1 = add(&mul(&mul(&from_x1, &one_over_x), &inner), &y);
    // (k + 1)P is infinity where kP is -P.
    let x1 = form.where_zero(&end.z2, &x, &x1);
    let y1 = form.where_zero(&end.z2, &add(&x, &y), &y1);
    store(form, &x1, &y1, out);
}

/// The x-coordinates of sums of points; `None` where the sum is infinity. The points are public.
pub(super) fn add_x<A: Form<F, W>, F: Field<W>, const W: usize>(
    form: A,
    curve: &Params<W>,
    pairs: &[(Affine<W>, Affine<W>)],
    out: &mut [Option<[u64; W]>],
) {
    for (pairs, out) in pairs.chunks(A::LANES).zip(out.chunks_mut(A::LANES)) {
        let mut numerators = [[0; W]; LANES];
        let mut denominators = [[0; W]; LANES];
        let mut sums = [[0; W]; LANES];
        let mut doubled = [false; LANES];
        for (at, (p, q)) in pairs.iter().enumerate() {
            sums[at] = xor(&p.x, &q.x);
            doubled[at] = p == q;
            (numerators[at], denominators[at]) = (xor(&p.y, &q.y), sums[at]);
        }
        // The slope is x + y/x where a point is doubled, else (y1 + y2) / (x1 + x2).
        for (at, (p, _)) in pairs.iter().enumerate().filter(|(at, _)| doubled[*at]) {
            let squared = form.square(&form.load(&[p.x]));
            numerators[at] = xor(&form.store(&squared)[0], &p.y);
            denominators[at] = p.x;
        }
        let count = pairs.len();
        let denominator = form.load(&denominators[..count]);
        let slope = form.mul(&form.load(&numerators[..count]), &form.inverse(&denominator));
        let x = form.add(&form.add(&form.square(&slope), &slope), &form.load(&sums[..count]));
        let x = form.store(&form.add(&x, &form.fill(&curve.a)));
        for (at, out) in out.iter_mut().enumerate() {
            *out = (denominators[at] != [0; W]).then_some(x[at]);
        }
    }
}

/// Which of up to [`Form::LANES`] points lie on the curve and are multiples of the base point other than infinity
/// (SEC 1, 3.2.2.1). The points are public.
pub(super) fn are_valid<A: Form<F, W>, F: Field<W>, const W: usize>(
    form: A,
    curve: &Params<W>,
    points: &[Affine<W>],
) -> [bool; LANES] {
    let (x, y) = load(form, points);
    let xx = form.square(&x);
    let left = form.mul(&y, &form.add(&y, &x));
    let right = form.mul(&xx, &form.add(&x, &form.fill(&curve.a)));
    let error = form.store(&form.add(&form.add(&left, &right), &form.fill(&curve.b)));
    let mut answers = [false; LANES];
    for (at, point) in points.iter().enumerate() {
        // A point is twice another where the traces of x and a are the same (Knudsen, ASIACRYPT 1999). With a cofactor of 2
        // that is the subgroup; x = 0 is the point of order 2.
        let halves = F::trace(&point.x) == F::trace(&curve.a);
        answers[at] = error[at] == [0; W] && point.x != [0; W] && halves;
    }
    if curve.cofactor == 4 {
        // Half of it must be twice another too. It has the slope l with l² + l = x + a, and its x squared is y + (l + 1)x.
        let slope = form.half_trace(&form.add(&x, &form.fill(&curve.a)));
        let half = form.store(&form.add(&form.add(&y, &x), &form.mul(&slope, &x)));
        for (answer, half) in answers.iter_mut().zip(&half) {
            *answer &= F::trace(half) == F::trace(&curve.a);
        }
    }
    answers
}

/// The points with these x-coordinates and the lowest bits of y/x that `bits` says, if there are any (SEC 1, 2.3.4). Public.
pub(super) fn decompress<A: Form<F, W>, F: Field<W>, const W: usize>(
    form: A,
    curve: &Params<W>,
    x: &[u64; W],
    bit: u64,
) -> Option<Affine<W>> {
    let wide = form.load(&[*x]);
    let inverse = form.inverse(&wide);
    let constant = form.mul(&form.load(&[curve.b]), &form.square(&inverse));
    let sum = form.add(&form.add(&wide, &form.load(&[curve.a])), &constant);
    let ratio = form.half_trace(&sum);
    let error = form.add(&form.add(&form.square(&ratio), &ratio), &sum);
    let mut ratio = form.store(&ratio)[0];
    ratio[0] ^= (ratio[0] & 1) ^ bit;
    let y = form.store(&form.mul(&wide, &form.load(&[ratio])))[0];
    (form.store(&error)[0] == [0; W] && *x != [0; W]).then_some(Affine { x: *x, y })
}

fn load<A: Form<F, W>, F: Field<W>, const W: usize>(
    form: A,
    points: &[Affine<W>],
) -> (A::Element, A::Element) {
    let (mut x, mut y) = ([[0; W]; LANES], [[0; W]; LANES]);
    for (at, point) in points.iter().enumerate() {
        (x[at], y[at]) = (point.x, point.y);
    }
    (form.load(&x[..points.len()]), form.load(&y[..points.len()]))
}

fn store<A: Form<F, W>, F: Field<W>, const W: usize>(
    form: A,
    x: &A::Element,
    y: &A::Element,
    out: &mut [Affine<W>],
) {
    let coordinates = form.store(x).into_iter().zip(form.store(y));
    for (out, (x, y)) in out.iter_mut().zip(coordinates) {
        *out = Affine { x, y };
    }
}

fn xor<const W: usize>(a: &[u64; W], b: &[u64; W]) -> [u64; W] {
    let mut sum = *a;
    for (sum, b) in sum.iter_mut().zip(b) {
        *sum ^= b;
    }
    sum
}

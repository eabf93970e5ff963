// SPDX-License-Identifier: Apache-2.0
//! Points in Jacobian coordinates: x = X/Z², y = Y/Z³. Formulas for a = −3 from Hankerson, Menezes, Vanstone, "Guide to Elliptic
//! Curve Cryptography" (2004), §3.2.2, and Bernstein and Lange's Explicit-Formulas Database (dbl-2001-b).
//!
//! The addition formulas are not complete. Where the two points have the same x, H is 0 and with it Z, and Z stays 0 in
//! whatever follows: so one look at the last Z tells whether an exception happened, and the callers compute such a
//! lane in another way.

use crate::field52::modulus::Modulus;
use crate::field52::montgomery::{enter, mul, square, tidy};
use crate::field52::{Mask, Num};

/// A point per lane, coordinates in Montgomery form.
#[derive(Clone, Copy)]
pub(crate) struct Point<const N: usize> {
    pub(crate) x: Num<N>,
    pub(crate) y: Num<N>,
    pub(crate) z: Num<N>,
}

/// A point per lane with Z = 1.
#[derive(Clone, Copy)]
pub(crate) struct Affine<const N: usize> {
    pub(crate) x: Num<N>,
    pub(crate) y: Num<N>,
}

impl<const N: usize> Affine<N> {
    /// With the Y of the lanes in `mask` negated.
    #[target_feature(enable = "avx512f,avx512ifma")]
    #[inline]
    pub(crate) fn to_point<M: Modulus<N>>(self, mask: Mask) -> Point<N> {
        Point { x: self.x, y: tidy::<M, N>(&self.y.negated(mask)), z: Num::splat(&M::ONE) }
    }
}

impl<const N: usize> Point<N> {
    /// From coordinates that are not in Montgomery form.
    #[target_feature(enable = "avx512f,avx512ifma")]
    pub(crate) fn from_plain<M: Modulus<N>>(x: &Num<N>, y: &Num<N>) -> Self {
        Self { x: enter::<M, N>(x), y: enter::<M, N>(y), z: Num::splat(&M::ONE) }
    }
}

/// 2·p.
#[target_feature(enable = "avx512f,avx512ifma")]
#[inline(never)]
pub(crate) fn double<M: Modulus<N>, const N: usize>(p: &Point<N>) -> Point<N> {
    let delta = square::<M, N>(&p.z);
    let gamma = square::<M, N>(&p.y);
    let beta = mul::<M, N>(&p.x, &gamma);
    let less = p.x.minus(&delta);
    let triple = tidy::<M, N>(&less.shifted::<1>().plus(&less));
    let more = tidy::<M, N>(&p.x.plus(&delta));
    let alpha = mul::<M, N>(&triple, &more);
    let x = tidy::<M, N>(&square::<M, N>(&alpha).minus(&beta.shifted::<3>()));
    let z = tidy::<M, N>(&mul::<M, N>(&p.y, &p.z).shifted::<1>());
    let to = tidy::<M, N>(&beta.shifted::<2>().minus(&x));
    let less = square::<M, N>(&gamma).shifted::<3>();
    let y = tidy::<M, N>(&mul::<M, N>(&alpha, &to).minus(&less));
    Point { x, y, z }
}

/// p + q, with q negated in the lanes of `negative`.
#[target_feature(enable = "avx512f,avx512ifma")]
#[inline(never)]
pub(crate) fn add_affine<M: Modulus<N>, const N: usize>(
    p: &Point<N>,
    q: &Affine<N>,
    negative: Mask,
) -> Point<N> {
    let zz = square::<M, N>(&p.z);
    let u = mul::<M, N>(&q.x, &zz);
    let zzz = mul::<M, N>(&p.z, &zz);
    let s = mul::<M, N>(&q.y, &zzz);
    let h = tidy::<M, N>(&u.minus(&p.x));
    let r = tidy::<M, N>(&s.negated(negative).minus(&p.y));
    let z = mul::<M, N>(&p.z, &h);
    finish::<M, N>(&p.x, &p.y, &h, &r, z)
}

/// p + q.
#[target_feature(enable = "avx512f,avx512ifma")]
#[inline(never)]
pub(crate) fn add<M: Modulus<N>, const N: usize>(p: &Point<N>, q: &Point<N>) -> Point<N> {
    let (pp, qq) = (square::<M, N>(&p.z), square::<M, N>(&q.z));
    let u1 = mul::<M, N>(&p.x, &qq);
    let u2 = mul::<M, N>(&q.x, &pp);
    let s1 = mul::<M, N>(&p.y, &mul::<M, N>(&q.z, &qq));
    let s2 = mul::<M, N>(&q.y, &mul::<M, N>(&p.z, &pp));
    let h = tidy::<M, N>(&u2.minus(&u1));
    let r = tidy::<M, N>(&s2.minus(&s1));
    let z = mul::<M, N>(&mul::<M, N>(&p.z, &q.z), &h);
    finish::<M, N>(&u1, &s1, &h, &r, z)
}

/// X₃ = R² − H³ − 2·U₁·H², Y₃ = R·(U₁·H² − X₃) − S₁·H³.
#[target_feature(enable = "avx512f,avx512ifma")]
#[inline]
fn finish<M: Modulus<N>, const N: usize>(
    u1: &Num<N>,
    s1: &Num<N>,
    h: &Num<N>,
    r: &Num<N>,
    z: Num<N>,
) -> Point<N> {
    let hh = square::<M, N>(h);
    let hhh = mul::<M, N>(h, &hh);
    let v = mul::<M, N>(u1, &hh);
    let x = tidy::<M, N>(&square::<M, N>(r).minus(&hhh).minus(&v.shifted::<1>()));
    let to = tidy::<M, N>(&v.minus(&x));
    let y = tidy::<M, N>(&mul::<M, N>(r, &to).minus(&mul::<M, N>(s1, &hhh)));
    Point { x, y, z }
}

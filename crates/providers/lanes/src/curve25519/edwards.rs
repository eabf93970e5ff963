// SPDX-License-Identifier: Apache-2.0
//! Points on edwards25519 in extended coordinates (x = X/Z, y = Y/Z, T = X·Y/Z), with the formulas of Hisil, Wong, Carter and
//! Dawson, "Twisted Edwards curves revisited" (2008). They are complete on this curve: there is no exception.

use super::field::{
    Element, add, invert_all, least, limbs, mul, power_2_252_3, small, square, sub, zeros,
};
use crate::field52::bytes::take;
use crate::field52::modulus::{Form, Modulus, hex};
use crate::field52::{LANES, Mask, Num};

/// The base point's order, 2^252 + 27742317777372353535851937790883648493.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Order;

impl Modulus<5> for Order {
    const M: [u64; 5] = hex("1000000000000000000000000000000014def9dea2f79cd65812631a5cf5d3ed");
    const FORM: Form = Form::General;
}

/// A point per lane.
#[derive(Clone, Copy)]
pub(super) struct Point {
    pub(super) x: Element,
    pub(super) y: Element,
    pub(super) z: Element,
    pub(super) t: Element,
}

/// A point per lane, prepared to be added: y + x, y − x, 2·d·x·y.
#[derive(Clone, Copy)]
pub(super) struct Prepared {
    pub(super) plus: Element,
    pub(super) minus: Element,
    pub(super) product: Element,
}

/// One prepared point.
pub(super) type Entry = [[u64; 5]; 3];

/// The neutral element, prepared.
pub(super) const NEUTRAL: Entry = [[1, 0, 0, 0, 0], [1, 0, 0, 0, 0], [0; 5]];

/// d = −121665/121666.
const D: [u8; 32] = [
    0xa3, 0x78, 0x59, 0x13, 0xca, 0x4d, 0xeb, 0x75, 0xab, 0xd8, 0x41, 0x41, 0x4d, 0x0a, 0x70, 0x00,
    0x98, 0xe8, 0x79, 0x77, 0x79, 0x40, 0xc7, 0x8c, 0x73, 0xfe, 0x6f, 0x2b, 0xee, 0x6c, 0x03, 0x52,
];
/// √−1 = 2^((p − 1)/4).
const ROOT: [u8; 32] = [
    0xb0, 0xa0, 0x0e, 0x4a, 0x27, 0x1b, 0xee, 0xc4, 0x78, 0xe4, 0x2f, 0xad, 0x06, 0x18, 0x43, 0x2f,
    0xa7, 0xd7, 0xfb, 0x3d, 0x99, 0x00, 0x4d, 0x2b, 0x0b, 0xdf, 0xc1, 0x4f, 0x80, 0x24, 0x83, 0x2b,
];
/// The base point, y = 4/5, encoded.
pub(super) const BASE: [u8; 32] = {
    let mut bytes = [0x66; 32];
    bytes[0] = 0x58;
    bytes
};

#[target_feature(enable = "avx512f,avx512ifma")]
fn constant(bytes: &[u8; 32]) -> Element {
    Num::splat(&limbs(bytes))
}

impl Point {
    /// The neutral element.
    #[target_feature(enable = "avx512f,avx512ifma")]
    pub(super) fn neutral() -> Self {
        Self { x: small(0), y: small(1), z: small(1), t: small(0) }
    }

    /// The points that these bytes encode, and the lanes where they encode one (RFC 8032 §5.1.3): y is below p, the
    /// equation has a solution, and a zero x has no sign.
    #[target_feature(enable = "avx512f,avx512ifma")]
    pub(super) fn decode(encoded: &[[u8; 32]; LANES]) -> (Self, Mask) {
        let mut columns = [[0; LANES]; 5];
        let mut sign = 0;
        for (lane, bytes) in encoded.iter().enumerate() {
            crate::field52::bytes::put(&mut columns, lane, &limbs(bytes));
            sign |= (bytes[31] >> 7) << lane;
        }
        let y = Num::load(&columns);
        let mut same = !0;
        let canonical = least(&y).store();
        for (lane, bytes) in encoded.iter().enumerate() {
            if take(&canonical, lane) != limbs(bytes) {
                same &= !(1 << lane);
            }
        }
        let yy = square(&y);
        let u = sub(&yy, &small(1));
        let v = add(&mul(&constant(&D), &yy), &small(1));
        // x = u·v³·(u·v⁷)^((p − 5)/8), times √−1 where v·x² is −u (RFC 8032 §5.1.3).
        let vvv = mul(&square(&v), &v);
        let uvvv = mul(&u, &vvv);
        let power = power_2_252_3(&mul(&uvvv, &mul(&vvv, &v)));
        let x = mul(&uvvv, &power);
        let vxx = mul(&v, &square(&x));
        let right = zeros(&sub(&vxx, &u));
        let turned = zeros(&add(&vxx, &u));
        let x = least(&x.blend(turned & !right, &mul(&x, &constant(&ROOT))));
        let good = same & (right | turned) & !(x.zeros() & sign);
        let x = x.blend(x.odds() ^ sign, &sub(&small(0), &x));
        (Self { x, y, z: small(1), t: mul(&x, &y) }, good)
    }

    /// 2·self. T is left out (it is zero then) unless an addition follows.
    #[target_feature(enable = "avx512f,avx512ifma")]
    #[inline(never)]
    pub(super) fn double(&self, with_t: bool) -> Self {
        let (xx, yy, zz) = (square(&self.x), square(&self.y), square(&self.z));
        let sum = add(&yy, &xx);
        let difference = sub(&yy, &xx);
        let e = sub(&square(&add(&self.x, &self.y)), &sum);
        let f = sub(&add(&zz, &zz), &difference);
        let t = if with_t { mul(&e, &sum) } else { self.t };
        Self { x: mul(&e, &f), y: mul(&sum, &difference), z: mul(&difference, &f), t }
    }

    /// self + q, with q negated in the lanes of `negative`.
    #[target_feature(enable = "avx512f,avx512ifma")]
    #[inline(never)]
    pub(super) fn add(&self, q: &Prepared, negative: Mask) -> Self {
        let a = mul(&sub(&self.y, &self.x), &q.minus.blend(negative, &q.plus));
        let b = mul(&add(&self.y, &self.x), &q.plus.blend(negative, &q.minus));
        let c = mul(&self.t, &q.product);
        let d = add(&self.z, &self.z);
        let (e, h) = (sub(&b, &a), add(&b, &a));
        let (less, more) = (sub(&d, &c), add(&d, &c));
        let (f, g) = (less.blend(negative, &more), more.blend(negative, &less));
        Self { x: mul(&e, &f), y: mul(&g, &h), z: mul(&f, &g), t: mul(&e, &h) }
    }

    /// self + q.
    #[target_feature(enable = "avx512f,avx512ifma")]
    fn add_point(&self, q: &Self) -> Self {
        let a = mul(&sub(&self.y, &self.x), &sub(&q.y, &q.x));
        let b = mul(&add(&self.y, &self.x), &add(&q.y, &q.x));
        let d = constant(&D);
        let c = mul(&self.t, &mul(&q.t, &add(&d, &d)));
        let zz = mul(&self.z, &q.z);
        let d = add(&zz, &zz);
        let (e, f, g, h) = (sub(&b, &a), sub(&d, &c), add(&d, &c), add(&b, &a));
        Self { x: mul(&e, &f), y: mul(&g, &h), z: mul(&f, &g), t: mul(&e, &h) }
    }

    /// The points first, first + step, first + 2·step, …, prepared.
    #[target_feature(enable = "avx512f,avx512ifma")]
    pub(super) fn series(first: &Self, step: &Self, count: usize) -> Vec<Prepared> {
        let mut points = vec![*first; count];
        for i in 1..count {
            points[i] = points[i - 1].add_point(step);
        }
        let mut inverses: Vec<Element> = points.iter().map(|point| point.z).collect();
        let mut scratch = inverses.clone();
        invert_all(&mut inverses, &mut scratch, |_, _| ());
        let d = constant(&D);
        let mut out = Vec::with_capacity(count);
        for (point, inverse) in points.iter().zip(&inverses) {
            let (x, y) = (mul(&point.x, inverse), mul(&point.y, inverse));
            let product = mul(&mul(&x, &y), &add(&d, &d));
            out.push(Prepared { plus: add(&y, &x), minus: sub(&y, &x), product });
        }
        out
    }
}

impl Prepared {
    /// Each lane's own numbers.
    #[target_feature(enable = "avx512f,avx512ifma")]
    pub(super) fn entries(&self) -> [Entry; LANES] {
        let columns = [self.plus.store(), self.minus.store(), self.product.store()];
        let mut out = [NEUTRAL; LANES];
        for (lane, entry) in out.iter_mut().enumerate() {
            for (to, from) in entry.iter_mut().zip(&columns) {
                *to = take(from, lane);
            }
        }
        out
    }
}

/// Encodes points given with the inverses of their Zs.
#[target_feature(enable = "avx512f,avx512ifma")]
pub(super) fn encode(point: &Point, inverse: &Element) -> [[u8; 32]; LANES] {
    let x = least(&mul(&point.x, inverse));
    let y = least(&mul(&point.y, inverse)).store();
    let odd = x.odds();
    let mut out = [[0; 32]; LANES];
    for (lane, encoded) in out.iter_mut().enumerate() {
        *encoded = super::field::bytes(&take(&y, lane));
        encoded[31] |= ((odd >> lane) & 1) << 7;
    }
    out
}

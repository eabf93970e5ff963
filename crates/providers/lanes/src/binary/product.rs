// SPDX-License-Identifier: Apache-2.0
//! Carry-less products of arrays of words by Karatsuba's method, four at a time: one word of each factor in each 128-bit
//! element, the lower or the upper one as the instruction's immediate says, and a product of two words in each.

use super::vpclmul::{Vector, Z};

/// 128-bit products, of weights z^0, z^64, ...; the first 2W - 1 count.
pub(super) type Wide = [Z; 17];

/// Lower words of both factors.
pub(super) const LOW: i32 = 0x00;
/// Upper words of both.
pub(super) const HIGH: i32 = 0x11;
/// The lower words of the first factor, the upper ones of the second.
pub(super) const LOW_HIGH: i32 = 0x10;
/// The upper words of the first factor, the lower ones of the second.
pub(super) const HIGH_LOW: i32 = 0x01;

/// The products of one word of each element of `a` and `b`, as `WHICH` says.
#[inline(always)]
pub(super) fn half<const WHICH: i32, const W: usize>(v: Vector, a: &[Z; W], b: &[Z; W]) -> Wide {
    let mut out = [v.zero(); 17];
    match W {
        3 => place(v, &mut out, 0, &three::<WHICH>(v, &cut(v, a, 0), &cut(v, b, 0))),
        4 => place(v, &mut out, 0, &four::<WHICH>(v, &cut(v, a, 0), &cut(v, b, 0))),
        5 => {
            // 3 + 2 words; the third word meets itself in the lower product and in that of the sums.
            let (a0, b0) = (cut(v, a, 0), cut(v, b, 0));
            let (a1, b1) = (cut(v, a, 3), cut(v, b, 3));
            let shared = v.product::<WHICH>(a[2], b[2]);
            let low = three_with::<WHICH>(v, &a0, &b0, shared);
            let high = two::<WHICH>(v, &a1, &b1);
            let both = three_with::<WHICH>(v, &sum(v, &a0, &a1), &sum(v, &b0, &b1), shared);
            karatsuba(v, &mut out, 3, &low, &high, &both);
        }
        7 => {
            let (a0, b0) = (cut(v, a, 0), cut(v, b, 0));
            let (a1, b1) = (cut(v, a, 4), cut(v, b, 4));
            let low = four::<WHICH>(v, &a0, &b0);
            let high = three::<WHICH>(v, &a1, &b1);
            let both = four::<WHICH>(v, &sum(v, &a0, &a1), &sum(v, &b0, &b1));
            karatsuba(v, &mut out, 4, &low, &high, &both);
        }
        _ => nine::<WHICH>(v, &mut out, &cut(v, a, 0), &cut(v, b, 0)),
    }
    out
}

/// Three blocks of three words each.
#[inline(always)]
fn nine<const WHICH: i32>(v: Vector, out: &mut Wide, a: &[Z; 9], b: &[Z; 9]) {
    let a: [[Z; 3]; 3] = [cut(v, a, 0), cut(v, a, 3), cut(v, a, 6)];
    let b: [[Z; 3]; 3] = [cut(v, b, 0), cut(v, b, 3), cut(v, b, 6)];
    let p0 = three::<WHICH>(v, &a[0], &b[0]);
    let p1 = three::<WHICH>(v, &a[1], &b[1]);
    let p2 = three::<WHICH>(v, &a[2], &b[2]);
    let p01 = three::<WHICH>(v, &sum(v, &a[0], &a[1]), &sum(v, &b[0], &b[1]));
    let p02 = three::<WHICH>(v, &sum(v, &a[0], &a[2]), &sum(v, &b[0], &b[2]));
    let p12 = three::<WHICH>(v, &sum(v, &a[1], &a[2]), &sum(v, &b[1], &b[2]));
    let p0_p1 = sum(v, &p0, &p1);
    let p1_p2 = sum(v, &p1, &p2);
    place(v, out, 0, &p0);
    place(v, out, 3, &sum(v, &p01, &p0_p1));
    place(v, out, 6, &sum(v, &sum(v, &p02, &p0_p1), &p2));
    place(v, out, 9, &sum(v, &p12, &p1_p2));
    place(v, out, 12, &p2);
}

#[inline(always)]
fn two<const WHICH: i32>(v: Vector, a: &[Z; 2], b: &[Z; 2]) -> [Z; 3] {
    let (low, high) = (v.product::<WHICH>(a[0], b[0]), v.product::<WHICH>(a[1], b[1]));
    let both = v.product::<WHICH>(v.xor(a[0], a[1]), v.xor(b[0], b[1]));
    [low, v.xor(both, v.xor(low, high)), high]
}

#[inline(always)]
fn three<const WHICH: i32>(v: Vector, a: &[Z; 3], b: &[Z; 3]) -> [Z; 5] {
    three_with::<WHICH>(v, a, b, v.product::<WHICH>(a[2], b[2]))
}

/// `three`, with the product of the last words given.
#[inline(always)]
fn three_with<const WHICH: i32>(v: Vector, a: &[Z; 3], b: &[Z; 3], p2: Z) -> [Z; 5] {
    let (p0, p1) = (v.product::<WHICH>(a[0], b[0]), v.product::<WHICH>(a[1], b[1]));
    let p01 = v.product::<WHICH>(v.xor(a[0], a[1]), v.xor(b[0], b[1]));
    let p02 = v.product::<WHICH>(v.xor(a[0], a[2]), v.xor(b[0], b[2]));
    let p12 = v.product::<WHICH>(v.xor(a[1], a[2]), v.xor(b[1], b[2]));
    let p0_p1 = v.xor(p0, p1);
    [p0, v.xor(p01, p0_p1), v.xor(p02, v.xor(p0_p1, p2)), v.xor(p12, v.xor(p1, p2)), p2]
}

#[inline(always)]
fn four<const WHICH: i32>(v: Vector, a: &[Z; 4], b: &[Z; 4]) -> [Z; 7] {
    let (a0, a1, b0, b1) = (cut(v, a, 0), cut(v, a, 2), cut(v, b, 0), cut(v, b, 2));
    let (low, high) = (two::<WHICH>(v, &a0, &b0), two::<WHICH>(v, &a1, &b1));
    let both = two::<WHICH>(v, &sum(v, &a0, &a1), &sum(v, &b0, &b1));
    let mut out = [v.zero(); 7];
    karatsuba(v, &mut out, 2, &low, &high, &both);
    out
}

/// Puts a product together from those of the lower parts (of `at` words), of the upper ones and of the sums.
#[inline(always)]
fn karatsuba<const L: usize, const H: usize>(
    v: Vector,
    out: &mut [Z],
    at: usize,
    low: &[Z; L],
    high: &[Z; H],
    both: &[Z; L],
) {
    place(v, out, 0, low);
    place(v, out, 2 * at, high);
    place(v, out, at, &sum(v, &sum(v, both, low), high));
}

/// Adds a shorter or equally long array to a copy of the first.
#[inline(always)]
fn sum<const N: usize, const M: usize>(v: Vector, a: &[Z; N], b: &[Z; M]) -> [Z; N] {
    let mut out = *a;
    for (out, b) in out.iter_mut().zip(b) {
        *out = v.xor(*out, *b);
    }
    out
}

#[inline(always)]
fn place(v: Vector, out: &mut [Z], at: usize, part: &[Z]) {
    for (out, part) in out[at..].iter_mut().zip(part) {
        *out = v.xor(*out, *part);
    }
}

#[inline(always)]
fn cut<const N: usize>(v: Vector, a: &[Z], at: usize) -> [Z; N] {
    let mut out = [v.zero(); N];
    out.copy_from_slice(&a[at..at + N]);
    out
}

/// The sum of two arrays of 128-bit products.
#[inline(always)]
pub(super) fn add_wide<const W: usize>(v: Vector, a: &Wide, b: &Wide) -> Wide {
    let mut out = *a;
    for at in 0..2 * W - 1 {
        out[at] = v.xor(out[at], b[at]);
    }
    out
}

/// The words of products of which `low` belong into the lower and `high` into the upper halves.
#[inline(always)]
pub(super) fn merge<const W: usize>(v: Vector, low: &Wide, high: &Wide) -> [Z; 18] {
    let mut out = [v.zero(); 18];
    for at in 0..2 * W - 1 {
        out[at] = v.xor(out[at], v.lows(low[at], high[at]));
        out[at + 1] = v.highs(low[at], high[at]);
    }
    out
}

/// The words of the squares, in both halves.
#[inline(always)]
pub(super) fn square<const W: usize>(v: Vector, a: &[Z; W]) -> [Z; 18] {
    let mut out = [v.zero(); 18];
    for at in 0..W {
        let (low, high) = (v.product::<LOW>(a[at], a[at]), v.product::<HIGH>(a[at], a[at]));
        out[2 * at] = v.lows(low, high);
        out[2 * at + 1] = v.highs(low, high);
    }
    out
}

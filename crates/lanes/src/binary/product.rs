// SPDX-License-Identifier: Apache-2.0
//! Carry-less products of arrays of words by Karatsuba's method, four at a time: one word of each factor in each 128-bit
//! element, the lower or the upper one as the instruction's immediate says, and a product of two words in each.

use core::arch::x86_64::{
    __m512i, _mm512_clmulepi64_epi128, _mm512_setzero_si512, _mm512_unpackhi_epi64,
    _mm512_unpacklo_epi64, _mm512_xor_si512,
};

pub(super) type Z = __m512i;

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

#[inline]
#[target_feature(enable = "avx512f")]
pub(super) fn xor(a: Z, b: Z) -> Z {
    _mm512_xor_si512(a, b)
}

/// The products of one word of each element of `a` and `b`, as `WHICH` says.
#[inline]
#[target_feature(enable = "avx512f,vpclmulqdq")]
pub(super) fn half<const WHICH: i32, const W: usize>(a: &[Z; W], b: &[Z; W]) -> Wide {
    let mut out = [_mm512_setzero_si512(); 17];
    match W {
        3 => place(&mut out, 0, &three::<WHICH>(&cut(a, 0), &cut(b, 0))),
        4 => place(&mut out, 0, &four::<WHICH>(&cut(a, 0), &cut(b, 0))),
        5 => {
            // 3 + 2 words; the third word meets itself in the lower product and in that of the sums.
            let (a0, b0) = (cut(a, 0), cut(b, 0));
            let (a1, b1) = (cut(a, 3), cut(b, 3));
            let shared = word::<WHICH>(a[2], b[2]);
            let low = three_with::<WHICH>(&a0, &b0, shared);
            let high = two::<WHICH>(&a1, &b1);
            let both = three_with::<WHICH>(&sum(&a0, &a1), &sum(&b0, &b1), shared);
            karatsuba(&mut out, 3, &low, &high, &both);
        }
        7 => {
            let (a0, b0) = (cut(a, 0), cut(b, 0));
            let (a1, b1) = (cut(a, 4), cut(b, 4));
            let low = four::<WHICH>(&a0, &b0);
            let high = three::<WHICH>(&a1, &b1);
            let both = four::<WHICH>(&sum(&a0, &a1), &sum(&b0, &b1));
            karatsuba(&mut out, 4, &low, &high, &both);
        }
        _ => nine::<WHICH>(&mut out, &cut(a, 0), &cut(b, 0)),
    }
    out
}

/// Three blocks of three words each.
#[inline]
#[target_feature(enable = "avx512f,vpclmulqdq")]
fn nine<const WHICH: i32>(out: &mut Wide, a: &[Z; 9], b: &[Z; 9]) {
    let a: [[Z; 3]; 3] = [cut(a, 0), cut(a, 3), cut(a, 6)];
    let b: [[Z; 3]; 3] = [cut(b, 0), cut(b, 3), cut(b, 6)];
    let p0 = three::<WHICH>(&a[0], &b[0]);
    let p1 = three::<WHICH>(&a[1], &b[1]);
    let p2 = three::<WHICH>(&a[2], &b[2]);
    let p01 = three::<WHICH>(&sum(&a[0], &a[1]), &sum(&b[0], &b[1]));
    let p02 = three::<WHICH>(&sum(&a[0], &a[2]), &sum(&b[0], &b[2]));
    let p12 = three::<WHICH>(&sum(&a[1], &a[2]), &sum(&b[1], &b[2]));
    let p0_p1 = sum(&p0, &p1);
    let p1_p2 = sum(&p1, &p2);
    place(out, 0, &p0);
    place(out, 3, &sum(&p01, &p0_p1));
    place(out, 6, &sum(&sum(&p02, &p0_p1), &p2));
    place(out, 9, &sum(&p12, &p1_p2));
    place(out, 12, &p2);
}

#[inline]
#[target_feature(enable = "avx512f,vpclmulqdq")]
fn word<const WHICH: i32>(a: Z, b: Z) -> Z {
    _mm512_clmulepi64_epi128::<WHICH>(a, b)
}

#[inline]
#[target_feature(enable = "avx512f,vpclmulqdq")]
fn two<const WHICH: i32>(a: &[Z; 2], b: &[Z; 2]) -> [Z; 3] {
    let (low, high) = (word::<WHICH>(a[0], b[0]), word::<WHICH>(a[1], b[1]));
    let both = word::<WHICH>(xor(a[0], a[1]), xor(b[0], b[1]));
    [low, xor(both, xor(low, high)), high]
}

#[inline]
#[target_feature(enable = "avx512f,vpclmulqdq")]
fn three<const WHICH: i32>(a: &[Z; 3], b: &[Z; 3]) -> [Z; 5] {
    three_with::<WHICH>(a, b, word::<WHICH>(a[2], b[2]))
}

/// `three`, with the product of the last words given.
#[inline]
#[target_feature(enable = "avx512f,vpclmulqdq")]
fn three_with<const WHICH: i32>(a: &[Z; 3], b: &[Z; 3], p2: Z) -> [Z; 5] {
    let (p0, p1) = (word::<WHICH>(a[0], b[0]), word::<WHICH>(a[1], b[1]));
    let p01 = word::<WHICH>(xor(a[0], a[1]), xor(b[0], b[1]));
    let p02 = word::<WHICH>(xor(a[0], a[2]), xor(b[0], b[2]));
    let p12 = word::<WHICH>(xor(a[1], a[2]), xor(b[1], b[2]));
    let p0_p1 = xor(p0, p1);
    [p0, xor(p01, p0_p1), xor(p02, xor(p0_p1, p2)), xor(p12, xor(p1, p2)), p2]
}

#[inline]
#[target_feature(enable = "avx512f,vpclmulqdq")]
fn four<const WHICH: i32>(a: &[Z; 4], b: &[Z; 4]) -> [Z; 7] {
    let (a0, a1, b0, b1) = (cut(a, 0), cut(a, 2), cut(b, 0), cut(b, 2));
    let (low, high) = (two::<WHICH>(&a0, &b0), two::<WHICH>(&a1, &b1));
    let both = two::<WHICH>(&sum(&a0, &a1), &sum(&b0, &b1));
    let mut out = [_mm512_setzero_si512(); 7];
    karatsuba(&mut out, 2, &low, &high, &both);
    out
}

/// Puts a product together from those of the lower parts (of `at` words), of the upper ones and of the sums.
#[inline]
#[target_feature(enable = "avx512f")]
fn karatsuba<const L: usize, const H: usize>(
    out: &mut [Z],
    at: usize,
    low: &[Z; L],
    high: &[Z; H],
    both: &[Z; L],
) {
    place(out, 0, low);
    place(out, 2 * at, high);
    place(out, at, &sum(&sum(both, low), high));
}

/// Adds a shorter or equally long array to a copy of the first.
#[inline]
#[target_feature(enable = "avx512f")]
fn sum<const N: usize, const M: usize>(a: &[Z; N], b: &[Z; M]) -> [Z; N] {
    let mut out = *a;
    for (out, b) in out.iter_mut().zip(b) {
        *out = xor(*out, *b);
    }
    out
}

#[inline]
#[target_feature(enable = "avx512f")]
fn place(out: &mut [Z], at: usize, part: &[Z]) {
    for (out, part) in out[at..].iter_mut().zip(part) {
        *out = xor(*out, *part);
    }
}

#[inline]
#[target_feature(enable = "avx512f")]
fn cut<const N: usize>(a: &[Z], at: usize) -> [Z; N] {
    let mut out = [_mm512_setzero_si512(); N];
    out.copy_from_slice(&a[at..at + N]);
    out
}

/// The sum of two arrays of 128-bit products.
#[inline]
#[target_feature(enable = "avx512f")]
pub(super) fn add_wide<const W: usize>(a: &Wide, b: &Wide) -> Wide {
    let mut out = *a;
    for at in 0..2 * W - 1 {
        out[at] = xor(out[at], b[at]);
    }
    out
}

/// The words of products of which `low` belong into the lower and `high` into the upper halves.
#[inline]
#[target_feature(enable = "avx512f")]
pub(super) fn merge<const W: usize>(low: &Wide, high: &Wide) -> [Z; 18] {
    let mut out = [_mm512_setzero_si512(); 18];
    for at in 0..2 * W - 1 {
        out[at] = xor(out[at], _mm512_unpacklo_epi64(low[at], high[at]));
        out[at + 1] = _mm512_unpackhi_epi64(low[at], high[at]);
    }
    out
}

/// The words of the squares, in both halves.
#[inline]
#[target_feature(enable = "avx512f,vpclmulqdq")]
pub(super) fn square<const W: usize>(a: &[Z; W]) -> [Z; 18] {
    let mut out = [_mm512_setzero_si512(); 18];
    for at in 0..W {
        let (low, high) = (word::<LOW>(a[at], a[at]), word::<HIGH>(a[at], a[at]));
        out[2 * at] = _mm512_unpacklo_epi64(low, high);
        out[2 * at + 1] = _mm512_unpackhi_epi64(low, high);
    }
    out
}

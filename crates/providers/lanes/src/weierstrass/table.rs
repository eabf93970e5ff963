// SPDX-License-Identifier: Apache-2.0
//! Scalars in signed odd digits, and tables of odd multiples to go with them.
//!
//! An odd k below 2^(w·W) is Σ dᵢ·2^(w·i) with W odd digits between −2^w and 2^w: with b = (k >> 1) + 2^(w·W−1), the digit is
//! 2·bᵢ − (2^w − 1), where bᵢ are the windows of b (Joye and Tunstall, "Exponent recoding and regular exponentiation
//! algorithms", 2009). No digit is 0, so that every window costs one addition whatever the scalar. An even scalar k becomes n − k,
//! which changes the sign of the point.

use super::point::{Affine, Point, add, double};
use crate::field52::bytes::{put, take};
use crate::field52::inverse::invert_all;
use crate::field52::modulus::Modulus;
use crate::field52::montgomery::{least, mul, square};
use crate::field52::{LANES, Mask, Num, V, load, rows, splat};
use core::arch::x86_64::*;

/// Bits of a window of the base point's scalar.
pub(crate) const BASE_WINDOW: u32 = 6;
/// Bits of a window of any other point's scalar.
pub(crate) const WINDOW: u32 = 5;
/// Multiples of a point in the table of such a window: 1, 3, … 31.
pub(crate) const ENTRIES: usize = 1 << (WINDOW - 1);
/// Parts into which a known point's scalar is split; they share the doublings.
pub(crate) const PARTS: usize = 4;

/// Windows of `width` bits for a scalar below 2^`bits`: the recoding needs bit width·count − 1 to be at least `bits` − 1.
pub(crate) const fn windows(bits: usize, width: u32) -> usize {
    bits.div_ceil(width as usize)
}

/// The odd one of k and n − k, and the lanes where that is n − k.
#[target_feature(enable = "avx512f,avx512ifma")]
#[inline]
pub(crate) fn odd<M: Modulus<N>, const N: usize>(k: &Num<N>) -> (Num<N>, Mask) {
    let even = !k.odds();
    (k.blend(even, &Num::splat(&M::M).minus(k).carried()), even)
}

/// The windows' number b of an odd scalar; `width`·`count` bits.
#[target_feature(enable = "avx512f,avx512ifma")]
#[inline]
pub(crate) fn recoded<const N: usize>(k: &Num<N>, width: u32, count: usize) -> Num<N> {
    let mut out = k.0;
    for (i, limb) in out.iter_mut().enumerate() {
        *limb = _mm512_srli_epi64::<1>(k.0[i]);
        if i + 1 < N {
            let above = _mm512_and_si512(k.0[i + 1], splat(1));
            *limb = _mm512_or_si512(*limb, _mm512_slli_epi64::<51>(above));
        }
    }
    let top = width as usize * count - 1;
    out[top / 52] = _mm512_or_si512(out[top / 52], splat(1 << (top % 52)));
    Num(out)
}

/// Which entry a window asks for, and the lanes where it is negated.
#[target_feature(enable = "avx512f,avx512ifma")]
#[inline]
pub(crate) fn digit<const N: usize>(b: &Num<N>, window: usize, width: u32) -> (V, Mask) {
    let bits = b.window(window * width as usize, width);
    let negative = _mm512_testn_epi64_mask(bits, splat(1 << (width - 1)));
    let flipped = _mm512_mask_xor_epi64(bits, negative, bits, splat(u64::MAX));
    (_mm512_and_si512(flipped, splat((1 << (width - 1)) - 1)), negative)
}

/// The first `count` odd multiples of a point per lane, coordinates below M.
#[target_feature(enable = "avx512f,avx512ifma")]
pub(crate) fn odd_multiples<M: Modulus<N>, const N: usize>(
    point: &Point<N>,
    count: usize,
) -> Vec<Affine<N>> {
    let twice = double::<M, N>(point);
    let mut points = vec![*point; count];
    for i in 1..count {
        points[i] = add::<M, N>(&points[i - 1], &twice);
    }
    let mut inverses: Vec<Num<N>> = points.iter().map(|point| point.z).collect();
    let mut scratch = inverses.clone();
    invert_all::<M, N>(&mut inverses, &mut scratch, |_, _| ());
    let mut out = Vec::with_capacity(count);
    for (point, inverse) in points.iter().zip(&inverses) {
        let squared = square::<M, N>(inverse);
        let x = mul::<M, N>(&point.x, &squared);
        let y = mul::<M, N>(&point.y, &mul::<M, N>(&squared, inverse));
        out.push(Affine { x: least::<M, N>(&x), y: least::<M, N>(&y) });
    }
    out
}

/// The coordinates of one point.
pub(crate) type Entry<const N: usize> = [[u64; N]; 2];

/// One limb of one coordinate of a window's 32 entries.
#[repr(align(64))]
#[derive(Clone, Copy, Debug)]
struct EntryLimbs([u64; 1 << (BASE_WINDOW - 1)]);

/// The base point's odd multiples, for every window.
#[derive(Debug)]
pub(crate) struct Base<const N: usize>(Vec<[[EntryLimbs; N]; 2]>);

impl<const N: usize> Base<N> {
    /// Of this point, for scalars of `length` bytes.
    #[target_feature(enable = "avx512f,avx512ifma")]
    pub(crate) fn new<M: Modulus<N>>(base: &Entry<N>, length: usize) -> Self {
        let entries = 1 << (BASE_WINDOW - 1);
        let count = windows(8 * length, BASE_WINDOW);
        let mut rows = rows([[EntryLimbs([0; 32]); N]; 2], count);
        let [x, y] = base.map(|limbs| Num::splat(&limbs));
        let mut point = Point::from_plain::<M>(&x, &y);
        for window in &mut rows {
            for (index, affine) in odd_multiples::<M, N>(&point, entries).iter().enumerate() {
                for (coordinate, number) in window.iter_mut().zip([affine.x, affine.y]) {
                    for (row, lanes) in coordinate.iter_mut().zip(&number.store()) {
                        row.0[index] = lanes[0];
                    }
                }
            }
            for _ in 0..BASE_WINDOW {
                point = double::<M, N>(&point);
            }
        }
        Self(rows)
    }

    /// How many windows.
    pub(crate) fn len(&self) -> usize {
        self.0.len()
    }

    /// The entry that each lane asks for. All of them are loaded, and chosen from within registers.
    #[target_feature(enable = "avx512f,avx512ifma")]
    #[inline]
    pub(crate) fn select(&self, window: usize, index: V) -> Affine<N> {
        let [x, y] = &self.0[window];
        Affine { x: choose(x, index), y: choose(y, index) }
    }
}

#[target_feature(enable = "avx512f,avx512ifma")]
#[inline]
fn choose<const N: usize>(rows: &[EntryLimbs; N], index: V) -> Num<N> {
    let upper = _mm512_test_epi64_mask(index, splat(16));
    let mut out = [_mm512_setzero_si512(); N];
    for i in 0..N {
        let (parts, _) = rows[i].0.as_chunks::<LANES>();
        let below = _mm512_permutex2var_epi64(load(&parts[0]), index, load(&parts[1]));
        let above = _mm512_permutex2var_epi64(load(&parts[2]), index, load(&parts[3]));
        out[i] = _mm512_mask_mov_epi64(below, upper, above);
    }
    Num(out)
}

/// A known point's odd multiples, for every part of a split scalar. Public.
#[derive(Debug)]
pub(crate) struct Multiples<const N: usize>(Vec<Vec<Entry<N>>>);

/// Windows in each part of a split scalar.
pub(crate) const fn part_windows(length: usize) -> usize {
    windows(8 * length, WINDOW).div_ceil(PARTS)
}

impl<const N: usize> Multiples<N> {
    /// Of eight points, for scalars of `length` bytes.
    #[target_feature(enable = "avx512f,avx512ifma")]
    pub(crate) fn eight<M: Modulus<N>>(points: &[Entry<N>; LANES], length: usize) -> [Self; LANES] {
        let mut columns = [[[0; LANES]; N]; 2];
        for (lane, point) in points.iter().enumerate() {
            for (column, limbs) in columns.iter_mut().zip(point) {
                put(column, lane, limbs);
            }
        }
        let [x, y] = &columns;
        let mut point = Point::from_plain::<M>(&Num::load(x), &Num::load(y));
        let mut out = [const { Self(Vec::new()) }; LANES];
        for _ in 0..PARTS {
            out.iter_mut().for_each(|multiples| multiples.0.push(Vec::with_capacity(ENTRIES)));
            for affine in odd_multiples::<M, N>(&point, ENTRIES) {
                let (x, y) = (affine.x.store(), affine.y.store());
                for (lane, multiples) in out.iter_mut().enumerate() {
                    if let Some(part) = multiples.0.last_mut() {
                        part.push([take(&x, lane), take(&y, lane)]);
                    }
                }
            }
            for _ in 0..WINDOW as usize * part_windows(length) {
                point = double::<M, N>(&point);
            }
        }
        out
    }

    /// One entry of one part.
    pub(crate) fn entry(&self, part: usize, index: usize) -> &Entry<N> {
        &self.0[part][index]
    }
}

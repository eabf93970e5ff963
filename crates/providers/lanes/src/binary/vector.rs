// SPDX-License-Identifier: Apache-2.0
//! Eight elements at a time: word i of all of them in one 512-bit register, one in each 64-bit half of its four 128-bit
//! elements, which is how VPCLMULQDQ takes its factors.
//!
//! The ladder uses the two halves of an element for one request, as López and Dahab's formulas come in pairs: (X | Z).
//! Four requests fill the registers; two times four run one after the other.
//!
//! Constant time: no table, no branch on a value; the ladder exchanges by mask registers.

use super::field::{Field, LANES};
use super::form::{Form, Ladder};
use super::params::Params;
use super::product::{HIGH, HIGH_LOW, LOW, LOW_HIGH, add_wide, half, merge, square as wide_square};
use super::vpclmul::{Vector, Z};

/// Requests of one ladder.
const PAIRS: usize = LANES / 2;

/// The lower half of each 128-bit element.
const LOWER: u8 = 0b0101_0101;

impl<F: Field<W>, const W: usize> Form<F, W> for Vector {
    type Element = [Z; W];
    const LANES: usize = LANES;

    fn load(self, values: &[[u64; W]]) -> [Z; W] {
        // SAFETY: a `Vector` exists only where the processor has the instructions; so below.
        unsafe { load(self, values) }
    }

    fn store(self, element: &[Z; W]) -> [[u64; W]; LANES] {
        let mut out = [[0; W]; LANES];
        for (at, word) in element.iter().enumerate() {
            // SAFETY: both are 64 bytes, and every value of each is valid.
            let words: [u64; LANES] = unsafe { core::mem::transmute(*word) };
            for (lane, out) in out.iter_mut().enumerate() {
                out[at] = words[place(lane)];
            }
        }
        out
    }

    fn add(self, a: &[Z; W], b: &[Z; W]) -> [Z; W] {
        // SAFETY: as in `load`.
        unsafe { add_called(self, a, b) }
    }

    fn mul(self, a: &[Z; W], b: &[Z; W]) -> [Z; W] {
        // SAFETY: as in `load`.
        unsafe { mul::<F, W>(self, a, b) }
    }

    fn square_times(self, a: &[Z; W], times: usize) -> [Z; W] {
        // SAFETY: as in `load`.
        unsafe { square_times::<F, W>(self, a, times) }
    }

    fn ladder(self, curve: &Params<W>, x: &[Z; W], scalars: &[[u64; W]]) -> Ladder<[Z; W]> {
        // SAFETY: as in `load`.
        unsafe { ladder::<F, W>(self, curve, x, scalars) }
    }
}

#[target_feature(enable = "avx512f,avx512vbmi2,vpclmulqdq")]
fn load<const W: usize>(v: Vector, values: &[[u64; W]]) -> [Z; W] {
    let mut words = [[0; LANES]; W];
    for (lane, value) in values.iter().enumerate() {
        for (words, value) in words.iter_mut().zip(value) {
            words[place(lane)] = *value;
        }
    }
    let mut out = [v.zero(); W];
    for (out, words) in out.iter_mut().zip(words) {
        *out = v.words(words);
    }
    out
}

/// [`add`] for code that is not compiled for these instructions, where each would be a call.
#[target_feature(enable = "avx512f,avx512vbmi2,vpclmulqdq")]
fn add_called<const W: usize>(v: Vector, a: &[Z; W], b: &[Z; W]) -> [Z; W] {
    add(v, a, b)
}

/// Where in a register a lane's word lies: the first four lanes in the lower halves.
const fn place(lane: usize) -> usize {
    2 * (lane % PAIRS) + lane / PAIRS
}

#[inline(always)]
fn add<const W: usize>(v: Vector, a: &[Z; W], b: &[Z; W]) -> [Z; W] {
    let mut out = *a;
    for (out, b) in out.iter_mut().zip(b) {
        *out = v.xor(*out, *b);
    }
    out
}

#[target_feature(enable = "avx512f,avx512vbmi2,vpclmulqdq")]
fn mul<F: Field<W>, const W: usize>(v: Vector, a: &[Z; W], b: &[Z; W]) -> [Z; W] {
    reduce::<F, W>(v, &merge::<W>(v, &half::<LOW, W>(v, a, b), &half::<HIGH, W>(v, a, b)))
}

#[target_feature(enable = "avx512f,avx512vbmi2,vpclmulqdq")]
fn square_times<F: Field<W>, const W: usize>(v: Vector, a: &[Z; W], times: usize) -> [Z; W] {
    let mut a = *a;
    for _ in 0..times {
        a = square::<F, W>(v, &a);
    }
    a
}

#[inline(always)]
fn square<F: Field<W>, const W: usize>(v: Vector, a: &[Z; W]) -> [Z; W] {
    reduce::<F, W>(v, &wide_square(v, a))
}

/// The remainder of a product. What stands at z^m and above, g, has to be added at z^0 and at each middle exponent t; what
/// this carries beyond z^m again, g / z^(m - t), is added to g first.
#[inline(always)]
fn reduce<F: Field<W>, const W: usize>(v: Vector, wide: &[Z; 18]) -> [Z; W] {
    let zero = v.zero();
    let mut above = [zero; W];
    for at in 0..W {
        above[at] = v.left(wide[W + at], wide[W + at - 1], 64 * W - F::DEGREE);
    }
    let mut carried = [zero; 2];
    for exponent in F::MIDDLE {
        let (words, bits) = ((F::DEGREE - exponent) / 64, (F::DEGREE - exponent) % 64);
        for (carried, at) in carried.iter_mut().zip(words..W) {
            let next = if at + 1 < W { above[at + 1] } else { zero };
            *carried = v.xor(*carried, v.right(above[at], next, bits));
        }
    }
    above[0] = v.xor(above[0], carried[0]);
    above[1] = v.xor(above[1], carried[1]);
    let mut out = [zero; W];
    for at in 0..W {
        let mut sum = v.xor(wide[at], above[at]);
        for exponent in F::MIDDLE {
            let (words, bits) = (exponent / 64, exponent % 64);
            if at >= words {
                let below = if at > words { above[at - words - 1] } else { zero };
                sum = v.xor(sum, v.left(above[at - words], below, bits));
            }
        }
        out[at] = sum;
    }
    let mask = v.all((1 << (F::DEGREE % 64)) - 1);
    out[W - 1] = v.and(out[W - 1], mask);
    out
}

/// (low of a | low of b)
#[inline(always)]
fn lows<const W: usize>(v: Vector, a: &[Z; W], b: &[Z; W]) -> [Z; W] {
    let mut out = *a;
    for (out, b) in out.iter_mut().zip(b) {
        *out = v.lows(*out, *b);
    }
    out
}

/// (high of a | high of b)
#[inline(always)]
fn highs<const W: usize>(v: Vector, a: &[Z; W], b: &[Z; W]) -> [Z; W] {
    let mut out = *a;
    for (out, b) in out.iter_mut().zip(b) {
        *out = v.highs(*out, *b);
    }
    out
}

#[target_feature(enable = "avx512f,avx512vbmi2,vpclmulqdq")]
fn ladder<F: Field<W>, const W: usize>(
    v: Vector,
    curve: &Params<W>,
    x: &[Z; W],
    scalars: &[[u64; W]],
) -> Ladder<[Z; W]> {
    let zero = [v.zero(); W];
    let mut ends = [[zero; 2]; 2];
    for (at, scalars) in scalars.chunks(PAIRS).enumerate() {
        let x = if at == 0 { lows(v, x, x) } else { highs(v, x, x) };
        ends[at] = if curve.is_koblitz() {
            climb::<true, F, W>(v, curve, &x, scalars)
        } else {
            climb::<false, F, W>(v, curve, &x, scalars)
        };
    }
    let [[first, second], [other_first, other_second]] = ends;
    Ladder {
        x1: lows(v, &first, &other_first),
        z1: highs(v, &first, &other_first),
        x2: lows(v, &second, &other_second),
        z2: highs(v, &second, &other_second),
    }
}

/// The ladder for up to four requests; gives (X | Z) of kP and of (k + 1)P.
#[target_feature(enable = "avx512f,avx512vbmi2,vpclmulqdq")]
fn climb<const KOBLITZ: bool, F: Field<W>, const W: usize>(
    v: Vector,
    curve: &Params<W>,
    x: &[Z; W],
    scalars: &[[u64; W]],
) -> [[Z; W]; 2] {
    let mut one = [v.zero(); W];
    one[0] = v.all(1);
    let zero = [v.zero(); W];
    let mut root_b = zero;
    for (root_b, word) in root_b.iter_mut().zip(curve.root_b) {
        *root_b = v.all(word);
    }
    let fixed = lows(v, x, &root_b);
    let mut first = lows(v, &one, &zero);
    let mut second = lows(v, x, &one);
    let mut all = [[0; W]; PAIRS];
    all[..scalars.len()].copy_from_slice(scalars);
    let mut exchanged = 0;
    for at in (0..curve.order.bits).rev() {
        let bits = bits(&all, at);
        exchange(v, bits ^ exchanged, &mut first, &mut second);
        exchanged = bits;
        step::<KOBLITZ, F, W>(v, &mut first, &mut second, &fixed);
    }
    exchange(v, exchanged, &mut first, &mut second);
    [first, second]
}

/// For each request the scalar's bit, in both halves of its element.
#[inline]
fn bits<const W: usize>(scalars: &[[u64; W]; PAIRS], at: usize) -> u8 {
    let mut bits = 0;
    for (pair, scalar) in scalars.iter().enumerate() {
        let bit = scalar[at / 64] >> (at % 64) & 1;
        bits |= (bit * 3) << (2 * pair);
    }
    bits.to_le_bytes()[0]
}

#[inline(always)]
fn exchange<const W: usize>(v: Vector, mask: u8, a: &mut [Z; W], b: &mut [Z; W]) {
    for (a, b) in a.iter_mut().zip(b) {
        let kept = *a;
        *a = v.choose(mask, kept, *b);
        *b = v.choose(mask, *b, kept);
    }
}

/// Doubles the first point and adds the first to the second, their difference having the x-coordinate x: Mdouble and Madd
/// of López and Dahab (CHES 1999), the first as (X² + √b Z²)². `fixed` is (x | √b).
#[inline(always)]
fn step<const KOBLITZ: bool, F: Field<W>, const W: usize>(
    v: Vector,
    first: &mut [Z; W],
    second: &mut [Z; W],
    fixed: &[Z; W],
) {
    let crossed = merge::<W>(
        v,
        &half::<LOW_HIGH, W>(v, first, second),
        &half::<HIGH_LOW, W>(v, first, second),
    );
    let crossed = reduce::<F, W>(v, &crossed); // (X1 Z2 | Z1 X2)
    let squares = square::<F, W>(v, first); // (X1² | Z1²)
    let both = half::<LOW_HIGH, W>(v, &crossed, &crossed);
    let denominator = half::<LOW_HIGH, W>(v, &squares, &squares);
    if KOBLITZ {
        let sums = add(v, &lows(v, &crossed, &squares), &highs(v, &crossed, &squares));
        let sums = square::<F, W>(v, &sums); // (Z3 | X')
        let numerator = add_wide::<W>(v, &both, &half::<LOW, W>(v, fixed, &sums));
        let rest = reduce::<F, W>(v, &merge::<W>(v, &numerator, &denominator)); // (X3 | Z')
        *first = highs(v, &sums, &rest);
        *second = lows(v, &rest, &sums);
    } else {
        let scaled = half::<HIGH, W>(v, fixed, &squares);
        let scaled = reduce::<F, W>(v, &merge::<W>(v, &both, &scaled)); // (X1 Z2 Z1 X2 | √b Z1²)
        let sums = add(v, &lows(v, &crossed, &squares), &highs(v, &crossed, &scaled));
        let sums = square::<F, W>(v, &sums); // (Z3 | X')
        let rest = merge::<W>(v, &half::<LOW, W>(v, fixed, &sums), &denominator);
        let mut rest = reduce::<F, W>(v, &rest);
        for (rest, scaled) in rest.iter_mut().zip(&scaled) {
            *rest = v.xor(*rest, v.choose(LOWER, v.zero(), *scaled));
        } // (X3 | Z')
        *first = highs(v, &sums, &rest);
        *second = lows(v, &rest, &sums);
    }
}

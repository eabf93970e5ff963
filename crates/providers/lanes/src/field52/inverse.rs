// SPDX-License-Identifier: Apache-2.0
//! Inverses: many numbers with one inversion (Montgomery's trick, over vectors and then over lanes), and that inversion
//! by division steps (Bernstein and Yang, "Fast constant-time gcd computation and modular inversion", 2019).
//!
//! The steps are a fixed number, their decisions are masks. A zero would make the product zero, and all inverses with it:
//! zeros are set to 1 beforehand, and their "inverse" is 1.

use super::bytes::take;
use super::modulus::Modulus;
use super::montgomery::{least, mul, zero};
use super::{BITS, LANES, LIMB, Mask, Num};
use core::arch::x86_64::*;

/// Replaces numbers in Montgomery form by their inverses, in Montgomery form; zeros by anything. `scratch` is as long
/// as `numbers`. Gives the lanes of each vector that were zero.
#[target_feature(enable = "avx512f,avx512ifma")]
pub(crate) fn invert_all<M: Modulus<N>, const N: usize>(
    numbers: &mut [Num<N>],
    scratch: &mut [Num<N>],
    mut zeros: impl FnMut(usize, Mask),
) {
    let one = Num::splat(&M::ONE);
    let mut product = one;
    for i in 0..numbers.len() {
        let mask = zero::<M, N>(&numbers[i]);
        zeros(i, mask);
        numbers[i] = numbers[i].blend(mask, &one);
        scratch[i] = product;
        product = mul::<M, N>(&product, &numbers[i]);
    }
    let mut inverse = invert_lanes::<M, N>(&product);
    for i in (0..numbers.len()).rev() {
        let next = mul::<M, N>(&inverse, &numbers[i]);
        numbers[i] = mul::<M, N>(&inverse, &scratch[i]);
        inverse = next;
    }
}

/// The inverse of eight numbers in Montgomery form, none of them zero: their product is inverted, and each lane gets it
/// times the product of the seven others.
#[target_feature(enable = "avx512f,avx512ifma")]
fn invert_lanes<M: Modulus<N>, const N: usize>(a: &Num<N>) -> Num<N> {
    let far = rotated::<4, N>(a);
    let pairs = mul::<M, N>(a, &far);
    let far_pairs = rotated::<2, N>(&pairs);
    let fours = mul::<M, N>(&pairs, &far_pairs);
    let far_fours = rotated::<1, N>(&fours);
    let all = least::<M, N>(&mul::<M, N>(&fours, &far_fours));
    let others = mul::<M, N>(&mul::<M, N>(&far, &far_pairs), &far_fours);
    // (x·R)⁻¹ · R³ / R = x⁻¹ · R.
    let inverse = invert(&take(&all.store(), 0), &M::M);
    let inverse = mul::<M, N>(&Num::splat(&inverse), &Num::splat(&M::R3));
    mul::<M, N>(&inverse, &others)
}

/// Lane i gets what lane i XOR `STEP` has.
#[target_feature(enable = "avx512f,avx512ifma")]
#[inline]
pub(crate) fn rotated<const STEP: usize, const N: usize>(a: &Num<N>) -> Num<N> {
    let mut order = [0; LANES];
    for (lane, from) in order.iter_mut().enumerate() {
        *from = (lane ^ STEP) as u64;
    }
    let order = super::load(&order);
    let mut out = a.0;
    for limb in &mut out {
        *limb = _mm512_permutexvar_epi64(order, *limb);
    }
    Num(out)
}

/// Bits of a limb of the scalar inversion.
const WORD: u32 = 62;
const WORD_MASK: u64 = (1 << WORD) - 1;
/// Limbs of the longest modulus here, 384 bits and two for the sign.
const MAX: usize = 7;
/// A signed number: the topmost limb carries the sign.
type Signed = [i64; MAX];

/// What 62 division steps do to (f, g), times 2^62.
struct Steps {
    delta: i64,
    matrix: [i64; 4],
}

/// a⁻¹ modulo an odd `m`, with 0 < a < m; 0 for a = 0.
pub(crate) fn invert<const N: usize>(a: &[u64; N], m: &[u64; N]) -> [u64; N] {
    // Theorem 11.2: ⌊(49·d + 57)/17⌋ steps for d ≥ 46 bits. All moduli here have 253 to 256 bits, or 384.
    let (limbs, blocks) =
        if N > 5 { (7, 1110_u32.div_ceil(WORD)) } else { (5, 741_u32.div_ceil(WORD)) };
    let m = signed(m);
    let m_inverse = inverse_of_word(m[0].cast_unsigned());
    let (mut f, mut g) = (m, signed(a));
    let (mut d, mut e) = ([0; MAX], [0; MAX]);
    e[0] = 1;
    let mut delta = 1;
    for _ in 0..blocks {
        let steps = divide(delta, f[0].cast_unsigned(), g[0].cast_unsigned());
        delta = steps.delta;
        apply(&mut f, &mut g, &steps.matrix, limbs);
        apply_modulo(&mut d, &mut e, &steps.matrix, &m, m_inverse, limbs);
    }
    // g is 0 and f is ±1: the inverse is d with f's sign, and d lies in (−2m, m).
    unsigned(&normalised(&d, f[limbs - 1] >> 63, &m, limbs))
}

fn signed<const N: usize>(a: &[u64; N]) -> Signed {
    let mut out = [0; MAX];
    let (mut window, mut bits, mut to) = (0_u128, 0, 0);
    for limb in a {
        window |= u128::from(*limb) << bits;
        bits += BITS;
        if bits >= WORD {
            out[to] = low_word(window.cast_signed());
            window >>= WORD;
            bits -= WORD;
            to += 1;
        }
    }
    if to < MAX {
        out[to] = low_word(window.cast_signed());
    }
    out
}

fn unsigned<const N: usize>(a: &Signed) -> [u64; N] {
    let mut out = [0; N];
    let (mut window, mut bits, mut from) = (0_u128, 0, 0);
    for limb in &mut out {
        if bits < BITS && from < MAX {
            window |= u128::from(a[from].cast_unsigned()) << bits;
            bits += WORD;
            from += 1;
        }
        *limb = low_word(window.cast_signed()).cast_unsigned() & LIMB;
        window >>= BITS;
        bits = bits.saturating_sub(BITS);
    }
    out
}

/// The lowest 62 bits.
#[expect(clippy::cast_possible_truncation, reason = "what is above is taken later")]
const fn low_word(window: i128) -> i64 {
    (window.cast_unsigned() as u64 & WORD_MASK).cast_signed()
}

/// m⁻¹ modulo 2^62.
const fn inverse_of_word(m: u64) -> u64 {
    let mut inverse = 1_u64;
    let mut i = 0;
    while i < 6 {
        inverse = inverse.wrapping_mul(2_u64.wrapping_sub(m.wrapping_mul(inverse)));
        i += 1;
    }
    inverse & WORD_MASK
}

/// 62 division steps, from the lowest words of f and g.
fn divide(mut delta: i64, mut f: u64, mut g: u64) -> Steps {
    let (mut u, mut v, mut q, mut r) = (1_u64, 0_u64, 0_u64, 1_u64);
    for _ in 0..WORD {
        let odd = (g & 1).wrapping_neg();
        // All ones where delta is above 0 and g odd: then (f, g) becomes (g, −f) first.
        let swap = ((-delta) >> 63).cast_unsigned() & odd;
        delta = (delta ^ swap.cast_signed()).wrapping_sub(swap.cast_signed()) + 1;
        (f, g) = swapped(f, g, swap);
        (u, q) = swapped(u, q, swap);
        (v, r) = swapped(v, r, swap);
        g = g.wrapping_add(f & odd) >> 1;
        q = q.wrapping_add(u & odd);
        r = r.wrapping_add(v & odd);
        u <<= 1;
        v <<= 1;
    }
    Steps { delta, matrix: [u, v, q, r].map(u64::cast_signed) }
}

/// (b, −a) where the mask is set.
#[inline]
const fn swapped(a: u64, b: u64, mask: u64) -> (u64, u64) {
    let mixed = (a ^ b) & mask;
    let (a, b) = (a ^ mixed, b ^ mixed);
    (a, (b ^ mask).wrapping_sub(mask))
}

/// (f, g) ← matrix·(f, g)/2^62, which divides.
fn apply(f: &mut Signed, g: &mut Signed, matrix: &[i64; 4], limbs: usize) {
    let [u, v, q, r] = matrix.map(i128::from);
    let (mut to_f, mut to_g) = (0_i128, 0_i128);
    for i in 0..limbs {
        let (fi, gi) = (i128::from(f[i]), i128::from(g[i]));
        to_f += u * fi + v * gi;
        to_g += q * fi + r * gi;
        if i > 0 {
            f[i - 1] = low_word(to_f);
            g[i - 1] = low_word(to_g);
        }
        to_f >>= WORD;
        to_g >>= WORD;
    }
    f[limbs - 1] = last(to_f);
    g[limbs - 1] = last(to_g);
}

/// What is left after all limbs, with its sign.
#[expect(clippy::cast_possible_truncation, reason = "the numbers' bounds keep it in a word")]
const fn last(carry: i128) -> i64 {
    carry as i64
}

/// (d, e) ← matrix·(d, e)/2^62 modulo m. Both stay in (−2m, m): a negative one gets m added first, which makes what follows
/// lie in (−2^62·m, 2^62·m), and the multiple of m that makes it divisible is below 2^62·m and taken away.
fn apply_modulo(
    d: &mut Signed,
    e: &mut Signed,
    matrix: &[i64; 4],
    m: &Signed,
    m_inverse: u64,
    limbs: usize,
) {
    let [u, v, q, r] = *matrix;
    let (d_sign, e_sign) = (d[limbs - 1] >> 63, e[limbs - 1] >> 63);
    let quotient = |a: i64, b: i64| {
        let added = (a & d_sign).wrapping_add(b & e_sign);
        let lowest = (a.wrapping_mul(d[0])).wrapping_add(b.wrapping_mul(e[0]));
        let extra =
            m_inverse.wrapping_mul(lowest.cast_unsigned()).wrapping_add(added.cast_unsigned());
        i128::from(added) - i128::from(extra & WORD_MASK)
    };
    let (for_d, for_e) = (quotient(u, v), quotient(q, r));
    let [u, v, q, r] = matrix.map(i128::from);
    let (mut to_d, mut to_e) = (0_i128, 0_i128);
    for i in 0..limbs {
        let (di, ei, mi) = (i128::from(d[i]), i128::from(e[i]), i128::from(m[i]));
        to_d += u * di + v * ei + for_d * mi;
        to_e += q * di + r * ei + for_e * mi;
        if i > 0 {
            d[i - 1] = low_word(to_d);
            e[i - 1] = low_word(to_e);
        }
        to_d >>= WORD;
        to_e >>= WORD;
    }
    d[limbs - 1] = last(to_d);
    e[limbs - 1] = last(to_e);
}

/// d, negated where `sign` is −1, in [0, m).
fn normalised(d: &Signed, sign: i64, m: &Signed, limbs: usize) -> Signed {
    let mut out = *d;
    add_masked(&mut out, m, d[limbs - 1] >> 63, limbs);
    // In (−m, m).
    for limb in &mut out {
        *limb = (*limb ^ sign).wrapping_sub(sign);
    }
    carry(&mut out, limbs);
    let negative = out[limbs - 1] >> 63;
    add_masked(&mut out, m, negative, limbs);
    let negative = out[limbs - 1] >> 63;
    add_masked(&mut out, m, negative, limbs);
    out
}

fn add_masked(a: &mut Signed, m: &Signed, mask: i64, limbs: usize) {
    for (limb, add) in a.iter_mut().zip(m) {
        *limb += add & mask;
    }
    carry(a, limbs);
}

fn carry(a: &mut Signed, limbs: usize) {
    for i in 0..limbs - 1 {
        a[i + 1] += a[i] >> WORD;
        a[i] &= WORD_MASK.cast_signed();
    }
}

// SPDX-License-Identifier: Apache-2.0
//! Eight numbers modulo 2^255 − 19, in five limbs of 51 bits.
//!
//! Every function here takes and gives limbs below 2^51 + 2^15, unless it says otherwise: so they are operands of
//! the 52-bit multiplication. Of a product's 52-bit halves the upper one counts twice (2^52 is 2·2^51), and what is above
//! 2^255 counts 19 times.

#![expect(clippy::needless_range_loop, reason = "limbs of several numbers are walked together")]

use crate::field52::bytes::{little_endian, take};
use crate::field52::inverse::{invert, rotated};
use crate::field52::modulus::hex;
use crate::field52::{Mask, Num, V, high, low, splat};
use core::arch::x86_64::*;

/// Eight numbers.
pub(crate) type Element = Num<5>;

/// Bits of a limb.
const BITS: u32 = 51;
/// All bits of a limb.
const LIMB: u64 = (1 << BITS) - 1;
/// Four times the modulus, limb by limb.
const FOUR_P: [u64; 5] = [4 * (LIMB - 18), 4 * LIMB, 4 * LIMB, 4 * LIMB, 4 * LIMB];
/// The modulus in limbs of 52 bits.
const P: [u64; 5] = hex("7fffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffed");

/// A number as bytes, least significant first, whose highest bit is left out; in limbs of 51 bits.
pub(crate) fn limbs(bytes: &[u8; 32]) -> [u64; 5] {
    let word = |start: usize| {
        let mut word = [0; 8];
        word.copy_from_slice(&bytes[start..start + 8]);
        u64::from_le_bytes(word)
    };
    // Bits 0, 51, 102, 153 and 204 are in bytes 0, 6, 12, 19 and 25.
    [word(0), word(6) >> 3, word(12) >> 6, word(19) >> 1, word(24) >> 12].map(|limb| limb & LIMB)
}

/// Limbs that are a least residue, as bytes, least significant first.
pub(crate) fn bytes(limbs: &[u64; 5]) -> [u8; 32] {
    let mut out = [0; 32];
    let (mut window, mut bits, mut next) = (0_u128, 0, 0);
    for byte in &mut out {
        if bits < 8 && next < 5 {
            window |= u128::from(limbs[next]) << bits;
            bits += BITS;
            next += 1;
        }
        *byte = window.to_le_bytes()[0];
        window >>= 8;
        bits = bits.saturating_sub(8);
    }
    out
}

/// A small number in every lane.
#[target_feature(enable = "avx512f,avx512ifma")]
#[inline]
pub(crate) fn small(value: u64) -> Element {
    Num::splat(&[value, 0, 0, 0, 0])
}

/// Limbs below 2^61, carried once: the carries are below 2^10, and 19 times that below 2^15.
#[target_feature(enable = "avx512f,avx512ifma")]
#[inline]
fn carried(t: [V; 5]) -> Element {
    let mut out = t;
    for i in 0..5 {
        out[i] = _mm512_and_si512(t[i], splat(LIMB));
    }
    for i in 1..5 {
        out[i] = _mm512_add_epi64(out[i], _mm512_srli_epi64::<BITS>(t[i - 1]));
    }
    out[0] = low(out[0], _mm512_srli_epi64::<BITS>(t[4]), splat(19));
    Num(out)
}

/// The product's ten columns, below 2^56, as a number.
#[target_feature(enable = "avx512f,avx512ifma")]
#[inline]
fn folded(t: [V; 10]) -> Element {
    let mut out = [t[0]; 5];
    for i in 0..5 {
        let above = t[i + 5];
        let times_3 = _mm512_add_epi64(above, _mm512_add_epi64(above, above));
        let times_19 = _mm512_add_epi64(_mm512_slli_epi64::<4>(above), times_3);
        out[i] = _mm512_add_epi64(t[i], times_19);
    }
    carried(out)
}

/// a + b.
#[target_feature(enable = "avx512f,avx512ifma")]
#[inline]
pub(crate) fn add(a: &Element, b: &Element) -> Element {
    carried(a.plus(b).0)
}

/// a − b.
#[target_feature(enable = "avx512f,avx512ifma")]
#[inline]
pub(crate) fn sub(a: &Element, b: &Element) -> Element {
    carried(a.plus(&Num::splat(&FOUR_P)).minus(b).0)
}

/// a·b.
#[target_feature(enable = "avx512f,avx512ifma")]
#[inline(never)]
pub(crate) fn mul(a: &Element, b: &Element) -> Element {
    let mut t = [_mm512_setzero_si512(); 10];
    for i in 0..5 {
        for j in 0..5 {
            t[i + j + 1] = high(t[i + j + 1], a.0[i], b.0[j]);
        }
    }
    for i in 1..10 {
        t[i] = _mm512_add_epi64(t[i], t[i]);
    }
    for i in 0..5 {
        for j in 0..5 {
            t[i + j] = low(t[i + j], a.0[i], b.0[j]);
        }
    }
    folded(t)
}

/// a².
#[target_feature(enable = "avx512f,avx512ifma")]
#[inline(never)]
pub(crate) fn square(a: &Element) -> Element {
    let mut t = [_mm512_setzero_si512(); 10];
    for i in 0..5 {
        for j in i + 1..5 {
            t[i + j + 1] = high(t[i + j + 1], a.0[i], a.0[j]);
        }
    }
    for i in 2..9 {
        t[i] = _mm512_add_epi64(t[i], t[i]);
    }
    for i in 0..5 {
        t[2 * i + 1] = high(t[2 * i + 1], a.0[i], a.0[i]);
        for j in i + 1..5 {
            t[i + j] = low(t[i + j], a.0[i], a.0[j]);
        }
    }
    for i in 1..10 {
        t[i] = _mm512_add_epi64(t[i], t[i]);
    }
    for i in 0..5 {
        t[2 * i] = low(t[2 * i], a.0[i], a.0[i]);
    }
    folded(t)
}

/// a·b for a b below 2^17.
#[target_feature(enable = "avx512f,avx512ifma")]
#[inline]
pub(crate) fn mul_small(a: &Element, b: u64) -> Element {
    let zero = _mm512_setzero_si512();
    let mut t = [zero; 5];
    for i in 0..5 {
        // The upper half of twice the product is what is above 51 bits.
        let above = high(zero, a.0[(i + 4) % 5], splat(2 * b));
        let above = if i == 0 { low(zero, above, splat(19)) } else { above };
        let below = _mm512_and_si512(low(zero, a.0[i], splat(b)), splat(LIMB));
        t[i] = _mm512_add_epi64(below, above);
    }
    carried(t)
}

/// a to the power of 2^N.
#[target_feature(enable = "avx512f,avx512ifma")]
fn squared<const N: usize>(a: &Element) -> Element {
    let mut out = *a;
    for _ in 0..N {
        out = square(&out);
    }
    out
}

/// a to the power of (p − 5)/8 = 2^252 − 3.
#[target_feature(enable = "avx512f,avx512ifma")]
pub(crate) fn power_2_252_3(a: &Element) -> Element {
    // Exponents 2^1 − 1, 2^2 − 1, 2^4 − 1, 2^5 − 1, then doubled lengths.
    let two = mul(&squared::<1>(a), a);
    let four = mul(&squared::<2>(&two), &two);
    let five = mul(&squared::<1>(&four), a);
    let ten = mul(&squared::<5>(&five), &five);
    let twenty = mul(&squared::<10>(&ten), &ten);
    let twenty_five = mul(&squared::<5>(&twenty), &five);
    let fifty = mul(&squared::<25>(&twenty_five), &twenty_five);
    let hundred = mul(&squared::<50>(&fifty), &fifty);
    let hundred_25 = mul(&squared::<25>(&hundred), &twenty_five);
    let all = mul(&squared::<125>(&hundred_25), &hundred_25);
    mul(&squared::<2>(&all), a)
}

/// The least residue, limbs below 2^51.
#[target_feature(enable = "avx512f,avx512ifma")]
pub(crate) fn least(a: &Element) -> Element {
    let once = straight(&straight(a, _mm512_setzero_si512()), _mm512_setzero_si512());
    // Now below 2^255; adding 19 carries out of it where the number is not below p.
    let mut carry = splat(19);
    for limb in &once.0 {
        carry = _mm512_srli_epi64::<BITS>(_mm512_add_epi64(*limb, carry));
    }
    let nineteen = _mm512_mullo_epi32(carry, splat(19));
    let mut out = once;
    let mut carry = nineteen;
    for limb in &mut out.0 {
        let sum = _mm512_add_epi64(*limb, carry);
        *limb = _mm512_and_si512(sum, splat(LIMB));
        carry = _mm512_srli_epi64::<BITS>(sum);
    }
    out
}

/// Carried from limb to limb, the last carry to the first limb.
#[target_feature(enable = "avx512f,avx512ifma")]
fn straight(a: &Element, first: V) -> Element {
    let mut out = *a;
    let mut carry = first;
    for limb in &mut out.0 {
        let sum = _mm512_add_epi64(*limb, carry);
        *limb = _mm512_and_si512(sum, splat(LIMB));
        carry = _mm512_srli_epi64::<BITS>(sum);
    }
    out.0[0] = low(out.0[0], carry, splat(19));
    out
}

/// The lanes that are zero.
#[target_feature(enable = "avx512f,avx512ifma")]
pub(crate) fn zeros(a: &Element) -> Mask {
    least(a).zeros()
}

/// Replaces numbers by their inverses, zeros by anything; gives the lanes of each vector that were zero. `scratch` is as
/// long as `numbers`.
#[target_feature(enable = "avx512f,avx512ifma")]
pub(crate) fn invert_all(
    numbers: &mut [Element],
    scratch: &mut [Element],
    mut report: impl FnMut(usize, Mask),
) {
    let mut product = small(1);
    for i in 0..numbers.len() {
        let mask = zeros(&numbers[i]);
        report(i, mask);
        numbers[i] = numbers[i].blend(mask, &small(1));
        scratch[i] = product;
        product = mul(&product, &numbers[i]);
    }
    let mut inverse = invert_lanes(&product);
    for i in (0..numbers.len()).rev() {
        let next = mul(&inverse, &numbers[i]);
        numbers[i] = mul(&inverse, &scratch[i]);
        inverse = next;
    }
}

/// The inverse of eight numbers, none of them zero: their product is inverted, and each lane gets it times the
/// product of the seven others.
#[target_feature(enable = "avx512f,avx512ifma")]
fn invert_lanes(a: &Element) -> Element {
    let far = rotated::<4, 5>(a);
    let pairs = mul(a, &far);
    let far_pairs = rotated::<2, 5>(&pairs);
    let fours = mul(&pairs, &far_pairs);
    let far_fours = rotated::<1, 5>(&fours);
    let all = least(&mul(&fours, &far_fours));
    let others = mul(&mul(&far, &far_pairs), &far_fours);
    let inverse = invert(&little_endian(&bytes(&take(&all.store(), 0))), &P);
    let mut plain = [0; 32];
    crate::field52::bytes::write_big_endian(&inverse, &mut plain);
    plain.reverse();
    mul(&Num::splat(&limbs(&plain)), &others)
}

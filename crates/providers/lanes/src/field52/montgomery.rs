// SPDX-License-Identifier: Apache-2.0
//! Multiplication modulo an odd number, after Montgomery ("Modular multiplication without trial division", 1985), with
//! R = 2^(52·N).
//!
//! Bounds: the product of numbers below a·M and b·M is below (a·b·M/R + 1)·M, and R ≥ 16·M. So the product of two
//! numbers below 4·M is below 2·M, and [`tidy`] gives numbers below 1.01·M. Every number is kept below 2·M unless its
//! maker says otherwise.

use super::modulus::{Form, Modulus};
use super::{BITS, Mask, Num, V, high, low, splat};
use core::arch::x86_64::*;

/// The widest product, in limbs.
const WIDE: usize = 16;

/// a·b/R.
#[target_feature(enable = "avx512f,avx512ifma")]
#[inline(never)]
pub(crate) fn mul<M: Modulus<N>, const N: usize>(a: &Num<N>, b: &Num<N>) -> Num<N> {
    let mut t = [_mm512_setzero_si512(); WIDE];
    for i in 0..N {
        for j in 0..N {
            t[i + j] = low(t[i + j], a.0[i], b.0[j]);
            t[i + j + 1] = high(t[i + j + 1], a.0[i], b.0[j]);
        }
    }
    reduce::<M, N>(t)
}

/// a²/R.
#[target_feature(enable = "avx512f,avx512ifma")]
#[inline(never)]
pub(crate) fn square<M: Modulus<N>, const N: usize>(a: &Num<N>) -> Num<N> {
    let mut t = [_mm512_setzero_si512(); WIDE];
    for i in 0..N {
        for j in i + 1..N {
            t[i + j] = low(t[i + j], a.0[i], a.0[j]);
            t[i + j + 1] = high(t[i + j + 1], a.0[i], a.0[j]);
        }
    }
    for i in 1..2 * N - 1 {
        t[i] = _mm512_add_epi64(t[i], t[i]);
    }
    for i in 0..N {
        t[2 * i] = low(t[2 * i], a.0[i], a.0[i]);
        t[2 * i + 1] = high(t[2 * i + 1], a.0[i], a.0[i]);
    }
    reduce::<M, N>(t)
}

/// t/R.
#[target_feature(enable = "avx512f,avx512ifma")]
#[inline]
fn reduce<M: Modulus<N>, const N: usize>(mut t: [V; WIDE]) -> Num<N> {
    match M::FORM {
        Form::General => clear_general::<M, N>(&mut t),
        Form::P256 => clear_p256::<N>(&mut t),
        Form::P384 => clear_p384::<N>(&mut t),
    }
    let mut out = Num([_mm512_setzero_si512(); N]);
    #[expect(clippy::manual_memcpy, reason = "as a copy in memory it would keep all limbs there")]
    for i in 0..N {
        out.0[i] = t[N + i];
    }
    out.carried()
}

#[target_feature(enable = "avx512f,avx512ifma")]
#[inline]
fn clear_general<M: Modulus<N>, const N: usize>(t: &mut [V; WIDE]) {
    for i in 0..N {
        let quotient = low(_mm512_setzero_si512(), t[i], splat(M::K0));
        for j in 0..N {
            t[i + j] = low(t[i + j], quotient, splat(M::M[j]));
            t[i + j + 1] = high(t[i + j + 1], quotient, splat(M::M[j]));
        }
        t[i + 1] = _mm512_add_epi64(t[i + 1], _mm512_srli_epi64::<BITS>(t[i]));
    }
}

/// The modulus is −1 modulo 2^96, so that the quotient is the limb itself, and adding the multiple leaves its carry.
#[target_feature(enable = "avx512f,avx512ifma")]
#[inline]
fn clear_p256<const N: usize>(t: &mut [V; WIDE]) {
    for i in 0..N {
        let quotient = t[i];
        t[i + 1] = low(t[i + 1], quotient, splat(1 << 44));
        t[i + 2] = high(t[i + 2], quotient, splat(1 << 44));
        t[i + 3] = low(t[i + 3], quotient, splat(1 << 36));
        t[i + 4] = high(t[i + 4], quotient, splat(1 << 36));
        t[i + 4] = low(t[i + 4], quotient, splat((1 << 48) - (1 << 16)));
        t[i + 5] = high(t[i + 5], quotient, splat((1 << 48) - (1 << 16)));
        t[i + 1] = _mm512_add_epi64(t[i + 1], _mm512_srli_epi64::<BITS>(quotient));
    }
}

/// The modulus is 2^384 − c, with c = 2^128 + 2^96 − 2^32 + 1 in three limbs; −M⁻¹ is 2^32 + 1 modulo 2^52.
#[target_feature(enable = "avx512f,avx512ifma")]
#[inline]
fn clear_p384<const N: usize>(t: &mut [V; WIDE]) {
    let c = [splat((1 << 52) - (1 << 32) + 1), splat((1 << 44) - 1), splat(1 << 24)];
    let mut less = [_mm512_setzero_si512(); WIDE];
    for i in 0..N {
        let limb = _mm512_sub_epi64(t[i], less[i]);
        let quotient = _mm512_add_epi64(limb, _mm512_slli_epi64::<32>(limb));
        let cleared = _mm512_sub_epi64(limb, low(_mm512_setzero_si512(), quotient, c[0]));
        t[i + 1] = _mm512_add_epi64(t[i + 1], _mm512_srai_epi64::<BITS>(cleared));
        less[i + 1] = high(less[i + 1], quotient, c[0]);
        for j in 1..3 {
            less[i + j] = low(less[i + j], quotient, c[j]);
            less[i + j + 1] = high(less[i + j + 1], quotient, c[j]);
        }
        t[i + 7] = low(t[i + 7], quotient, splat(1 << 20));
        t[i + 8] = high(t[i + 8], quotient, splat(1 << 20));
    }
    for i in N..N + 3 {
        t[i] = _mm512_sub_epi64(t[i], less[i]);
    }
}

/// Limbs that were added and subtracted without carrying, as a number below 1.01·M with its limbs carried; for the moduli with
/// a form. What was taken away is below 16·M, and no limb of it above 2^56; what was added is below 16·M.
#[target_feature(enable = "avx512f,avx512ifma")]
#[inline]
pub(crate) fn tidy<M: Modulus<N>, const N: usize>(a: &Num<N>) -> Num<N> {
    const { assert!(!matches!(M::FORM, Form::General)) };
    // The bits above 256 or 384 go down. The lower limbs are not negative, so neither is the result.
    let mut t = a.plus(&Num::splat(&M::SLACK)).0;
    if let Form::P256 = M::FORM {
        // 2^256 is 2^224 − 2^192 − 2^96 + 1.
        let top = _mm512_srai_epi64::<48>(t[4]);
        t[4] = _mm512_and_si512(t[4], splat((1 << 48) - 1));
        t[0] = _mm512_add_epi64(t[0], top);
        t[1] = _mm512_sub_epi64(t[1], _mm512_slli_epi64::<44>(top));
        t[3] = _mm512_sub_epi64(t[3], _mm512_slli_epi64::<36>(top));
        t[4] = _mm512_add_epi64(t[4], _mm512_slli_epi64::<16>(top));
    } else {
        // 2^384 is 2^128 + 2^96 − 2^32 + 1.
        let top = _mm512_srai_epi64::<20>(t[7]);
        t[7] = _mm512_and_si512(t[7], splat((1 << 20) - 1));
        t[0] = _mm512_sub_epi64(_mm512_add_epi64(t[0], top), _mm512_slli_epi64::<32>(top));
        t[1] = _mm512_add_epi64(t[1], _mm512_slli_epi64::<44>(top));
        t[2] = _mm512_add_epi64(t[2], _mm512_slli_epi64::<24>(top));
    }
    Num(t).carried()
}

/// The least residue of a number below 2·M with its limbs carried.
#[target_feature(enable = "avx512f,avx512ifma")]
#[inline]
pub(crate) fn least<M: Modulus<N>, const N: usize>(a: &Num<N>) -> Num<N> {
    let less = a.minus(&Num::splat(&M::M)).carried();
    let negative = negatives(less.0[N - 1]);
    less.blend(negative, a)
}

/// The lanes whose limb is negative.
#[target_feature(enable = "avx512f,avx512ifma")]
#[inline]
fn negatives(limb: V) -> Mask {
    _mm512_cmplt_epi64_mask(limb, _mm512_setzero_si512())
}

/// Into Montgomery form, of a number below 4·M.
#[target_feature(enable = "avx512f,avx512ifma")]
#[inline]
pub(crate) fn enter<M: Modulus<N>, const N: usize>(a: &Num<N>) -> Num<N> {
    mul::<M, N>(a, &Num::splat(&M::R2))
}

/// Out of Montgomery form: the least residue.
#[target_feature(enable = "avx512f,avx512ifma")]
#[inline]
pub(crate) fn leave<M: Modulus<N>, const N: usize>(a: &Num<N>) -> Num<N> {
    let mut one = [0; N];
    one[0] = 1;
    least::<M, N>(&mul::<M, N>(a, &Num::splat(&one)))
}

/// The lanes where a number below 2·M is zero modulo M.
#[target_feature(enable = "avx512f,avx512ifma")]
#[inline]
pub(crate) fn zero<M: Modulus<N>, const N: usize>(a: &Num<N>) -> Mask {
    least::<M, N>(a).zeros()
}

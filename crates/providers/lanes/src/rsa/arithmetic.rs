// SPDX-License-Identifier: Apache-2.0
//! Sums, differences and powers of eight numbers at a time.

use super::memory::LANES;
use super::multiply::{Block, MASK, Modulus, Number, multiply, square};
use core::arch::x86_64::*;

/// `value` becomes `value` + `other`; limbs have 52 bits afterwards, but for the highest, which keeps its carry.
#[target_feature(enable = "avx512f,avx512ifma")]
pub(super) fn add<const B: usize>(value: &mut Number<B>, other: &Number<B>) {
    let mask = _mm512_set1_epi64(MASK.cast_signed());
    let mut carry = _mm512_setzero_si512();
    for (limb, add) in value.as_flattened_mut().iter_mut().zip(other.as_flattened()) {
        let sum = _mm512_add_epi64(_mm512_add_epi64(*limb, *add), carry);
        carry = _mm512_srai_epi64::<52>(sum);
        *limb = _mm512_and_si512(sum, mask);
    }
}

/// `value` becomes `value` − `other`, wrapped; returns the lanes where `other` was larger.
#[target_feature(enable = "avx512f,avx512ifma")]
pub(super) fn subtract<const B: usize>(value: &mut Number<B>, other: &Number<B>) -> __mmask8 {
    let mask = _mm512_set1_epi64(MASK.cast_signed());
    let mut borrow = _mm512_setzero_si512();
    for (limb, less) in value.as_flattened_mut().iter_mut().zip(other.as_flattened()) {
        let difference = _mm512_add_epi64(_mm512_sub_epi64(*limb, *less), borrow);
        borrow = _mm512_srai_epi64::<52>(difference);
        *limb = _mm512_and_si512(difference, mask);
    }
    _mm512_cmplt_epi64_mask(borrow, _mm512_setzero_si512())
}

/// Takes `n` off where `value` is not less; `value` is below 2n. No branch: n is added again under a mask.
#[target_feature(enable = "avx512f,avx512ifma")]
pub(super) fn subtract_once<const B: usize>(value: &mut Number<B>, n: &Number<B>) {
    let mask = _mm512_set1_epi64(MASK.cast_signed());
    let less = subtract(value, n);
    let mut carry = _mm512_setzero_si512();
    for (limb, add) in value.as_flattened_mut().iter_mut().zip(n.as_flattened()) {
        let sum = _mm512_add_epi64(_mm512_mask_add_epi64(*limb, less, *limb, *add), carry);
        carry = _mm512_srli_epi64::<52>(sum);
        *limb = _mm512_and_si512(sum, mask);
    }
}

/// `value` becomes 2·`value` mod n; `value` is below n.
#[target_feature(enable = "avx512f,avx512ifma")]
pub(super) fn double<const B: usize>(value: &mut Number<B>, n: &Number<B>) {
    let same = *value;
    add(value, &same);
    subtract_once(value, n);
}

/// The lanes where both numbers have the same limbs.
#[target_feature(enable = "avx512f,avx512ifma")]
pub(super) fn equal<const B: usize>(one: &Number<B>, other: &Number<B>) -> __mmask8 {
    let pairs = one.as_flattened().iter().zip(other.as_flattened());
    pairs.fold(0xff, |same, (one, other)| same & _mm512_cmpeq_epi64_mask(*one, *other))
}

/// `value` becomes `base` to the power of `exponents`, in Montgomery form; `one` is R mod n. For public exponents: the time
/// tells the longest and where all have zeros.
#[target_feature(enable = "avx512f,avx512ifma")]
pub(super) fn power_public<const B: usize>(
    value: &mut Number<B>,
    base: &Number<B>,
    one: &Number<B>,
    exponents: &[u64; LANES],
    scratch: &mut Scratch<'_, B>,
    modulus: Modulus<'_, B>,
) {
    let all = exponents.iter().fold(0, |all, exponent| all | exponent);
    let length = 64 - all.leading_zeros();
    // The lanes whose exponent has a bit.
    let having = |bit: u32| {
        let lanes = exponents.iter().enumerate();
        lanes.fold(0, |mask: __mmask8, (lane, exponent)| {
            mask | u8::from(exponent >> bit & 1 == 1) << lane
        })
    };
    *value = *one;
    if length == 0 {
        return;
    }
    blend(value, base, having(length - 1));
    for bit in (0..length - 1).rev() {
        square(value, scratch.columns, modulus);
        match having(bit) {
            0 => {}
            0xff => multiply(value, base, scratch.columns, modulus),
            some => {
                *scratch.number = *value;
                multiply(scratch.number, base, scratch.columns, modulus);
                blend(value, scratch.number, some);
            }
        }
    }
}

/// Takes `other` in some lanes.
#[target_feature(enable = "avx512f,avx512ifma")]
fn blend<const B: usize>(value: &mut Number<B>, other: &Number<B>, lanes: __mmask8) {
    for (limb, other) in value.as_flattened_mut().iter_mut().zip(other.as_flattened()) {
        *limb = _mm512_mask_mov_epi64(*limb, lanes, *other);
    }
}

/// Memory that a computation may use, of any content.
pub(super) struct Scratch<'a, const B: usize> {
    pub(super) columns: &'a mut [Block],
    pub(super) number: &'a mut Number<B>,
}

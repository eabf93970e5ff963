// SPDX-License-Identifier: Apache-2.0
//! The moduli, and what is computed from them when this crate is compiled.

use super::{BITS, LIMB};

/// How multiples of the modulus are added to clear low limbs.
#[derive(Clone, Copy, Eq, PartialEq)]
pub(crate) enum Form {
    /// Any odd modulus.
    General,
    /// 2^256 − 2^224 + 2^192 + 2^96 − 1.
    P256,
    /// 2^384 − 2^128 − 2^96 + 2^32 − 1.
    P384,
}

/// An odd modulus of at most 52·N − 4 bits.
pub(crate) trait Modulus<const N: usize>: Copy {
    /// The modulus.
    const M: [u64; N];
    /// Whether it has a shape that saves work.
    const FORM: Form;

    /// −M⁻¹ modulo 2^52.
    const K0: u64 = negative_inverse(Self::M[0]);
    /// R = 2^(52·N), modulo M.
    const ONE: [u64; N] = power_of_two(&Self::M, BITS as usize * N);
    /// R², modulo M: a product with it converts to Montgomery form.
    const R2: [u64; N] = power_of_two(&Self::M, 2 * BITS as usize * N);
    /// R³, modulo M.
    const R3: [u64; N] = power_of_two(&Self::M, 3 * BITS as usize * N);
    /// 16·M, its limbs but the last enlarged so that none becomes negative when limbs below 2^56 are
    /// taken away.
    const SLACK: [u64; N] = slack(&Self::M);
}

const fn negative_inverse(m: u64) -> u64 {
    let mut inverse = 1_u64;
    let mut i = 0;
    while i < 6 {
        inverse = inverse.wrapping_mul(2_u64.wrapping_sub(m.wrapping_mul(inverse)));
        i += 1;
    }
    inverse.wrapping_neg() & LIMB
}

/// `a − b` with the limbs carried, and whether it is negative.
pub(crate) const fn difference<const N: usize>(a: &[u64; N], b: &[u64; N]) -> ([u64; N], bool) {
    let mut out = [0; N];
    let mut borrow = 0_u64;
    let mut i = 0;
    while i < N {
        let limb = a[i].wrapping_sub(b[i]).wrapping_sub(borrow);
        out[i] = limb & LIMB;
        borrow = limb >> 63;
        i += 1;
    }
    (out, borrow == 1)
}

/// 2^`exponent` modulo `m`.
const fn power_of_two<const N: usize>(m: &[u64; N], exponent: usize) -> [u64; N] {
    let mut value = [0; N];
    value[0] = 1;
    let mut step = 0;
    while step < exponent {
        let mut carry = 0;
        let mut i = 0;
        while i < N {
            let limb = (value[i] << 1) | carry;
            value[i] = limb & LIMB;
            carry = limb >> BITS;
            i += 1;
        }
        let (less, negative) = difference(&value, m);
        if !negative {
            value = less;
        }
        step += 1;
    }
    value
}

const fn slack<const N: usize>(m: &[u64; N]) -> [u64; N] {
    let mut out = [0; N];
    let mut i = 0;
    while i < N {
        // Limbs of 16·M without carrying; 2^57 is lent by the limb above, which pays 32.
        out[i] = (m[i] << 4)
            .wrapping_add(if i + 1 < N { 1 << 57 } else { 0 })
            .wrapping_sub(if i > 0 { 1 << 5 } else { 0 });
        i += 1;
    }
    out
}

/// A number written as bytes, most significant first, in limbs.
pub(crate) const fn limbs<const N: usize>(bytes: &[u8]) -> [u64; N] {
    let mut out = [0; N];
    let mut i = 0;
    while i < bytes.len() {
        let byte = bytes[bytes.len() - 1 - i] as u64;
        let (limb, bit) = (8 * i / BITS as usize, 8 * i % BITS as usize);
        out[limb] |= (byte << bit) & LIMB;
        if bit > BITS as usize - 8 {
            out[limb + 1] |= byte >> (BITS as usize - bit);
        }
        i += 1;
    }
    out
}

/// A number written in hexadecimal, most significant digit first, in limbs.
pub(crate) const fn hex<const N: usize>(digits: &str) -> [u64; N] {
    let digits = digits.as_bytes();
    let mut out = [0; N];
    let mut i = 0;
    while i < digits.len() {
        let digit = digits[digits.len() - 1 - i];
        let value = (if digit <= b'9' { digit - b'0' } else { digit - b'a' + 10 }) as u64;
        // 52 is a multiple of 4: a digit lies within a limb.
        out[4 * i / BITS as usize] |= value << (4 * i % BITS as usize);
        i += 1;
    }
    out
}

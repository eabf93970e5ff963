// SPDX-License-Identifier: Apache-2.0
//! Integers modulo the order of the base point: Montgomery's multiplication, inverses of several at once, random numbers, bytes.
//!
//! Constant time: no branch or address depends on a value; whether a candidate lies in range is the one thing that
//! shows, of candidates that are then thrown away or of keys that are then refused.
#![expect(clippy::cast_possible_truncation, reason = "double words are cut into their words")]

use super::bytes::{from_bytes, to_bytes};
use super::field::LANES;
use super::inverse::inverse;
use metaslot_awslc_wrapper::{Result, cleanse, random};

/// n, an odd prime below 2^(64 W), and what Montgomery's multiplication needs of it. R is 2^(64 W).
#[derive(Debug)]
pub(super) struct Order<const W: usize> {
    pub(super) n: [u64; W],
    pub(super) bits: usize,
    /// -1/n mod 2^64
    pub(super) factor: u64,
    /// R² mod n
    square: [u64; W],
}

/// Bytes of the longest order.
const BYTES: usize = 72;
/// How many candidates for random numbers are drawn at once.
const CANDIDATES: usize = 20;

impl<const W: usize> Order<W> {
    pub(super) const fn new(n: [u64; W]) -> Self {
        let mut top = W - 1;
        while n[top] == 0 {
            top -= 1;
        }
        // Newton's iteration: each round doubles the number of correct bits, 3 to begin with.
        let mut inverse = n[0];
        let mut round = 0;
        while round < 5 {
            inverse = inverse.wrapping_mul(2_u64.wrapping_sub(n[0].wrapping_mul(inverse)));
            round += 1;
        }
        let mut square = [0; W];
        square[0] = 1;
        let mut doubled = 0;
        while doubled < 128 * W {
            square = add(&square, &square, &n);
            doubled += 1;
        }
        let bits = 64 * top + n[top].ilog2() as usize + 1;
        Self { n, bits, factor: inverse.wrapping_neg(), square }
    }

    /// Bytes of a number below n.
    pub(super) const fn length(&self) -> usize {
        self.bits.div_ceil(8)
    }

    /// a + b mod n, of numbers below n.
    pub(super) const fn add(&self, a: &[u64; W], b: &[u64; W]) -> [u64; W] {
        add(a, b, &self.n)
    }

    /// ab/R mod n, where one factor is below n and the other below R.
    #[inline(never)]
    pub(super) fn mul(&self, a: &[u64; W], b: &[u64; W]) -> [u64; W] {
        let mut sum = [0; W];
        let mut above = 0_u64;
        for b in b {
            let mut carry = 0;
            for (sum, a) in sum.iter_mut().zip(a) {
                (*sum, carry) = multiply_add(*a, *b, *sum, carry);
            }
            let (top, over) = above.overflowing_add(carry);
            // The multiple of n that makes the lowest word zero; the sum moves down by that word.
            let multiple = sum[0].wrapping_mul(self.factor);
            (_, carry) = multiply_add(multiple, self.n[0], sum[0], 0);
            for at in 1..W {
                (sum[at - 1], carry) = multiply_add(multiple, self.n[at], sum[at], carry);
            }
            let (top, more) = top.overflowing_add(carry);
            sum[W - 1] = top;
            above = u64::from(over) + u64::from(more);
        }
        subtract_once(&sum, above, &self.n)
    }

    /// aR mod n, of any a below R.
    pub(super) fn to_montgomery(&self, a: &[u64; W]) -> [u64; W] {
        self.mul(&self.square, a)
    }

    /// a mod n, of any a below R.
    pub(super) fn reduce(&self, a: &[u64; W]) -> [u64; W] {
        let mut one = [0; W];
        one[0] = 1;
        self.mul(&self.to_montgomery(a), &one)
    }

    /// Whether 1 <= a < n.
    pub(super) fn contains(&self, a: &[u64; W]) -> bool {
        let mut borrow = false;
        for (a, n) in a.iter().zip(&self.n) {
            let (less, first) = a.overflowing_sub(*n);
            let (_, second) = less.overflowing_sub(u64::from(borrow));
            borrow = first | second;
        }
        borrow & (a.iter().fold(0, |any, word| any | word) != 0)
    }

    /// A number in its big-endian bytes, if 1 <= a < n.
    pub(super) fn parse(&self, bytes: &[u8]) -> Option<[u64; W]> {
        let head = bytes.len().saturating_sub(8 * W);
        let any = bytes[..head].iter().fold(0, |any, byte| any | byte);
        let value = from_bytes(&bytes[head..]);
        (any == 0 && self.contains(&value)).then_some(value)
    }

    /// Random numbers from 1 to n - 1 (FIPS 186-5, A.2.2 and A.3.2: by rejection, at most of every other candidate).
    pub(super) fn random(&self, out: &mut [[u64; W]]) -> Result<()> {
        let mut bytes = [0; CANDIDATES * BYTES];
        let mut filled = 0;
        let mut answer = Ok(());
        while filled < out.len() && answer.is_ok() {
            let candidates = CANDIDATES.min(2 * (out.len() - filled) + 4);
            let bytes = &mut bytes[..self.length() * candidates];
            answer = random::fill(bytes);
            for candidate in bytes.chunks_exact_mut(self.length()) {
                candidate[0] &= u8::MAX >> (8 * self.length() - self.bits);
                if let Some(value) = self.parse(candidate).filter(|_| filled < out.len()) {
                    out[filled] = value;
                    filled += 1;
                }
            }
        }
        cleanse(&mut bytes);
        answer
    }

    /// The leftmost bits of a digest as a number (FIPS 186-5, 6.4.1), reduced.
    pub(super) fn digest(&self, digest: &[u8]) -> [u64; W] {
        let digest = &digest[..digest.len().min(self.length())];
        let mut value = from_bytes::<W>(digest);
        let surplus = (8 * digest.len()).saturating_sub(self.bits);
        for at in 0..W {
            let next = value.get(at + 1).copied().unwrap_or(0);
            value[at] = value[at] >> surplus | ((next << 1) << (63 - surplus));
        }
        self.reduce(&value)
    }

    pub(super) fn write(&self, value: &[u64; W], out: &mut [u8]) {
        debug_assert_eq!(out.len(), self.length());
        to_bytes(value, out);
    }

    /// Replaces each a by R²/a mod n, which is the inverse where numbers stand for their multiple by R. None may be zero: all
    /// are multiplied together, so that one inversion does for all (Montgomery's trick).
    pub(super) fn invert(&self, values: &mut [[u64; W]]) {
        let mut before = [[0; W]; LANES];
        let Some((first, rest)) = values.split_first() else { return };
        let mut product = *first;
        for (before, value) in before[1..].iter_mut().zip(rest) {
            *before = product;
            product = self.mul(&product, value);
        }
        // 1/(aR), which two multiplications by R²/R make R/a.
        let inverse = inverse(&product, &self.n, self.bits, self.factor);
        let mut inverse = self.to_montgomery(&self.to_montgomery(&inverse));
        for (before, value) in before[..values.len()].iter().zip(values.iter_mut()).skip(1).rev() {
            let one = self.mul(before, &inverse);
            inverse = self.mul(&inverse, value);
            *value = one;
        }
        values[0] = inverse;
    }
}

/// ab + c + d in two words.
#[inline]
const fn multiply_add(a: u64, b: u64, c: u64, d: u64) -> (u64, u64) {
    let sum = a as u128 * b as u128 + c as u128 + d as u128;
    (sum as u64, (sum >> 64) as u64)
}

const fn add<const W: usize>(a: &[u64; W], b: &[u64; W], n: &[u64; W]) -> [u64; W] {
    let mut sum = [0; W];
    let mut carry = 0;
    let mut at = 0;
    while at < W {
        let term = a[at] as u128 + b[at] as u128 + carry;
        sum[at] = term as u64;
        carry = term >> 64;
        at += 1;
    }
    subtract_once(&sum, carry as u64, n)
}

/// What `sum` with the word `above` is modulo n, if it is below 2n.
const fn subtract_once<const W: usize>(sum: &[u64; W], above: u64, n: &[u64; W]) -> [u64; W] {
    let mut less = [0; W];
    let mut borrow = 0;
    let mut at = 0;
    while at < W {
        let term = (sum[at] as u128).wrapping_sub(n[at] as u128 + borrow);
        less[at] = term as u64;
        borrow = term >> 127;
        at += 1;
    }
    // `above` is 0 or 1, and 1 only with a borrow.
    let mask = (borrow as u64 ^ above).wrapping_neg();
    at = 0;
    while at < W {
        less[at] ^= (less[at] ^ sum[at]) & mask;
        at += 1;
    }
    less
}

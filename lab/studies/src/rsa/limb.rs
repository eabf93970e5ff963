// SPDX-License-Identifier: Apache-2.0
//! What numbers are made of: 32 or 64 bits.

/// A limb.
pub(super) trait Limb: Copy + Default + PartialEq + PartialOrd + Send + 'static {
    /// The names of the row functions with this limb.
    const NAMES: [&'static str; 2];
    /// One.
    const ONE: Self;

    /// `self × digit + add + carry`: the limb, and what is carried to the next.
    fn multiply_add(self, digit: Self, add: Self, carry: Self) -> (Self, Self);
    /// The low half of the product.
    fn low(self, other: Self) -> Self;
    /// Sum and carry.
    fn plus(self, other: Self, carry: bool) -> (Self, bool);
    /// Difference and borrow.
    fn minus(self, other: Self, borrow: bool) -> (Self, bool);
    /// The limb times two, and the bit that is carried.
    fn doubled(self, carry: bool) -> (Self, bool) {
        self.plus(self, carry)
    }
    /// -1/self modulo 2^bits, of an odd limb.
    fn negated_inverse(self) -> Self;
    /// Limbs of a number, into a slice.
    fn read(limbs: &[u64], to: &mut [Self]);
    /// The number, of limbs.
    fn write(limbs: &[Self]) -> Vec<u64>;
}

/// Newton's iteration: each step doubles the bits that are right, of which the first are three.
fn inverse(odd: u64) -> u64 {
    let step = |x: u64, _| x.wrapping_mul(2_u64.wrapping_sub(odd.wrapping_mul(x)));
    (0..5).fold(odd, step)
}

impl Limb for u32 {
    const NAMES: [&'static str; 2] = ["mul_add_vec, 32 bits", "sqr_vec, 32 bits"];
    const ONE: Self = 1;

    #[inline(always)]
    #[expect(clippy::cast_possible_truncation, reason = "the halves of a product")]
    fn multiply_add(self, digit: Self, add: Self, carry: Self) -> (Self, Self) {
        // Cannot overflow: (2^32 - 1)^2 + 2 (2^32 - 1) = 2^64 - 1.
        let product = u64::from(self).wrapping_mul(u64::from(digit));
        let sum = product.wrapping_add(u64::from(add)).wrapping_add(u64::from(carry));
        (sum as Self, (sum >> 32) as Self)
    }

    fn low(self, other: Self) -> Self {
        self.wrapping_mul(other)
    }

    #[inline(always)]
    fn plus(self, other: Self, carry: bool) -> (Self, bool) {
        let (one, first) = self.overflowing_add(other);
        let (two, second) = one.overflowing_add(Self::from(carry));
        (two, first || second)
    }

    #[inline(always)]
    fn minus(self, other: Self, borrow: bool) -> (Self, bool) {
        let (one, first) = self.overflowing_sub(other);
        let (two, second) = one.overflowing_sub(Self::from(borrow));
        (two, first || second)
    }

    #[expect(clippy::cast_possible_truncation, reason = "the low half")]
    fn negated_inverse(self) -> Self {
        (inverse(u64::from(self)) as Self).wrapping_neg()
    }

    #[expect(clippy::cast_possible_truncation, reason = "the halves of a limb")]
    fn read(limbs: &[u64], to: &mut [Self]) {
        let halves = limbs.iter().flat_map(|limb| [*limb as Self, (limb >> 32) as Self]);
        to.iter_mut().zip(halves).for_each(|(to, half)| *to = half);
    }

    fn write(limbs: &[Self]) -> Vec<u64> {
        limbs.chunks(2).map(|pair| u64::from(pair[1]) << 32 | u64::from(pair[0])).collect()
    }
}

impl Limb for u64 {
    const NAMES: [&'static str; 2] = ["mul_add_vec, 64 bits", "sqr_vec, 64 bits"];
    const ONE: Self = 1;

    #[inline(always)]
    fn multiply_add(self, digit: Self, add: Self, carry: Self) -> (Self, Self) {
        self.carrying_mul_add(digit, add, carry)
    }

    fn low(self, other: Self) -> Self {
        self.wrapping_mul(other)
    }

    #[inline(always)]
    fn plus(self, other: Self, carry: bool) -> (Self, bool) {
        let (one, first) = self.overflowing_add(other);
        let (two, second) = one.overflowing_add(Self::from(carry));
        (two, first || second)
    }

    #[inline(always)]
    fn minus(self, other: Self, borrow: bool) -> (Self, bool) {
        let (one, first) = self.overflowing_sub(other);
        let (two, second) = one.overflowing_sub(Self::from(borrow));
        (two, first || second)
    }

    fn negated_inverse(self) -> Self {
        inverse(self).wrapping_neg()
    }

    fn read(limbs: &[u64], to: &mut [Self]) {
        to.iter_mut().zip(limbs).for_each(|(to, limb)| *to = *limb);
    }

    fn write(limbs: &[Self]) -> Vec<u64> {
        limbs.to_vec()
    }
}

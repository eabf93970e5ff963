// SPDX-License-Identifier: Apache-2.0
//! The field that GHASH computes in (SP 800-38D §6.3): an element is 16 bytes, its first bit the
//! coefficient of 1.

/// An element.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) struct Element(u128);

impl Element {
    pub(crate) const ONE: Self = Self(1 << 127);

    pub(crate) fn of(bytes: &[u8]) -> Self {
        let mut block = [0; 16];
        block[..bytes.len().min(16)].copy_from_slice(&bytes[..bytes.len().min(16)]);
        Self(u128::from_be_bytes(block))
    }

    pub(crate) const fn bytes(self) -> [u8; 16] {
        self.0.to_be_bytes()
    }

    pub(crate) const fn plus(self, other: Self) -> Self {
        Self(self.0 ^ other.0)
    }

    pub(crate) fn times(self, other: Self) -> Self {
        let (mut product, mut shifted) = (0, other.0);
        for bit in 0..128 {
            if self.0 >> (127 - bit) & 1 == 1 {
                product ^= shifted;
            }
            let reduce = shifted & 1 == 1;
            shifted >>= 1;
            if reduce {
                shifted ^= 0xe1 << 120;
            }
        }
        Self(product)
    }

    /// Squaring 127 times is squaring backwards: the field has 2¹²⁸ elements.
    pub(crate) fn root(self) -> Self {
        (0..127).fold(self, |power, _| power.times(power))
    }

    /// The power of 2¹²⁸ − 2.
    pub(crate) fn inverse(self) -> Self {
        let (mut power, mut product) = (self, Self::ONE);
        for _ in 0..127 {
            power = power.times(power);
            product = product.times(power);
        }
        product
    }
}

#[test]
fn elements_have_roots_and_inverses() {
    let some = Element::of(b"some element ...");
    assert_eq!(some.times(some).root(), some);
    assert_eq!(some.times(some.inverse()), Element::ONE);
}

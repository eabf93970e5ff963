// SPDX-License-Identifier: Apache-2.0
//! Numbers outside of the exponentiations: read, written, multiplied and added once.

/// Limbs of a number in hexadecimal, of a multiple of 16 digits.
pub(super) fn from_hex(text: &str) -> Vec<u64> {
    let digit = |byte: u8| char::from(byte).to_digit(16).map_or(0, u64::from);
    let limb = |digits: &[u8]| digits.iter().fold(0, |sum, byte| sum << 4 | digit(*byte));
    text.as_bytes().rchunks(16).map(limb).collect()
}

/// Limbs of bytes, the most significant first.
pub(super) fn from_bytes(bytes: &[u8]) -> Vec<u64> {
    let limb = |bytes: &[u8]| bytes.iter().fold(0, |sum, byte| sum << 8 | u64::from(*byte));
    bytes.rchunks(8).map(limb).collect()
}

/// Bytes of limbs, the most significant first.
pub(super) fn to_bytes(limbs: &[u64]) -> Vec<u8> {
    limbs.iter().rev().flat_map(|limb| limb.to_be_bytes()).collect()
}

/// A product, as long as both together.
pub(super) fn product(a: &[u64], b: &[u64]) -> Vec<u64> {
    let mut sum = vec![0; a.len() + b.len()];
    for (at, digit) in b.iter().enumerate() {
        let mut carry = 0;
        for (to, limb) in sum[at..].iter_mut().zip(a) {
            (*to, carry) = limb.carrying_mul_add(*digit, *to, carry);
        }
        sum[at + a.len()] = carry;
    }
    sum
}

/// Adds a shorter number, whose sum fits.
pub(super) fn add(sum: &mut [u64], other: &[u64]) {
    let mut carry = false;
    let others = other.iter().copied().chain(std::iter::repeat(0));
    for (to, limb) in sum.iter_mut().zip(others) {
        let (one, first) = to.overflowing_add(limb);
        let (two, second) = one.overflowing_add(u64::from(carry));
        (*to, carry) = (two, first || second);
    }
}

/// `a - b`, or `a - b + modulus` where that is below zero; all of one length.
pub(super) fn difference(a: &[u64], b: &[u64], modulus: &[u64]) -> Vec<u64> {
    let mut result = a.to_vec();
    if subtract(&mut result, b) {
        add(&mut result, modulus);
    }
    result
}

/// Subtracts in place, and says whether it went below zero.
pub(super) fn subtract(a: &mut [u64], b: &[u64]) -> bool {
    let mut borrow = false;
    for (to, limb) in a.iter_mut().zip(b) {
        let (one, first) = to.overflowing_sub(*limb);
        let (two, second) = one.overflowing_sub(u64::from(borrow));
        (*to, borrow) = (two, first || second);
    }
    borrow
}

/// Twice a number, modulo the modulus.
pub(super) fn doubled(number: &[u64], modulus: &[u64]) -> Vec<u64> {
    let (mut twice, mut carry) = (number.to_vec(), false);
    for limb in &mut twice {
        (*limb, carry) = (*limb << 1 | u64::from(carry), *limb >> 63 == 1);
    }
    let mut less = twice.clone();
    if !subtract(&mut less, modulus) || carry { less } else { twice }
}

/// Montgomery's radix modulo the modulus: one, doubled as often as there are bits.
pub(super) fn radix(modulus: &[u64]) -> Vec<u64> {
    let mut one = vec![0; modulus.len()];
    one[0] = 1;
    (0..modulus.len() * 64).fold(one, |number, _| doubled(&number, modulus))
}

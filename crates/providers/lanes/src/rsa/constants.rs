// SPDX-License-Identifier: Apache-2.0
//! What Montgomery's reduction wants to know about a modulus, computed with the kernel itself, in its first lane.

use super::arithmetic::{Scratch, double, power_public, subtract};
use super::memory::{LANES, Memory, lanes, limb, limbs, put, take};
use super::multiply::{BLOCK, MASK, Modulus, Number, RADIX, multiply};

/// Bytes of the limbs of a number of `blocks` blocks.
pub(super) const fn length(blocks: usize) -> usize {
    blocks * BLOCK * 8
}

/// A modulus and its powers of R, in the form of [`limbs`].
#[derive(Clone, Copy)]
pub(super) enum Part {
    /// n
    Modulus,
    /// R mod n, which is 1 in Montgomery form
    One,
    /// R² mod n, below 2n
    Square,
    /// R³ mod n, below 2n
    Cube,
}

/// How many of them.
pub(super) const PARTS: usize = 4;

/// One of them.
pub(super) fn part(parts: &[u8], part: Part) -> &[u8] {
    let length = parts.len() / PARTS;
    &parts[part as usize * length..][..length]
}

/// Writes all parts to `out`, one after the other. `n` is odd, big-endian, without leading zero bits.
#[target_feature(enable = "avx512f,avx512ifma")]
pub(super) fn compute<const B: usize>(n: &[u8], out: &mut [u8]) {
    let mut memory = Memory::of_blocks(6 * B + 1);
    let mut rest = memory.blocks();
    let modulus: &mut Number<B> = take(&mut rest);
    let one: &mut Number<B> = take(&mut rest);
    let power: &mut Number<B> = take(&mut rest);
    let number: &mut Number<B> = take(&mut rest);
    let k0: &mut Number<1> = take(&mut rest);
    put(modulus, 0, n);
    lanes(k0)[0][0] = k0_of(limb(n, 0));
    // 2^bits − n is below n, and a few doublings from R.
    let bits = 8 * n.len();
    lanes(one)[bits / RADIX][0] = 1 << (bits % RADIX);
    subtract(one, modulus);
    for _ in bits..B * BLOCK * RADIX {
        double(one, modulus);
    }
    let mut parts = out.chunks_exact_mut(length(B));
    let mut keep = |number: &mut Number<B>| {
        if let Some(out) = parts.next() {
            limbs(number, 0, out);
        }
    };
    keep(modulus);
    keep(one);
    // In Montgomery form 2 is 2R, and R, which is 2^(520·B), is R².
    let mut two = Memory::of_blocks(B);
    let two: &mut Number<B> = take(&mut two.blocks());
    *two = *one;
    double(two, modulus);
    let modulus = Modulus { n: modulus, k0: &k0[0][0] };
    let exponents = [(B * BLOCK * RADIX) as u64; LANES];
    let mut scratch = Scratch { columns: rest, number };
    power_public(power, two, one, &exponents, &mut scratch, modulus);
    keep(power);
    *two = *power;
    multiply(power, two, scratch.columns, modulus);
    keep(power);
}

/// −n⁻¹ mod 2⁵² from the lowest limb of n.
pub(super) const fn k0_of(limb: u64) -> u64 {
    // Newton: each step doubles the number of right bits, and an odd number is its own inverse to three bits.
    let mut inverse = limb;
    let mut step = 0;
    while step < 5 {
        inverse = inverse.wrapping_mul(2_u64.wrapping_sub(limb.wrapping_mul(inverse)));
        step += 1;
    }
    inverse.wrapping_neg() & MASK
}

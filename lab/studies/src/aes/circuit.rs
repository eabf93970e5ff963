// SPDX-License-Identifier: Apache-2.0
//! The substitution of AES as a circuit of 113 gates: J. Boyar, R. Peralta, "A small depth-16 circuit for
//! the AES S-box" (2012) and its predecessor of 2010. The names of its wires are the paper's: x goes in,
//! y is the linear layer before the inversion, t and z are inside, s comes out.

use std::ops::{BitAnd, BitXor, Not};

/// Bits 0 to 7 of as many bytes as fit, substituted.
#[inline(always)]
pub(super) fn substitute<T>(bits: [T; 8]) -> [T; 8]
where
    T: BitXor<Output = T> + BitAnd<Output = T> + Not<Output = T> + Copy,
{
    let [x7, x6, x5, x4, x3, x2, x1, x0] = bits;
    let (y14, y13, y9, y8) = (x3 ^ x5, x0 ^ x6, x0 ^ x3, x0 ^ x5);
    let t0 = x1 ^ x2;
    let y1 = t0 ^ x7;
    let (y4, y12, y2, y5) = (y1 ^ x3, y13 ^ y14, y1 ^ x0, y1 ^ x6);
    let (y3, t1) = (y5 ^ y8, x4 ^ y12);
    let (y15, y20) = (t1 ^ x5, t1 ^ x1);
    let (y6, y10, y11) = (y15 ^ x7, y15 ^ t0, y20 ^ y9);
    let (y7, y17, y19, y16) = (x7 ^ y11, y10 ^ y11, y10 ^ y8, t0 ^ y11);
    let (y21, y18) = (y13 ^ y16, x0 ^ y16);
    // The inversion.
    let (t2, t3) = (y12 & y15, y3 & y6);
    let (t4, t5) = (t3 ^ t2, y4 & x7);
    let (t6, t7, t8) = (t5 ^ t2, y13 & y16, y5 & y1);
    let (t9, t10) = (t8 ^ t7, y2 & y7);
    let (t11, t12, t13) = (t10 ^ t7, y9 & y11, y14 & y17);
    let (t14, t15) = (t13 ^ t12, y8 & y10);
    let (t16, t17) = (t15 ^ t12, t4 ^ t14);
    let (t18, t19, t20, t21) = (t6 ^ t16, t9 ^ t14, t11 ^ t16, t17 ^ y20);
    let (t22, t23, t24) = (t18 ^ y19, t19 ^ y21, t20 ^ y18);
    let (t25, t26) = (t21 ^ t22, t21 & t23);
    let t27 = t24 ^ t26;
    let t28 = t25 & t27;
    let (t29, t30, t31) = (t28 ^ t22, t23 ^ t24, t22 ^ t26);
    let t32 = t31 & t30;
    let t33 = t32 ^ t24;
    let (t34, t35) = (t23 ^ t33, t27 ^ t33);
    let t36 = t24 & t35;
    let (t37, t38) = (t36 ^ t34, t27 ^ t36);
    let t39 = t29 & t38;
    let t40 = t25 ^ t39;
    let (t41, t42, t43, t44) = (t40 ^ t37, t29 ^ t33, t29 ^ t40, t33 ^ t37);
    let t45 = t42 ^ t41;
    // The linear layer behind it.
    let (z0, z1, z2, z3) = (t44 & y15, t37 & y6, t33 & x7, t43 & y16);
    let (z4, z5, z6, z7) = (t40 & y1, t29 & y7, t42 & y11, t45 & y17);
    let (z8, z9, z10, z11) = (t41 & y10, t44 & y12, t37 & y3, t33 & y4);
    let (z12, z13, z14, z15) = (t43 & y13, t40 & y5, t29 & y2, t42 & y9);
    let (z16, z17) = (t45 & y14, t41 & y8);
    let (t46, t47, t48, t49) = (z15 ^ z16, z10 ^ z11, z5 ^ z13, z9 ^ z10);
    let (t50, t51, t52, t53) = (z2 ^ z12, z2 ^ z5, z7 ^ z8, z0 ^ z3);
    let (t54, t55, t56, t57) = (z6 ^ z7, z16 ^ z17, z12 ^ t48, t50 ^ t53);
    let (t58, t59, t60, t61) = (z4 ^ t46, z3 ^ t54, t46 ^ t57, z14 ^ t57);
    let (t62, t63, t64) = (t52 ^ t58, t49 ^ t58, z4 ^ t59);
    let (t65, t66) = (t61 ^ t62, z1 ^ t63);
    let (t67, s3) = (t64 ^ t65, t53 ^ t66);
    [t48 ^ !t60, t56 ^ !t62, t47 ^ t65, t51 ^ t66, s3, t55 ^ !t67, t64 ^ !s3, t59 ^ t63]
}

/// Undone: with the circuit itself, between two inverses of its affine part (FIPS 197, section 5.3.2).
#[inline(always)]
pub(super) fn restore<T>(bits: [T; 8]) -> [T; 8]
where
    T: BitXor<Output = T> + BitAnd<Output = T> + Not<Output = T> + Copy,
{
    unturned(substitute(unturned(bits)))
}

/// The affine part undone: 0x63 is added, and each bit is the sum of those two, five and seven above.
#[inline(always)]
fn unturned<T: BitXor<Output = T> + Not<Output = T> + Copy>(mut bits: [T; 8]) -> [T; 8] {
    for at in [0, 1, 5, 6] {
        bits[at] = !bits[at];
    }
    [0, 1, 2, 3, 4, 5, 6, 7].map(|at| bits[(at + 2) % 8] ^ bits[(at + 5) % 8] ^ bits[(at + 7) % 8])
}

#[cfg(test)]
mod tests {
    use super::super::field::SBOX;
    use super::*;

    fn byte(bits: [u8; 8]) -> u8 {
        bits.iter().enumerate().fold(0, |sum, (at, bit)| sum | (bit & 1) << at)
    }

    #[test]
    fn every_byte_is_substituted_and_restored() {
        for value in 0..=u8::MAX {
            let bits = [0, 1, 2, 3, 4, 5, 6, 7].map(|at| value >> at & 1);
            let substituted = substitute(bits);
            assert_eq!(byte(substituted), SBOX[usize::from(value)]);
            assert_eq!(byte(restore(substituted)), value);
        }
    }
}

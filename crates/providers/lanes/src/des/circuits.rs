// SPDX-License-Identifier: Apache-2.0
//! Table: the S-boxes of DES (FIPS 46-3) as circuits of three-input gates, printed by `examples/des_circuits.rs`.
//!
//! Inputs come in the standard's order, the leftmost of the six bits first; so do outputs. A gate's number is its truth table, as in the
//! instruction VPTERNLOG: bit 4a + 2b + c is its value. 215 gates in all.

use super::word::Word;

/// S1: 30 gates.
#[inline(always)]
pub(super) fn s1<W: Word>(x: [W; 6]) -> [W; 4] {
    let g6 = W::gate::<0x27>(x[5], x[4], x[3]);
    let g7 = W::gate::<0x96>(g6, x[5], x[2]);
    let g8 = W::gate::<0x6d>(g7, g6, x[4]);
    let g9 = W::gate::<0xd2>(g8, x[5], x[3]);
    let g10 = W::gate::<0xac>(x[0], g7, g9);
    let g11 = W::gate::<0xbf>(g10, g7, g6);
    let g12 = W::gate::<0x96>(g11, x[3], x[0]);
    let g13 = W::gate::<0xef>(g12, x[2], x[0]);
    let g14 = W::gate::<0xcb>(x[4], g12, g13);
    let g15 = W::gate::<0xc6>(x[1], g10, g14);
    let g16 = W::gate::<0x5b>(g12, g9, x[2]);
    let g17 = W::gate::<0xb1>(g16, g10, g6);
    let g18 = W::gate::<0xe4>(x[3], x[2], x[0]);
    let g19 = W::gate::<0x78>(g18, g13, x[5]);
    let g20 = W::gate::<0xac>(x[4], g17, g19);
    let g21 = W::gate::<0x8f>(g12, x[4], x[3]);
    let g22 = W::gate::<0xf8>(g21, g17, g10);
    let g23 = W::gate::<0x6c>(x[1], g20, g22);
    let g24 = W::gate::<0x96>(g22, g10, x[1]);
    let g25 = W::gate::<0x4b>(g21, g17, x[1]);
    let g26 = W::gate::<0xf9>(g25, g18, x[0]);
    let g27 = W::gate::<0xac>(g23, g24, g26);
    let g28 = W::gate::<0x75>(g27, g6, x[4]);
    let g29 = W::gate::<0x68>(g28, g12, x[1]);
    let g30 = W::gate::<0xc6>(x[2], g27, g29);
    let g31 = W::gate::<0x69>(g30, g15, g8);
    let g32 = W::gate::<0xc2>(g31, g17, g9);
    let g33 = W::gate::<0x8f>(g23, x[5], x[4]);
    let g34 = W::gate::<0x78>(g33, g17, g8);
    let g35 = W::gate::<0x6c>(x[1], g32, g34);
    [g23, g35, g15, g30]
}

/// S2: 28 gates.
#[inline(always)]
pub(super) fn s2<W: Word>(x: [W; 6]) -> [W; 4] {
    let g6 = W::gate::<0x69>(x[4], x[3], x[0]);
    let g7 = W::gate::<0x95>(x[4], x[3], x[1]);
    let g8 = W::gate::<0xc6>(x[2], g6, g7);
    let g9 = W::gate::<0x16>(g8, x[4], x[2]);
    let g10 = W::gate::<0x1e>(g9, g7, x[0]);
    let g11 = W::gate::<0x6c>(x[1], g6, g10);
    let g12 = W::gate::<0xca>(x[5], g8, g11);
    let g13 = W::gate::<0x87>(g8, x[2], x[0]);
    let g14 = W::gate::<0xd2>(g13, g11, x[1]);
    let g15 = W::gate::<0x72>(g7, x[2], x[1]);
    let g16 = W::gate::<0x5e>(g15, x[5], x[0]);
    let g17 = W::gate::<0xac>(x[4], g14, g16);
    let g18 = W::gate::<0xb5>(g9, x[4], x[1]);
    let g19 = W::gate::<0x66>(g13, x[2], x[1]);
    let g20 = W::gate::<0xca>(x[0], g18, g19);
    let g21 = W::gate::<0x6c>(x[5], g17, g20);
    let g22 = W::gate::<0xb3>(x[4], x[3], x[2]);
    let g23 = W::gate::<0x96>(g22, g18, g8);
    let g24 = W::gate::<0xeb>(g18, g15, g8);
    let g25 = W::gate::<0x78>(g24, g17, x[1]);
    let g26 = W::gate::<0xc6>(x[5], g23, g25);
    let g27 = W::gate::<0x7b>(g26, g18, g15);
    let g28 = W::gate::<0xd6>(g25, g17, g16);
    let g29 = W::gate::<0xc6>(x[3], g27, g28);
    let g30 = W::gate::<0x3a>(g17, g10, g6);
    let g31 = W::gate::<0xd6>(g25, g17, g11);
    let g32 = W::gate::<0xc6>(g12, g30, g31);
    let g33 = W::gate::<0xac>(x[5], g29, g32);
    [g26, g12, g33, g21]
}

/// S3: 27 gates.
#[inline(always)]
pub(super) fn s3<W: Word>(x: [W; 6]) -> [W; 4] {
    let g6 = W::gate::<0x94>(x[5], x[3], x[0]);
    let g7 = W::gate::<0x96>(g6, x[3], x[2]);
    let g8 = W::gate::<0x4e>(g7, g6, x[0]);
    let g9 = W::gate::<0xca>(x[4], g7, g8);
    let g10 = W::gate::<0x82>(x[5], x[2], x[0]);
    let g11 = W::gate::<0x53>(g10, g9, x[3]);
    let g12 = W::gate::<0xac>(x[1], g9, g11);
    let g13 = W::gate::<0x95>(g7, x[4], x[1]);
    let g14 = W::gate::<0x78>(g13, x[2], x[0]);
    let g15 = W::gate::<0x7b>(g11, x[3], x[1]);
    let g16 = W::gate::<0x6c>(x[5], g14, g15);
    let g17 = W::gate::<0x68>(x[5], x[4], x[3]);
    let g18 = W::gate::<0x3d>(g16, g9, x[4]);
    let g19 = W::gate::<0x9e>(g18, x[3], x[1]);
    let g20 = W::gate::<0xca>(x[2], g17, g19);
    let g21 = W::gate::<0xc6>(x[0], g16, g20);
    let g22 = W::gate::<0xb4>(g8, x[5], x[3]);
    let g23 = W::gate::<0xb4>(g22, x[2], x[0]);
    let g24 = W::gate::<0x7a>(g23, g19, x[4]);
    let g25 = W::gate::<0xa2>(x[5], x[4], x[2]);
    let g26 = W::gate::<0xf9>(g25, g8, g7);
    let g27 = W::gate::<0xc6>(x[1], g24, g26);
    let g28 = W::gate::<0x90>(g20, x[3], x[0]);
    let g29 = W::gate::<0xb6>(g28, g24, g6);
    let g30 = W::gate::<0x53>(g27, g23, g16);
    let g31 = W::gate::<0x3e>(g30, g18, g7);
    let g32 = W::gate::<0xca>(x[1], g29, g31);
    [g27, g21, g32, g12]
}

/// S4: 20 gates.
#[inline(always)]
pub(super) fn s4<W: Word>(x: [W; 6]) -> [W; 4] {
    let g6 = W::gate::<0xd2>(x[4], x[3], x[1]);
    let g7 = W::gate::<0xb7>(x[4], x[3], x[1]);
    let g8 = W::gate::<0xc6>(x[2], g6, g7);
    let g9 = W::gate::<0xb2>(x[4], x[2], x[1]);
    let g10 = W::gate::<0xf6>(g9, x[3], x[1]);
    let g11 = W::gate::<0x6c>(x[0], g8, g10);
    let g12 = W::gate::<0x2c>(g11, x[1], x[0]);
    let g13 = W::gate::<0x48>(g12, g7, x[3]);
    let g14 = W::gate::<0x6b>(g12, x[3], x[2]);
    let g15 = W::gate::<0x6c>(x[4], g13, g14);
    let g16 = W::gate::<0xc6>(x[5], g11, g15);
    let g17 = W::gate::<0x78>(g15, g12, g7);
    let g18 = W::gate::<0x96>(g17, x[3], x[0]);
    let g19 = W::gate::<0x84>(g18, g7, g6);
    let g20 = W::gate::<0xca>(x[2], g18, g19);
    let g21 = W::gate::<0x61>(g13, g11, g9);
    let g22 = W::gate::<0xb2>(g21, g12, g9);
    let g23 = W::gate::<0x6c>(x[5], g20, g22);
    let g24 = W::gate::<0xc6>(g15, g11, x[5]);
    let g25 = W::gate::<0xc9>(g22, g20, x[5]);
    [g25, g23, g24, g16]
}

/// S5: 28 gates.
#[inline(always)]
pub(super) fn s5<W: Word>(x: [W; 6]) -> [W; 4] {
    let g6 = W::gate::<0x94>(x[4], x[2], x[1]);
    let g7 = W::gate::<0x1e>(x[5], x[4], x[1]);
    let g8 = W::gate::<0xf4>(g7, x[5], x[2]);
    let g9 = W::gate::<0xc6>(x[0], g6, g8);
    let g10 = W::gate::<0x4d>(x[4], x[1], x[0]);
    let g11 = W::gate::<0xbc>(g10, x[5], x[1]);
    let g12 = W::gate::<0xb0>(g11, g6, x[5]);
    let g13 = W::gate::<0xc6>(x[3], g9, g12);
    let g14 = W::gate::<0xb6>(x[4], x[2], x[0]);
    let g15 = W::gate::<0xe0>(g14, x[2], x[1]);
    let g16 = W::gate::<0xda>(g14, x[4], x[1]);
    let g17 = W::gate::<0x78>(g16, x[2], x[0]);
    let g18 = W::gate::<0xac>(x[3], g15, g17);
    let g19 = W::gate::<0x5e>(g17, g16, x[4]);
    let g20 = W::gate::<0xb4>(g19, g16, x[0]);
    let g21 = W::gate::<0x12>(g17, x[4], x[0]);
    let g22 = W::gate::<0xc6>(x[3], g20, g21);
    let g23 = W::gate::<0x6c>(x[5], g18, g22);
    let g24 = W::gate::<0x69>(g14, x[5], x[1]);
    let g25 = W::gate::<0x79>(g23, g12, g10);
    let g26 = W::gate::<0x9c>(g7, g6, x[1]);
    let g27 = W::gate::<0xac>(g9, g25, g26);
    let g28 = W::gate::<0xc6>(x[3], g24, g27);
    let g29 = W::gate::<0xca>(g23, x[1], x[0]);
    let g30 = W::gate::<0x96>(g29, g28, g13);
    let g31 = W::gate::<0xc7>(g30, g23, g19);
    let g32 = W::gate::<0xb0>(g31, g29, g24);
    let g33 = W::gate::<0xca>(x[4], g30, g32);
    [g33, g28, g13, g23]
}

/// S6: 27 gates.
#[inline(always)]
pub(super) fn s6<W: Word>(x: [W; 6]) -> [W; 4] {
    let g6 = W::gate::<0x9d>(x[2], x[1], x[0]);
    let g7 = W::gate::<0x4b>(x[2], x[1], x[0]);
    let g8 = W::gate::<0xac>(x[4], g6, g7);
    let g9 = W::gate::<0xda>(x[4], x[2], x[1]);
    let g10 = W::gate::<0x68>(g9, x[2], x[0]);
    let g11 = W::gate::<0xca>(x[5], g8, g10);
    let g12 = W::gate::<0x6b>(x[5], x[1], x[0]);
    let g13 = W::gate::<0x39>(g12, g11, x[4]);
    let g14 = W::gate::<0xac>(x[3], g11, g13);
    let g15 = W::gate::<0x69>(x[4], x[3], x[0]);
    let g16 = W::gate::<0x59>(g15, x[4], x[1]);
    let g17 = W::gate::<0xca>(x[2], g15, g16);
    let g18 = W::gate::<0x95>(g14, g8, g7);
    let g19 = W::gate::<0x7a>(g18, g17, x[4]);
    let g20 = W::gate::<0xac>(x[5], g17, g19);
    let g21 = W::gate::<0x4b>(g16, g15, x[2]);
    let g22 = W::gate::<0x74>(g16, x[2], x[0]);
    let g23 = W::gate::<0xc6>(x[3], g21, g22);
    let g24 = W::gate::<0xe1>(g16, x[4], x[2]);
    let g25 = W::gate::<0x85>(g22, g13, x[3]);
    let g26 = W::gate::<0xc6>(x[0], g24, g25);
    let g27 = W::gate::<0xac>(x[5], g23, g26);
    let g28 = W::gate::<0x6e>(g24, g19, x[5]);
    let g29 = W::gate::<0x96>(g28, g14, x[1]);
    let g30 = W::gate::<0xd9>(g23, g14, g10);
    let g31 = W::gate::<0x60>(g30, g25, g15);
    let g32 = W::gate::<0xc6>(x[0], g29, g31);
    [g20, g32, g14, g27]
}

/// S7: 28 gates.
#[inline(always)]
pub(super) fn s7<W: Word>(x: [W; 6]) -> [W; 4] {
    let g6 = W::gate::<0x0b>(x[4], x[3], x[2]);
    let g7 = W::gate::<0x96>(g6, x[3], x[0]);
    let g8 = W::gate::<0x27>(g7, x[2], x[0]);
    let g9 = W::gate::<0xd2>(g8, x[4], x[3]);
    let g10 = W::gate::<0xac>(x[5], g7, g9);
    let g11 = W::gate::<0x97>(g9, g7, x[2]);
    let g12 = W::gate::<0xd1>(g11, x[5], x[2]);
    let g13 = W::gate::<0xc6>(x[1], g10, g12);
    let g14 = W::gate::<0x09>(g13, x[1], x[0]);
    let g15 = W::gate::<0x96>(g14, x[5], x[2]);
    let g16 = W::gate::<0xa3>(g13, g11, x[0]);
    let g17 = W::gate::<0x78>(g16, g10, x[1]);
    let g18 = W::gate::<0x6c>(x[4], g15, g17);
    let g19 = W::gate::<0x61>(g15, x[1], x[0]);
    let g20 = W::gate::<0x52>(g19, g14, x[4]);
    let g21 = W::gate::<0xac>(g9, g18, g20);
    let g22 = W::gate::<0x26>(g19, g18, g13);
    let g23 = W::gate::<0x96>(g22, x[5], x[1]);
    let g24 = W::gate::<0x97>(g22, g16, x[4]);
    let g25 = W::gate::<0xc6>(x[3], g23, g24);
    let g26 = W::gate::<0x34>(g15, g9, x[4]);
    let g27 = W::gate::<0x79>(g26, g11, g10);
    let g28 = W::gate::<0x6c>(x[0], g25, g27);
    let g29 = W::gate::<0x59>(g19, g12, g9);
    let g30 = W::gate::<0x5a>(g29, g11, x[2]);
    let g31 = W::gate::<0x09>(g29, g9, x[3]);
    let g32 = W::gate::<0xb6>(g31, g22, x[2]);
    let g33 = W::gate::<0xc6>(x[1], g30, g32);
    [g33, g21, g28, g13]
}

/// S8: 27 gates.
#[inline(always)]
pub(super) fn s8<W: Word>(x: [W; 6]) -> [W; 4] {
    let g6 = W::gate::<0xad>(x[5], x[3], x[0]);
    let g7 = W::gate::<0x96>(g6, x[5], x[1]);
    let g8 = W::gate::<0x94>(x[5], x[3], x[0]);
    let g9 = W::gate::<0xb6>(g8, g6, x[1]);
    let g10 = W::gate::<0xac>(x[4], g7, g9);
    let g11 = W::gate::<0xdf>(x[5], x[3], x[1]);
    let g12 = W::gate::<0x5d>(x[5], x[1], x[0]);
    let g13 = W::gate::<0x6c>(x[4], g11, g12);
    let g14 = W::gate::<0xc6>(x[2], g10, g13);
    let g15 = W::gate::<0x14>(x[5], x[4], x[0]);
    let g16 = W::gate::<0x3e>(g15, g9, x[1]);
    let g17 = W::gate::<0x68>(g11, x[4], g16);
    let g18 = W::gate::<0xc7>(g15, x[5], x[4]);
    let g19 = W::gate::<0xb4>(g18, g7, x[1]);
    let g20 = W::gate::<0xc6>(x[2], g17, g19);
    let g21 = W::gate::<0x49>(g13, x[3], x[0]);
    let g22 = W::gate::<0x59>(g21, g12, x[2]);
    let g23 = W::gate::<0x53>(g14, x[4], x[0]);
    let g24 = W::gate::<0xc6>(x[1], g22, g23);
    let g25 = W::gate::<0x52>(g21, g9, x[2]);
    let g26 = W::gate::<0xf6>(g25, g17, x[3]);
    let g27 = W::gate::<0x6c>(x[5], g24, g26);
    let g28 = W::gate::<0x2d>(g24, g17, x[3]);
    let g29 = W::gate::<0x5a>(g28, g14, x[1]);
    let g30 = W::gate::<0x49>(g28, g17, g7);
    let g31 = W::gate::<0x1a>(g30, g29, g22);
    let g32 = W::gate::<0xc6>(x[5], g29, g31);
    [g32, g20, g14, g27]
}

// SPDX-License-Identifier: Apache-2.0
//! The arithmetic against shift-and-add on plain integers.

use super::bytes::{big_endian, less, little_endian, put, take, write_big_endian};
use super::inverse::{invert, invert_all};
use super::modulus::{Modulus, difference};
use super::montgomery::{enter, least, leave, mul, square, tidy};
use super::{BITS, Columns, LANES, LIMB, Num};
use crate::cpu::{Cpu, cpu};
use crate::curve25519::Order as OrderL;
use crate::p256::{Field as P256, Order as N256};
use crate::p384::{Field as P384, Order as N384};
use crate::testing::{Random, inputs};

fn available() -> bool {
    cpu().has(Cpu::IFMA)
}

/// a + b modulo m.
fn sum<const N: usize>(a: &[u64; N], b: &[u64; N], m: &[u64; N]) -> [u64; N] {
    let mut out = [0; N];
    let mut carry = 0;
    for i in 0..N {
        let limb = a[i] + b[i] + carry;
        out[i] = limb & LIMB;
        carry = limb >> BITS;
    }
    if less(&out, m) { out } else { difference(&out, m).0 }
}

/// a·b modulo m.
fn product<const N: usize>(a: &[u64; N], b: &[u64; N], m: &[u64; N]) -> [u64; N] {
    let mut out = [0; N];
    for bit in (0..N * BITS as usize).rev() {
        out = sum(&out, &out, m);
        if (b[bit / 52] >> (bit % 52)) & 1 == 1 {
            out = sum(&out, a, m);
        }
    }
    out
}

/// Numbers below m: at random, and the edges.
fn number<const N: usize>(random: &mut Random, m: &[u64; N]) -> [u64; N] {
    let mut one = [0; N];
    one[0] = 1;
    let mut value = [0; N];
    match random.below(10) {
        0 => value[0] = random.word() & 3,
        1 => {
            value[0] = random.word() & 3;
            value = difference(m, &sum(&value, &one, m)).0;
        }
        2 => value = [LIMB; N],
        3 => value[random.below(N)] = LIMB,
        _ => value.iter_mut().for_each(|limb| *limb = random.word() & LIMB),
    }
    while !less(&value, m) {
        let top = (0..N).rev().find(|limb| value[*limb] != 0).unwrap();
        value[top] >>= 1;
    }
    value
}

#[target_feature(enable = "avx512f,avx512ifma")]
fn agrees<M: Modulus<N>, const N: usize>(rounds: usize) {
    let mut random = Random::new();
    for _ in 0..rounds.div_ceil(LANES) {
        let (mut a, mut b): (Columns<N>, Columns<N>) = ([[0; LANES]; N], [[0; LANES]; N]);
        for lane in 0..LANES {
            put(&mut a, lane, &number(&mut random, &M::M));
            put(&mut b, lane, &number(&mut random, &M::M));
        }
        let (one, two) = (Num::<N>::load(&a), Num::load(&b));
        let (one, two) = (enter::<M, N>(&one), enter::<M, N>(&two));
        let times = leave::<M, N>(&mul::<M, N>(&one, &two)).store();
        let squared = leave::<M, N>(&square::<M, N>(&one)).store();
        let mut inverses = [one, two];
        let mut scratch = [one; 2];
        invert_all::<M, N>(&mut inverses, &mut scratch, |_, _| ());
        let inverses = inverses.map(|inverse| leave::<M, N>(&inverse).store());
        for lane in 0..LANES {
            let (x, y) = (take(&a, lane), take(&b, lane));
            assert_eq!(take(&times, lane), product(&x, &y, &M::M), "{x:x?} times {y:x?}");
            assert_eq!(take(&squared, lane), product(&x, &x, &M::M), "{x:x?} squared");
            let inverse = take(&inverses[1], lane);
            let back = product(&inverse, &y, &M::M);
            assert!(back[0] == 1 || y == [0; N], "the inverse of {y:x?} is {inverse:x?}");
            assert_eq!(invert(&y, &M::M), if y == [0; N] { y } else { inverse });
        }
    }
}

#[target_feature(enable = "avx512f,avx512ifma")]
fn tidies<M: Modulus<N>, const N: usize>(rounds: usize) {
    let mut random = Random::new();
    for _ in 0..rounds.div_ceil(LANES) {
        let mut columns = [[[0; LANES]; N]; 3];
        for lane in 0..LANES {
            for column in &mut columns {
                put(column, lane, &number(&mut random, &M::M));
            }
        }
        let [a, b, c] = columns.map(|column| Num::load(&column));
        let combined = a.shifted::<2>().minus(&b.shifted::<3>()).minus(&c);
        // A product with R/R makes it comparable.
        let one = Num::splat(&M::ONE);
        let got = least::<M, N>(&mul::<M, N>(&tidy::<M, N>(&combined), &one)).store();
        for lane in 0..LANES {
            let [x, y, z] = columns.map(|column| take(&column, lane));
            let twice = |v: &[u64; N]| sum(v, v, &M::M);
            let less = sum(&twice(&twice(&twice(&y))), &z, &M::M);
            let expected = sum(&take(&got, lane), &less, &M::M);
            assert_eq!(expected, twice(&twice(&x)));
        }
    }
}

#[test]
fn products_squares_and_inverses_agree_with_plain_integers() {
    if !available() {
        return;
    }
    let rounds = inputs(20_000);
    // SAFETY: the processor has what the functions need.
    unsafe { agrees::<P256, 5>(rounds) };
    // SAFETY: as above.
    unsafe { agrees::<N256, 5>(rounds) };
    // SAFETY: as above.
    unsafe { agrees::<OrderL, 5>(rounds) };
    // SAFETY: as above.
    unsafe { agrees::<P384, 8>(rounds / 2) };
    // SAFETY: as above.
    unsafe { agrees::<N384, 8>(rounds / 2) };
}

#[test]
fn sums_and_differences_agree_with_plain_integers() {
    if !available() {
        return;
    }
    // SAFETY: the processor has what the functions need.
    unsafe { tidies::<P256, 5>(inputs(100_000)) };
    // SAFETY: as above.
    unsafe { tidies::<P384, 8>(inputs(100_000)) };
}

#[test]
fn bytes_and_limbs_are_each_others_inverse() {
    let mut random = Random::new();
    for length in [0, 1, 7, 31, 32] {
        let bytes = random.bytes(length);
        let mut back = vec![0; 32];
        write_big_endian(&big_endian::<5>(&bytes), &mut back);
        assert_eq!(back[32 - length..], bytes);
        assert!(back[..32 - length].iter().all(|byte| *byte == 0));
    }
    assert_eq!(little_endian::<5>(&[7, 0, 0, 0, 0, 0, 0x10]), [7, 1, 0, 0, 0]);
    let bytes = random.bytes(48);
    let mut back = [0; 48];
    write_big_endian(&big_endian::<8>(&bytes), &mut back);
    assert_eq!(back[..], bytes);
}

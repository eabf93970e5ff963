// SPDX-License-Identifier: Apache-2.0
//! What the private operation gives, raised to the public exponent, is what went in; and the versions
//! agree. The library is the oracle in the lab's own check.

use super::*;
use crate::testing::bytes;

const VERSIONS: [Version; 3] = [Version::Rows32, Version::Rows64, Version::Fused64];

/// A number to the power of 65537, modulo another, bit by bit: slow, and like nothing above.
fn public(input: &[u8], modulus: &[u8]) -> Vec<u8> {
    let (base, modulus) = (number::from_bytes(input), number::from_bytes(modulus));
    let times = |a: &[u64], b: &[u64]| {
        let mut sum = vec![0; modulus.len()];
        for bit in (0..64 * b.len()).rev() {
            sum = number::doubled(&sum, &modulus);
            if b[bit / 64] >> (bit % 64) & 1 == 1 {
                // sum + a - modulus, or sum - (modulus - a).
                let mut less = modulus.clone();
                number::subtract(&mut less, a);
                sum = number::difference(&sum, &less, &modulus);
            }
        }
        sum
    };
    let power = (0..16).fold(base.clone(), |sum, _| times(&sum, &sum));
    number::to_bytes(&times(&power, &base))
}

#[test]
fn the_public_exponent_undoes_the_private_one() {
    for bits in [1024, 2048] {
        let key = Key::of_bits(bits).unwrap();
        let modulus = key.modulus();
        assert_eq!(modulus.len() * 8, bits);
        for version in VERSIONS {
            let private = Private::new(version, &key);
            let mut input = bytes(bits as u64, private.bytes());
            input[0] = 0;
            let output = private.apply(&input);
            assert_ne!(output, input);
            assert_eq!(public(&output, &modulus), input, "{version:?} {bits}");
        }
    }
}

#[test]
fn versions_agree_on_small_and_large_numbers() {
    for bits in [1024, 2048] {
        let key = Key::of_bits(bits).unwrap();
        let all = VERSIONS.map(|version| Private::new(version, &key));
        let mut largest = key.modulus();
        *largest.last_mut().unwrap() -= 1;
        let mut one = vec![0; bits / 8];
        one[bits / 8 - 1] = 1;
        let mut random = bytes(5, bits / 8);
        random[0] &= 0x7f;
        for input in [vec![0; bits / 8], one.clone(), largest.clone(), random] {
            let results = all.each_ref().map(|private| private.apply(&input));
            assert!(results[0] == results[1] && results[1] == results[2], "{bits}");
        }
        // 0, 1 and -1 are their own odd powers.
        for input in [vec![0; bits / 8], one, largest] {
            assert_eq!(all[0].apply(&input), input);
        }
    }
}

#[test]
fn rows_are_counted() {
    let key = Key::of_bits(1024).unwrap();
    let of = |version| Private::new(version, &key).functions();
    let (narrow, wide) = (of(Version::Rows32), of(Version::Rows64));
    assert_eq!(narrow[1].calls, wide[1].calls, "as many squares");
    assert_eq!(narrow[0].calls, 2 * wide[0].calls, "limbs of half the size have twice the rows");
    // Two exponents of 512 bits, five bits at a time: 102 windows of five squares.
    assert_eq!(wide[1].calls, 2 * 102 * 5);
    assert!(of(Version::Fused64).is_empty());
    for mut function in narrow.into_iter().chain(wide) {
        (function.repeat)(3);
    }
    assert!(Key::of_bits(1000).is_none());
}

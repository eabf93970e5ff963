// SPDX-License-Identifier: Apache-2.0
//! HSS and XMSS^MT in fewer lanes, and in one: a process of its own, for all of it has fewer then.

use metaslot_lanes::cpu::{self, Cpu};
use metaslot_lanes::{hss, xmss};

const MESSAGE: &[&[u8]] = &[b"mess", b"age"];

#[test]
fn every_width_makes_the_same_signature() {
    // Trees of 32 keys with digits of one bit to eight: SHA-256 of both lengths, and SHAKE256.
    let pairs = [(5, 1), (5, 4), (10, 6), (10, 8), (15, 11), (20, 16)];
    for (set, of) in pairs.map(|(tree, chain)| (hss::Set::new(tree, chain).unwrap(), tree)) {
        same(&format!("HSS {of}"), || {
            let mut private = hss::Private::new(&[set], &vec![7; set.node], &[1; hss::ID]);
            let signature = private.sign(9, MESSAGE).unwrap();
            assert_eq!(hss::verify(&private.public(), &[b"message"], &signature), Ok(true));
            signature
        });
    }
    // Of 20 levels in four layers, with each hash function.
    for number in [2, 10, 18, 26, 34] {
        let set = xmss::Set::new(xmss::Scheme::Multi, number).unwrap();
        let seeds: Vec<u8> = (0..).take(set.seeds_length()).collect();
        same(&format!("XMSS^MT {number}"), || {
            let mut private = xmss::Private::new(&set, &seeds);
            let signature = private.sign(77_777, MESSAGE).unwrap();
            let public = private.public();
            let is = xmss::verify(xmss::Scheme::Multi, &public, &[b"message"], &signature);
            assert_eq!(is, Ok(true), "{number}");
            signature
        });
    }
}

/// Makes the same thing in all lanes, in half of them and in one.
fn same(what: &str, make: impl Fn() -> Vec<u8>) {
    let [expected, half, one] = [Cpu::NONE, Cpu::AVX512, Cpu::AVX2].map(|without| {
        cpu::mask(without);
        make()
    });
    assert!(expected == half && expected == one, "{what}");
}

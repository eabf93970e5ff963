// SPDX-License-Identifier: Apache-2.0
//! XMSS^MT in fewer lanes, and in one: a process of its own, for all of it has fewer then.

use metaslot_lanes::cpu::{self, Cpu};
use metaslot_lanes::xmss::{Private, Scheme, Set, verify};

#[test]
fn every_width_makes_the_same_signature() {
    // Of 20 levels in four layers, with each hash function.
    for number in [2, 10, 18, 26] {
        let set = Set::new(Scheme::Multi, number).unwrap();
        let seeds: Vec<u8> = (0..).take(set.seeds_length()).collect();
        let signed = |without: Cpu| {
            cpu::mask(without);
            let mut private = Private::new(&set, &seeds);
            let signature = private.sign(77_777, &[b"mess", b"age"]).unwrap();
            let is = verify(Scheme::Multi, &private.public(), &[b"message"], &signature);
            assert_eq!(is, Ok(true), "{number}");
            signature
        };
        let expected = signed(Cpu::NONE);
        for without in [Cpu::AVX512, Cpu::AVX2] {
            assert!(signed(without) == expected, "{number}");
        }
    }
}

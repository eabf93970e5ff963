// SPDX-License-Identifier: Apache-2.0
//! SLH-DSA in fewer lanes, and in one: a process of its own, for all of it has fewer then.

use metaslot_lanes::cpu::{self, Cpu};
use metaslot_lanes::slh_dsa::{Set, sign, verify};

#[test]
fn every_width_makes_the_same_signature() {
    // The shortest of either hash function, and one whose nodes are hashed by two functions.
    for name in ["SLH-DSA-SHA2-128f", "SLH-DSA-SHAKE-128f", "SLH-DSA-SHA2-192f"] {
        let set = Set::all().iter().find(|set| set.name == name).unwrap();
        let private: Vec<u8> = (0..).take(set.private_length()).collect();
        let signed = |without: Cpu| {
            cpu::mask(without);
            let mut signature = vec![0; set.signature_length()];
            sign(set, &private, None, &[b"mess", b"age"], &mut signature).unwrap();
            // The root in the key is not that of its seeds, so it is none.
            let public = &private[set.private_length() / 2..];
            assert_eq!(verify(set, public, &[b"message"], &signature), Ok(false), "{name}");
            signature
        };
        let expected = signed(Cpu::NONE);
        for without in [Cpu::AVX512, Cpu::AVX2] {
            assert!(signed(without) == expected, "{name}");
        }
    }
}

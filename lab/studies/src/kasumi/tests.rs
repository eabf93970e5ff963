// SPDX-License-Identifier: Apache-2.0
//! The test sets of 3GPP TS 35.203, section 3, and the versions against each other.

use super::*;
use crate::testing::{bytes, hex};

const VERSIONS: [Version; 3] = [Version::Small, Version::Large, Version::Sliced];

fn key(text: &str) -> Key {
    Key::new(&hex(text).try_into().unwrap())
}

#[test]
fn every_version_encrypts_the_test_sets() {
    let sets = [
        ("2bd6459f82c5b300952c49104881ff48", 0xea02_4714_ad5c_4d84, 0xdf1f_9b25_1c0b_f45f),
        ("8ce33e2cc3c0b5fc1f3de8a6dc66b1f3", 0xd3c5_d592_327f_b11c, 0xde55_1988_ceb2_f9b7),
    ];
    for (text, plain, expected) in sets {
        for version in VERSIONS {
            let mut blocks = [plain];
            key(text).blocks(version, &mut blocks);
            assert_eq!(blocks, [expected], "{version:?}");
        }
    }
}

#[test]
fn versions_agree_on_any_number_of_blocks() {
    let key = Key::new(&bytes(1, 16).try_into().unwrap());
    for count in [0, 1, 2, 63, 64, 65, 200] {
        let plain: Vec<u64> = bytes(2, 8 * count)
            .chunks(8)
            .map(|chunk| u64::from_le_bytes(chunk.try_into().unwrap()))
            .collect();
        let results = VERSIONS.map(|version| {
            let mut blocks = plain.clone();
            key.blocks(version, &mut blocks);
            blocks
        });
        assert!(results[0] == results[1] && results[1] == results[2], "{count}");
        assert!(count == 0 || results[0] != plain);
    }
}

#[test]
fn a_chain_is_the_blocks_one_after_the_other() {
    let key = Key::new(&[7; 16]);
    for version in VERSIONS {
        let mut block = [0x0123_4567_89ab_cdef];
        assert_eq!(key.chain(version, block[0], 0), block[0]);
        for times in 1..5 {
            key.blocks(Version::Small, &mut block);
            assert_eq!(key.chain(version, 0x0123_4567_89ab_cdef, times), block[0]);
        }
    }
}

#[test]
fn table_sizes_are_those_of_the_tables() {
    assert_eq!(VERSIONS.map(Version::table_bytes), [1152, 262_144, 0]);
}

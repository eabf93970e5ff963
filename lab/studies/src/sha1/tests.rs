// SPDX-License-Identifier: Apache-2.0
//! The examples of FIPS 180, and the versions against each other.

use super::*;
use crate::testing::{bytes, hex};

#[test]
fn every_version_gives_the_digests_of_the_standard() {
    let a_million = vec![b'a'; 1_000_000];
    let examples: [(&[u8], &str); 4] = [
        (b"", "da39a3ee5e6b4b0d3255bfef95601890afd80709"),
        (b"abc", "a9993e364706816aba3e25717850c26c9cd0d89d"),
        (
            b"abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq",
            "84983e441c3bd26ebaae4aa1f95129e5e54670f1",
        ),
        (&a_million, "34aa973cd4c4daa4f61eeb2bdbad27316534016f"),
    ];
    let mut seen = 0;
    for version in Version::ALL.into_iter().filter(|version| version.available()) {
        for (message, expected) in examples {
            assert_eq!(digest(version, message).unwrap(), hex(expected)[..], "{version:?}");
        }
        seen += 1;
    }
    assert!(seen >= 2);
}

#[test]
fn versions_agree_on_every_length() {
    let message = bytes(1, 700);
    for length in (0..=300).chain([639, 640, 641, 700]) {
        let expected = digest(Version::Inline, &message[..length]);
        for version in Version::ALL.into_iter().filter(|version| version.available()) {
            assert_eq!(digest(version, &message[..length]), expected, "{version:?} {length}");
        }
    }
}

#[test]
fn the_ring_goes_round() {
    // More than three times its slots.
    let message = bytes(2, 400 * BLOCK + 5);
    assert_eq!(digest(Version::Pair, &message), digest(Version::Inline, &message));
}

#[test]
fn the_parts_together_are_the_whole() {
    let message = bytes(3, 16 * BLOCK);
    let mut state = INITIAL;
    compress(Version::Inline, &mut state, message.as_chunks().0);
    let mut parts = Parts::default();
    parts.expand(&message);
    assert_eq!(parts.rounds(16), state);
}

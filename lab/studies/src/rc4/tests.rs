// SPDX-License-Identifier: Apache-2.0
//! The streams of RFC 6229, and every version against the first one.

use super::*;
use crate::testing::{bytes, hex};

type Version<T> = fn(&mut State<T>, &mut [u8]);

const fn versions<T: Element>() -> [Version<T>; 3] {
    [version_1, version_2, version_3]
}

/// The stream's bytes from `offset`.
fn stream<T: Element>(version: Version<T>, key: &[u8], offset: usize) -> Vec<u8> {
    let mut data = vec![0; offset + 16];
    version(&mut State::new(key), &mut data);
    data.split_off(offset)
}

/// Sections 2 of the RFC: key, offset, 16 bytes of the stream.
const RFC_6229: [(&str, usize, &str); 5] = [
    ("0102030405", 0, "b2396305f03dc027ccc3524a0a1118a8"),
    ("0102030405", 16, "6982944f18fc82d589c403a47a0d0919"),
    ("0102030405", 240, "28cb1132c96ce286421dcaadb8b69eae"),
    ("0102030405060708090a0b0c0d0e0f10", 0, "9ac7cc9a609d1ef7b2932899cde41b97"),
    ("0102030405060708090a0b0c0d0e0f10", 16, "5248c4959014126a6e8a84f11d1a9e1c"),
];

fn follows_the_rfc<T: Element>() {
    for (key, offset, expected) in RFC_6229 {
        for version in versions::<T>() {
            assert_eq!(stream(version, &hex(key), offset), hex(expected), "{key} at {offset}");
        }
    }
}

#[test]
fn every_version_gives_the_streams_of_the_rfc() {
    follows_the_rfc::<u8>();
    follows_the_rfc::<u32>();
}

/// Two pieces by any two versions are one piece by the first: lengths 0 and 1 among them.
fn any_split_is_the_whole<T: Element>() {
    let (key, plain) = (bytes(1, 16), bytes(2, 67));
    let mut whole = plain.clone();
    version_1(&mut State::<T>::new(&key), &mut whole);
    for at in 0..=plain.len() {
        for first in versions::<T>() {
            for second in versions::<T>() {
                let (mut state, mut data) = (State::new(&key), plain.clone());
                let (head, tail) = data.split_at_mut(at);
                first(&mut state, head);
                second(&mut state, tail);
                assert_eq!(data, whole, "split at {at}");
            }
        }
    }
}

#[test]
fn a_stream_is_taken_up_where_it_was_left_by_whichever_version() {
    any_split_is_the_whole::<u8>();
    any_split_is_the_whole::<u32>();
}

/// The collision that version 3 handles, an entry stored where the next one is loaded, happens once in
/// 256 bytes.
#[test]
fn long_streams_agree() {
    for seed in 0..8 {
        let (key, mut one) = (bytes(seed, 5 + usize::try_from(seed).unwrap()), bytes(9, 20_001));
        let (mut two, mut three) = (one.clone(), one.clone());
        version_1(&mut State::<u8>::new(&key), &mut one);
        version_2(&mut State::<u32>::new(&key), &mut two);
        version_3(&mut State::<u32>::new(&key), &mut three);
        assert!(one == two && two == three);
    }
}

fn interleaving_changes_nothing<T: Element>() {
    for lengths in [[0, 1, 7, 8], [64, 64, 64, 64], [9, 300, 0, 17], [1, 1, 1, 1]] {
        let mut states: [State<T>; 4] =
            std::array::from_fn(|n| State::new(&bytes(20 + n as u64, 16)));
        let mut data: [Vec<u8>; 4] = std::array::from_fn(|n| bytes(30 + n as u64, lengths[n]));
        let (mut alone, mut expected) = (states.clone(), data.clone());
        for round in 0..2 {
            interleaved(&mut states, data.each_mut().map(Vec::as_mut_slice));
            for (state, data) in alone.iter_mut().zip(&mut expected) {
                version_1(state, data);
            }
            assert_eq!(data, expected, "{lengths:?}, round {round}");
        }
    }
}

#[test]
fn interleaved_streams_are_those_that_each_gives_alone() {
    interleaving_changes_nothing::<u8>();
    interleaving_changes_nothing::<u32>();
}

#[test]
fn a_word_takes_four_times_the_room() {
    assert_eq!((State::<u8>::table_bytes(), State::<u32>::table_bytes()), (256, 1024));
}

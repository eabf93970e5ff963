// SPDX-License-Identifier: Apache-2.0
//! RC4 against AWS-LC and RFC 6229.

use super::*;
use crate::testing::{Random, inputs};
use std::mem::MaybeUninit;

fn reference(key: &[u8], data: &mut [u8]) {
    let mut state = MaybeUninit::uninit();
    let length = u32::try_from(key.len()).unwrap();
    // SAFETY: the key is readable, the state writable.
    unsafe { aws_lc_sys::RC4_set_key(state.as_mut_ptr(), length, key.as_ptr()) };
    let input = data.to_vec();
    // SAFETY: as many bytes are written as read; the state was made.
    unsafe { aws_lc_sys::RC4(state.as_mut_ptr(), data.len(), input.as_ptr(), data.as_mut_ptr()) };
}

fn key(random: &mut Random) -> Vec<u8> {
    let most = [256, 16, 16, 16][random.below(4)];
    let length = 1 + random.below(most);
    random.bytes(length)
}

#[test]
fn keys_of_another_length_are_refused() {
    assert!(Rc4::new(&[]).is_none());
    assert!(Rc4::new(&[0; 257]).is_none());
}

#[test]
fn the_key_streams_of_rfc_6229_come_out() {
    // Section 2: the keys 0x0102030405 and 0x0102...10, offset 0.
    let cases: [(&[u8], u128); 2] = [
        (&[1, 2, 3, 4, 5], 0xb2396305_f03dc027_ccc3524a_0a1118a8),
        (
            &[1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16],
            0x9ac7cc9a_609d1ef7_b2932899_cde41b97,
        ),
    ];
    for (key, expected) in cases {
        let mut out = [0; 16];
        Rc4::new(key).unwrap().apply(Data::in_place(&mut out));
        assert_eq!(u128::from_be_bytes(out), expected);
    }
}

#[test]
fn one_stream_in_parts_is_what_awslc_says() {
    let mut random = Random::new();
    for _ in 0..inputs(100_000) {
        let key = key(&mut random);
        let length = random.below(80);
        let plain = random.bytes(length);
        let (mut expected, mut out) = (plain.clone(), plain.clone());
        reference(&key, &mut expected);
        let cut = random.below(length + 1);
        let mut state = Rc4::new(&key).unwrap();
        state.apply(Data::in_place(&mut out[..cut]));
        state.apply(Data::between(&plain[cut..], &mut out[cut..]));
        assert_eq!(out, expected);
    }
}

#[test]
fn streams_of_any_lengths_are_interleaved() {
    let mut random = Random::new();
    let mut done = 0;
    while done < inputs(100_000) {
        let count = 1 + random.below(9);
        let keys: Vec<_> = (0..count).map(|_| key(&mut random)).collect();
        let mut states: Vec<_> = keys.iter().map(|key| Rc4::new(key).unwrap()).collect();
        let plain: Vec<_> = (0..count)
            .map(|_| {
                let length = random.below(100);
                random.bytes(length)
            })
            .collect();
        let mut out = plain.clone();
        // The first parts of all streams together, then the others.
        let mut rest = Vec::new();
        let mut streams = Vec::new();
        for ((state, out), at) in states.iter_mut().zip(&mut out).zip(0..) {
            let (first, second) = out.split_at_mut(random.below(plain[at].len() + 1));
            let cut = first.len();
            streams.push(Stream { state, data: Data::in_place(first) });
            rest.push(Data::between(&plain[at][cut..], second));
        }
        apply(&mut streams);
        drop(streams);
        let streams = states.iter_mut().zip(rest);
        apply(&mut streams.map(|(state, data)| Stream { state, data }).collect::<Vec<_>>());
        for at in 0..count {
            let mut expected = plain[at].clone();
            reference(&keys[at], &mut expected);
            assert_eq!(out[at], expected, "stream {at} of {count}");
        }
        done += count;
    }
}

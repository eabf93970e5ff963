// SPDX-License-Identifier: Apache-2.0
//! The examples of FIPS 197 and SP 800-38A, and the versions against each other.

use super::*;
use crate::testing::{bytes, hex};

fn blocks(bytes: &[u8]) -> Vec<Block> {
    bytes.as_chunks().0.to_vec()
}

fn block(text: &str) -> Block {
    hex(text).try_into().unwrap()
}

fn versions() -> impl Iterator<Item = Version> {
    Version::ALL.into_iter().filter(|version| version.available())
}

#[test]
fn a_block_is_that_of_the_standard() {
    let plain = block("00112233445566778899aabbccddeeff");
    let key = Key::new_128(&block("000102030405060708090a0b0c0d0e0f"));
    let cipher = block("69c4e0d86a7b0430d8cdb78070b4c55a");
    assert_eq!(tables::encrypt_block(&key, plain), cipher);
    let text = "000102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1f";
    let key = Key::new_256(&hex(text).try_into().unwrap());
    let cipher = block("8ea2b7ca516745bfeafc49904b496089");
    assert_eq!(tables::encrypt_block(&key, plain), cipher);
}

/// SP 800-38A, sections F.2.1 and F.2.5.
const PLAIN: &str = "6bc1bee22e409f96e93d7e117393172aae2d8a571e03ac9c9eb76fac45af8e51\
    30c81c46a35ce411e5fbc1191a0a52eff69f2445df4f9b17ad2b417be66c3710";
const CIPHER_128: &str = "7649abac8119b246cee98e9b12e9197d5086cb9b507219ee95db113a917678b2\
    73bed6b8e3c1743b7116e69e222295163ff1caa1681fac09120eca307586e1a7";
const CIPHER_256: &str = "f58c4c04d6e5f1ba779eabfb5f7bfbd69cfc4e967edb808d679f777bc6702c7d\
    39f23369a9d9bacfa530e26304231461b2eb05e2c39be9fcda6c19078c6a9d1b";

fn both_ways(key: &Key, cipher: &str) {
    let iv = block("000102030405060708090a0b0c0d0e0f");
    let (plain, cipher) = (blocks(&hex(PLAIN)), blocks(&hex(cipher)));
    for version in versions() {
        for count in [1, MANY] {
            let mut streams = vec![Stream::new(iv, plain.clone()); count];
            assert!(encrypt(version, key, &mut streams));
            assert!(streams.iter().all(|s| s.output == cipher), "{version:?} {count}");
            let mut streams = vec![Stream::new(iv, cipher.clone()); count];
            assert!(decrypt(version, key, &mut streams));
            assert!(streams.iter().all(|s| s.output == plain), "{version:?} {count}");
        }
    }
}

#[test]
fn streams_are_those_of_the_standard() {
    both_ways(&Key::new_128(&block("2b7e151628aed2a6abf7158809cf4f3c")), CIPHER_128);
    let text = "603deb1015ca71be2b73aef0857d77811f352c073b6108d72d9810a30914dff4";
    both_ways(&Key::new_256(&hex(text).try_into().unwrap()), CIPHER_256);
}

#[test]
fn versions_agree_on_different_streams_of_any_length() {
    assert!(versions().count() >= 1);
    let key = Key::new_256(&bytes(1, 32).try_into().unwrap());
    for length in [0, 1, 7, 8, 9, 15, 16, 17, 40] {
        let stream = |n| {
            let iv = bytes(50 + n, 16).try_into().unwrap();
            Stream::new(iv, blocks(&bytes(100 + n, 16 * length)))
        };
        let mut expected: Vec<Stream> = (0..MANY as u64).map(stream).collect();
        let plain = expected.clone();
        assert!(encrypt(Version::Tables, &key, &mut expected));
        for version in versions() {
            let mut streams = plain.clone();
            assert!(encrypt(version, &key, &mut streams));
            for (stream, expected) in streams.iter_mut().zip(&expected) {
                assert_eq!(stream.output, expected.output, "{version:?} {length}");
                stream.input.clone_from(&expected.output);
            }
            assert!(decrypt(version, &key, &mut streams));
            for (stream, plain) in streams.iter().zip(&plain) {
                assert_eq!(stream.output, plain.input, "{version:?} {length}");
            }
            assert!(encrypt(version, &key, &mut streams[..1]));
            assert!(!encrypt(version, &key, &mut streams[..3]), "neither one nor sixteen");
        }
    }
}

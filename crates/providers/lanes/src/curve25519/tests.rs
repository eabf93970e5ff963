// SPDX-License-Identifier: Apache-2.0
//! Against the library: random inputs, the edges, and the Wycheproof vectors.

use super::{
    KEY_LENGTH, PrivateKey, PublicKey, SIGNATURE_LENGTH, SignRequest, VerifyRequest, X25519Key,
    X25519Request, available, sign, verify, x25519,
};
use crate::testing::{Random, inputs, judge, spills};
use crate::weierstrass::vectors::{bytes, cases, file};
use metaslot_awslc_wrapper::Result;
use metaslot_awslc_wrapper::curve25519::{self as library, Ed25519, Ed25519Key};

fn array<const N: usize>(random: &mut Random) -> [u8; N] {
    random.bytes(N).try_into().unwrap()
}

/// p + small, or 2^255 + p + small, for a small from −9 to 9.
fn near_p(random: &mut Random) -> [u8; KEY_LENGTH] {
    let mut out = [0xff; KEY_LENGTH];
    out[31] = if random.below(2) == 0 { 0x7f } else { 0xff };
    out[0] = 0xed_u8.wrapping_add(u8::try_from(random.below(19)).unwrap()).wrapping_sub(9);
    out
}

/// Numbers at random and near 0 and p, where the library's points of small order are.
fn coordinate(random: &mut Random) -> [u8; KEY_LENGTH] {
    match random.below(8) {
        0 => near_p(random),
        1 => {
            let mut small = [0; KEY_LENGTH];
            small[0] = u8::try_from(random.below(10)).unwrap();
            small[31] = if random.below(2) == 0 { 0x80 } else { 0 };
            small
        }
        _ => array(random),
    }
}

#[test]
fn x25519_secrets_are_the_librarys() {
    let mut random = Random::new();
    let mut done = 0;
    while done < inputs(100_000) {
        let size = [1, 7, 8, 9, 64, 130][random.below(6)];
        done += size;
        let privates: Vec<[u8; 32]> = (0..size).map(|_| coordinate(&mut random)).collect();
        let peers: Vec<[u8; 32]> = (0..size).map(|_| coordinate(&mut random)).collect();
        let keys: Vec<_> = privates.iter().map(X25519Key::new).collect();
        let mut secrets = vec![[1; 32]; size];
        let requests = keys.iter().zip(&peers).zip(&mut secrets);
        let mut requests: Vec<_> =
            requests.map(|((key, peer), secret)| X25519Request::new(key, peer, secret)).collect();
        x25519(&mut requests);
        let results: Vec<Result<()>> = requests.iter().map(|request| request.result).collect();
        for i in 0..size {
            let mut expected = [2; 32];
            let result = library::x25519(&privates[i], &peers[i], &mut expected);
            assert_eq!((results[i], secrets[i]), (result, expected));
        }
    }
}

#[test]
fn ed25519_signatures_are_the_librarys() {
    let mut random = Random::new();
    let seeds: Vec<[u8; 32]> = (0..50).map(|_| array(&mut random)).collect();
    let keys: Vec<_> = seeds.iter().map(|seed| PrivateKey::new(seed).unwrap()).collect();
    let library: Vec<_> = seeds.iter().map(Ed25519Key::new).collect();
    let mut done = 0;
    while done < inputs(100_000) {
        let size = [1, 5, 8, 64, 131][random.below(5)];
        done += size;
        let cases: Vec<(usize, Vec<u8>)> = (0..size)
            .map(|_| {
                let length = [0, 32, 100, 960, 961, 992, 993, 3000][random.below(8)];
                (random.below(keys.len()), random.bytes(length))
            })
            .collect();
        let mut signatures = vec![[0; SIGNATURE_LENGTH]; size];
        let mut requests: Vec<_> = cases
            .iter()
            .zip(&mut signatures)
            .map(|((key, message), out)| SignRequest::new(&keys[*key], message, out))
            .collect();
        sign(&mut requests);
        assert!(requests.iter().all(|request| request.result == Ok(())));
        for ((key, message), signature) in cases.iter().zip(&signatures) {
            let mut expected = [0; SIGNATURE_LENGTH];
            library[*key].sign(Ed25519::Plain, message, &mut expected).unwrap();
            assert_eq!(*signature, expected);
        }
    }
}

/// Checks all signatures, and compares with the library.
fn verified(cases: &[(PublicKey, Vec<u8>, Vec<u8>)]) -> Vec<bool> {
    let mut requests: Vec<_> = cases
        .iter()
        .map(|(key, message, signature)| VerifyRequest::new(key, message, signature))
        .collect();
    verify(&mut requests);
    let ours: Vec<bool> = requests.iter().map(|request| request.result.is_ok()).collect();
    for (request, ours) in requests.iter_mut().zip(&ours) {
        request.by_library();
        assert_eq!(request.result.is_ok(), *ours, "{request:x?}");
    }
    ours
}

#[test]
fn ed25519_signatures_are_accepted_and_changed_ones_refused() {
    let mut random = Random::new();
    let seeds: Vec<[u8; 32]> = (0..50).map(|_| array(&mut random)).collect();
    let keys: Vec<_> = seeds.iter().map(Ed25519Key::new).collect();
    let mut done = 0;
    while done < inputs(100_000) {
        let size = [1, 3, 8, 64, 131][random.below(5)];
        done += size;
        let mut expected = Vec::new();
        let mut cases = Vec::new();
        for _ in 0..size {
            let key = &keys[random.below(keys.len())];
            let (length, mut signature) = (random.below(100), [0; SIGNATURE_LENGTH]);
            let message = random.bytes(length);
            key.sign(Ed25519::Plain, &message, &mut signature).unwrap();
            let mut public = key.public();
            expected.push(random.below(3) > 0);
            if expected.last() == Some(&false) {
                let bit = random.below(768);
                let place = if bit < 512 { &mut signature[..] } else { &mut public[..] };
                place[bit % 512 / 8] ^= 1 << (bit % 8);
            }
            cases.push((PublicKey::new(&public), message, signature.to_vec()));
        }
        assert_eq!(verified(&cases), expected);
        // Again, with the keys' tables made.
        assert_eq!(verified(&cases), expected);
    }
}

/// Keys and Rs of small order, or not canonical, and scalars at the order's edges: the library's answer is the right one.
#[test]
fn ed25519_edges_are_judged_as_by_the_library() {
    let mut random = Random::new();
    let order: [u8; 32] = [
        0xed, 0xd3, 0xf5, 0x5c, 0x1a, 0x63, 0x12, 0x58, 0xd6, 0x9c, 0xf7, 0xa2, 0xde, 0xf9, 0xde,
        0x14, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0x10,
    ];
    // A point of order 8 (y of RFC 7748's u = 325606250916557431795983626356110631294008115727848805560023387167927233504).
    let eighth = [
        0x26, 0xe8, 0x95, 0x8f, 0xc2, 0xb2, 0x27, 0xb0, 0x45, 0xc3, 0xf4, 0x89, 0xf2, 0xef, 0x98,
        0xf0, 0xd5, 0xdf, 0xac, 0x05, 0xd3, 0xc6, 0x33, 0x39, 0xb1, 0x38, 0x02, 0x88, 0x6d, 0x53,
        0xfc, 0x05,
    ];
    let mut accepted = 0;
    for _ in 0..inputs(20_000).div_ceil(64) {
        let cases: Vec<_> = (0..64)
            .map(|_| {
                let mut point = || match random.below(4) {
                    0 => eighth,
                    1 => {
                        let mut one = [0; 32];
                        one[0] = 1;
                        one
                    }
                    _ => coordinate(&mut random),
                };
                let (key, r) = (point(), point());
                let mut s: [u8; 32] = if random.below(2) == 0 { [0; 32] } else { order };
                s[0] = s[0].wrapping_add(u8::try_from(random.below(3)).unwrap()).wrapping_sub(1);
                let message = random.bytes(2);
                (PublicKey::new(&key), message, [r, s].concat())
            })
            .collect();
        accepted += verified(&cases).iter().filter(|good| **good).count();
    }
    assert!(accepted > 0, "some of these are accepted");
}

#[test]
fn wycheproof_ed25519_signatures_are_judged_as_they_should_be() {
    let file = file("ed25519_test.json");
    let vectors = cases(&file);
    let cases: Vec<_> = vectors
        .iter()
        .map(|(group, test)| {
            let key = bytes(&group["publicKey"]["pk"]).try_into().unwrap();
            (PublicKey::new(&key), bytes(&test["msg"]), bytes(&test["sig"]))
        })
        .collect();
    for (good, (_, test)) in verified(&cases).iter().zip(&vectors) {
        assert_eq!(*good, test["result"] == "valid", "{test}");
    }
}

#[test]
fn wycheproof_x25519_secrets_are_found() {
    let file = file("x25519_test.json");
    let vectors = cases(&file);
    let part = |name: &str| -> Vec<[u8; 32]> {
        vectors.iter().map(|(_, test)| bytes(&test[name]).try_into().unwrap()).collect()
    };
    let keys: Vec<_> = part("private").iter().map(X25519Key::new).collect();
    let peers = part("public");
    let mut secrets = vec![[1; 32]; keys.len()];
    let requests = keys.iter().zip(&peers).zip(&mut secrets);
    let mut requests: Vec<_> =
        requests.map(|((key, peer), secret)| X25519Request::new(key, peer, secret)).collect();
    x25519(&mut requests);
    let results: Vec<Result<()>> = requests.iter().map(|request| request.result).collect();
    assert_eq!(secrets, part("shared"));
    for (result, secret) in results.iter().zip(&secrets) {
        assert_eq!(result.is_err(), *secret == [0; 32]);
    }
}

#[test]
fn the_time_of_x25519_does_not_depend_on_the_key() {
    if !available() {
        return;
    }
    let mut random = Random::new();
    let keys = [X25519Key::new(&[0; 32]), X25519Key::new(&array(&mut random))];
    let peer = array(&mut random);
    judge("X25519 with a zero and with a random key", &mut random, 5000, |class| {
        let mut secrets = [[0; 32]; 8];
        let mut requests: Vec<_> = secrets
            .iter_mut()
            .map(|secret| X25519Request::new(&keys[class], &peer, secret))
            .collect();
        x25519(&mut requests);
    });
}

#[test]
fn the_time_of_an_ed25519_signature_does_not_depend_on_the_key() {
    if !available() {
        return;
    }
    let mut random = Random::new();
    let keys = [[0; 32], array(&mut random)].map(|seed| PrivateKey::new(&seed).unwrap());
    judge("Ed25519 with two keys", &mut random, 10_000, |class| {
        let mut signatures = [[0; SIGNATURE_LENGTH]; 8];
        let mut requests: Vec<_> = signatures
            .iter_mut()
            .map(|signature| SignRequest::new(&keys[class], b"message", signature))
            .collect();
        sign(&mut requests);
    });
}

#[test]
fn products_stay_in_registers() {
    if available() {
        assert_eq!(spills("curve25519::field::mul>"), 0);
        assert_eq!(spills("curve25519::field::square>"), 0);
    }
}

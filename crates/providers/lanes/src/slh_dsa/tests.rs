// SPDX-License-Identifier: Apache-2.0

use super::*;
use crate::chains::Part;
use crate::testing::{Random, judge};
use metaslot_awslc_wrapper::digest::sha256;
use serde_json::Value;

fn hex(value: &Value) -> Vec<u8> {
    let digits = value.as_str().unwrap().as_bytes();
    let byte = |pair: &[u8]| u8::from_str_radix(std::str::from_utf8(pair).unwrap(), 16).unwrap();
    digits.chunks(2).map(byte).collect()
}

fn vectors(kind: &str) -> Vec<Value> {
    let text = include_str!("../../../../../testdata/nist/slh_dsa.json");
    let file: Value = serde_json::from_str(text).unwrap();
    file[kind].as_array().unwrap().clone()
}

fn named(vector: &Value) -> &'static Set {
    Set::all().iter().find(|set| Some(set.name) == vector["set"].as_str()).unwrap()
}

#[test]
fn lengths_are_those_of_the_standard() {
    let lengths =
        [7856, 7856, 17088, 17088, 16224, 16224, 35664, 35664, 29792, 29792, 49856, 49856];
    assert_eq!(Set::all().each_ref().map(Set::signature_length), lengths);
    let digests: [usize; 12] = [30, 30, 34, 34, 39, 39, 42, 42, 47, 47, 49, 49];
    assert_eq!(Set::all().each_ref().map(|set| set.digest_parts().iter().sum::<usize>()), digests);
}

#[test]
fn roots_are_those_of_nists_vectors() {
    let all = vectors("keys");
    assert!(Set::all().iter().all(|set| all.iter().any(|vector| named(vector) == set)));
    for vector in all {
        let (set, private, public) = (named(&vector), hex(&vector["sk"]), hex(&vector["pk"]));
        let (secret, seed) = (&private[..set.node], &public[..set.node]);
        assert_eq!(root(set, secret, seed), public[set.node..], "{} {}", set.name, vector["tcId"]);
    }
}

#[test]
fn signatures_are_those_of_nists_vectors() {
    for vector in vectors("signatures") {
        let (set, private, message) = (named(&vector), hex(&vector["sk"]), hex(&vector["message"]));
        let random = vector.get("additionalRandomness").map(hex);
        let mut signature = vec![0; set.signature_length()];
        sign(set, &private, random.as_deref(), &[&message], &mut signature).unwrap();
        let expected = hex(&vector["signatureSha256"]);
        assert_eq!(sha256(&signature)[..], expected, "{}", set.name);
        let public = &private[2 * set.node..];
        assert_eq!(verify(set, public, &[&message], &signature), Ok(true), "{}", set.name);
    }
}
#[test]
fn what_was_changed_is_no_signature() {
    for set in Set::all().iter().filter(|set| set.name.ends_with("128f")) {
        let mut private = vec![7; set.private_length()];
        let root = root(set, &private[..set.node], &private[2 * set.node..][..set.node]);
        private[3 * set.node..].copy_from_slice(&root);
        let public = &private[2 * set.node..];
        let mut signature = vec![0; set.signature_length()];
        sign(set, &private, Some(&vec![3; set.node]), &[b"message"], &mut signature).unwrap();
        let is = |message: &[u8], signature: &[u8]| verify(set, public, &[message], signature);
        assert_eq!(is(b"message", &signature), Ok(true), "{}", set.name);
        assert_eq!(is(b"Message", &signature), Ok(false), "{}", set.name);
        // The randomizer, the secrets and paths at the bottom, the chains and paths of each layer.
        for at in (0..signature.len()).step_by(331).chain([signature.len() - 1]) {
            signature[at] ^= 0x10;
            assert_eq!(is(b"message", &signature), Ok(false), "{} {at}", set.name);
            signature[at] ^= 0x10;
        }
    }
}

/// Which steps are gone depends on digits, which everyone sees; the seed is hashed and nothing else.
#[test]
fn the_time_of_chains_keeps_their_seed() {
    let mut random = Random::new();
    // By SHA-256 and by SHAKE256.
    for set in &Set::all()[2..4] {
        let public = vec![5; set.node];
        let keys = [Leaf { tree: address::Address::new(0, 0), index: 3 }];
        let seeds = [vec![0; set.node], random.bytes(set.node)];
        let digits = crate::chains::digits(&random.bytes(set.node), 4);
        let mut out = vec![0; set.chains() * set.node];
        judge(&format!("chains of {}", set.name), &mut random, 2000, |class| {
            let hashes = Hashes::new(set, &public);
            chains::chains(hashes, &keys, Part::Whole(&seeds[class]), &mut out);
            chains::chains(hashes, &keys, Part::ToDigit(&seeds[class], &digits), &mut out);
        });
    }
}

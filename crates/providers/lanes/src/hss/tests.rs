// SPDX-License-Identifier: Apache-2.0

use super::*;
use crate::testing::{Random, judge};
use serde_json::Value;

fn hex(value: &Value) -> Vec<u8> {
    let digits = value.as_str().unwrap().as_bytes();
    let byte = |pair: &[u8]| u8::from_str_radix(std::str::from_utf8(pair).unwrap(), 16).unwrap();
    digits.chunks(2).map(byte).collect()
}

const BY_RFC: &str = include_str!("../../../../../testdata/rfc/lms.json");
const BY_NIST: &str = include_str!("../../../../../testdata/nist/lms.json");

fn vectors(file: &str, kind: &str) -> Vec<Value> {
    let file: Value = serde_json::from_str(file).unwrap();
    file[kind].as_array().unwrap().clone()
}

#[test]
fn sets_are_those_of_the_standard() {
    // Chains of each width (RFC 8554 §4.1; SP 800-208 §4).
    let chains = |first: u32, tree: u32| {
        [0, 1, 2, 3].map(|width| Set::new(tree, first + width).unwrap().chains())
    };
    assert_eq!([chains(1, 5), chains(9, 19)], [[265, 133, 67, 34]; 2]);
    assert_eq!([chains(5, 10), chains(13, 24)], [[200, 101, 51, 26]; 2]);
    assert_eq!(Set::new(5, 4).unwrap().signature_length(), 1292);
    let heights = (5..10).map(|tree| Set::new(tree, 1).unwrap().height);
    assert!(heights.eq([5, 10, 15, 20, 25]));
    for (tree, chain) in [(5, 5), (10, 4), (4, 1), (25, 17), (5, 0), (20, 12)] {
        assert_eq!(Set::new(tree, chain), None, "{tree} {chain}");
    }
}

#[test]
fn public_keys_are_those_of_other_implementations() {
    for vector in [BY_RFC, BY_NIST].iter().flat_map(|file| vectors(file, "keys")) {
        let types = [0, 1].map(|at| u32::try_from(vector["types"][at].as_u64().unwrap()).unwrap());
        let set = Set::new(types[0], types[1]).unwrap();
        let id: Vec<u8> = hex(&vector["id"]);
        let private = Private::new(&[set], &hex(&vector["seed"]), id.first_chunk().unwrap());
        assert_eq!(private.public(), hex(&vector["public"]), "{types:?}");
    }
}

#[test]
fn signatures_of_the_standard_verify_and_no_others() {
    for vector in vectors(BY_RFC, "verify") {
        let [public, message, mut signature] =
            ["public", "message", "signature"].map(|what| hex(&vector[what]));
        let is = |message: &[u8], signature: &[u8]| verify(&public, &[message], signature).unwrap();
        assert!(is(&message, &signature), "{}", vector["source"]);
        assert!(!is(&message[1..], &signature));
        for at in (0..signature.len()).step_by(97).chain([signature.len() - 1]) {
            signature[at] ^= 1;
            assert!(!is(&message, &signature), "{} {at}", vector["source"]);
            signature[at] ^= 1;
        }
        for length in [0, 3, 4, 100, signature.len() - 1] {
            assert!(!is(&message, &signature[..length]), "{length}");
        }
        assert!(!is(&message, &[&signature[..], &[0]].concat()));
    }
}

#[test]
fn every_number_signs_once_and_lower_trees_stay_what_they_were() {
    let sets = [Set::new(10, 7).unwrap(), Set::new(10, 8).unwrap()];
    let (seed, id) = ([7; 24], [9; ID]);
    let mut private = Private::new(&sets, &seed, &id);
    let public = private.public();
    assert_eq!(parse_public(&public), Some((2, sets[0])));
    assert_eq!(signatures(&sets), Some(1024));
    let length = signature_length(&sets);
    let mut seen = Vec::new();
    for number in [0, 1, 31, 32, 33, 1023] {
        let signature = private.sign(number, &[b"mess", b"age"]).unwrap();
        assert_eq!(signature.len(), length);
        assert!(verify(&public, &[b"message"], &signature).unwrap(), "{number}");
        assert!(!verify(&public, &[b"Message"], &signature).unwrap(), "{number}");
        // In another process the trees below are grown anew: they are the same.
        let again = Private::new(&sets, &seed, &id).sign(number, &[b"message"]).unwrap();
        assert!(again == signature, "{number}");
        assert!(!seen.contains(&signature));
        seen.push(signature);
    }
}

/// Which steps are gone depends on digits, which everyone sees; the seed is hashed and nothing else.
#[test]
fn the_time_of_chains_keeps_their_seed() {
    let mut random = Random::new();
    // By SHA-256 and by SHAKE256, eight bits of a hash for each chain.
    for (tree, chain) in [(5, 4), (15, 12)] {
        let set = Set::new(tree, chain).unwrap();
        let tree = Tree { set: &set, id: &[5; ID] };
        let seeds = [vec![0; set.node], random.bytes(set.node)];
        let digits = crate::chains::digits(&random.bytes(set.node), 8);
        let mut out = vec![0; set.chains() * set.node];
        judge(&format!("chains of HSS {chain}"), &mut random, 500, |class| {
            tree.chains(3, Part::Whole(&seeds[class]), &mut out);
            tree.chains(3, Part::ToDigit(&seeds[class], &digits), &mut out);
        });
    }
}

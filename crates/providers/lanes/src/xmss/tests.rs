// SPDX-License-Identifier: Apache-2.0

mod plain;

use super::*;
use crate::chains::Part;
use crate::testing::{Random, judge};
use serde_json::Value;

fn hex(value: &Value) -> Vec<u8> {
    let digits = value.as_str().unwrap().as_bytes();
    let byte = |pair: &[u8]| u8::from_str_radix(std::str::from_utf8(pair).unwrap(), 16).unwrap();
    digits.chunks(2).map(byte).collect()
}

fn vectors(kind: &str) -> Vec<Value> {
    let text = include_str!("../../../../../testdata/xmss/vectors.json");
    let file: Value = serde_json::from_str(text).unwrap();
    file[kind].as_array().unwrap().clone()
}

fn scheme(vector: &Value) -> Scheme {
    let single = vector["set"].as_str().unwrap().starts_with("XMSS-");
    if single { Scheme::Single } else { Scheme::Multi }
}

const SETS: [(Scheme, u32); 2] = [(Scheme::Single, 21), (Scheme::Multi, 56)];

#[test]
fn lengths_are_those_of_the_standards() {
    let lengths = |scheme, numbers: std::ops::RangeInclusive<u32>| -> Vec<usize> {
        numbers.map(|number| Set::new(scheme, number).unwrap().signature_length()).collect()
    };
    // RFC 8391 §5.3 and §5.4, SP 800-208 §5.
    assert_eq!(lengths(Scheme::Single, 1..=6), [2500, 2692, 2820, 9092, 9476, 9732]);
    assert_eq!(lengths(Scheme::Single, 13..=18), [1492, 1636, 1732, 2500, 2692, 2820]);
    let narrow = [4963, 9251, 5605, 9893, 18469, 8392, 14824, 27688];
    assert_eq!(lengths(Scheme::Multi, 1..=8), narrow);
    assert_eq!(lengths(Scheme::Multi, 41..=48), narrow);
    let wide = [18115, 34883, 19397, 36165, 69701, 29064, 54216, 104_520];
    assert_eq!(lengths(Scheme::Multi, 25..=32), wide);
    assert_eq!(lengths(Scheme::Multi, 33..=34), [2955, 5403]);
    for (scheme, last) in SETS {
        assert!((1..=last).all(|number| Set::new(scheme, number).is_some()));
        assert!([0, last + 1, u32::MAX].iter().all(|number| Set::new(scheme, *number).is_none()));
    }
}

fn short(bytes: &[u8]) -> Vec<u8> {
    use metaslot_awslc_wrapper::shake::{Function, Shake};
    let mut out = vec![0; 10];
    let mut shake = Shake::new(Function::Shake128).unwrap();
    shake.update(bytes).unwrap();
    shake.finish(&mut out).unwrap();
    out
}

#[test]
fn keys_and_signatures_are_those_of_the_reference_implementation() {
    for vector in vectors("digests") {
        let many = vector["many"].as_bool().unwrap();
        let number = u32::try_from(vector["number"].as_u64().unwrap()).unwrap();
        let set = Set::new(if many { Scheme::Multi } else { Scheme::Single }, number).unwrap();
        let seeds: Vec<u8> = (0..).take(set.seeds_length()).collect();
        let mut private = Private::new(&set, &seeds);
        assert_eq!(short(&private.public()[4..]), hex(&vector["public"]), "{set:?}");
        let signature = private.sign(1 << (set.height - 1), &[&[37]]).unwrap();
        assert_eq!(short(&signature), hex(&vector["signature"]), "{set:?}");
    }
}

#[test]
fn keys_and_signatures_are_those_of_another_implementation() {
    for vector in vectors("signed") {
        let [seeds, public, message, signature] =
            ["seeds", "public", "message", "signature"].map(|what| hex(&vector[what]));
        let set = parse_public(scheme(&vector), &public).unwrap();
        let mut private = Private::new(&set, &seeds);
        assert_eq!(private.public(), public, "{}", vector["set"]);
        let (begin, end) = message.split_at(5);
        assert!(private.sign(0, &[begin, end]).unwrap() == signature, "{}", vector["set"]);
    }
}

#[test]
fn signatures_of_other_implementations_verify_and_no_others() {
    for vector in [vectors("signed"), vectors("verified")].concat() {
        let [public, message, mut signature] =
            ["public", "message", "signature"].map(|what| hex(&vector[what]));
        let of = scheme(&vector);
        let is =
            |message: &[u8], signature: &[u8]| verify(of, &public, &[message], signature).unwrap();
        assert!(is(&message, &signature), "{}", vector["set"]);
        assert!(!is(&message[1..], &signature));
        for at in (0..signature.len()).step_by(signature.len() / 12).chain([signature.len() - 1]) {
            signature[at] ^= 1;
            assert!(!is(&message, &signature), "{} {at}", vector["set"]);
            signature[at] ^= 1;
        }
        for length in [0, 3, 4, 100, signature.len() - 1] {
            assert!(!is(&message, &signature[..length]), "{length}");
        }
        assert!(!is(&message, &[&signature[..], &[0]].concat()));
        let other = if of == Scheme::Single { Scheme::Multi } else { Scheme::Single };
        assert!(!verify(other, &public, &[&message], &signature).unwrap());
    }
}

#[test]
fn a_number_beyond_the_last_is_no_signature_s() {
    let set = Set::new(Scheme::Single, 13).unwrap();
    let mut private = Private::new(&set, &[3; 72]);
    let mut signature = private.sign(1023, &[b"message"]).unwrap();
    let public = private.public();
    assert!(verify(Scheme::Single, &public, &[b"message"], &signature).unwrap());
    signature[1] = 1;
    assert!(!verify(Scheme::Single, &public, &[b"message"], &signature).unwrap());
}

/// One hash after the other, as the standard writes them down.
#[test]
fn lanes_make_what_a_plain_implementation_makes() {
    // Trees of 32 keys of each hash, and one more shape.
    for number in (0..7).map(|hash| 8 * hash + 2).chain([37]) {
        let set = Set::new(Scheme::Multi, number).unwrap();
        let seeds: Vec<u8> = (3..=u8::MAX).step_by(3).cycle().take(set.seeds_length()).collect();
        let plain = plain::Plain::new(&set, &seeds);
        let mut private = Private::new(&set, &seeds);
        assert_eq!(private.public(), plain.public(), "{set:?}");
        let number = set.signatures() / 3;
        let signature = private.sign(number, &[b"message"]).unwrap();
        assert!(signature == plain.sign(number, b"message"), "{set:?}");
    }
}

#[test]
fn every_number_signs_once_and_lower_trees_stay_what_they_were() {
    let set = Set::new(Scheme::Multi, 34).unwrap();
    let mut private = Private::new(&set, &[5; 72]);
    let public = private.public();
    let last = set.signatures() - 1;
    let mut seen = Vec::new();
    // In an order in which the trees below are taken again, and others grow.
    for number in [0, last, 1, 31, 32, 33, 32 << 10] {
        let signature = private.sign(number, &[b"mess", b"age"]).unwrap();
        assert!(verify(Scheme::Multi, &public, &[b"message"], &signature).unwrap(), "{number}");
        assert!(!verify(Scheme::Multi, &public, &[b"Message"], &signature).unwrap(), "{number}");
        // In another process the trees below are grown anew: they are the same.
        let again = Private::new(&set, &[5; 72]).sign(number, &[b"message"]).unwrap();
        assert!(again == signature, "{number}");
        assert!(!seen.contains(&signature));
        seen.push(signature);
    }
}

/// Which steps are gone depends on digits, which everyone sees; the seed is hashed and nothing else.
#[test]
fn the_time_of_chains_keeps_their_seed() {
    let mut random = Random::new();
    for number in [13, 7] {
        let set = Set::new(Scheme::Single, number).unwrap();
        let mut lanes = Lanes::new(&set, &vec![5; set.node]);
        let seeds = [vec![0; set.node], random.bytes(set.node)];
        let digits = crate::chains::digits(&random.bytes(set.node), set::WIDTH);
        let mut out = vec![0; digits.len() * set.node];
        let what = format!("chains of XMSS {number}");
        judge(&what, &mut random, 2000, |class| {
            lanes.chains(Place::default(), 3, Part::Whole(&seeds[class]), &mut out);
            lanes.chains(Place::default(), 3, Part::ToDigit(&seeds[class], &digits), &mut out);
        });
    }
}

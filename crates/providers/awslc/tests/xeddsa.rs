// SPDX-License-Identifier: Apache-2.0
//! XEdDSA: what the vectors say, and what Ed25519 of AWS-LC says of the same signatures.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

mod common;
#[path = "common/vectors.rs"]
mod vectors;

use common::{algorithm, imported, pair};
use curve25519_dalek::MontgomeryPoint;
#[allow(unused_imports, reason = "where another provider includes this file, it is that one")]
use metaslot_awslc::AWSLC as PROVIDER;
use metaslot_awslc_wrapper::curve25519::{Ed25519, ed25519_verify};
use metaslot_ck::*;
use metaslot_spi::provider::Direction;
use metaslot_spi::{Key, Params, Value};
use std::sync::Arc;
use vectors::hex;

const HASHES: [CK_MECHANISM_TYPE; 6] =
    [CKM_SHA512, CKM_SHA256, CKM_SHA3_256, CKM_SHA3_512, CKM_BLAKE2B_256, CKM_BLAKE2B_512];
const CURVE: [u8; 5] = [6, 3, 0x2b, 0x65, 0x6e];

fn file() -> serde_json::Value {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../../testdata/xeddsa/vectors.json");
    serde_json::from_slice(&std::fs::read(path).unwrap()).unwrap()
}

fn public(point: &[u8]) -> Arc<Key> {
    let shown = [(CKA_EC_PARAMS, CURVE.to_vec()), (CKA_EC_POINT, [&[4, 32], point].concat())];
    imported(CKO_PUBLIC_KEY, CKK_EC_MONTGOMERY, &shown, &[]).unwrap()
}

fn params(vector: &serde_json::Value) -> Params {
    Params::XEdDsa { hash: mechanism_by_name(vector["hash"].as_str().unwrap()).unwrap() }
}

fn verifies(key: &Arc<Key>, params: &Params, message: &[u8], signature: &[u8]) -> Result<()> {
    let row = algorithm(CKM_XEDDSA).verify.unwrap();
    row.check(Direction::Backward, key, params).unwrap();
    let mut stream = row.start(Direction::Backward, key, params).unwrap();
    message.chunks(7).for_each(|part| stream.update(part).unwrap());
    let (whole, parts) = (row.verify(key, params, message, signature), stream.verify(signature));
    assert_eq!(whole, parts);
    whole
}

#[test]
fn good_signatures_are_good_and_bad_ones_are_refused() {
    let file = file();
    let mut signs = [0; 2];
    for vector in file["good"].as_array().unwrap() {
        let (key, message) = (public(&hex(&vector["public"])), hex(&vector["message"]));
        let signature = hex(&vector["signature"]);
        assert_eq!(verifies(&key, &params(vector), &message, &signature), Ok(()), "{vector}");
        let shown = [(CKA_EC_PARAMS, CURVE.to_vec())];
        let secret = [(CKA_VALUE, &hex(&vector["private"])[..])];
        let private = imported(CKO_PRIVATE_KEY, CKK_EC_MONTGOMERY, &shown, &secret).unwrap();
        assert_eq!(private.bytes(CKA_EC_POINT), key.bytes(CKA_EC_POINT));
        signs[usize::from(vector["sign"] == 1)] += 1;
    }
    assert!(signs.iter().all(|count| *count > 3), "{signs:?}");
    for vector in file["refused"].as_array().unwrap() {
        let (key, message) = (public(&hex(&vector["public"])), hex(&vector["message"]));
        let verdict = verifies(&key, &params(vector), &message, &hex(&vector["signature"]));
        assert_eq!(verdict, Err(Error::SIGNATURE_INVALID), "{vector}");
    }
}

/// What Ed25519 says: the key has sign 0, and the hash is SHA-512.
fn by_ed25519(point: &[u8], message: &[u8], signature: &[u8; 64]) -> bool {
    let edwards = MontgomeryPoint(point.try_into().unwrap()).to_edwards(0).unwrap();
    let public = edwards.compress().to_bytes();
    ed25519_verify(Ed25519::Plain, &public, message, signature).is_ok()
}

#[test]
fn signatures_by_random_keys_are_good_and_those_of_sha_512_are_ed25519_s() {
    let sign = algorithm(CKM_XEDDSA).sign.unwrap();
    let curve = [(CKA_EC_PARAMS, Value::Bytes(CURVE.to_vec()))];
    for length in 0..=300 {
        let keys = pair(CKM_EC_MONTGOMERY_KEY_PAIR_GEN, CKK_EC_MONTGOMERY, &curve);
        let message: Vec<u8> = (0..length).map(|at| u8::try_from(at % 251).unwrap()).collect();
        for hash in [CKM_SHA512, HASHES[length % HASHES.len()]] {
            let params = Params::XEdDsa { hash };
            sign.check(Direction::Forward, &keys.private, &params).unwrap();
            let mut out = [0; 64];
            assert_eq!(sign.sign(&keys.private, &params, &message, &mut out), Ok(64));
            assert_eq!(verifies(&keys.public, &params, &message, &out), Ok(()));
            let point = &keys.public.bytes(CKA_EC_POINT).unwrap()[2..];
            assert_eq!(by_ed25519(point, &message, &out), hash == CKM_SHA512);
            let mut stream = sign.start(Direction::Forward, &keys.private, &params).unwrap();
            message.chunks(33).for_each(|part| stream.update(part).unwrap());
            let mut other = [0; 64];
            stream.sign(&mut other).unwrap();
            assert_ne!(other, out, "each has random bytes of its own");
            assert_eq!(verifies(&keys.public, &params, &message, &other), Ok(()));
        }
    }
}

#[test]
fn no_bit_of_a_signature_a_message_or_a_key_may_be_another() {
    let row = algorithm(CKM_XEDDSA).verify.unwrap();
    for vector in &file()["good"].as_array().unwrap()[..12] {
        let point = hex(&vector["public"]);
        let (key, params, message) = (public(&point), params(vector), hex(&vector["message"]));
        let signature = hex(&vector["signature"]);
        let flipped = |bytes: &[u8], bit: usize| {
            let mut bytes = bytes.to_vec();
            bytes[bit / 8] ^= 1 << (bit % 8);
            bytes
        };
        let bad = |verdict, bit| assert_eq!(verdict, Err(Error::SIGNATURE_INVALID), "bit {bit}");
        for bit in 0..512 {
            bad(row.verify(&key, &params, &message, &flipped(&signature, bit)), bit);
        }
        for bit in 0..message.len().min(64) * 8 {
            bad(row.verify(&key, &params, &flipped(&message, bit), &signature), bit);
        }
        for bit in 0..256 {
            bad(row.verify(&public(&flipped(&point, bit)), &params, &message, &signature), bit);
        }
        for hash in HASHES {
            let params = Params::XEdDsa { hash };
            let good = row.verify(&key, &params, &message, &signature).is_ok();
            assert_eq!(good, Some(hash) == mechanism_by_name(vector["hash"].as_str().unwrap()));
        }
        for length in [0, 63, 65] {
            let mut other = signature.clone();
            other.resize(length, 0);
            let verdict = row.verify(&key, &params, &message, &other);
            assert_eq!(verdict, Err(Error::SIGNATURE_LEN_RANGE));
        }
    }
}

#[test]
fn other_hashes_halves_and_lengths_are_refused_at_the_beginning() {
    let row = algorithm(CKM_XEDDSA);
    let (sign, verify) = (row.sign.unwrap(), row.verify.unwrap());
    let curve = [(CKA_EC_PARAMS, Value::Bytes(CURVE.to_vec()))];
    let keys = pair(CKM_EC_MONTGOMERY_KEY_PAIR_GEN, CKK_EC_MONTGOMERY, &curve);
    for params in [
        Params::None,
        Params::Ulong(CKM_SHA512),
        Params::XEdDsa { hash: CKM_SHA_1 },
        Params::XEdDsa { hash: CKM_SHA384 },
        Params::XEdDsa { hash: CKM_XEDDSA },
    ] {
        let refused = Err(Error::MECHANISM_PARAM_INVALID);
        assert_eq!(sign.check(Direction::Forward, &keys.private, &params), refused);
        assert_eq!(verify.check(Direction::Backward, &keys.public, &params), refused);
    }
    let params = Params::XEdDsa { hash: CKM_SHA512 };
    let refused = Err(Error::KEY_TYPE_INCONSISTENT);
    assert_eq!(sign.check(Direction::Forward, &keys.public, &params), refused);
    assert_eq!(verify.check(Direction::Backward, &keys.private, &params), refused);
}

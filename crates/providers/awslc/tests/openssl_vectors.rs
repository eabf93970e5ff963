// SPDX-License-Identifier: Apache-2.0
//! Keys and signatures that OpenSSL made: each signature mechanism with each hash and curve, and
//! the encodings of every kind of key, byte by byte.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

mod common;
#[path = "common/vectors.rs"]
mod vectors;

use common::{algorithm, imported, key};
#[allow(unused_imports, reason = "where another provider includes this file, it is that one")]
use metaslot_awslc::AWSLC as PROVIDER;
use metaslot_awslc::AWSLC;
use metaslot_ck::*;
use metaslot_spi::provider::{Direction, Provider};
use metaslot_spi::{Key, Params};
use serde_json::Value;
use std::sync::Arc;
use vectors::hex;

fn file() -> Value {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../../testdata/openssl/asymmetric.json");
    serde_json::from_str(&std::fs::read_to_string(path).unwrap()).unwrap()
}

fn private(file: &Value, name: &str) -> Arc<Key> {
    let der = hex(&file["keys"][name]["privateKeyInfo"]);
    let object = AWSLC.decode_private_key(&der).unwrap();
    let key_type = object.attributes.ulong(CKA_KEY_TYPE).unwrap();
    key(CKO_PRIVATE_KEY, key_type, object)
}

/// The public half, from what the private one shows.
fn public(private: &Key) -> Arc<Key> {
    let shown: Vec<_> = [CKA_MODULUS, CKA_PUBLIC_EXPONENT, CKA_EC_PARAMS, CKA_EC_POINT]
        .into_iter()
        .filter_map(|number| Some((number, private.attributes().bytes(number)?.to_vec())))
        .collect();
    imported(CKO_PUBLIC_KEY, private.key_type(), &shown, &[]).unwrap()
}

#[test]
fn encodings_of_keys_are_those_of_openssl() {
    let file = file();
    for (name, encodings) in file["keys"].as_object().unwrap() {
        let private = private(&file, name);
        let der = AWSLC.encode_private_key(&private).unwrap();
        assert_eq!(der.expose(), hex(&encodings["privateKeyInfo"]), "{name}");
        let info = private.bytes(CKA_PUBLIC_KEY_INFO).unwrap();
        assert_eq!(info, hex(&encodings["publicKeyInfo"]), "{name}");
        assert_eq!(public(&private).bytes(CKA_PUBLIC_KEY_INFO).unwrap(), info, "{name}");
    }
}

fn params(mechanism: CK_MECHANISM_TYPE, salt: Option<u64>) -> Params {
    let Some(salt_length) = salt else { return Params::None };
    let (hash, mgf) = match mechanism {
        CKM_SHA1_RSA_PKCS_PSS => (CKM_SHA_1, CKG_MGF1_SHA1),
        CKM_SHA224_RSA_PKCS_PSS => (CKM_SHA224, CKG_MGF1_SHA224),
        CKM_SHA256_RSA_PKCS_PSS => (CKM_SHA256, CKG_MGF1_SHA256),
        CKM_SHA384_RSA_PKCS_PSS => (CKM_SHA384, CKG_MGF1_SHA384),
        CKM_SHA512_RSA_PKCS_PSS => (CKM_SHA512, CKG_MGF1_SHA512),
        CKM_SHA3_224_RSA_PKCS_PSS => (CKM_SHA3_224, CKG_MGF1_SHA3_224),
        CKM_SHA3_256_RSA_PKCS_PSS => (CKM_SHA3_256, CKG_MGF1_SHA3_256),
        CKM_SHA3_384_RSA_PKCS_PSS => (CKM_SHA3_384, CKG_MGF1_SHA3_384),
        _ => (CKM_SHA3_512, CKG_MGF1_SHA3_512),
    };
    Params::Pss { hash, mgf, salt_length }
}

#[test]
fn signatures_of_openssl_are_good_and_ours_are_the_same_where_they_can_be() {
    let file = file();
    let message = hex(&file["message"]);
    for vector in file["signatures"].as_array().unwrap() {
        let mechanism = mechanism_by_name(vector["mechanism"].as_str().unwrap()).unwrap();
        let private = private(&file, vector["key"].as_str().unwrap());
        let (row, public) = (algorithm(mechanism), public(&private));
        let (params, signature) =
            (params(mechanism, vector["salt"].as_u64()), hex(&vector["signature"]));
        let verify = row.verify.unwrap();
        verify.check(Direction::Backward, &public, &params).unwrap();
        assert_eq!(verify.verify(&public, &params, &message, &signature), Ok(()), "{vector}");
        let sign = row.sign.unwrap();
        sign.check(Direction::Forward, &private, &params).unwrap();
        let mut own = vec![0; sign.length(&private, &params)];
        sign.sign(&private, &params, &message, &mut own).unwrap();
        assert_eq!(verify.verify(&public, &params, &message, &own), Ok(()), "{vector}");
        let random = vector["salt"].is_u64() || private.key_type() == CKK_EC;
        assert_eq!(own == signature, !random, "{vector}");
    }
}

#[test]
fn every_signature_row_with_a_hash_has_a_vector() {
    let file = file();
    let covered: Vec<_> = file["signatures"]
        .as_array()
        .unwrap()
        .iter()
        .map(|vector| mechanism_by_name(vector["mechanism"].as_str().unwrap()).unwrap())
        .collect();
    for row in AWSLC.algorithms().iter().filter(|row| row.verify.is_some()) {
        let name = mechanism_name(row.mechanism).unwrap();
        let asymmetric = ["RSA", "ECDSA", "EDDSA"].iter().any(|family| name.contains(family));
        // Without a hash: the data is the digest, or a block of the caller's.
        let bare = [CKM_RSA_PKCS, CKM_RSA_X_509, CKM_RSA_PKCS_PSS, CKM_ECDSA];
        if asymmetric && !bare.contains(&row.mechanism) {
            // Each of these names its mechanism, and the testkit signs and verifies it through the C ABI.
            let others = [
                include_str!("../../../../testdata/rfc/old_ciphers.json"),
                include_str!("../../../../testdata/openssl/groups.json"),
                include_str!("../../../../testdata/xeddsa/vectors.json"),
            ];
            let there = others.iter().any(|file| file.contains(&format!("\"{name}\"")));
            assert!(there || covered.contains(&row.mechanism), "{name}");
        }
    }
}

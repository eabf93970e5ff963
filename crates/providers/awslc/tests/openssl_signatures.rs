// SPDX-License-Identifier: Apache-2.0
//! Signatures made by OpenSSL with every hash function.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

mod common;
#[path = "common/vectors.rs"]
mod vectors;

use common::{algorithm, imported};
#[allow(unused_imports, reason = "where another provider includes this file, it is that one")]
use metaslot_awslc::AWSLC as PROVIDER;
use metaslot_ck::*;
use metaslot_spi::provider::Direction;
use metaslot_spi::{Key, Params};
use serde_json::Value;
use std::sync::Arc;
use vectors::hex;

/// OBJECT IDENTIFIER prime256v1
const P256: &[u8] = &[6, 8, 0x2a, 0x86, 0x48, 0xce, 0x3d, 3, 1, 7];

fn public_key(vector: &Value) -> Arc<Key> {
    if vector["n"].is_string() {
        let shown = [(CKA_MODULUS, hex(&vector["n"])), (CKA_PUBLIC_EXPONENT, vec![1, 0, 1])];
        return imported(CKO_PUBLIC_KEY, CKK_RSA, &shown, &[]).unwrap();
    }
    // An OCTET STRING of the uncompressed point.
    let mut point = vec![4, 65, 4];
    point.extend(hex(&vector["x"]));
    point.extend(hex(&vector["y"]));
    let shown = [(CKA_EC_PARAMS, P256.to_vec()), (CKA_EC_POINT, point)];
    imported(CKO_PUBLIC_KEY, CKK_EC, &shown, &[]).unwrap()
}

/// The parameters of PSS as OpenSSL was asked to use them: one hash, a salt as long.
fn params(mechanism: &str) -> Params {
    let Some(hash) = mechanism.strip_suffix("_RSA_PKCS_PSS") else { return Params::None };
    let (hash, mgf, salt_length) = match hash {
        "SHA1" => (CKM_SHA_1, CKG_MGF1_SHA1, 20),
        "SHA224" => (CKM_SHA224, CKG_MGF1_SHA224, 28),
        "SHA256" => (CKM_SHA256, CKG_MGF1_SHA256, 32),
        "SHA384" => (CKM_SHA384, CKG_MGF1_SHA384, 48),
        "SHA512" => (CKM_SHA512, CKG_MGF1_SHA512, 64),
        "SHA3_224" => (CKM_SHA3_224, CKG_MGF1_SHA3_224, 28),
        "SHA3_256" => (CKM_SHA3_256, CKG_MGF1_SHA3_256, 32),
        "SHA3_384" => (CKM_SHA3_384, CKG_MGF1_SHA3_384, 48),
        "SHA3_512" => (CKM_SHA3_512, CKG_MGF1_SHA3_512, 64),
        other => panic!("unknown hash {other}"),
    };
    Params::Pss { hash, mgf, salt_length }
}

#[test]
fn what_openssl_signed_is_verified_and_nothing_else() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../../testdata/openssl/signatures.json");
    let file: Value = serde_json::from_str(&std::fs::read_to_string(path).unwrap()).unwrap();
    for vector in file["tests"].as_array().unwrap() {
        let name = vector["mechanism"].as_str().unwrap();
        let verify = algorithm(mechanism_by_name(name).unwrap()).verify.unwrap();
        let (key, params) = (public_key(vector), params(name));
        let (mut message, signature) = (hex(&vector["msg"]), hex(&vector["sig"]));
        verify.check(Direction::Backward, &key, &params).unwrap();
        assert_eq!(verify.verify(&key, &params, &message, &signature), Ok(()), "{name}");
        message.push(0);
        let wrong = verify.verify(&key, &params, &message, &signature);
        assert_eq!(wrong, Err(Error::SIGNATURE_INVALID), "{name}");
    }
}

// SPDX-License-Identifier: Apache-2.0
//! The Wycheproof vectors, each file as one batch with all its keys.

use super::tests::{Kernels, P256, P384};
use super::{DeriveRequest, PrivateKey, PublicKey, VerifyRequest};
use metaslot_awslc_wrapper::digest::Hash;
use serde_json::Value;

pub(crate) fn file(name: &str) -> Value {
    let path = format!("{}/../../../testdata/wycheproof/{name}", env!("CARGO_MANIFEST_DIR"));
    serde_json::from_slice(&std::fs::read(path).unwrap()).unwrap()
}

pub(crate) fn bytes(hex: &Value) -> Vec<u8> {
    let digit = |byte: u8| (byte as char).to_digit(16).unwrap();
    let pairs = hex.as_str().unwrap().as_bytes().as_chunks::<2>().0;
    pairs.iter().map(|[high, low]| u8::try_from(digit(*high) << 4 | digit(*low)).unwrap()).collect()
}

/// Every test of a file, with its group.
pub(crate) fn cases(file: &Value) -> Vec<(&Value, &Value)> {
    let groups = file["testGroups"].as_array().unwrap();
    let cases = |group| {
        let group: &Value = group;
        group["tests"].as_array().unwrap().iter().map(move |test| (group, test))
    };
    groups.iter().flat_map(cases).collect()
}

impl<const N: usize> Kernels<N> {
    fn verifies_vectors(&self, name: &str, hash: Hash) {
        let file = file(name);
        let cases = cases(&file);
        let inputs: Vec<(PublicKey<N>, Vec<u8>, Vec<u8>)> = cases
            .iter()
            .map(|(group, test)| {
                let mut digest = vec![0; hash.length()];
                hash.digest(&bytes(&test["msg"]), &mut digest).unwrap();
                let point = bytes(&group["publicKey"]["uncompressed"]);
                ((self.public)(&point).unwrap(), digest, bytes(&test["sig"]))
            })
            .collect();
        let mut requests: Vec<_> = inputs
            .iter()
            .map(|(key, digest, signature)| VerifyRequest::new(key, digest, signature))
            .collect();
        (self.verify)(&mut requests);
        for (request, (_, test)) in requests.iter().zip(&cases) {
            assert_eq!(request.result.is_ok(), test["result"] == "valid", "{test}");
        }
    }

    fn derives_vectors(&self, name: &str) {
        let file = file(name);
        let cases = cases(&file);
        let inputs: Vec<(PrivateKey<N>, Vec<u8>)> = cases
            .iter()
            .map(|(_, test)| {
                ((self.private)(&bytes(&test["private"])).unwrap(), bytes(&test["public"]))
            })
            .collect();
        let mut secrets = vec![vec![0; self.curve.length()]; cases.len()];
        let mut requests: Vec<_> = inputs
            .iter()
            .zip(&mut secrets)
            .map(|((key, peer), secret)| DeriveRequest::new(key, peer, secret))
            .collect();
        (self.derive)(&mut requests);
        let results: Vec<_> = requests.iter().map(|request| request.result).collect();
        for ((result, secret), (_, test)) in results.iter().zip(&secrets).zip(&cases) {
            // A compressed point is "acceptable": we take it.
            assert_eq!(result.is_ok(), test["result"] != "invalid", "{test}");
            assert!(result.is_err() || *secret == bytes(&test["shared"]), "{test}");
        }
    }
}

#[test]
fn wycheproof_signatures_are_judged_as_they_should_be() {
    P256.verifies_vectors("ecdsa_secp256r1_sha256_p1363_test.json", Hash::Sha256);
    P256.verifies_vectors("ecdsa_secp256r1_sha512_p1363_test.json", Hash::Sha512);
    P384.verifies_vectors("ecdsa_secp384r1_sha384_p1363_test.json", Hash::Sha384);
}

#[test]
fn wycheproof_secrets_are_found() {
    P256.derives_vectors("ecdh_secp256r1_ecpoint_test.json");
    P384.derives_vectors("ecdh_secp384r1_ecpoint_test.json");
}

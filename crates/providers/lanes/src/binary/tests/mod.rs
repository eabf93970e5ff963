// SPDX-License-Identifier: Apache-2.0
//! The forms against each other, the curves against their definitions, both against OpenSSL.

mod edges;
mod forms;
mod openssl;
mod timing;

use super::curve::Kind;
use super::ecdh::derive_with;
use super::ecdsa::{sign_with, verify_with};
use super::{Derive, Error, PrivateKey, PublicKey, Sign, Verify};

/// Signatures of one digest for each key, all in one batch.
fn sign_each(kind: Kind, keys: &[&PrivateKey], digest: &[u8]) -> Vec<Vec<u8>> {
    let length = |key: &&PrivateKey| 2 * key.curve().order_length();
    let mut signatures: Vec<Vec<u8>> = keys.iter().map(|key| vec![0; length(key)]).collect();
    let places = keys.iter().zip(&mut signatures);
    let mut requests: Vec<_> = places.map(|(key, out)| Sign::new(key, digest, out)).collect();
    sign_with(kind, &mut requests);
    for request in &requests {
        assert_eq!(request.answer, Ok(()));
    }
    signatures
}

/// What verifying says of each (key, digest, signature), all in one batch.
fn verify_each(kind: Kind, what: &[(&PublicKey, &[u8], &[u8])]) -> Vec<Result<(), Error>> {
    let mut requests: Vec<_> =
        what.iter().map(|(key, digest, signature)| Verify::new(key, digest, signature)).collect();
    verify_with(kind, &mut requests);
    requests.iter().map(|request| request.answer).collect()
}

/// The secrets of each pair of keys, all in one batch.
fn derive_each(kind: Kind, pairs: &[(&PrivateKey, &PublicKey)], cofactor: bool) -> Vec<Vec<u8>> {
    let length = |key: &PrivateKey| key.curve().field_length();
    let mut secrets: Vec<Vec<u8>> = pairs.iter().map(|(key, _)| vec![0; length(key)]).collect();
    let places = pairs.iter().zip(&mut secrets);
    let mut requests: Vec<_> =
        places.map(|((key, peer), out)| Derive::new(key, peer, cofactor, out)).collect();
    derive_with(kind, &mut requests);
    for request in &requests {
        assert_eq!(request.answer, Ok(()));
    }
    secrets
}

// SPDX-License-Identifier: Apache-2.0
//! The three forms of Ed25519 against RFC 8032 §7, in one call and in parts.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

mod common;

use common::{algorithm, imported};
#[allow(unused_imports, reason = "where another provider includes this file, it is that one")]
use metaslot_awslc::AWSLC as PROVIDER;
use metaslot_ck::*;
use metaslot_spi::provider::Direction;
use metaslot_spi::{Bytes, Key, Params};
use std::sync::Arc;

fn hex(text: &str) -> Vec<u8> {
    (0..text.len())
        .step_by(2)
        .map(|at| u8::from_str_radix(&text[at..at + 2], 16).unwrap())
        .collect()
}

fn key(seed: &str, public: &str) -> Arc<Key> {
    let shown = [(CKA_EC_PARAMS, vec![6, 3, 0x2b, 0x65, 0x70])];
    let key =
        imported(CKO_PRIVATE_KEY, CKK_EC_EDWARDS, &shown, &[(CKA_VALUE, &hex(seed))]).unwrap();
    assert_eq!(key.bytes(CKA_EC_POINT).unwrap(), [vec![4, 32], hex(public)].concat());
    key
}

fn signs(key: &Arc<Key>, params: &Params, message: &[u8], expected: &str) {
    let sign = algorithm(CKM_EDDSA).sign.unwrap();
    sign.check(Direction::Forward, key, params).unwrap();
    let mut out = [0; 64];
    assert_eq!(sign.sign(key, params, message, &mut out), Ok(64));
    assert_eq!(out.as_slice(), hex(expected));
    let mut stream = sign.start(Direction::Forward, key, params).unwrap();
    message.chunks(2).for_each(|part| stream.update(part).unwrap());
    let mut out = [0; 64];
    stream.sign(&mut out).unwrap();
    assert_eq!(out.as_slice(), hex(expected));
}

fn params(prehash: bool, context: &[u8]) -> Params {
    Params::EdDsa { prehash, context: Bytes::from_slice(context) }
}

#[test]
fn plain_signatures_are_those_of_the_rfc() {
    let key = key(
        "4ccd089b28ff96da9db6c346ec114e0f5b8a319f35aba624da8cf6ed4fb8a6fb",
        "3d4017c3e843895a92b70aa74d1b7ebc9c982ccf2ec4968cc0cd55f12af4660c",
    );
    let expected = "92a009a9f0d4cab8720e820b5f642540a2b27b5416503f8fb3762223ebdb69da\
                    085ac1e43e15996e458f3613d0f11d8c387b2eaeb4302aeeb00d291612bb0c00";
    signs(&key, &Params::None, &[0x72], expected);
}

#[test]
fn signatures_with_a_context_are_those_of_the_rfc() {
    let key = key(
        "0305334e381af78f141cb666f6199f57bc3495335a256a95bd2a55bf546663f6",
        "dfc9425e4f968f7f0c29f0259cf5f9aed6851c2bb4ad8bfb860cfee0ab248292",
    );
    let message = hex("f726936d19c800494e3fdaff20b276a8");
    let expected = "55a4cc2f70a54e04288c5f4cd1e45a7bb520b36292911876cada7323198dd87a\
                    8b36950b95130022907a7fb7c4e9b2d5f6cca685a587b4b21f4b888e4e7edb0d";
    signs(&key, &params(false, b"foo"), &message, expected);
}

#[test]
fn signatures_of_a_digest_are_those_of_the_rfc() {
    let key = key(
        "833fe62409237b9d62ec77587520911e9a759cec1d19755b7da901b96dca3d42",
        "ec172b93ad5e563bf4932c70e1245034c35467ef2efd4d64ebf819683467e2bf",
    );
    let expected = "98a70222f0b8121aa9d30f813d683f809e462b469c7ff87639499bb94e6dae41\
                    31f85042463c2a355a2003d062adf5aaa10b8c61e636062aaad11c2a26083406";
    signs(&key, &params(true, b""), b"abc", expected);
}

#[test]
fn contexts_that_no_form_has_are_refused() {
    let key = key(
        "833fe62409237b9d62ec77587520911e9a759cec1d19755b7da901b96dca3d42",
        "ec172b93ad5e563bf4932c70e1245034c35467ef2efd4d64ebf819683467e2bf",
    );
    let sign = algorithm(CKM_EDDSA).sign.unwrap();
    for params in [params(false, b""), params(true, &[1; 256]), params(false, &[1; 256])] {
        let refused = sign.check(Direction::Forward, &key, &params);
        assert_eq!(refused, Err(Error::MECHANISM_PARAM_INVALID));
    }
}

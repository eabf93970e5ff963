// SPDX-License-Identifier: Apache-2.0
//! Asymmetric mechanisms through the provider's traits: what is made works, comes back from its
//! encodings, and is refused when it is wrong.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

mod common;

use common::{algorithm, imported, pair};
#[allow(unused_imports, reason = "where another provider includes this file, it is that one")]
use metaslot_awslc::AWSLC as PROVIDER;
use metaslot_ck::*;
use metaslot_spi::provider::Direction;
use metaslot_spi::{Params, Value};
use std::sync::Arc;

const P256: &[u8] = &[0x06, 0x08, 0x2a, 0x86, 0x48, 0xce, 0x3d, 0x03, 0x01, 0x07];

fn rsa_2048() -> common::Pair {
    pair(CKM_RSA_PKCS_KEY_PAIR_GEN, CKK_RSA, &[(CKA_MODULUS_BITS, Value::Ulong(2048))])
}

fn p256() -> common::Pair {
    pair(CKM_EC_KEY_PAIR_GEN, CKK_EC, &[(CKA_EC_PARAMS, Value::Bytes(P256.to_vec()))])
}

/// Signs and verifies in one call and in parts; a changed message and signature are refused.
fn signs(keys: &common::Pair, mechanism: CK_MECHANISM_TYPE, params: &Params, data: &[u8]) {
    let row = algorithm(mechanism);
    let (sign, verify) = (row.sign.unwrap(), row.verify.unwrap());
    sign.check(Direction::Forward, &keys.private, params).unwrap();
    verify.check(Direction::Backward, &keys.public, params).unwrap();
    let mut signature = vec![0; sign.length(&keys.private, params)];
    let length = sign.sign(&keys.private, params, data, &mut signature).unwrap();
    signature.truncate(length);
    verify.verify(&keys.public, params, data, &signature).unwrap();
    let mut other = data.to_vec();
    other[0] ^= 1;
    assert!(verify.verify(&keys.public, params, &other, &signature).is_err());
    let mut bad = signature.clone();
    bad[length - 1] ^= 1;
    assert_eq!(verify.verify(&keys.public, params, data, &bad), Err(Error::SIGNATURE_INVALID));
    assert_eq!(
        verify.verify(&keys.public, params, data, &signature[1..]),
        Err(Error::SIGNATURE_LEN_RANGE)
    );
    if let Ok(mut stream) = sign.start(Direction::Forward, &keys.private, params) {
        data.chunks(3).for_each(|part| stream.update(part).unwrap());
        let length = stream.sign(&mut signature).unwrap();
        let mut stream = verify.start(Direction::Backward, &keys.public, params).unwrap();
        data.chunks(5).for_each(|part| stream.update(part).unwrap());
        stream.verify(&signature[..length]).unwrap();
    }
}

#[test]
fn generated_rsa_keys_sign_with_every_mechanism() {
    let keys = rsa_2048();
    for mechanism in [
        CKM_RSA_PKCS,
        CKM_RSA_X_509,
        CKM_MD5_RSA_PKCS,
        CKM_SHA1_RSA_PKCS,
        CKM_SHA256_RSA_PKCS,
        CKM_SHA512_RSA_PKCS,
        CKM_SHA3_384_RSA_PKCS,
    ] {
        signs(&keys, mechanism, &Params::None, b"twenty bytes of data");
    }
    let pss = |hash, mgf, salt_length| Params::Pss { hash, mgf, salt_length };
    signs(&keys, CKM_RSA_PKCS_PSS, &pss(CKM_SHA256, CKG_MGF1_SHA256, 32), &[7; 32]);
    signs(&keys, CKM_SHA256_RSA_PKCS_PSS, &pss(CKM_SHA256, CKG_MGF1_SHA1, 222), b"message");
    signs(&keys, CKM_SHA3_512_RSA_PKCS_PSS, &pss(CKM_SHA3_512, CKG_MGF1_SHA3_224, 0), b"message");
}

#[test]
fn generated_ec_keys_sign_with_every_mechanism() {
    let keys = p256();
    for mechanism in [CKM_ECDSA, CKM_ECDSA_SHA1, CKM_ECDSA_SHA256, CKM_ECDSA_SHA3_512] {
        signs(&keys, mechanism, &Params::None, &[3; 32]);
    }
}

#[test]
fn ecdsa_signatures_without_zero_bytes_in_front_are_taken() {
    let keys = p256();
    let row = algorithm(CKM_ECDSA);
    let (sign, verify) = (row.sign.unwrap(), row.verify.unwrap());
    // One signature in 65,536 begins both numbers with a zero.
    let signature = (0..u32::MAX)
        .find_map(|count| {
            let mut signature = [0; 64];
            let digest = [count.to_le_bytes(), [7; 4]].concat();
            sign.sign(&keys.private, &Params::None, &digest, &mut signature).unwrap();
            (signature[0] == 0 && signature[32] == 0).then_some((digest, signature))
        })
        .unwrap();
    let (digest, signature) = signature;
    let short = [&signature[1..32], &signature[33..]].concat();
    verify.verify(&keys.public, &Params::None, &digest, &signature).unwrap();
    verify.verify(&keys.public, &Params::None, &digest, &short).unwrap();
}

#[test]
fn an_rsa_key_without_primes_is_completed() {
    let keys = rsa_2048();
    let n = keys.private.bytes(CKA_MODULUS).unwrap().to_vec();
    let e = keys.private.bytes(CKA_PUBLIC_EXPONENT).unwrap().to_vec();
    let d = keys.private.secret(CKA_PRIVATE_EXPONENT).unwrap().to_vec();
    let key = imported(
        CKO_PRIVATE_KEY,
        CKK_RSA,
        &[(CKA_MODULUS, n.clone()), (CKA_PUBLIC_EXPONENT, e.clone())],
        &[(CKA_PRIVATE_EXPONENT, &d)],
    )
    .unwrap();
    assert_eq!(key.secrets().iter().count(), 6);
    let half = common::Pair { public: Arc::clone(&keys.public), private: key };
    signs(&half, CKM_SHA256_RSA_PKCS, &Params::None, b"message");
    let mut wrong = d;
    wrong[10] ^= 1;
    let refused = imported(
        CKO_PRIVATE_KEY,
        CKK_RSA,
        &[(CKA_MODULUS, n), (CKA_PUBLIC_EXPONENT, e)],
        &[(CKA_PRIVATE_EXPONENT, &wrong)],
    );
    assert_eq!(refused.unwrap_err(), Error::ATTRIBUTE_VALUE_INVALID);
}

#[test]
fn an_imported_ec_key_gets_its_point() {
    let keys = p256();
    let key = imported(
        CKO_PRIVATE_KEY,
        CKK_EC,
        &[(CKA_EC_PARAMS, P256.to_vec())],
        &[(CKA_VALUE, keys.private.secret(CKA_VALUE).unwrap())],
    )
    .unwrap();
    assert_eq!(key.bytes(CKA_EC_POINT).unwrap(), keys.public.bytes(CKA_EC_POINT).unwrap());
    signs(
        &common::Pair { public: Arc::clone(&keys.public), private: key },
        CKM_ECDSA_SHA256,
        &Params::None,
        b"message",
    );
}

/// PKCS#11 3.2 §6.1.4: every size between those that the mechanism's info names.
#[test]
fn rsa_pairs_have_exactly_the_size_that_was_asked_for() {
    for bits in [512, 513, 1000, 1025, 1534, 2050] {
        let template = [(CKA_MODULUS_BITS, Value::Ulong(bits))];
        let keys = pair(CKM_RSA_PKCS_KEY_PAIR_GEN, CKK_RSA, &template);
        let modulus = keys.public.bytes(CKA_MODULUS).unwrap();
        let first = u64::from(modulus[0].leading_zeros());
        assert_eq!(modulus.len() as u64 * 8 - first, bits);
        signs(&keys, CKM_RSA_PKCS, &Params::None, b"twenty bytes of data");
    }
    let small =
        [(CKA_MODULUS_BITS, Value::Ulong(1000)), (CKA_PUBLIC_EXPONENT, Value::Bytes(vec![3]))];
    signs(&pair(CKM_RSA_PKCS_KEY_PAIR_GEN, CKK_RSA, &small), CKM_RSA_PKCS, &Params::None, b"data");
}

/// PKCS#11 3.2 §6.1.12: 0, 1 and n−1 are numbers like others, though their own powers.
#[test]
fn the_bare_operation_takes_every_number_below_the_modulus() {
    let keys = rsa_2048();
    let row = algorithm(CKM_RSA_X_509);
    let mut last = keys.public.bytes(CKA_MODULUS).unwrap().to_vec();
    *last.last_mut().unwrap() -= 1;
    let numbers = [vec![0; 256], [&[0; 255][..], &[1]].concat(), last];
    for number in &numbers {
        let mut out = [0xee; 256];
        let params = &Params::None;
        row.sign.unwrap().sign(&keys.private, params, number, &mut out).unwrap();
        assert_eq!(out[..], number[..]);
        row.verify.unwrap().verify(&keys.public, params, number, &out).unwrap();
        let decrypt = row.decrypt.unwrap();
        decrypt.run(Direction::Backward, &keys.private, params, number, &mut out).unwrap();
        assert_eq!(out[..], number[..]);
        let encrypt = row.encrypt.unwrap();
        encrypt.run(Direction::Forward, &keys.public, params, number, &mut out).unwrap();
        assert_eq!(out[..], number[..]);
    }
    let modulus = keys.public.bytes(CKA_MODULUS).unwrap();
    let above = row.sign.unwrap().sign(&keys.private, &Params::None, modulus, &mut [0; 256]);
    assert_eq!(above, Err(Error::DATA_INVALID));
}

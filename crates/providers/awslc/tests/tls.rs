// SPDX-License-Identifier: Apache-2.0
//! TLS: what is random, and what is refused. The results themselves are vectors, which the testkit runs through the C ABI.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

mod common;

use common::{algorithm, imported};
use metaslot_awslc::AWSLC as PROVIDER;
use metaslot_ck::*;
use metaslot_spi::provider::{Direction, Keys};
use metaslot_spi::{Attributes, Beside, Bytes, Key, Params, Tls, Value};
use std::sync::{Arc, OnceLock};

#[derive(Debug)]
struct NoKeys;

impl Keys for NoKeys {
    fn key(&self, _: ObjectHandle) -> Result<Arc<Key>> {
        Err(Error::KEY_HANDLE_INVALID)
    }
}

fn secret(length: usize) -> Arc<Key> {
    let value = vec![7; length];
    imported(CKO_SECRET_KEY, CKK_GENERIC_SECRET, &[], &[(CKA_VALUE, &value)]).unwrap()
}

fn params(prf: CK_MECHANISM_TYPE, mac_length: usize, beside: usize) -> Params {
    let beside = (beside > 0).then(|| Arc::new(Beside { length: beside, told: OnceLock::new() }));
    let (label, seed) = (Bytes::from_slice(b"label"), Bytes::from_slice(b"seed"));
    Params::Tls(Box::new(Tls { prf, label, seed, mac_length, further: Vec::new(), beside }))
}

#[test]
fn a_secret_for_rsa_begins_with_the_version_and_is_random() {
    for mechanism in [CKM_TLS_PRE_MASTER_KEY_GEN, CKM_SSL3_PRE_MASTER_KEY_GEN] {
        let generate = algorithm(mechanism).generate.unwrap();
        let version = Params::Iv(Bytes::from_slice(&[3, 1]));
        let make = |template: &Attributes| generate.generate(&version, template);
        let [one, other] = [(), ()].map(|()| make(&Attributes::default()).unwrap());
        let [one, other] = [&one, &other].map(|made| made.secrets.get(CKA_VALUE).unwrap());
        assert_eq!((one.len(), &one[..2]), (48, &[3, 1][..]));
        assert_ne!(one[2..], other[2..]);
        let longer = [(CKA_VALUE_LEN, Value::Ulong(49))].into_iter().collect();
        assert_eq!(make(&longer).err(), Some(Error::KEY_SIZE_RANGE));
        let without = generate.generate(&Params::None, &Attributes::default());
        assert_eq!(without.err(), Some(Error::MECHANISM_PARAM_INVALID));
    }
}

#[test]
fn no_suite_of_tls_12_has_md5_or_sha_1() {
    let key = secret(48);
    for (prf, is) in [
        (CKM_SHA256, true),
        (CKM_TLS_PRF, true),
        (CKM_SSL3_MASTER_KEY_DERIVE, true),
        (CKM_MD5, false),
        (CKM_SHA_1, false),
        (CKM_SHA256_HMAC, false),
        (0, false),
    ] {
        let derive = algorithm(CKM_TLS_KDF).derive.unwrap();
        assert_eq!(derive.check(&key, &params(prf, 0, 0)).is_ok(), is, "{prf:#x}");
    }
}

#[test]
fn secrets_and_results_have_their_lengths() {
    let of_rsa = algorithm(CKM_TLS12_MASTER_KEY_DERIVE).derive.unwrap();
    let of_others = algorithm(CKM_TLS12_MASTER_KEY_DERIVE_DH).derive.unwrap();
    let sha256 = || params(CKM_SHA256, 0, 0);
    assert_eq!(of_rsa.check(&secret(47), &sha256()), Err(Error::KEY_SIZE_RANGE));
    assert_eq!(of_others.check(&secret(47), &sha256()), Ok(()));
    let derived = of_others.derive(&secret(32), &sha256(), &[47], &NoKeys);
    assert_eq!(derived.err(), Some(Error::KEY_SIZE_RANGE));
    assert_eq!(of_rsa.natural_length(&secret(48), &sha256()), Some(48));
    let keys = algorithm(CKM_SSL3_KEY_AND_MAC_DERIVE).derive.unwrap();
    for (ivs, is) in [(16, true), (17, false)] {
        let params = params(CKM_SSL3_MASTER_KEY_DERIVE, 0, ivs);
        let made = keys.derive(&secret(48), &params, &[200, 200], &NoKeys);
        assert_eq!(made.is_ok(), is, "26 blocks of 16 bytes, and no more");
    }
}

#[test]
fn a_mac_is_as_long_as_is_said_and_no_other() {
    let row = algorithm(CKM_TLS_MAC);
    let (sign, verify, key) = (row.sign.unwrap(), row.verify.unwrap(), secret(48));
    for (length, is) in [(0, false), (12, true), (255, true), (256, false)] {
        let checked = sign.check(Direction::Forward, &key, &params(CKM_SHA256, length, 0));
        assert_eq!(checked.is_ok(), is, "{length}");
    }
    let params = params(CKM_SHA256, 12, 0);
    let mut mac = [0; 12];
    sign.sign(&key, &params, b"data", &mut mac).unwrap();
    assert_eq!(verify.verify(&key, &params, b"data", &mac), Ok(()));
    assert_eq!(verify.verify(&key, &params, b"date", &mac), Err(Error::SIGNATURE_INVALID));
    let short = verify.verify(&key, &params, b"data", &mac[..11]);
    assert_eq!(short, Err(Error::SIGNATURE_LEN_RANGE));
    let mut stream = verify.start(Direction::Backward, &key, &params).unwrap();
    stream.update(b"da").unwrap();
    stream.update(b"ta").unwrap();
    assert_eq!(stream.verify(&mac), Ok(()));
    let padded = algorithm(CKM_SSL3_MD5_MAC).sign.unwrap();
    for (length, is) in [(0, false), (16, true), (17, false)] {
        let checked = padded.check(Direction::Forward, &key, &Params::Ulong(length));
        assert_eq!(checked.is_ok(), is, "{length}");
    }
}

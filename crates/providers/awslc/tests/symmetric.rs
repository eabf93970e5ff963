// SPDX-License-Identifier: Apache-2.0
//! Vectors from NIST and from OpenSSL for symmetric mechanisms, and rules that no vector shows.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

mod common;
#[path = "common/run.rs"]
mod run;
#[path = "common/vectors.rs"]
mod vectors;

use common::{algorithm, has_states, provider};
#[allow(unused_imports, reason = "where another provider includes this file, it is that one")]
use metaslot_awslc::AWSLC as PROVIDER;
use metaslot_ck::mechanism::{MechanismRow, Shape};
use metaslot_ck::*;
use metaslot_spi::provider::Direction;
use metaslot_spi::{Bytes, KdfParam, Params};
use run::{NoKeys, both_ways, cipher, derived, mac, parts, secret_key, unwrapped, verify};
use serde_json::Value;
use vectors::hex;

fn file(name: &str) -> Vec<Value> {
    let path = format!("{}/../../../testdata/{name}.json", env!("CARGO_MANIFEST_DIR"));
    let text = std::fs::read_to_string(&path).unwrap();
    let file: Value = serde_json::from_str(&text).unwrap();
    file["tests"].as_array().unwrap().clone()
}

fn digest_mechanism(name: &str) -> (CK_MECHANISM_TYPE, CK_MECHANISM_TYPE, CK_MECHANISM_TYPE) {
    match name {
        "md5" => (CKM_MD5, CKM_MD5_HMAC, CKM_MD5_HMAC_GENERAL),
        "sha1" => (CKM_SHA_1, CKM_SHA_1_HMAC, CKM_SHA_1_HMAC_GENERAL),
        "sha224" => (CKM_SHA224, CKM_SHA224_HMAC, CKM_SHA224_HMAC_GENERAL),
        "sha256" => (CKM_SHA256, CKM_SHA256_HMAC, CKM_SHA256_HMAC_GENERAL),
        "sha384" => (CKM_SHA384, CKM_SHA384_HMAC, CKM_SHA384_HMAC_GENERAL),
        "sha512" => (CKM_SHA512, CKM_SHA512_HMAC, CKM_SHA512_HMAC_GENERAL),
        "sha512_224" => (CKM_SHA512_224, CKM_SHA512_224_HMAC, CKM_SHA512_224_HMAC_GENERAL),
        "sha512_256" => (CKM_SHA512_256, CKM_SHA512_256_HMAC, CKM_SHA512_256_HMAC_GENERAL),
        "sha3_224" => (CKM_SHA3_224, CKM_SHA3_224_HMAC, CKM_SHA3_224_HMAC_GENERAL),
        "sha3_256" => (CKM_SHA3_256, CKM_SHA3_256_HMAC, CKM_SHA3_256_HMAC_GENERAL),
        "sha3_384" => (CKM_SHA3_384, CKM_SHA3_384_HMAC, CKM_SHA3_384_HMAC_GENERAL),
        "sha3_512" => (CKM_SHA3_512, CKM_SHA3_512_HMAC, CKM_SHA3_512_HMAC_GENERAL),
        other => panic!("unknown hash {other}"),
    }
}

#[test]
fn digests_agree_with_openssl_whole_in_parts_and_saved() {
    for vector in file("openssl/digest") {
        let (mechanism, _, _) = digest_mechanism(vector["hash"].as_str().unwrap());
        let digest = algorithm(mechanism).digest.unwrap();
        let (data, wanted) = (hex(&vector["msg"]), hex(&vector["digest"]));
        let mut out = vec![0; digest.length()];
        digest.digest(&data, &mut out).unwrap();
        assert_eq!(out, wanted);
        let mut stream = digest.start().unwrap();
        for part in parts(&data) {
            stream.update(part).unwrap();
            if !has_states(mechanism) {
                assert_eq!(stream.save(), Err(Error::STATE_UNSAVEABLE));
                continue;
            }
            let saved = stream.save().unwrap();
            stream = digest.restore(&saved).unwrap();
        }
        stream.finish(&mut out).unwrap();
        assert_eq!(out, wanted, "{vector}");
    }
}

#[test]
fn states_that_are_none_are_refused() {
    for row in provider().algorithms() {
        let Some(digest) = row.digest else { continue };
        if !has_states(row.mechanism) {
            continue;
        }
        let mut stream = digest.start().unwrap();
        stream.update(&[1; 77]).unwrap();
        let saved = stream.save().unwrap();
        for length in 0..saved.len() {
            let error = digest.restore(&saved[..length]).err();
            assert_eq!(error, Some(Error::SAVED_STATE_INVALID), "{:#x} {length}", row.mechanism);
        }
        assert!(digest.restore(&[0xff; 600]).is_err());
    }
}

#[test]
fn hmacs_agree_with_openssl_whole_and_truncated() {
    for vector in file("openssl/hmac") {
        let (_, whole, general) = digest_mechanism(vector["hash"].as_str().unwrap());
        let key = secret_key(CKK_GENERIC_SECRET, &hex(&vector["key"]));
        let (data, tag) = (hex(&vector["msg"]), hex(&vector["tag"]));
        assert_eq!(mac(whole, &key, &Params::None, &data).unwrap(), tag);
        assert_eq!(verify(whole, &key, &Params::None, &data, &tag), Ok(()));
        for length in [1, tag.len() / 2, tag.len()] {
            let params = Params::Ulong(length as u64);
            assert_eq!(mac(general, &key, &params, &data).unwrap(), tag[..length]);
            assert_eq!(verify(general, &key, &params, &data, &tag[..length]), Ok(()));
        }
        for length in [0, tag.len() as u64 + 1] {
            let refused = mac(general, &key, &Params::Ulong(length), &data);
            assert_eq!(refused, Err(Error::MECHANISM_PARAM_INVALID));
        }
        let short = verify(whole, &key, &Params::None, &data, &tag[1..]);
        assert_eq!(short, Err(Error::SIGNATURE_LEN_RANGE));
    }
}

#[test]
fn one_key_serves_every_hmac() {
    let key = secret_key(CKK_GENERIC_SECRET, &[9; 32]);
    for vector in file("openssl/digest") {
        let (_, whole, _) = digest_mechanism(vector["hash"].as_str().unwrap());
        let tag = mac(whole, &key, &Params::None, b"message").unwrap();
        assert_eq!(verify(whole, &key, &Params::None, b"message", &tag), Ok(()));
    }
}

#[test]
fn ciphers_agree_with_openssl() {
    for vector in file("openssl/ciphers") {
        let mechanism = mechanism_by_name(vector["mechanism"].as_str().unwrap()).unwrap();
        let row = MechanismRow::find(mechanism).unwrap();
        let iv = hex(&vector["iv"]);
        let params = match row.shape {
            Shape::Ctr => Params::Ctr { bits: 64, block: iv.try_into().unwrap() },
            Shape::None => Params::None,
            _ => Params::Iv(Bytes::from_vec(iv)),
        };
        let value = hex(&vector["key"]);
        let two_keys = row.keys.contains(&CKK_DES2) && value.len() == 16;
        let key_type = if two_keys { CKK_DES2 } else { row.keys[0] };
        let key = secret_key(key_type, &value);
        let (plain, sealed) = (hex(&vector["msg"]), hex(&vector["ct"]));
        both_ways(mechanism, &key, &params, &plain, &sealed);
        if algorithm(mechanism).unwrap.is_some() {
            assert_eq!(unwrapped(mechanism, &key, &params, &sealed).unwrap(), plain);
        }
    }
}

#[test]
fn lengths_that_a_mode_has_not_are_refused_with_the_right_word() {
    let key = secret_key(CKK_AES, &[1; 16]);
    let iv = Params::Iv(Bytes::from_slice(&[0; 16]));
    for (mechanism, params) in [(CKM_AES_ECB, &Params::None), (CKM_AES_CBC, &iv)] {
        let forward = cipher(mechanism, Direction::Forward, &key, params, &[0; 17]);
        assert_eq!(forward, Err(Error::DATA_LEN_RANGE));
        let backward = cipher(mechanism, Direction::Backward, &key, params, &[0; 31]);
        assert_eq!(backward, Err(Error::ENCRYPTED_DATA_LEN_RANGE));
    }
    let counter = Params::Ctr { bits: 4, block: [0xff; 16] };
    assert!(cipher(CKM_AES_CTR, Direction::Forward, &key, &counter, &[0; 16]).is_ok());
    let round = cipher(CKM_AES_CTR, Direction::Forward, &key, &counter, &[0; 17]);
    assert_eq!(round, Err(Error::DATA_LEN_RANGE));
    let twins = secret_key(CKK_AES_XTS, &[7; 64]);
    let xts = cipher(CKM_AES_XTS, Direction::Forward, &twins, &iv, &[0; 16]);
    assert_eq!(xts, Err(Error::KEY_SIZE_RANGE), "equal halves");
    let halves: Vec<u8> = (0..64).collect();
    let key_of_halves = secret_key(CKK_AES_XTS, &halves);
    let row = algorithm(CKM_AES_XTS).encrypt.unwrap();
    for length in [0, 15] {
        let once = cipher(CKM_AES_XTS, Direction::Forward, &key_of_halves, &iv, &vec![0; length]);
        assert_eq!(once, Err(Error::DATA_LEN_RANGE));
        let mut parts = row.start(Direction::Forward, &key_of_halves, &iv).unwrap();
        parts.update(&vec![0; length], &mut []).unwrap();
        assert_eq!(parts.finish(&mut [0; 16]), Err(Error::DATA_LEN_RANGE), "in parts");
    }
    let odd = secret_key(CKK_AES, &[1; 17]);
    assert_eq!(
        cipher(CKM_AES_ECB, Direction::Forward, &odd, &Params::None, &[0; 16]),
        Err(Error::KEY_SIZE_RANGE)
    );
}

#[test]
fn ccm_wants_the_length_that_was_declared() {
    let key = secret_key(CKK_AES, &[1; 16]);
    let params = |data_length| Params::Ccm {
        data_length,
        nonce: Bytes::from_slice(&[0; 13]),
        aad: Bytes::new(),
        mac_length: 8,
    };
    assert!(cipher(CKM_AES_CCM, Direction::Forward, &key, &params(5), b"hello").is_ok());
    let longer = cipher(CKM_AES_CCM, Direction::Forward, &key, &params(4), b"hello");
    assert_eq!(longer, Err(Error::DATA_LEN_RANGE));
    // 13 bytes of nonce leave 2 for the length.
    let huge = cipher(CKM_AES_CCM, Direction::Forward, &key, &params(1 << 16), b"hello");
    assert_eq!(huge, Err(Error::MECHANISM_PARAM_INVALID));
}

#[test]
fn kwp_with_an_own_initial_value_comes_back() {
    let key = secret_key(CKK_AES, &[1; 32]);
    let params = Params::Iv(Bytes::from_slice(&[1, 2, 3, 4]));
    for length in [1, 8, 9, 33] {
        let plain = vec![5; length];
        let sealed =
            cipher(CKM_AES_KEY_WRAP_KWP, Direction::Forward, &key, &params, &plain).unwrap();
        assert_eq!(unwrapped(CKM_AES_KEY_WRAP_KWP, &key, &params, &sealed).unwrap(), plain);
        let standard = unwrapped(CKM_AES_KEY_WRAP_KWP, &key, &Params::None, &sealed);
        assert_eq!(standard, Err(Error::WRAPPED_KEY_INVALID));
    }
}

fn kdf_params(vector: &Value) -> (CK_MECHANISM_TYPE, Params) {
    let bits = vector["counterLength"].as_u64().unwrap();
    let fixed = KdfParam::Bytes(Bytes::from_vec(hex(&vector["fixedData"])));
    let little_endian = false;
    let block = KdfParam::Iteration { little_endian, bits: 0 };
    let (mechanism, counter) = match vector["kdfMode"].as_str().unwrap() {
        "counter" => (CKM_SP800_108_COUNTER_KDF, KdfParam::Iteration { little_endian, bits }),
        "feedback" => (CKM_SP800_108_FEEDBACK_KDF, KdfParam::Counter { little_endian, bits }),
        _ => (CKM_SP800_108_DOUBLE_PIPELINE_KDF, KdfParam::Counter { little_endian, bits }),
    };
    let mut data = match vector["counterLocation"].as_str().unwrap() {
        "before iterator" => vec![counter, block, fixed],
        "before fixed data" => vec![block, counter, fixed],
        _ => vec![block, fixed, counter],
    };
    if mechanism == CKM_SP800_108_COUNTER_KDF {
        data.retain(|field| !matches!(field, KdfParam::Iteration { bits: 0, .. }));
    }
    let prf = match vector["macMode"].as_str().unwrap() {
        "CMAC-AES128" => CKM_AES_CMAC,
        "HMAC-SHA2-512/256" => CKM_SHA512_256_HMAC,
        _ => CKM_SHA3_512_HMAC,
    };
    let iv = Bytes::from_vec(hex(&vector["iv"]));
    (mechanism, Params::Sp800108 { prf, data, iv, additional: Vec::new() })
}

#[test]
fn key_based_kdfs_give_what_nist_has() {
    for vector in file("nist/sp800_108") {
        let (mechanism, params) = kdf_params(&vector);
        let key = secret_key(CKK_AES, &hex(&vector["keyIn"]));
        let wanted = hex(&vector["keyOut"]);
        assert_eq!(derived(mechanism, &key, &params, wanted.len()).unwrap(), wanted, "{vector}");
    }
}

#[test]
fn keys_derived_together_share_no_segment() {
    let key = secret_key(CKK_GENERIC_SECRET, &[3; 32]);
    let data = vec![KdfParam::Iteration { little_endian: true, bits: 16 }];
    let params =
        Params::Sp800108 { prf: CKM_SHA256_HMAC, data, iv: Bytes::new(), additional: Vec::new() };
    let derive = algorithm(CKM_SP800_108_COUNTER_KDF).derive.unwrap();
    // PKCS#11 3.2 §6.42.7: 48 bytes take one segment and a half, 16 bytes begin a third.
    let together = derive.derive(&key, &params, &[48, 16], &NoKeys).unwrap();
    let whole = derived(CKM_SP800_108_COUNTER_KDF, &key, &params, 96).unwrap();
    assert_eq!(together[0].expose(), &whole[..48]);
    assert_eq!(together[1].expose(), &whole[64..80]);
}

#[test]
fn the_length_field_counts_keys_or_segments() {
    let key = secret_key(CKK_GENERIC_SECRET, &[3; 32]);
    let with = |sum_of_segments, fixed: Option<u16>| {
        let length = KdfParam::DkmLength { sum_of_segments, little_endian: false, bits: 16 };
        let fixed = fixed.map(|bits| KdfParam::Bytes(Bytes::from_slice(&bits.to_be_bytes())));
        let data =
            vec![KdfParam::Iteration { little_endian: false, bits: 8 }, fixed.unwrap_or(length)];
        let (prf, iv, additional) = (CKM_SHA256_HMAC, Bytes::new(), Vec::new());
        derived(
            CKM_SP800_108_COUNTER_KDF,
            &key,
            &Params::Sp800108 { prf, data, iv, additional },
            20,
        )
    };
    assert_eq!(with(false, None), with(false, Some(160)));
    assert_eq!(with(true, None), with(false, Some(256)));
}

#[test]
fn kdf_fields_that_a_mode_has_not_are_refused() {
    let key = secret_key(CKK_GENERIC_SECRET, &[3; 32]);
    let counter = KdfParam::Counter { little_endian: false, bits: 8 };
    let iteration = KdfParam::Iteration { little_endian: false, bits: 8 };
    for data in [
        vec![],
        vec![iteration.clone(), iteration.clone()],
        vec![iteration.clone(), counter],
        vec![KdfParam::Iteration { little_endian: false, bits: 40 }],
    ] {
        let (prf, iv, additional) = (CKM_SHA256_HMAC, Bytes::new(), Vec::new());
        let params = Params::Sp800108 { prf, data, iv, additional };
        let refused = derived(CKM_SP800_108_COUNTER_KDF, &key, &params, 20);
        assert_eq!(refused, Err(Error::MECHANISM_PARAM_INVALID));
    }
    let (prf, iv, additional) = (CKM_SHA256_HMAC, Bytes::new(), Vec::new());
    let params = Params::Sp800108 { prf, data: vec![iteration], iv, additional };
    let long = derived(CKM_SP800_108_COUNTER_KDF, &key, &params, 32 * 256);
    assert_eq!(long, Err(Error::KEY_SIZE_RANGE), "a counter of 8 bits counts to 255");
    assert!(derived(CKM_SP800_108_COUNTER_KDF, &key, &params, 32 * 255).is_ok());
}

// SPDX-License-Identifier: Apache-2.0
//! Project Wycheproof's vectors for symmetric mechanisms.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

mod common;
#[path = "common/run.rs"]
mod run;
#[path = "common/vectors.rs"]
mod vectors;

use common::{algorithm, has_xchacha, takes_nonce};
#[allow(unused_imports, reason = "where another provider includes this file, it is that one")]
use metaslot_awslc::AWSLC as PROVIDER;
use metaslot_ck::*;
use metaslot_memory::Secret;
use metaslot_spi::Value as Attribute;
use metaslot_spi::provider::Direction;
use metaslot_spi::{Attributes, Bytes, Params};
use run::{both_ways, cipher, derived, mac, secret_key, unwrapped, verify};
use serde_json::Value;
use vectors::{Verdict, each, hex};

fn bytes(value: &Value) -> Bytes {
    Bytes::from_vec(hex(value))
}

/// A vector of an AEAD, either way.
fn aead(
    mechanism: CK_MECHANISM_TYPE,
    key_type: u64,
    vector: &Value,
    verdict: Verdict,
    params: &Params,
) {
    let key = secret_key(key_type, &hex(&vector["key"]));
    let plain = hex(&vector["msg"]);
    let mut sealed = hex(&vector["ct"]);
    sealed.extend(hex(&vector["tag"]));
    if verdict == Verdict::Valid {
        both_ways(mechanism, &key, params, &plain, &sealed);
    } else {
        let opened = cipher(mechanism, Direction::Backward, &key, params, &sealed);
        assert!(opened.is_err(), "{vector}");
    }
}

#[test]
fn gcm_is_judged_as_wycheproof_does() {
    each("aes_gcm_test", |group, vector, verdict| {
        let (iv, aad) = (bytes(&vector["iv"]), bytes(&vector["aad"]));
        if !takes_nonce(iv.len()) {
            return;
        }
        let tag_bits = group["tagSize"].as_u64().unwrap();
        let params = Params::Gcm { iv, aad, tag_bits };
        aead(CKM_AES_GCM, CKK_AES, vector, verdict, &params);
        if verdict == Verdict::Valid {
            let key = secret_key(CKK_AES, &hex(&vector["key"]));
            let mut sealed = hex(&vector["ct"]);
            sealed.extend(hex(&vector["tag"]));
            let plain = unwrapped(CKM_AES_GCM, &key, &params, &sealed).unwrap();
            assert_eq!(plain, hex(&vector["msg"]));
        }
    });
}

#[test]
fn ccm_is_judged_as_wycheproof_does() {
    each("aes_ccm_test", |group, vector, verdict| {
        let params = Params::Ccm {
            data_length: hex(&vector["msg"]).len() as u64,
            nonce: bytes(&vector["iv"]),
            aad: bytes(&vector["aad"]),
            mac_length: group["tagSize"].as_u64().unwrap() / 8,
        };
        aead(CKM_AES_CCM, CKK_AES, vector, verdict, &params);
    });
}

#[test]
fn chacha20_poly1305_is_judged_as_wycheproof_does() {
    for name in ["chacha20_poly1305_test", "xchacha20_poly1305_test"] {
        each(name, |_, vector, verdict| {
            let (nonce, aad) = (bytes(&vector["iv"]), bytes(&vector["aad"]));
            if nonce.len() == 24 && !has_xchacha() {
                return;
            }
            let params = Params::ChaCha20Poly1305 { nonce, aad };
            aead(CKM_CHACHA20_POLY1305, CKK_CHACHA20, vector, verdict, &params);
        });
    }
}

#[test]
fn cbc_padding_is_judged_as_wycheproof_does() {
    each("aes_cbc_pkcs5_test", |_, vector, verdict| {
        let key = secret_key(CKK_AES, &hex(&vector["key"]));
        let params = Params::Iv(bytes(&vector["iv"]));
        let (plain, sealed) = (hex(&vector["msg"]), hex(&vector["ct"]));
        if verdict == Verdict::Valid {
            both_ways(CKM_AES_CBC_PAD, &key, &params, &plain, &sealed);
            let opened = unwrapped(CKM_AES_CBC_PAD, &key, &params, &sealed);
            assert_eq!(opened.unwrap(), plain);
        } else {
            let opened = cipher(CKM_AES_CBC_PAD, Direction::Backward, &key, &params, &sealed);
            assert!(opened.is_err(), "{vector}");
            assert!(unwrapped(CKM_AES_CBC_PAD, &key, &params, &sealed).is_err());
        }
    });
}

#[test]
fn xts_gives_what_wycheproof_has() {
    let tested = each("aes_xts_test", |_, vector, _| {
        let key = hex(&vector["key"]);
        let mut iv = hex(&vector["iv"]);
        // Shorter data unit numbers are little-endian, with zeros behind.
        iv.resize(16, 0);
        let params = Params::Iv(Bytes::from_vec(iv));
        // The standard here has no XTS with AES-192, and both halves of a key must differ.
        if matches!(key.len(), 32 | 64) {
            let key = secret_key(CKK_AES_XTS, &key);
            both_ways(CKM_AES_XTS, &key, &params, &hex(&vector["msg"]), &hex(&vector["ct"]));
        }
    });
    assert!(tested > 100);
}

#[test]
fn key_wrap_is_judged_as_wycheproof_does() {
    for (name, mechanism) in
        [("aes_wrap_test", CKM_AES_KEY_WRAP), ("aes_kwp_test", CKM_AES_KEY_WRAP_KWP)]
    {
        each(name, |_, vector, verdict| {
            let key = secret_key(CKK_AES, &hex(&vector["key"]));
            let (plain, wrapped) = (hex(&vector["msg"]), hex(&vector["ct"]));
            let opened = unwrapped(mechanism, &key, &Params::None, &wrapped);
            match verdict {
                Verdict::Valid => {
                    assert_eq!(opened.unwrap(), plain, "{vector}");
                    both_ways(mechanism, &key, &Params::None, &plain, &wrapped);
                }
                Verdict::Invalid => assert!(opened.is_err(), "{vector}"),
                Verdict::Acceptable => {}
            }
        });
    }
}

/// A vector of a MAC, whole or truncated.
fn mac_vector(
    (whole, general): (CK_MECHANISM_TYPE, CK_MECHANISM_TYPE),
    key_type: u64,
    (length, full): (u64, u64),
    vector: &Value,
    verdict: Verdict,
) {
    let (data, tag) = (hex(&vector["msg"]), hex(&vector["tag"]));
    let key = secret_key(key_type, &hex(&vector["key"]));
    let mut ways = vec![(general, Params::Ulong(length))];
    if length == full {
        ways.push((whole, Params::None));
    }
    for (mechanism, params) in ways {
        let judged = verify(mechanism, &key, &params, &data, &tag);
        if verdict == Verdict::Valid {
            assert_eq!(judged, Ok(()), "{vector}");
            assert_eq!(mac(mechanism, &key, &params, &data).unwrap(), tag);
        } else {
            assert!(judged.is_err(), "{vector}");
        }
    }
}

#[test]
fn hmac_is_judged_as_wycheproof_does() {
    for (name, whole, general) in [
        ("hmac_sha1_test", CKM_SHA_1_HMAC, CKM_SHA_1_HMAC_GENERAL),
        ("hmac_sha224_test", CKM_SHA224_HMAC, CKM_SHA224_HMAC_GENERAL),
        ("hmac_sha256_test", CKM_SHA256_HMAC, CKM_SHA256_HMAC_GENERAL),
        ("hmac_sha384_test", CKM_SHA384_HMAC, CKM_SHA384_HMAC_GENERAL),
        ("hmac_sha512_test", CKM_SHA512_HMAC, CKM_SHA512_HMAC_GENERAL),
        ("hmac_sha512_224_test", CKM_SHA512_224_HMAC, CKM_SHA512_224_HMAC_GENERAL),
        ("hmac_sha512_256_test", CKM_SHA512_256_HMAC, CKM_SHA512_256_HMAC_GENERAL),
        ("hmac_sha3_224_test", CKM_SHA3_224_HMAC, CKM_SHA3_224_HMAC_GENERAL),
        ("hmac_sha3_256_test", CKM_SHA3_256_HMAC, CKM_SHA3_256_HMAC_GENERAL),
        ("hmac_sha3_384_test", CKM_SHA3_384_HMAC, CKM_SHA3_384_HMAC_GENERAL),
        ("hmac_sha3_512_test", CKM_SHA3_512_HMAC, CKM_SHA3_512_HMAC_GENERAL),
    ] {
        let sign = algorithm(whole).sign.unwrap();
        let full = sign.length(&secret_key(CKK_GENERIC_SECRET, &[1]), &Params::None) as u64;
        each(name, |group, vector, verdict| {
            let length = group["tagSize"].as_u64().unwrap() / 8;
            mac_vector((whole, general), CKK_GENERIC_SECRET, (length, full), vector, verdict);
        });
    }
}

#[test]
fn cmac_is_judged_as_wycheproof_does() {
    each("aes_cmac_test", |group, vector, verdict| {
        let length = group["tagSize"].as_u64().unwrap() / 8;
        let names = (CKM_AES_CMAC, CKM_AES_CMAC_GENERAL);
        if matches!(hex(&vector["key"]).len(), 16 | 24 | 32) {
            mac_vector(names, CKK_AES, (length, 16), vector, verdict);
        } else {
            let key = secret_key(CKK_AES, &hex(&vector["key"]));
            let judged = verify(CKM_AES_CMAC, &key, &Params::None, &[], &[0; 16]);
            assert_eq!(judged, Err(Error::KEY_SIZE_RANGE));
        }
    });
}

#[test]
fn gmac_is_judged_as_wycheproof_does() {
    each("aes_gmac_test", |_, vector, verdict| {
        let key = secret_key(CKK_AES, &hex(&vector["key"]));
        let (data, tag) = (hex(&vector["msg"]), hex(&vector["tag"]));
        let (iv, aad, tag_bits) = (bytes(&vector["iv"]), Bytes::new(), tag.len() as u64 * 8);
        if !takes_nonce(iv.len()) {
            return;
        }
        for params in [Params::Iv(iv.clone()), Params::Gcm { iv, aad, tag_bits }] {
            let judged = verify(CKM_AES_GMAC, &key, &params, &data, &tag);
            if verdict == Verdict::Valid {
                assert_eq!(judged, Ok(()), "{vector}");
                assert_eq!(mac(CKM_AES_GMAC, &key, &params, &data).unwrap(), tag);
            } else {
                assert!(judged.is_err(), "{vector}");
            }
        }
    });
}

fn hkdf(
    prf: CK_MECHANISM_TYPE,
    (extract, expand): (bool, bool),
    salt: Bytes,
    info: Bytes,
) -> Params {
    let salt_type = if salt.is_empty() { CKF_HKDF_SALT_NULL } else { CKF_HKDF_SALT_DATA };
    Params::Hkdf { extract, expand, prf, salt_type, salt, salt_key: ObjectHandle(0), info }
}

#[test]
fn hkdf_gives_what_wycheproof_has_in_one_step_and_in_two() {
    for (name, prf, length) in [
        ("hkdf_sha1_test", CKM_SHA_1, 20),
        ("hkdf_sha256_test", CKM_SHA256, 32),
        ("hkdf_sha384_test", CKM_SHA384, 48),
        ("hkdf_sha512_test", CKM_SHA512, 64),
    ] {
        each(name, |_, vector, verdict| {
            let key = secret_key(CKK_HKDF, &hex(&vector["ikm"]));
            let (salt, info) = (bytes(&vector["salt"]), bytes(&vector["info"]));
            let size = usize::try_from(vector["size"].as_u64().unwrap()).unwrap();
            let both = hkdf(prf, (true, true), salt.clone(), info.clone());
            let derived_key = derived(CKM_HKDF_DERIVE, &key, &both, size);
            if verdict != Verdict::Valid {
                assert_eq!(derived_key, Err(Error::KEY_SIZE_RANGE), "{vector}");
                return;
            }
            assert_eq!(derived_key.unwrap(), hex(&vector["okm"]), "{vector}");
            let extract = hkdf(prf, (true, false), salt, Bytes::new());
            let middle = derived(CKM_HKDF_DERIVE, &key, &extract, length).unwrap();
            let middle = secret_key(CKK_HKDF, &middle);
            let expand = hkdf(prf, (false, true), Bytes::new(), info);
            let data = derived(CKM_HKDF_DATA, &middle, &expand, size).unwrap();
            assert_eq!(data, hex(&vector["okm"]));
        });
    }
}

#[test]
fn pbkdf2_gives_what_wycheproof_has() {
    let generate = algorithm(CKM_PKCS5_PBKD2).generate.unwrap();
    for (name, prf) in [
        ("pbkdf2_hmacsha1_test", CKP_PKCS5_PBKD2_HMAC_SHA1),
        ("pbkdf2_hmacsha224_test", CKP_PKCS5_PBKD2_HMAC_SHA224),
        ("pbkdf2_hmacsha256_test", CKP_PKCS5_PBKD2_HMAC_SHA256),
        ("pbkdf2_hmacsha384_test", CKP_PKCS5_PBKD2_HMAC_SHA384),
        ("pbkdf2_hmacsha512_test", CKP_PKCS5_PBKD2_HMAC_SHA512),
    ] {
        each(name, |_, vector, _| {
            let iterations = vector["iterationCount"].as_u64().unwrap();
            // Millions of iterations show nothing new and take minutes.
            if iterations > 100_000 {
                return;
            }
            let (salt, password) =
                (bytes(&vector["salt"]), Secret::copy_of(&hex(&vector["password"])));
            let params = Params::Pbkd2 { prf, salt, iterations, password };
            let length = Attribute::Ulong(vector["dkLen"].as_u64().unwrap());
            let template: Attributes = [(CKA_VALUE_LEN, length)].into_iter().collect();
            let made = generate.generate(&params, &template).unwrap();
            assert_eq!(made.secrets.get(CKA_VALUE).unwrap(), hex(&vector["dk"]), "{vector}");
        });
    }
}

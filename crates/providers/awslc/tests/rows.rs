// SPDX-License-Identifier: Apache-2.0
//! Which vectors stand behind each row of the provider: a row without is not delivered.

use metaslot_awslc::AWSLC;
use metaslot_ck::*;
use metaslot_memory::Secret;
use metaslot_spi::provider::Provider;
use metaslot_spi::{Attributes, Key, Material, NewObject, Value};
use std::path::Path;
use std::sync::Arc;

/// Files in `testdata`, without `.json`.
const VECTORS: &[(CK_MECHANISM_TYPE, &[&str])] = &[
    (CKM_RSA_PKCS, &["wycheproof/rsa_pkcs1_2048_sig_gen_test", "wycheproof/rsa_pkcs1_2048_test"]),
    (CKM_MD5_RSA_PKCS, &["openssl/signatures"]),
    (CKM_SHA1_RSA_PKCS, &["openssl/signatures"]),
    (
        CKM_RSA_PKCS_OAEP,
        &["wycheproof/rsa_oaep_2048_sha256_mgf1sha256_test", "wycheproof/rsa_oaep_misc_test"],
    ),
    (CKM_RSA_PKCS_PSS, &["wycheproof/rsa_pss_misc_test"]),
    (CKM_SHA1_RSA_PKCS_PSS, &["wycheproof/rsa_pss_2048_sha1_mgf1_20_test", "openssl/signatures"]),
    (CKM_SHA256_RSA_PKCS, &["wycheproof/rsa_signature_2048_sha256_test", "openssl/signatures"]),
    (CKM_SHA384_RSA_PKCS, &["wycheproof/rsa_signature_2048_sha384_test", "openssl/signatures"]),
    (CKM_SHA512_RSA_PKCS, &["wycheproof/rsa_signature_2048_sha512_test", "openssl/signatures"]),
    (
        CKM_SHA256_RSA_PKCS_PSS,
        &["wycheproof/rsa_pss_2048_sha256_mgf1_32_test", "openssl/signatures"],
    ),
    (
        CKM_SHA384_RSA_PKCS_PSS,
        &["wycheproof/rsa_pss_2048_sha384_mgf1_48_test", "openssl/signatures"],
    ),
    (
        CKM_SHA512_RSA_PKCS_PSS,
        &["wycheproof/rsa_pss_4096_sha512_mgf1_64_test", "openssl/signatures"],
    ),
    (CKM_SHA224_RSA_PKCS, &["wycheproof/rsa_signature_2048_sha224_test", "openssl/signatures"]),
    (CKM_SHA224_RSA_PKCS_PSS, &["openssl/signatures"]),
    (CKM_SHA512_224, &["openssl/digest"]),
    (CKM_SHA512_224_HMAC, &["openssl/hmac", "wycheproof/hmac_sha512_224_test"]),
    (CKM_SHA512_224_HMAC_GENERAL, &["openssl/hmac", "wycheproof/hmac_sha512_224_test"]),
    (CKM_SHA512_256, &["openssl/digest"]),
    (CKM_SHA512_256_HMAC, &["openssl/hmac", "wycheproof/hmac_sha512_256_test"]),
    (CKM_SHA512_256_HMAC_GENERAL, &["openssl/hmac", "wycheproof/hmac_sha512_256_test"]),
    (CKM_SHA3_256_RSA_PKCS, &["wycheproof/rsa_signature_2048_sha3_256_test", "openssl/signatures"]),
    (CKM_SHA3_384_RSA_PKCS, &["wycheproof/rsa_signature_2048_sha3_384_test", "openssl/signatures"]),
    (CKM_SHA3_512_RSA_PKCS, &["wycheproof/rsa_signature_2048_sha3_512_test", "openssl/signatures"]),
    (CKM_SHA3_256_RSA_PKCS_PSS, &["openssl/signatures"]),
    (CKM_SHA3_384_RSA_PKCS_PSS, &["openssl/signatures"]),
    (CKM_SHA3_512_RSA_PKCS_PSS, &["openssl/signatures"]),
    (CKM_SHA3_224_RSA_PKCS, &["wycheproof/rsa_signature_2048_sha3_224_test", "openssl/signatures"]),
    (CKM_SHA3_224_RSA_PKCS_PSS, &["openssl/signatures"]),
    (CKM_MD5, &["openssl/digest"]),
    (CKM_MD5_HMAC, &["openssl/hmac"]),
    (CKM_MD5_HMAC_GENERAL, &["openssl/hmac"]),
    (CKM_SHA_1, &["openssl/digest"]),
    (CKM_SHA_1_HMAC, &["openssl/hmac", "wycheproof/hmac_sha1_test"]),
    (CKM_SHA_1_HMAC_GENERAL, &["openssl/hmac", "wycheproof/hmac_sha1_test"]),
    (CKM_SHA256, &["openssl/digest"]),
    (CKM_SHA256_HMAC, &["openssl/hmac", "wycheproof/hmac_sha256_test"]),
    (CKM_SHA256_HMAC_GENERAL, &["openssl/hmac", "wycheproof/hmac_sha256_test"]),
    (CKM_SHA224, &["openssl/digest"]),
    (CKM_SHA224_HMAC, &["openssl/hmac", "wycheproof/hmac_sha224_test"]),
    (CKM_SHA224_HMAC_GENERAL, &["openssl/hmac", "wycheproof/hmac_sha224_test"]),
    (CKM_SHA384, &["openssl/digest"]),
    (CKM_SHA384_HMAC, &["openssl/hmac", "wycheproof/hmac_sha384_test"]),
    (CKM_SHA384_HMAC_GENERAL, &["openssl/hmac", "wycheproof/hmac_sha384_test"]),
    (CKM_SHA512, &["openssl/digest"]),
    (CKM_SHA512_HMAC, &["openssl/hmac", "wycheproof/hmac_sha512_test"]),
    (CKM_SHA512_HMAC_GENERAL, &["openssl/hmac", "wycheproof/hmac_sha512_test"]),
    (CKM_SHA3_256, &["openssl/digest"]),
    (CKM_SHA3_256_HMAC, &["openssl/hmac", "wycheproof/hmac_sha3_256_test"]),
    (CKM_SHA3_256_HMAC_GENERAL, &["openssl/hmac", "wycheproof/hmac_sha3_256_test"]),
    (CKM_SHA3_224, &["openssl/digest"]),
    (CKM_SHA3_224_HMAC, &["openssl/hmac", "wycheproof/hmac_sha3_224_test"]),
    (CKM_SHA3_224_HMAC_GENERAL, &["openssl/hmac", "wycheproof/hmac_sha3_224_test"]),
    (CKM_SHA3_384, &["openssl/digest"]),
    (CKM_SHA3_384_HMAC, &["openssl/hmac", "wycheproof/hmac_sha3_384_test"]),
    (CKM_SHA3_384_HMAC_GENERAL, &["openssl/hmac", "wycheproof/hmac_sha3_384_test"]),
    (CKM_SHA3_512, &["openssl/digest"]),
    (CKM_SHA3_512_HMAC, &["openssl/hmac", "wycheproof/hmac_sha3_512_test"]),
    (CKM_SHA3_512_HMAC_GENERAL, &["openssl/hmac", "wycheproof/hmac_sha3_512_test"]),
    (CKM_SP800_108_COUNTER_KDF, &["nist/sp800_108"]),
    (CKM_SP800_108_FEEDBACK_KDF, &["nist/sp800_108"]),
    (CKM_SP800_108_DOUBLE_PIPELINE_KDF, &["nist/sp800_108"]),
    (CKM_PKCS5_PBKD2, &["wycheproof/pbkdf2_hmacsha1_test", "wycheproof/pbkdf2_hmacsha256_test"]),
    (CKM_DSA, &["wycheproof/dsa_2048_224_sha224_p1363_test"]),
    (CKM_DSA_SHA224, &["wycheproof/dsa_2048_224_sha224_p1363_test"]),
    (
        CKM_DSA_SHA256,
        &["wycheproof/dsa_2048_256_sha256_p1363_test", "wycheproof/dsa_3072_256_sha256_p1363_test"],
    ),
    (CKM_ECDSA, &["wycheproof/ecdsa_secp256r1_sha256_p1363_test"]),
    (CKM_ECDSA_SHA1, &["openssl/signatures"]),
    (CKM_ECDSA_SHA224, &["wycheproof/ecdsa_secp224r1_sha224_p1363_test", "openssl/signatures"]),
    (
        CKM_ECDSA_SHA256,
        &[
            "wycheproof/ecdsa_secp256r1_sha256_p1363_test",
            "wycheproof/ecdsa_secp256k1_sha256_p1363_test",
        ],
    ),
    (CKM_ECDSA_SHA384, &["wycheproof/ecdsa_secp384r1_sha384_p1363_test"]),
    (
        CKM_ECDSA_SHA512,
        &[
            "wycheproof/ecdsa_secp521r1_sha512_p1363_test",
            "wycheproof/ecdsa_secp256r1_sha512_p1363_test",
        ],
    ),
    (CKM_ECDSA_SHA3_224, &["openssl/signatures"]),
    (CKM_ECDSA_SHA3_256, &["openssl/signatures"]),
    (CKM_ECDSA_SHA3_384, &["openssl/signatures"]),
    (CKM_ECDSA_SHA3_512, &["openssl/signatures"]),
    (CKM_ECDH1_DERIVE, &["wycheproof/ecdh_secp256r1_ecpoint_test", "wycheproof/x25519_test"]),
    (CKM_ECDH1_COFACTOR_DERIVE, &["wycheproof/ecdh_secp256r1_ecpoint_test"]),
    (CKM_EDDSA, &["wycheproof/ed25519_test"]),
    (CKM_XEDDSA, &["xeddsa/vectors"]),
    (
        CKM_ML_KEM,
        &[
            "wycheproof/mlkem_512_test",
            "wycheproof/mlkem_768_semi_expanded_decaps_test",
            "wycheproof/mlkem_1024_encaps_test",
        ],
    ),
    (
        CKM_ML_KEM_KEY_PAIR_GEN,
        &[
            "wycheproof/mlkem_512_keygen_seed_test",
            "wycheproof/mlkem_768_keygen_seed_test",
            "wycheproof/mlkem_1024_keygen_seed_test",
        ],
    ),
    (
        CKM_ML_DSA,
        &[
            "wycheproof/mldsa_44_verify_test",
            "wycheproof/mldsa_65_sign_seed_test",
            "wycheproof/mldsa_87_sign_noseed_test",
            "nist/ml_dsa",
        ],
    ),
    (
        CKM_ML_DSA_EXTERNAL_MU,
        &[
            "wycheproof/mldsa_44_sign_seed_test",
            "wycheproof/mldsa_87_sign_noseed_test",
            "nist/ml_dsa",
        ],
    ),
    (CKM_HASH_ML_DSA, &["nist/ml_dsa"]),
    (CKM_HASH_ML_DSA_SHA224, &["nist/ml_dsa"]),
    (CKM_HASH_ML_DSA_SHA256, &["nist/ml_dsa"]),
    (CKM_HASH_ML_DSA_SHA384, &["nist/ml_dsa"]),
    (CKM_HASH_ML_DSA_SHA512, &["nist/ml_dsa"]),
    (CKM_HASH_ML_DSA_SHA3_224, &["nist/ml_dsa"]),
    (CKM_HASH_ML_DSA_SHA3_256, &["nist/ml_dsa"]),
    (CKM_HASH_ML_DSA_SHA3_384, &["nist/ml_dsa"]),
    (CKM_HASH_ML_DSA_SHA3_512, &["nist/ml_dsa"]),
    (CKM_HASH_ML_DSA_SHAKE128, &["nist/ml_dsa"]),
    (CKM_HASH_ML_DSA_SHAKE256, &["nist/ml_dsa"]),
    (CKM_AES_XTS, &["wycheproof/aes_xts_test"]),
    (CKM_AES_CBC_PAD, &["wycheproof/aes_cbc_pkcs5_test"]),
    (CKM_AES_GCM, &["wycheproof/aes_gcm_test"]),
    (CKM_AES_CCM, &["wycheproof/aes_ccm_test"]),
    (CKM_AES_CMAC, &["wycheproof/aes_cmac_test"]),
    (CKM_AES_CMAC_GENERAL, &["wycheproof/aes_cmac_test"]),
    (CKM_AES_GMAC, &["wycheproof/aes_gmac_test"]),
    (CKM_AES_KEY_WRAP, &["wycheproof/aes_wrap_test"]),
    (CKM_AES_KEY_WRAP_KWP, &["wycheproof/aes_kwp_test"]),
    (
        CKM_CHACHA20_POLY1305,
        &["wycheproof/chacha20_poly1305_test", "wycheproof/xchacha20_poly1305_test"],
    ),
    (CKM_HKDF_DERIVE, &["wycheproof/hkdf_sha256_test", "wycheproof/hkdf_sha512_test"]),
    (CKM_HKDF_DATA, &["wycheproof/hkdf_sha256_test"]),
    (CKM_HOTP, &["rfc/hotp"]),
    (CKM_DSA_PARAMETER_GEN, &["nist/dsa_parameters"]),
    (CKM_X9_42_DH_PARAMETER_GEN, &["nist/dsa_parameters"]),
    (CKM_DSA_PROBABLISTIC_PARAMETER_GEN, &["nist/dsa_parameters"]),
    (CKM_DSA_SHAWE_TAYLOR_PARAMETER_GEN, &["nist/dsa_parameters"]),
    (CKM_DSA_FIPS_G_GEN, &["nist/dsa_parameters"]),
];

/// Rows that no vector can show, and what does instead.
const EXEMPT: &[(CK_MECHANISM_TYPE, &str)] = &[
    (CKM_RSA_X_509, "the bare operation, through which every vector of RSA goes"),
    (CKM_RSA_PKCS_KEY_PAIR_GEN, "random: keys are used by asymmetric.rs"),
    (CKM_DH_PKCS_KEY_PAIR_GEN, "random: keys are used by groups.rs"),
    (CKM_X9_42_DH_KEY_PAIR_GEN, "random: keys are used by groups.rs"),
    (CKM_DSA_KEY_PAIR_GEN, "random: keys are used by groups.rs"),
    (CKM_SSL3_PRE_MASTER_KEY_GEN, "random: begins with a version, as tls.rs looks at"),
    (CKM_TLS_PRE_MASTER_KEY_GEN, "random: begins with a version, as tls.rs looks at"),
    (CKM_EC_KEY_PAIR_GEN, "random: keys are used by asymmetric.rs"),
    (CKM_EC_KEY_PAIR_GEN_W_EXTRA_BITS, "random: keys are used by key_exchange.rs"),
    (CKM_EC_EDWARDS_KEY_PAIR_GEN, "random: keys are used by key_exchange.rs"),
    (CKM_EC_MONTGOMERY_KEY_PAIR_GEN, "random: keys are used by key_exchange.rs"),
    (CKM_ML_DSA_KEY_PAIR_GEN, "random: keys are used by ml_dsa.rs"),
    (CKM_GENERIC_SECRET_KEY_GEN, "random: lengths are checked in generate.rs"),
    (CKM_AES_KEY_GEN, "random: lengths are checked in generate.rs"),
    (CKM_AES_XTS_KEY_GEN, "random: lengths are checked in generate.rs"),
    (CKM_RC4_KEY_GEN, "random: lengths are checked in generate.rs"),
    (CKM_DES2_KEY_GEN, "random: lengths are checked in generate.rs"),
    (CKM_DES3_KEY_GEN, "random: lengths are checked in generate.rs"),
    (CKM_CHACHA20_KEY_GEN, "random: lengths are checked in generate.rs"),
    (CKM_HKDF_KEY_GEN, "random: lengths are checked in generate.rs"),
    (CKM_SHA_1_KEY_GEN, "random: as long as any generic secret"),
    (CKM_SHA224_KEY_GEN, "random: as long as any generic secret"),
    (CKM_SHA256_KEY_GEN, "random: as long as any generic secret"),
    (CKM_SHA384_KEY_GEN, "random: as long as any generic secret"),
    (CKM_SHA512_KEY_GEN, "random: as long as any generic secret"),
    (CKM_SHA512_224_KEY_GEN, "random: as long as any generic secret"),
    (CKM_SHA512_256_KEY_GEN, "random: as long as any generic secret"),
    (CKM_SHA3_224_KEY_GEN, "random: as long as any generic secret"),
    (CKM_SHA3_256_KEY_GEN, "random: as long as any generic secret"),
    (CKM_SHA3_384_KEY_GEN, "random: as long as any generic secret"),
    (CKM_SHA3_512_KEY_GEN, "random: as long as any generic secret"),
    (CKM_BLAKE2B_160_KEY_GEN, "random: as long as any generic secret"),
    (CKM_BLAKE2B_256_KEY_GEN, "random: as long as any generic secret"),
    (CKM_BLAKE2B_384_KEY_GEN, "random: as long as any generic secret"),
    (CKM_BLAKE2B_512_KEY_GEN, "random: as long as any generic secret"),
    (CKM_DH_PKCS_PARAMETER_GEN, "random: domain.rs looks whether both numbers are prime"),
    (CKM_HOTP_KEY_GEN, "random: hotp.c makes one and verifies its passwords"),
    (CKM_POLY1305_KEY_GEN, "random: lengths are checked in generate.rs"),
    (CKM_PUB_KEY_FROM_PRIV_KEY, "the engine makes the public half"),
];

/// Each vector of this file names its mechanism; symmetric.rs runs them all.
const CIPHERS: &str = include_str!("../../../../testdata/openssl/ciphers.json");

/// As well; the testkit runs them through the C ABI.
const CLASSICS: &str = include_str!("../../../../testdata/openssl/classics.json");

/// As well.
const PUBLISHED: &str = include_str!("../../../../testdata/rfc/old_ciphers.json");

/// As well.
const GROUPS: &str = include_str!("../../../../testdata/openssl/groups.json");

/// As well.
const TLS: &str = include_str!("../../../../testdata/openssl/tls.json");

#[test]
fn every_row_has_vectors_or_a_written_exemption() {
    for row in AWSLC.algorithms() {
        let files = VECTORS.iter().find(|(mechanism, _)| *mechanism == row.mechanism);
        let exempt = EXEMPT.iter().any(|(mechanism, _)| *mechanism == row.mechanism);
        let name = mechanism_name(row.mechanism).unwrap_or("?");
        let name_of_one = format!("\"{name}\"");
        let all = [CIPHERS, CLASSICS, GROUPS, PUBLISHED, TLS];
        let named = all.iter().any(|file| file.contains(&name_of_one));
        let vectors = files.is_some() || named;
        assert!(vectors != exempt, "{name}: vectors or an exemption, one of the two");
        assert!(files.is_none_or(|(_, files)| !files.is_empty()), "{name}: an empty list");
    }
}

#[test]
fn every_file_is_there_and_read_by_a_test() {
    let own = Path::new(env!("CARGO_MANIFEST_DIR"));
    let tests: String = std::fs::read_dir(own.join("tests"))
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.is_file() && !path.ends_with("rows.rs"))
        .map(|path| std::fs::read_to_string(path).unwrap())
        .collect();
    for file in VECTORS.iter().flat_map(|(_, files)| files.iter()) {
        let path = own.join(format!("../../../testdata/{file}.json"));
        assert!(path.is_file(), "{file} is missing");
        let name = file.rsplit('/').next().unwrap();
        assert!(
            tests.contains(&format!("{name}\"")) || tests.contains(&format!("{name}.json")),
            "{file}"
        );
    }
}

#[test]
fn no_row_is_listed_that_the_provider_has_not() {
    let listed = VECTORS.iter().map(|row| row.0).chain(EXEMPT.iter().map(|row| row.0));
    for mechanism in listed {
        let there = AWSLC.algorithms().iter().any(|row| row.mechanism == mechanism);
        assert!(there, "{}", mechanism_name(mechanism).unwrap_or("?"));
    }
}

#[test]
fn pairs_on_a_curve_that_others_have_are_for_them() {
    let rows = AWSLC.algorithms();
    let row = rows.iter().find(|row| row.mechanism == CKM_EC_KEY_PAIR_GEN).unwrap();
    for (oid, own) in [
        (&[6, 8, 0x2a, 0x86, 0x48, 0xce, 0x3d, 3, 1, 7][..], true),
        // brainpoolP256r1
        (&[6, 9, 0x2b, 0x24, 3, 3, 2, 8, 1, 1, 7], false),
        // No provider has it: this one says so.
        (&[6, 1, 1], true),
    ] {
        let params = Value::Bytes(oid.to_vec());
        let template: Attributes = [(CKA_EC_PARAMS, params)].into_iter().collect();
        assert_eq!(row.generate_pair.unwrap().serves(&template), own, "{oid:x?}");
    }
}

/// Those on Curve448, which is 56 and 57 bytes long.
#[test]
fn keys_of_another_length_are_for_another_provider() {
    let row = |mechanism| AWSLC.algorithms().iter().find(|row| row.mechanism == mechanism).unwrap();
    let key = |key_type, length| {
        let mut object = NewObject::default();
        object.attributes.set(CKA_CLASS, Value::Ulong(CKO_PRIVATE_KEY));
        object.attributes.set(CKA_KEY_TYPE, Value::Ulong(key_type));
        object.secrets.set(CKA_VALUE, Secret::copy_of(&vec![1; length]));
        let NewObject { attributes, secrets } = object;
        Key::new(Arc::new(attributes), Arc::new(Material::new(secrets)))
    };
    for (key_type, length, own) in [
        (CKK_EC_EDWARDS, 32, true),
        (CKK_EC_EDWARDS, 57, false),
        (CKK_EC_MONTGOMERY, 32, true),
        (CKK_EC_MONTGOMERY, 56, false),
    ] {
        let key = key(key_type, length);
        assert_eq!(AWSLC.encode_private_key(&key).is_ok(), own, "{length}");
        let serves = match key_type {
            CKK_EC_EDWARDS => row(CKM_EDDSA).sign.unwrap().serves(&key),
            _ => {
                assert_eq!(row(CKM_XEDDSA).sign.unwrap().serves(&key), own, "{length}");
                row(CKM_ECDH1_DERIVE).derive.unwrap().serves(&key)
            }
        };
        assert_eq!(serves, own, "{length}");
    }
    for (mechanism, oid, own) in [
        (CKM_EC_EDWARDS_KEY_PAIR_GEN, 0x70, true),
        (CKM_EC_EDWARDS_KEY_PAIR_GEN, 0x71, false),
        (CKM_EC_MONTGOMERY_KEY_PAIR_GEN, 0x6e, true),
        (CKM_EC_MONTGOMERY_KEY_PAIR_GEN, 0x6f, false),
    ] {
        let params = Value::Bytes(vec![6, 3, 0x2b, 0x65, oid]);
        let template: Attributes = [(CKA_EC_PARAMS, params)].into_iter().collect();
        assert_eq!(row(mechanism).generate_pair.unwrap().serves(&template), own, "{oid:#x}");
    }
}

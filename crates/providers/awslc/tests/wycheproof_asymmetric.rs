// SPDX-License-Identifier: Apache-2.0
//! Project Wycheproof's vectors for asymmetric mechanisms, each in one call and in parts where the
//! mechanism has parts.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

mod common;
#[path = "common/vectors.rs"]
mod vectors;

use common::{algorithm, imported, key};
#[allow(unused_imports, reason = "where another provider includes this file, it is that one")]
use metaslot_awslc::AWSLC as PROVIDER;
use metaslot_awslc::AWSLC;
use metaslot_ck::*;
use metaslot_spi::der::without_zeros;
use metaslot_spi::provider::{Direction, Keys, Provider};
use metaslot_spi::{Bytes, Key, Params};
use serde_json::Value;
use std::sync::Arc;
use vectors::{Verdict, base64url, each, flag, hash, hex};

fn rsa_public(group: &Value) -> Arc<Key> {
    let shown = [
        (CKA_MODULUS, hex(&group["publicKey"]["modulus"])),
        (CKA_PUBLIC_EXPONENT, hex(&group["publicKey"]["publicExponent"])),
    ];
    imported(CKO_PUBLIC_KEY, CKK_RSA, &shown, &[]).unwrap()
}

fn rsa_private(group: &Value) -> Arc<Key> {
    let object = AWSLC.decode_private_key(&hex(&group["privateKeyPkcs8"])).unwrap();
    key(CKO_PRIVATE_KEY, CKK_RSA, object)
}

/// Verifies in one call and in parts of several lengths; both must say the same.
fn verifies(
    mechanism: CK_MECHANISM_TYPE,
    key: &Arc<Key>,
    params: &Params,
    message: &[u8],
    signature: &[u8],
) -> Result<()> {
    let verify = algorithm(mechanism).verify.unwrap();
    verify.check(Direction::Backward, key, params)?;
    let whole = verify.verify(key, params, message, signature);
    for part in [1, 3, 64] {
        let mut stream = verify.start(Direction::Backward, key, params).unwrap();
        message.chunks(part).for_each(|part| stream.update(part).unwrap());
        assert_eq!(stream.verify(signature), whole);
    }
    whole
}

fn agrees(name: &str, vector: &Value, verdict: Verdict, result: Result<()>) {
    match verdict {
        Verdict::Valid => assert_eq!(result, Ok(()), "{name} {vector}"),
        Verdict::Invalid => assert!(result.is_err(), "{name} {vector}"),
        Verdict::Acceptable => {}
    }
}

fn rsa_pkcs1_mechanism(group: &Value) -> Option<CK_MECHANISM_TYPE> {
    Some(match hash(&group["sha"]).0 {
        CKM_SHA_1 => CKM_SHA1_RSA_PKCS,
        CKM_SHA224 => CKM_SHA224_RSA_PKCS,
        CKM_SHA256 => CKM_SHA256_RSA_PKCS,
        CKM_SHA384 => CKM_SHA384_RSA_PKCS,
        CKM_SHA512 => CKM_SHA512_RSA_PKCS,
        CKM_SHA3_224 => CKM_SHA3_224_RSA_PKCS,
        CKM_SHA3_256 => CKM_SHA3_256_RSA_PKCS,
        CKM_SHA3_384 => CKM_SHA3_384_RSA_PKCS,
        CKM_SHA3_512 => CKM_SHA3_512_RSA_PKCS,
        _ => return None,
    })
}

#[test]
fn rsa_pkcs1_signatures_are_judged_as_wycheproof_does() {
    for name in [
        "rsa_signature_2048_sha224_test",
        "rsa_signature_2048_sha256_test",
        "rsa_signature_2048_sha384_test",
        "rsa_signature_2048_sha512_test",
        "rsa_signature_2048_sha3_224_test",
        "rsa_signature_2048_sha3_256_test",
        "rsa_signature_2048_sha3_384_test",
        "rsa_signature_2048_sha3_512_test",
        "rsa_signature_3072_sha256_test",
        "rsa_signature_4096_sha512_test",
        "rsa_signature_8192_sha256_test",
    ] {
        each(name, |group, vector, verdict| {
            let mechanism = rsa_pkcs1_mechanism(group).unwrap();
            let (message, signature) = (hex(&vector["msg"]), hex(&vector["sig"]));
            let result =
                verifies(mechanism, &rsa_public(group), &Params::None, &message, &signature);
            agrees(name, vector, verdict, result);
        });
    }
}

#[test]
fn rsa_pkcs1_signatures_are_made_as_wycheproof_does() {
    for name in ["rsa_pkcs1_1024_sig_gen_test", "rsa_pkcs1_2048_sig_gen_test"] {
        let mut made = 0;
        each(name, |group, vector, _| {
            let Some(mechanism) = rsa_pkcs1_mechanism(group) else { return };
            let (sign, key) = (algorithm(mechanism).sign.unwrap(), rsa_private(group));
            sign.check(Direction::Forward, &key, &Params::None).unwrap();
            let mut out = vec![0; sign.length(&key, &Params::None)];
            let length = sign.sign(&key, &Params::None, &hex(&vector["msg"]), &mut out).unwrap();
            assert_eq!(out[..length], hex(&vector["sig"]), "{name} {vector}");
            made += 1;
        });
        assert!(made > 0, "{name}");
    }
}

#[test]
fn rsa_pss_signatures_are_judged_as_wycheproof_does() {
    for name in [
        "rsa_pss_2048_sha1_mgf1_20_test",
        "rsa_pss_2048_sha256_mgf1_0_test",
        "rsa_pss_2048_sha256_mgf1_32_test",
        "rsa_pss_2048_sha256_mgf1sha1_20_test",
        "rsa_pss_2048_sha384_mgf1_48_test",
        "rsa_pss_2048_sha512_mgf1sha256_32_params_test",
        "rsa_pss_3072_sha256_mgf1_32_test",
        "rsa_pss_4096_sha512_mgf1_64_test",
        "rsa_pss_misc_test",
    ] {
        let mut judged = 0;
        each(name, |group, vector, verdict| {
            let (hash_number, _) = hash(&group["sha"]);
            let (_, mgf) = hash(&group["mgfSha"]);
            let mechanism = match hash_number {
                CKM_SHA_1 => CKM_SHA1_RSA_PKCS_PSS,
                CKM_SHA224 => CKM_SHA224_RSA_PKCS_PSS,
                CKM_SHA256 => CKM_SHA256_RSA_PKCS_PSS,
                CKM_SHA384 => CKM_SHA384_RSA_PKCS_PSS,
                CKM_SHA512 => CKM_SHA512_RSA_PKCS_PSS,
                _ => return,
            };
            if mgf == 0 {
                return;
            }
            let salt_length = group["sLen"].as_u64().unwrap();
            let params = Params::Pss { hash: hash_number, mgf, salt_length };
            let (message, signature) = (hex(&vector["msg"]), hex(&vector["sig"]));
            let result = verifies(mechanism, &rsa_public(group), &params, &message, &signature);
            agrees(name, vector, verdict, result);
            judged += 1;
        });
        assert!(judged > 0, "{name}");
    }
}

fn decrypts(
    mechanism: CK_MECHANISM_TYPE,
    key: &Key,
    params: &Params,
    ciphertext: &[u8],
) -> Result<Vec<u8>> {
    let decrypt = algorithm(mechanism).decrypt.unwrap();
    decrypt.check(Direction::Backward, key, params)?;
    let mut out = vec![0; decrypt.length(Direction::Backward, key, params, ciphertext.len())?];
    let length = decrypt.run(Direction::Backward, key, params, ciphertext, &mut out)?;
    assert!(out[length..].iter().all(|byte| *byte == 0));
    out.truncate(length);
    Ok(out)
}

#[test]
fn rsa_oaep_is_opened_as_wycheproof_does() {
    for name in [
        "rsa_oaep_misc_test",
        "rsa_oaep_2048_sha1_mgf1sha1_test",
        "rsa_oaep_2048_sha256_mgf1sha256_test",
        "rsa_oaep_3072_sha512_256_mgf1sha1_test",
        "rsa_oaep_4096_sha512_mgf1sha512_test",
    ] {
        let mut opened = 0;
        each(name, |group, vector, verdict| {
            let (hash, mgf) = (hash(&group["sha"]).0, hash(&group["mgfSha"]).1);
            if mgf == 0 {
                return;
            }
            let params = Params::Oaep { hash, mgf, label: Bytes::from_vec(hex(&vector["label"])) };
            let result =
                decrypts(CKM_RSA_PKCS_OAEP, &rsa_private(group), &params, &hex(&vector["ct"]));
            match verdict {
                Verdict::Valid => assert_eq!(result, Ok(hex(&vector["msg"])), "{name} {vector}"),
                Verdict::Invalid => assert!(result.is_err(), "{name} {vector}"),
                Verdict::Acceptable => {}
            }
            opened += 1;
        });
        assert!(opened > 0, "{name}");
    }
}

/// Bad padding gives a message that stays the same and says nothing; only what is wrong for
/// everybody to see gives an error. The messages are those of OpenSSL 4.0, of which the SHA-256
/// over all of a file stands here.
#[test]
fn rsa_pkcs1_encryption_rejects_implicitly_and_as_openssl_does() {
    for (name, expected) in [
        ("rsa_pkcs1_2048_test", "494bb249f4078e38b56ce5216c55aa4aa03d449298385f33974c91a6570b32ff"),
        ("rsa_pkcs1_4096_test", "bd2ab2f6a42d5b7f25941ad76ba21f26667aba6092c3c08abb04854cbea32d00"),
    ] {
        let mut messages = Vec::new();
        each(name, |group, vector, verdict| {
            let key = rsa_private(group);
            let open = || decrypts(CKM_RSA_PKCS, &key, &Params::None, &hex(&vector["ct"]));
            match verdict {
                Verdict::Invalid if flag(vector, "InvalidPkcs1Padding") => {
                    let message = open().unwrap();
                    assert_eq!(open().unwrap(), message, "{name} {vector}");
                    messages.extend(message);
                }
                Verdict::Invalid => assert!(open().is_err(), "{name} {vector}"),
                _ => assert_eq!(open(), Ok(hex(&vector["msg"])), "{name} {vector}"),
            }
        });
        let mut digest = [0; 32];
        algorithm(CKM_SHA256).digest.unwrap().digest(&messages, &mut digest).unwrap();
        assert_eq!(digest.as_slice(), hex(&Value::from(expected)), "{name}");
    }
}

/// The DER of the object identifier of a curve.
fn curve(name: &Value) -> Vec<u8> {
    match name.as_str().unwrap() {
        "secp224r1" => vec![6, 5, 0x2b, 0x81, 4, 0, 0x21],
        "secp256r1" => vec![6, 8, 0x2a, 0x86, 0x48, 0xce, 0x3d, 3, 1, 7],
        "secp384r1" => vec![6, 5, 0x2b, 0x81, 4, 0, 0x22],
        "secp521r1" => vec![6, 5, 0x2b, 0x81, 4, 0, 0x23],
        "secp256k1" | "P-256K" => vec![6, 5, 0x2b, 0x81, 4, 0, 0x0a],
        other => panic!("unknown curve {other}"),
    }
}

fn curve_length(name: &Value) -> usize {
    match name.as_str() {
        Some("secp224r1") => 28,
        Some("secp384r1") => 48,
        Some("secp521r1") => 66,
        _ => 32,
    }
}

#[test]
fn ecdsa_signatures_are_judged_as_wycheproof_does() {
    for name in [
        "ecdsa_secp224r1_sha224_p1363_test",
        "ecdsa_secp256r1_sha256_p1363_test",
        "ecdsa_secp256r1_sha512_p1363_test",
        "ecdsa_secp256k1_sha256_p1363_test",
        "ecdsa_secp384r1_sha384_p1363_test",
        "ecdsa_secp521r1_sha512_p1363_test",
    ] {
        each(name, |group, vector, verdict| {
            let mechanism = match hash(&group["sha"]).0 {
                CKM_SHA224 => CKM_ECDSA_SHA224,
                CKM_SHA256 => CKM_ECDSA_SHA256,
                CKM_SHA384 => CKM_ECDSA_SHA384,
                _ => CKM_ECDSA_SHA512,
            };
            let shown = [
                (CKA_EC_PARAMS, curve(&group["publicKey"]["curve"])),
                (CKA_EC_POINT, hex(&group["publicKey"]["uncompressed"])),
            ];
            let key = imported(CKO_PUBLIC_KEY, CKK_EC, &shown, &[]).unwrap();
            let (message, signature) = (hex(&vector["msg"]), hex(&vector["sig"]));
            // PKCS#11 takes both numbers without the zero bytes in front (§6.3.1); IEEE P1363, which
            // these vectors follow, does not.
            let order = curve_length(&group["publicKey"]["curve"]);
            if signature.len() < 2 * order && signature.len().is_multiple_of(2) {
                return;
            }
            let result = verifies(mechanism, &key, &Params::None, &message, &signature);
            agrees(name, vector, verdict, result);
        });
    }
}

#[test]
fn dsa_signatures_are_judged_as_wycheproof_does() {
    for (name, mechanism) in [
        ("dsa_2048_224_sha224_p1363_test", CKM_DSA_SHA224),
        ("dsa_2048_256_sha256_p1363_test", CKM_DSA_SHA256),
        ("dsa_3072_256_sha256_p1363_test", CKM_DSA_SHA256),
    ] {
        each(name, |group, vector, verdict| {
            let shown = [(CKA_PRIME, "p"), (CKA_SUBPRIME, "q"), (CKA_BASE, "g"), (CKA_VALUE, "y")];
            let shown = shown.map(|(attribute, part)| {
                (attribute, without_zeros(&hex(&group["publicKey"][part])).to_vec())
            });
            let key = imported(CKO_PUBLIC_KEY, CKK_DSA, &shown, &[]).unwrap();
            let (message, signature) = (hex(&vector["msg"]), hex(&vector["sig"]));
            let result = verifies(mechanism, &key, &Params::None, &message, &signature);
            agrees(name, vector, verdict, result);
            // Of the digest, too.
            let (row, verify) = (hash(&group["sha"]).0, algorithm(CKM_DSA).verify.unwrap());
            let digest = algorithm(row).digest.unwrap();
            let mut hashed = vec![0; digest.length()];
            digest.digest(&message, &mut hashed).unwrap();
            assert_eq!(verify.verify(&key, &Params::None, &hashed, &signature), result);
        });
    }
}

#[derive(Debug)]
struct NoKeys;

impl Keys for NoKeys {
    fn key(&self, _: ObjectHandle) -> Result<Arc<Key>> {
        Err(Error::KEY_HANDLE_INVALID)
    }
}

fn agree(key: &Key, public: Vec<u8>) -> Result<Vec<u8>> {
    let derive = algorithm(CKM_ECDH1_DERIVE).derive.unwrap();
    let params =
        Params::Ecdh1 { kdf: CKD_NULL, shared: Bytes::new(), public: Bytes::from_vec(public) };
    derive.check(key, &params)?;
    let length = derive.natural_length(key, &params).unwrap();
    let secrets = derive.derive(key, &params, &[length], &NoKeys)?;
    Ok(secrets[0].expose().to_vec())
}

fn agreed(name: &str, vector: &Value, verdict: Verdict, result: Result<Vec<u8>>) {
    match (verdict, result) {
        (Verdict::Valid, result) => {
            assert_eq!(result, Ok(hex(&vector["shared"])), "{name} {vector}");
        }
        (_, Err(error)) => {
            assert_eq!(error, Error::MECHANISM_PARAM_INVALID, "{name} {vector}");
        }
        (Verdict::Invalid, Ok(_)) => panic!("{name} {vector}"),
        (Verdict::Acceptable, Ok(secret)) => {
            assert_eq!(secret, hex(&vector["shared"]), "{name} {vector}");
        }
    }
}

#[test]
fn ecdh_agrees_with_wycheproof() {
    for name in [
        "ecdh_secp224r1_ecpoint_test",
        "ecdh_secp256r1_ecpoint_test",
        "ecdh_secp384r1_ecpoint_test",
        "ecdh_secp521r1_ecpoint_test",
    ] {
        each(name, |group, vector, verdict| {
            let shown = [(CKA_EC_PARAMS, curve(&group["curve"]))];
            let private = hex(&vector["private"]);
            let key = imported(CKO_PRIVATE_KEY, CKK_EC, &shown, &[(CKA_VALUE, &private)]);
            agreed(name, vector, verdict, agree(&key.unwrap(), hex(&vector["public"])));
        });
    }
    let name = "ecdh_secp256k1_webcrypto_test";
    each(name, |group, vector, verdict| {
        let (private, public) = (&vector["private"], &vector["public"]);
        if private["crv"] != public["crv"] {
            return;
        }
        let shown = [(CKA_EC_PARAMS, curve(&group["curve"]))];
        let private = base64url(&private["d"]);
        let key = imported(CKO_PRIVATE_KEY, CKK_EC, &shown, &[(CKA_VALUE, &private)]).unwrap();
        let point = [vec![4], base64url(&public["x"]), base64url(&public["y"])].concat();
        agreed(name, vector, verdict, agree(&key, point));
    });
}

#[test]
fn x25519_agrees_with_wycheproof() {
    let name = "x25519_test";
    each(name, |_, vector, verdict| {
        let shown = [(CKA_EC_PARAMS, vec![6, 3, 0x2b, 0x65, 0x6e])];
        let private = hex(&vector["private"]);
        let key = imported(CKO_PRIVATE_KEY, CKK_EC_MONTGOMERY, &shown, &[(CKA_VALUE, &private)]);
        let result = agree(&key.unwrap(), hex(&vector["public"]));
        if flag(vector, "ZeroSharedSecret") {
            assert_eq!(result, Err(Error::MECHANISM_PARAM_INVALID), "{vector}");
        } else {
            assert_eq!(result.as_ref(), Ok(&hex(&vector["shared"])), "{vector}");
            agreed(name, vector, verdict, result);
        }
    });
}

#[test]
fn ed25519_signatures_are_judged_as_wycheproof_does() {
    let name = "ed25519_test";
    each(name, |group, vector, verdict| {
        let point = hex(&group["publicKey"]["pk"]);
        let shown = [
            (CKA_EC_PARAMS, vec![6, 3, 0x2b, 0x65, 0x70]),
            (CKA_EC_POINT, [vec![4, 32], point].concat()),
        ];
        let key = imported(CKO_PUBLIC_KEY, CKK_EC_EDWARDS, &shown, &[]).unwrap();
        let (message, signature) = (hex(&vector["msg"]), hex(&vector["sig"]));
        agrees(
            name,
            vector,
            verdict,
            verifies(CKM_EDDSA, &key, &Params::None, &message, &signature),
        );
    });
}

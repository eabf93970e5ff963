// SPDX-License-Identifier: Apache-2.0
//! ML-DSA and HashML-DSA against vectors of Project Wycheproof's and of NIST's, in one call and in parts.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

mod common;
#[path = "common/vectors.rs"]
mod vectors;

use common::{algorithm, key};
#[allow(unused_imports, reason = "where another provider includes this file, it is that one")]
use metaslot_awslc::AWSLC as PROVIDER;
use metaslot_awslc::AWSLC;
use metaslot_awslc_wrapper::ml_dsa::{MlDsaKey, Set};
use metaslot_ck::*;
use metaslot_memory::Secret;
use metaslot_spi::provider::{Direction, Provider};
use metaslot_spi::{Attributes, Bytes, Key, NewObject, Params, Value};
use serde_json::Value as Json;
use std::sync::Arc;
use vectors::{Verdict, each, flag, hex};

/// Each parameter set, the length of its signatures, and its files: of signatures, of keys with a seed, of keys without.
const SETS: [(CK_ML_DSA_PARAMETER_SET_TYPE, usize, [&str; 3]); 3] = [
    (
        CKP_ML_DSA_44,
        2420,
        ["mldsa_44_verify_test", "mldsa_44_sign_seed_test", "mldsa_44_sign_noseed_test"],
    ),
    (
        CKP_ML_DSA_65,
        3309,
        ["mldsa_65_verify_test", "mldsa_65_sign_seed_test", "mldsa_65_sign_noseed_test"],
    ),
    (
        CKP_ML_DSA_87,
        4627,
        ["mldsa_87_verify_test", "mldsa_87_sign_seed_test", "mldsa_87_sign_noseed_test"],
    ),
];

fn brought(
    class: CK_OBJECT_CLASS,
    set: u64,
    shown: &[(CK_ATTRIBUTE_TYPE, &[u8])],
    secrets: &[(CK_ATTRIBUTE_TYPE, &[u8])],
) -> Result<Arc<Key>> {
    let mut object = NewObject::default();
    object.attributes.set(CKA_CLASS, Value::Ulong(class));
    object.attributes.set(CKA_KEY_TYPE, Value::Ulong(CKK_ML_DSA));
    object.attributes.set(CKA_PARAMETER_SET, Value::Ulong(set));
    for (attribute, bytes) in shown {
        object.attributes.set(*attribute, Value::Bytes(bytes.to_vec()));
    }
    for (attribute, bytes) in secrets {
        object.secrets.set(*attribute, Secret::copy_of(bytes));
    }
    AWSLC.complete(&mut object)?;
    Ok(key(class, CKK_ML_DSA, object))
}

fn context(vector: &Json) -> Params {
    match vector.get("ctx") {
        None => Params::None,
        Some(context) => Params::SignContext {
            hedge: CKH_HEDGE_PREFERRED,
            context: Bytes::from_vec(hex(context)),
        },
    }
}

/// In one call and in parts; both say the same.
fn verifies(key: &Arc<Key>, params: &Params, message: &[u8], signature: &[u8]) -> Result<()> {
    verifies_by(CKM_ML_DSA, key, params, message, signature)
}

fn verifies_by(
    mechanism: CK_MECHANISM_TYPE,
    key: &Arc<Key>,
    params: &Params,
    message: &[u8],
    signature: &[u8],
) -> Result<()> {
    let verify = algorithm(mechanism).verify.unwrap();
    verify.check(Direction::Backward, key, params)?;
    let whole = verify.verify(key, params, message, signature);
    let mut stream = verify.start(Direction::Backward, key, params).unwrap();
    message.chunks(7).for_each(|part| stream.update(part).unwrap());
    assert_eq!(stream.verify(signature), whole);
    whole
}

#[test]
fn signatures_are_judged_as_wycheproof_does() {
    for (set, _, [name, ..]) in SETS {
        let count = each(name, |group, vector, verdict| {
            let result =
                brought(CKO_PUBLIC_KEY, set, &[(CKA_VALUE, &hex(&group["publicKey"]))], &[])
                    .and_then(|key| {
                        let (message, signature) = (hex(&vector["msg"]), hex(&vector["sig"]));
                        verifies(&key, &context(vector), &message, &signature)
                    });
            match verdict {
                Verdict::Valid => assert_eq!(result, Ok(()), "{name} {}", vector["tcId"]),
                _ => assert!(result.is_err(), "{name} {}", vector["tcId"]),
            }
        });
        assert!(count > 100, "{name}: {count}");
    }
}

/// Signs twice, in one call and in parts; returns the first.
fn signs(key: &Arc<Key>, params: &Params, message: &[u8], length: usize) -> Result<Vec<u8>> {
    let sign = algorithm(CKM_ML_DSA).sign.unwrap();
    sign.check(Direction::Forward, key, params)?;
    assert_eq!(sign.length(key, params), length);
    let mut out = vec![0; length];
    assert_eq!(sign.sign(key, params, message, &mut out)?, length);
    let mut stream = sign.start(Direction::Forward, key, params).unwrap();
    message.chunks(7).for_each(|part| stream.update(part).unwrap());
    let mut again = vec![0; length];
    assert_eq!(stream.sign(&mut again)?, length);
    assert_ne!(out, again, "they are hedged");
    Ok(out)
}

/// The private key of a group in each form that it is given in.
fn private_keys(group: &Json, set: u64) -> Vec<Result<Arc<Key>>> {
    let mut keys = Vec::new();
    if let Some(seed) = group.get("privateSeed") {
        keys.push(brought(CKO_PRIVATE_KEY, set, &[], &[(CKA_SEED, &hex(seed))]));
    }
    if let Some(expanded) = group.get("privateKey") {
        keys.push(brought(CKO_PRIVATE_KEY, set, &[], &[(CKA_VALUE, &hex(expanded))]));
    }
    if let Some(der) = group.get("privateKeyPkcs8").filter(|der| !der.is_null()) {
        let decoded = AWSLC.decode_private_key(&hex(der));
        keys.push(decoded.map(|object| key(CKO_PRIVATE_KEY, CKK_ML_DSA, object)));
    }
    keys
}

#[test]
fn keys_that_wycheproof_has_sign_what_their_public_halves_verify() {
    for (set, length, [_, files @ ..]) in SETS {
        for name in files {
            each(name, |group, vector, verdict| {
                let at = format!("{name} {}", vector["tcId"]);
                // Vectors of what is inside have a µ in place of a message, which no mechanism of the standard takes.
                if flag(vector, "Internal") {
                    return;
                }
                let (message, params) = (hex(&vector["msg"]), context(vector));
                for private in private_keys(group, set) {
                    let signed =
                        private.and_then(|private| signs(&private, &params, &message, length));
                    if verdict != Verdict::Valid {
                        assert!(signed.is_err(), "{at}");
                        continue;
                    }
                    let public = [(CKA_VALUE, &*hex(&group["publicKey"]))];
                    let public = brought(CKO_PUBLIC_KEY, set, &public, &[]).unwrap();
                    assert_eq!(
                        verifies(&public, &params, &message, &signed.unwrap()),
                        Ok(()),
                        "{at}"
                    );
                    assert_eq!(
                        verifies(&public, &params, &message, &hex(&vector["sig"])),
                        Ok(()),
                        "{at}"
                    );
                }
            });
        }
    }
}

fn generated(set: u64) -> [Arc<Key>; 2] {
    let mut template = Attributes::default();
    template.set(CKA_PARAMETER_SET, Value::Ulong(set));
    let pair = algorithm(CKM_ML_DSA_KEY_PAIR_GEN).generate_pair.unwrap();
    let (public, private) = pair.generate_pair(&Params::None, &template).unwrap();
    [key(CKO_PUBLIC_KEY, CKK_ML_DSA, public), key(CKO_PRIVATE_KEY, CKK_ML_DSA, private)]
}

#[test]
fn a_pair_signs_and_survives_its_encoding() {
    for (set, length, _) in SETS {
        let [public, private] = generated(set);
        let decoded =
            AWSLC.decode_private_key(AWSLC.encode_private_key(&private).unwrap().expose());
        let again = key(CKO_PRIVATE_KEY, CKK_ML_DSA, decoded.unwrap());
        for attribute in [CKA_SEED, CKA_VALUE] {
            assert_eq!(again.secret(attribute), private.secret(attribute));
        }
        let info = public.bytes(CKA_PUBLIC_KEY_INFO).unwrap();
        assert_eq!(again.bytes(CKA_PUBLIC_KEY_INFO), Ok(info));
        let signature = signs(&again, &Params::None, b"message", length).unwrap();
        assert_eq!(verifies(&public, &Params::None, b"message", &signature), Ok(()));
        assert_eq!(
            verifies(&public, &Params::None, b"Message", &signature),
            Err(Error::SIGNATURE_INVALID)
        );
        // A key that came without its seed is encoded without.
        let alone = [(CKA_VALUE, private.secret(CKA_VALUE).unwrap())];
        let alone = brought(CKO_PRIVATE_KEY, set, &[], &alone).unwrap();
        let decoded = AWSLC.decode_private_key(AWSLC.encode_private_key(&alone).unwrap().expose());
        let decoded = decoded.unwrap();
        assert!(decoded.secrets.get(CKA_SEED).is_none());
        assert_eq!(decoded.secrets.get(CKA_VALUE), Some(private.secret(CKA_VALUE).unwrap()));
    }
}

#[test]
fn what_does_not_belong_together_is_refused() {
    let [first, other] = [generated(CKP_ML_DSA_65), generated(CKP_ML_DSA_65)];
    let (seed, value) = (first[1].secret(CKA_SEED).unwrap(), other[1].secret(CKA_VALUE).unwrap());
    let made = |set, secrets: &[_]| brought(CKO_PRIVATE_KEY, set, &[], secrets).map(|_| ());
    let both = [(CKA_SEED, seed), (CKA_VALUE, value)];
    assert_eq!(made(CKP_ML_DSA_65, &both), Err(Error::TEMPLATE_INCONSISTENT));
    assert_eq!(made(CKP_ML_DSA_44, &both[1..]), Err(Error::ATTRIBUTE_VALUE_INVALID));
    assert_eq!(made(CKP_ML_DSA_65, &[]), Err(Error::TEMPLATE_INCOMPLETE));
    assert_eq!(made(4, &both[..1]), Err(Error::PARAMETER_SET_NOT_SUPPORTED));
    let mut broken = value.to_vec();
    broken[100] ^= 1;
    assert_eq!(made(CKP_ML_DSA_65, &[(CKA_VALUE, &broken)]), Err(Error::ATTRIBUTE_VALUE_INVALID));
    let info = other[1].bytes(CKA_PUBLIC_KEY_INFO).unwrap();
    let foreign =
        brought(CKO_PRIVATE_KEY, CKP_ML_DSA_65, &[(CKA_PUBLIC_KEY_INFO, info)], &both[..1]);
    assert_eq!(foreign.map(|_| ()), Err(Error::ATTRIBUTE_VALUE_INVALID));
    let shown = [(CKA_VALUE, first[0].bytes(CKA_VALUE).unwrap())];
    let public = brought(CKO_PUBLIC_KEY, CKP_ML_DSA_44, &shown, &[]);
    assert_eq!(public.map(|_| ()), Err(Error::ATTRIBUTE_VALUE_INVALID));
}

/// What NIST calls a hash function, the mechanism that digests, and the one that does all of it.
const HASHES: [(&str, CK_MECHANISM_TYPE, Option<CK_MECHANISM_TYPE>); 12] = [
    ("SHA2-224", CKM_SHA224, Some(CKM_HASH_ML_DSA_SHA224)),
    ("SHA2-256", CKM_SHA256, Some(CKM_HASH_ML_DSA_SHA256)),
    ("SHA2-384", CKM_SHA384, Some(CKM_HASH_ML_DSA_SHA384)),
    ("SHA2-512", CKM_SHA512, Some(CKM_HASH_ML_DSA_SHA512)),
    ("SHA2-512/224", CKM_SHA512_224, None),
    ("SHA2-512/256", CKM_SHA512_256, None),
    ("SHA3-224", CKM_SHA3_224, Some(CKM_HASH_ML_DSA_SHA3_224)),
    ("SHA3-256", CKM_SHA3_256, Some(CKM_HASH_ML_DSA_SHA3_256)),
    ("SHA3-384", CKM_SHA3_384, Some(CKM_HASH_ML_DSA_SHA3_384)),
    ("SHA3-512", CKM_SHA3_512, Some(CKM_HASH_ML_DSA_SHA3_512)),
    // No mechanism of the standard digests by these.
    ("SHAKE-128", CKM_VENDOR_DEFINED, Some(CKM_HASH_ML_DSA_SHAKE128)),
    ("SHAKE-256", CKM_VENDOR_DEFINED, Some(CKM_HASH_ML_DSA_SHAKE256)),
];

/// What is signed by these is there at once.
const ONE_PART: [CK_MECHANISM_TYPE; 2] = [CKM_HASH_ML_DSA, CKM_ML_DSA_EXTERNAL_MU];

/// The ways to what a vector says: a mechanism, its parameters, and the data.
fn ways(group: &Json, vector: &Json) -> Vec<(CK_MECHANISM_TYPE, Params, Vec<u8>)> {
    let hedge = CKH_DETERMINISTIC_REQUIRED;
    let bytes = || Bytes::from_vec(hex(&vector["ctx"]));
    let data = hex(&vector["msg"]);
    let name = group["preHash"].as_str().unwrap();
    if name == "pure" {
        return vec![(CKM_ML_DSA, Params::SignContext { hedge, context: bytes() }, data)];
    }
    if name == "mu" {
        return vec![(
            CKM_ML_DSA_EXTERNAL_MU,
            Params::SignContext { hedge, context: Bytes::new() },
            data,
        )];
    }
    let (_, digests, whole) = HASHES.iter().find(|row| row.0 == name).unwrap();
    let mut ways = Vec::new();
    if *digests != CKM_VENDOR_DEFINED {
        let digest = algorithm(*digests).digest.unwrap();
        let mut out = vec![0; digest.length()];
        digest.digest(&data, &mut out).unwrap();
        let params = Params::HashSignContext { hedge, context: bytes(), hash: *digests };
        ways.push((CKM_HASH_ML_DSA, params, out));
    }
    let params = |_| Params::SignContext { hedge, context: bytes() };
    ways.extend(whole.map(|mechanism| (mechanism, params(mechanism), data)));
    assert!(!ways.is_empty());
    ways
}

/// Signs in one call and, where the mechanism takes parts, in parts: deterministic signatures are the same.
fn signs_by(mechanism: CK_MECHANISM_TYPE, key: &Arc<Key>, params: &Params, data: &[u8]) -> Vec<u8> {
    let sign = algorithm(mechanism).sign.unwrap();
    sign.check(Direction::Forward, key, params).unwrap();
    let mut out = vec![0; sign.length(key, params)];
    assert_eq!(sign.sign(key, params, data, &mut out), Ok(out.len()));
    if !ONE_PART.contains(&mechanism) {
        let mut stream = sign.start(Direction::Forward, key, params).unwrap();
        data.chunks(7).for_each(|part| stream.update(part).unwrap());
        let mut again = vec![0; out.len()];
        assert_eq!(stream.sign(&mut again), Ok(again.len()));
        assert_eq!(out, again);
    }
    out
}

fn named(group: &Json) -> u64 {
    match group["parameterSet"].as_str().unwrap() {
        "ML-DSA-44" => CKP_ML_DSA_44,
        "ML-DSA-65" => CKP_ML_DSA_65,
        _ => CKP_ML_DSA_87,
    }
}

#[test]
fn signatures_are_judged_and_made_as_nist_does() {
    let count = each("../nist/ml_dsa", |group, vector, verdict| {
        let set = named(group);
        for (mechanism, params, data) in ways(group, vector) {
            let at = format!("{} {mechanism:#x}", vector["tcId"]);
            let signature = hex(&vector["sig"]);
            if let Some(private) = group.get("privateKey") {
                let key = brought(CKO_PRIVATE_KEY, set, &[], &[(CKA_VALUE, &hex(private))]);
                assert!(signs_by(mechanism, &key.unwrap(), &params, &data) == signature, "{at}");
                continue;
            }
            let public = [(CKA_VALUE, &*hex(&group["publicKey"]))];
            let key = brought(CKO_PUBLIC_KEY, set, &public, &[]).unwrap();
            let verified = match mechanism {
                mechanism if ONE_PART.contains(&mechanism) => {
                    let verify = algorithm(mechanism).verify.unwrap();
                    verify.verify(&key, &params, &data, &signature)
                }
                _ => verifies_by(mechanism, &key, &params, &data, &signature),
            };
            assert_eq!(verified.is_ok(), verdict == Verdict::Valid, "{at}: {verified:?}");
        }
    });
    assert_eq!(count, 51);
}

/// What each mechanism makes of its data, as NIST's vectors have it.
#[test]
fn each_mu_is_signed_and_verified_as_nist_does() {
    let mut count = 0;
    each("../nist/ml_dsa", |group, vector, verdict| {
        if group["preHash"] != "mu" {
            return;
        }
        let set = match named(group) {
            CKP_ML_DSA_44 => Set::Ml44,
            CKP_ML_DSA_65 => Set::Ml65,
            _ => Set::Ml87,
        };
        let mu = hex(&vector["msg"]).try_into().unwrap();
        let signature = hex(&vector["sig"]);
        if let Some(private) = group.get("privateKey") {
            let key = MlDsaKey::private(set, &hex(private)).unwrap();
            let mut out = vec![0; set.signature_length()];
            key.sign_deterministically(&mu, &mut out).unwrap();
            assert!(out == signature, "{}", vector["tcId"]);
        } else {
            let key = MlDsaKey::public(set, &hex(&group["publicKey"])).unwrap();
            let verified = key.verify(&mu, &signature).is_ok();
            assert_eq!(verified, verdict == Verdict::Valid, "{}", vector["tcId"]);
        }
        count += 1;
    });
    assert_eq!(count, 9);
}

#[test]
fn a_digest_that_is_none_of_its_function_is_refused() {
    let [public, private] = generated(CKP_ML_DSA_44);
    let row = algorithm(CKM_HASH_ML_DSA);
    let (sign, verify) = (row.sign.unwrap(), row.verify.unwrap());
    let params = |hash| Params::HashSignContext {
        hedge: CKH_HEDGE_PREFERRED,
        context: Bytes::from_elem(7, 0),
        hash,
    };
    for hash in [CKM_SHA_1, CKM_MD5, CKM_SHA256_HMAC, 0] {
        let checked = sign.check(Direction::Forward, &private, &params(hash));
        assert_eq!(checked, Err(Error::MECHANISM_PARAM_INVALID));
    }
    for params in [Params::None, Params::Iv(Bytes::from_elem(7, 32))] {
        let checked = verify.check(Direction::Backward, &public, &params);
        assert_eq!(checked, Err(Error::MECHANISM_PARAM_INVALID));
    }
    let mut out = vec![0; 2420];
    let params = params(CKM_SHA256);
    assert_eq!(sign.check(Direction::Forward, &private, &params), Ok(()));
    for length in [0, 31, 33, 64] {
        let data = vec![0; length];
        let signed = sign.sign(&private, &params, &data, &mut out);
        assert_eq!(signed, Err(Error::DATA_LEN_RANGE));
        let verified = verify.verify(&public, &params, &data, &out);
        assert_eq!(verified, Err(Error::DATA_LEN_RANGE));
    }
    let begun = sign.start(Direction::Forward, &private, &params).map(|_| ());
    assert_eq!(begun, Err(Error::FUNCTION_NOT_SUPPORTED));
}

#[test]
fn a_mu_of_another_length_or_with_a_context_is_refused() {
    let [public, private] = generated(CKP_ML_DSA_44);
    let row = algorithm(CKM_ML_DSA_EXTERNAL_MU);
    let (sign, verify) = (row.sign.unwrap(), row.verify.unwrap());
    let params = |length| Params::SignContext {
        hedge: CKH_HEDGE_PREFERRED,
        context: Bytes::from_elem(7, length),
    };
    for length in [1, 255, 256] {
        let checked = [
            sign.check(Direction::Forward, &private, &params(length)),
            verify.check(Direction::Backward, &public, &params(length)),
        ];
        assert_eq!(checked, [Err(Error::MECHANISM_PARAM_INVALID); 2], "{length}");
    }
    let mut out = vec![0; 2420];
    for params in [Params::None, params(0)] {
        assert_eq!(sign.check(Direction::Forward, &private, &params), Ok(()));
        for length in [0, 32, 63, 65, 128] {
            let mu = vec![0; length];
            assert_eq!(sign.sign(&private, &params, &mu, &mut out), Err(Error::DATA_LEN_RANGE));
            assert_eq!(verify.verify(&public, &params, &mu, &out), Err(Error::DATA_LEN_RANGE));
        }
        assert_eq!(sign.sign(&private, &params, &[9; 64], &mut out), Ok(2420));
        assert_eq!(verify.verify(&public, &params, &[9; 64], &out), Ok(()));
        assert!(verify.verify(&public, &params, &[8; 64], &out).is_err());
    }
    let begun = sign.start(Direction::Forward, &private, &Params::None).map(|_| ());
    assert_eq!(begun, Err(Error::FUNCTION_NOT_SUPPORTED));
}

#[test]
fn a_signature_is_deterministic_where_that_is_asked_for() {
    let [public, private] = generated(CKP_ML_DSA_44);
    let row = algorithm(CKM_ML_DSA);
    let params =
        |hedge, length| Params::SignContext { hedge, context: Bytes::from_elem(7, length) };
    let sign = |params: &Params| row.sign.unwrap().check(Direction::Forward, &private, params);
    let verify = |params: &Params| row.verify.unwrap().check(Direction::Backward, &public, params);
    let deterministic = params(CKH_DETERMINISTIC_REQUIRED, 3);
    let signature = signs_by(CKM_ML_DSA, &private, &deterministic, b"message");
    assert_eq!(signature, signs_by(CKM_ML_DSA, &private, &deterministic, b"message"));
    assert_eq!(verifies(&public, &params(CKH_HEDGE_REQUIRED, 3), b"message", &signature), Ok(()));
    // On verification it is ignored (§6.67.5).
    assert_eq!(sign(&params(3, 0)), Err(Error::MECHANISM_PARAM_INVALID));
    assert_eq!(verify(&params(3, 0)), Ok(()));
    for hedge in [CKH_HEDGE_PREFERRED, CKH_HEDGE_REQUIRED, CKH_DETERMINISTIC_REQUIRED] {
        assert_eq!((sign(&params(hedge, 255)), verify(&params(hedge, 255))), (Ok(()), Ok(())));
        assert_eq!(sign(&params(hedge, 256)), Err(Error::MECHANISM_PARAM_INVALID));
        assert_eq!(verify(&params(hedge, 256)), Err(Error::MECHANISM_PARAM_INVALID));
    }
    assert_eq!(
        row.sign.unwrap().check(Direction::Forward, &public, &Params::None),
        Err(Error::KEY_TYPE_INCONSISTENT)
    );
}

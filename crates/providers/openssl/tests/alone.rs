// SPDX-License-Identifier: Apache-2.0
//! Curves that no other provider has: all those that have names, and Curve448.
#![cfg(feature = "library")]
#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

#[path = "../../awslc/tests/common/mod.rs"]
mod common;
#[path = "../../awslc/tests/common/run.rs"]
mod run;
#[path = "../../awslc/tests/common/vectors.rs"]
mod vectors;

use common::{Pair, key, pair};
use metaslot_ck::*;
use metaslot_memory::Secret;
use metaslot_openssl::OPENSSL as PROVIDER;
use metaslot_spi::curves::Curve;
use metaslot_spi::der::Node;
use metaslot_spi::key_info::public_bits;
use metaslot_spi::provider::{Direction, Provider};
use metaslot_spi::{Bytes, Key, NewObject, Params, Value};
use serde_json::Value as Json;
use std::sync::Arc;
use vectors::{Verdict, each, flag, hex};

const ED448: &[u8] = &[6, 3, 0x2b, 0x65, 0x71];
const X448: &[u8] = &[6, 3, 0x2b, 0x65, 0x6f];

/// `CKA_EC_PARAMS` of a curve.
fn params(name: &str) -> Vec<u8> {
    // Wycheproof calls P-192 as SEC 2 does.
    let is = |curve: &&Curve| curve.name.to_str() == Ok(name) || curve.others.contains(&name);
    Node::Oid(Curve::all().find(is).unwrap().oid).to_vec()
}

/// A key that the application brings: a public one with a point, a private one with a value.
fn brought(class: u64, key_type: u64, curve: &[u8], bytes: &[u8]) -> Result<Arc<Key>> {
    let mut object = NewObject::default();
    object.attributes.set(CKA_CLASS, Value::Ulong(class));
    object.attributes.set(CKA_KEY_TYPE, Value::Ulong(key_type));
    object.attributes.set(CKA_EC_PARAMS, Value::Bytes(curve.to_vec()));
    match class {
        CKO_PUBLIC_KEY => object.attributes.set(CKA_EC_POINT, Value::Bytes(bytes.to_vec())),
        _ => object.secrets.set(CKA_VALUE, Secret::copy_of(bytes)),
    }
    PROVIDER.complete(&mut object)?;
    Ok(key(class, key_type, object))
}

fn agreed(key: &Key, public: &[u8]) -> Result<Vec<u8>> {
    agreed_by(CKM_ECDH1_COFACTOR_DERIVE, key, public)
}

fn agreed_by(mechanism: CK_MECHANISM_TYPE, key: &Key, public: &[u8]) -> Result<Vec<u8>> {
    let public = Bytes::from_slice(public);
    let params = Params::Ecdh1 { kdf: CKD_NULL, shared: Bytes::new(), public };
    let derive = common::algorithm(mechanism).derive.unwrap();
    let length = derive.natural_length(key, &params).ok_or(Error::MECHANISM_PARAM_INVALID)?;
    run::derived(mechanism, key, &params, length)
}

fn judged(name: &str, vector: &Json, verdict: Verdict, result: Result<()>) {
    match verdict {
        Verdict::Valid => assert_eq!(result, Ok(()), "{name} {vector}"),
        Verdict::Invalid => assert!(result.is_err(), "{name} {vector}"),
        Verdict::Acceptable => {}
    }
}

const FILES: [(&str, CK_MECHANISM_TYPE); 23] = [
    ("ecdsa_brainpoolP224r1_sha224_p1363_test", CKM_ECDSA_SHA224),
    ("ecdsa_brainpoolP256r1_sha256_p1363_test", CKM_ECDSA_SHA256),
    ("ecdsa_brainpoolP320r1_sha384_p1363_test", CKM_ECDSA_SHA384),
    ("ecdsa_brainpoolP384r1_sha384_p1363_test", CKM_ECDSA_SHA384),
    ("ecdsa_brainpoolP512r1_sha512_p1363_test", CKM_ECDSA_SHA512),
    ("ecdsa_secp160k1_sha256_p1363_test", CKM_ECDSA_SHA256),
    ("ecdsa_secp160r1_sha256_p1363_test", CKM_ECDSA_SHA256),
    ("ecdsa_secp160r2_sha256_p1363_test", CKM_ECDSA_SHA256),
    ("ecdsa_secp192k1_sha256_p1363_test", CKM_ECDSA_SHA256),
    ("ecdsa_secp192r1_sha256_p1363_test", CKM_ECDSA_SHA256),
    ("ecdh_brainpoolP224r1_test", CKM_ECDH1_DERIVE),
    ("ecdh_brainpoolP256r1_test", CKM_ECDH1_DERIVE),
    ("ecdh_brainpoolP320r1_test", CKM_ECDH1_DERIVE),
    ("ecdh_brainpoolP384r1_test", CKM_ECDH1_DERIVE),
    ("ecdh_brainpoolP512r1_test", CKM_ECDH1_DERIVE),
    ("ecdh_sect283k1_test", CKM_ECDH1_DERIVE),
    ("ecdh_sect283r1_test", CKM_ECDH1_DERIVE),
    ("ecdh_sect409k1_test", CKM_ECDH1_DERIVE),
    ("ecdh_sect409r1_test", CKM_ECDH1_DERIVE),
    ("ecdh_sect571k1_test", CKM_ECDH1_DERIVE),
    ("ecdh_sect571r1_test", CKM_ECDH1_DERIVE),
    ("ed448_test", CKM_EDDSA),
    ("x448_test", CKM_ECDH1_DERIVE),
];

#[test]
fn every_file_of_vectors_is_judged() {
    let place = concat!(env!("CARGO_MANIFEST_DIR"), "/../../../testdata/wycheproof/openssl");
    for entry in std::fs::read_dir(place).unwrap() {
        let name = entry.unwrap().file_name().into_string().unwrap();
        assert!(FILES.iter().any(|(file, _)| name == format!("{file}.json")), "{name}");
    }
}

#[test]
fn signatures_on_curves_are_judged_as_wycheproof_does() {
    for (name, mechanism) in FILES.iter().filter(|file| file.0.starts_with("ecdsa_")) {
        each(&format!("openssl/{name}"), |group, vector, verdict| {
            let curve = group["publicKey"]["curve"].as_str().unwrap();
            let point = hex(&group["publicKey"]["uncompressed"]);
            let key = brought(CKO_PUBLIC_KEY, CKK_EC, &params(curve), &point).unwrap();
            let length = common::algorithm(*mechanism).sign.unwrap().length(&key, &Params::None);
            let (message, signature) = (hex(&vector["msg"]), hex(&vector["sig"]));
            // PKCS#11 takes both numbers without the zero bytes in front (§6.3.1); these vectors do not.
            if signature.len() < length && signature.len().is_multiple_of(2) {
                return;
            }
            let result = run::verify(*mechanism, &key, &Params::None, &message, &signature);
            judged(name, vector, verdict, result);
        });
    }
}

/// Peers come as `SubjectPublicKeyInfo`; what does not name the curve there tests a parser that is not here.
#[test]
fn secrets_on_curves_are_judged_as_wycheproof_does() {
    for (name, mechanism) in FILES.iter().filter(|file| file.0.starts_with("ecdh_")) {
        let mut compared = 0;
        each(&format!("openssl/{name}"), |group, vector, verdict| {
            let curve = params(group["curve"].as_str().unwrap());
            let key = brought(CKO_PRIVATE_KEY, CKK_EC, &curve, &hex(&vector["private"])).unwrap();
            let info = hex(&vector["public"]);
            let named = info.windows(curve.len()).any(|bytes| bytes == curve);
            let Some(point) = public_bits(&info).filter(|_| named) else { return };
            let result = agreed_by(*mechanism, &key, point);
            if verdict != Verdict::Invalid && result.is_ok() {
                assert_eq!(result, Ok(hex(&vector["shared"])), "{vector}");
                compared += 1;
            }
            judged(name, vector, verdict, result.map(drop));
        });
        assert!(compared > 5, "{name} {compared}");
    }
}

/// Vectors that Python's integers made, of every curve.
#[test]
fn every_curve_agrees_and_signs_as_integers_do() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../../testdata/openssl/curves.json");
    let file: Json = serde_json::from_str(&std::fs::read_to_string(path).unwrap()).unwrap();
    let vectors = file["vectors"].as_array().unwrap();
    for (vector, curve) in vectors.iter().map(|vector| {
        let curve = Curve::named(&hex(&vector["params"])).unwrap();
        (vector, curve)
    }) {
        assert_eq!(vector["bits"], curve.bits);
        assert_eq!(vector["cofactor"], curve.cofactor);
        let params = hex(&vector["params"]);
        let key = brought(CKO_PRIVATE_KEY, CKK_EC, &params, &hex(&vector["private"])).unwrap();
        let point = hex(&vector["point"]);
        assert!(key.bytes(CKA_EC_POINT).unwrap().ends_with(&point), "{vector}");
        for (mechanism, name) in
            [(CKM_ECDH1_DERIVE, "secret"), (CKM_ECDH1_COFACTOR_DERIVE, "secretWithCofactor")]
        {
            let secret = agreed_by(mechanism, &key, &hex(&vector["peer"]));
            assert_eq!(secret, Ok(hex(&vector[name])), "{vector}");
        }
        let public = brought(CKO_PUBLIC_KEY, CKK_EC, &params, &point).unwrap();
        let (message, signature) = (hex(&file["message"]), hex(&vector["signature"]));
        let verify = |message: &[u8]| {
            run::verify(CKM_ECDSA_SHA256, &public, &Params::None, message, &signature)
        };
        assert_eq!(verify(&message), Ok(()), "{vector}");
        assert_eq!(verify(&message[1..]), Err(Error::SIGNATURE_INVALID), "{vector}");
    }
    assert_eq!(vectors.len(), Curve::all().count());
}

/// A point that is the sum of one of the base point's and one of order 2, where a curve has such ones.
#[test]
fn points_that_the_base_point_does_not_make_are_refused() {
    let (mut x, mut refused) = (0_u8, 0);
    let curve = params("sect193r1");
    let key = brought(CKO_PRIVATE_KEY, CKK_EC, &curve, &[5]).unwrap();
    while x < 200 {
        x += 1;
        let mut point = vec![0; 26];
        (point[0], point[25]) = (2, x);
        match agreed(&key, &point) {
            Ok(_) => {}
            Err(error) => {
                assert_eq!(error, Error::MECHANISM_PARAM_INVALID);
                refused += 1;
            }
        }
    }
    // Half of the numbers are no coordinate, and half of the points are in the other half.
    assert!((120..180).contains(&refused), "{refused}");
}

#[test]
fn ed448_signatures_are_judged_as_wycheproof_does() {
    let name = "openssl/ed448_test";
    each(name, |group, vector, verdict| {
        let point = hex(&group["publicKey"]["pk"]);
        let key = brought(CKO_PUBLIC_KEY, CKK_EC_EDWARDS, ED448, &point).unwrap();
        let (message, signature) = (hex(&vector["msg"]), hex(&vector["sig"]));
        for params in [Params::None, Params::EdDsa { prehash: false, context: Bytes::new() }] {
            let result = run::verify(CKM_EDDSA, &key, &params, &message, &signature);
            judged(name, vector, verdict, result);
        }
    });
}

#[test]
fn x448_agrees_with_wycheproof_and_refuses_points_of_small_order() {
    let mut refused = 0;
    each("openssl/x448_test", |_, vector, verdict| {
        let private = hex(&vector["private"]);
        let key = brought(CKO_PRIVATE_KEY, CKK_EC_MONTGOMERY, X448, &private).unwrap();
        let result = agreed(&key, &hex(&vector["public"]));
        if verdict == Verdict::Invalid || flag(vector, "ZeroSharedSecret") {
            assert_eq!(result, Err(Error::MECHANISM_PARAM_INVALID), "{vector}");
            refused += 1;
        } else {
            assert_eq!(result, Ok(hex(&vector["shared"])), "{vector}");
        }
    });
    assert!(refused > 20, "{refused}");
}

/// RFC 8032 §7.4 and §7.5.
#[test]
fn ed448_signatures_are_those_of_the_rfc() {
    let bytes = |text: &str| hex(&Json::from(text));
    let params =
        |prehash, context: &[u8]| Params::EdDsa { prehash, context: Bytes::from_slice(context) };
    let short = "c4eab05d357007c632f3dbb48489924d552b08fe0c353a0d4a1f00acda2c463a\
                 fbea67c5e8d2877c5e3bc397a659949ef8021e954e0a12274e";
    let digest = "833fe62409237b9d62ec77587520911e9a759cec1d19755b7da901b96dca3d42\
                  ef7822e0d5104127dc05d6dbefde69e3ab2cec7c867c6e2c49";
    for (seed, message, params, expected) in [
        (
            short,
            "03",
            params(false, b""),
            "26b8f91727bd62897af15e41eb43c377efb9c610d48f2335cb0bd0087810f435\
             2541b143c4b981b7e18f62de8ccdf633fc1bf037ab7cd779805e0dbcc0aae1cb\
             cee1afb2e027df36bc04dcecbf154336c19f0af7e0a6472905e799f1953d2a0f\
             f3348ab21aa4adafd1d234441cf807c03a00",
        ),
        (
            short,
            "03",
            params(false, b"foo"),
            "d4f8f6131770dd46f40867d6fd5d5055de43541f8c5e35abbcd001b32a89f7d2\
             151f7647f11d8ca2ae279fb842d607217fce6e042f6815ea000c85741de5c8da\
             1144a6a1aba7f96de42505d7a7298524fda538fccbbb754f578c1cad10d54d0d\
             5428407e85dcbc98a49155c13764e66c3c00",
        ),
        (
            digest,
            "616263",
            params(true, b""),
            "822f6901f7480f3d5f562c592994d9693602875614483256505600bbc281ae38\
             1f54d6bce2ea911574932f52a4e6cadd78769375ec3ffd1b801a0d9b3f4030cd\
             433964b6457ea39476511214f97469b57dd32dbc560a9a94d00bff07620464a3\
             ad203df7dc7ce360c3cd3696d9d9fab90f00",
        ),
        (
            digest,
            "616263",
            params(true, b"foo"),
            "c32299d46ec8ff02b54540982814dce9a05812f81962b649d528095916a2aa48\
             1065b1580423ef927ecf0af5888f90da0f6a9a85ad5dc3f280d91224ba9911a3\
             653d00e484e2ce232521481c8658df304bb7745a73514cdb9bf3e15784ab7128\
             4f8d0704a608c54a6b62d97beb511d132100",
        ),
    ] {
        let key = brought(CKO_PRIVATE_KEY, CKK_EC_EDWARDS, ED448, &bytes(seed)).unwrap();
        let made = run::mac(CKM_EDDSA, &key, &params, &bytes(message));
        assert_eq!(made, Ok(bytes(expected)), "{params:?}");
    }
    let key = brought(CKO_PRIVATE_KEY, CKK_EC_EDWARDS, ED448, &bytes(short)).unwrap();
    let sign = common::algorithm(CKM_EDDSA).sign.unwrap();
    let refused = sign.check(Direction::Forward, &key, &params(false, &[1; 256]));
    assert_eq!(refused, Err(Error::MECHANISM_PARAM_INVALID));
}

/// RFC 7027 §A.1
#[test]
fn secrets_on_a_curve_of_brainpool_are_those_of_the_rfc() {
    let bytes = |text: &str| hex(&Json::from(text));
    let (curve, secret) = (
        params("brainpoolP256r1"),
        bytes("89afc39d41d3b327814b80940b042590f96556ec91e6ae7939bce31f3a18bf2b"),
    );
    let a = bytes("81db1ee100150ff2ea338d708271be38300cb54241d79950f77b063039804f1d");
    let b = bytes("55e40bc41e37e3e2ad25c3c6654511ffa8474a91a0032087593852d3e7d76bd3");
    let [a, b] = [a, b].map(|scalar| brought(CKO_PRIVATE_KEY, CKK_EC, &curve, &scalar).unwrap());
    assert_eq!(agreed(&a, b.bytes(CKA_EC_POINT).unwrap()), Ok(secret.clone()));
    assert_eq!(agreed(&b, a.bytes(CKA_EC_POINT).unwrap()), Ok(secret));
}

/// A pair of each kind.
fn pairs() -> Vec<(u64, Pair)> {
    let made = |mechanism, key_type, curve: &[u8]| {
        (key_type, pair(mechanism, key_type, &[(CKA_EC_PARAMS, Value::Bytes(curve.to_vec()))]))
    };
    let named = |name: &[u8]| [&[0x13, u8::try_from(name.len()).unwrap()], name].concat();
    let mut pairs: Vec<_> = Curve::all()
        .flat_map(|curve| {
            let names = curve.others.iter().map(|name| name.as_bytes());
            let names = names.chain([curve.name.to_bytes()]).map(named);
            names.chain([Node::Oid(curve.oid).to_vec()])
        })
        .map(|params| made(CKM_EC_KEY_PAIR_GEN, CKK_EC, &params))
        .collect();
    for curve in [ED448.to_vec(), named(b"edwards448")] {
        pairs.push(made(CKM_EC_EDWARDS_KEY_PAIR_GEN, CKK_EC_EDWARDS, &curve));
    }
    for curve in [X448.to_vec(), named(b"curve448")] {
        pairs.push(made(CKM_EC_MONTGOMERY_KEY_PAIR_GEN, CKK_EC_MONTGOMERY, &curve));
    }
    pairs
}

#[test]
fn pairs_work_and_come_back() {
    for (key_type, Pair { public, private }) in pairs() {
        let der = PROVIDER.encode_private_key(&private).unwrap();
        let object = PROVIDER.decode_private_key(der.expose()).unwrap();
        let back = key(CKO_PRIVATE_KEY, key_type, object);
        assert_eq!(back.attributes(), private.attributes());
        assert!(back.secrets().iter().eq(private.secrets().iter()));
        let (curve, point) =
            (public.bytes(CKA_EC_PARAMS).unwrap(), public.bytes(CKA_EC_POINT).unwrap());
        for point in [point, &point[if point[1] & 0x80 == 0 { 2 } else { 3 }..]] {
            let back = brought(CKO_PUBLIC_KEY, key_type, curve, point).unwrap();
            assert_eq!(back.attributes(), public.attributes());
        }
        if key_type != CKK_EC_EDWARDS {
            let secret = agreed(&private, point).unwrap();
            assert_eq!(agreed(&back, point), Ok(secret));
            let mut bad = point.to_vec();
            *bad.last_mut().unwrap() ^= 1;
            for bad in [&[][..], &[0], &point[1..], if key_type == CKK_EC { &bad } else { &[1] }] {
                assert_eq!(agreed(&private, bad), Err(Error::MECHANISM_PARAM_INVALID));
            }
        }
        if key_type != CKK_EC_MONTGOMERY {
            let mechanism = if key_type == CKK_EC { CKM_ECDSA_SHA3_384 } else { CKM_EDDSA };
            let sign = common::algorithm(mechanism).sign.unwrap();
            let mut signature = vec![0; sign.length(&private, &Params::None)];
            let done = sign.sign(&back, &Params::None, b"message", &mut signature);
            assert_eq!(done, Ok(signature.len()), "{curve:x?}");
            let good = |of: &[u8]| run::verify(mechanism, &public, &Params::None, b"message", of);
            assert_eq!(good(&signature), Ok(()));
            assert_eq!(good(&signature[1..]), Err(Error::SIGNATURE_LEN_RANGE));
            signature[7] ^= 1;
            assert_eq!(good(&signature), Err(Error::SIGNATURE_INVALID));
        }
    }
}

#[test]
fn curves_and_keys_that_are_none_are_refused() {
    let lengths = [0, 31, 32, 55, 56, 57, 58, 112];
    for (key_type, curve, right) in [(CKK_EC_EDWARDS, ED448, 57), (CKK_EC_MONTGOMERY, X448, 56)] {
        for length in lengths {
            for class in [CKO_PRIVATE_KEY, CKO_PUBLIC_KEY] {
                let done = brought(class, key_type, curve, &vec![1; length]).map(drop);
                let wanted =
                    if length == right { Ok(()) } else { Err(Error::ATTRIBUTE_VALUE_INVALID) };
                assert_eq!(done, wanted, "{length}");
            }
        }
    }
    // The order of brainpoolP256r1.
    let order = "a9fb57dba1eea9bc3e660a909d838d718c397aa3b561a6f7901e0e82974856a7";
    let order = hex(&Json::from(order));
    for scalar in [&[][..], &[0; 32], &[0xff; 32], &order] {
        let done = brought(CKO_PRIVATE_KEY, CKK_EC, &params("brainpoolP256r1"), scalar).map(drop);
        assert_eq!(done, Err(Error::ATTRIBUTE_VALUE_INVALID), "{scalar:x?}");
    }
    let unknown =
        brought(CKO_PRIVATE_KEY, CKK_EC, &[6, 5, 0x2b, 0x81, 4, 0, 0x7f], &[1; 32]).map(drop);
    assert_eq!(unknown, Err(Error::CURVE_NOT_SUPPORTED));
    let other = brought(CKO_PRIVATE_KEY, CKK_EC_EDWARDS, X448, &[1; 56]).map(drop);
    assert_eq!(other, Err(Error::CURVE_NOT_SUPPORTED));
}

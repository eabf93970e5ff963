// SPDX-License-Identifier: Apache-2.0
//! Encryption, wrapping, agreement and the encodings of private keys through the provider's traits.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

mod common;

use common::{Pair, algorithm, imported, key, pair};
#[allow(unused_imports, reason = "where another provider includes this file, it is that one")]
use metaslot_awslc::AWSLC as PROVIDER;
use metaslot_awslc::AWSLC;
use metaslot_ck::*;
use metaslot_spi::provider::{Direction, Keys, Provider};
use metaslot_spi::{Bytes, Key, Params, Value};
use std::sync::Arc;

const CURVES: [(&str, &[u8], usize); 5] = [
    ("secp224r1", &[6, 5, 0x2b, 0x81, 4, 0, 0x21], 28),
    ("secp256r1", &[6, 8, 0x2a, 0x86, 0x48, 0xce, 0x3d, 3, 1, 7], 32),
    ("secp384r1", &[6, 5, 0x2b, 0x81, 4, 0, 0x22], 48),
    ("secp521r1", &[6, 5, 0x2b, 0x81, 4, 0, 0x23], 66),
    ("secp256k1", &[6, 5, 0x2b, 0x81, 4, 0, 0x0a], 32),
];
const X25519: &[u8] = &[6, 3, 0x2b, 0x65, 0x6e];
const ED25519: &[u8] = &[6, 3, 0x2b, 0x65, 0x70];

fn rsa() -> Pair {
    pair(CKM_RSA_PKCS_KEY_PAIR_GEN, CKK_RSA, &[(CKA_MODULUS_BITS, Value::Ulong(1024))])
}

fn on_curve(mechanism: CK_MECHANISM_TYPE, key_type: u64, params: &[u8]) -> Pair {
    pair(mechanism, key_type, &[(CKA_EC_PARAMS, Value::Bytes(params.to_vec()))])
}

fn every_kind() -> Vec<(u64, Pair)> {
    let mut pairs: Vec<_> = CURVES
        .iter()
        .map(|(_, params, _)| (CKK_EC, on_curve(CKM_EC_KEY_PAIR_GEN, CKK_EC, params)))
        .collect();
    pairs.push((CKK_RSA, rsa()));
    let edwards = on_curve(CKM_EC_EDWARDS_KEY_PAIR_GEN, CKK_EC_EDWARDS, ED25519);
    pairs.push((CKK_EC_EDWARDS, edwards));
    let montgomery = on_curve(CKM_EC_MONTGOMERY_KEY_PAIR_GEN, CKK_EC_MONTGOMERY, X25519);
    pairs.push((CKK_EC_MONTGOMERY, montgomery));
    pairs
}

#[test]
fn every_private_key_comes_back_from_its_pkcs8_form() {
    for (key_type, keys) in every_kind() {
        let der = AWSLC.encode_private_key(&keys.private).unwrap();
        let object = AWSLC.decode_private_key(der.expose()).unwrap();
        assert_eq!(object.attributes.ulong(CKA_KEY_TYPE), Some(key_type));
        let back = key(CKO_PRIVATE_KEY, key_type, object);
        assert_eq!(back.attributes(), keys.private.attributes());
        assert!(back.secrets().iter().eq(keys.private.secrets().iter()));
        for damaged in [&der.expose()[..der.len() - 1], &[der.expose(), &[0]].concat(), &[]] {
            let error = AWSLC.decode_private_key(damaged).unwrap_err();
            assert_eq!(error, Error::WRAPPED_KEY_INVALID);
        }
    }
}

#[test]
fn every_public_key_comes_back_when_it_is_imported() {
    for (key_type, keys) in every_kind() {
        let given: Vec<_> = [CKA_MODULUS, CKA_PUBLIC_EXPONENT, CKA_EC_PARAMS, CKA_EC_POINT]
            .into_iter()
            .filter_map(|number| Some((number, keys.public.attributes().bytes(number)?.to_vec())))
            .collect();
        let back = imported(CKO_PUBLIC_KEY, key_type, &given, &[]).unwrap();
        assert_eq!(back.attributes(), keys.public.attributes());
        assert!(keys.public.attributes().bytes(CKA_PUBLIC_KEY_INFO).is_some());
    }
}

/// Encrypts, decrypts, wraps and unwraps.
fn ciphers(keys: &Pair, mechanism: CK_MECHANISM_TYPE, params: &Params, message: &[u8]) -> Vec<u8> {
    let row = algorithm(mechanism);
    let (encrypt, decrypt) = (row.encrypt.unwrap(), row.decrypt.unwrap());
    encrypt.check(Direction::Forward, &keys.public, params).unwrap();
    decrypt.check(Direction::Backward, &keys.private, params).unwrap();
    let length = encrypt.length(Direction::Forward, &keys.public, params, message.len()).unwrap();
    let mut sealed = vec![0; length];
    let run = encrypt.run(Direction::Forward, &keys.public, params, message, &mut sealed);
    assert_eq!(run, Ok(length));
    let room = decrypt.length(Direction::Backward, &keys.private, params, length).unwrap();
    let mut opened = vec![0; room];
    let length =
        decrypt.run(Direction::Backward, &keys.private, params, &sealed, &mut opened).unwrap();
    opened.truncate(length);
    let (wrap, unwrap) = (row.wrap.unwrap(), row.unwrap.unwrap());
    let mut wrapped = vec![0; wrap.length(&keys.public, params, message.len()).unwrap()];
    wrap.wrap(&keys.public, params, message, &mut wrapped).unwrap();
    assert_eq!(unwrap.unwrap(&keys.private, params, &wrapped).unwrap().expose(), opened);
    assert_eq!(
        unwrap.unwrap(&keys.private, params, &wrapped[1..]).unwrap_err(),
        Error::WRAPPED_KEY_LEN_RANGE
    );
    opened
}

#[test]
fn rsa_encrypts_and_wraps_in_every_format() {
    let keys = rsa();
    for length in [0, 1, 16, 117] {
        let message = vec![7; length];
        assert_eq!(ciphers(&keys, CKM_RSA_PKCS, &Params::None, &message), message);
    }
    let oaep = |label: &[u8]| Params::Oaep {
        hash: CKM_SHA3_256,
        mgf: CKG_MGF1_SHA512,
        label: Bytes::from_slice(label),
    };
    for length in [0, 16, 62] {
        let message = vec![7; length];
        assert_eq!(ciphers(&keys, CKM_RSA_PKCS_OAEP, &oaep(b""), &message), message);
        assert_eq!(ciphers(&keys, CKM_RSA_PKCS_OAEP, &oaep(b"label"), &message), message);
    }
    let opened = ciphers(&keys, CKM_RSA_X_509, &Params::None, &[9; 16]);
    assert_eq!(opened, [&[0; 112][..], &[9; 16]].concat());
    let encrypt = algorithm(CKM_RSA_PKCS_OAEP).encrypt.unwrap();
    let too_long = encrypt.length(Direction::Forward, &keys.public, &oaep(b""), 63);
    assert_eq!(too_long, Err(Error::DATA_LEN_RANGE));
    let big = Params::Oaep { hash: CKM_SHA512, mgf: CKG_MGF1_SHA1, label: Bytes::new() };
    let check = encrypt.check(Direction::Forward, &keys.public, &big);
    assert_eq!(check, Err(Error::KEY_SIZE_RANGE));
}

#[test]
fn recovered_data_is_what_was_signed() {
    let keys = rsa();
    for (mechanism, expected) in
        [(CKM_RSA_PKCS, b"recover".to_vec()), (CKM_RSA_X_509, [&[0; 121][..], b"recover"].concat())]
    {
        let row = algorithm(mechanism);
        let (sign, recover) = (row.sign_recover.unwrap(), row.verify_recover.unwrap());
        let mut signature = vec![0; sign.length(&keys.private, &Params::None)];
        sign.sign(&keys.private, &Params::None, b"recover", &mut signature).unwrap();
        recover.check(&keys.public, &Params::None).unwrap();
        let mut data = vec![0; recover.length(&keys.public, &Params::None)];
        let length = recover.recover(&keys.public, &Params::None, &signature, &mut data).unwrap();
        assert_eq!(data[..length], expected);
    }
}

#[derive(Debug)]
struct NoKeys;

impl Keys for NoKeys {
    fn key(&self, _: ObjectHandle) -> Result<Arc<Key>> {
        Err(Error::KEY_HANDLE_INVALID)
    }
}

fn agree(
    key: &Key,
    kdf: u64,
    shared: &[u8],
    public: &[u8],
    length: Option<usize>,
) -> Result<Vec<u8>> {
    let derive = algorithm(CKM_ECDH1_DERIVE).derive.unwrap();
    let params =
        Params::Ecdh1 { kdf, shared: Bytes::from_slice(shared), public: Bytes::from_slice(public) };
    derive.check(key, &params)?;
    let length = length.or_else(|| derive.natural_length(key, &params)).unwrap();
    let secrets = derive.derive(key, &params, &[length], &NoKeys)?;
    Ok(secrets[0].expose().to_vec())
}

#[test]
fn both_sides_agree_on_every_curve() {
    let pairs = every_kind();
    let exchanging = pairs.iter().filter(|(kind, _)| [CKK_EC, CKK_EC_MONTGOMERY].contains(kind));
    for (key_type, alice) in exchanging {
        let params = alice.public.bytes(CKA_EC_PARAMS).unwrap();
        let bob = if *key_type == CKK_EC {
            on_curve(CKM_EC_KEY_PAIR_GEN_W_EXTRA_BITS, CKK_EC, params)
        } else {
            on_curve(CKM_EC_MONTGOMERY_KEY_PAIR_GEN, CKK_EC_MONTGOMERY, params)
        };
        let a = alice.public.bytes(CKA_EC_POINT).unwrap();
        let b = bob.public.bytes(CKA_EC_POINT).unwrap();
        let raw = &b[b.len() - if b[2] == 4 { usize::from(b[1]) } else { b.len() - 2 }..];
        let secret = agree(&alice.private, CKD_NULL, b"", b, None).unwrap();
        assert_eq!(agree(&bob.private, CKD_NULL, b"", a, None).unwrap(), secret);
        if b.len() < 130 {
            assert_eq!(agree(&alice.private, CKD_NULL, b"", raw, None).unwrap(), secret);
        }
        let short = agree(&alice.private, CKD_NULL, b"", b, Some(16)).unwrap();
        assert_eq!(short, secret[secret.len() - 16..], "the leading end is cut");
        for bad in [&[][..], &[0], &[4; 65], &b[1..]] {
            let error = agree(&alice.private, CKD_NULL, b"", bad, None).unwrap_err();
            assert_eq!(error, Error::MECHANISM_PARAM_INVALID);
        }
    }
}

#[test]
fn derivation_functions_are_those_of_their_standards() {
    let alice = on_curve(CKM_EC_KEY_PAIR_GEN, CKK_EC, CURVES[1].1);
    let peer = alice.public.bytes(CKA_EC_POINT).unwrap();
    let secret = agree(&alice.private, CKD_NULL, b"", peer, None).unwrap();
    let hash = |mechanism, parts: &[&[u8]]| {
        let digest = algorithm(mechanism).digest.unwrap();
        let mut out = vec![0; digest.length()];
        digest.digest(&parts.concat(), &mut out).unwrap();
        out
    };
    let (one, two) = ([0, 0, 0, 1], [0, 0, 0, 2]);
    for (x963, sp800, digest) in [
        (CKD_SHA1_KDF, CKD_SHA1_KDF_SP800, CKM_SHA_1),
        (CKD_SHA256_KDF, CKD_SHA256_KDF_SP800, CKM_SHA256),
        (CKD_SHA3_512_KDF, CKD_SHA3_512_KDF_SP800, CKM_SHA3_512),
    ] {
        let length = hash(digest, &[]).len() + 5;
        let expected =
            [hash(digest, &[&secret, &one, b"shared"]), hash(digest, &[&secret, &two, b"shared"])]
                .concat();
        let derived = agree(&alice.private, x963, b"shared", peer, Some(length)).unwrap();
        assert_eq!(derived, expected[..length]);
        let expected = hash(digest, &[&one, &secret, b"shared"]);
        let derived = agree(&alice.private, sp800, b"shared", peer, Some(20)).unwrap();
        assert_eq!(derived, expected[..20]);
    }
    let refused = agree(&alice.private, CKD_NULL, b"shared", peer, None).unwrap_err();
    assert_eq!(refused, Error::MECHANISM_PARAM_INVALID);
}

#[test]
fn curves_have_names_and_unknown_ones_are_refused() {
    for (name, params, length) in CURVES {
        let printable = [&[0x13, u8::try_from(name.len()).unwrap()], name.as_bytes()].concat();
        let keys = on_curve(CKM_EC_KEY_PAIR_GEN, CKK_EC, &printable);
        assert_eq!(keys.public.bytes(CKA_EC_PARAMS).unwrap(), params);
        assert_eq!(keys.private.secret(CKA_VALUE).unwrap().len(), length);
    }
    let generate = algorithm(CKM_EC_KEY_PAIR_GEN).generate_pair.unwrap();
    let (unknown, malformed) = (Error::CURVE_NOT_SUPPORTED, Error::DOMAIN_PARAMS_INVALID);
    let wrong: [(&[u8], _); 5] = [
        (&[6, 1, 1], unknown),
        (&[0x30, 0], unknown),
        (X25519, unknown),
        (&[], malformed),
        (b"secp256r1", malformed),
    ];
    for (params, expected) in wrong {
        let template = [(CKA_EC_PARAMS, Value::Bytes(params.to_vec()))].into_iter().collect();
        let error = generate.generate_pair(&Params::None, &template).unwrap_err();
        assert_eq!(error, expected, "{params:02x?}");
    }
}

// SPDX-License-Identifier: Apache-2.0
//! Requests of the version that is our own, with parameters of each kind.

use super::{attribute, begun_by, data_and_room, login, message, open, room, wanted};
use crate::common::{Place, Raw, exchange, initialized};
use metaslot_ck::*;
use metaslot_client::protocol::{Call, GREETING, Kind, OFFER, OWN, Writer};
use metaslot_client::{KdfParam, Mechanism, Params};

/// Keys of the session: one of AES and a secret, pairs of ML-KEM and on X25519, and a public key of RSA.
pub(super) struct Keys {
    aes: u64,
    secret: u64,
    kem: [u64; 2],
    curve: [u64; 2],
    rsa: u64,
}

impl Keys {
    pub(super) fn made(raw: &mut Raw, session: u64) -> Self {
        let flags = [CKA_ENCRYPT, CKA_DECRYPT, CKA_WRAP, CKA_UNWRAP, CKA_DERIVE, CKA_EXTRACTABLE];
        let [aes, secret] = [CKM_AES_KEY_GEN, CKM_GENERIC_SECRET_KEY_GEN].map(|generate| {
            let made = raw.number(58, |request| {
                request.number(session);
                named(request, &generate.into());
                request.count(2 + flags.len());
                attribute(request, CKA_SENSITIVE, Kind::Byte, &[0]);
                attribute(request, CKA_VALUE_LEN, Kind::Number, &16_u64.to_ne_bytes());
                flags.iter().for_each(|flag| attribute(request, *flag, Kind::Byte, &[1]));
            });
            made.expect("a key is made")
        });
        let mut pair = |generate: CK_MECHANISM_TYPE, public: &dyn Fn(&mut Writer), usages| {
            let made = raw.call(59, |request| {
                request.number(session);
                named(request, &generate.into());
                let [of_public, of_private]: [&[_]; 2] = usages;
                request.count(1 + of_public.len());
                public(request);
                let each = |request: &mut Writer, usages: &[_]| {
                    usages.iter().for_each(|usage| attribute(request, *usage, Kind::Byte, &[1]));
                };
                each(request, of_public);
                request.count(of_private.len());
                each(request, of_private);
            });
            let made = made.expect("a pair is made");
            let made: [[u8; 8]; 2] = made.as_chunks().0.try_into().expect("two numbers");
            made.map(u64::from_be_bytes)
        };
        let set = CKP_ML_KEM_512.to_ne_bytes();
        let set = |request: &mut Writer| attribute(request, CKA_PARAMETER_SET, Kind::Number, &set);
        let kem = pair(CKM_ML_KEM_KEY_PAIR_GEN, &set, [&[CKA_ENCAPSULATE], &[CKA_DECAPSULATE]]);
        let x25519 = [6, 3, 0x2b, 0x65, 0x6e];
        let x25519 = |request: &mut Writer| {
            attribute(request, CKA_EC_PARAMS, Kind::Bytes, &x25519);
        };
        let usages = [&[CKA_WRAP][..], &[CKA_DERIVE, CKA_UNWRAP]];
        let curve = pair(CKM_EC_MONTGOMERY_KEY_PAIR_GEN, &x25519, usages);
        let rsa = rsa(raw, session);
        Self { aes, secret, kem, curve, rsa }
    }
}

/// A public key that wraps. A pair of RSA for each connection would take longer than all that is asked by it, and any odd number is a
/// modulus here.
fn rsa(raw: &mut Raw, session: u64) -> u64 {
    let modulus = [0xb5; 256];
    let made = raw.number(20, |request| {
        request.number(session);
        request.count(5);
        attribute(request, CKA_CLASS, Kind::Number, &CKO_PUBLIC_KEY.to_ne_bytes());
        attribute(request, CKA_KEY_TYPE, Kind::Number, &CKK_RSA.to_ne_bytes());
        attribute(request, CKA_MODULUS, Kind::Bytes, &modulus);
        attribute(request, CKA_PUBLIC_EXPONENT, Kind::Bytes, &[1, 0, 1]);
        attribute(request, CKA_WRAP, Kind::Byte, &[1]);
    });
    made.expect("it is created")
}

/// A mechanism as our version writes it.
fn named(request: &mut Writer, mechanism: &Mechanism<'_>) {
    request.mechanism(mechanism).expect("it has a place");
}

fn made(request: &mut Writer) {
    let inner = CKA_DERIVE_TEMPLATE;
    request.count(4);
    attribute(request, CKA_CLASS, Kind::Number, &CKO_SECRET_KEY.to_ne_bytes());
    attribute(request, CKA_KEY_TYPE, Kind::Number, &CKK_GENERIC_SECRET.to_ne_bytes());
    attribute(request, CKA_VALUE_LEN, Kind::Number, &32_u64.to_ne_bytes());
    request.available(inner, 24).expect("a number of the standard");
    request.count(1);
    attribute(request, CKA_EXTRACTABLE, Kind::Byte, &[1]);
}

/// A request of this function.
fn asked(session: u64, function: Function, parts: impl Fn(&mut Writer)) -> Vec<u8> {
    let call = Call::all().find(|call| call.function == function).expect("there is this call");
    message(call.number, |request| {
        request.number(session);
        parts(request);
    })
}

/// Requests that are right, in this session, with these keys, or have the parameter of another mechanism.
pub(super) fn requests(session: u64, keys: &Keys) -> Vec<Vec<u8>> {
    [begun(session, keys.aes), derived(session, keys), made_by(session, keys)].concat()
}

fn begun(session: u64, aes: u64) -> Vec<Vec<u8>> {
    let (hash, iv) = (CKM_SHA256, &[4; 12][..]);
    let (aad, context, hedge) = (&b"beside"[..], &b"context"[..], CKH_HEDGE_PREFERRED);
    // By its own mechanism it may take a minute, for which this test would wait.
    let pbkd2 = Params::Pbkd2 { prf: 4, salt: b"salt", iterations: 10, password: b"password" };
    let begun = [
        (CKM_AES_GCM, Params::Gcm { iv, aad, tag_bits: 128 }),
        (CKM_AES_CTR, Params::Ctr { bits: 64, block: [5; 16] }),
        (CKM_AES_CCM, Params::Ccm { data_length: 32, nonce: iv, aad, mac_length: 16 }),
        (CKM_AES_CBC, Params::Bytes(&[6; 16])),
        (CKM_CHACHA20_POLY1305, Params::ChaCha20Poly1305 { nonce: iv, aad }),
        (CKM_RSA_PKCS_OAEP, Params::Oaep { hash, mgf: CKG_MGF1_SHA256, label: b"label" }),
        (CKM_RSA_PKCS_PSS, Params::Pss { hash, mgf: CKG_MGF1_SHA256, salt_length: 32 }),
        (CKM_EDDSA, Params::EdDsa { prehash: true, context }),
        (CKM_ML_DSA, Params::SignContext { hedge, context }),
        (CKM_HASH_ML_DSA, Params::HashSignContext { hedge, context, hash }),
        (CKM_AES_CMAC_GENERAL, Params::Ulong(8)),
        (CKM_CHACHA20, Params::ChaCha20 { counter: 1, nonce: iv }),
        (CKM_XEDDSA, Params::XEdDsa { hash }),
        (CKM_TLS12_MAC, Params::TlsMac { prf: hash, length: 12, side: 1 }),
        (CKM_AES_GCM, pbkd2),
    ];
    let begins = begun.into_iter().flat_map(|(number, params)| {
        let mechanism = Mechanism::with(number, params);
        [Function::EncryptInit, Function::SignInit].map(|function| {
            asked(session, function, |request| {
                named(request, &mechanism);
                request.number(aes);
            })
        })
    });
    let then = [Function::Encrypt, Function::EncryptUpdate, Function::Sign];
    begins.chain(then.map(|function| asked(session, function, data_and_room))).collect()
}

fn derived(session: u64, keys: &Keys) -> Vec<Vec<u8>> {
    let steps = [
        KdfParam::Iteration { little_endian: false, bits: 32 },
        KdfParam::Bytes(b"label"),
        KdfParam::DkmLength { sum_of_segments: false, little_endian: false, bits: 32 },
    ];
    let back = [KdfParam::Previous, KdfParam::Counter { little_endian: true, bits: 8 }];
    let hkdf = Params::Hkdf {
        extract: true,
        expand: true,
        prf: CKM_SHA256,
        salt_type: CKF_HKDF_SALT_KEY,
        salt: b"salt",
        salt_key: ObjectHandle(keys.secret),
        info: b"info",
    };
    let ecdh = Params::Ecdh1 { kdf: CKD_NULL, shared: b"", public: &[9; 32] };
    let counter = Params::Sp800108 { prf: CKM_AES_CMAC, data: &steps };
    let feedback = Params::Sp800108Feedback { prf: CKM_AES_CMAC, data: &back, iv: &[] };
    let derived = [
        (CKM_ECDH1_DERIVE, ecdh, keys.curve[1]),
        (CKM_HKDF_DERIVE, hkdf, keys.secret),
        (CKM_SP800_108_COUNTER_KDF, counter, keys.aes),
        (CKM_SP800_108_FEEDBACK_KDF, feedback, keys.aes),
        (CKM_CONCATENATE_BASE_AND_KEY, Params::Ulong(keys.aes), keys.aes),
    ];
    let derived = derived.into_iter().chain(in_one_step(keys));
    let derive = |(number, params, base)| {
        asked(session, Function::DeriveKey, |request| {
            named(request, &Mechanism::with(number, params));
            request.number(base);
            made(request);
        })
    };
    derived.map(derive).collect()
}

/// By a string, by IKE and by TLS; one more has the parameter of a mechanism whose keys are not here.
fn in_one_step(keys: &Keys) -> [(CK_MECHANISM_TYPE, Params<'static>, u64); 14] {
    let (data, prf, hash) = (&[5; 32][..], CKM_SHA256_HMAC, CKM_SHA256);
    let (initiator, responder) = (&b"initiator"[..], &b"responder"[..]);
    let (client, server, secret) = (&[1; 32][..], &[2; 32][..], keys.secret);
    let key = ObjectHandle(secret);
    let label = &b"label"[..];
    [
        (CKM_X9_42_DH_DERIVE, Params::X942 { kdf: CKD_NULL, info: b"", public: data }, secret),
        (CKM_CONCATENATE_BASE_AND_DATA, Params::StringData { data }, secret),
        (CKM_XOR_BASE_AND_DATA, Params::StringData { data: &[5; 64] }, secret),
        (CKM_SHA256_KEY_DERIVATION, Params::None, secret),
        (CKM_AES_CBC_ENCRYPT_DATA, Params::CbcData { iv: &[6; 16], data }, keys.aes),
        (
            CKM_IKE_PRF_DERIVE,
            Params::IkePrf { prf, data_as_key: false, new_key: Some(key), initiator, responder },
            secret,
        ),
        (
            CKM_IKE1_PRF_DERIVE,
            Params::Ike1Prf { prf, previous: None, agreed: key, initiator, responder, number: 1 },
            secret,
        ),
        (
            CKM_IKE1_EXTENDED_DERIVE,
            Params::Ike1Extended { prf, agreed: Some(key), extra: b"extra" },
            secret,
        ),
        (
            CKM_IKE2_PRF_PLUS_DERIVE,
            Params::Ike2PrfPlus { prf, seed_key: Some(key), seed: b"seed" },
            secret,
        ),
        (CKM_TLS_MASTER_KEY_DERIVE_DH, Params::TlsMaster { client, server }, secret),
        (CKM_TLS12_MASTER_KEY_DERIVE_DH, Params::Tls12Master { prf: hash, client, server }, secret),
        (
            CKM_TLS12_EXTENDED_MASTER_KEY_DERIVE_DH,
            Params::Tls12Extended { prf: hash, hash: data },
            secret,
        ),
        (
            CKM_TLS12_KDF,
            Params::TlsKdf { prf: hash, label, client, server, context: Some(b"context") },
            secret,
        ),
        (CKM_TLS12_KDF, Params::TlsKdf { prf: hash, label, client, server, context: None }, secret),
    ]
}

/// What wraps and encapsulates, and the other way.
fn made_by(session: u64, keys: &Keys) -> Vec<Vec<u8>> {
    let aes = keys.aes;
    let by_rsa =
        Params::RsaAes { bits: 256, hash: CKM_SHA256, mgf: CKG_MGF1_SHA256, label: b"label" };
    let by_curve = Params::EcdhAes { bits: 256, kdf: CKD_SHA256_KDF, shared: b"shared" };
    let by = |request: &mut Writer, mechanism: CK_MECHANISM_TYPE, key| {
        named(request, &mechanism.into());
        request.number(key);
    };
    vec![
        asked(session, Function::DigestKey, |request| request.number(aes)),
        asked(session, Function::GetAttributeValue, |request| wanted(request, aes)),
        asked(session, Function::GetAttributeValue, |request| {
            request.number(aes);
            nested(request, 2);
        }),
        asked(session, Function::WrapKey, |request| {
            by(request, CKM_AES_KEY_WRAP_KWP, aes);
            request.number(aes);
            room(request);
        }),
        asked(session, Function::UnwrapKey, |request| {
            by(request, CKM_AES_KEY_WRAP_KWP, aes);
            request.bytes(Some(&[8; 24]));
            made(request);
        }),
        asked(session, Function::WrapKey, |request| {
            named(request, &Mechanism::with(CKM_RSA_AES_KEY_WRAP, by_rsa));
            [keys.rsa, aes].into_iter().for_each(|key| request.number(key));
            room(request);
        }),
        asked(session, Function::WrapKey, |request| {
            named(request, &Mechanism::with(CKM_ECDH_X_AES_KEY_WRAP, by_curve));
            [keys.curve[0], aes].into_iter().for_each(|key| request.number(key));
            room(request);
        }),
        asked(session, Function::UnwrapKey, |request| {
            named(request, &Mechanism::with(CKM_ECDH_X_AES_KEY_WRAP, by_curve));
            request.number(keys.curve[1]);
            request.bytes(Some(&[9; 56]));
            made(request);
        }),
        asked(session, Function::EncapsulateKey, |request| {
            by(request, CKM_ML_KEM, keys.kem[0]);
            made(request);
            request.half(1 << 10);
        }),
        asked(session, Function::DecapsulateKey, |request| {
            by(request, CKM_ML_KEM, keys.kem[1]);
            request.bytes(Some(&[7; 768]));
            made(request);
        }),
    ]
}

/// Room for templates in templates, so deep.
fn nested(request: &mut Writer, depth: u32) {
    let deeper = depth > 0;
    request.count(1 + usize::from(deeper));
    [0, 256].into_iter().for_each(|number| request.half(number));
    if deeper {
        request.half(u32::try_from(CKA_DERIVE_TEMPLATE).expect("short"));
        request.half(1 << 10);
        nested(request, depth - 1);
    }
}

#[test]
fn what_is_mutated_of_our_version_is_right_before() {
    let place = Place::served();
    initialized(&place);
    let mut raw = begun_by(OWN, place.connect());
    let session = open(&mut raw);
    login(&mut raw, session).expect("the user logs in");
    let keys = Keys::made(&mut raw, session);
    let mut done = Vec::new();
    for request in requests(session, &keys) {
        let answer = exchange(&mut raw.stream, &request).expect("an answer");
        let (answer, number) = (answer.as_ref(), &request[..4]);
        if answer[..4] == *number {
            done.push(u32::from_be_bytes(number.try_into().expect("four bytes")));
        }
    }
    let ours = Call::all().filter(|call| call.is_ours()).map(|call| call.number);
    for (number, count) in
        [(24, 2), (60, 3), (62, 14)].into_iter().chain(ours.map(|number| (number, 1)))
    {
        assert_eq!(done.iter().filter(|one| **one == number).count(), count, "{number}");
    }
}

#[test]
fn an_offer_that_is_none_leaves_p11_kits_version() {
    let place = Place::served();
    initialized(&place);
    let mut raw = begun_by(2, place.connect());
    let begin = |raw: &mut Raw, has_argument: u8, argument: &[u8]| {
        raw.call(2, |_| {}).expect("it ends");
        let parts = |request: &mut Writer| {
            request.bytes(Some(GREETING));
            request.byte(has_argument);
            request.bytes(Some(argument));
        };
        let agreed = raw.call(1, parts).expect("it begins");
        let session = open(raw);
        let own = asked(session, Function::EncapsulateKey, |_| {});
        let answer = exchange(&mut raw.stream, &own).expect("an answer");
        let refused = answer.as_ref().ends_with(&CKR_FUNCTION_NOT_SUPPORTED.to_be_bytes());
        assert_eq!(refused, agreed.is_empty(), "{agreed:?}");
        agreed
    };
    let offer = |newest: &[u8]| [OFFER, newest].concat();
    assert_eq!(begin(&mut raw, 0, &offer(&[OWN])), [OWN]);
    for (has_argument, argument) in [
        (0, Vec::new()),
        (0, OFFER.to_vec()),
        (0, offer(&[OWN, 0])),
        (0, offer(&[OWN - 1])),
        (0, offer(&[0])),
        (0, offer(&[OWN])[1..].to_vec()),
        (1, offer(&[OWN])),
    ] {
        assert_eq!(begin(&mut raw, has_argument, &argument), [0; 0], "{argument:?}");
    }
    assert_eq!(begin(&mut raw, 0, &offer(&[0xff])), [OWN]);
}

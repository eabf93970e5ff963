// SPDX-License-Identifier: Apache-2.0
//! Keys that keys of the daemon make by one step, by IKE and by TLS: the same as in one's own process, for none who may not, and of no
//! parameter that is another mechanism's.

use crate::common::{Killed, Place, USER, configured, initialized, started, write_own};
use crate::ours::{SLOT, code, logged_in, readable};
use metaslot_ck::*;
use metaslot_client::protocol::OWN;
use metaslot_client::{Access, Mechanism, Params, Session, Template, Value};
use metaslot_engine::{Answer, Engine};
use metaslot_spi::{Bytes, Params as Inside, RawValue, Tls};
use std::fs;

/// A derivation, as the protocol carries it and as the engine takes it; a second key is of this handle.
pub(crate) struct Case {
    pub(crate) mechanism: CK_MECHANISM_TYPE,
    pub(crate) kind: CK_KEY_TYPE,
    pub(crate) length: u64,
    pub(crate) told: fn(ObjectHandle) -> Params<'static>,
    inside: fn(ObjectHandle) -> Inside,
}

const CLIENT: &[u8] = &[1; 32];
const SERVER: &[u8] = &[2; 32];
const DATA: &[u8] = &[0x5a; 48];

fn string() -> Inside {
    Inside::Data { iv: Bytes::new(), data: Bytes::from_slice(DATA) }
}

fn ike(before: &[ObjectHandle], data: &[u8], data_as_key: bool) -> Inside {
    let data = Bytes::from_slice(data);
    Inside::Ike { prf: CKM_SHA256_HMAC, data, data_as_key, before: before.into() }
}

fn tls(mechanism: CK_MECHANISM_TYPE, label: &[u8], seed: &[u8]) -> Inside {
    let strings = [label, seed].map(Bytes::from_slice);
    Tls::params(mechanism, CKM_SHA256, strings, (0, 0)).expect("a parameter")
}

const fn case(
    (mechanism, kind, length): (CK_MECHANISM_TYPE, CK_KEY_TYPE, u64),
    told: fn(ObjectHandle) -> Params<'static>,
    inside: fn(ObjectHandle) -> Inside,
) -> Case {
    Case { mechanism, kind, length, told, inside }
}

const PRF: CK_MECHANISM_TYPE = CKM_SHA256_HMAC;
const MASTER: fn(ObjectHandle) -> Params<'static> =
    |_| Params::Tls12Master { prf: CKM_SHA256, client: CLIENT, server: SERVER };

pub(crate) const CASES: [Case; 18] = [
    case(
        (CKM_CONCATENATE_BASE_AND_KEY, CKK_GENERIC_SECRET, 96),
        |key| Params::Ulong(key.0),
        Inside::Key,
    ),
    case(
        (CKM_CONCATENATE_BASE_AND_DATA, CKK_GENERIC_SECRET, 96),
        |_| Params::StringData { data: DATA },
        |_| string(),
    ),
    case(
        (CKM_CONCATENATE_DATA_AND_BASE, CKK_GENERIC_SECRET, 60),
        |_| Params::StringData { data: DATA },
        |_| string(),
    ),
    case(
        (CKM_XOR_BASE_AND_DATA, CKK_GENERIC_SECRET, 32),
        |_| Params::StringData { data: DATA },
        |_| string(),
    ),
    case(
        (CKM_EXTRACT_KEY_FROM_KEY, CKK_GENERIC_SECRET, 16),
        |_| Params::Ulong(21),
        |_| Inside::Ulong(21),
    ),
    case(
        (CKM_AES_ECB_ENCRYPT_DATA, CKK_AES, 48),
        |_| Params::StringData { data: DATA },
        |_| string(),
    ),
    case(
        (CKM_AES_CBC_ENCRYPT_DATA, CKK_AES, 24),
        |_| Params::CbcData { iv: &[3; 16], data: DATA },
        |_| Inside::Data { iv: Bytes::from_slice(&[3; 16]), data: Bytes::from_slice(DATA) },
    ),
    case((CKM_SHA256_KEY_DERIVATION, CKK_GENERIC_SECRET, 32), |_| Params::None, |_| Inside::None),
    case((CKM_SHA3_384_KEY_DERIVE, CKK_GENERIC_SECRET, 48), |_| Params::None, |_| Inside::None),
    case((CKM_SHAKE_256_KEY_DERIVE, CKK_GENERIC_SECRET, 99), |_| Params::None, |_| Inside::None),
    case(
        (CKM_IKE_PRF_DERIVE, CKK_GENERIC_SECRET, 32),
        |_| {
            let (initiator, responder) = (b"initiator", b"responder");
            Params::IkePrf { prf: PRF, data_as_key: true, new_key: None, initiator, responder }
        },
        |_| ike(&[], b"initiatorresponder", true),
    ),
    case(
        (CKM_IKE1_PRF_DERIVE, CKK_GENERIC_SECRET, 20),
        |key| Params::Ike1Prf {
            prf: PRF,
            previous: Some(key),
            agreed: key,
            initiator: b"initiator",
            responder: b"responder",
            number: 2,
        },
        |key| ike(&[key, key], b"initiatorresponder\x02", false),
    ),
    case(
        (CKM_IKE1_EXTENDED_DERIVE, CKK_GENERIC_SECRET, 70),
        |key| Params::Ike1Extended { prf: PRF, agreed: Some(key), extra: b"extra" },
        |key| ike(&[key], b"extra", false),
    ),
    case(
        (CKM_IKE2_PRF_PLUS_DERIVE, CKK_GENERIC_SECRET, 100),
        |key| Params::Ike2PrfPlus { prf: PRF, seed_key: Some(key), seed: b"seed" },
        |key| ike(&[key], b"seed", false),
    ),
    case((CKM_TLS12_MASTER_KEY_DERIVE, CKK_GENERIC_SECRET, 48), MASTER, |_| {
        tls(CKM_TLS12_MASTER_KEY_DERIVE, b"master secret", &[CLIENT, SERVER].concat())
    }),
    case((CKM_TLS12_MASTER_KEY_DERIVE_DH, CKK_GENERIC_SECRET, 48), MASTER, |_| {
        tls(CKM_TLS12_MASTER_KEY_DERIVE_DH, b"master secret", &[CLIENT, SERVER].concat())
    }),
    case(
        (CKM_TLS12_EXTENDED_MASTER_KEY_DERIVE, CKK_GENERIC_SECRET, 48),
        |_| Params::Tls12Extended { prf: CKM_SHA256, hash: &[4; 32] },
        |_| tls(CKM_TLS12_EXTENDED_MASTER_KEY_DERIVE, b"extended master secret", &[4; 32]),
    ),
    case(
        (CKM_TLS12_KDF, CKK_GENERIC_SECRET, 33),
        |_| {
            let (prf, label, context) = (CKM_SHA256, b"label", Some(&b"context"[..]));
            Params::TlsKdf { prf, label, client: CLIENT, server: SERVER, context }
        },
        |_| tls(CKM_TLS12_KDF, b"label", &[CLIENT, SERVER, b"\0\x07context"].concat()),
    ),
];

/// A base key: 32 bytes of AES, and 48 otherwise, as a master secret has them.
fn value(kind: CK_KEY_TYPE) -> Vec<u8> {
    (3..=255).step_by(5).take(if kind == CKK_AES { 32 } else { 48 }).collect()
}

fn base(session: &Session, kind: CK_KEY_TYPE) -> ObjectHandle {
    let key = Template::new().class(CKO_SECRET_KEY).key_type(kind).bytes(CKA_VALUE, value(kind));
    let key = key.bool(CKA_SENSITIVE, false).bool(CKA_EXTRACTABLE, true).bool(CKA_DERIVE, true);
    session.create(&key).expect("it is created")
}

fn raw(all: &[(CK_ATTRIBUTE_TYPE, &[u8])]) -> metaslot_spi::Template {
    all.iter().map(|(attribute, value)| (*attribute, RawValue::Bytes(value.to_vec()))).collect()
}

/// What the engine derives in this process.
fn derived_inside(engine: &Engine, session: SessionHandle, case: &Case) -> Vec<u8> {
    let number = |number: u64| number.to_ne_bytes();
    let shown: [(CK_ATTRIBUTE_TYPE, &[u8]); 2] = [(CKA_SENSITIVE, &[0]), (CKA_EXTRACTABLE, &[1])];
    let class = number(CKO_SECRET_KEY);
    let key = |kind| {
        let (value, kind) = (value(kind), number(kind));
        let all = [(CKA_CLASS, &class[..]), (CKA_KEY_TYPE, &kind), (CKA_VALUE, &value)];
        let all = [&all[..], &shown, &[(CKA_DERIVE, &[1])]].concat();
        engine.create_object(session, raw(&all)).expect("it is created")
    };
    let (base, other) = (key(case.kind), key(CKK_GENERIC_SECRET));
    let (kind, length) = (number(CKK_GENERIC_SECRET), number(case.length));
    let all = [(CKA_CLASS, &class[..]), (CKA_KEY_TYPE, &kind), (CKA_VALUE_LEN, &length)];
    let template = raw(&[&all[..], &shown].concat());
    let made = engine.derive_key(session, case.mechanism, (case.inside)(other), base, template);
    let object = engine.object(session, made.expect("it is derived").0).expect("it is there");
    match object.answer(CKA_VALUE) {
        Ok(Answer::Secret(value)) => value.to_vec(),
        other => panic!("{:#x}: {other:?}", case.mechanism),
    }
}

#[test]
fn what_is_derived_is_what_it_is_inside() {
    let (_place, module, session) = logged_in(OWN, OWN);
    let inside = Place::new();
    initialized(&inside);
    let engine = inside.engine();
    let own = engine.open_session(SLOT, CKF_SERIAL_SESSION | CKF_RW_SESSION);
    let own = own.expect("a session opens");
    engine.login(own, CKU_USER, USER).expect("the user logs in");
    let other = base(&session, CKK_GENERIC_SECRET);
    let listed = module.mechanisms(SLOT).expect("a list");
    for case in &CASES {
        let by = base(&session, case.kind);
        let mechanism = Mechanism::with(case.mechanism, (case.told)(other));
        let made = session.derive(&mechanism, by, &readable(case.length));
        let made = made.unwrap_or_else(|error| panic!("{:#x}: {error}", case.mechanism));
        let value = session.attribute(made, CKA_VALUE).expect("it may be read");
        assert_eq!(value, derived_inside(&engine, own, case), "{:#x}", case.mechanism);
        assert!(listed.contains(&case.mechanism));
    }
}

#[test]
fn parameters_of_other_mechanisms_and_those_that_cannot_be_are_refused() {
    let (_place, _module, session) = logged_in(OWN, OWN);
    let refused = Some(Error::MECHANISM_PARAM_INVALID);
    let other = base(&session, CKK_GENERIC_SECRET);
    let by = |mechanism, kind, params| {
        let by = base(&session, kind);
        let made = session.derive(&Mechanism::with(mechanism, params), by, &readable(32));
        session.destroy(by).expect("it is there still");
        code(made)
    };
    for case in &CASES {
        let own = std::mem::discriminant(&(case.told)(other));
        let others = CASES.iter().map(|other_case| (other_case.told)(other));
        let old = [Params::Bytes(&[7; 16]), Params::Ulong(1), Params::None];
        for params in others.chain(old).filter(|one| std::mem::discriminant(one) != own) {
            let told = by(case.mechanism, case.kind, params);
            assert_eq!(told, refused, "{:#x} by {params:?}", case.mechanism);
        }
    }
    let any = CKK_GENERIC_SECRET;
    let long = vec![7; (1 << 17) + 1];
    let (prf, initiator, responder) = (PRF, &long[..1 << 16], &long[..(1 << 16) + 1]);
    let kdf = |label, client| Params::TlsKdf {
        prf: CKM_SHA256,
        label,
        client,
        server: SERVER,
        context: None,
    };
    let context = Some(&long[..1 << 16]);
    let nothing = Params::TlsKdf { prf, label: b"", client: b"", server: b"", context };
    for (mechanism, kind, params) in [
        (CKM_XOR_BASE_AND_DATA, any, Params::StringData { data: &long }),
        (CKM_CONCATENATE_BASE_AND_DATA, any, Params::StringData { data: &long }),
        (CKM_AES_ECB_ENCRYPT_DATA, CKK_AES, Params::StringData { data: &long }),
        (CKM_AES_ECB_ENCRYPT_DATA, CKK_AES, Params::StringData { data: &[7; 17] }),
        (CKM_AES_CBC_ENCRYPT_DATA, CKK_AES, Params::CbcData { iv: &[7; 8], data: &[7; 32] }),
        (CKM_AES_CBC_ENCRYPT_DATA, CKK_AES, Params::CbcData { iv: &[], data: &[7; 32] }),
        (CKM_EXTRACT_KEY_FROM_KEY, any, Params::Ulong(48 * 8)),
        (CKM_EXTRACT_KEY_FROM_KEY, any, Params::Ulong(u64::MAX)),
        (
            CKM_IKE_PRF_DERIVE,
            any,
            Params::IkePrf { prf, data_as_key: false, new_key: None, initiator, responder },
        ),
        (CKM_IKE2_PRF_PLUS_DERIVE, any, Params::Ike2PrfPlus { prf, seed_key: None, seed: &long }),
        (CKM_IKE2_PRF_PLUS_DERIVE, any, Params::Ike2PrfPlus { prf: 0, seed_key: None, seed: b"" }),
        (CKM_TLS12_KDF, any, kdf(&long, CLIENT)),
        (CKM_TLS12_KDF, any, kdf(b"label", &long)),
        (CKM_TLS12_KDF, any, nothing),
        (
            CKM_TLS12_MASTER_KEY_DERIVE,
            any,
            Params::Tls12Master { prf: CKM_TLS_PRF, client: CLIENT, server: SERVER },
        ),
        (CKM_TLS12_EXTENDED_MASTER_KEY_DERIVE, any, Params::Tls12Extended { prf: 7, hash: b"" }),
    ] {
        assert_eq!(by(mechanism, kind, params), refused, "{mechanism:#x}");
    }
    // A key that is not there, or another client's.
    for handle in [0, 1, u64::MAX] {
        let key = ObjectHandle(handle);
        let told = by(CKM_CONCATENATE_BASE_AND_KEY, any, Params::Ulong(handle));
        assert_eq!(told, Some(Error::KEY_HANDLE_INVALID));
        let seed = Params::Ike2PrfPlus { prf, seed_key: Some(key), seed: b"" };
        assert_eq!(by(CKM_IKE2_PRF_PLUS_DERIVE, any, seed), Some(Error::KEY_HANDLE_INVALID));
    }
    let digest = session.digest(&CKM_SHA256.into(), b"abc").expect("it goes on");
    assert_eq!(digest[..4], [0xba, 0x78, 0x16, 0xbf]);
}

/// How much memory a process has had at a time since that was asked for last, in KiB.
fn most_memory(process: u32) -> usize {
    let status = fs::read_to_string(format!("/proc/{process}/status")).expect("it runs");
    let most = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).expect("it is there");
    fs::write(format!("/proc/{process}/clear_refs"), "5").expect("it is ours");
    most.trim().trim_end_matches(" kB").parse().expect("a number")
}

#[test]
fn a_string_that_is_too_long_is_not_put_together() {
    let place = Place::new();
    initialized(&place);
    configured(&place);
    let server = started(&place);
    let module = place.module_of_program();
    module.initialize().expect("it begins");
    let session = module.open_session(SLOT, Access::ReadWrite).expect("a session opens");
    let kind = CKK_GENERIC_SECRET;
    let template = Template::new().class(CKO_SECRET_KEY).key_type(kind);
    let base = template.clone().bytes(CKA_VALUE, value(kind)).bool(CKA_DERIVE, true);
    let base = session.create(&base).expect("it is created");
    let template = template.ulong(CKA_VALUE_LEN, 32).bool(CKA_EXTRACTABLE, true);
    let long = vec![7; 7 << 20];
    let (prf, label, client, server_random) = (CKM_SHA256, &b"label"[..], CLIENT, &long[..]);
    let kdf = Params::TlsKdf { prf, label, client, server: server_random, context: None };
    let ike = Params::Ike2PrfPlus { prf: CKM_SHA256_HMAC, seed_key: None, seed: &long };
    for (mechanism, params) in [(CKM_TLS12_KDF, kdf), (CKM_IKE2_PRF_PLUS_DERIVE, ike)] {
        most_memory(server.0.id());
        let before = most_memory(server.0.id());
        let told = session.derive(&Mechanism::with(mechanism, params), base, &template);
        assert_eq!(code(told), Some(Error::MECHANISM_PARAM_INVALID));
        let more = most_memory(server.0.id()) - before;
        assert!(more < 11 << 10, "{more} KiB: the request is of seven MiB");
    }
}

#[test]
fn macs_and_streams_with_parameters_of_their_own_are_carried() {
    let (_place, _module, session) = logged_in(OWN, OWN);
    let template = Template::new().class(CKO_SECRET_KEY).key_type(CKK_GENERIC_SECRET);
    let template = template.bytes(CKA_VALUE, value(CKK_GENERIC_SECRET)).bool(CKA_SIGN, true);
    let master = session.create(&template.bool(CKA_VERIFY, true)).expect("it is created");
    let finished = |length, side| {
        Mechanism::with(CKM_TLS12_MAC, Params::TlsMac { prf: CKM_SHA256, length, side })
    };
    let macs = [1, 2].map(|side| {
        let mac = session.sign(&finished(12, side), master, b"handshake").expect("a MAC");
        session.verify(&finished(12, side), master, b"handshake", &mac).expect("it is right");
        let longer = session.sign(&finished(20, side), master, b"handshake").expect("a MAC");
        assert_eq!(longer[..12], mac);
        mac
    });
    assert_ne!(macs[0], macs[1]);
    let refused = Some(Error::MECHANISM_PARAM_INVALID);
    for (length, side) in [(11, 1), (256, 1), (u64::MAX, 1), (12, 0), (12, 3)] {
        assert_eq!(code(session.sign_init(&finished(length, side), master)), refused);
    }
    let chacha = session.generate_key(&CKM_CHACHA20_KEY_GEN.into(), &Template::new());
    let chacha = chacha.expect("a key is made");
    let stream =
        |counter, nonce| Mechanism::with(CKM_CHACHA20, Params::ChaCha20 { counter, nonce });
    let data = [7; 200];
    for nonce in [&[1; 8][..], &[1; 12], &[1; 24]] {
        let sealed = session.encrypt(&stream(3, nonce), chacha, &data).expect("it is encrypted");
        let opened = session.decrypt(&stream(3, nonce), chacha, &sealed);
        assert_eq!(opened.expect("it is decrypted"), data);
        // The next block by its own number.
        let rest = session.encrypt(&stream(4, nonce), chacha, &data[64..]);
        assert_eq!(rest.expect("it is encrypted"), sealed[64..]);
    }
    for (counter, nonce) in [(1 << 32, &[1; 12][..]), (0, &[1; 11]), (0, &[])] {
        assert_eq!(code(session.encrypt_init(&stream(counter, nonce), chacha)), refused);
    }
}

/// A service of this user's that has these keys for these operations, of those that `make` makes.
fn service(
    (keys, policy): ([(&str, &str); 3], &str),
    make: impl FnOnce(&Session),
) -> (Killed, Place, Session) {
    let (place, _module, session) = logged_in(OWN, OWN);
    make(&session);
    configured(&place);
    let at = place.path().display();
    write_own(place.path().join("pin"), USER);
    let user = rustix::process::geteuid().as_raw();
    let sections = keys.map(|(key, operation)| {
        format!(
            "[[client]]\nservices = [\"user:{user}\"]\ntoken = \"door\"\nkeys = [\"{key}\"]\n\
             operations = [\"{operation}\"]\n"
        )
    });
    let daemon = format!(
        "counters = false\n[[token]]\npath = \"{at}/token/token.db\"\nkdf = \"weak-for-tests\"\n\
         pin-source = \"file:{at}/pin\"\n{policy}[daemon]\nsocket = \"{at}/socket\"\n{}",
        sections.concat()
    );
    fs::write(place.path().join("metaslotd.toml"), daemon).expect("it is written");
    let server = started(&place);
    let module = place.module_of_program();
    module.initialize().expect("it begins");
    let session = module.open_session(SLOT, Access::ReadWrite).expect("a session opens");
    (server, place, session)
}

/// Two keys, one to sign and one to derive by, of which the token would let both do both, and a pair.
fn make_keys(session: &Session) {
    for label in ["signs", "derives"] {
        let key = Template::new().class(CKO_SECRET_KEY).key_type(CKK_GENERIC_SECRET);
        let key = key.bytes(CKA_VALUE, value(CKK_GENERIC_SECRET)).label(label).token(true);
        let key = key.bool(CKA_SENSITIVE, false).bool(CKA_EXTRACTABLE, true);
        let usages = key.bool(CKA_DERIVE, true).bool(CKA_SIGN, label == "signs");
        session.create(&usages).expect("it is created");
    }
    let named = || Template::new().label("pair").token(true);
    let public = named().ulong(CKA_MODULUS_BITS, 2048).bool(CKA_WRAP, true);
    let private = named().bool(CKA_UNWRAP, true).bool(CKA_SIGN, true);
    let only = Value::Mechanisms(vec![CKM_RSA_AES_KEY_WRAP, CKM_RSA_PKCS]);
    let private = private.with(CKA_ALLOWED_MECHANISMS, only);
    let make = CKM_RSA_PKCS_KEY_PAIR_GEN.into();
    session.generate_key_pair(&make, &public, &private).expect("a pair is made");
}

#[test]
fn a_service_makes_keys_by_what_it_is_given_and_takes_none_out() {
    let keys = [("signs", "sign"), ("derives", "derive"), ("pair", "sign")];
    for policy in ["", "allow = [\"related-keys\"]\n"] {
        let (_server, _place, session) = service((keys, policy), make_keys);
        nothing_comes_out(&session, policy.is_empty());
    }
}

fn find(session: &Session, class: CK_OBJECT_CLASS, label: &str) -> ObjectHandle {
    let wanted = Template::new().class(class).label(label);
    session.find_one(&wanted).expect("a search").expect("it is there")
}

/// Derivations that take this key beside another one.
fn beside(key: ObjectHandle) -> [(CK_MECHANISM_TYPE, Params<'static>); 6] {
    let (prf, initiator, responder) = (PRF, &b"initiator"[..], &b"responder"[..]);
    let (there, data_as_key) = (Some(key), false);
    let salted = Params::Hkdf {
        extract: true,
        expand: false,
        prf: CKM_SHA256,
        salt_type: CKF_HKDF_SALT_KEY,
        salt: b"",
        salt_key: key,
        info: b"",
    };
    [
        (CKM_CONCATENATE_BASE_AND_KEY, Params::Ulong(key.0)),
        (CKM_HKDF_DERIVE, salted),
        (
            CKM_IKE_PRF_DERIVE,
            Params::IkePrf { prf, data_as_key, new_key: there, initiator, responder },
        ),
        (
            CKM_IKE1_PRF_DERIVE,
            Params::Ike1Prf { prf, previous: None, agreed: key, initiator, responder, number: 0 },
        ),
        (CKM_IKE1_EXTENDED_DERIVE, Params::Ike1Extended { prf, agreed: there, extra: b"" }),
        (CKM_IKE2_PRF_PLUS_DERIVE, Params::Ike2PrfPlus { prf, seed_key: there, seed: b"" }),
    ]
}

/// By the usual policy, which has another word for keys that are made of protected ones, and without that.
fn nothing_comes_out(session: &Session, usual: bool) {
    let not_permitted = Some(Error::KEY_FUNCTION_NOT_PERMITTED);
    let [signs, derives] = ["signs", "derives"].map(|label| find(session, CKO_SECRET_KEY, label));
    session.sign(&CKM_SHA256_HMAC.into(), signs, b"words").expect("it may sign");
    let own = base(session, CKK_GENERIC_SECRET);
    let kept = |length| {
        let kept = Template::new().class(CKO_SECRET_KEY).key_type(CKK_GENERIC_SECRET);
        kept.ulong(CKA_VALUE_LEN, length)
    };
    for case in CASES.iter().filter(|case| case.kind == CKK_GENERIC_SECRET) {
        let what = case.mechanism;
        let mechanism = Mechanism::with(what, (case.told)(own));
        let derive = |by, template: &Template| session.derive(&mechanism, by, template);
        assert_eq!(code(derive(signs, &readable(case.length))), not_permitted, "{what:#x}");
        let stays = code(derive(derives, &kept(case.length).token(true)));
        if usual {
            let told = [readable(case.length), kept(case.length)];
            let told = told.map(|template| code(derive(derives, &template)));
            assert_eq!(told, [Some(Error::MECHANISM_INVALID); 2], "{what:#x}");
            assert!(stays.is_some(), "{what:#x}");
            continue;
        }
        assert_eq!(stays, Some(Error::USER_NOT_LOGGED_IN), "{what:#x}");
        let made = derive(derives, &kept(case.length)).expect("it may derive");
        // What is made can no more be read than what it is made of, and by a byte at a time that could be found.
        let shown = code(derive(derives, &readable(case.length)));
        assert_eq!(shown, Some(Error::TEMPLATE_INCONSISTENT), "{what:#x}");
        assert!(session.attribute(made, CKA_VALUE).is_err(), "{what:#x}");
        assert!(derive(derives, &kept(1)).is_err(), "{what:#x}");
    }
    // Nor is it put beside a key of the service's own.
    let join = Mechanism::with(CKM_CONCATENATE_BASE_AND_KEY, Params::Ulong(derives.0));
    let told = session.derive(&join, own, &readable(96));
    assert!(told.is_err());
    let made = session.derive(&join, own, &kept(96));
    match usual {
        true => assert_eq!(code(made), not_permitted),
        false => {
            let made = made.expect("both may derive");
            assert!(session.attribute(made, CKA_VALUE).is_err());
        }
    }
    // A key that does not derive is no part of what is derived, and no salt: that would be a digest of it, or a MAC under it.
    for (mechanism, params) in beside(signs) {
        let told = session.derive(&Mechanism::with(mechanism, params), own, &readable(32));
        assert_eq!(code(told), not_permitted, "{mechanism:#x}");
    }
    let (hash, mgf, label) = (CKM_SHA256, CKG_MGF1_SHA256, &b""[..]);
    let transport = Params::RsaAes { bits: 256, hash, mgf, label };
    let transport = Mechanism::with(CKM_RSA_AES_KEY_WRAP, transport);
    let [public, private] =
        [CKO_PUBLIC_KEY, CKO_PRIVATE_KEY].map(|class| find(session, class, "pair"));
    session.sign(&CKM_RSA_PKCS.into(), private, b"words").expect("it may sign");
    assert_eq!(code(session.wrap(&transport, public, own)), not_permitted);
    let unwrapped = session.unwrap(&transport, private, &[1; 312], &kept(32));
    assert_eq!(code(unwrapped), not_permitted);
}

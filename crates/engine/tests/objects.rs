// SPDX-License-Identifier: Apache-2.0
//! Objects: who may set what, who sees what, and what goes when.

use metaslot_ck::attribute::{CKA_BIRTH_ROLES, CKA_PURPOSES};
use metaslot_ck::*;
use metaslot_engine::{Answer, Engine, Policy};
use metaslot_models::{
    MemoryStore, Raw, aes, collect, engine, engine_over, logged_in, logged_in_under, open, row,
};
use metaslot_spi::provider::Direction;
use metaslot_spi::store::{Change, Record, Store};
use metaslot_spi::{Attributes, Bytes, KdfParam, Params, RawValue, Template, Value};
use std::sync::atomic::{AtomicU64, Ordering};

fn boolean(engine: &Engine, session: SessionHandle, object: ObjectHandle, attribute: u64) -> bool {
    let object = engine.object(session, object).expect("it is there");
    matches!(object.answer(attribute), Ok(Answer::Value(Value::Bool(true))))
}

fn search(engine: &Engine, session: SessionHandle, template: Template) -> Vec<ObjectHandle> {
    engine.find_init(session, template).expect("a search begins");
    let mut all = Vec::new();
    loop {
        let some = engine.find(session, 3).expect("a search goes on");
        if some.is_empty() {
            break;
        }
        all.extend(some);
    }
    engine.find_final(session).expect("a search ends");
    all
}

#[test]
fn a_generated_key_says_where_it_came_from() {
    let (engine, session) = logged_in();
    let key = aes(&engine, session, vec![]).expect("a key is made");
    for attribute in [CKA_LOCAL, CKA_SENSITIVE, CKA_ALWAYS_SENSITIVE, CKA_NEVER_EXTRACTABLE] {
        assert!(boolean(&engine, session, key, attribute), "{:?}", attribute_name(attribute));
    }
    let object = engine.object(session, key).expect("it is there");
    let Ok(Answer::Value(Value::Ulong(length))) = object.answer(CKA_VALUE_LEN) else {
        panic!("a secret key has a length")
    };
    assert_eq!(*length, 32);
    assert_eq!(object.answer(CKA_VALUE).err(), Some(Error::ATTRIBUTE_SENSITIVE));
    assert_eq!(object.answer(CKA_MODULUS).err(), Some(Error::ATTRIBUTE_TYPE_INVALID));
    assert!(
        matches!(object.answer(CKA_UNIQUE_ID), Ok(Answer::Value(Value::Bytes(id))) if id.len() == 32)
    );
}

#[test]
fn an_open_key_shows_its_value() {
    let (engine, session) = logged_in();
    let more = vec![row(CKA_SENSITIVE, false), row(CKA_EXTRACTABLE, true), row(CKA_TOKEN, true)];
    let key = aes(&engine, session, more).expect("a key is made");
    let object = engine.object(session, key).expect("it is there");
    assert!(matches!(object.answer(CKA_VALUE), Ok(Answer::Secret(value)) if value.len() == 32));
}

#[test]
fn what_only_the_token_sets_is_read_only() {
    let (engine, session) = logged_in();
    for attribute in [CKA_LOCAL, CKA_ALWAYS_SENSITIVE, CKA_NEVER_EXTRACTABLE] {
        let made = aes(&engine, session, vec![row(attribute, true)]);
        assert_eq!(made, Err(Error::ATTRIBUTE_READ_ONLY));
    }
    assert_eq!(aes(&engine, session, vec![row(0x4711, true)]), Err(Error::ATTRIBUTE_TYPE_INVALID));
    let twice = vec![row(CKA_LABEL, "a"), row(CKA_LABEL, "b")];
    assert_eq!(aes(&engine, session, twice), Err(Error::TEMPLATE_INCONSISTENT));
    let short = vec![(CKA_TOKEN, RawValue::Bytes(vec![1, 0]))];
    assert_eq!(aes(&engine, session, short), Err(Error::ATTRIBUTE_VALUE_INVALID));
}

#[test]
fn one_way_attributes_go_one_way() {
    let (engine, session) = logged_in();
    let key = aes(&engine, session, vec![row(CKA_TOKEN, true)]).expect("a key is made");
    let set =
        |attribute, value: bool| engine.set_attributes(session, key, vec![row(attribute, value)]);
    assert_eq!(set(CKA_SENSITIVE, false), Err(Error::ATTRIBUTE_READ_ONLY));
    assert_eq!(set(CKA_EXTRACTABLE, true), Err(Error::ATTRIBUTE_READ_ONLY));
    assert_eq!(set(CKA_WRAP_WITH_TRUSTED, true), Ok(()));
    assert_eq!(set(CKA_WRAP_WITH_TRUSTED, false), Err(Error::ATTRIBUTE_READ_ONLY));
    assert_eq!(set(CKA_TRUSTED, true), Err(Error::ATTRIBUTE_READ_ONLY));
    assert_eq!(set(CKA_PRIVATE, false), Err(Error::ATTRIBUTE_READ_ONLY));
    assert_eq!(engine.set_attributes(session, key, vec![row(CKA_LABEL, "new")]), Ok(()));
    assert_eq!(search(&engine, session, vec![row(CKA_LABEL, "new")]), [key]);
}

#[test]
fn copies_keep_what_protects_them() {
    let (engine, session) = logged_in();
    let key = aes(&engine, session, vec![row(CKA_TOKEN, true)]).expect("a key is made");
    let empty = engine.copy_object(session, key, vec![]).expect("an empty template copies");
    assert_ne!(empty, key);
    let memory = engine.copy_object(session, key, vec![row(CKA_TOKEN, false)]).expect("it copies");
    assert!(!boolean(&engine, session, memory, CKA_TOKEN));
    for weaker in [row(CKA_SENSITIVE, false), row(CKA_EXTRACTABLE, true), row(CKA_PRIVATE, false)] {
        let copied = engine.copy_object(session, key, vec![weaker]);
        assert_eq!(copied, Err(Error::ATTRIBUTE_READ_ONLY));
    }
    let fixed = aes(&engine, session, vec![row(CKA_COPYABLE, false)]).expect("a key is made");
    assert_eq!(engine.copy_object(session, fixed, vec![]), Err(Error::ACTION_PROHIBITED));
    let firm = aes(&engine, session, vec![row(CKA_DESTROYABLE, false)]).expect("a key is made");
    assert_eq!(engine.destroy_object(session, firm), Err(Error::ACTION_PROHIBITED));
    let stiff = aes(&engine, session, vec![row(CKA_MODIFIABLE, false)]).expect("a key is made");
    let label = vec![row(CKA_LABEL, "x")];
    assert_eq!(engine.set_attributes(session, stiff, label), Err(Error::ACTION_PROHIBITED));
}

#[test]
fn a_search_streams_and_hides_private_objects() {
    let (engine, session) = logged_in();
    for number in 0..20u64 {
        let label = format!("key-{}", number % 2);
        let more = vec![
            row(CKA_LABEL, label.as_str()),
            row(CKA_TOKEN, number % 3 != 0),
            row(CKA_PRIVATE, number % 5 != 0),
            row(CKA_SENSITIVE, true),
        ];
        aes(&engine, session, more).expect("a key is made");
    }
    assert_eq!(search(&engine, session, vec![]).len(), 20);
    assert_eq!(search(&engine, session, vec![row(CKA_LABEL, "key-0")]).len(), 10);
    let tokens = vec![row(CKA_TOKEN, true), row(CKA_LABEL, "key-1"), row(CKA_SIGN, true)];
    assert_eq!(search(&engine, session, tokens).len(), 7);
    assert_eq!(search(&engine, session, vec![row(CKA_VALUE, &[0u8; 32][..])]), []);
    engine.logout(session).expect("logged in before");
    assert_eq!(
        search(&engine, session, vec![]).len(),
        4,
        "the public ones are left, in memory too"
    );
}

#[test]
fn handles_of_private_objects_die_at_logout() {
    let (engine, session) = logged_in();
    let key = aes(&engine, session, vec![row(CKA_TOKEN, true)]).expect("a key is made");
    encrypt_init(&engine, session, key).expect("it may encrypt");
    engine.logout(session).expect("logged in before");
    assert_eq!(encrypts(&engine, session), Err(Error::OPERATION_NOT_INITIALIZED));
    engine.login(session, CKU_USER, b"user-pin").expect("the PIN is right");
    assert_eq!(engine.object(session, key).err(), Some(Error::OBJECT_HANDLE_INVALID));
    assert_eq!(encrypt_init(&engine, session, key), Err(Error::KEY_HANDLE_INVALID));
}

fn encrypt_init(engine: &Engine, session: SessionHandle, key: ObjectHandle) -> Result<()> {
    let params = Params::Gcm { iv: Bytes::from_slice(&[7; 12]), aad: Bytes::new(), tag_bits: 128 };
    engine.cipher_init(Direction::Forward, session, CKM_AES_GCM, params, key)
}

#[test]
fn a_destroyed_key_ends_operations_of_other_sessions() {
    let (engine, session) = logged_in();
    let other = open(&engine);
    let key = aes(&engine, session, vec![]).expect("a key is made");
    encrypt_init(&engine, other, key).expect("another session of the slot sees it");
    engine.destroy_object(session, key).expect("it goes");
    assert_eq!(encrypts(&engine, other), Err(Error::OPERATION_NOT_INITIALIZED));
    assert_eq!(engine.destroy_object(session, key), Err(Error::OBJECT_HANDLE_INVALID));
}

#[test]
fn session_objects_go_with_their_session() {
    let (engine, session) = logged_in();
    let other = open(&engine);
    let key = aes(&engine, other, vec![]).expect("a key is made");
    assert!(engine.object(session, key).is_ok());
    engine.close_session(other).expect("it closes");
    assert_eq!(engine.object(session, key).err(), Some(Error::OBJECT_HANDLE_INVALID));
}

#[test]
fn keys_in_memory_need_no_login() {
    let engine = engine(Policy::DEFAULT);
    let session = open(&engine);
    let key = aes(&engine, session, vec![]).expect("a key in memory is made");
    assert!(!boolean(&engine, session, key, CKA_PRIVATE));
    let token = aes(&engine, session, vec![row(CKA_TOKEN, true)]);
    assert_eq!(token, Err(Error::USER_NOT_LOGGED_IN));
    let read_only = engine.open_session(SlotId(0), CKF_SERIAL_SESSION).expect("it opens");
    engine.login(session, CKU_USER, b"user-pin").expect("the PIN is right");
    let token = aes(&engine, read_only, vec![row(CKA_TOKEN, true)]);
    assert_eq!(token, Err(Error::SESSION_READ_ONLY));
}

#[test]
fn data_and_certificates_live_beside_keys() {
    let (engine, session) = logged_in();
    let data = vec![
        row(CKA_CLASS, CKO_DATA),
        row(CKA_TOKEN, true),
        row(CKA_APPLICATION, "app"),
        row(CKA_VALUE, "some bytes"),
    ];
    let data = engine.create_object(session, data).expect("data is kept");
    let object = engine.object(session, data).expect("it is there");
    assert!(
        matches!(object.answer(CKA_VALUE), Ok(Answer::Value(Value::Bytes(b))) if b == b"some bytes")
    );
    assert_eq!(
        search(&engine, session, vec![row(CKA_CLASS, CKO_DATA), row(CKA_VALUE, "some bytes")]),
        [data]
    );
    let certificate = vec![row(CKA_CLASS, CKO_CERTIFICATE), row(CKA_VALUE, "der")];
    assert_eq!(engine.create_object(session, certificate), Err(Error::TEMPLATE_INCOMPLETE));
    let certificate = vec![
        row(CKA_CLASS, CKO_CERTIFICATE),
        row(CKA_CERTIFICATE_TYPE, CKC_X_509),
        row(CKA_SUBJECT, "subject"),
        row(CKA_VALUE, "der"),
        row(CKA_ID, &[1u8][..]),
    ];
    let made = engine.create_object(session, certificate).expect("a certificate is kept");
    assert_eq!(search(&engine, session, vec![row(CKA_ID, &[1u8][..])]), [made]);
    let class = (CKA_CLASS, CKO_DATA.raw());
    assert_eq!(
        engine.create_object(session, vec![(CKA_VALUE, true.raw())]),
        Err(Error::TEMPLATE_INCOMPLETE)
    );
    assert_eq!(engine.set_attributes(session, made, vec![class]), Err(Error::ATTRIBUTE_READ_ONLY));
}

#[test]
fn four_threads_make_find_and_destroy_without_a_wrong_answer() {
    let (engine, _session) = logged_in();
    let work = &|thread: u64| {
        let session = open(&engine);
        for round in 0..100u64 {
            let label = format!("{thread}-{round}");
            let more = vec![row(CKA_TOKEN, true), row(CKA_LABEL, label.as_str())];
            let key = aes(&engine, session, more).expect("a key is made");
            assert_eq!(search(&engine, session, vec![row(CKA_LABEL, label.as_str())]), [key]);
            engine.destroy_object(session, key).expect("it goes");
            assert_eq!(search(&engine, session, vec![row(CKA_LABEL, label.as_str())]), []);
        }
        engine.close_session(session).expect("it closes");
    };
    std::thread::scope(|scope| {
        for thread in 0..4 {
            scope.spawn(move || work(thread));
        }
    });
}

/// A store with rows that a program without a login wrote into the file.
fn over<const ROWS: usize>(rows: [Vec<u8>; ROWS], policy: Policy) -> (Engine, SessionHandle) {
    let store = MemoryStore::default();
    for attributes in rows {
        let record = Record { private: false, attributes, secrets: None, terms: vec![] };
        store.write(vec![Change::Insert(record)]).expect("it is written");
    }
    let engine = engine_over(store, policy);
    let session = open(&engine);
    (engine, session)
}

#[test]
fn trust_written_without_a_login_does_not_count() {
    let attributes = Attributes::from_iter([
        (CKA_CLASS, Value::Ulong(CKO_CERTIFICATE)),
        (CKA_TOKEN, Value::Bool(true)),
        (CKA_TRUSTED, Value::Bool(true)),
        (CKA_MODIFIABLE, Value::Bool(true)),
    ]);
    let (engine, session) = over([attributes.encode()], Policy::legacy());
    let found = search(&engine, session, vec![]);
    let [made] = found[..] else { panic!("one certificate") };
    assert!(!boolean(&engine, session, made, CKA_TRUSTED));
    engine.login(session, CKU_USER, b"user-pin").expect("the PIN is right");
    assert!(!boolean(&engine, session, made, CKA_TRUSTED));
    let label = vec![row(CKA_LABEL, "mine")];
    engine.set_attributes(session, made, label).expect("the row is written again, verified now");
    assert!(!boolean(&engine, session, made, CKA_TRUSTED));
}

/// Of a key that was written without a login nothing but its writer says that its other half is here.
#[test]
fn a_copy_or_a_change_of_an_unverified_key_vouches_for_nothing() {
    let numbers = [(CKA_MODULUS, [0xff; 256].to_vec()), (CKA_PUBLIC_EXPONENT, vec![1, 0, 1])];
    let numbers = numbers.map(|(attribute, bytes)| (attribute, Value::Bytes(bytes)));
    let flags = [CKA_TOKEN, CKA_MODIFIABLE, CKA_COPYABLE, CKA_WRAP, CKA_TRUSTED];
    let mut attributes: Attributes =
        flags.into_iter().map(|flag| (flag, Value::Bool(true))).chain(numbers).collect();
    attributes.set(CKA_CLASS, Value::Ulong(CKO_PUBLIC_KEY));
    attributes.set(CKA_KEY_TYPE, Value::Ulong(CKK_RSA));
    attributes.set(CKA_PURPOSES, Value::Ulong(16 | 64));
    let (engine, session) = over([attributes.encode()], Policy::DEFAULT);
    engine.login(session, CKU_USER, b"user-pin").expect("the PIN is right");
    let [brought] = search(&engine, session, vec![])[..] else { panic!("one key") };
    let extractable = vec![row(CKA_SENSITIVE, true), row(CKA_EXTRACTABLE, true)];
    let target = aes(&engine, session, extractable).expect("a key is made");
    let copy = engine.copy_object(session, brought, vec![row(CKA_TOKEN, false)]).expect("copied");
    engine.set_attributes(session, brought, vec![row(CKA_LABEL, "x")]).expect("changed");
    for by in [copy, brought] {
        let oaep = || Params::Oaep { hash: CKM_SHA256, mgf: CKG_MGF1_SHA256, label: Bytes::new() };
        let wrapped =
            collect(|out| engine.wrap_key(session, CKM_RSA_PKCS_OAEP, oaep(), by, target, out));
        assert_eq!(wrapped, Err(Error::KEY_NOT_WRAPPABLE));
    }
}

/// More than a token's cache holds.
const MANY: usize = 1_500;

fn many_keys(engine: &Engine, session: SessionHandle) -> Vec<ObjectHandle> {
    let make = |_| aes(engine, session, vec![row(CKA_TOKEN, true)]).expect("a key is made");
    (0..MANY).map(make).collect()
}

fn encrypts(engine: &Engine, session: SessionHandle) -> Result<Vec<u8>> {
    collect(|out| engine.cipher(Direction::Forward, session, &[0; 16], out))
}

#[test]
fn logout_ends_every_use_however_many_objects_there_are() {
    let (engine, session) = logged_in();
    let keys = many_keys(&engine, session);
    // Each session remembers its last keys and has begun to use another one.
    let sessions: Vec<_> = (0..50).map(|_| open(&engine)).collect();
    for (session, keys) in sessions.iter().zip(keys.chunks(2)) {
        encrypt_init(&engine, *session, keys[0]).expect("it may encrypt");
        encrypts(&engine, *session).expect("it encrypts");
        encrypt_init(&engine, *session, keys[1]).expect("it may encrypt");
    }
    for key in &keys {
        engine.object(session, *key).expect("it is there");
    }
    engine.logout(session).expect("logged in before");
    for (session, keys) in sessions.iter().zip(keys.chunks(2)) {
        assert_eq!(encrypts(&engine, *session), Err(Error::OPERATION_NOT_INITIALIZED));
        assert_eq!(encrypt_init(&engine, *session, keys[0]), Err(Error::KEY_HANDLE_INVALID));
    }
    engine.login(session, CKU_USER, b"user-pin").expect("the PIN is right");
    for (session, keys) in sessions.iter().zip(keys.chunks(2)) {
        assert_eq!(encrypt_init(&engine, *session, keys[0]), Err(Error::KEY_HANDLE_INVALID));
    }
}

#[test]
fn destruction_ends_every_use_however_many_objects_there_are() {
    let (engine, session) = logged_in();
    let keys = many_keys(&engine, session);
    let sessions: Vec<_> = (0..50).map(|_| open(&engine)).collect();
    for (session, key) in sessions.iter().zip(&keys) {
        encrypt_init(&engine, *session, *key).expect("it may encrypt");
    }
    for key in &keys {
        engine.object(session, *key).expect("it is there");
    }
    for (other, key) in sessions.iter().zip(&keys) {
        engine.destroy_object(session, *key).expect("it goes");
        assert_eq!(encrypts(&engine, *other), Err(Error::OPERATION_NOT_INITIALIZED));
        assert_eq!(encrypt_init(&engine, *other, *key), Err(Error::KEY_HANDLE_INVALID));
    }
}

#[test]
fn a_changed_key_goes_on_in_operations_that_began_before_and_ends_with_the_object() {
    let (engine, session) = logged_in();
    let other = open(&engine);
    for on_token in [true, false] {
        let key = aes(&engine, session, vec![row(CKA_TOKEN, on_token)]).expect("a key is made");
        encrypt_init(&engine, other, key).expect("it may encrypt");
        engine.set_attributes(session, key, vec![row(CKA_LABEL, "new")]).expect("it changes");
        // Whatever else dies meanwhile.
        let another = aes(&engine, session, vec![]).expect("a key is made");
        engine.destroy_object(session, another).expect("it goes");
        encrypts(&engine, other).expect("the key is still there");
        encrypt_init(&engine, other, key).expect("it may encrypt");
        engine.set_attributes(session, key, vec![row(CKA_LABEL, "newer")]).expect("it changes");
        engine.destroy_object(session, key).expect("it goes");
        assert_eq!(encrypts(&engine, other), Err(Error::OPERATION_NOT_INITIALIZED));
    }
}

/// Two threads: one does one thing while the other does another a few times, again and again.
fn race(rounds: u64, once: impl Fn(u64) + Sync, often: impl Fn(u64) + Sync) {
    let arrived = AtomicU64::new(0);
    let meet = |round: u64| {
        arrived.fetch_add(1, Ordering::SeqCst);
        for spins in 0_u64.. {
            if arrived.load(Ordering::SeqCst) >= 2 * (round + 1) {
                return;
            }
            if spins % 1_000 == 999 { std::thread::yield_now() } else { std::hint::spin_loop() }
        }
    };
    std::thread::scope(|scope| {
        scope.spawn(|| {
            for round in 0..rounds {
                meet(round);
                (0..round % 256).for_each(|_| std::hint::spin_loop());
                once(round);
            }
        });
        for round in 0..rounds {
            meet(round);
            (0..8).for_each(|_| often(round));
        }
    });
}

#[test]
fn what_protects_a_key_is_not_lost_to_a_change_at_the_same_time() {
    let (engine, session) = logged_in();
    let other = open(&engine);
    for on_token in [false, true] {
        let open_key = || {
            vec![row(CKA_SENSITIVE, false), row(CKA_EXTRACTABLE, true), row(CKA_TOKEN, on_token)]
        };
        let keys: Vec<_> =
            (0..2_000).map(|_| aes(&engine, session, open_key()).expect("a key is made")).collect();
        let key = |round| keys[usize::try_from(round).expect("a small number")];
        let protect = |round| {
            let set = engine.set_attributes(session, key(round), vec![row(CKA_SENSITIVE, true)]);
            set.expect("a key may be protected");
        };
        let name = |round| {
            let set = engine.set_attributes(other, key(round), vec![row(CKA_LABEL, "name")]);
            set.expect("a key may be named");
        };
        race(2_000, protect, name);
        assert_eq!(search(&engine, session, vec![row(CKA_SENSITIVE, false)]), []);
    }
}

#[test]
fn a_destroyed_object_does_not_come_back_by_a_change_at_the_same_time() {
    let (engine, session) = logged_in();
    let other = open(&engine);
    let keys: Vec<_> =
        (0..2_000).map(|_| aes(&engine, session, vec![]).expect("a key is made")).collect();
    let key = |round| keys[usize::try_from(round).expect("a small number")];
    let name = |round| {
        let set = engine.set_attributes(other, key(round), vec![row(CKA_LABEL, "name")]);
        assert!(matches!(set, Ok(()) | Err(Error::OBJECT_HANDLE_INVALID)), "{set:?}");
    };
    race(2_000, |round| engine.destroy_object(session, key(round)).expect("it goes"), name);
    assert_eq!(search(&engine, session, vec![]), []);
}

#[test]
fn derived_keys_come_in_the_order_of_their_templates_wherever_they_live() {
    let (engine, session) = logged_in_under(Policy::legacy());
    let base = vec![row(CKA_VALUE_LEN, 32), row(CKA_DERIVE, true)];
    let generic = CKM_GENERIC_SECRET_KEY_GEN;
    let base = engine.generate_key(session, generic, Params::None, base).expect("a key is made");
    for places in 0..8 {
        let on_token = |key: u64| places >> key & 1 == 1;
        let template =
            |key: u64, length: u64| vec![row(CKA_TOKEN, on_token(key)), row(CKA_VALUE_LEN, length)];
        let data = vec![KdfParam::Iteration { little_endian: false, bits: 16 }];
        let additional = vec![template(1, 16), template(2, 24)];
        let params = Params::Sp800108 { prf: CKM_SHA256_HMAC, data, iv: Bytes::new(), additional };
        let mechanism = CKM_SP800_108_COUNTER_KDF;
        let derived = engine.derive_key(session, mechanism, params, base, template(0, 32));
        let (first, others) = derived.expect("keys are derived");
        for (key, handle) in (0..).zip([first].into_iter().chain(others)) {
            assert_eq!(boolean(&engine, session, handle, CKA_TOKEN), on_token(key));
            let object = engine.object(session, handle).expect("it is there");
            let Ok(Answer::Value(Value::Ulong(length))) = object.answer(CKA_VALUE_LEN) else {
                panic!("a secret key has a length")
            };
            assert_eq!(*length, [32, 16, 24][usize::try_from(key).expect("three keys")]);
        }
    }
}

#[test]
fn of_a_pair_that_the_store_refuses_no_half_is_left() {
    let (engine, session) = logged_in();
    let curve = || row(CKA_EC_PARAMS, &[6, 8, 0x2a, 0x86, 0x48, 0xce, 0x3d, 3, 1, 7][..]);
    for private_on_token in [true, false] {
        let template = |on_token| match on_token {
            true => vec![row(CKA_TOKEN, true), row(CKA_LABEL, "no room")],
            false => vec![row(CKA_TOKEN, false)],
        };
        let (mut public, private) = (template(!private_on_token), template(private_on_token));
        public.push(curve());
        let pair = CKM_EC_KEY_PAIR_GEN;
        let made = engine.generate_key_pair(session, pair, Params::None, public, private);
        assert_eq!(made, Err(Error::DEVICE_MEMORY));
        assert_eq!(search(&engine, session, vec![]), []);
    }
}

fn certificate(engine: &Engine, session: SessionHandle) -> ObjectHandle {
    let template = vec![
        row(CKA_CLASS, CKO_CERTIFICATE),
        row(CKA_CERTIFICATE_TYPE, CKC_X_509),
        row(CKA_SUBJECT, &b"subject"[..]),
        row(CKA_VALUE, &b"certificate"[..]),
    ];
    engine.create_object(session, template).expect("a certificate is created")
}

fn set(
    engine: &Engine,
    session: SessionHandle,
    object: ObjectHandle,
    attribute: CK_ATTRIBUTE_TYPE,
    value: impl Raw,
) -> Result<()> {
    engine.set_attributes(session, object, vec![row(attribute, value)])
}

/// PKCS#11 3.2 §4.6.3: only identifier, issuer and serial number.
#[test]
fn a_certificate_keeps_its_value_and_subject() {
    let (engine, session) = logged_in();
    let object = certificate(&engine, session);
    for attribute in [CKA_VALUE, CKA_SUBJECT, CKA_URL] {
        let changed = set(&engine, session, object, attribute, &b"other"[..]);
        assert_eq!(changed, Err(Error::ATTRIBUTE_READ_ONLY));
    }
    for attribute in [CKA_ID, CKA_ISSUER, CKA_SERIAL_NUMBER, CKA_LABEL] {
        set(&engine, session, object, attribute, &b"other"[..]).expect("it may be changed");
    }
}

/// What the standard calls "default empty" is answered and found, although it is not written.
#[test]
fn what_a_template_leaves_out_is_empty_and_found_as_empty() {
    let (engine, session) = logged_in();
    let empty: &[u8] = &[];
    let data = engine.create_object(session, vec![row(CKA_CLASS, CKO_DATA)]).expect("created");
    let certificate = certificate(&engine, session);
    let key = aes(&engine, session, vec![]).expect("a key is made");
    let cases: [(ObjectHandle, &[CK_ATTRIBUTE_TYPE]); 5] = [
        (data, &[CKA_LABEL, CKA_APPLICATION, CKA_OBJECT_ID, CKA_VALUE]),
        (certificate, &[CKA_LABEL, CKA_ID, CKA_ISSUER, CKA_SERIAL_NUMBER, CKA_URL]),
        (certificate, &[CKA_START_DATE, CKA_END_DATE, CKA_PUBLIC_KEY_INFO]),
        (certificate, &[CKA_HASH_OF_SUBJECT_PUBLIC_KEY, CKA_HASH_OF_ISSUER_PUBLIC_KEY]),
        (key, &[CKA_LABEL, CKA_ID, CKA_START_DATE, CKA_END_DATE]),
    ];
    for (object, attributes) in cases {
        let shown = engine.object(session, object).expect("it is there");
        for attribute in attributes {
            let answer = shown.answer(*attribute);
            let is_empty = matches!(&answer, Ok(Answer::Value(Value::Bytes(b))) if b.is_empty());
            assert!(is_empty, "attribute {attribute:#x}: {answer:?}");
            engine.find_init(session, vec![row(*attribute, empty)]).expect("a search begins");
            let found = engine.find(session, 10).expect("it runs");
            assert!(found.contains(&object), "attribute {attribute:#x}");
            engine.find_final(session).expect("it ends");
        }
    }
}

#[test]
fn a_key_without_a_list_of_mechanisms_shows_an_empty_one() {
    let (engine, session) = logged_in();
    let key = aes(&engine, session, vec![]).expect("a key is made");
    let shown = engine.object(session, key).expect("it is there");
    let answer = shown.answer(CKA_ALLOWED_MECHANISMS);
    assert!(matches!(answer, Ok(Answer::Value(Value::Ulongs(list))) if list.is_empty()));
}

#[test]
fn a_list_of_no_mechanisms_is_refused() {
    let (engine, session) = logged_in();
    let empty = vec![row(CKA_ALLOWED_MECHANISMS, &[][..])];
    assert_eq!(aes(&engine, session, empty).err(), Some(Error::ATTRIBUTE_VALUE_INVALID));
}

#[test]
fn copies_may_only_shorten_the_list_of_mechanisms() {
    let (engine, session) = logged_in();
    let list = |numbers: &[u64]| numbers.iter().flat_map(|n| n.to_ne_bytes()).collect::<Vec<_>>();
    let copied = |from, numbers: &[u64]| {
        let changes = vec![row(CKA_ALLOWED_MECHANISMS, &list(numbers)[..])];
        engine.copy_object(session, from, changes)
    };
    let free = aes(&engine, session, vec![]).expect("a key is made");
    let two = copied(free, &[CKM_AES_CTR, CKM_AES_GCM]).expect("a limit is set");
    copied(two, &[CKM_AES_GCM]).expect("a shorter list");
    for more in [&[CKM_AES_ECB, CKM_AES_GCM][..], &[]] {
        assert_eq!(copied(two, more), Err(Error::ATTRIBUTE_READ_ONLY));
    }
}

#[test]
fn copies_keep_the_templates_and_the_login_for_each_use() {
    let (engine, session) = logged_in();
    let inner = vec![row(CKA_LABEL, "x")];
    let template = vec![(CKA_WRAP_TEMPLATE, RawValue::Template(inner)), row(CKA_WRAP, true)];
    let key = aes(&engine, session, template).expect("a key is made");
    let emptied = vec![(CKA_WRAP_TEMPLATE, RawValue::Template(vec![]))];
    assert_eq!(engine.copy_object(session, key, emptied), Err(Error::ATTRIBUTE_READ_ONLY));
    let p256 = [0x06, 0x08, 0x2a, 0x86, 0x48, 0xce, 0x3d, 0x03, 0x01, 0x07];
    let made = |private| {
        let (by, public) = (CKM_EC_KEY_PAIR_GEN, vec![row(CKA_EC_PARAMS, &p256[..])]);
        let pair = engine.generate_key_pair(session, by, Params::None, public, vec![private]);
        pair.expect("a pair is made").1
    };
    let copy = |key, template| engine.copy_object(session, key, template).map(drop);
    let asks = |asks: bool| row(CKA_ALWAYS_AUTHENTICATE, asks);
    let lowered = copy(made(asks(true)), vec![asks(false)]);
    assert_eq!(lowered, Err(Error::ATTRIBUTE_READ_ONLY));
    let public = made(row(CKA_PRIVATE, false));
    assert_eq!(copy(public, vec![asks(true)]), Err(Error::TEMPLATE_INCONSISTENT));
    assert_eq!(copy(public, vec![asks(true), row(CKA_PRIVATE, true)]), Ok(()));
}

/// PKCS#11 3.2 §4.10: a token that keeps no check values ignores them.
#[test]
fn a_check_value_is_taken_and_not_kept() {
    let (engine, session) = logged_in();
    let key = aes(&engine, session, vec![row(CKA_CHECK_VALUE, &[1, 2, 3][..])]).expect("made");
    let shown = engine.object(session, key).expect("it is there");
    assert_eq!(shown.answer(CKA_CHECK_VALUE).err(), Some(Error::ATTRIBUTE_TYPE_INVALID));
}

#[test]
fn a_template_of_a_key_keeps_its_order() {
    let (engine, session) = logged_in();
    let inner = || vec![row(CKA_SIGN, true), row(CKA_TOKEN, false), row(CKA_LABEL, "x")];
    let template = vec![(CKA_UNWRAP_TEMPLATE, RawValue::Template(inner())), row(CKA_TOKEN, true)];
    let key = aes(&engine, session, template).expect("a key is made");
    let shown = engine.object(session, key).expect("it is there");
    let Ok(Answer::Value(Value::Template(shown))) = shown.answer(CKA_UNWRAP_TEMPLATE) else {
        panic!("it has a template");
    };
    let order: Vec<_> = shown.iter().map(|(attribute, _)| attribute).collect();
    assert_eq!(order, [CKA_SIGN, CKA_TOKEN, CKA_LABEL]);
}

#[test]
fn what_the_token_keeps_to_itself_is_not_found_by() {
    let (engine, session) = logged_in();
    let key = aes(&engine, session, vec![]).expect("a key is made");
    let found = |template| search(&engine, session, template);
    assert_eq!(found(vec![row(CKA_CLASS, CKO_SECRET_KEY)]), [key]);
    for attribute in [CKA_PURPOSES, CKA_BIRTH_ROLES] {
        for number in 0..256 {
            assert_eq!(found(vec![row(attribute, number)]), [], "{attribute:x} {number}");
        }
    }
}

#[test]
fn a_row_that_is_no_object_fails_alone() {
    let good = Attributes::from_iter([
        (CKA_CLASS, Value::Ulong(CKO_DATA)),
        (CKA_TOKEN, Value::Bool(true)),
        (CKA_MODIFIABLE, Value::Bool(true)),
    ]);
    let (engine, session) = over([vec![0xff; 20], good.encode()], Policy::DEFAULT);
    let all = search(&engine, session, vec![]);
    let [bad, good] = all[..] else { panic!("two rows") };
    assert_eq!(search(&engine, session, vec![row(CKA_MODIFIABLE, true)]), [good]);
    assert_eq!(engine.object(session, bad).map(drop), Err(Error::DEVICE_ERROR));
}

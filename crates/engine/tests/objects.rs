// SPDX-License-Identifier: Apache-2.0
//! Objects: who may set what, who sees what, and what goes when.

mod common;

use common::{Raw, aes, collect, engine, logged_in, open, row};
use metaslot_ck::*;
use metaslot_engine::{Answer, Engine, Params, Policy, RawValue, Template, Value};

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
    engine.encrypt_init(session, key).expect("it may encrypt");
    engine.logout(session).expect("logged in before");
    let after = collect(|out| {
        engine.cipher(metaslot_engine::provider::Direction::Forward, session, &[0; 16], out)
    });
    assert_eq!(after, Err(Error::OPERATION_NOT_INITIALIZED));
    engine.login(session, CKU_USER, b"user-pin").expect("the PIN is right");
    assert_eq!(engine.object(session, key).err(), Some(Error::OBJECT_HANDLE_INVALID));
    assert_eq!(engine.encrypt_init(session, key), Err(Error::KEY_HANDLE_INVALID));
}

trait EncryptInit {
    fn encrypt_init(&self, session: SessionHandle, key: ObjectHandle) -> Result<()>;
}

impl EncryptInit for Engine {
    fn encrypt_init(&self, session: SessionHandle, key: ObjectHandle) -> Result<()> {
        let forward = metaslot_engine::provider::Direction::Forward;
        let params = Params::Gcm {
            iv: metaslot_engine::Bytes::from_slice(&[7; 12]),
            aad: metaslot_engine::Bytes::new(),
            tag_bits: 128,
        };
        self.cipher_init(forward, session, CKM_AES_GCM, params, key)
    }
}

#[test]
fn a_destroyed_key_ends_operations_of_other_sessions() {
    let (engine, session) = logged_in();
    let other = open(&engine);
    let key = aes(&engine, session, vec![]).expect("a key is made");
    engine.encrypt_init(other, key).expect("another session of the slot sees it");
    engine.destroy_object(session, key).expect("it goes");
    let after = collect(|out| {
        engine.cipher(metaslot_engine::provider::Direction::Forward, other, &[0; 16], out)
    });
    assert_eq!(after, Err(Error::OPERATION_NOT_INITIALIZED));
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
fn nobody_needs_to_log_in_for_keys_in_memory() {
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

#[test]
fn trust_written_without_a_login_does_not_count() {
    let engine = engine(Policy::legacy());
    let session = open(&engine);
    let certificate = vec![
        row(CKA_CLASS, CKO_CERTIFICATE),
        row(CKA_CERTIFICATE_TYPE, CKC_X_509),
        row(CKA_TOKEN, true),
        row(CKA_TRUSTED, true),
        row(CKA_VALUE, "der"),
    ];
    let made = engine.create_object(session, certificate).expect("a certificate is kept");
    assert!(!boolean(&engine, session, made, CKA_TRUSTED));
    engine.login(session, CKU_USER, b"user-pin").expect("the PIN is right");
    assert!(!boolean(&engine, session, made, CKA_TRUSTED));
    let label = vec![row(CKA_LABEL, "mine")];
    engine.set_attributes(session, made, label).expect("the row is written again, verified now");
    assert!(!boolean(&engine, session, made, CKA_TRUSTED));
}

// SPDX-License-Identifier: Apache-2.0
//! Rows of a store that others have written: whatever stands in them, they are answered, searched, changed and used, or
//! refused.

use crate::input::{Input, Seen};
use crate::tokens::{engine, filled, find, shown};
use metaslot_ck::attribute::AttributeRow;
use metaslot_ck::*;
use metaslot_engine::{Engine, Policy};
use metaslot_memory::Secret;
use metaslot_models::{MemoryStore, open, row};
use metaslot_spi::provider::Direction::Forward;
use metaslot_spi::store::{Change, Record, Store};
use metaslot_spi::{Attributes, Params, Secrets, Value};

pub(crate) fn run(bytes: &[u8]) -> u64 {
    let mut seen = Seen::default();
    // As they stand in a file.
    if let Ok(attributes) = Attributes::decode(bytes) {
        let again = Attributes::decode(&attributes.encode());
        assert_eq!(again.as_ref(), Ok(&attributes), "what is written is not read again");
    }
    seen.result(&Secrets::decode(&Secret::copy_of(bytes)));
    let store = MemoryStore::default();
    let input = &mut Input(bytes);
    let verified = input.is(2);
    if verified {
        store.login(metaslot_spi::store::Role::User, b"user-pin").expect("the PIN is right");
    }
    for _ in 0..=input.byte() % 3 {
        let record = record(input);
        store.write(vec![Change::Insert(record)]).expect("there is room");
    }
    store.logout();
    let engine = engine(store, Policy::legacy(), input.is(2));
    let session = open(&engine);
    if !input.is(4) {
        engine.login(session, CKU_USER, b"user-pin").expect("the PIN is right");
    }
    let found = find(&engine, session, Vec::new());
    seen.result(&found);
    for object in found.unwrap_or_default() {
        use_all(&engine, session, object, &mut seen);
    }
    seen.finish()
}

/// A row of this or that.
fn record(input: &mut Input<'_>) -> Record {
    let private = input.is(3);
    let mut attributes = Attributes::new();
    let class = input.one_of(&[CKO_SECRET_KEY, CKO_PRIVATE_KEY, CKO_PUBLIC_KEY, CKO_DATA]);
    attributes.set(CKA_CLASS, Value::Ulong(class));
    attributes.set(CKA_TOKEN, Value::Bool(true));
    attributes.set(CKA_PRIVATE, Value::Bool(private));
    let key_type = input.one_of(&[CKK_AES, CKK_RSA, CKK_EC, CKK_GENERIC_SECRET, CKK_EC_EDWARDS]);
    attributes.set(CKA_KEY_TYPE, Value::Ulong(key_type));
    for usage in [CKA_ENCRYPT, CKA_SIGN, CKA_VERIFY, CKA_WRAP, CKA_UNWRAP, CKA_DERIVE, CKA_COPYABLE]
    {
        attributes.set(usage, Value::Bool(true));
    }
    for _ in 0..input.byte() % 8 {
        let attribute = input.attribute();
        attributes.set(attribute, any(input, 0));
    }
    let mut bytes = attributes.encode();
    if input.is(3) {
        bytes.extend(input.bytes());
    }
    let mut secrets = Secrets::new();
    for _ in 0..input.byte() % 4 {
        let attribute = input.one_of(&[CKA_VALUE, CKA_PRIVATE_EXPONENT, CKA_PRIME_1, CKA_LABEL]);
        secrets.set(attribute, Secret::copy_of(input.bytes()));
    }
    let sealed = if input.is(4) { Secret::copy_of(input.bytes()) } else { secrets.encode() };
    let secrets = (!input.is(5)).then_some(sealed);
    Record { private, attributes: bytes, secrets, terms: Vec::new() }
}

/// A value of any kind, whatever the attribute.
fn any(input: &mut Input<'_>, depth: usize) -> Value {
    match input.byte() % 6 {
        0 => Value::Bool(input.is(2)),
        1 => Value::Ulong(input.number()),
        2 | 3 => Value::Bytes(input.bytes().to_vec()),
        4 => Value::Ulongs((0..input.byte() % 4).map(|_| input.number()).collect()),
        _ if depth > 3 => Value::Template(Attributes::new()),
        _ => {
            let mut inner = Attributes::new();
            for _ in 0..input.byte() % 4 {
                let attribute = input.attribute();
                inner.set(attribute, any(input, depth + 1));
            }
            Value::Template(inner)
        }
    }
}

fn use_all(engine: &Engine, session: SessionHandle, object: ObjectHandle, seen: &mut Seen) {
    for row in AttributeRow::all() {
        seen.note(shown(engine, session, object, row.number).is_ok());
    }
    seen.result(&engine.object_size(session, object));
    for mechanism in [CKM_AES_CBC, CKM_AES_GCM, CKM_RSA_PKCS] {
        let init = engine.cipher_init(Forward, session, mechanism, params(mechanism), object);
        seen.result(&init);
        if init.is_ok() {
            seen.note(filled(|out| engine.cipher(Forward, session, &[0; 16], out)).0);
        }
    }
    for mechanism in [CKM_SHA256_RSA_PKCS, CKM_ECDSA, CKM_EDDSA, CKM_SHA256_HMAC, CKM_AES_CMAC] {
        let init = engine.sign_init(session, mechanism, Params::None, object);
        seen.result(&init);
        if init.is_ok() {
            seen.note(filled(|out| engine.sign(session, &[0; 32], out)).0);
        }
        let init = engine.verify_init(session, mechanism, Params::None, object);
        seen.result(&init);
        if init.is_ok() {
            seen.result(&engine.verify(session, &[0; 32], &[0; 64]));
        }
    }
    let wrap = |mechanism| {
        filled(|out| engine.wrap_key(session, mechanism, params(mechanism), object, object, out)).0
    };
    seen.note([CKM_AES_KEY_WRAP_KWP, CKM_AES_GCM].map(wrap));
    let template = || vec![row(CKA_CLASS, CKO_SECRET_KEY), row(CKA_KEY_TYPE, CKK_AES)];
    let (mechanism, blob) = (CKM_AES_KEY_WRAP, &[0; 24]);
    seen.result(&engine.unwrap_key(session, mechanism, Params::None, object, blob, template()));
    seen.result(&engine.derive_key(session, CKM_HKDF_DERIVE, hkdf(), object, template()));
    seen.result(&engine.copy_object(session, object, vec![row(CKA_TOKEN, false)]));
    seen.result(&engine.set_attributes(session, object, vec![row(CKA_LABEL, "label")]));
    seen.result(&engine.destroy_object(session, object));
}

fn params(mechanism: CK_MECHANISM_TYPE) -> Params {
    match mechanism {
        CKM_AES_CBC => Params::Iv([0; 16].into()),
        CKM_AES_GCM => Params::Gcm { iv: [0; 12][..].into(), aad: [][..].into(), tag_bits: 128 },
        _ => Params::None,
    }
}

fn hkdf() -> Params {
    Params::Hkdf {
        extract: true,
        expand: true,
        prf: CKM_SHA256,
        salt_type: CKF_HKDF_SALT_NULL,
        salt: [][..].into(),
        salt_key: ObjectHandle(0),
        info: [][..].into(),
    }
}

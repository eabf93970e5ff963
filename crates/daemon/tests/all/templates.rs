// SPDX-License-Identifier: Apache-2.0
//! What a key of the daemon imposes on those that come of it, as our version of the protocol carries it: whole.

use crate::common::{configured, started};
use crate::itself::{self, Itself};
use crate::ours::{X25519, code, logged_in, readable};
use metaslot_ck::*;
use metaslot_client::protocol::{OWN, VERSION};
use metaslot_client::{Mechanism, Params, Session, Template, Value};
use metaslot_testkit::{module_path, not_run};

fn secret() -> Template {
    Template::new().class(CKO_SECRET_KEY).key_type(CKK_GENERIC_SECRET)
}

/// The same with each value as its bytes, in the order of the attributes' numbers.
fn as_bytes(template: &Template) -> Vec<(CK_ATTRIBUTE_TYPE, String)> {
    let bytes = |value: &Value| match value {
        Value::Bool(flag) => format!("{:?}", [u8::from(*flag)]),
        Value::Ulong(number) => format!("{:?}", number.to_ne_bytes()),
        Value::Bytes(bytes) => format!("{bytes:?}"),
        Value::Mechanisms(all) => {
            format!("{:?}", all.iter().flat_map(|one| one.to_ne_bytes()).collect::<Vec<_>>())
        }
        Value::Template(inner) => format!("{:?}", as_bytes(inner)),
    };
    let mut all: Vec<_> = template.iter().map(|(one, value)| (one, bytes(value))).collect();
    all.sort_unstable_by_key(|(one, _)| *one);
    all
}

#[test]
fn templates_are_read_whole() {
    let inner = Template::new().label("inner").bool(CKA_DERIVE, true).bytes(CKA_ID, vec![9; 5000]);
    let all = Template::new()
        .ulong(CKA_KEY_TYPE, CKK_GENERIC_SECRET)
        .with(CKA_DERIVE_TEMPLATE, Value::Template(inner))
        .bytes(CKA_ID, vec![7; 70_000])
        .bytes(CKA_LABEL, b"")
        .with(CKA_ALLOWED_MECHANISMS, Value::Mechanisms(vec![CKM_HKDF_DERIVE, CKM_SHA256_HMAC]))
        .bool(CKA_SENSITIVE, true);
    let value = secret().bytes(CKA_VALUE, [7; 32]).bool(CKA_DERIVE, true);
    let empty = value.clone().with(CKA_DERIVE_TEMPLATE, Value::Template(Template::new()));
    let full = value.clone().with(CKA_DERIVE_TEMPLATE, Value::Template(all.clone()));
    for (client, server) in [(OWN, OWN), (OWN, VERSION), (VERSION, OWN)] {
        let (_place, _module, session) = logged_in(client, server);
        let read = |key| session.template_attribute(key, CKA_DERIVE_TEMPLATE);
        let plain = session.create(&value).expect("it is created");
        assert_eq!(read(plain), Ok(None));
        if client.min(server) < OWN {
            continue;
        }
        let full = session.create(&full).expect("it is created");
        let told = read(full).expect("it is read").expect("it is there");
        assert_eq!(as_bytes(&told), as_bytes(&all));
        assert_eq!(session.template_attribute(full, CKA_LABEL).ok().flatten(), None);
        let deeper = Template::new().with(CKA_DERIVE_TEMPLATE, Value::Template(all.clone()));
        let deeper = value.clone().with(CKA_DERIVE_TEMPLATE, Value::Template(deeper));
        assert_eq!(code(session.create(&deeper)), Some(Error::ARGUMENTS_BAD));
        let empty = session.create(&empty).expect("it is created");
        assert_eq!(read(empty), Ok(None));
        let gone = session.template_attribute(ObjectHandle(u64::MAX), CKA_DERIVE_TEMPLATE);
        assert_eq!(code(gone), Some(Error::OBJECT_HANDLE_INVALID));
    }
}

fn label(session: &Session, key: ObjectHandle) -> String {
    session.attribute_text(key, CKA_LABEL).expect("a label")
}

/// Uses the token's keys by `libmetaslot.so`.
#[test]
fn client() {
    let Some((_module, session)) = itself::logged_in() else { return };
    let find = |class, label| {
        let wanted = Template::new().class(class).label(label);
        session.find_one(&wanted).expect("a search").expect("it is there")
    };
    let inconsistent = Some(Error::TEMPLATE_INCONSISTENT);
    let public = session.attribute(find(CKO_PUBLIC_KEY, "agrees"), CKA_EC_POINT);
    let public = public.expect("a point");
    let ecdh = Params::Ecdh1 { kdf: CKD_NULL, shared: b"", public: &public };
    let ecdh = Mechanism::with(CKM_ECDH1_DERIVE, ecdh);
    let agrees = find(CKO_PRIVATE_KEY, "agrees");
    let made = session.derive(&ecdh, agrees, &readable(32)).expect("a secret");
    assert_eq!(label(&session, made), "imposed");
    let against = readable(32).label("other");
    assert_eq!(code(session.derive(&ecdh, agrees, &against)), inconsistent);
    // What stands in the template's own template is imposed on the next.
    let hkdf = Params::Hkdf {
        extract: true,
        expand: true,
        prf: CKM_SHA256,
        salt_type: CKF_HKDF_SALT_NULL,
        salt: b"",
        salt_key: ObjectHandle(0),
        info: b"",
    };
    let hkdf = Mechanism::with(CKM_HKDF_DERIVE, hkdf);
    let next = session.derive(&hkdf, made, &readable(32)).expect("a secret");
    assert_eq!(label(&session, next), "of it");
    assert_eq!(code(session.derive(&hkdf, made, &against)), inconsistent);
    let kem = Mechanism::new(CKM_ML_KEM);
    let (public, private) = (find(CKO_PUBLIC_KEY, "opens"), find(CKO_PRIVATE_KEY, "opens"));
    let (sealed, one) = session.encapsulate(&kem, public, &readable(32)).expect("a secret");
    let other = session.decapsulate(&kem, private, &sealed, &readable(32)).expect("a secret");
    assert_eq!(label(&session, other), "imposed");
    assert!(!session.attribute_bool(other, CKA_SIGN).expect("a flag"));
    let value = |key| session.attribute(key, CKA_VALUE).expect("it may be read");
    assert_eq!(value(one), value(other));
    for against in [readable(32).label("other"), readable(32).bool(CKA_SIGN, true)] {
        assert_eq!(code(session.decapsulate(&kem, private, &sealed, &against)), inconsistent);
    }
    // What is wrapped has what the wrapping key wants.
    let key = |kind: CK_MECHANISM_TYPE, sign| {
        let template = Template::new().ulong(CKA_VALUE_LEN, 16).bool(CKA_EXTRACTABLE, true);
        session.generate_key(&kind.into(), &template.bool(CKA_SIGN, sign)).expect("a key")
    };
    for (kind, sign, refused) in [
        (CKM_AES_KEY_GEN, false, None),
        (CKM_AES_KEY_GEN, true, Some(Error::KEY_HANDLE_INVALID)),
        (CKM_GENERIC_SECRET_KEY_GEN, false, Some(Error::KEY_HANDLE_INVALID)),
    ] {
        let wrapping = find(CKO_SECRET_KEY, "wraps");
        let wrapped = session.wrap(&CKM_AES_KEY_WRAP_KWP.into(), wrapping, key(kind, sign));
        assert_eq!(code(wrapped), refused, "{kind:#x} {sign}");
    }
    // One that keeps the value in the token lets no key of the session be made, and one of the token.
    let keeps = find(CKO_PRIVATE_KEY, "keeps");
    let kept = secret().ulong(CKA_VALUE_LEN, 32);
    for template in [kept.clone(), readable(32)] {
        assert_eq!(code(session.derive(&ecdh, keeps, &template)), inconsistent);
    }
    let there = session.derive(&ecdh, keeps, &kept.token(true).bool(CKA_PRIVATE, true));
    let there = there.unwrap_or_else(|error| panic!("{error}: {:?}", session.module().detail()));
    assert!(!session.attribute_bool(there, CKA_EXTRACTABLE).expect("a flag"));
}

#[test]
fn what_a_key_of_the_daemon_imposes_is_imposed_on_keys_of_the_librarys_sessions() {
    let Some(module) = module_path() else {
        return not_run("metaslotd", "templates", "there is no libmetaslot.so");
    };
    let (place, _module, session) = logged_in(OWN, OWN);
    let named = |label| Template::new().label(label).token(true);
    let pair = |generate: CK_MECHANISM_TYPE, public: &Template, private: &Template| {
        session.generate_key_pair(&generate.into(), public, private).expect("a pair is made");
    };
    let of_it = Template::new().label("of it");
    let imposed = Template::new().label("imposed").bool(CKA_DERIVE, true);
    let imposed = imposed.with(CKA_DERIVE_TEMPLATE, Value::Template(of_it));
    let keeps = Template::new().bool(CKA_EXTRACTABLE, false);
    for (label, template) in [("agrees", imposed), ("keeps", keeps)] {
        let private = named(label).bool(CKA_DERIVE, true);
        let private = private.with(CKA_DERIVE_TEMPLATE, Value::Template(template));
        let public = named(label).bytes(CKA_EC_PARAMS, X25519);
        pair(CKM_EC_MONTGOMERY_KEY_PAIR_GEN, &public, &private);
    }
    let imposed = Template::new().label("imposed").bool(CKA_SIGN, false);
    let private = named("opens").bool(CKA_DECAPSULATE, true);
    let private = private.with(CKA_DECAPSULATE_TEMPLATE, Value::Template(imposed));
    let public = named("opens").ulong(CKA_PARAMETER_SET, CKP_ML_KEM_512);
    pair(CKM_ML_KEM_KEY_PAIR_GEN, &public.bool(CKA_ENCAPSULATE, true), &private);
    let wanted = Template::new().key_type(CKK_AES).bool(CKA_SIGN, false);
    let wraps = named("wraps").ulong(CKA_VALUE_LEN, 32).bool(CKA_WRAP, true);
    let wraps = wraps.with(CKA_WRAP_TEMPLATE, Value::Template(wanted));
    session.generate_key(&CKM_AES_KEY_GEN.into(), &wraps).expect("a key is made");
    configured(&place);
    let _server = started(&place);
    Itself::started(&place, "templates::client", &module).rest();
}

// SPDX-License-Identifier: Apache-2.0
//! What is told of an object, attribute by attribute: through the daemon as by the token inside a process (PKCS#11 3.2 §5.7.5).

use crate::common::{Place, USER, configured, initialized, started};
use crate::itself::{self, Itself};
use metaslot_ck::attribute::{AttributeRow, CKA_METASLOT_HOME, Kind};
use metaslot_ck::*;
use metaslot_client::{Access, Module, Session, Template, User, Value};
use metaslot_testkit::{module_path, not_run};
use std::collections::BTreeSet;
use std::fs;

const P256: [u8; 10] = [0x06, 0x08, 0x2a, 0x86, 0x48, 0xce, 0x3d, 0x03, 0x01, 0x07];

fn session(module: &Module) -> Session {
    module.initialize().expect("it begins");
    let slot = module.slots(true).expect("its slots")[0];
    let session = module.open_session(slot, Access::ReadWrite).expect("a session");
    session.login(User::User, USER).expect("the PIN");
    session
}

/// Each attribute that there is of each object of the token: its value, or the code.
fn told(session: &Session) -> BTreeSet<String> {
    let mut told = BTreeSet::new();
    for object in session.find(&Template::new().token(true)).expect("a search") {
        let class = session.attribute(object, CKA_CLASS).expect("a class")[0];
        let label = session.attribute_text(object, CKA_LABEL).expect("a label");
        for row in AttributeRow::all().iter().filter(|row| row.number != CKA_METASLOT_HOME) {
            let value = if row.kind == Kind::Template {
                let template = session.template_attribute(object, row.number);
                let numbers = |all: Template| all.iter().map(|(one, _)| one).collect::<Vec<_>>();
                format!("{:?}", template.map(|template| template.map(numbers)).ok())
            } else {
                let value = session.attribute(object, row.number);
                format!("{:x?}", value.map_err(|failed| failed.code))
            };
            told.insert(format!("{label} {class} {:#x} {value}", row.number));
        }
    }
    told
}

/// Every kind of object, and of each kind of key one that may be read and one that may not.
fn objects(session: &Session) {
    let flags = |all: Template, flags: &[CK_ATTRIBUTE_TYPE]| {
        flags.iter().fold(all, |all, flag| all.bool(*flag, true))
    };
    let inner = |attribute| Value::Template(Template::new().bool(attribute, true));
    for (name, sensitive, extractable) in [
        ("kept", true, false),
        ("open", false, true),
        ("sealed", true, true),
        ("shown", false, false),
    ] {
        let named = |kind: &str| Template::new().label(&format!("{name} {kind}")).token(true);
        let private = |kind: &str| {
            named(kind).bool(CKA_SENSITIVE, sensitive).bool(CKA_EXTRACTABLE, extractable)
        };
        for (kind, generate, public) in [
            ("ec", CKM_EC_KEY_PAIR_GEN, named("ec").bytes(CKA_EC_PARAMS, P256)),
            ("rsa", CKM_RSA_PKCS_KEY_PAIR_GEN, named("rsa").ulong(CKA_MODULUS_BITS, 2048)),
            ("kem", CKM_ML_KEM_KEY_PAIR_GEN, {
                let public = named("kem").ulong(CKA_PARAMETER_SET, CKP_ML_KEM_512);
                let public = public.bool(CKA_ENCAPSULATE, true);
                public.with(CKA_ENCAPSULATE_TEMPLATE, inner(CKA_EXTRACTABLE))
            }),
        ] {
            session.generate_key_pair(&generate.into(), &public, &private(kind)).expect("a pair");
        }
        let aes = flags(private("aes"), &[CKA_WRAP, CKA_UNWRAP]).ulong(CKA_VALUE_LEN, 32);
        let aes = aes.with(CKA_WRAP_TEMPLATE, inner(CKA_EXTRACTABLE));
        let aes = aes.with(CKA_UNWRAP_TEMPLATE, inner(CKA_SENSITIVE));
        session.generate_key(&CKM_AES_KEY_GEN.into(), &aes).expect("a key");
        let generic = private("generic").ulong(CKA_VALUE_LEN, 20);
        session.generate_key(&CKM_GENERIC_SECRET_KEY_GEN.into(), &generic).expect("a key");
    }
    let data = Template::new().class(CKO_DATA).token(true).label("data").bytes(CKA_VALUE, b"abc");
    session.create(&data).expect("an object");
}

/// Says what it is told.
#[test]
fn client() {
    let Some((_module, session)) = itself::logged_in() else { return };
    told(&session).iter().for_each(|line| itself::say(line));
}

#[test]
fn through_the_daemon_the_same_is_told_as_inside() {
    let Some(module) = module_path() else {
        return not_run("metaslotd", "attributes", "there is no libmetaslot.so");
    };
    let place = Place::new();
    initialized(&place);
    configured(&place);
    let _server = started(&place);
    let remote = place.module_of_program();
    let session = session(&remote);
    objects(&session);
    let by_itself = || {
        let told = Itself::started(&place, "told::client", &module).rest();
        told.into_iter().collect::<BTreeSet<_>>()
    };
    let through = by_itself();
    let at = place.path().display();
    let inside = format!(
        "counters = false\n[[token]]\npath = \"{at}/token/token.db\"\nkdf = \"weak-for-tests\"\n"
    );
    fs::write(place.path().join("metaslot.toml"), inside).expect("it is written");
    let inside = by_itself();
    assert!(inside.len() > 1000, "{}", inside.len());
    for (who, said) in [("our library", through), ("our client", told(&session))] {
        let lacks = Vec::from_iter(inside.difference(&said));
        let other = Vec::from_iter(said.difference(&inside));
        assert!(lacks.is_empty() && other.is_empty(), "{who}: {other:#?} for {lacks:#?}");
    }
}

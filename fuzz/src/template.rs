// SPDX-License-Identifier: Apache-2.0
//! Templates: objects are made, changed, copied and searched for by whatever. What an object shows finds it, and what a
//! search finds shows what was asked for.

use crate::input::{Input, Seen};
use crate::tokens::{find, raw, session, shown};
use metaslot_ck::attribute::{AttributeRow, Kind};
use metaslot_ck::*;
use metaslot_engine::{Engine, Policy};
use metaslot_models::row;
use metaslot_spi::{Params, RawValue, Template};

/// Calls of one input.
const CALLS: usize = 12;

pub(crate) fn run(bytes: &[u8]) -> u64 {
    let input = &mut Input(bytes);
    let mut seen = Seen::default();
    let policy = if input.is(2) { Policy::legacy() } else { Policy::DEFAULT };
    let (engine, session) = session(policy, false);
    let mut objects = Vec::new();
    for _ in 0..CALLS {
        if input.is_empty() {
            break;
        }
        let made = call(input, &mut seen, &engine, session, &objects);
        seen.result(&made);
        for object in made.unwrap_or_default() {
            check_shown(&engine, session, object);
            objects.push(object);
        }
    }
    seen.finish()
}

fn call(
    input: &mut Input<'_>,
    seen: &mut Seen,
    engine: &Engine,
    session: SessionHandle,
    objects: &[ObjectHandle],
) -> Result<Vec<ObjectHandle>> {
    let which = input.byte() % 10;
    seen.note(which);
    let known =
        if objects.is_empty() { ObjectHandle(input.number()) } else { input.one_of(objects) };
    match which {
        0 | 1 => {
            let template = base(input.byte());
            engine.create_object(session, input.like(template)).map(|object| vec![object])
        }
        2 => {
            let template = input.like(vec![row(CKA_VALUE_LEN, 16)]);
            let mechanism = input.one_of(&[CKM_AES_KEY_GEN, CKM_GENERIC_SECRET_KEY_GEN]);
            let made = engine.generate_key(session, mechanism, Params::None, template);
            made.map(|object| vec![object])
        }
        3 => {
            let curve = vec![row(CKA_EC_PARAMS, P256)];
            let (public, private) = (input.like(curve), input.template(0));
            let mechanism = CKM_EC_KEY_PAIR_GEN;
            let made = engine.generate_key_pair(session, mechanism, Params::None, public, private);
            made.map(|(public, private)| vec![public, private])
        }
        4 => engine.copy_object(session, known, input.template(0)).map(|object| vec![object]),
        5 => {
            engine.set_attributes(session, known, input.template(0))?;
            check_shown(engine, session, known);
            Ok(Vec::new())
        }
        6 => {
            engine.object_size(session, known)?;
            engine.destroy_object(session, known)?;
            Ok(Vec::new())
        }
        7 => {
            engine.logout(session)?;
            Ok(Vec::new())
        }
        8 => engine.login(session, CKU_USER, b"user-pin").map(|()| Vec::new()),
        _ => {
            let template =
                if input.is(3) { input.template(0) } else { like(input, engine, session, known) };
            let (template, again) = twice(template);
            for object in find(engine, session, template)? {
                check_found(engine, session, object, &again);
            }
            Ok(Vec::new())
        }
    }
}

/// DER of the curve's name.
const P256: &[u8] = &[0x06, 0x08, 0x2a, 0x86, 0x48, 0xce, 0x3d, 0x03, 0x01, 0x07];

/// A template that makes an object.
fn base(which: u8) -> Template {
    let class = |class: u64| row(CKA_CLASS, class);
    let key_type = |key_type: u64| row(CKA_KEY_TYPE, key_type);
    match which % 5 {
        0 => vec![class(CKO_DATA), row(CKA_VALUE, "data")],
        1 => vec![
            class(CKO_CERTIFICATE),
            row(CKA_CERTIFICATE_TYPE, CKC_X_509),
            row(CKA_SUBJECT, "subject"),
            row(CKA_VALUE, "certificate"),
        ],
        2 => vec![class(CKO_SECRET_KEY), key_type(CKK_AES), row(CKA_VALUE, &[7; 16][..])],
        3 => vec![
            class(CKO_PUBLIC_KEY),
            key_type(CKK_RSA),
            row(CKA_MODULUS, &[0xff; 128][..]),
            row(CKA_PUBLIC_EXPONENT, &[1, 0, 1][..]),
        ],
        _ => vec![
            class(CKO_PRIVATE_KEY),
            key_type(CKK_EC),
            row(CKA_EC_PARAMS, P256),
            row(CKA_VALUE, &[1; 32][..]),
        ],
    }
}

/// Attributes as the object has them, as far as it shows them.
fn like(
    input: &mut Input<'_>,
    engine: &Engine,
    session: SessionHandle,
    object: ObjectHandle,
) -> Template {
    let mut template = Template::new();
    for _ in 0..1 + input.byte() % 3 {
        let attribute = input.attribute();
        let value = match shown(engine, session, object, attribute) {
            Ok(value) => raw(&value),
            // What it does not show, it is not found by, whatever the number.
            Err(_) if AttributeRow::kind_of(attribute) == Some(Kind::Ulong) => {
                RawValue::Bytes(u64::from(input.byte()).to_ne_bytes().to_vec())
            }
            Err(_) => input.value(attribute, 1),
        };
        template.push((attribute, value));
    }
    template
}

/// Two of the same: a call takes its template.
fn twice(template: Template) -> (Template, Template) {
    let copy = |value: &RawValue| match value {
        RawValue::Template(inner) => {
            // The values in it are compared through the first one.
            RawValue::Template(inner.iter().map(|(attribute, _)| (*attribute, empty())).collect())
        }
        other => RawValue::Bytes(other.bytes().expect("it is no template").to_vec()),
    };
    let again = template.iter().map(|(attribute, value)| (*attribute, copy(value))).collect();
    (template, again)
}

const fn empty() -> RawValue {
    RawValue::Bytes(Vec::new())
}

/// Each attribute that the object shows finds it, alone and with the class beside it.
pub(crate) fn check_shown(engine: &Engine, session: SessionHandle, object: ObjectHandle) {
    let mut numbers: Vec<_> = AttributeRow::all().iter().map(|row| row.number).collect();
    numbers.dedup();
    let Ok(class) = shown(engine, session, object, CKA_CLASS) else { return };
    for attribute in numbers {
        let Ok(value) = shown(engine, session, object, attribute) else { continue };
        let mut template = vec![(attribute, raw(&value))];
        if attribute != CKA_CLASS {
            template.push((CKA_CLASS, raw(&class)));
        }
        let found = find(engine, session, template);
        let found = found.unwrap_or_else(|error| panic!("{}: {error}", name(attribute)));
        assert!(found.contains(&object), "{} is {value:?} and finds nothing", name(attribute));
    }
}

/// What was found shows each attribute that was asked for, as it was asked for.
fn check_found(engine: &Engine, session: SessionHandle, object: ObjectHandle, asked: &Template) {
    for (attribute, value) in asked {
        let there = shown(engine, session, object, *attribute);
        let there = there.unwrap_or_else(|error| panic!("{}: {error}", name(*attribute)));
        if let (Ok(value), Ok(there)) = (value.bytes(), raw(&there).bytes()) {
            let zeros = value.iter().take_while(|byte| **byte == 0).count();
            let equal = value == there || &value[zeros..] == there || there == [1];
            assert!(equal, "{} was asked as {value:02x?}, is {there:02x?}", name(*attribute));
        }
    }
}

fn name(attribute: CK_ATTRIBUTE_TYPE) -> String {
    attribute_name(attribute).map_or_else(|| format!("{attribute:#x}"), str::to_owned)
}

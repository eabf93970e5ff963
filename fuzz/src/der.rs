// SPDX-License-Identifier: Apache-2.0
//! DER: private keys in PKCS #8 and the other structures that callers bring. A key that is taken computes the same with the
//! lanes and without, in ordinary sessions and in asynchronous ones.

use crate::input::{Seen, code};
use crate::tokens::{Answers, filled, pair, providers, same};
use metaslot_ck::*;
use metaslot_engine::Engine;
use metaslot_models::row;
use metaslot_spi::der::{Node, Reader};
use metaslot_spi::key_info::{EcParams, PrivateKeyInfo, ec_point, number_point};
use metaslot_spi::{NewObject, Params, Template, Value};

/// Signatures of which every one is the same, with the length of what they sign.
const SIGNATURES: [(CK_MECHANISM_TYPE, usize); 6] = [
    (CKM_RSA_PKCS, 20),
    (CKM_SHA256_RSA_PKCS, 20),
    (CKM_RSA_X_509, 0),
    (CKM_RSA_X_509, 100),
    (CKM_RSA_X_509, 512),
    (CKM_EDDSA, 20),
];
/// As a number of its length it is above every modulus.
const DATA: &[u8] = &[0xff; 512];
/// What a caller may leave out, because it follows from the rest.
const FOLLOWS: [CK_ATTRIBUTE_TYPE; 5] =
    [CKA_PRIME_1, CKA_PRIME_2, CKA_EXPONENT_1, CKA_EXPONENT_2, CKA_COEFFICIENT];

pub(crate) fn run(bytes: &[u8]) -> u64 {
    let mut seen = Seen::default();
    parse(bytes, &mut seen);
    // Curves that the plain provider does not have are the lanes' alone.
    let [lanes, plain] = providers().map(|provider| provider.decode_private_key(bytes));
    seen.result(&lanes);
    seen.result(&plain);
    // The numbers of an RSA key are brought as they are, all of them or those that a caller must know.
    match (rsa(bytes), plain) {
        (Some(key), _) => compare(&key, [0, 3, 5][bytes.len() % 3], &mut seen),
        (None, Ok(key)) => compare(&key, 0, &mut seen),
        (None, Err(_)) => {}
    }
    seen.finish()
}

fn parse(bytes: &[u8], seen: &mut Seen) {
    let info = PrivateKeyInfo::parse(bytes);
    seen.note(info.is_ok());
    seen.note(info.is_ok_and(|info| info.ec().is_ok()));
    seen.result(&EcParams::parse(bytes));
    for length in [28, 32, 48, 66] {
        assert!(ec_point(length, bytes).len() <= bytes.len(), "a point out of nothing");
    }
    seen.note(number_point::<32>(bytes).is_some());
    if let Ok(number) = Reader::new(bytes).integer() {
        let written = Node::Integer(number).to_vec();
        assert!(bytes.starts_with(&written), "two forms of a number: {written:02x?}");
    }
}

/// The numbers of an RSA key, of which nothing was checked.
fn rsa(bytes: &[u8]) -> Option<NewObject> {
    let mut numbers = PrivateKeyInfo::parse(bytes).ok()?.private.sequence().ok()?;
    numbers.integer().ok()?;
    let mut key = NewObject::default();
    key.attributes.set(CKA_KEY_TYPE, Value::Ulong(CKK_RSA));
    for number in [CKA_MODULUS, CKA_PUBLIC_EXPONENT] {
        key.attributes.set(number, Value::Bytes(numbers.integer().ok()?.to_vec()));
    }
    for number in [CKA_PRIVATE_EXPONENT].into_iter().chain(FOLLOWS) {
        let number_of_key = metaslot_memory::Secret::copy_of(numbers.integer().ok()?);
        key.secrets.set(number, number_of_key);
    }
    Some(key)
}

/// Brings the key to both engines, without the last `left_out` of what follows, and compares all that
/// they say.
fn compare(key: &NewObject, left_out: usize, seen: &mut Seen) {
    for flags in [0, CKF_ASYNC_SESSION] {
        let [lanes, plain] = pair(flags).map(|(engine, session)| {
            let answers = answers(engine, session, key, left_out);
            engine.close_session(session).expect("it was open");
            answers
        });
        same((flags, key), &lanes, &plain);
        lanes.iter().for_each(|answer| seen.note(answer.0));
    }
}

fn answers(engine: &Engine, session: SessionHandle, key: &NewObject, left_out: usize) -> Answers {
    let private = engine.create_object(session, template(key, CKO_PRIVATE_KEY, left_out));
    let public = engine.create_object(session, template(key, CKO_PUBLIC_KEY, 0));
    let mut answers = vec![(code(&private), Vec::new()), (code(&public), Vec::new())];
    let Ok(private) = private else { return answers };
    for (mechanism, length) in SIGNATURES {
        let init = engine.sign_init(session, mechanism, Params::None, private);
        answers.push((code(&init), Vec::new()));
        if init.is_err() {
            continue;
        }
        let mut signed = filled(|out| engine.sign(session, &DATA[..length], out));
        if signed.0 == Error::PENDING.rv() {
            signed = complete(engine, session, Function::Sign);
        }
        if let (Ok(public), 0) = (public, signed.0) {
            let init = engine.verify_init(session, mechanism, Params::None, public);
            let verified = init.and_then(|()| engine.verify(session, &DATA[..length], &signed.1));
            answers.push(match verified {
                Err(Error::PENDING) => complete(engine, session, Function::Verify),
                other => (code(&other), Vec::new()),
            });
        }
        answers.push(signed);
    }
    answers
}

/// What comes of an operation that its call has left pending.
fn complete(engine: &Engine, session: SessionHandle, function: Function) -> (u64, Vec<u8>) {
    let mut room = vec![0; 1024];
    loop {
        let place = &mut room;
        match engine.async_complete(session, function, |there| &mut place[..there.length]) {
            Err(Error::PENDING) => {}
            Ok(written) => return (0, room[..written.length].to_vec()),
            Err(error) => return (error.rv(), Vec::new()),
        }
    }
}

fn template(key: &NewObject, class: CK_OBJECT_CLASS, left_out: usize) -> Template {
    let mut template = vec![row(CKA_CLASS, class), row(CKA_SIGN, true), row(CKA_VERIFY, true)];
    for (attribute, value) in key.attributes.iter() {
        let of_public = class == CKO_PUBLIC_KEY || attribute != CKA_EC_POINT;
        if attribute == CKA_CLASS || !of_public {
            continue;
        }
        match value {
            Value::Ulong(number) => template.push(row(attribute, *number)),
            Value::Bytes(bytes) => template.push(row(attribute, &bytes[..])),
            _ => {}
        }
    }
    if class == CKO_PUBLIC_KEY {
        template.retain(|(attribute, _)| *attribute != CKA_SIGN);
        return template;
    }
    template.retain(|(attribute, _)| *attribute != CKA_VERIFY);
    let left_out = &FOLLOWS[FOLLOWS.len() - left_out..];
    let there = key.secrets.iter().filter(|(number, _)| !left_out.contains(number));
    template.extend(there.map(|(attribute, value)| row(attribute, value)));
    template
}

// SPDX-License-Identifier: Apache-2.0
//! A server that does not answer as it must: what the engine, whose token its keys are, makes of that.

use crate::common::{Place, USER};
use crate::ours::logged_in;
use metaslot_ck::*;
use metaslot_client::protocol::{Call, OWN};
use metaslot_client::{Session, Template, Value};
use metaslot_engine::{Answer, Engine, Output};
use metaslot_spi::{Params, RawValue, Value as Inside, detail};
use metaslot_wiring::Parts;
use metaslot_wiring::config::source::Source;
use std::io::{self, Read as _, Write as _};
use std::os::unix::net::{UnixListener, UnixStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

/// What becomes of an answer to a request of this function.
type Change = dyn Fn(Function, &[u8], &mut Vec<u8>) + Send + Sync;

/// A frame, without its head.
fn frame(from: &mut UnixStream) -> io::Result<([u8; 12], Vec<u8>)> {
    let mut head = [0; 12];
    from.read_exact(&mut head)?;
    let [_, options, length] = head.as_chunks().0 else { unreachable!() };
    let mut body =
        vec![0; [options, length].map(|one| u32::from_be_bytes(*one) as usize).iter().sum()];
    from.read_exact(&mut body).map(|()| (head, body))
}

fn relayed(mut near: UnixStream, mut far: UnixStream, change: &Change) -> io::Result<()> {
    let mut version = [0];
    near.read_exact(&mut version)?;
    far.write_all(&version)?;
    far.read_exact(&mut version)?;
    near.write_all(&version)?;
    loop {
        let (head, request) = frame(&mut near)?;
        far.write_all(&[&head[..], &request].concat())?;
        let (mut head, mut answer) = frame(&mut far)?;
        let number = u32::from_be_bytes(*request.first_chunk().expect("a number"));
        change(Call::numbered(number).expect("a call").function, &request, &mut answer);
        head[8..].copy_from_slice(&u32::try_from(answer.len()).expect("short").to_be_bytes());
        near.write_all(&[&head[..], &answer].concat())?;
    }
}

/// An engine in this process that has the place's token by a socket, where answers are changed.
fn engine(place: &Place, settings: &str, change: Arc<Change>) -> (Engine, SessionHandle) {
    let (socket, door) = (place.path().join("between"), place.socket());
    let listener = UnixListener::bind(&socket).expect("a socket is made");
    thread::spawn(move || {
        for near in listener.incoming().flatten() {
            let (change, door) = (change.clone(), door.clone());
            thread::spawn(move || relayed(near, UnixStream::connect(door)?, &*change));
        }
    });
    let file = place.path().join("metaslot.toml");
    let text = format!(
        "counters = false\n[[foreign]]\nname = \"held\"\nsocket = \"{}\"\n{settings}",
        socket.display()
    );
    std::fs::write(&file, text).expect("it is written");
    let (config, _) = Source::of_file(file).read().expect("it is right");
    let (engine, _) = Parts::of(config).expect("it is there").engine();
    let slot = engine.slot_list(true).next().expect("a slot");
    let session = engine.open_session(slot, CKF_SERIAL_SESSION | CKF_RW_SESSION);
    let session = session.expect("a session opens");
    engine.login(session, CKU_USER, USER).expect("the user logs in");
    (engine, session)
}

fn raw(all: &[(CK_ATTRIBUTE_TYPE, &[u8])]) -> metaslot_spi::Template {
    all.iter().map(|(attribute, value)| (*attribute, RawValue::Bytes(value.to_vec()))).collect()
}

fn found(
    engine: &Engine,
    session: SessionHandle,
    wanted: &[(CK_ATTRIBUTE_TYPE, &[u8])],
) -> Result<ObjectHandle> {
    engine.find_init(session, raw(wanted))?;
    let found = engine.find(session, 2);
    engine.find_final(session)?;
    match found?[..] {
        [one] => Ok(one),
        _ => Err(Error::OBJECT_HANDLE_INVALID),
    }
}

/// The answer of a call that failed.
fn refusal(error: Error) -> Vec<u8> {
    let code = error.rv();
    [&[0; 4][..], &1_u32.to_be_bytes(), b"u", &code.to_be_bytes()].concat()
}

const LABEL: &[u8] = b"encapsulated";

/// A pair that encapsulates into the token, and the secret's template.
fn encapsulated(
    engine: &Engine,
    session: SessionHandle,
    room: &mut [u8],
) -> Result<Option<ObjectHandle>> {
    let class = CKO_PUBLIC_KEY.to_ne_bytes();
    let public = found(engine, session, &[(CKA_CLASS, &class), (CKA_LABEL, b"kem")])?;
    let (class, kind) = (CKO_SECRET_KEY.to_ne_bytes(), CKK_GENERIC_SECRET.to_ne_bytes());
    let template = raw(&[
        (CKA_CLASS, &class),
        (CKA_KEY_TYPE, &kind),
        (CKA_TOKEN, &[1]),
        (CKA_PRIVATE, &[1]),
        (CKA_LABEL, LABEL),
    ]);
    let mut out = Output::buffer(room);
    engine.encapsulate_key(session, CKM_ML_KEM, &Params::None, public, template, &mut out)
}

fn make_pair(session: &Session) {
    let named = || Template::new().label("kem").token(true);
    let public = named().ulong(CKA_PARAMETER_SET, CKP_ML_KEM_512).bool(CKA_ENCAPSULATE, true);
    let private = named().bool(CKA_DECAPSULATE, true);
    let make = CKM_ML_KEM_KEY_PAIR_GEN.into();
    session.generate_key_pair(&make, &public, &private).expect("a pair is made");
}

const LENGTH: usize = 768;

#[test]
fn a_ciphertext_of_another_length_leaves_no_key() {
    let (place, _module, session) = logged_in(OWN, OWN);
    make_pair(&session);
    let short = AtomicBool::new(true);
    let (engine, own) = engine(
        &place,
        "",
        Arc::new(move |function, _: &[u8], answer: &mut Vec<u8>| {
            if function == Function::EncapsulateKey && short.swap(false, Ordering::Relaxed) {
                // The call's number, what is in it, a flag; then the length, the bytes and the secret's handle.
                let length = answer.len() - 8 - LENGTH;
                let less = u32::try_from(LENGTH - 1).expect("short").to_be_bytes();
                answer[length - 4..length].copy_from_slice(&less);
                answer.remove(length);
            }
        }),
    );
    let mut room = [7; LENGTH];
    assert_eq!(encapsulated(&engine, own, &mut room), Err(Error::DEVICE_ERROR));
    assert!(room == [7; LENGTH]);
    let wanted = Template::new().bytes(CKA_LABEL, LABEL);
    assert_eq!(session.find(&wanted).expect("a search"), []);
    let made = encapsulated(&engine, own, &mut room).expect("a secret");
    assert!(made.is_some() && room != [7; LENGTH]);
    assert_eq!(session.find(&wanted).expect("a search").len(), 1);
}

#[test]
fn what_fails_after_a_secret_is_made_leaves_neither_it_nor_a_ciphertext() {
    let (place, _module, session) = logged_in(OWN, OWN);
    make_pair(&session);
    let made = AtomicBool::new(false);
    let broken = Arc::new(AtomicBool::new(false));
    let breaking = broken.clone();
    let (engine, own) = engine(
        &place,
        "",
        Arc::new(move |function, _: &[u8], answer: &mut Vec<u8>| match function {
            Function::EncapsulateKey if breaking.load(Ordering::Relaxed) => {
                *answer = refusal(Error::DEVICE_ERROR);
            }
            Function::GetAttributeValue if breaking.load(Ordering::Relaxed) => {}
            Function::EncapsulateKey => made.store(true, Ordering::Relaxed),
            Function::GetAttributeValue if made.load(Ordering::Relaxed) => {
                *answer = refusal(Error::DEVICE_MEMORY);
            }
            _ => {}
        }),
    );
    let mut room = [7; LENGTH];
    assert_eq!(encapsulated(&engine, own, &mut room), Err(Error::DEVICE_MEMORY));
    assert!(room == [7; LENGTH]);
    assert_eq!(session.find(&Template::new().bytes(CKA_LABEL, LABEL)).expect("a search"), []);
    // Of what is broken there its log says why; of memory there is nothing more to say.
    let is_said = || detail::with(|said| said.ends_with("; the log of metaslotd says why"));
    assert!(!is_said());
    broken.store(true, Ordering::Relaxed);
    assert_eq!(encapsulated(&engine, own, &mut room), Err(Error::DEVICE_ERROR));
    assert!(is_said());
}

#[test]
fn a_key_whose_template_cannot_be_read_makes_no_other() {
    let (place, _module, session) = logged_in(OWN, OWN);
    let imposed = Template::new().label("imposed");
    let key = Template::new().class(CKO_SECRET_KEY).key_type(CKK_GENERIC_SECRET).label("base");
    let key = key.bytes(CKA_VALUE, [7; 32]).bool(CKA_DERIVE, true).token(true);
    let key = key.with(CKA_DERIVE_TEMPLATE, Value::Template(imposed));
    session.create(&key).expect("it is created");
    let fails = Arc::new(AtomicBool::new(true));
    let failing = fails.clone();
    let (engine, own) = engine(
        &place,
        "",
        Arc::new(move |function, request: &[u8], answer: &mut Vec<u8>| {
            let template = u32::try_from(CKA_DERIVE_TEMPLATE).expect("short").to_be_bytes();
            let names = request.windows(4).any(|four| four == template);
            if function == Function::GetAttributeValue && names && failing.load(Ordering::Relaxed) {
                *answer = refusal(Error::DEVICE_MEMORY);
            }
        }),
    );
    let base = [(CKA_LABEL, &b"base"[..])];
    assert_eq!(found(&engine, own, &base), Err(Error::DEVICE_MEMORY));
    fails.store(false, Ordering::Relaxed);
    let base = found(&engine, own, &base).expect("it is there");
    let length = 32_u64.to_ne_bytes();
    let class = CKO_SECRET_KEY.to_ne_bytes();
    let kind = CKK_GENERIC_SECRET.to_ne_bytes();
    let template = raw(&[(CKA_CLASS, &class), (CKA_KEY_TYPE, &kind), (CKA_VALUE_LEN, &length)]);
    let made = engine.derive_key(own, CKM_SHA256_KEY_DERIVATION, Params::None, base, template);
    let made = engine.object(own, made.expect("it is derived").0).expect("it is there");
    let label = made.answer(CKA_LABEL);
    assert!(matches!(label, Ok(Answer::Value(Inside::Bytes(label))) if label[..] == *b"imposed"));
}

#[test]
fn a_server_that_is_not_believed_or_does_not_encapsulate_keeps_no_such_secret() {
    for (settings, can) in [("", true), ("", false), ("trusted = false\n", true)] {
        let (place, _module, session) = logged_in(OWN, OWN);
        make_pair(&session);
        let (engine, own) = engine(
            &place,
            settings,
            Arc::new(move |function, _: &[u8], answer: &mut Vec<u8>| {
                // Its flags are the last that it says of a mechanism.
                if function == Function::GetMechanismInfo && !can && answer.len() > 32 {
                    let flags = answer.last_chunk_mut().expect("they are there");
                    let without = u64::from_be_bytes(*flags) & !CKF_ENCAPSULATE;
                    *flags = without.to_be_bytes();
                }
            }),
        );
        let mut room = [7; LENGTH];
        let told = encapsulated(&engine, own, &mut room);
        let found = session.find(&Template::new().bytes(CKA_LABEL, LABEL)).expect("a search");
        if can && settings.is_empty() {
            assert!(told.is_ok_and(|made| made.is_some()) && found.len() == 1);
        } else {
            assert_eq!((told, &found[..]), (Err(Error::MECHANISM_INVALID), &[][..]));
            assert!(room == [7; LENGTH]);
        }
    }
}

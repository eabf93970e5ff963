// SPDX-License-Identifier: Apache-2.0
//! Engines in memory, with the lanes and without, and what is asked of both.

use crate::input::code;
use metaslot_awslc::AWSLC;
use metaslot_ck::*;
use metaslot_classics::CLASSICS;
use metaslot_engine::{Answer, Config, Engine, Output, Policy, SlotConfig};
use metaslot_lanes::provider::Lanes;
use metaslot_models::{MemoryStore, open};
use metaslot_spi::provider::Provider;
use metaslot_spi::{RawValue, Template, Value};
use std::fmt::Debug;
use std::sync::OnceLock;

static LANES: Lanes = Lanes::beside(&AWSLC);
static BOTH: &[&dyn Provider] = &[&LANES, &AWSLC, &CLASSICS];
static PLAIN: &[&dyn Provider] = &[&AWSLC, &CLASSICS];

/// Every way in which keys are computed with.
pub(crate) fn providers() -> [&'static dyn Provider; 2] {
    [&LANES, &AWSLC]
}

/// An engine over a store, with the lanes or without.
pub(crate) fn engine(store: MemoryStore, policy: Policy, lanes: bool) -> Engine {
    let slot = SlotConfig { description: "fuzz".into(), store: Box::new(store), policy };
    Engine::new(Config { slots: vec![slot], providers: if lanes { BOTH } else { PLAIN } })
}

/// A session of the user's, in a new engine.
pub(crate) fn session(policy: Policy, lanes: bool) -> (Engine, SessionHandle) {
    let engine = engine(MemoryStore::default(), policy, lanes);
    let session = open(&engine);
    engine.login(session, CKU_USER, b"user-pin").expect("the PIN is right");
    (engine, session)
}

/// A call that fills a buffer: asked for its length first, then with a buffer of that length. The second
/// answer may be shorter, and never longer.
pub(crate) fn filled(mut call: impl FnMut(&mut Output<'_>) -> Result<()>) -> (u64, Vec<u8>) {
    let mut ask = Output::ask();
    let asked = call(&mut ask);
    if asked.is_err() {
        return (code(&asked), Vec::new());
    }
    assert!(ask.length() < 1 << 20, "a result of {} bytes", ask.length());
    let mut buffer = vec![0; ask.length()];
    let mut out = Output::buffer(&mut buffer);
    let done = call(&mut out);
    let length = out.length();
    assert!(done.is_err() || length <= buffer.len(), "more than was announced");
    assert_ne!(done, Err(Error::BUFFER_TOO_SMALL), "less than was announced");
    buffer.truncate(if done.is_ok() { length } else { 0 });
    (code(&done), buffer)
}

/// A value as a caller would write it into a template.
pub(crate) fn raw(value: &Value) -> RawValue {
    RawValue::Bytes(match value {
        Value::Bool(flag) => vec![u8::from(*flag)],
        Value::Ulong(number) => number.to_ne_bytes().to_vec(),
        Value::Bytes(bytes) => bytes.clone(),
        Value::Ulongs(numbers) => numbers.iter().flat_map(|n| n.to_ne_bytes()).collect(),
        Value::Template(template) => {
            let rows = template.iter().map(|(attribute, value)| (attribute, raw(value)));
            return RawValue::Template(rows.collect());
        }
    })
}

/// What an object answers for an attribute that is not sensitive.
pub(crate) fn shown(
    engine: &Engine,
    session: SessionHandle,
    object: ObjectHandle,
    attribute: CK_ATTRIBUTE_TYPE,
) -> Result<Value> {
    match engine.object(session, object)?.answer(attribute)? {
        Answer::Value(value) => Ok(value.clone()),
        Answer::Secret(_) => Err(Error::ATTRIBUTE_SENSITIVE),
    }
}

/// The value of a secret key, where it may be read.
pub(crate) fn value(engine: &Engine, session: SessionHandle, key: ObjectHandle) -> Option<Vec<u8>> {
    match engine.object(session, key).ok()?.answer(CKA_VALUE).ok()? {
        Answer::Secret(bytes) => Some(bytes.to_vec()),
        Answer::Value(_) => None,
    }
}

/// What a search finds.
pub(crate) fn find(
    engine: &Engine,
    session: SessionHandle,
    template: Template,
) -> Result<Vec<ObjectHandle>> {
    engine.find_init(session, template)?;
    let found = engine.find(session, 100);
    engine.find_final(session)?;
    found
}

/// Two engines that stay, with the lanes and without, each with a new session; `CKF_ASYNC_SESSION` or
/// nothing in `flags`.
pub(crate) fn pair(flags: u64) -> [(&'static Engine, SessionHandle); 2] {
    static ENGINES: OnceLock<[Engine; 2]> = OnceLock::new();
    let made = |lanes| engine(MemoryStore::default(), Policy::legacy(), lanes);
    let engines = ENGINES.get_or_init(|| [made(true), made(false)]);
    let flags = flags | CKF_SERIAL_SESSION | CKF_RW_SESSION;
    engines.each_ref().map(|engine| {
        let session = engine.open_session(SlotId(0), flags);
        (engine, session.expect("it opens"))
    })
}

/// What a call answered: its code and what it wrote.
pub(crate) type Answers = Vec<(u64, Vec<u8>)>;

/// Both engines say the same.
pub(crate) fn same(what: impl Debug, lanes: &Answers, plain: &Answers) {
    let pairs = lanes.iter().zip(plain).enumerate();
    for (at, (lanes, plain)) in pairs {
        assert!(
            lanes == plain,
            "answer {at} of {what:?}: {lanes:02x?} with lanes, {plain:02x?} without"
        );
    }
    assert_eq!(lanes.len(), plain.len(), "{what:?}");
}

// SPDX-License-Identifier: Apache-2.0
//! A derivation that is pending while the policy changes is refused, or gives a key, as one that begins under the policy of its end.

use metaslot_ck::*;
use metaslot_engine::{Answer, Config, Engine, Policy, SlotConfig};
use metaslot_lanes::provider::Lanes;
use metaslot_models::{MemoryStore, row};
use metaslot_spi::provider::Provider;
use metaslot_spi::{Bytes, Params, Template, Value};

const SLOT: SlotId = SlotId(0);
const P256: &[u8] = &[0x06, 0x08, 0x2a, 0x86, 0x48, 0xce, 0x3d, 0x03, 0x01, 0x07];
const X25519: &[u8] = &[0x06, 0x03, 0x2b, 0x65, 0x6e];

fn engine() -> Engine {
    static LANES: Lanes = Lanes::beside(&metaslot_awslc::AWSLC);
    static PROVIDERS: &[&dyn Provider] = &[&LANES, &metaslot_awslc::AWSLC];
    let (description, policy) = (String::from("test"), Policy::legacy());
    let store = Box::new(MemoryStore::default());
    let slots = vec![SlotConfig { description, store, policy }];
    Engine::new(Config { slots, providers: PROVIDERS })
}

/// A base key, and a peer's point.
fn pair(engine: &Engine, session: SessionHandle, curve: &[u8]) -> (ObjectHandle, Vec<u8>) {
    let mechanism =
        if curve == P256 { CKM_EC_KEY_PAIR_GEN } else { CKM_EC_MONTGOMERY_KEY_PAIR_GEN };
    let (public, private) = (vec![row(CKA_EC_PARAMS, curve)], vec![row(CKA_DERIVE, true)]);
    let made = engine.generate_key_pair(session, mechanism, Params::None, public, private);
    let (public, private) = made.expect("a pair is made");
    let public = engine.object(session, public).expect("it is there");
    match public.answer(CKA_EC_POINT) {
        Ok(Answer::Value(Value::Bytes(point))) => (private, point.clone()),
        other => panic!("no point: {other:?}"),
    }
}

fn key_of(key_type: u64, length: u64) -> Template {
    vec![row(CKA_KEY_TYPE, key_type), row(CKA_VALUE_LEN, length), row(CKA_ENCRYPT, true)]
}

/// What is said of a key, and whether making it was approved.
fn said(
    engine: &Engine,
    session: SessionHandle,
    key: ObjectHandle,
) -> (Vec<Option<Value>>, Result<bool>) {
    let key = engine.object(session, key).expect("it is there");
    let names = [CKA_KEY_TYPE, CKA_VALUE_LEN, CKA_SENSITIVE, CKA_EXTRACTABLE, CKA_ENCRYPT];
    let value = |name| match key.answer(name) {
        Ok(Answer::Value(value)) => Some(value.clone()),
        _ => None,
    };
    (names.map(value).into(), engine.last_was_approved(session))
}

#[test]
fn a_pending_derivation_ends_as_one_that_begins_under_the_policy_of_its_end() {
    let engine = engine();
    let open = |more| {
        let flags = CKF_SERIAL_SESSION | CKF_RW_SESSION | more;
        engine.open_session(SLOT, flags).expect("a session is opened")
    };
    let (session, plain) = (open(CKF_ASYNC_SESSION), open(0));
    engine.login(session, CKU_USER, b"user-pin").expect("the PIN is right");
    let policies = [Policy::legacy(), Policy::DEFAULT, Policy::FIPS];
    let (mut refused, mut made) = (0, 0);
    for curve in [P256, X25519] {
        engine.set_policy(SLOT, Policy::legacy()).expect("there is a slot");
        let (base, point) = pair(&engine, session, curve);
        for (key_type, length) in [(CKK_AES, 16), (CKK_GENERIC_SECRET, 8), (CKK_DES, 8)] {
            for (before, after) in policies.into_iter().flat_map(|b| policies.map(|a| (b, a))) {
                let derive = |session| {
                    let (shared, public) = (Bytes::new(), Bytes::from_slice(&point));
                    let params = Params::Ecdh1 { kdf: CKD_NULL, shared, public };
                    let template = key_of(key_type, length);
                    engine.derive_key(session, CKM_ECDH1_DERIVE, params, base, template)
                };
                engine.set_policy(SLOT, before).expect("there is a slot");
                // Refused, or without lanes for it.
                if derive(session).map(drop) != Err(Error::PENDING) {
                    continue;
                }
                engine.set_policy(SLOT, after).expect("there is a slot");
                let right = derive(plain).map(|(key, _)| said(&engine, plain, key));
                let later = engine.derived_key(session).map(|(_, key)| said(&engine, session, key));
                match (right, later) {
                    (Ok((right, approved)), Ok((later, both))) => {
                        assert_eq!(right, later);
                        // What began before that policy is not approved by it.
                        let both_approve = approved == Ok(true) && before == Policy::FIPS;
                        assert_eq!(both, Ok(both_approve));
                        made += 1;
                    }
                    (right, later) => {
                        assert_eq!(later.map(drop), right.map(drop), "{before:?} {after:?}");
                        refused += 1;
                    }
                }
                let over = engine.derived_key(session).map(drop);
                assert_eq!(over, Err(Error::OPERATION_NOT_INITIALIZED));
            }
        }
    }
    assert!((refused == 0 && made == 0) || (refused > 5 && made > 5), "{refused} and {made}");
}

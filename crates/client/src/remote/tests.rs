// SPDX-License-Identifier: Apache-2.0
//! What the client makes of the answers of another process.

use super::calls::ASKED;
use super::wire::Writer;
use super::*;
use crate::{Access, Module};
use metaslot_ck::attribute::DEEPEST;
use std::sync::Mutex;

/// A process that gives the same answer to everything.
#[derive(Debug)]
struct Says(Mutex<Vec<u8>>);

impl Carrier for Says {
    fn start(&self) -> std::result::Result<u8, ck::Error> {
        Ok(VERSION)
    }

    fn end(&self) {}

    fn exchange(&self, _: &[u8]) -> std::result::Result<Message, ck::Error> {
        Ok(Message::copy_of(&self.0.lock().expect("one thread")))
    }
}

fn module() -> (Arc<Says>, Module) {
    let says = Arc::new(Says(Mutex::default()));
    (Arc::clone(&says), Module::remote("/none", says))
}

fn answer(number: u32, signature: &str, rest: &[u8]) -> Vec<u8> {
    let length = u32::try_from(signature.len()).expect("short");
    [&number.to_be_bytes()[..], &length.to_be_bytes(), signature.as_bytes(), rest].concat()
}

#[test]
fn answers_that_are_cut_changed_or_too_long_are_errors() {
    let (says, module) = module();
    let slots = [&[1, 0, 0, 0, 2][..], &7_u64.to_be_bytes(), &9_u64.to_be_bytes()].concat();
    let right = answer(4, "au", &slots);
    let ask = |bytes: &[u8]| {
        *says.0.lock().expect("one thread") = bytes.to_vec();
        module.slots(true)
    };
    assert_eq!(ask(&right), Ok(vec![SlotId(7), SlotId(9)]));
    (0..right.len()).for_each(|length| assert!(ask(&right[..length]).is_err(), "{length}"));
    for at in 0..right.len() - 16 {
        let mut wrong = right.clone();
        wrong[at] ^= 0xff;
        let told = ask(&wrong);
        // Any byte but zero says that there are numbers.
        assert!(told.is_err() || at == 10, "{at}: {told:?}");
    }
    let refused = ask(&answer(0, "u", &0xa0_u64.to_be_bytes())).map_err(|error| error.code);
    assert_eq!(refused, Err(ck::Error::PIN_INCORRECT));
    // A failure that is none.
    assert!(ask(&answer(0, "u", &[0; 8])).is_err());
    assert!(ask(&answer(4, "au", &[0, 0xff, 0xff, 0xff, 0xff])).is_err());
}

#[test]
fn a_version_that_was_not_offered_is_not_agreed_on() {
    let (says, module) = module();
    let begin = |rest: &[u8]| {
        *says.0.lock().expect("one thread") = answer(1, "", rest);
        let begun = module.initialize().map_err(|error| error.code);
        begun.map(|()| module.other_process().expect("it is in one").version())
    };
    assert_eq!(begin(&[]), Ok(VERSION));
    assert_eq!(begin(&[OWN]), Ok(OWN));
    for rest in [&[VERSION][..], &[OWN - 1], &[OWN + 1], &[OWN, 0]] {
        assert_eq!(begin(rest), Err(MALFORMED), "{rest:?}");
    }
    // Where the module has an argument nothing is offered.
    *says.0.lock().expect("one thread") = answer(1, "", &[OWN]);
    let with_argument = crate::Initialize::Flags(0, Some(c"argument"));
    assert!(module.initialize_with(with_argument).is_err());
}

#[test]
fn fewer_random_bytes_than_were_asked_for_are_none() {
    let (says, module) = module();
    let session = crate::Session::new(module, SessionHandle(1));
    let ask = |bytes: &[u8]| {
        let length = u32::try_from(bytes.len()).expect("short").to_be_bytes();
        let given = [&[1][..], &length, bytes].concat();
        *says.0.lock().expect("one thread") = answer(64, "ay", &given);
        session.random(&mut [0; 4]).map_err(|error| error.code)
    };
    assert_eq!(ask(&[1, 2, 3, 4]), Ok(()));
    assert_eq!(ask(&[1, 2, 3]), Err(ck::Error::DEVICE_ERROR));
    assert_eq!(ask(&[]), Err(ck::Error::DEVICE_ERROR));
}

#[test]
fn random_answers_end_no_call_badly() {
    let (says, module) = module();
    let mut state = 0x9e37_79b9_7f4a_7c15_u64;
    let mut next = || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state
    };
    let calls: Vec<_> = ASKED.iter().chain(Call::all().filter(|call| call.is_ours())).collect();
    module.other_process().expect("it is in one").version.store(OWN, Ordering::Relaxed);
    for round in 0..3_000_u32 {
        let call = calls[round as usize % calls.len()];
        let length = usize::try_from(next() % 64).expect("short");
        // Small numbers get further.
        let bytes: Vec<u8> = (0..length).map(|_| (next() % 5) as u8).collect();
        *says.0.lock().expect("one thread") = answer(call.number, call.answer, &bytes);
        let slot = SlotId(1);
        match call.function {
            Function::GetSlotList => drop(module.slots(true)),
            Function::GetSlotInfo => drop(module.slot_info(slot)),
            Function::GetTokenInfo => drop(module.token_info(slot)),
            Function::GetMechanismList => drop(module.mechanisms(slot)),
            Function::GetMechanismInfo => drop(module.mechanism_info(slot, CKM_RSA_PKCS)),
            Function::OpenSession => drop(module.open_session(slot, Access::ReadOnly)),
            function => {
                let session = crate::Session::new(module.clone(), SessionHandle(1));
                let wanted = [CKA_CLASS, CKA_LABEL, CKA_ALLOWED_MECHANISMS, CKA_WRAP_TEMPLATE];
                let (kem, none) = (CKM_ML_KEM.into(), Template::new());
                match function {
                    Function::GetAttributeValue => {
                        drop(session.attributes(ObjectHandle(1), &wanted));
                        session.template_attribute(ObjectHandle(1), CKA_WRAP_TEMPLATE).ok();
                    }
                    Function::Sign => drop(session.sign_initialized(&[1; 32])),
                    Function::SignFinal => drop(session.sign_final()),
                    Function::GenerateRandom => drop(session.random(&mut [0; 8])),
                    Function::FindObjects => drop(session.find_one(&none)),
                    Function::EncapsulateKey => {
                        drop(session.encapsulate(&kem, ObjectHandle(1), &none));
                    }
                    Function::DecapsulateKey => {
                        session.decapsulate(&kem, ObjectHandle(1), &[1], &none).ok();
                    }
                    _ => drop(session.info()),
                }
            }
        }
    }
}

#[test]
fn what_the_protocol_does_not_carry_is_refused_here() {
    let (_, module) = module();
    let session = crate::Session::new(module, SessionHandle(1));
    let gcm = crate::Params::Gcm { iv: &[0; 12], aad: &[], tag_bits: 128 };
    let refused = [
        session.encrypt_init(&Mechanism::with(CKM_AES_GCM, gcm), ObjectHandle(1)),
        session.sign_init(&CKM_RSA_PKCS_PSS.into(), ObjectHandle(1)),
    ];
    for told in refused {
        assert_eq!(told.map_err(|error| error.code), Err(ck::Error::MECHANISM_PARAM_INVALID));
    }
    let unknown = Template::new().bool(CKA_DESTROYABLE, true);
    let told = session.create(&unknown).map_err(|error| error.code);
    assert_eq!(told, Err(ck::Error::ATTRIBUTE_TYPE_INVALID));
}

#[test]
fn templates_are_read_as_deep_as_they_are_given() {
    // So many of them, each in the one before, the last with a flag in it.
    let told = |deep: usize| {
        let mut answer = Writer::default();
        answer.begin(24, "aAu");
        answer.count(1);
        for _ in 0..deep {
            answer.available(CKA_DERIVE_TEMPLATE, size_of::<CK_ATTRIBUTE>()).expect("a number");
            answer.count(1);
        }
        answer.available(CKA_SIGN, 1).expect("a number");
        answer.byte(1);
        answer.number(CKR_OK);
        let answer = answer.finish();
        let says: Arc<dyn Carrier> = Arc::new(Says(Mutex::new(answer.as_ref().to_vec())));
        let remote = Remote { carrier: says, version: AtomicU8::new(OWN) };
        remote.template(1, ObjectHandle(1), CKA_DERIVE_TEMPLATE)
    };
    for deep in 1..=DEEPEST {
        assert!(told(deep).is_ok_and(|template| template.is_some()), "{deep}");
    }
    assert_eq!(told(DEEPEST + 1).map_err(|error| error.code), Err(MALFORMED));
}

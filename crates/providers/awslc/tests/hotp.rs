// SPDX-License-Identifier: Apache-2.0
//! One-time passwords: the vectors of RFC 4226, by counters that the caller says.

use metaslot_awslc::AWSLC;
use metaslot_ck::*;
use metaslot_memory::Secret;
use metaslot_spi::provider::Direction::{Backward, Forward};
use metaslot_spi::provider::{Provider, Signature};
use metaslot_spi::{Attributes, Key, Material, NewObject, Otp, Params, Value};
use std::sync::Arc;

fn hotp() -> &'static dyn Signature {
    let mut rows = AWSLC.algorithms().iter();
    rows.find(|row| row.mechanism == CKM_HOTP).and_then(|row| row.sign).expect("it signs")
}

fn object(secret: &[u8], said: &[(CK_ATTRIBUTE_TYPE, Value)]) -> Result<NewObject> {
    let mut object = NewObject::default();
    object.attributes.set(CKA_CLASS, Value::Ulong(CKO_OTP_KEY));
    object.attributes.set(CKA_KEY_TYPE, Value::Ulong(CKK_HOTP));
    said.iter().for_each(|(name, value)| object.attributes.set(*name, value.clone()));
    object.secrets.set(CKA_VALUE, Secret::copy_of(secret));
    AWSLC.complete(&mut object).map(|()| object)
}

fn key(secret: &[u8], said: &[(CK_ATTRIBUTE_TYPE, Value)]) -> Key {
    let NewObject { attributes, secrets } = object(secret, said).expect("a key");
    Key::new(Arc::new(attributes), Arc::new(Material::new(secrets)))
}

fn of(counter: u64, length: Option<u64>) -> Params {
    Params::Otp(Otp { counter: Some(counter), length, ..Otp::default() })
}

/// What a `CK_OTP_SIGNATURE_INFO` in these bytes says: kinds and values.
fn told(info: &[u8]) -> Vec<(u64, &[u8])> {
    let words: Vec<u64> = info.as_chunks().0.iter().map(|word| u64::from_ne_bytes(*word)).collect();
    let number = |word: u64| usize::try_from(word).expect("a number");
    let place = |address| number(address) - info.as_ptr().addr();
    assert_eq!(place(words[0]), 16);
    let each = words[2..].chunks(3).take(number(words[1]));
    let value = |at: usize, length: u64| &info[at..at + number(length)];
    each.map(|one| (one[0], value(place(one[1]), one[2]))).collect()
}

#[test]
fn passwords_are_those_of_the_rfc() {
    let file = include_str!("../../../../testdata/rfc/hotp.json");
    let file: serde_json::Value = serde_json::from_str(file).unwrap();
    let digits = file["key"].as_str().unwrap().as_bytes().chunks(2);
    let secret: Vec<u8> =
        digits.map(|two| u8::from_str_radix(str::from_utf8(two).unwrap(), 16).unwrap()).collect();
    let key = key(&secret, &[]);
    let vectors = file["vectors"].as_array().unwrap();
    assert_eq!(vectors.len(), 10);
    for vector in vectors {
        let counter = vector["counter"].as_u64().unwrap();
        let (number, six) =
            (vector["number"].as_u64().unwrap(), vector["password"].as_str().unwrap());
        for length in [None, Some(6), Some(7), Some(8), Some(9)] {
            let params = of(counter, length);
            let count = usize::try_from(length.unwrap_or(6)).unwrap();
            let expected = format!("{number:010}");
            let expected = &expected[10 - count..];
            assert!(count != 6 || expected == six);
            hotp().check(Forward, &key, &params).unwrap();
            let mut out = vec![0; hotp().length(&key, &params)];
            hotp().sign(&key, &params, &[], &mut out).unwrap();
            let counter = counter.to_be_bytes();
            let all = [(CK_OTP_VALUE, expected.as_bytes()), (CK_OTP_COUNTER, &counter)];
            assert_eq!(told(&out), all);
            hotp().check(Backward, &key, &params).unwrap();
            hotp().verify(&key, &params, &[], expected.as_bytes()).unwrap();
            let verified = hotp().verify(&key, &params, &[], &expected.as_bytes()[1..]);
            assert_eq!(verified, Err(Error::SIGNATURE_LEN_RANGE));
            let other = of(u64::from_be_bytes(counter) + 1, length);
            let verified = hotp().verify(&key, &other, &[], expected.as_bytes());
            assert_eq!(verified, Err(Error::SIGNATURE_INVALID));
        }
    }
}

#[test]
fn what_is_no_password_of_hotp_is_refused() {
    let secret = [7; 20];
    let key = key(&secret, &[]);
    let (none, invalid) = (Otp::default(), Err(Error::MECHANISM_PARAM_INVALID));
    let counter = Some(1);
    for wrong in [
        none,
        Otp { counter, length: Some(5), ..none },
        Otp { counter, length: Some(10), ..none },
        Otp { counter, format: Some(CK_OTP_FORMAT_HEXADECIMAL), ..none },
        Otp { counter, flags: Some(CKF_NEXT_OTP), ..none },
        Otp { counter, flags: Some(CKF_EXCLUDE_COUNTER), ..none },
        Otp { counter, flags: Some(1 << 40), ..none },
    ] {
        for direction in [Forward, Backward] {
            assert_eq!(hotp().check(direction, &key, &Params::Otp(wrong)), invalid, "{wrong:?}");
        }
    }
    let flags = Some(CKF_USER_FRIENDLY_OTP | CKF_EXCLUDE_PIN);
    let friendly = Params::Otp(Otp { counter, flags, ..none });
    assert_eq!(hotp().check(Forward, &key, &friendly), invalid, "the key says nothing of it");
    let said = of(1, None);
    let mut out = vec![0; hotp().length(&key, &said)];
    assert_eq!(hotp().sign(&key, &said, b"x", &mut out), Err(Error::DATA_LEN_RANGE));

    let (number, value) = (Value::Ulong, Err(Error::ATTRIBUTE_VALUE_INVALID));
    for (attribute, wrong) in [
        (CKA_OTP_FORMAT, number(CK_OTP_FORMAT_BINARY)),
        (CKA_OTP_LENGTH, number(5)),
        (CKA_OTP_LENGTH, number(10)),
        (CKA_OTP_COUNTER, Value::Bytes(vec![0; 7])),
        (CKA_OTP_COUNTER_REQUIREMENT, number(3)),
        (CKA_OTP_PIN_REQUIREMENT, number(CK_OTP_PARAM_OPTIONAL)),
        (CKA_OTP_TIME_REQUIREMENT, number(CK_OTP_PARAM_MANDATORY)),
        (CKA_OTP_CHALLENGE_REQUIREMENT, number(CK_OTP_PARAM_MANDATORY)),
    ] {
        assert_eq!(object(&secret, &[(attribute, wrong)]).map(drop), value, "{attribute:#x}");
    }
    assert_eq!(object(&[7; 9], &[]).map(drop), value);
    assert_eq!(object(&[7; 65], &[]).map(drop), value);
    assert!(object(&[7; 10], &[]).is_ok());
}

#[test]
fn a_key_that_counts_is_a_private_one_of_the_token_and_not_copied() {
    let token = (CKA_TOKEN, Value::Bool(true));
    let counts = |all: &Attributes| {
        let requirement = all.ulong(CKA_OTP_COUNTER_REQUIREMENT);
        requirement != Some(CK_OTP_PARAM_MANDATORY)
    };
    let session = object(&[7; 20], &[]).unwrap().attributes;
    assert!(!counts(&session) && session.get(CKA_COPYABLE).is_none());
    let made = object(&[7; 20], std::slice::from_ref(&token)).unwrap().attributes;
    assert!(counts(&made) && made.bool(CKA_PRIVATE) && !made.bool(CKA_COPYABLE));
    assert_eq!(made.get(CKA_COPYABLE), Some(&Value::Bool(false)));
    for (attribute, wrong) in [(CKA_PRIVATE, false), (CKA_COPYABLE, true)] {
        let said = [token.clone(), (attribute, Value::Bool(wrong))];
        assert_eq!(object(&[7; 20], &said).map(drop), Err(Error::TEMPLATE_INCONSISTENT));
        let by_caller = Value::Ulong(CK_OTP_PARAM_MANDATORY);
        let said = [said.to_vec(), vec![(CKA_OTP_COUNTER_REQUIREMENT, by_caller)]].concat();
        assert!(object(&[7; 20], &said).is_ok());
    }
    for requirement in [CK_OTP_PARAM_OPTIONAL, CK_OTP_PARAM_IGNORED] {
        let said = [(CKA_OTP_COUNTER_REQUIREMENT, Value::Ulong(requirement))];
        assert_eq!(object(&[7; 20], &said).map(drop), Err(Error::TEMPLATE_INCONSISTENT));
    }
}

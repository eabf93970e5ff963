// SPDX-License-Identifier: Apache-2.0
//! Calls that p11-kit's own client asks for and ours does not, written here; and answers as the C ABI has them.

use crate::common::{Place, Raw, SO, USER, initialized, pairs};
use metaslot_ck::*;
use metaslot_client::protocol::{Form, Kind, NO_BYTES, Reader, Writer, form, kind};
use metaslot_client::{Access, Mechanism, User};
use metaslot_spi::{Params, RawValue};

const P256: [u8; 10] = [0x06, 0x08, 0x2a, 0x86, 0x48, 0xce, 0x3d, 0x03, 0x01, 0x07];

/// A client with a read-write session of the user's.
fn logged_in(place: &Place, version: u8) -> (Raw, u64) {
    let mut raw = place.raw(version);
    let session =
        raw.number(10, |request| numbers(request, &[0, CKF_SERIAL_SESSION | CKF_RW_SESSION]));
    let session = session.expect("a session opens");
    raw.call(18, |request| {
        numbers(request, &[session, CKU_USER]);
        request.bytes(Some(USER));
    })
    .expect("the user logs in");
    (raw, session)
}

fn served() -> Place {
    let place = Place::served();
    initialized(&place);
    place
}

pub(crate) fn numbers(request: &mut Writer, numbers: &[u64]) {
    numbers.iter().for_each(|number| request.number(*number));
}

/// What writes a mechanism's parameter.
pub(crate) type Parameter<'a> = &'a dyn Fn(&mut Writer);

/// As it is sent.
fn number_of(attribute_or_mechanism: u64) -> u32 {
    u32::try_from(attribute_or_mechanism).expect("a number of the standard")
}

/// A mechanism in the second version of the protocol.
pub(crate) fn mechanism(request: &mut Writer, number: u64, parameter: Option<Parameter<'_>>) {
    request.half(number_of(number));
    if form(number) != Form::Nothing {
        request.byte(u8::from(parameter.is_some()));
    }
    if let Some(parameter) = parameter {
        parameter(request);
    }
}

pub(crate) fn template(request: &mut Writer, attributes: &[(u64, &[u8])]) {
    request.count(attributes.len());
    for (attribute, value) in attributes {
        request.available(*attribute, value.len()).expect("a number of the standard");
        request.value(kind(*attribute), value).expect("a value of this kind");
    }
}

pub(crate) const YES: &[u8] = &[1];

pub(crate) fn aes(raw: &mut Raw, session: u64, more: &[(u64, &[u8])]) -> u64 {
    let length = 32_u64.to_ne_bytes();
    let attributes = [&[(CKA_VALUE_LEN, &length[..])], more].concat();
    raw.number(58, |request| {
        request.number(session);
        mechanism(request, CKM_AES_KEY_GEN, None);
        template(request, &attributes);
    })
    .expect("a key is made")
}

pub(crate) fn pair(
    raw: &mut Raw,
    session: u64,
    (generate, public): (u64, &[(u64, &[u8])]),
    private: &[(u64, &[u8])],
) -> [u64; 2] {
    let made = raw.call(59, |request| {
        request.number(session);
        mechanism(request, generate, None);
        template(request, public);
        template(request, private);
    });
    let made = made.expect("a pair is made");
    let mut made = Reader::new(&made);
    [made.number().expect("a handle"), made.number().expect("a handle")]
}

/// `C_*Init`
pub(crate) fn begin(
    raw: &mut Raw,
    call: u32,
    session: u64,
    number: u64,
    parameter: Option<Parameter<'_>>,
    key: u64,
) -> Result<()> {
    raw.call(call, |request| {
        request.number(session);
        mechanism(request, number, parameter);
        request.number(key);
    })
    .map(drop)
}

/// A call of data that gives bytes.
pub(crate) fn transform(
    raw: &mut Raw,
    call: u32,
    session: u64,
    data: &[u8],
    room: u32,
) -> Result<std::result::Result<Vec<u8>, usize>> {
    raw.bytes(call, |request| {
        request.number(session);
        request.bytes(Some(data));
        request.half(room);
    })
}

fn done(raw: &mut Raw, call: u32, session: u64, data: &[u8]) -> Vec<u8> {
    transform(raw, call, session, data, 1 << 20).expect("it is done").expect("it fits")
}

#[test]
fn lengths_are_asked_and_short_buffers_told_as_in_the_c_abi() {
    let place = served();
    let (mut raw, session) = logged_in(&place, 2);
    let digest = |raw: &mut Raw, number| {
        raw.call(37, |request| {
            request.number(session);
            mechanism(request, number, None);
        })
    };
    digest(&mut raw, CKM_SHA256).expect("a digest begins");
    assert_eq!(digest(&mut raw, CKM_SHA256), Err(Error::OPERATION_ACTIVE));
    assert_eq!(transform(&mut raw, 38, session, b"abc", 0), Ok(Err(32)));
    assert_eq!(transform(&mut raw, 38, session, b"abc", NO_BYTES), Ok(Err(32)));
    assert_eq!(transform(&mut raw, 38, session, b"abc", 31), Ok(Err(32)));
    let whole = transform(&mut raw, 38, session, b"abc", NO_BYTES - 1).expect("a digest");
    assert_eq!(whole.expect("it fits")[..4], [0xba, 0x78, 0x16, 0xbf]);
    let slots = raw.bytes(4, |request| {
        request.byte(0);
        request.half(0);
    });
    assert_eq!(slots, Ok(Err(1)));
    // Bytes that are not there and have a length end the operation.
    digest(&mut raw, CKM_SHA256).expect("a digest begins");
    let update = |raw: &mut Raw, absent: usize| {
        raw.call(39, |request| {
            request.number(session);
            request.absent(absent);
        })
    };
    update(&mut raw, 0).expect("nothing is taken");
    assert_eq!(update(&mut raw, 3), Err(Error::ARGUMENTS_BAD));
    assert_eq!(update(&mut raw, 0), Err(Error::OPERATION_NOT_INITIALIZED));
    // Without a mechanism it is cancelled.
    digest(&mut raw, CKM_SHA256).expect("a digest begins");
    let cancel = |raw: &mut Raw| {
        raw.call(37, |request| {
            request.number(session);
            request.half(u32::MAX);
        })
    };
    assert_eq!(cancel(&mut raw).map(drop), Ok(()));
    assert_eq!(cancel(&mut raw).map(drop), Err(Error::ARGUMENTS_BAD));
    digest(&mut raw, CKM_SHA256).expect("a digest begins");
    raw.call(67, |request| numbers(request, &[session, CKF_DIGEST])).expect("it is cancelled");
    assert_eq!(update(&mut raw, 0), Err(Error::OPERATION_NOT_INITIALIZED));
}

#[test]
fn a_client_is_not_believed_to_have_room() {
    let place = served();
    let (mut raw, session) = logged_in(&place, 2);
    let random = |raw: &mut Raw, length| {
        raw.bytes(64, |request| {
            request.number(session);
            request.half(length);
        })
    };
    assert_eq!(random(&mut raw, NO_BYTES - 1), Err(Error::HOST_MEMORY));
    assert_eq!(random(&mut raw, NO_BYTES), Ok(Ok(Vec::new())));
    assert_eq!(random(&mut raw, 0), Ok(Ok(Vec::new())));
    assert_eq!(random(&mut raw, 100_000).map(|bytes| bytes.expect("it fits").len()), Ok(100_000));
    raw.call(26, |request| {
        request.number(session);
        request.count(0);
    })
    .expect("a search begins");
    let found = raw.call(27, |request| {
        request.number(session);
        request.half(u32::MAX);
    });
    assert_eq!(Reader::new(&found.expect("objects")).numbers(), Ok(Ok(Vec::new())));
    // An attribute more than a template has.
    let many = raw.call(26, |request| {
        request.number(session);
        request.half(u32::MAX);
    });
    assert_eq!(many, Err(Error::ARGUMENTS_BAD));
}

#[test]
fn ciphers_with_parameters_of_all_forms() {
    let place = served();
    let (mut raw, session) = logged_in(&place, 2);
    let key = aes(&mut raw, session, &[]);
    let ctr = |request: &mut Writer| {
        request.number(128);
        request.counted(&[3; 16]);
    };
    let gcm = |request: &mut Writer| {
        request.counted(&[4; 12]);
        request.number(96);
        request.counted(b"beside");
        request.number(128);
    };
    let iv = |request: &mut Writer| request.counted(&[5; 16]);
    let forms: [(u64, Parameter<'_>); 3] =
        [(CKM_AES_CTR, &ctr), (CKM_AES_GCM, &gcm), (CKM_AES_CBC_PAD, &iv)];
    for (number, parameter) in forms {
        begin(&mut raw, 29, session, number, Some(parameter), key).expect("an encryption begins");
        let sealed = done(&mut raw, 30, session, b"words");
        begin(&mut raw, 33, session, number, Some(parameter), key).expect("a decryption begins");
        assert_eq!(done(&mut raw, 34, session, &sealed), b"words");
        // What was held back until the end of a message is longer than the call's own data.
        let long = vec![1; 50_000];
        begin(&mut raw, 29, session, number, Some(parameter), key).expect("an encryption begins");
        let sealed = done(&mut raw, 30, session, &long);
        begin(&mut raw, 33, session, number, Some(parameter), key).expect("a decryption begins");
        let mut opened = done(&mut raw, 35, session, &sealed);
        let rest = raw.bytes(36, |request| numbers_and_room(request, session));
        opened.extend(rest.expect("the last part").expect("it fits"));
        assert_eq!(opened, long);
    }
    let short = |request: &mut Writer| {
        request.number(128);
        request.counted(&[3; 15]);
    };
    let refused = begin(&mut raw, 29, session, CKM_AES_CTR, Some(&short), key);
    assert_eq!(refused, Err(Error::MECHANISM_PARAM_INVALID));
    let refused = begin(&mut raw, 29, session, CKM_AES_CTR, None, key);
    assert_eq!(refused, Err(Error::MECHANISM_PARAM_INVALID));
    let unknown = begin(&mut raw, 29, session, CKM_VENDOR_DEFINED + 77, Some(&iv), key);
    assert_eq!(unknown, Err(Error::MECHANISM_INVALID));
    let class = CKO_SECRET_KEY.to_ne_bytes();
    let generic = CKK_GENERIC_SECRET.to_ne_bytes();
    let secret = raw.number(20, |request| {
        request.number(session);
        let attributes: [(u64, &[u8]); 4] =
            [(CKA_CLASS, &class), (CKA_KEY_TYPE, &generic), (CKA_VALUE, &[6; 32]), (CKA_SIGN, YES)];
        template(request, &attributes);
    });
    let secret = secret.expect("it is created");
    let length = |request: &mut Writer| request.number(20);
    begin(&mut raw, 42, session, CKM_SHA256_HMAC_GENERAL, Some(&length), secret)
        .expect("a MAC begins");
    assert_eq!(done(&mut raw, 43, session, b"words").len(), 20);
}

pub(crate) fn numbers_and_room(request: &mut Writer, session: u64) {
    request.number(session);
    request.half(1 << 20);
}

#[test]
fn keys_are_wrapped_unwrapped_and_derived() {
    let place = served();
    let (mut raw, session) = logged_in(&place, 2);
    let no: &[u8] = &[0];
    let uses: [(u64, &[u8]); 2] = [(CKA_WRAP, YES), (CKA_UNWRAP, YES)];
    let by = aes(&mut raw, session, &uses);
    let key = aes(&mut raw, session, &[(CKA_EXTRACTABLE, YES), (CKA_SENSITIVE, no)]);
    let wrap = |raw: &mut Raw, room: u32| {
        raw.bytes(60, |request| {
            request.number(session);
            mechanism(request, CKM_AES_KEY_WRAP_KWP, None);
            numbers(request, &[by, key]);
            request.half(room);
        })
    };
    assert_eq!(wrap(&mut raw, 0), Ok(Err(40)));
    let wrapped = wrap(&mut raw, 100).expect("it is wrapped").expect("it fits");
    let (class, kind) = (CKO_SECRET_KEY.to_ne_bytes(), CKK_AES.to_ne_bytes());
    let attributes: [(u64, &[u8]); 2] = [(CKA_CLASS, &class), (CKA_KEY_TYPE, &kind)];
    let unwrapped = raw.number(61, |request| {
        request.number(session);
        mechanism(request, CKM_AES_KEY_WRAP_KWP, None);
        request.number(by);
        request.bytes(Some(&wrapped));
        template(request, &attributes);
    });
    assert_ne!(unwrapped.expect("it is unwrapped"), key);
    let public: [(u64, &[u8]); 1] = [(CKA_EC_PARAMS, &P256)];
    let generate = (CKM_EC_KEY_PAIR_GEN, &public[..]);
    let [_, private] = pair(&mut raw, session, generate, &[(CKA_DERIVE, YES)]);
    let [other, _] = pair(&mut raw, session, generate, &[(CKA_DERIVE, YES)]);
    let point = value(&mut raw, session, other, CKA_EC_POINT).expect("a point");
    let ecdh = |request: &mut Writer| {
        request.number(CKD_NULL);
        request.half(NO_BYTES);
        request.counted(&point);
    };
    let length = 32_u64.to_ne_bytes();
    let attributes = [&attributes[..], &[(CKA_VALUE_LEN, &length)]].concat();
    let derive = |raw: &mut Raw, call| {
        raw.call(call, |request| {
            request.number(session);
            mechanism(request, CKM_ECDH1_DERIVE, Some(&ecdh));
            request.number(private);
            template(request, &attributes);
        })
    };
    assert_eq!(derive(&mut raw, 62).expect("it is derived").len(), 8);
    let again = derive(&mut raw, 89).expect("it is derived");
    assert_eq!((&again[..8], again[8], again.len()), (&[0; 8][..], 1, 17));
}

/// One value, of which there are no more than a page.
fn value(raw: &mut Raw, session: u64, object: u64, attribute: u64) -> Result<Vec<u8>> {
    let answer = raw.call(24, |request| {
        numbers(request, &[session, object]);
        request.count(1);
        request.half(number_of(attribute));
        request.half(4096);
    })?;
    let mut answer = Reader::new(&answer);
    assert_eq!(answer.count(), Ok(1));
    let (there, length) = answer.attribute()?;
    assert_eq!(there, attribute);
    let value = length.map(|_| answer.value(kind(attribute))).transpose()?.unwrap_or_default();
    Error::check(answer.number()?).map(|()| value.into_owned())
}

#[test]
fn attributes_are_answered_with_what_is_there_and_one_of_the_reasons() {
    let place = served();
    let (mut raw, session) = logged_in(&place, 2);
    let key = aes(&mut raw, session, &[(CKA_LABEL, b"label")]);
    assert_eq!(value(&mut raw, session, key, CKA_VALUE), Err(Error::ATTRIBUTE_SENSITIVE));
    assert_eq!(value(&mut raw, session, key, CKA_MODULUS), Err(Error::ATTRIBUTE_TYPE_INVALID));
    assert_eq!(value(&mut raw, session, key, CKA_LABEL), Ok(b"label".to_vec()));
    let answer = raw.call(24, |request| {
        numbers(request, &[session, key]);
        request.count(3);
        for (attribute, room) in [(CKA_LABEL, 0), (CKA_CLASS, 0), (CKA_LABEL, 4)] {
            request.half(number_of(attribute));
            request.half(room);
        }
    });
    let answer = answer.expect("lengths");
    let mut answer = Reader::new(&answer);
    assert_eq!(answer.count(), Ok(3));
    assert_eq!(answer.attribute(), Ok((CKA_LABEL, Some(5))));
    assert_eq!(answer.counted(), Ok(None));
    assert_eq!(answer.attribute(), Ok((CKA_CLASS, Some(8))));
    assert_eq!(answer.number(), Ok(CKO_SECRET_KEY));
    assert_eq!(answer.attribute(), Ok((CKA_LABEL, None)));
    assert_eq!(answer.number(), Ok(CKR_BUFFER_TOO_SMALL));
    assert_eq!(answer.end(), Ok(()));
    let size = raw.number(23, |request| numbers(request, &[session, key]));
    assert!(size.is_ok() || size == Err(Error::FUNCTION_NOT_SUPPORTED), "{size:?}");
}

#[test]
fn templates_in_templates_are_carried_both_ways() {
    let place = served();
    let (mut raw, session) = logged_in(&place, 2);
    let length = 32_u64.to_ne_bytes();
    let key = raw.number(58, |request| {
        request.number(session);
        mechanism(request, CKM_AES_KEY_GEN, None);
        request.count(3);
        request.available(CKA_VALUE_LEN, 8).expect("a number of the standard");
        request.value(Kind::Number, &length).expect("a number");
        request.available(CKA_WRAP, 1).expect("a number of the standard");
        request.byte(1);
        request.available(CKA_WRAP_TEMPLATE, 48).expect("a number of the standard");
        template(request, &[(CKA_EXTRACTABLE, YES), (CKA_LABEL, b"inner")]);
    });
    let key = key.expect("a key is made");
    let answer = raw.call(24, |request| {
        numbers(request, &[session, key]);
        request.count(1);
        request.half(number_of(CKA_WRAP_TEMPLATE));
        request.half(48);
        request.count(2);
        (0..2).for_each(|_| {
            request.half(0);
            request.half(100);
        });
    });
    let answer = answer.expect("a template");
    let mut answer = Reader::new(&answer);
    assert_eq!((answer.count(), answer.attribute()), (Ok(1), Ok((CKA_WRAP_TEMPLATE, Some(48)))));
    assert_eq!(answer.count(), Ok(2));
    let mut inner = [0, 1].map(|_| {
        let (attribute, length) = answer.attribute().expect("an attribute");
        let value = answer.value(kind(attribute)).expect("a value");
        assert_eq!(length, Some(value.len()));
        (attribute, value.into_owned())
    });
    inner.sort();
    assert_eq!(inner, [(CKA_LABEL, b"inner".to_vec()), (CKA_EXTRACTABLE, YES.to_vec())]);
    assert_eq!((answer.number(), answer.end()), (Ok(CKR_OK), Ok(())));
}

/// p11-kit writes a length that the program gave, and of the array as many as that has whole: a program that counts attributes and not
/// bytes would have a key without the restriction.
#[test]
fn a_template_of_a_length_that_is_none_of_an_array_is_refused() {
    let place = served();
    for version in 0..=2 {
        let (mut raw, session) = logged_in(&place, version);
        let mut made = |length, flags: &[(CK_ATTRIBUTE_TYPE, &[u8])]| {
            raw.number(20, |request| {
                request.number(session);
                request.count(4);
                for (attribute, number) in [(CKA_CLASS, CKO_SECRET_KEY), (CKA_KEY_TYPE, CKK_AES)] {
                    request.available(attribute, 8).expect("a number of the standard");
                    request.number(number);
                }
                request.available(CKA_VALUE, 32).expect("a number of the standard");
                request.value(kind(CKA_VALUE), &[7; 32]).expect("bytes");
                request.available(CKA_UNWRAP_TEMPLATE, length).expect("a number of the standard");
                template(request, flags);
            })
        };
        let flag = (CKA_EXTRACTABLE, YES);
        for (length, flags) in [(1, &[][..]), (23, &[]), (24, &[]), (0, &[flag]), (25, &[flag])] {
            let told = made(length, flags);
            assert_eq!(told, Err(Error::ATTRIBUTE_VALUE_INVALID), "{version}: {length}");
        }
        made(0, &[]).expect("it is empty");
        made(24, &[flag]).expect("it is whole");
    }
}

#[test]
fn a_template_with_one_that_a_version_has_no_form_for_is_answered_whole() {
    let place = served();
    let engine = place.engine();
    let own = engine.open_session(SlotId(0), CKF_SERIAL_SESSION | CKF_RW_SESSION);
    let own = own.expect("a session opens");
    engine.login(own, CKU_USER, USER).expect("the user logs in");
    let flag = |attribute| (attribute, RawValue::Bytes(vec![1]));
    let inner =
        [flag(CKA_SIGN), (CKA_DECAPSULATE_TEMPLATE, RawValue::Template(vec![flag(CKA_SIGN)]))];
    let length = (CKA_VALUE_LEN, RawValue::Bytes(32_u64.to_ne_bytes().into()));
    let template = (CKA_UNWRAP_TEMPLATE, RawValue::Template(inner.into()));
    let template = vec![length, flag(CKA_TOKEN), flag(CKA_UNWRAP), template];
    let made = engine.generate_key(own, CKM_AES_KEY_GEN, Params::None, template);
    made.expect("a key is made");
    for version in 0..=2 {
        let (mut raw, session) = logged_in(&place, version);
        let found = raw.call(26, |request| {
            request.number(session);
            self::template(request, &[(CKA_UNWRAP, YES)]);
        });
        found.expect("a search begins");
        let found = raw.call(27, |request| numbers_and_room(request, session)).expect("objects");
        let found = Reader::new(&found).numbers().expect("a list").expect("it fits");
        let &[key] = &found[..] else { panic!("{found:?}") };
        let answer = raw.call(24, |request| {
            numbers(request, &[session, key]);
            request.count(2);
            request.half(number_of(CKA_UNWRAP_TEMPLATE));
            request.half(48);
            if version > 0 {
                request.count(2);
                [0, 100, 0, 100].into_iter().for_each(|one| request.half(one));
            }
            [number_of(CKA_CLASS), 8].into_iter().for_each(|one| request.half(one));
        });
        let answer = answer.expect("attributes");
        let mut answer = Reader::new(&answer);
        assert_eq!(answer.count(), Ok(2), "{version}");
        assert_eq!(answer.attribute(), Ok((CKA_UNWRAP_TEMPLATE, Some(48))), "{version}");
        assert_eq!(answer.count(), Ok(2), "{version}");
        assert_eq!(answer.attribute().map(|one| one.0), Ok(CKA_SIGN), "{version}");
        assert_eq!(answer.byte(), Ok(1), "{version}");
        assert_eq!(answer.attribute(), Ok((CKA_DECAPSULATE_TEMPLATE, None)), "{version}");
        assert_eq!(answer.attribute(), Ok((CKA_CLASS, Some(8))), "{version}");
        assert_eq!(answer.number(), Ok(CKO_SECRET_KEY), "{version}");
        assert_eq!(answer.number(), Ok(CKR_OK), "{version}");
        assert_eq!(answer.end(), Ok(()), "{version}");
    }
}

#[test]
fn a_template_in_which_nothing_is_has_a_form_in_each_version() {
    let place = served();
    pairs(&place, CKA_DECRYPT);
    for version in 0..=2 {
        let (mut raw, session) = logged_in(&place, version);
        let found = raw.call(26, |request| {
            request.number(session);
            template(request, &[(CKA_LABEL, b"seal"), (CKA_DECRYPT, YES)]);
        });
        found.expect("a search begins");
        let found = raw.call(27, |request| numbers_and_room(request, session)).expect("objects");
        let found = Reader::new(&found).numbers().expect("a list").expect("it fits");
        let told = value(&mut raw, session, found[0], CKA_DECAPSULATE_TEMPLATE);
        assert_eq!(told, Ok(Vec::new()), "{version}");
    }
}

#[test]
fn dual_functions_recovery_states_and_messages_are_served() {
    let place = served();
    let (mut raw, session) = logged_in(&place, 2);
    let key = aes(&mut raw, session, &[]);
    let digest = |raw: &mut Raw| {
        raw.call(37, |request| {
            request.number(session);
            mechanism(request, CKM_SHA256, None);
        })
    };
    let iv = |request: &mut Writer| request.counted(&[5; 16]);
    digest(&mut raw).expect("a digest begins");
    begin(&mut raw, 29, session, CKM_AES_CBC, Some(&iv), key).expect("an encryption begins");
    let sealed = done(&mut raw, 54, session, &[1; 16]);
    let first = raw.bytes(41, |request| numbers_and_room(request, session));
    raw.bytes(32, |request| numbers_and_room(request, session))
        .expect("the last part")
        .expect("it fits");
    digest(&mut raw).expect("a digest begins");
    begin(&mut raw, 33, session, CKM_AES_CBC, Some(&iv), key).expect("a decryption begins");
    assert_eq!(done(&mut raw, 55, session, &sealed), [1; 16]);
    let second = raw.bytes(41, |request| numbers_and_room(request, session));
    assert!(first.is_ok() && first == second);
    raw.bytes(36, |request| numbers_and_room(request, session))
        .expect("the last part")
        .expect("it fits");
    digest(&mut raw).expect("a digest begins");
    let state = raw
        .bytes(16, |request| numbers_and_room(request, session))
        .expect("a state")
        .expect("it fits");
    let digest_parts = |raw: &mut Raw| {
        raw.call(39, |request| {
            request.number(session);
            request.bytes(Some(b"abc"));
        })
        .expect("data is taken");
        raw.bytes(41, |request| numbers_and_room(request, session))
    };
    let digested = digest_parts(&mut raw);
    raw.call(17, |request| {
        request.number(session);
        request.bytes(Some(&state));
        numbers(request, &[0, 0]);
    })
    .expect("it is restored");
    assert!(digested.is_ok() && digest_parts(&mut raw) == digested);
    let digest_key = raw.call(40, |request| numbers(request, &[session, key]));
    assert_eq!(digest_key, Err(Error::OPERATION_NOT_INITIALIZED));
    recovery_and_messages(&mut raw, session);
}

fn recovery_and_messages(raw: &mut Raw, session: u64) {
    let bits = 2048_u64.to_ne_bytes();
    let public: [(u64, &[u8]); 3] =
        [(CKA_MODULUS_BITS, &bits), (CKA_VERIFY, YES), (CKA_VERIFY_RECOVER, YES)];
    let private: [(u64, &[u8]); 2] = [(CKA_SIGN, YES), (CKA_SIGN_RECOVER, YES)];
    let [public, private] = pair(raw, session, (CKM_RSA_PKCS_KEY_PAIR_GEN, &public), &private);
    begin(raw, 46, session, CKM_RSA_PKCS, None, private).expect("a signature begins");
    let signature = done(raw, 47, session, b"words");
    begin(raw, 52, session, CKM_RSA_PKCS, None, public).expect("a recovery begins");
    assert_eq!(done(raw, 53, session, &signature), b"words");
    begin(raw, 78, session, CKM_SHA256_RSA_PKCS, None, private).expect("messages begin");
    begin(raw, 83, session, CKM_SHA256_RSA_PKCS, None, public).expect("messages begin");
    let part = |request: &mut Writer, data: &[u8], signature: Option<&[u8]>| {
        request.number(session);
        request.bytes(Some(&[]));
        request.bytes(Some(data));
        if let Some(signature) = signature {
            request.bytes(Some(signature));
        }
    };
    let whole = raw.bytes(79, |request| {
        part(request, b"some words", None);
        request.half(256);
    });
    let whole = whole.expect("a signature").expect("it fits");
    let begin_message = |raw: &mut Raw, call| {
        raw.call(call, |request| {
            request.number(session);
            request.bytes(Some(&[]));
        })
        .expect("a message begins");
    };
    begin_message(raw, 80);
    let next = |raw: &mut Raw, data: &[u8], last| {
        raw.bytes(81, |request| {
            part(request, data, None);
            request.byte(last);
            request.half(256);
        })
    };
    assert_eq!(next(raw, b"some", 0), Ok(Ok(Vec::new())));
    assert_eq!(next(raw, b" words", 1), Ok(Ok(whole.clone())));
    raw.call(84, |request| part(request, b"some words", Some(&whole))).expect("it is right");
    begin_message(raw, 85);
    raw.call(86, |request| {
        part(request, b"some", None);
        request.byte(1);
        request.half(NO_BYTES);
    })
    .expect("a part");
    raw.call(86, |request| part(request, b" words", Some(&whole))).expect("it is right");
    raw.call(82, |request| request.number(session)).expect("messages end");
    raw.call(87, |request| request.number(session)).expect("messages end");
}

#[test]
fn what_is_not_served_is_said_so_and_the_connection_goes_on() {
    let place = served();
    let (mut raw, session) = logged_in(&place, 2);
    let message = raw.call(72, |request| request.number(session));
    assert_eq!(message, Err(Error::FUNCTION_NOT_SUPPORTED));
    assert_eq!(raw.number(65, |request| request.number(0)), Err(Error::FUNCTION_NOT_SUPPORTED));
    assert_eq!(raw.number(65, |request| request.number(CKF_DONT_BLOCK)), Err(Error::NO_EVENT));
    let later = [0, CKF_SERIAL_SESSION | CKF_ASYNC_SESSION];
    let opened = raw.number(10, |request| numbers(request, &later));
    assert_eq!(opened, Err(Error::SESSION_ASYNC_NOT_SUPPORTED));
    let named = raw.call(66, |request| {
        numbers(request, &[session, CKU_USER]);
        request.bytes(Some(USER));
        request.bytes(Some(b"name"));
    });
    assert_eq!(named, Err(Error::USER_ANOTHER_ALREADY_LOGGED_IN));
    // Sessions of others, and of nobody.
    assert_eq!(
        raw.call(19, |request| request.number(session + 1)),
        Err(Error::SESSION_HANDLE_INVALID)
    );
    raw.call(12, |request| request.number(0)).expect("the client's sessions are closed");
    assert_eq!(raw.call(19, |request| request.number(session)), Err(Error::SESSION_HANDLE_INVALID));
    let label = [b' '; 32];
    raw.call(88, |request| {
        request.number(0);
        request.bytes(Some(SO));
        request.counted(&label);
    })
    .expect("a token is made");
    raw.call(2, |_| {}).expect("it ends");
    assert_eq!(raw.call(3, |_| {}), Err(Error::CRYPTOKI_NOT_INITIALIZED));
}

/// `p11-kit-client.so` does not know the mechanism, and no version has a word for its parameter: our client asks without one.
#[test]
fn a_key_of_ed25519_signs_where_the_version_says_which_parameters_there_are() {
    let place = Place::served();
    initialized(&place);
    let engine = place.engine();
    let session = engine.open_session(SlotId(0), CKF_SERIAL_SESSION | CKF_RW_SESSION);
    let session = session.expect("a session opens");
    engine.login(session, CKU_USER, USER).expect("the user logs in");
    let named = |more: (u64, &[u8])| {
        let all = [(CKA_LABEL, &b"ed25519"[..]), (CKA_TOKEN, &[1]), more];
        Vec::from(all.map(|(attribute, value)| (attribute, RawValue::Bytes(value.to_vec()))))
    };
    let public = named((CKA_EC_PARAMS, &[6, 3, 0x2b, 0x65, 0x70]));
    let private = named((CKA_SIGN, &[1]));
    engine
        .generate_key_pair(session, CKM_EC_EDWARDS_KEY_PAIR_GEN, Params::None, public, private)
        .expect("a pair is made");
    for (version, carries) in [(1, false), (2, true)] {
        let module = place.module(version);
        module.initialize().expect("it begins");
        let mechanisms = module.mechanisms(SlotId(0)).expect("a list");
        assert_eq!(mechanisms.contains(&CKM_EDDSA), carries, "version {version}");
        let session = module.open_session(SlotId(0), Access::ReadOnly).expect("a session opens");
        session.login(User::User, USER).expect("the user logs in");
        let [private, public] = [CKO_PRIVATE_KEY, CKO_PUBLIC_KEY].map(|class| {
            let wanted = metaslot_client::Template::new().class(class).label("ed25519");
            session.find_one(&wanted).expect("a search").expect("it is there")
        });
        let signed = session.sign(&CKM_EDDSA.into(), private, b"some words");
        assert_eq!(signed.is_ok(), carries, "version {version}");
        if let Ok(signature) = signed {
            let prehashed = metaslot_client::Params::EdDsa { prehash: true, context: b"" };
            let prehashed = Mechanism::with(CKM_EDDSA, prehashed);
            let refused =
                session.sign(&prehashed, private, b"some words").expect_err("no word for it");
            assert_eq!(refused.code, Error::MECHANISM_PARAM_INVALID);
            let verified = session.verify(&CKM_EDDSA.into(), public, b"some words", &signature);
            verified.expect("it is right");
        }
    }
}

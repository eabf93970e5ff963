// SPDX-License-Identifier: Apache-2.0
//! All that one user's clients have in the daemon's memory is bounded, and what they do not have any more is given back.

use crate::common::{Place, Raw, USER, initialized, started};
use crate::protocol::{
    Parameter, YES, aes, begin, numbers, numbers_and_room, pair, template, transform,
};
use metaslot_ck::*;
use metaslot_client::protocol::Writer;
use std::fs;
use std::os::unix::net::UnixStream;

const MEMORY: usize = 1 << 20;
/// Of what fills the room.
const PIECE: usize = 100_000;
/// More than there are pieces in the room.
const PIECES: usize = 12;
const ED25519: &[u8] = &[0x06, 0x03, 0x2b, 0x65, 0x70];

/// A client with a session in a room that is not large.
fn in_a_room() -> (Place, Raw, u64) {
    let place = Place::new();
    initialized(&place);
    let mut raw = place.raw_within(MEMORY);
    let session = open(&mut raw).expect("a session opens");
    (place, raw, session)
}

fn open(raw: &mut Raw) -> Result<u64> {
    raw.number(10, |request| numbers(request, &[0, CKF_SERIAL_SESSION]))
}

/// Creates an object of the session with a value of [`PIECE`] bytes.
fn create(raw: &mut Raw, session: u64, class: u64, more: &[(u64, &[u8])]) -> Result<u64> {
    let (class, value) = (class.to_ne_bytes(), [5; PIECE]);
    let all = [&[(CKA_CLASS, &class[..]), (CKA_VALUE, &value), (CKA_PRIVATE, &[0])], more].concat();
    raw.number(20, |request| {
        request.number(session);
        template(request, &all);
    })
}

fn data(raw: &mut Raw, session: u64) -> Result<u64> {
    create(raw, session, CKO_DATA, &[])
}

/// As often as it can be done, and why not once more.
fn often<T>(mut once: impl FnMut() -> Result<T>) -> (Vec<T>, Option<Error>) {
    let mut done = Vec::new();
    loop {
        match once() {
            Ok(_) if done.len() == PIECES => panic!("there is no end"),
            Ok(one) => done.push(one),
            Err(refused) => return (done, Some(refused)),
        }
    }
}

/// What ends something in a session.
type End<'a> = &'a dyn Fn(&mut Raw, u64) -> Result<Vec<u8>>;

/// A parameter of AES-GCM with so much that is not encrypted.
fn gcm(aad: usize) -> impl Fn(&mut Writer) {
    move |request| {
        request.counted(&[0; 12]);
        request.number(96);
        request.counted(&vec![0; aad]);
        request.number(128);
    }
}

#[test]
fn a_client_fills_the_room_of_its_user_and_no_more() {
    let (_place, mut raw, session) = in_a_room();
    let full = |raw: &mut Raw, session| often(|| data(raw, session));
    let (made, refused) = full(&mut raw, session);
    assert_eq!((made.len(), refused), (9, Some(Error::DEVICE_MEMORY)));
    raw.call(22, |request| numbers(request, &[session, made[0]])).expect("it is destroyed");
    let other = open(&mut raw).expect("there is room");
    // By way of another session, too.
    raw.call(22, |request| numbers(request, &[other, made[1]])).expect("it is destroyed");
    assert_eq!(full(&mut raw, other).0.len(), 2);
    raw.call(11, |request| request.number(session)).expect("it is closed");
    assert_eq!(full(&mut raw, other).0.len(), 7, "those of the session have gone with it");
    raw.call(12, |request| request.number(0)).expect("all are closed");
    let mut opened = 0;
    let refused = loop {
        match open(&mut raw) {
            Ok(_) => opened += 1,
            Err(refused) => break refused,
        }
    };
    assert_eq!((opened, refused), (128, Error::SESSION_COUNT));
}

#[test]
fn values_that_are_no_attributes_take_room() {
    let (_place, mut raw, session) = in_a_room();
    let secret = CKK_GENERIC_SECRET.to_ne_bytes();
    let secret: [(u64, &[u8]); 1] = [(CKA_KEY_TYPE, &secret)];
    let (made, refused) = often(|| create(&mut raw, session, CKO_SECRET_KEY, &secret));
    assert_eq!((made.len(), refused), (9, Some(Error::DEVICE_MEMORY)));
    // What has grown since it was made, too.
    raw.call(22, |request| numbers(request, &[session, made[0]])).expect("it is destroyed");
    let object = raw.number(20, |request| {
        request.number(session);
        template(request, &[(CKA_CLASS, &CKO_DATA.to_ne_bytes()), (CKA_PRIVATE, &[0])]);
    });
    let object = object.expect("there is room");
    raw.call(25, |request| {
        numbers(request, &[session, object]);
        template(request, &[(CKA_LABEL, &[b'x'; PIECE])]);
    })
    .expect("there is room");
    assert_eq!(create(&mut raw, session, CKO_SECRET_KEY, &secret), Err(Error::DEVICE_MEMORY));
    // Once only, by way of whichever session.
    raw.call(22, |request| numbers(request, &[session, made[1]])).expect("it is destroyed");
    let other = open(&mut raw).expect("there is room");
    raw.call(25, |request| {
        numbers(request, &[other, object]);
        template(request, &[(CKA_LABEL, b"x")]);
    })
    .expect("there is room");
    let more = often(|| create(&mut raw, session, CKO_SECRET_KEY, &secret)).0;
    assert_eq!(more.len(), 2, "that of the destroyed key, and that of the label");
}

#[test]
fn an_operation_gathers_no_more_than_its_user_has_room_for() {
    let (_place, mut raw, session) = in_a_room();
    let key = aes(&mut raw, session, &[(CKA_DECRYPT, YES), (CKA_ENCRYPT, YES)]);
    let gcm = gcm(0);
    let part = |raw: &mut Raw, call| transform(raw, call, session, &[0; PIECE], 1 << 20);
    // What has been decrypted is not given before all of it is known to be right.
    for _ in 0..2 {
        begin(&mut raw, 33, session, CKM_AES_GCM, Some(&gcm), key).expect("it begins");
        let (parts, refused) = often(|| part(&mut raw, 35));
        assert_eq!((parts.len(), refused), (8, Some(Error::DEVICE_MEMORY)));
        let ended = raw.bytes(36, |request| numbers_and_room(request, session));
        assert_eq!(ended, Err(Error::OPERATION_NOT_INITIALIZED));
    }
    // What goes out again takes no room, how small its parts may be.
    let iv: Parameter<'_> = &|request| request.counted(&[0; 16]);
    begin(&mut raw, 29, session, CKM_AES_CBC, Some(iv), key).expect("it begins");
    for _ in 0..3 * PIECES {
        let made = part(&mut raw, 31);
        assert_eq!(made.expect("a part").expect("it fits").len(), PIECE);
    }
    begin(&mut raw, 33, session, CKM_AES_GCM, Some(&gcm), key).expect("it begins");
    for _ in 0..PIECES {
        part(&mut raw, 35).expect("there is room").expect("nothing is given");
        raw.bytes(36, |request| numbers_and_room(request, session))
            .expect_err("it is wrong, and ends");
        begin(&mut raw, 33, session, CKM_AES_GCM, Some(&gcm), key).expect("it begins");
    }
}

#[test]
fn both_operations_of_a_call_take_what_they_keep() {
    let (_place, mut raw, session) = in_a_room();
    let key = aes(&mut raw, session, &[(CKA_ENCRYPT, YES)]);
    let public: [(u64, &[u8]); 1] = [(CKA_EC_PARAMS, ED25519)];
    let [_, private] =
        pair(&mut raw, session, (CKM_EC_EDWARDS_KEY_PAIR_GEN, &public), &[(CKA_SIGN, YES)]);
    let iv: Parameter<'_> = &|request| request.counted(&[0; 16]);
    begin(&mut raw, 29, session, CKM_AES_CBC, Some(iv), key).expect("it begins");
    begin(&mut raw, 42, session, CKM_EDDSA, None, private).expect("it begins");
    let (parts, refused) = often(|| transform(&mut raw, 56, session, &[0; PIECE], 1 << 20));
    assert_eq!((parts.len(), refused), (8, Some(Error::DEVICE_MEMORY)));
    for call in [32, 45] {
        let ended = raw.bytes(call, |request| numbers_and_room(request, session));
        assert_eq!(ended, Err(Error::OPERATION_NOT_INITIALIZED), "{call}");
    }
    assert_eq!(often(|| data(&mut raw, session)).0.len(), 9, "all was given back");
}

/// Parameters fill the room, and each way in which an operation can end gives it back.
#[test]
fn what_an_operation_has_is_given_back_however_it_ends() {
    let (_place, mut raw, first) = in_a_room();
    let key = aes(&mut raw, first, &[(CKA_ENCRYPT, YES)]);
    let aad = gcm(PIECE);
    let sessions: Vec<_> = (0..PIECES).map(|_| open(&mut raw).expect("a session opens")).collect();
    let cancelled = |raw: &mut Raw, session| {
        raw.call(29, |request| {
            request.number(session);
            request.half(u32::MAX);
            request.number(0);
        })
    };
    let by_flag =
        |raw: &mut Raw, session| raw.call(67, |request| numbers(request, &[session, CKF_ENCRYPT]));
    let finished =
        |raw: &mut Raw, session| raw.call(32, |request| numbers_and_room(request, session));
    let at_once = |raw: &mut Raw, session| {
        raw.call(30, |request| {
            request.number(session);
            request.bytes(Some(&[1]));
            request.half(64);
        })
    };
    // A request that says more than it has.
    let failed = |raw: &mut Raw, session| {
        let refused = raw.call(31, |request| {
            request.number(session);
            request.byte(0);
            request.count(1);
            request.half(64);
        });
        assert_eq!(refused, Err(Error::ARGUMENTS_BAD));
        Ok(Vec::new())
    };
    let closed = |raw: &mut Raw, session| raw.call(11, |request| request.number(session));
    let ends: [(&str, End<'_>); 6] = [
        ("a mechanism that is none", &cancelled),
        ("C_SessionCancel", &by_flag),
        ("C_EncryptFinal", &finished),
        ("C_Encrypt", &at_once),
        ("a failure", &failed),
        ("C_CloseSession", &closed),
    ];
    for (name, end) in ends {
        let mut all = sessions.iter();
        let (begun, refused) = often(|| {
            let session = *all.next().expect("there are enough");
            begin(&mut raw, 29, session, CKM_AES_GCM, Some(&aad), key).map(|()| session)
        });
        assert_eq!((begun.len(), refused), (9, Some(Error::DEVICE_MEMORY)), "{name}");
        for session in begun {
            end(&mut raw, session).unwrap_or_else(|error| panic!("{name}: {error}"));
        }
    }
}

#[test]
fn what_a_search_has_is_given_back_however_it_ends() {
    let (_place, mut raw, first) = in_a_room();
    let sessions: Vec<_> = (0..PIECES).map(|_| open(&mut raw).expect("a session opens")).collect();
    let search = |raw: &mut Raw, session| {
        raw.call(26, |request| {
            request.number(session);
            template(request, &[(CKA_LABEL, &[b'x'; PIECE])]);
        })
    };
    let ends: [End<'_>; 3] = [
        &|raw, session| raw.call(28, |request| request.number(session)),
        &|raw, session| raw.call(67, |request| numbers(request, &[session, CKF_FIND_OBJECTS])),
        &|raw, session| raw.call(11, |request| request.number(session)),
    ];
    for end in ends {
        let mut all = sessions.iter();
        let (begun, refused) = often(|| {
            let session = *all.next().expect("there are enough");
            search(&mut raw, session).map(|_| session)
        });
        assert_eq!((begun.len(), refused), (8, Some(Error::DEVICE_MEMORY)));
        begun.into_iter().for_each(|session| drop(end(&mut raw, session).expect("it ends")));
    }
    assert_eq!(often(|| data(&mut raw, first)).0.len(), 9);
}

#[test]
fn a_login_that_ends_and_a_connection_that_breaks_give_back_what_they_had() {
    let place = Place::new();
    initialized(&place);
    let [mut one, mut two] = place.raws_within(MEMORY);
    let sessions = [&mut one, &mut two].map(|raw| open(raw).expect("a session opens"));
    one.call(18, |request| {
        numbers(request, &[sessions[0], CKU_USER]);
        request.bytes(Some(USER));
    })
    .expect("the PIN");
    let private = [(CKA_PRIVATE, YES), (CKA_DECRYPT, YES)];
    let mut fill = |one: &mut Raw, key| {
        begin(one, 33, sessions[0], CKM_AES_GCM, Some(&gcm(0)), key).expect("it begins");
        let gathered = often(|| transform(one, 35, sessions[0], &[0; PIECE], 1 << 20).map(drop));
        // The last one has ended it, and the next fills what there is.
        begin(one, 33, sessions[0], CKM_AES_GCM, Some(&gcm(0)), key).expect("it begins");
        for _ in gathered.0 {
            transform(one, 35, sessions[0], &[0; PIECE], 1 << 20).expect("a part").ok();
        }
        assert!(often(|| data(&mut two, sessions[1])).0.len() < 2, "there is not much");
        two.call(11, |request| request.number(sessions[1])).ok();
    };
    let key = aes(&mut one, sessions[0], &private);
    fill(&mut one, key);
    one.call(19, |request| request.number(sessions[0])).expect("the login ends");
    let session = open(&mut two).expect("there is room");
    assert_eq!(often(|| data(&mut two, session)).0.len(), 9, "with the login its operations");
    two.call(11, |request| request.number(session)).expect("it is closed");
    let (made, _) = often(|| data(&mut one, sessions[0]));
    assert_eq!(made.len(), 9);
    drop(one);
    // Its thread sees that in a moment.
    let session = loop {
        if let Ok(session) = open(&mut two) {
            break session;
        }
    };
    while data(&mut two, session).is_err() {}
    assert_eq!(often(|| data(&mut two, session)).0.len(), 8);
}

#[test]
fn what_a_client_has_no_more_is_there_for_others_of_its_user() {
    let place = Place::new();
    initialized(&place);
    let [mut one, mut two] = place.raws_within(MEMORY);
    let [first, second] = [(); 2].map(|()| open(&mut one).expect("a session opens"));
    let mut fills = |made: usize| {
        let session = open(&mut two).expect("there is room");
        assert_eq!(often(|| data(&mut two, session)).0.len(), made);
        two.call(11, |request| request.number(session)).expect("it is closed");
    };
    fills(9);
    let (made, _) = often(|| data(&mut one, first));
    fills(0);
    for object in made {
        one.call(22, |request| numbers(request, &[second, object])).expect("it is destroyed");
    }
    fills(9);
    one.call(18, |request| {
        numbers(request, &[first, CKU_USER]);
        request.bytes(Some(USER));
    })
    .expect("the PIN");
    let (class, value) = (CKO_DATA.to_ne_bytes(), [5; PIECE]);
    let private = [(CKA_CLASS, &class[..]), (CKA_VALUE, &value), (CKA_PRIVATE, YES)];
    let made = often(|| {
        one.number(20, |request| {
            request.number(first);
            template(request, &private);
        })
    });
    assert_eq!(made.0.len(), 9);
    one.call(19, |request| request.number(second)).expect("the login ends");
    fills(9);
}

#[test]
fn messages_on_their_way_take_room_and_give_it_back() {
    let (_place, mut raw, session) = in_a_room();
    let random = |raw: &mut Raw, length| {
        raw.bytes(64, |request| {
            request.number(session);
            request.half(length);
        })
    };
    for _ in 0..PIECES {
        assert_eq!(random(&mut raw, 500_000).expect("it fits").expect("bytes").len(), 500_000);
        assert_eq!(random(&mut raw, 700_000), Err(Error::DEVICE_MEMORY));
    }
    let key = aes(&mut raw, session, &[(CKA_ENCRYPT, YES)]);
    for length in [1 << 19, 1 << 20, 1 << 21] {
        begin(&mut raw, 29, session, CKM_AES_GCM, Some(&gcm(0)), key).expect("it begins");
        let refused = transform(&mut raw, 30, session, &vec![0; length], 1 << 24);
        assert_eq!(refused, Err(Error::DEVICE_MEMORY), "{length}");
        let ended = raw.bytes(32, |request| numbers_and_room(request, session));
        assert_eq!(ended, Err(Error::OPERATION_NOT_INITIALIZED), "{length}");
    }
    // Many small attributes are more than their bytes in the request.
    let many = vec![(CKA_LABEL, &[][..]); 512];
    let nested = raw.call(20, |request| {
        request.number(session);
        request.count(100);
        for _ in 0..100 {
            request.available(CKA_WRAP_TEMPLATE, many.len() * 24).expect("a number");
            template(request, &many);
        }
    });
    assert_eq!(nested, Err(Error::DEVICE_MEMORY));
    assert_eq!(often(|| data(&mut raw, session)).0.len(), 9, "all was given back");
}

#[test]
fn what_no_answer_holds_is_not_kept() {
    let place = Place::new();
    initialized(&place);
    let mut raw = place.raw_within(1 << 29);
    let session = open(&mut raw).expect("a session opens");
    let key = aes(&mut raw, session, &[(CKA_DECRYPT, YES), (CKA_ENCRYPT, YES)]);
    let part = vec![0; (1 << 25) - 1];
    begin(&mut raw, 29, session, CKM_AES_GCM, Some(&gcm(0)), key).expect("it begins");
    let mut sealed = Vec::new();
    for _ in 0..3 {
        let part = transform(&mut raw, 31, session, &part, 1 << 26).expect("a part");
        sealed.push(part.expect("it is given at once"));
    }
    let tag = raw.bytes(32, |request| numbers_and_room(request, session)).expect("the last part");
    sealed.push(tag.expect("it fits"));
    begin(&mut raw, 33, session, CKM_AES_GCM, Some(&gcm(0)), key).expect("it begins");
    for part in sealed {
        let taken = transform(&mut raw, 35, session, &part, 1 << 26).expect("a part");
        assert_eq!(taken, Ok(Vec::new()));
    }
    let end = |raw: &mut Raw| {
        raw.bytes(36, |request| {
            request.number(session);
            request.half(1 << 31);
        })
    };
    assert_eq!(end(&mut raw), Err(Error::HOST_MEMORY));
    assert_eq!(end(&mut raw), Err(Error::OPERATION_NOT_INITIALIZED));
}

/// With all providers: those of the other tests make no such signatures.
#[test]
fn signatures_that_are_computed_at_the_end_keep_their_data_until_then() {
    let place = Place::new();
    initialized(&place);
    let at = place.path().display();
    let daemon = format!(
        "counters = false\n[[token]]\npath = \"{at}/token/token.db\"\nkdf = \"weak-for-tests\"\n\
         [daemon]\nsocket = \"{at}/socket\"\nmemory = 1\n"
    );
    fs::write(place.path().join("metaslotd.toml"), daemon).expect("it is written");
    let _server = started(&place);
    let stream = UnixStream::connect(place.path().join("socket")).expect("it serves");
    let mut raw = Raw::over(stream, 2);
    let session = open(&mut raw).expect("a session opens");
    let class = CKO_PUBLIC_KEY.to_ne_bytes();
    // The first parameter set of each, which stands before the root and the seed.
    let value = [&[0, 0, 0, 1][..], &[7; 64]].concat();
    for (key_type, mechanism) in [(CKK_XMSS, CKM_XMSS), (CKK_XMSSMT, CKM_XMSSMT)] {
        let key_type = key_type.to_ne_bytes();
        let key = raw.number(20, |request| {
            request.number(session);
            let all: [(u64, &[u8]); 5] = [
                (CKA_CLASS, &class),
                (CKA_KEY_TYPE, &key_type),
                (CKA_VALUE, &value),
                (CKA_PARAMETER_SET, &1_u64.to_ne_bytes()),
                (CKA_VERIFY, YES),
            ];
            template(request, &all);
        });
        begin(&mut raw, 48, session, mechanism, None, key.expect("a key")).expect("it begins");
        let (parts, refused) = often(|| {
            raw.call(50, |request| {
                request.number(session);
                request.bytes(Some(&[0; PIECE]));
            })
        });
        assert_eq!((parts.len(), refused), (10, Some(Error::DEVICE_MEMORY)), "{mechanism}");
    }
}

// SPDX-License-Identifier: Apache-2.0
//! What no client of good will sends harms no other client.

mod ours;
mod rings;

use crate::common::{Place, Raw, USER, exchange, initialized, pairs, unlimited};
use crate::protocol::{self, mechanism, numbers};
use metaslot_ck::*;
use metaslot_client::protocol::{Call, GREETING, Kind, NO_BYTES, OFFER, OWN, Writer};
use metaslot_client::{Access, Template, User};
use metaslot_daemon::{Client, agent, p11kit};
use ours::Keys;
use std::io::{self, ErrorKind, Read, Write};
use std::net::Shutdown;
use std::num::NonZeroU64;
use std::os::unix::net::UnixStream;
use std::panic;
use std::str::FromStr;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::mpsc;
use std::thread;
use std::time::{Duration, Instant};

fn frame(code: u32, options: u32, length: u32, body: &[u8]) -> Vec<u8> {
    [[code, options, length].map(u32::to_be_bytes).as_flattened(), body].concat()
}

fn message(number: u32, parts: impl FnOnce(&mut Writer)) -> Vec<u8> {
    let mut request = Writer::default();
    request.begin(number, Call::numbered(number).expect("there is this call").request);
    parts(&mut request);
    request.finish().as_ref().to_vec()
}

/// Digests by a client that comes now, with its own connection.
fn another_client_works(place: &Place) {
    let module = place.module(2);
    module.initialize().expect("it begins");
    let session = module.open_session(SlotId(0), Access::ReadOnly);
    let digest = session.expect("a session opens").digest(&CKM_SHA256.into(), b"abc");
    assert_eq!(digest.expect("a digest")[..4], [0xba, 0x78, 0x16, 0xbf]);
}

#[test]
fn frames_that_cannot_be_end_their_connection_only() {
    let place = Place::served();
    initialized(&place);
    let info = message(3, |_| {});
    let length = u32::try_from(info.len()).expect("short");
    let frames = [
        frame(0, 0, length, &info),
        frame(1, 1 << 13, length, &info),
        frame(1, 0, (1 << 26) + 1, &info),
        frame(1, 0, u32::MAX, &info),
        frame(1, u32::MAX, u32::MAX, &[]),
    ];
    for bytes in frames {
        let mut raw = place.raw(2);
        raw.stream.write_all(&bytes).expect("it is sent");
        let mut answer = Vec::new();
        // Bytes that were not read make of the end of a connection its reset.
        raw.stream.read_to_end(&mut answer).ok();
        assert!(answer.is_empty());
        another_client_works(&place);
    }
}

#[test]
fn requests_that_arrive_together_are_answered_together_and_in_their_order() {
    let place = Place::served();
    initialized(&place);
    let info = message(3, |_| {});
    let length = u32::try_from(info.len()).expect("short");
    let codes = 1..=40;
    let frames = codes.clone().flat_map(|code| frame(code, 0, length, &info));
    // What was asked before a frame that ends the connection is answered.
    for end in [&[][..], &frame(0, 0, length, &info)] {
        let mut raw = place.raw(2);
        raw.stream.write_all(&[&frames.clone().collect::<Vec<_>>(), end].concat()).expect("sent");
        let mut answers = vec![0; 1 << 16];
        let read = raw.stream.read(&mut answers).expect("it answers");
        let mut answers = &answers[..read];
        for code in codes.clone() {
            let (header, rest) = answers.split_at_checked(12).expect("all are there");
            assert_eq!(header[..4], code.to_be_bytes());
            let length = u32::from_be_bytes(header[8..].try_into().expect("four bytes"));
            answers = rest.split_at_checked(length as usize).expect("it is whole").1;
        }
        assert!(answers.is_empty());
        another_client_works(&place);
    }
}

#[test]
fn an_answer_does_not_wait_for_a_call_that_takes_long() {
    let place = Place::served();
    initialized(&place);
    let mut raw = place.raw(2);
    let session = raw.number(10, |request| numbers(request, &[0, CKF_SERIAL_SESSION]));
    let session = session.expect("a session opens");
    let bits = 4096_u64.to_ne_bytes();
    let pair = message(59, |request| {
        request.number(session);
        mechanism(request, CKM_RSA_PKCS_KEY_PAIR_GEN, None);
        protocol::template(request, &[(CKA_MODULUS_BITS, &bits)]);
        protocol::template(request, &[]);
    });
    let both = [message(3, |_| {}), pair].map(|body| {
        let length = u32::try_from(body.len()).expect("short");
        frame(1, 0, length, &body)
    });
    let mut is_first_soon = |_| {
        let begun = Instant::now();
        raw.stream.write_all(&both.concat()).expect("it is sent");
        let [first, second] = [(); 2].map(|()| {
            let mut header = [0; 12];
            raw.stream.read_exact(&mut header).expect("an answer");
            let length = u32::from_be_bytes(*header.last_chunk().expect("it is longer"));
            raw.stream.read_exact(&mut vec![0; length as usize]).expect("all of it");
            begun.elapsed()
        });
        2 * first < second
    };
    // A machine that is busy may be late once.
    assert!((0..5).any(&mut is_first_soon));
}

#[test]
fn messages_that_cannot_be_are_answered_and_the_connection_goes_on() {
    let place = Place::served();
    initialized(&place);
    let mut raw = place.raw(2);
    let mut ask = |bytes: &[u8]| {
        let answer = exchange(&mut raw.stream, bytes).expect("an answer");
        let error = [&[0, 0, 0, 0, 0, 0, 0, 1, b'u'][..]].concat();
        answer.as_ref().strip_prefix(&error[..]).map(<[u8]>::to_vec)
    };
    let told = |error: Error| Some(error.rv().to_be_bytes().to_vec());
    let info = message(3, |_| {});
    assert_eq!(ask(&info), None);
    (0..info.len()).for_each(|length| assert_eq!(ask(&info[..length]), told(Error::DEVICE_ERROR)));
    assert_eq!(ask(&[&info[..], &[0]].concat()), told(Error::DEVICE_ERROR));
    let mut unknown = info.clone();
    unknown[3] = 90;
    assert_eq!(ask(&unknown), told(Error::FUNCTION_NOT_SUPPORTED));
    unknown[3] = 0;
    assert_eq!(ask(&unknown), told(Error::FUNCTION_NOT_SUPPORTED));
    unknown[3] = 4;
    assert_eq!(ask(&unknown), told(Error::DEVICE_ERROR));
    // Counts of what is not there.
    let objects = |count: u32| {
        message(26, |request| {
            request.number(1);
            request.half(count);
        })
    };
    assert_eq!(ask(&objects(0)), told(Error::SESSION_HANDLE_INVALID));
    let again = message(1, |request| {
        request.bytes(Some(GREETING));
        request.byte(0);
        request.bytes(None);
    });
    assert_eq!(ask(&again), told(Error::CRYPTOKI_ALREADY_INITIALIZED));
    assert_eq!(ask(&info), None);
}

#[test]
fn clients_that_die_or_wait_in_the_middle_of_a_frame_hurt_nobody() {
    let place = Place::served();
    initialized(&place);
    let info = message(3, |_| {});
    let length = u32::try_from(info.len()).expect("short");
    let whole = frame(1, 0, length, &info);
    let waiting: Vec<Raw> = (0..whole.len())
        .map(|sent| {
            let mut raw = place.raw(2);
            raw.stream.write_all(&whole[..sent]).expect("it is sent");
            raw
        })
        .collect();
    another_client_works(&place);
    // A great length takes memory as its bytes come.
    let mut great = place.raw(2);
    great.stream.write_all(&frame(1, 0, 1 << 26, &[1; 100])).expect("it is sent");
    let mut silent = vec![place.connect(), place.connect()];
    silent[1].write_all(&[2]).expect("the version is sent");
    another_client_works(&place);
    drop((waiting, great, silent));
    another_client_works(&place);
}

/// Sends `begun` to a server whose patience is short, and gives what its thread ends with, within a time in which one that is
/// patient does not end.
fn given_up(door: Door, begun: &[u8]) -> io::Result<()> {
    let place = Place::new();
    initialized(&place);
    let client = Client { patience: Duration::from_millis(100), ..unlimited(place.engine()) };
    let (mut mine, theirs) = UnixStream::pair().expect("a pair");
    let (told, ended) = mpsc::channel();
    thread::spawn(move || told.send(door(theirs, &client)));
    // Between messages any pause is its own affair.
    thread::sleep(Duration::from_millis(300));
    mine.set_write_timeout(Some(Duration::from_secs(1))).expect("a time");
    mine.write_all(begun).ok();
    ended.recv_timeout(Duration::from_secs(5)).expect("it ends")
}

type Door = fn(UnixStream, &Client) -> io::Result<()>;

#[test]
fn a_client_that_stops_in_the_middle_of_a_message_is_given_up() {
    let info = message(3, |_| {});
    let length = u32::try_from(info.len()).expect("short");
    let whole = frame(1, 0, length, &info);
    for sent in [1, 6, 12, 14] {
        let stalled = given_up(p11kit::serve, &[&[2], &whole[..sent]].concat());
        assert_eq!(stalled.map_err(|error| error.kind()), Err(ErrorKind::WouldBlock), "{sent}");
    }
    // What it does not read is answers.
    let unread = given_up(p11kit::serve, &[&[2], &whole.repeat(1 << 16)[..]].concat());
    assert_eq!(unread.map_err(|error| error.kind()), Err(ErrorKind::WouldBlock));
    for asked in [&[0, 0][..], &[0, 0, 0, 9, 11]] {
        let stalled = given_up(agent::serve, asked);
        assert_eq!(stalled.map_err(|error| error.kind()), Err(ErrorKind::WouldBlock), "{asked:?}");
    }
}

#[test]
fn the_sessions_of_a_client_that_dies_are_closed() {
    let place = Place::new();
    initialized(&place);
    let client = unlimited(place.engine());
    let engine = &client.engine;
    thread::scope(|scope| {
        let (mine, theirs) = UnixStream::pair().expect("a pair");
        let served = scope.spawn(|| p11kit::serve(theirs, &client));
        let mut raw = begun(mine);
        let session = open(&mut raw);
        login(&mut raw, session).expect("the user logs in");
        assert_eq!(engine.token_info(SlotId(0)).expect("a token").sessions.1, 1);
        raw.stream.write_all(&[0; 5]).expect("it is sent");
        drop(raw);
        assert!(served.join().expect("no panic").is_err());
    });
    assert_eq!(engine.token_info(SlotId(0)).expect("a token").sessions.1, 0);
    let session = engine.open_session(SlotId(0), CKF_SERIAL_SESSION).expect("a session opens");
    assert_eq!(engine.session_info(session).expect("a session").state, CKS_RO_PUBLIC_SESSION);
}

#[test]
fn clients_of_one_engine_cannot_reach_the_sessions_of_others() {
    let place = Place::new();
    initialized(&place);
    let client = unlimited(place.engine());
    let engine = &client.engine;
    thread::scope(|scope| {
        let client = || {
            let (mine, theirs) = UnixStream::pair().expect("a pair");
            scope.spawn(|| p11kit::serve(theirs, &client));
            begun(mine)
        };
        let (mut one, mut other) = (client(), client());
        let (first, second) = (open(&mut one), open(&mut other));
        let info = |raw: &mut Raw, session| raw.call(13, |request| request.number(session));
        assert_eq!(info(&mut one, second), Err(Error::SESSION_HANDLE_INVALID));
        let closed = one.call(11, |request| request.number(second));
        assert_eq!(closed, Err(Error::SESSION_HANDLE_INVALID));
        one.call(12, |request| request.number(0)).expect("its own are closed");
        assert_eq!(info(&mut one, first), Err(Error::SESSION_HANDLE_INVALID));
        info(&mut other, second).expect("it is open");
        drop(one);
        info(&mut other, second).expect("it is open");
    });
    assert_eq!(engine.token_info(SlotId(0)).expect("a token").sessions.1, 0);
}

fn begun(stream: UnixStream) -> Raw {
    begun_by(2, stream)
}

/// By a version of p11-kit's protocol, or by one that is our own.
fn begun_by(version: u8, mut stream: UnixStream) -> Raw {
    stream.write_all(&[2]).expect("the version is sent");
    stream.read_exact(&mut [0]).expect("the version is answered");
    let mut raw = Raw { stream };
    let offer = [OFFER, &[version]].concat();
    let begin = |request: &mut Writer| {
        request.bytes(Some(GREETING));
        request.byte(0);
        request.bytes(Some(&offer));
    };
    let agreed = raw.call(1, begin).expect("it begins");
    assert_eq!(agreed, if version == OWN { vec![OWN] } else { Vec::new() });
    raw
}

fn open(raw: &mut Raw) -> u64 {
    let opened = raw.number(10, |request| {
        request.number(0);
        request.number(CKF_SERIAL_SESSION | CKF_RW_SESSION);
    });
    opened.expect("a session opens")
}

fn login(raw: &mut Raw, session: u64) -> Result<Vec<u8>> {
    raw.call(18, |request| {
        request.number(session);
        request.number(CKU_USER);
        request.bytes(Some(USER));
    })
}

/// Numbers that look random, the same in every run.
struct Chance(u64);

impl Chance {
    fn next(&mut self, below: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        usize::try_from(self.0 >> 11).expect("64 bits") % below
    }
}

fn attribute(request: &mut Writer, attribute: u64, kind: Kind, value: &[u8]) {
    request.available(attribute, value.len()).expect("a number of the standard");
    request.value(kind, value).expect("a value of this kind");
}

/// A number of an attribute or a mechanism.
fn half(request: &mut Writer, number: u64) {
    request.half(u32::try_from(number).expect("a number of the standard"));
}

fn gcm(request: &mut Writer, key: u64) {
    half(request, CKM_AES_GCM);
    request.byte(1);
    request.counted(&[4; 12]);
    request.number(96);
    request.counted(b"beside");
    request.number(128);
    request.number(key);
}

fn pss(request: &mut Writer, key: u64) {
    half(request, CKM_RSA_PKCS_PSS);
    request.byte(1);
    [CKM_SHA256, CKG_MGF1_SHA256, 32, key].into_iter().for_each(|one| request.number(one));
}

fn template(request: &mut Writer) {
    request.count(4);
    attribute(request, CKA_CLASS, Kind::Number, &CKO_SECRET_KEY.to_ne_bytes());
    attribute(request, CKA_KEY_TYPE, Kind::Number, &CKK_AES.to_ne_bytes());
    attribute(request, CKA_VALUE, Kind::Bytes, &[3; 16]);
    attribute(request, CKA_ALLOWED_MECHANISMS, Kind::Numbers, &CKM_AES_GCM.to_ne_bytes());
}

fn nested(request: &mut Writer) {
    half(request, CKM_AES_KEY_GEN);
    request.count(2);
    attribute(request, CKA_VALUE_LEN, Kind::Number, &16_u64.to_ne_bytes());
    request.available(CKA_WRAP_TEMPLATE, 24).expect("a number of the standard");
    request.count(1);
    attribute(request, CKA_EXTRACTABLE, Kind::Byte, &[1]);
}

fn wanted(request: &mut Writer, key: u64) {
    request.number(key);
    request.count(3);
    for one in [CKA_CLASS, CKA_LABEL, CKA_WRAP_TEMPLATE] {
        half(request, one);
        request.half(64);
    }
    request.count(1);
    request.half(0);
    request.half(NO_BYTES);
}

fn data(request: &mut Writer) {
    request.bytes(Some(&[1; 32]));
}

fn room(request: &mut Writer) {
    request.half(256);
}

fn data_and_room(request: &mut Writer) {
    data(request);
    room(request);
}

/// Requests that are right, in this session, with this key.
fn requests(session: u64, key: u64) -> Vec<Vec<u8>> {
    let of_session = |number: u32, parts: &dyn Fn(&mut Writer)| {
        message(number, |request| {
            request.number(session);
            parts(request);
        })
    };
    let of_slot = |number: u32, parts: &dyn Fn(&mut Writer)| message(number, parts);
    vec![
        of_session(13, &|_| {}),
        of_session(16, &room),
        of_session(20, &template),
        of_session(24, &|request| wanted(request, key)),
        of_session(26, &template),
        of_session(27, &room),
        of_session(28, &|_| {}),
        of_session(29, &|request| gcm(request, key)),
        of_session(30, &data_and_room),
        of_session(31, &data_and_room),
        of_session(32, &room),
        of_session(33, &|request| gcm(request, key)),
        of_session(34, &data_and_room),
        of_session(37, &|request| half(request, CKM_SHA256)),
        of_session(39, &data),
        of_session(41, &room),
        of_session(42, &|request| pss(request, key)),
        of_session(43, &data_and_room),
        of_session(54, &data_and_room),
        of_session(58, &nested),
        of_session(64, &room),
        of_session(67, &|request| request.number(CKF_FIND_OBJECTS | CKF_DIGEST)),
        of_slot(4, &|request| {
            request.byte(1);
            room(request);
        }),
        of_slot(6, &|request| request.number(0)),
        of_slot(7, &|request| {
            request.number(0);
            room(request);
        }),
    ]
}

/// Signs by a client of its own, and verifies, until it is over: how often.
fn signs(place: &Place, over: &AtomicBool) -> u32 {
    let module = place.module(2);
    module.initialize().expect("it begins");
    let session = module.open_session(SlotId(0), Access::ReadOnly).expect("a session opens");
    session.login(User::User, USER).expect("the user logs in");
    let [private, public] = [CKO_PRIVATE_KEY, CKO_PUBLIC_KEY].map(|class| {
        let site = Template::new().class(class).label("site");
        session.find_one(&site).expect("a search").expect("the key is there")
    });
    let (mechanism, mut count) = (CKM_ECDSA.into(), 0_u32);
    while !over.load(Ordering::Relaxed) {
        let hash = count.to_ne_bytes().repeat(8);
        let signature = session.sign(&mechanism, private, &hash).expect("a signature");
        session.verify(&mechanism, public, &hash, &signature).expect("it is right");
        count += 1;
        // It comes often enough so, and leaves the time to the others.
        thread::sleep(Duration::from_micros(200));
    }
    count
}

/// A number that a longer run has in its environment.
fn told<T: FromStr>(variable: &str) -> Option<T> {
    let value = std::env::var(variable).ok()?;
    Some(value.parse().ok().unwrap_or_else(|| panic!("{variable}={value} is no such number")))
}

/// Serves connections until so many changed requests were answered, while another client signs and verifies. `METASLOT_SEED` makes
/// another run.
fn harms_no_other_client(changed: usize, connection: impl Fn(&Client, &mut Chance) -> Answered) {
    let seed = told("METASLOT_SEED").map_or(1, NonZeroU64::get);
    // The door catches what panics; here nothing may.
    static PANICS: AtomicU32 = AtomicU32::new(0);
    let usual = panic::take_hook();
    panic::set_hook(Box::new(move |info| {
        if thread::current().name() == Some(SERVED) {
            PANICS.fetch_add(1, Ordering::Relaxed);
        }
        usual(info);
    }));
    let place = Place::new();
    initialized(&place);
    pairs(&place, CKA_DECRYPT);
    place.serve();
    let client = unlimited(place.engine());
    let engine = &client.engine;
    let over = AtomicBool::new(false);
    let mut chance = Chance(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15));
    let (mut all, mut connections) = (Answered::default(), 0);
    println!("METASLOT_SEED={seed}");
    let signed = thread::scope(|scope| {
        let other = scope.spawn(|| signs(&place, &over));
        let over = Over(&over);
        while all.changed < changed {
            let Answered { changed, same, done } = connection(&client, &mut chance);
            all.changed += changed;
            all.same += same;
            all.done += done;
            connections += 1;
            assert!(connections <= 1000 + changed, "they end before anything is answered: {all:?}");
        }
        drop(over);
        other.join().expect("no panic")
    });
    println!("{all:?} in {connections} connections; {signed} signatures by another client");
    assert!(signed > 0, "it comes to nothing beside them");
    assert_eq!(engine.token_info(SlotId(0)).expect("a token").sessions.1, 0);
    another_client_works(&place);
    assert_eq!(PANICS.load(Ordering::Relaxed), 0);
    // Much of it is near enough to what is right.
    assert!(all.done > (all.changed + all.same) / 8, "{all:?}");
}

#[test]
fn mutated_requests_harm_no_other_client() {
    const REQUESTS: usize = 100;
    /// `METASLOT_FRAMES` has another number for a longer run.
    const FRAMES: usize = 50_000;
    let connection =
        |client: &Client, chance: &mut Chance| served_rubbish(client, chance, REQUESTS);
    harms_no_other_client(told("METASLOT_FRAMES").unwrap_or(FRAMES), connection);
}

/// Ends what another thread does, also where the test fails.
struct Over<'a>(&'a AtomicBool);

impl Drop for Over<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// Of the thread that serves what is mutated: other tests run beside that one.
const SERVED: &str = "mutated";

/// The number of their frames.
const CODE: u32 = 7;

/// How many requests were answered before one ended its connection: changed ones and others, and of all of these by no error.
#[derive(Debug, Default)]
struct Answered {
    changed: usize,
    same: usize,
    done: usize,
}

/// A connection with so many requests, most of which are wrong.
fn served_rubbish(client: &Client, chance: &mut Chance, count: usize) -> Answered {
    thread::scope(|scope| {
        let (mine, theirs) = UnixStream::pair().expect("a pair");
        let serve = || p11kit::serve(theirs, client);
        let served = thread::Builder::new().name(SERVED.into()).spawn_scoped(scope, serve);
        // One in two speaks our version.
        let version = if chance.next(2) == 0 { 2 } else { OWN };
        let mut raw = begun_by(version, mine);
        let session = open(&mut raw);
        login(&mut raw, session).expect("the user logs in");
        let requests = match version {
            OWN => ours::requests(session, &Keys::made(&mut raw, session)),
            _ => requests(session, protocol::aes(&mut raw, session, &[])),
        };
        let (sent, changed): (Vec<_>, Vec<_>) =
            (0..count).map(|_| mutated(chance, &requests)).unzip();
        let sent = sent.concat();
        let mut stream = raw.stream;
        // The server may have given up before the end.
        stream.write_all(&sent).and_then(|()| stream.shutdown(Shutdown::Write)).ok();
        let mut answers = Vec::new();
        stream.read_to_end(&mut answers).ok();
        // Whether the last frame was whole is all the same: it has ended, and without a panic.
        served.expect("a thread").join().expect("no panic").ok();
        let (all, done) = counted(&answers);
        let changed = changed.into_iter().take(all).filter(|one| *one).count();
        Answered { changed, same: all - changed, done }
    })
}

/// How many answers these are, and how many of them are no errors, of those with the number of what is mutated.
fn counted(answers: &[u8]) -> (usize, usize) {
    let (mut rest, mut all, mut done) = (answers, 0, 0);
    while let Some((header, after)) = rest.split_at_checked(12) {
        let length = u32::from_be_bytes(header[8..].try_into().expect("four bytes"));
        let length = usize::try_from(length).expect("short").min(after.len());
        let is_error = after[..length].get(..4).is_none_or(|number| number == [0; 4]);
        done += usize::from(header[..4] == CODE.to_be_bytes() && !is_error);
        rest = &after[length..];
        all += 1;
    }
    (all, done)
}

/// A frame of one of the requests, of which a few bytes are others, and whether any is; now and then those of the header are, too.
fn mutated(chance: &mut Chance, requests: &[Vec<u8>]) -> (Vec<u8>, bool) {
    const VALUES: [u8; 6] = [0, 1, 0x7f, 0x80, 0xfe, 0xff];
    let right = &requests[chance.next(requests.len())];
    let mut body = right.clone();
    // Behind the call's number and signature there is more to find.
    let parts = 8 + usize::from(body[7]);
    for _ in 0..chance.next(4) {
        let from = if chance.next(16) == 0 { 0 } else { parts.min(body.len() - 1) };
        let at = from + chance.next(body.len() - from);
        body[at] = match chance.next(3) {
            0 => VALUES[chance.next(VALUES.len())],
            1 => body[at] ^ 1 << chance.next(8),
            _ => u8::try_from(chance.next(256)).expect("a byte"),
        };
    }
    if chance.next(8) == 0 {
        body.truncate(chance.next(body.len()));
    }
    let length = u32::try_from(body.len()).expect("short");
    let (mut frame, mut changed) = (frame(CODE, 0, length, &body), body != *right);
    if chance.next(200) == 0 {
        let at = chance.next(12);
        frame[at] ^= 1 << chance.next(8);
        changed = true;
    }
    (frame, changed)
}

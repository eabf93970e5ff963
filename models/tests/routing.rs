// SPDX-License-Identifier: Apache-2.0
//! Who does the work: by cost, and by another where one fails.

use metaslot_awslc::AWSLC;
use metaslot_ck::mechanism::{MechanismRow, Shape};
use metaslot_ck::*;
use metaslot_engine::{Config, Engine, Output, Policy, SlotConfig};
use metaslot_models::{MemoryStore, collect, open};
use metaslot_router::cost::{self, Cost, Line};
use metaslot_router::{Job, Measured, Settings};
use metaslot_spi::provider::{
    Algorithm, Cipher, CipherStream, Digest, DigestStream, Direction, Provider,
};
use metaslot_spi::{Bytes, Key, Message, Params};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

/// Digests by the plain provider, and fails where that is wanted.
#[derive(Debug)]
struct Shaky {
    /// `CKR_…` of a failure, or `CKR_OK`.
    fails: AtomicU64,
    asked: AtomicUsize,
    started: AtomicUsize,
    /// Its hashes are others.
    wrong: AtomicBool,
}

impl Shaky {
    fn leaked() -> &'static Self {
        Box::leak(Box::new(Self {
            fails: AtomicU64::new(CKR_OK),
            asked: AtomicUsize::new(0),
            started: AtomicUsize::new(0),
            wrong: AtomicBool::new(false),
        }))
    }

    fn asked(&self) -> usize {
        self.asked.load(Ordering::SeqCst)
    }

    fn started(&self) -> usize {
        self.started.load(Ordering::SeqCst)
    }

    fn fail(&self, code: Error) {
        self.fails.store(code.rv(), Ordering::SeqCst);
    }

    fn works(&self) {
        self.fails.store(CKR_OK, Ordering::SeqCst);
    }
}

impl Provider for Shaky {
    fn name(&self) -> &'static str {
        "shaky"
    }

    fn depends_on_company(&self) -> bool {
        true
    }

    fn algorithms(&'static self) -> &'static [Algorithm] {
        let row = |mechanism| Algorithm { mechanism, digest: Some(self), ..Algorithm::NONE };
        Box::leak(Box::new([row(CKM_SHA256)]))
    }

    fn random(&self, _: &mut [u8]) -> Result<()> {
        Err(Error::new(self.fails.load(Ordering::SeqCst)))
    }
}

fn plain() -> &'static dyn Digest {
    let row = AWSLC.algorithms().iter().find(|row| row.mechanism == CKM_SHA256);
    row.and_then(|row| row.digest).expect("the plain provider digests")
}

impl Digest for Shaky {
    fn length(&self) -> usize {
        plain().length()
    }

    fn digest(&self, data: &[u8], out: &mut [u8]) -> Result<()> {
        self.asked.fetch_add(1, Ordering::SeqCst);
        match self.fails.load(Ordering::SeqCst) {
            CKR_OK => {
                plain().digest(data, out)?;
                out[0] ^= u8::from(self.wrong.load(Ordering::SeqCst));
                Ok(())
            }
            code => Err(Error::new(code)),
        }
    }

    fn start(&self) -> Result<Box<dyn DigestStream>> {
        self.started.fetch_add(1, Ordering::SeqCst);
        plain().start()
    }

    fn restore(&self, state: &[u8]) -> Result<Box<dyn DigestStream>> {
        plain().restore(state)
    }
}

fn engine(shaky: &'static Shaky) -> Engine {
    let store = Box::new(MemoryStore::default());
    let slot = SlotConfig { description: "test".into(), store, policy: Policy::DEFAULT };
    let providers = Box::leak(Box::new([shaky as &dyn Provider, &AWSLC]));
    Engine::new(Config { slots: vec![slot], providers })
}

fn digest(engine: &Engine, session: SessionHandle, bytes: usize) -> Result<Vec<u8>> {
    engine.digest_init(session, CKM_SHA256)?;
    collect(|out| engine.digest(session, &vec![1; bytes], out))
}

#[test]
fn another_source_gives_random_numbers_where_one_fails() {
    let shaky = Shaky::leaked();
    let engine = engine(shaky);
    let session = open(&engine);
    shaky.fail(Error::DEVICE_REMOVED);
    let mut bytes = [0; 16];
    assert_eq!(engine.random(session, &mut bytes), Ok(()));
    assert_ne!(bytes, [0; 16]);
}

#[test]
fn what_a_provider_fails_at_another_does_and_the_caller_does_not_see_it() {
    let shaky = Shaky::leaked();
    let engine = engine(shaky);
    let session = open(&engine);
    let right = digest(&engine, session, 100);
    assert!(right.is_ok() && shaky.asked() > 0);
    for code in [Error::DEVICE_ERROR, Error::DEVICE_REMOVED, Error::FUNCTION_FAILED] {
        shaky.fail(code);
        assert_eq!(digest(&engine, session, 100), right);
    }
    // Three failures: it is left alone.
    let asked = shaky.asked();
    for _ in 0..10 {
        assert_eq!(digest(&engine, session, 100), right);
    }
    assert_eq!(shaky.asked(), asked);
    shaky.works();
    let began = Instant::now();
    while shaky.asked() == asked {
        assert_eq!(digest(&engine, session, 100), right);
        assert!(began.elapsed() < Duration::from_secs(60), "it is asked again after a while");
    }
}

#[test]
fn a_provider_that_fails_at_what_is_whole_is_asked_once() {
    let whole = |engine: &Engine, session| {
        collect(|out| engine.digest_whole(session, CKM_SHA256, &[1; 100], out))
    };
    let shaky = Shaky::leaked();
    let engine = engine(shaky);
    let session = open(&engine);
    let right = whole(&engine, session);
    assert_eq!(right, digest(&engine, session, 100));
    let asked = shaky.asked();
    shaky.fail(Error::DEVICE_ERROR);
    assert_eq!(whole(&engine, session), right);
    assert_eq!(shaky.asked(), asked + 1);
}

#[test]
fn what_the_caller_got_wrong_is_no_failure_of_a_provider() {
    let shaky = Shaky::leaked();
    let engine = engine(shaky);
    let session = open(&engine);
    digest(&engine, session, 100).expect("it passes its self test");
    shaky.fail(Error::DATA_LEN_RANGE);
    let before = shaky.asked();
    for _ in 0..5 {
        assert_eq!(digest(&engine, session, 100), Err(Error::DATA_LEN_RANGE));
    }
    assert_eq!(shaky.asked(), before + 5, "it is asked each time");
}

#[test]
fn the_cheaper_one_for_so_much_data_is_taken() {
    let cost = |provider: &str, fixed, per_byte| Cost {
        provider: provider.to_owned(),
        mechanism: CKM_SHA256,
        line: Line {
            operation: CKF_DIGEST,
            key_bits: 0,
            fixed,
            per_byte,
            crowded: fixed,
            crowded_per_byte: per_byte,
        },
    };
    let shaky = Shaky::leaked();
    let engine = engine(shaky);
    let costs = vec![cost("shaky", 5_000.0, 0.1), cost("awslc", 100.0, 0.5)];
    assert!(engine.change_routes(Settings { costs, ..Settings::default() }));
    let session = open(&engine);
    digest(&engine, session, 0).expect("it passes its self test");
    for (bytes, taken) in [(0, false), (10_000, false), (16_000, true), (1 << 20, true)] {
        let before = shaky.asked();
        digest(&engine, session, bytes).expect("it is digested");
        assert_eq!(shaky.asked() > before, taken, "{bytes} bytes");
        // Operations in parts choose at their first data.
        let before = shaky.started();
        engine.digest_init(session, CKM_SHA256).expect("a digest begins");
        engine.digest_update(session, &vec![1; bytes]).expect("data is taken");
        engine.digest_update(session, &[1; 100_000]).expect("data is taken");
        collect(|out| engine.digest_final(session, out)).expect("a digest");
        assert_eq!(shaky.started() > before, taken, "{bytes} bytes in the first part");
    }
    // Who fails is not taken for being cheap.
    shaky.fail(Error::DEVICE_ERROR);
    for _ in 0..3 {
        digest(&engine, session, 1 << 20).expect("another does it");
    }
    let before = shaky.asked();
    digest(&engine, session, 1 << 20).expect("another does it");
    assert_eq!(shaky.asked(), before);
}

#[test]
fn costs_of_nobody_and_of_one_alone_change_nothing() {
    let line = Line { operation: CKF_DIGEST, fixed: 1.0, crowded: 1.0, ..Line::default() };
    let cost = |provider: &str| Cost { provider: provider.to_owned(), mechanism: CKM_SHA256, line };
    let shaky = Shaky::leaked();
    let engine = engine(shaky);
    let costs = vec![cost("awslc"), cost("nobody")];
    assert!(engine.change_routes(Settings { costs, ..Settings::default() }));
    let session = open(&engine);
    digest(&engine, session, 100).expect("it is digested");
    let before = shaky.asked();
    digest(&engine, session, 100).expect("it is digested");
    assert!(shaky.asked() > before, "what was not measured keeps its order");
}

#[test]
fn every_operation_on_data_is_measured() {
    let engine = engine(Shaky::leaked());
    let routes = engine.routes();
    let mut without = Vec::new();
    for row in MechanismRow::all() {
        let Ok((_, _, flags)) = routes.info(row.number) else { continue };
        for operation in [CKF_DIGEST, CKF_ENCRYPT, CKF_DECRYPT, CKF_SIGN, CKF_VERIFY] {
            let key_bits = match row.keys.first() {
                Some(&CKK_RSA) => 2048,
                Some(&(CKK_EC | CKK_EC_EDWARDS | CKK_EC_MONTGOMERY)) => 256,
                // ML-DSA-65
                Some(&CKK_ML_DSA) => 8 * 1952,
                _ => 0,
            };
            let bytes = if key_bits == 0 { 64 } else { 32 };
            let job = Job { mechanism: row.number, operation, key_bits, bytes };
            let measured = routes.measure(job, Duration::from_micros(10)).unwrap_or_default();
            if flags & operation != 0 && measured.is_empty() {
                without.extend(mechanism_name(row.number));
            }
            let is_well = |one: &Measured| one.nanoseconds > Some(0.0) && !one.differs;
            assert!(
                measured.iter().all(is_well),
                "{:?} {operation:x} {measured:?}",
                mechanism_name(row.number)
            );
        }
    }
    without.dedup();
    // No two providers have these: groups for keys of DSA are not made here, and HOTP takes no data.
    without.retain(|name| !name.starts_with("CKM_DSA") && *name != "CKM_HOTP");
    assert_eq!(without, [""; 0]);
}

#[test]
fn a_crowd_measures_together() {
    let engine = engine(Shaky::leaked());
    let job = Job { mechanism: CKM_SHA256, operation: CKF_DIGEST, key_bits: 0, bytes: 64 };
    // One that gets its processor when the time is over does the work once all the same.
    let measure = || engine.routes().measure_crowded(job, Duration::ZERO).expect("measured");
    let all: Vec<_> = std::thread::scope(|scope| {
        let threads: Vec<_> = (0..cost::crowd()).map(|_| scope.spawn(measure)).collect();
        threads.into_iter().flat_map(|thread| thread.join().expect("it ends")).collect()
    });
    let threads = usize::try_from(cost::crowd()).expect("few");
    assert_eq!(all.len(), threads, "to the plain provider company is all the same");
    assert!(all.iter().all(|one| one.provider == 0));
    assert!(all.iter().all(|one| one.times > 0 && one.nanoseconds > Some(0.0)));
}

#[test]
fn a_crowd_counts_for_every_provider() {
    let cost = |provider: &str, alone, crowded| Cost {
        provider: provider.to_owned(),
        mechanism: CKM_SHA256,
        line: Line { operation: CKF_DIGEST, fixed: alone, crowded, ..Line::default() },
    };
    let engine = engine(Shaky::leaked());
    let costs = vec![cost("shaky", 9_000.0, 3_000.0), cost("awslc", 5_000.0, 6_000.0)];
    engine.change_routes(Settings { costs, ..Settings::default() });
    let (routes, mut flights) = (engine.routes(), Vec::new());
    let job = Job { mechanism: CKM_SHA256, operation: CKF_DIGEST, key_bits: 0, bytes: 64 };
    let mut taken = || {
        let (found, _) = routes.find(CKM_SHA256, |row| row.digest).expect("one digests");
        let (cheaper, flight) = routes.cheaper(found, job, |row| row.digest);
        flights.push(flight.expect("it is counted"));
        cheaper.map_or(0, |(count, _)| count.provider())
    };
    assert_eq!(taken(), 1, "alone the second is the cheaper one");
    let crowd: Vec<_> = (1..=cost::crowd()).map(|_| taken()).collect();
    assert_eq!(
        crowd.last(),
        Some(&0),
        "for a crowd it is the first, which had none of it: {crowd:?}"
    );
}

#[test]
fn providers_that_do_not_agree_are_seen() {
    let shaky = Shaky::leaked();
    let engine = engine(shaky);
    let job = Job { mechanism: CKM_SHA256, operation: CKF_DIGEST, key_bits: 0, bytes: 64 };
    let differ = || {
        let measured = engine.routes().measure(job, Duration::from_micros(1)).expect("measured");
        let all = measured.iter().map(|one| (one.nanoseconds.is_some(), one.differs));
        all.collect::<Vec<_>>()
    };
    assert_eq!(differ(), [(true, false); 2]);
    shaky.wrong.store(true, Ordering::SeqCst);
    assert_eq!(differ(), [(true, true); 2]);
    shaky.fail(Error::DEVICE_ERROR);
    assert_eq!(differ(), [(true, true), (false, true)]);
}

#[test]
fn routes_are_replaced_while_operations_go_on() {
    let shaky = Shaky::leaked();
    let engine = engine(shaky);
    let without = |name: &str| {
        let disabled = vec![(name.to_owned(), CKM_SHA256)];
        Settings { disabled, ..Settings::default() }
    };
    std::thread::scope(|scope| {
        for _ in 0..3 {
            scope.spawn(|| {
                let session = open(&engine);
                for bytes in 0..2_000 {
                    digest(&engine, session, bytes % 100).expect("it is digested");
                }
            });
        }
        for round in 0..500 {
            let settings = without(["shaky", "awslc"][round % 2]);
            assert!(engine.change_routes(settings.clone()));
            assert!(!engine.change_routes(settings), "nothing is new");
        }
    });
    let session = open(&engine);
    engine.change_routes(without("shaky"));
    engine.digest_init(session, CKM_SHA256).expect("a digest begins");
    let before = shaky.asked();
    let both = ["shaky", "awslc"].map(|name| (name.to_owned(), CKM_SHA256)).to_vec();
    engine.change_routes(Settings { disabled: both, ..Settings::default() });
    assert_eq!(engine.digest_init(open(&engine), CKM_SHA256), Err(Error::MECHANISM_INVALID));
    // What began goes on.
    collect(|out| engine.digest(session, b"abc", out)).expect("it is digested");
    assert_eq!(shaky.asked(), before);
}

/// `ChaCha20-Poly1305` by the plain provider, with nonces of these lengths only.
#[derive(Debug)]
struct Narrow {
    name: &'static str,
    nonces: &'static [usize],
    asked: AtomicUsize,
}

impl Narrow {
    fn leaked(name: &'static str, nonces: &'static [usize]) -> &'static Self {
        Box::leak(Box::new(Self { name, nonces, asked: AtomicUsize::new(0) }))
    }

    fn plain() -> &'static dyn Cipher {
        let row = AWSLC.algorithms().iter().find(|row| row.mechanism == CKM_CHACHA20_POLY1305);
        row.and_then(|row| row.encrypt).expect("the plain provider encrypts")
    }
}

impl Provider for Narrow {
    fn name(&self) -> &'static str {
        self.name
    }

    fn algorithms(&'static self) -> &'static [Algorithm] {
        let mechanism = CKM_CHACHA20_POLY1305;
        let (encrypt, decrypt) = (Some(self as &dyn Cipher), Some(self as &dyn Cipher));
        Box::leak(Box::new([Algorithm { mechanism, encrypt, decrypt, ..Algorithm::NONE }]))
    }
}

impl Cipher for Narrow {
    fn check(&self, direction: Direction, key: &Key, params: &Params) -> Result<()> {
        match params {
            Params::ChaCha20Poly1305 { nonce, .. } if !self.nonces.contains(&nonce.len()) => {
                Err(Error::MECHANISM_PARAM_INVALID)
            }
            _ => Self::plain().check(direction, key, params),
        }
    }

    fn length(&self, to: Direction, key: &Key, params: &Params, input: usize) -> Result<usize> {
        Self::plain().length(to, key, params, input)
    }

    fn run(
        &self,
        to: Direction,
        key: &Key,
        params: &Params,
        input: &[u8],
        out: &mut [u8],
    ) -> Result<usize> {
        self.check(to, key, params)?;
        self.asked.fetch_add(1, Ordering::SeqCst);
        Self::plain().run(to, key, params, input, out)
    }

    fn start(
        &self,
        to: Direction,
        key: &Arc<Key>,
        params: &Params,
    ) -> Result<Box<dyn CipherStream>> {
        self.check(to, key, params)?;
        self.asked.fetch_add(1, Ordering::SeqCst);
        Self::plain().start(to, key, params)
    }
}

/// The plain provider, which takes longest, one that takes every nonce, and one with the short ones, which is the fastest.
fn engine_of_nonces() -> (Engine, [&'static Narrow; 2]) {
    let both = [Narrow::leaked("wide", &[12, 24]), Narrow::leaked("narrow", &[12])];
    let store = Box::new(MemoryStore::default());
    let slot = SlotConfig { description: "test".into(), store, policy: Policy::DEFAULT };
    let providers: [&'static dyn Provider; 3] = [&AWSLC, both[0], both[1]];
    let engine =
        Engine::new(Config { slots: vec![slot], providers: Box::leak(Box::new(providers)) });
    let named = [("awslc", 9_000.0), ("wide", 5_000.0), ("narrow", 1_000.0)];
    let costs = named.into_iter().flat_map(|(provider, fixed)| {
        [CKF_ENCRYPT, CKF_DECRYPT].map(|operation| Cost {
            provider: provider.to_owned(),
            mechanism: CKM_CHACHA20_POLY1305,
            line: Line { operation, fixed, crowded: fixed, ..Line::default() },
        })
    });
    engine.change_routes(Settings { costs: costs.collect(), ..Settings::default() });
    (engine, both)
}

/// How often each was asked since the last time.
fn asked_of(both: [&Narrow; 2]) -> [usize; 2] {
    both.map(|one| one.asked.swap(0, Ordering::SeqCst))
}

fn chacha_key(engine: &Engine, session: SessionHandle) -> ObjectHandle {
    engine
        .generate_key(session, CKM_CHACHA20_KEY_GEN, Params::None, Vec::new())
        .expect("a key is made")
}

#[test]
fn what_the_cheapest_does_not_take_the_cheapest_of_the_others_does() {
    let (engine, both) = engine_of_nonces();
    let session = open(&engine);
    let key = chacha_key(&engine, session);
    let seal = |length| {
        let params =
            Params::ChaCha20Poly1305 { nonce: Bytes::from_elem(7, length), aad: Bytes::new() };
        engine.cipher_init(Direction::Forward, session, CKM_CHACHA20_POLY1305, params, key)?;
        collect(|out| engine.cipher(Direction::Forward, session, b"attack at dawn", out))
    };
    // They pass their self tests.
    seal(12).and_then(|_| seal(24)).expect("it is sealed");
    asked_of(both);
    for (length, taken) in [(12, 1), (24, 0), (12, 1)] {
        seal(length).expect("it is sealed");
        assert!(asked_of(both)[taken] > 0, "a nonce of {length} bytes");
    }
    assert_eq!(seal(13), Err(Error::MECHANISM_PARAM_INVALID));
}

#[test]
fn a_message_whose_nonce_the_provider_of_the_one_before_does_not_take_goes_to_another() {
    let (engine, both) = engine_of_nonces();
    let session = open(&engine);
    let (mechanism, key) = (CKM_CHACHA20_POLY1305, chacha_key(&engine, session));
    let message = |length| Message {
        iv: Bytes::from_elem(7, length),
        ..Message::plain(Shape::ChaCha20Poly1305).expect("it has messages")
    };
    let mut sealed = Vec::new();
    engine
        .message_cipher_init(Direction::Forward, session, mechanism, &message(12), key)
        .expect("messages begin");
    for length in [12, 24, 12, 24] {
        let (mut message, data) = (message(length), (&b"aad"[..], &b"attack at dawn"[..]));
        let to = Direction::Forward;
        let text = collect(|out| engine.cipher_message(to, session, &mut message, data, out));
        sealed.push((text.expect("it is sealed"), message));
    }
    assert!(asked_of(both)[1] > 0, "the cheapest began");
    let mut wrong = message(13);
    let to = Direction::Forward;
    let refused = collect(|out| engine.cipher_message(to, session, &mut wrong, (b"", b""), out));
    assert_eq!(refused, Err(Error::MECHANISM_PARAM_INVALID));
    engine
        .message_cipher_init(Direction::Backward, session, mechanism, &message(12), key)
        .expect("messages begin");
    for (text, mut message) in sealed {
        let (to, aad) = (Direction::Backward, b"aad");
        engine.cipher_message_begin(to, session, &mut message, aad).expect("it begins");
        let tag = &mut *message.tag.clone();
        let mut room = [0; 14];
        let mut out = Output::buffer(&mut room);
        let last = engine.cipher_message_next(to, session, &text, Some(tag), &mut out);
        assert_eq!((last, &room), (Ok(()), b"attack at dawn"));
    }
}

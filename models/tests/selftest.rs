// SPDX-License-Identifier: Apache-2.0
//! Self tests: what they find, of every row, and what becomes of who fails one.

use metaslot_awslc::AWSLC;
use metaslot_ck::*;
use metaslot_classics::CLASSICS;
use metaslot_engine::{Config, Engine, Policy, SlotConfig};
use metaslot_lanes::provider::Lanes;
use metaslot_models::{MemoryStore, collect, open};
use metaslot_router::tested::{CIPHER, DIGEST, SIGNATURE};
use metaslot_router::{Answer, Job, Routes, SelfTest, Settings};
use metaslot_spi::provider::*;
use metaslot_spi::{Key, Params};
use std::cell::Cell;
use std::fmt::Write as _;
use std::path::Path;
use std::sync::Arc;
use std::{env, fs};

static LANES: Lanes = Lanes::beside(&AWSLC);
static ALL: [&dyn Provider; 3] = [&LANES, &AWSLC, &CLASSICS];

fn routes(providers: &'static [&'static dyn Provider]) -> Routes {
    Routes::new(providers, Settings::default())
}

const HEAD: &str = "// SPDX-License-Identifier: Apache-2.0
//! Table: what comes out of self tests. Written by `METASLOT_BLESS=1 cargo test -p metaslot-models --test selftest`.

use crate::tested::{Answer, CIPHER, DIGEST, SIGNATURE, known};
use metaslot_ck::*;

/// Mechanism, what of it, and the answer.
#[rustfmt::skip]
pub(crate) const ANSWERS: &[Answer] = &[
";

const MIDDLE: &str = "];

/// Signatures of mechanisms that make another one each time.
#[rustfmt::skip]
pub(crate) const SIGNATURES: &[(CK_MECHANISM_TYPE, [u8; 64])] = &[
";

fn table(answers: &[Answer]) -> String {
    let (mut text, mut signatures) = (String::from(HEAD), String::from(MIDDLE));
    for Answer { mechanism, kind, answer } in answers {
        let name = mechanism_name(*mechanism).expect("a mechanism has a name");
        match answer {
            Ok(answer) => {
                let kind = ["", "DIGEST", "CIPHER", "", "SIGNATURE"][usize::from(*kind)];
                writeln!(text, "    known({name}, {kind}, 0x{answer:08x}),")
            }
            Err(signature) if *kind == SIGNATURE && signature.len() == 64 => {
                writeln!(signatures, "    ({name}, {signature:?}),")
            }
            Err(_) => Ok(()),
        }
        .expect("there is room");
    }
    text + &signatures + "];\n"
}

#[test]
fn key_pairs_are_tested_where_that_is_wanted() {
    let lying = Lying::leaked(Lie::Last, |row| row.mechanism == CKM_ECDSA);
    let both: &'static [_] = leaked([lying, &AWSLC]);
    let routes = routes(both);
    let taken = || routes.find(CKM_ECDSA, |row| row.sign).map(|(count, _)| count.provider());
    let tested = |pairs_tested| Settings { pairs_tested, ..Settings::default() };
    assert_eq!(taken(), Ok(0));
    routes.change(tested(true));
    let job = Job { mechanism: CKM_ECDSA, operation: CKF_SIGN, key_bits: 256, bytes: 32 };
    let (estimates, chosen) = routes.estimates(job);
    assert_eq!((estimates[0].out, estimates[1].out, chosen), (true, false, Some(1)));
    assert_eq!(taken(), Ok(1));
    routes.change(tested(false));
    assert_eq!(taken(), Ok(1), "what is known is not forgotten");
}

/// Beginnings of what is not tested, as the book says (docs/functions.md).
const UNTESTED: [&str; 14] = [
    "awslc CKM_DSA",
    "awslc CKM_ECDH_AES_KEY_WRAP",
    "awslc CKM_ECDH_COF_AES_KEY_WRAP",
    "awslc CKM_ECDH_X_AES_KEY_WRAP",
    "awslc CKM_HOTP",
    "awslc CKM_RSA_AES_KEY_WRAP",
    "classics CKM_RC2_",
    "classics CKM_RC5_",
    "lanes CKM_SLH_DSA",
    "lanes CKM_HASH_SLH_DSA",
    "lanes CKM_HSS",
    "lanes CKM_XMSS",
    // Those of binary curves.
    "lanes CKM_ECDSA 4",
    "lanes CKM_ECDSA_SHA",
];

#[test]
fn every_row_computes_what_is_known() {
    let routes = routes(&ALL);
    if env::var_os("METASLOT_BLESS").is_some() {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../crates/router/src/known.rs");
        fs::write(path, table(&routes.answers())).expect("the table can be written");
        return;
    }
    let tests = routes.self_tests();
    let wrong = |test: &&SelfTest| !matches!(test.right, Ok(Some(true) | None));
    let shown = |test: &SelfTest| {
        let name = mechanism_name(test.mechanism).unwrap_or("?");
        format!("{} {name} {}", ALL[test.provider].name(), test.kind)
    };
    assert_eq!(tests.iter().filter(wrong).map(shown).collect::<Vec<_>>(), [""; 0]);
    // A kernel that lacks its instructions serves no key.
    let there = |test: &&SelfTest| ALL[test.provider].remark(test.mechanism).is_empty();
    let untested = tests.iter().filter(|test| test.right == Ok(None)).filter(there).map(shown);
    let of_these = |name: &String| UNTESTED.iter().any(|start| name.starts_with(start));
    assert_eq!(untested.filter(|name| !of_these(name)).collect::<Vec<_>>(), [""; 0]);
}

/// Which result of a row is wrong.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Lie {
    /// The first byte of what is hashed, encrypted or signed.
    First,
    /// Its last byte.
    Last,
    /// A byte of what is decrypted.
    Decrypts,
    /// Every signature is right.
    Accepts,
    /// None is.
    Refuses,
    /// What comes of several parts.
    Parts,
    /// What ends within a block.
    Tail,
    /// What those get who come back for it.
    Together,
    /// Whatever is not as long as in a test, of which it makes nothing for want of memory.
    Fails,
    /// The same, but for a panic.
    Panics,
}

/// A row of another provider, and how its results are changed.
#[derive(Debug)]
struct Liar<T: ?Sized + 'static>(&'static T, Lie);

impl<T: ?Sized> Liar<T> {
    /// What was made of data of a length.
    fn change(&self, out: &mut [u8], decrypts: bool, length: usize) {
        let byte = match (self.1, decrypts) {
            (Lie::First, false) | (Lie::Decrypts, true) => out.first_mut(),
            (Lie::Last | Lie::Fails | Lie::Panics, false) => out.last_mut(),
            (Lie::Tail, false) if !length.is_multiple_of(8) => out.last_mut(),
            _ => None,
        };
        if let Some(byte) = byte {
            *byte ^= 0x10;
        }
    }

    /// What comes back is wrong where that is the lie; else all is done at once.
    fn later(&self, length: usize, done: impl FnOnce(&mut [u8]) -> Result<usize>) -> Postponed {
        if self.1 != Lie::Together {
            return Ok(None);
        }
        let mut out = vec![0; length];
        let used = done(&mut out)?;
        out.truncate(used);
        out.reverse();
        Ok(Some(Box::new(Wrong(out))))
    }
}

/// A wrong answer that is there.
#[derive(Debug)]
struct Wrong(Vec<u8>);

impl Pending for Wrong {
    fn poll(&mut self) -> bool {
        true
    }

    fn finish(self: Box<Self>, out: &mut [u8]) -> Result<usize> {
        out[..self.0.len()].copy_from_slice(&self.0);
        Ok(self.0.len())
    }
}

/// A stream, whose results are changed where that is the lie.
struct Stream<T: ?Sized>(Lie, Box<T>);

fn changed<T: AsMut<[u8]>>(lie: Lie, mut out: T) {
    if let Some(byte) = out.as_mut().first_mut().filter(|_| lie == Lie::Parts) {
        *byte ^= 1;
    }
}

impl DigestStream for Stream<dyn DigestStream> {
    fn update(&mut self, data: &[u8]) -> Result<()> {
        self.1.update(data)
    }

    fn finish(&mut self, out: &mut [u8]) -> Result<()> {
        self.1.finish(out)?;
        changed(self.0, out);
        Ok(())
    }

    fn save(&self) -> Result<Vec<u8>> {
        self.1.save()
    }
}

impl CipherStream for Stream<dyn CipherStream> {
    fn update_length(&self, input: usize) -> usize {
        self.1.update_length(input)
    }

    fn update(&mut self, input: &[u8], out: &mut [u8]) -> Result<()> {
        self.1.update(input, out)?;
        changed(self.0, out);
        Ok(())
    }

    fn finish_length(&self) -> usize {
        self.1.finish_length()
    }

    fn finish(&mut self, out: &mut [u8]) -> Result<usize> {
        let used = self.1.finish(out)?;
        changed(self.0, &mut out[..used]);
        Ok(used)
    }
}

impl SignatureStream for Stream<dyn SignatureStream> {
    fn update(&mut self, data: &[u8]) -> Result<()> {
        self.1.update(data)
    }

    fn sign(&mut self, out: &mut [u8]) -> Result<usize> {
        let used = self.1.sign(out)?;
        changed(self.0, &mut out[..used]);
        Ok(used)
    }

    fn verify(&mut self, signature: &[u8]) -> Result<()> {
        self.1.verify(signature)
    }
}

impl Digest for Liar<dyn Digest> {
    fn length(&self) -> usize {
        self.0.length()
    }

    fn digest(&self, data: &[u8], out: &mut [u8]) -> Result<()> {
        ASKED.set(ASKED.get() + 1);
        match self.1 {
            Lie::Fails if data.len() == 1024 => return Err(Error::HOST_MEMORY),
            Lie::Panics if data.len() == 1024 => panic!("a test panics"),
            _ => self.0.digest(data, out)?,
        }
        self.change(out, false, data.len());
        Ok(())
    }

    fn digest_later(&self, data: &[u8]) -> Postponed {
        self.later(self.0.length(), |out| self.0.digest(data, out).map(|()| out.len()))
    }

    fn start(&self) -> Result<Box<dyn DigestStream>> {
        Ok(Box::new(Stream(self.1, self.0.start()?)))
    }

    fn restore(&self, state: &[u8]) -> Result<Box<dyn DigestStream>> {
        self.0.restore(state)
    }
}

impl Cipher for Liar<dyn Cipher> {
    fn serves(&self, key: &Key) -> bool {
        self.0.serves(key)
    }

    fn check(&self, direction: Direction, key: &Key, params: &Params) -> Result<()> {
        self.0.check(direction, key, params)
    }

    fn length(&self, to: Direction, key: &Key, params: &Params, input: usize) -> Result<usize> {
        self.0.length(to, key, params, input)
    }

    fn run(
        &self,
        direction: Direction,
        key: &Key,
        params: &Params,
        input: &[u8],
        out: &mut [u8],
    ) -> Result<usize> {
        let used = self.0.run(direction, key, params, input, out)?;
        // What is raw has zeros before it.
        let of = if direction == Direction::Backward { used.saturating_sub(20) } else { 0 };
        self.change(&mut out[of..used], direction == Direction::Backward, input.len());
        Ok(used)
    }

    fn run_later(&self, to: Direction, key: &Arc<Key>, p: &Params, input: &[u8]) -> Postponed {
        let length = self.0.length(to, key, p, input.len())?;
        self.later(length, |out| self.0.run(to, key, p, input, out))
    }

    fn start(&self, to: Direction, key: &Arc<Key>, p: &Params) -> Result<Box<dyn CipherStream>> {
        Ok(Box::new(Stream(self.1, self.0.start(to, key, p)?)))
    }
}

impl Signature for Liar<dyn Signature> {
    fn serves(&self, key: &Key) -> bool {
        self.0.serves(key)
    }

    fn check(&self, direction: Direction, key: &Key, params: &Params) -> Result<()> {
        self.0.check(direction, key, params)
    }

    fn length(&self, key: &Key, params: &Params) -> usize {
        self.0.length(key, params)
    }

    fn sign(&self, key: &Key, params: &Params, data: &[u8], out: &mut [u8]) -> Result<usize> {
        let used = self.0.sign(key, params, data, out)?;
        self.change(&mut out[..used], false, data.len());
        Ok(used)
    }

    fn verify(&self, key: &Key, params: &Params, data: &[u8], signature: &[u8]) -> Result<()> {
        match self.1 {
            Lie::Accepts => Ok(()),
            Lie::Refuses => Err(Error::SIGNATURE_INVALID),
            _ => self.0.verify(key, params, data, signature),
        }
    }

    fn sign_later(&self, key: &Arc<Key>, params: &Params, data: &[u8]) -> Postponed {
        self.later(self.0.length(key, params), |out| self.0.sign(key, params, data, out))
    }

    fn start(&self, to: Direction, key: &Arc<Key>, p: &Params) -> Result<Box<dyn SignatureStream>> {
        Ok(Box::new(Stream(self.1, self.0.start(to, key, p)?)))
    }
}

thread_local! {
    /// How often a liar was asked for a digest.
    static ASKED: Cell<usize> = const { Cell::new(0) };
}

fn leaked<T>(value: T) -> &'static T {
    Box::leak(Box::new(value))
}

/// The plain provider's rows, which lie, and what it reads of private keys.
#[derive(Debug)]
struct Lying(Vec<Algorithm>, Option<Error>);

impl Lying {
    fn leaked(lie: Lie, of: impl Fn(&Algorithm) -> bool) -> &'static dyn Provider {
        let digest = |row| leaked(Liar::<dyn Digest>(row, lie)) as &dyn Digest;
        let cipher = |row| leaked(Liar::<dyn Cipher>(row, lie)) as &dyn Cipher;
        let signature = |row| leaked(Liar::<dyn Signature>(row, lie)) as &dyn Signature;
        let row = |row: &Algorithm| Algorithm {
            digest: row.digest.map(digest),
            encrypt: row.encrypt.map(cipher),
            decrypt: row.decrypt.map(cipher),
            sign: row.sign.map(signature),
            verify: row.verify.map(signature),
            ..*row
        };
        leaked(Self(AWSLC.algorithms().iter().filter(|row| of(row)).map(row).collect(), None))
    }
}

impl Provider for Lying {
    fn name(&self) -> &'static str {
        "lying"
    }

    fn algorithms(&'static self) -> &'static [Algorithm] {
        &self.0
    }

    fn decode_private_key(&self, der: &[u8]) -> Result<metaslot_spi::NewObject> {
        self.1.map_or_else(|| AWSLC.decode_private_key(der), Err)
    }
}

/// Whether it is not tested in parts: there are none, or it is a private key that would do it once more.
fn is_whole(test: &SelfTest) -> bool {
    let kinds = mechanism::MechanismRow::find(test.mechanism).map(|row| row.keys);
    let pairs = [CKK_RSA, CKK_EC, CKK_EC_EDWARDS, CKK_EC_MONTGOMERY, CKK_ML_DSA];
    let wraps = mechanism_name(test.mechanism).is_some_and(|name| name.contains("KEY_WRAP"));
    wraps || kinds.is_some_and(|kinds| kinds.iter().any(|kind| pairs.contains(kind)))
}

#[test]
fn every_lie_is_found() {
    let is_tested: Vec<_> = routes(&ALL).self_tests();
    let is_tested = |mechanism, kind| {
        is_tested.iter().any(|test| {
            (test.mechanism, test.kind, test.right, test.provider)
                == (mechanism, kind, Ok(Some(true)), 1)
        })
    };
    for (lie, kinds) in [
        (Lie::First, &[DIGEST, CIPHER, SIGNATURE][..]),
        (Lie::Last, &[DIGEST, CIPHER, SIGNATURE]),
        (Lie::Decrypts, &[CIPHER]),
        (Lie::Accepts, &[SIGNATURE]),
        (Lie::Refuses, &[SIGNATURE]),
        (Lie::Parts, &[DIGEST, CIPHER, SIGNATURE]),
        (Lie::Together, &[DIGEST, CIPHER, SIGNATURE]),
    ] {
        let alone: &'static [_] = leaked([Lying::leaked(lie, |_| true)]);
        let mut missed = Vec::new();
        for test in routes(alone).self_tests() {
            let here = kinds.contains(&test.kind) && is_tested(test.mechanism, test.kind);
            if here && test.right != Ok(Some(false)) && !(lie == Lie::Parts && is_whole(&test)) {
                missed.push((mechanism_name(test.mechanism), test.right));
            }
        }
        assert_eq!(missed, [], "{lie:?}");
    }
}

/// Ciphers that are tested with data that ends within a block.
const TAILS: [CK_MECHANISM_TYPE; 6] =
    [CKM_AES_CTS, CKM_AES_XTS, CKM_AES_CTR, CKM_AES_GCM, CKM_AES_CCM, CKM_CHACHA20_POLY1305];

#[test]
fn a_lie_about_what_ends_within_a_block_is_found() {
    let alone: &'static [_] = leaked([Lying::leaked(Lie::Tail, |_| true)]);
    let untested =
        |name: &str| UNTESTED.iter().any(|start| format!("awslc {name}").starts_with(start));
    let with_tail = |test: &&SelfTest| match test.kind {
        SIGNATURE => !is_whole(test) && !mechanism_name(test.mechanism).is_some_and(untested),
        CIPHER => TAILS.contains(&test.mechanism),
        _ => false,
    };
    let tests = routes(alone).self_tests();
    let tests: Vec<_> = tests.iter().filter(with_tail).collect();
    assert!(tests.len() > 50, "{} have a tail", tests.len());
    let missed = tests.iter().filter(|test| test.right != Ok(Some(false)));
    assert_eq!(missed.map(|test| mechanism_name(test.mechanism)).collect::<Vec<_>>(), [None; 0]);
}

fn engine(providers: &'static [&'static dyn Provider]) -> Engine {
    let store = Box::new(MemoryStore::default());
    let slot = SlotConfig { description: "test".into(), store, policy: Policy::DEFAULT };
    Engine::new(Config { slots: vec![slot], providers })
}

fn digest(engine: &Engine, session: SessionHandle) -> Result<Vec<u8>> {
    engine.digest_init(session, CKM_SHA256)?;
    collect(|out| engine.digest(session, b"abc", out))
}

#[test]
fn one_that_computes_wrong_is_asked_once_and_another_does_it() {
    let lying = Lying::leaked(Lie::Last, |row| row.mechanism == CKM_SHA256);
    let both: &'static [_] = leaked([lying, &AWSLC]);
    let right = {
        let plain = engine(leaked([&AWSLC as &dyn Provider]));
        digest(&plain, open(&plain))
    };
    let before = ASKED.get();
    let two = engine(both);
    let session = open(&two);
    for _ in 0..10 {
        assert_eq!(digest(&two, session), right);
    }
    // Neither another configuration nor another start gives it a second chance.
    let left_out = vec!["nobody".to_owned()];
    assert!(two.change_routes(Settings { left_out, ..Settings::default() }));
    assert_eq!(digest(&two, session), right);
    let again = engine(both);
    assert_eq!(digest(&again, open(&again)), right);
    let alone = engine(leaked([lying]));
    assert_eq!(digest(&alone, open(&alone)), Err(Error::FIPS_SELF_TEST_FAILED));
    assert!(metaslot_spi::detail::with(|said| said.contains("lying computes CKM_SHA256 wrong")));
    assert!(ASKED.get() > before);
}

#[test]
fn one_whose_test_gives_no_answer_gives_none_to_a_caller() {
    let plain = engine(leaked([&AWSLC as &dyn Provider]));
    let right = digest(&plain, open(&plain));
    for (lie, error) in [(Lie::Fails, Error::HOST_MEMORY), (Lie::Panics, Error::GENERAL_ERROR)] {
        let lying = Lying::leaked(lie, |row| row.mechanism == CKM_SHA256);
        let two = engine(leaked([lying, &AWSLC]));
        let session = open(&two);
        for _ in 0..10 {
            assert_eq!(digest(&two, session), right);
        }
        let alone = engine(leaked([lying]));
        assert_eq!(digest(&alone, open(&alone)), Err(error));
        assert!(metaslot_spi::detail::with(|said| said.contains("self test of CKM_SHA256")));
    }
}

#[test]
fn of_two_that_fail_the_one_that_got_no_answer_says_why_and_is_asked_once() {
    let [wrong, fails] =
        [Lie::Last, Lie::Fails].map(|lie| Lying::leaked(lie, |row| row.mechanism == CKM_SHA256));
    for both in [[wrong, fails], [fails, wrong]] {
        let two = engine(leaked(both));
        let session = open(&two);
        // What computes wrong is known from here on.
        assert_eq!(digest(&two, session), Err(Error::HOST_MEMORY));
        let before = ASKED.get();
        assert_eq!(digest(&two, session), Err(Error::HOST_MEMORY));
        assert_eq!(ASKED.get() - before, 1);
    }
}

/// What was found of the first provider's only row.
fn of_first(tests: &[SelfTest]) -> Result<Option<bool>> {
    tests.iter().find(|test| test.provider == 0).expect("it has one").right
}

#[test]
fn a_private_key_that_is_not_read_for_want_of_memory_is_not_called_invalid() {
    let reading = |error| {
        let rows = AWSLC.algorithms().iter().filter(|row| row.mechanism == CKM_ECDSA);
        leaked(Lying(rows.copied().collect(), Some(error))) as &dyn Provider
    };
    let [full, strange] = [Error::HOST_MEMORY, Error::WRAPPED_KEY_INVALID].map(reading);
    for (providers, said) in [
        (&[full, strange][..], Err(Error::HOST_MEMORY)),
        (&[strange, full], Err(Error::HOST_MEMORY)),
        (&[strange], Err(Error::GENERAL_ERROR)),
        (&[strange, &AWSLC], Ok(Some(true))),
    ] {
        let tests = routes(Vec::leak(providers.to_vec())).self_tests();
        assert_eq!(of_first(&tests), said, "{providers:?}");
    }
}

/// Signatures with keys on P-384 only, or with others, too, about which it does not lie.
#[derive(Debug)]
struct OfP384(Liar<dyn Signature>, bool);

fn is_p384(key: &Key) -> bool {
    key.attributes().bytes(CKA_EC_PARAMS) == Some(&[6, 5, 0x2b, 0x81, 4, 0, 0x22])
}

impl Signature for OfP384 {
    fn serves(&self, key: &Key) -> bool {
        self.1 || is_p384(key)
    }

    fn check(&self, direction: Direction, key: &Key, params: &Params) -> Result<()> {
        self.0.check(direction, key, params)
    }

    fn length(&self, key: &Key, params: &Params) -> usize {
        self.0.length(key, params)
    }

    fn sign(&self, key: &Key, params: &Params, data: &[u8], out: &mut [u8]) -> Result<usize> {
        self.0.sign(key, params, data, out)
    }

    fn verify(&self, key: &Key, params: &Params, data: &[u8], signature: &[u8]) -> Result<()> {
        let right = self.0.0;
        if is_p384(key) { &self.0 } else { right }.verify(key, params, data, signature)
    }

    fn start(&self, to: Direction, key: &Arc<Key>, p: &Params) -> Result<Box<dyn SignatureStream>> {
        self.0.start(to, key, p)
    }
}

#[test]
fn one_that_only_signs_is_not_condemned_by_a_verifier_that_lies() {
    let is_ecdsa = |row: &&Algorithm| row.mechanism == CKM_ECDSA && row.sign.is_some();
    let plain = AWSLC.algorithms().iter().find(is_ecdsa).expect("it signs");
    let provider = |lie, verifies: bool, others: bool| {
        let of_p384 = |row| leaked(OfP384(Liar(row, lie), others)) as &dyn Signature;
        let sign = plain.sign.map(of_p384);
        let verify = plain.verify.map(of_p384).filter(|_| verifies);
        leaked(Lying(vec![Algorithm { sign, verify, ..*plain }], None)) as &dyn Provider
    };
    // `Parts` is no lie here: pairs are not asked in parts.
    let [honest, wrong] = [Lie::Parts, Lie::First].map(|lie| provider(lie, false, false));
    let [refuses, accepts] = [Lie::Refuses, Lie::Accepts].map(|lie| provider(lie, true, false));
    let right_on_p256 = provider(Lie::Refuses, true, true);
    for (providers, right) in [
        (&[honest, &AWSLC][..], Some(true)),
        (&[wrong, &AWSLC], Some(false)),
        (&[honest, refuses], None),
        (&[honest, right_on_p256], None),
        (&[honest, refuses, &AWSLC], Some(true)),
        (&[honest, &AWSLC, refuses], Some(true)),
        (&[wrong, accepts], None),
        (&[wrong, accepts, &AWSLC], Some(false)),
    ] {
        let tests = routes(Vec::leak(providers.to_vec())).self_tests();
        assert_eq!(of_first(&tests), Ok(right), "{providers:?}");
    }
}

// SPDX-License-Identifier: Apache-2.0
//! Providers and tokens that fail and recover at random, under threads that compare every result with the truth.

use super::behaviour::counted;
use super::*;
use metaslot_client::Mechanism;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

/// Threads that work meanwhile.
const THREADS: u64 = 8;
/// How often something begins or ends to fail; `FAULTS` has another number for a longer run.
const CHANGES: u64 = 60;
/// By then a provider that works again is used again, on any machine.
const PATIENCE: Duration = Duration::from_secs(60);

/// What can go wrong with one thing at a time, and how.
type Faults = &'static [(&'static str, &'static [&'static str])];
const OF_DIGESTS: Faults = &[
    ("digest-fails", &["error", "removed", "present", "session", "data", "own code"]),
    ("digest-short", &[""]),
    ("digest-long", &[""]),
    ("stall-digest", &[""]),
];
/// The third token is always there.
const OF_TOKENS: Faults = &[
    ("dead-0", &["removed", "present", "error", "session"]),
    ("dead-1", &["removed", "present", "error", "session"]),
];
/// How long a provider that failed is left alone, and more: then it is asked again.
const REST: Duration = Duration::from_millis(600);

/// The module that digests is said to be the cheapest one; another has a pool of three tokens.
fn prepared(token: &mut TestToken) -> Result<()> {
    compiled(token, "fake.c", "fake.so", "-shared -fPIC -ldl")?;
    compiled(token, "tokens.c", "tokens.so", "-shared -fPIC -lpthread")?;
    let home = token.home().display().to_string();
    token.set("FAKE_ORDERS", &home);
    token.set("FAKE", "nothing-wrong");
    token.set("FAULTS", std::env::var("FAULTS").unwrap_or_default());
    configure(
        token,
        &format!("name = \"fake\"\nmodule = \"{home}/fake.so\"\nserves = [\"digest\"]"),
    )?;
    let pool = "[[pool]]\nname = \"web\"\ntokens = [\"a\", \"b\", \"c\"]";
    configure(token, &format!("name = \"tokens\"\nmodule = \"{home}/tokens.so\"\n{pool}"))?;
    let cost = |name, time| format!("{name} CKM_SHA256 digest - {time} 0 {time}\n");
    let costs = [("fake", 1), ("lanes", 9_000_000), ("awslc", 9_000_000)];
    let costs = costs.map(|(name, time)| cost(name, time)).concat();
    token.write("costs.tsv", format!("# metaslot costs 1\n{costs}")).map(|_| ())
}

/// Numbers that look as if they came by chance, the same in each run.
struct Chance(u64);

impl Chance {
    fn below(&mut self, end: usize) -> usize {
        self.0 =
            self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        usize::try_from(self.0 >> 33).unwrap_or(0) % end
    }
}

fn order(name: &str) -> Result<PathBuf> {
    Ok(Path::new(&std::env::var_os("FAKE_ORDERS").context("no directory")?).join(name))
}

/// Begins and ends faults, one after another.
fn disturb(faults: Faults, changes: u64) -> Result<()> {
    let mut chance = Chance(changes);
    for change in 0..changes {
        let (name, ways) = faults[chance.below(faults.len())];
        let file = order(name)?;
        std::fs::write(&file, ways[chance.below(ways.len())])?;
        std::thread::sleep(Duration::from_millis(chance.below(30) as u64));
        let stalled = order("stalled-digest")?;
        std::fs::remove_file(&file).or_else(|_| std::fs::remove_file(&stalled))?;
        let rests = change % 8 == 7;
        std::thread::sleep(if rests {
            REST
        } else {
            Duration::from_millis(chance.below(10) as u64)
        });
    }
    Ok(())
}

/// One thread's own session and keys, and what is right.
struct Work<'a> {
    session: Session,
    web: (Session, ObjectHandle),
    key: ObjectHandle,
    pair: (ObjectHandle, ObjectHandle),
    truths: &'a [Truth],
}

impl Work<'_> {
    fn one(&self, number: usize) -> Result<()> {
        let (data, digest, mac) = &self.truths[number % self.truths.len()];
        let sha256 = Mechanism::new(CKM_SHA256);
        match number % 5 {
            0 | 1 => ensure!(self.session.digest(&sha256, data)? == *digest, "a wrong digest"),
            2 => {
                let made = self.session.sign(&CKM_SHA256_HMAC.into(), self.key, data)?;
                ensure!(made == *mac, "a wrong MAC");
            }
            3 => {
                let made = self.session.sign(&CKM_ECDSA_SHA256.into(), self.pair.1, data)?;
                self.session.verify(&CKM_ECDSA_SHA256.into(), self.pair.0, data, &made)?;
            }
            _ => {
                let data = &data[..data.len().min(200)];
                let made = self.web.0.sign(&CKM_SHA256_RSA_PKCS.into(), self.web.1, data)?;
                ensure!(made.len() == 256 && made[1..=data.len()] == *data, "a wrong signature");
            }
        }
        Ok(())
    }

    /// Such an operation may fail with its provider; what it answers is right.
    fn in_parts(&self, number: usize) -> Result<bool> {
        let (data, digest, _) = &self.truths[number % self.truths.len()];
        let made = || {
            self.session.digest_init(&CKM_SHA256.into())?;
            data.chunks(1000).try_for_each(|part| self.session.digest_update(part))?;
            self.session.digest_final()
        };
        match made() {
            Ok(made) => {
                ensure!(made == *digest, "a wrong digest in parts");
                Ok(true)
            }
            Err(failure) => {
                let code = failure.code;
                ensure!(matches!(code, Error::DEVICE_ERROR | Error::DEVICE_REMOVED), "{failure}");
                Ok(false)
            }
        }
    }
}

fn web_key(module: &Module) -> Result<(Session, ObjectHandle)> {
    let session = module.open_session(slot(module, "web")?, Access::ReadOnly)?;
    session.login(User::User, b"1234").or_else(|failure| match failure.code {
        Error::USER_ALREADY_LOGGED_IN => Ok(()),
        _ => Err(failure),
    })?;
    let found = session.find(&Template::new().class(CKO_PRIVATE_KEY))?;
    let [key] = found[..] else { anyhow::bail!("{} keys", found.len()) };
    Ok((session, key))
}

/// Data with its digest and its MAC, made while nothing fails.
type Truth = (Vec<u8>, Vec<u8>, Vec<u8>);

fn truths(session: &Session, key: ObjectHandle) -> Result<Vec<Truth>> {
    let one = |length: usize| {
        let data: Vec<u8> = (1..=251).cycle().take(length).collect();
        let digest = session.digest(&CKM_SHA256.into(), &data)?;
        let mac = session.sign(&CKM_SHA256_HMAC.into(), key, &data)?;
        Ok((data, digest, mac))
    };
    [0, 1, 63, 64, 65, 1000, 10_000].into_iter().map(one).collect()
}

#[test]
fn faults_that_come_and_go_are_noticed_by_no_caller() {
    let name = "faults::faults_that_come_and_go_are_noticed_by_no_caller";
    apart(CLIENT, "faults that come and go", name, prepared, || {
        let changes = std::env::var("FAULTS").ok().and_then(|number| number.parse().ok());
        let changes = changes.unwrap_or(CHANGES);
        let module = started()?;
        let open = || module.open_session(SlotId(0), Access::ReadWrite);
        let session = open()?;
        session.login(User::User, USER_PIN.as_bytes())?;
        let key = Template::new().class(CKO_SECRET_KEY).key_type(CKK_GENERIC_SECRET);
        let key = session.create(&key.bytes(CKA_VALUE, [7; 32]).bool(CKA_SIGN, true))?;
        let curve = [6, 8, 0x2a, 0x86, 0x48, 0xce, 0x3d, 3, 1, 7];
        let (public, private) = (Template::new().bytes(CKA_EC_PARAMS, curve), Template::new());
        let pair = session.generate_key_pair(&CKM_EC_KEY_PAIR_GEN.into(), &public, &private)?;
        let truths = truths(&session, key)?;
        let (over, done, parts, failed) =
            (AtomicBool::new(false), AtomicU64::new(0), AtomicU64::new(0), AtomicU64::new(0));
        let work = |thread: u64| -> Result<()> {
            let web = web_key(&module)?;
            let work = Work { session: open()?, web, key, pair, truths: &truths };
            let mut chance = Chance(thread);
            while !over.load(Ordering::SeqCst) {
                let number = chance.below(1 << 20);
                work.one(number).with_context(|| format!("operation {}", number % 5))?;
                done.fetch_add(1, Ordering::Relaxed);
                if number.is_multiple_of(11) {
                    let count = if work.in_parts(number)? { &parts } else { &failed };
                    count.fetch_add(1, Ordering::Relaxed);
                }
            }
            Ok(())
        };
        let work = |thread| work(thread).inspect_err(|_| over.store(true, Ordering::SeqCst));
        std::thread::scope(|scope| {
            let threads: Vec<_> = (0..THREADS).map(|n| scope.spawn(move || work(n))).collect();
            let disturbed = scope.spawn(|| disturb(OF_TOKENS, changes));
            let (digests, tokens) = (disturb(OF_DIGESTS, changes), disturbed.join());
            over.store(true, Ordering::SeqCst);
            threads.into_iter().try_for_each(|thread| thread.join().expect("no panic"))?;
            digests.and_then(|()| tokens.expect("no panic"))
        })?;
        let [done, parts, failed] = [done, parts, failed].map(AtomicU64::into_inner);
        let (asked, wrong) = counted("fake")?;
        println!(
            "    {done} operations, none failed; {parts} in parts, {failed} of them cut off; the module failed {wrong} times of {asked}"
        );
        ensure!(wrong > 0, "nothing failed");
        recovered(&session, &truths[1])
    });
}

/// What has recovered is used again.
fn recovered(session: &Session, (data, digest, _): &Truth) -> Result<()> {
    let (start, before) = (Instant::now(), counted("fake")?);
    while counted("fake")?.0 - before.0 < 20 {
        ensure!(session.digest(&CKM_SHA256.into(), data)? == *digest, "a wrong digest");
        ensure!(start.elapsed() < PATIENCE, "it is not used again");
    }
    ensure!(counted("fake")?.1 == before.1, "it fails still");
    Ok(())
}

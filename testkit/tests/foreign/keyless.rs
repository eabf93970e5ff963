// SPDX-License-Identifier: Apache-2.0
//! A module as a provider of digests, for every caller.

use super::behaviour::counted;
use super::*;
use std::path::PathBuf;

/// FIPS 180-4's examples: nothing, three letters, a million letters.
const EXAMPLES: [(usize, &str); 3] = [
    (0, "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"),
    (3, "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"),
    (1_000_000, "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0"),
];

fn data(length: usize) -> Vec<u8> {
    if length == 3 { b"abc".to_vec() } else { vec![b'a'; length] }
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// The fake module digests for every caller; `more`: sections.
fn prepared(token: &mut TestToken, more: &str) -> Result<()> {
    compiled(token, "fake.c", "fake.so", "-shared -fPIC -ldl")?;
    let home = token.home().display().to_string();
    token.set("FAKE_ORDERS", &home);
    token.set("FAKE", "nothing-wrong");
    let section = format!("name = \"fake\"\nmodule = \"{home}/fake.so\"\nserves = [\"digest\"]");
    configure(token, &format!("{section}\n{more}"))
}

/// Sections by which ours do no SHA-256.
pub(super) fn none_of_ours() -> String {
    ["awslc", "lanes"]
        .map(|name| format!("[provider.{name}]\ndisable = [\"CKM_SHA256\"]\n"))
        .concat()
}

fn alone(token: &mut TestToken) -> Result<()> {
    prepared(token, &none_of_ours())
}

/// A file that tells the module what to do.
fn order(name: &str) -> Result<PathBuf> {
    let home = std::env::var_os("FAKE_ORDERS").context("no directory")?;
    Ok(Path::new(&home).join(name))
}

/// Does `work` while the module does what it is told.
fn under<T>(name: &str, how: &str, work: impl FnOnce() -> Result<T>) -> Result<T> {
    let file = order(name)?;
    std::fs::write(&file, how)?;
    let answer = work();
    std::fs::remove_file(&file)?;
    answer
}

fn open(module: &Module) -> Result<Session> {
    Ok(module.open_session(SlotId(0), Access::ReadWrite)?)
}

fn in_parts(session: &Session, data: &[u8]) -> Result<Vec<u8>, Failure> {
    session.digest_init(&CKM_SHA256.into())?;
    for part in data.chunks(77_777) {
        session.digest_update(part)?;
    }
    session.digest_final()
}

fn digests_are_right(session: &Session) -> Result<()> {
    for (length, wanted) in EXAMPLES {
        let data = data(length);
        let digest = session.digest(&CKM_SHA256.into(), &data)?;
        ensure!(hex(&digest) == wanted, "of {length} bytes");
        ensure!(in_parts(session, &data)? == digest, "of {length} bytes in parts");
    }
    Ok(())
}

#[test]
fn digests_of_a_module_are_for_every_token() {
    let name = "keyless::digests_of_a_module_are_for_every_token";
    apart(CLIENT, "digests of another module", name, alone, || {
        let module = started()?;
        let session = open(&module)?;
        let candidates = module.candidates(CKM_SHA256).context("no candidates")?;
        let names = |flags: u64| -> Vec<_> {
            let rows = candidates.iter().filter(|row| row.flags & CKF_DIGEST == flags);
            rows.map(|row| row.provider.as_str()).collect()
        };
        ensure!(names(CKF_DIGEST) == ["fake"], "{candidates:?}");
        digests_are_right(&session)?;
        let (operations, failed) = counted("fake")?;
        ensure!((operations, failed) == (6, 0), "{operations} operations, {failed} failed");
        session.digest_init(&CKM_SHA256.into())?;
        session.digest_update(b"a")?;
        fails_with(session.operation_state(), Error::STATE_UNSAVEABLE)?;
        // Nothing is left of what was given up.
        drop(session);
        let session = open(&module)?;
        let key = Template::new().class(CKO_SECRET_KEY).key_type(CKK_GENERIC_SECRET);
        let key = session.create(&key.bytes(CKA_VALUE, [7; 32]).bool(CKA_SENSITIVE, false))?;
        session.digest_init(&CKM_SHA256.into())?;
        fails_with(session.digest_key(key), Error::KEY_INDIGESTIBLE)?;
        says(&module, "fake is brought no key to digest")?;
        digests_are_right(&session)?;
        module.finalize()?;
        module.initialize()?;
        digests_are_right(&open(&module)?)
    });
}

#[test]
fn failures_of_a_module_that_digests_are_its_own() {
    let name = "keyless::failures_of_a_module_that_digests_are_its_own";
    apart(CLIENT, "digests that fail", name, alone, || {
        let module = started()?;
        let session = open(&module)?;
        let ways = [
            ("digest-fails", "error", Error::DEVICE_ERROR),
            ("digest-fails", "removed", Error::DEVICE_REMOVED),
            ("digest-fails", "present", Error::DEVICE_REMOVED),
            ("digest-fails", "session", Error::DEVICE_ERROR),
            ("digest-fails", "data", Error::DEVICE_ERROR),
            ("digest-fails", "own code", Error::DEVICE_ERROR),
            ("digest-short", "", Error::DEVICE_ERROR),
            ("digest-long", "", Error::DEVICE_ERROR),
        ];
        for (order, how, code) in ways {
            under(order, how, || {
                fails_with(session.digest(&CKM_SHA256.into(), b"abc"), code)?;
                says(&module, "fake: ")?;
                fails_with(in_parts(&session, b"abc"), code)
            })
            .with_context(|| format!("{order} {how}"))?;
            digests_are_right(&session).with_context(|| format!("after {order} {how}"))?;
        }
        Ok(())
    });
}

#[test]
fn digest_that_stays_away_keeps_no_other_waiting() {
    let name = "keyless::digest_that_stays_away_keeps_no_other_waiting";
    apart(CLIENT, "a digest that stays away", name, alone, || {
        let module = started()?;
        let (one, other) = (open(&module)?, open(&module)?);
        std::fs::write(order("stall-digest")?, "")?;
        let stalled = order("stalled-digest")?;
        std::thread::scope(|scope| {
            let waiting = scope.spawn(|| one.digest(&CKM_SHA256.into(), b"abc"));
            while !stalled.exists() && !waiting.is_finished() {
                std::thread::sleep(std::time::Duration::from_millis(1));
            }
            let meanwhile = digests_are_right(&other);
            std::fs::remove_file(&stalled)?;
            let digest = waiting.join().expect("no panic")?;
            ensure!(hex(&digest) == EXAMPLES[1].1, "another digest");
            meanwhile
        })
    });
}

/// Two sessions whose operations the module has failed at and not ended.
#[test]
fn operation_that_a_failure_leaves_behind_fails_no_other() {
    let name = "keyless::operation_that_a_failure_leaves_behind_fails_no_other";
    apart(CLIENT, "operations that are left behind", name, alone, || {
        let module = started()?;
        let (one, other) = (open(&module)?, open(&module)?);
        let (lingers, stalled) = (order("digest-lingers")?, order("stalled-digest")?);
        std::fs::write(order("stall-digest")?, "")?;
        std::thread::scope(|scope| {
            let waiting = scope.spawn(|| one.digest(&CKM_SHA256.into(), b"abc"));
            while !stalled.exists() && !waiting.is_finished() {
                std::thread::sleep(std::time::Duration::from_millis(1));
            }
            std::fs::write(&lingers, "")?;
            let failed = other.digest(&CKM_SHA256.into(), b"abc");
            std::fs::remove_file(&stalled)?;
            fails_with(failed, Error::DEVICE_ERROR)?;
            fails_with(waiting.join().expect("no panic"), Error::DEVICE_ERROR)
        })?;
        std::fs::remove_file(&lingers)?;
        digests_are_right(&other)
    });
}

/// The module is said to be the cheapest; ours do what it fails at.
#[test]
fn callers_notice_no_failure_where_others_digest_too() {
    let prepare = |token: &mut TestToken| {
        prepared(token, "")?;
        let head = "# metaslot costs 1\n";
        let cost = |name, time| format!("{name} CKM_SHA256 digest - {time} 0 {time}\n");
        let costs = ["lanes", "awslc"].map(|ours| cost(ours, 9_000_000)).concat();
        token.write("costs.tsv", format!("{head}{}{costs}", cost("fake", 1))).map(|_| ())
    };
    let name = "keyless::callers_notice_no_failure_where_others_digest_too";
    apart(CLIENT, "digests that fail beside ours", name, prepare, || {
        let module = started()?;
        let session = open(&module)?;
        let one = || -> Result<()> {
            let digest = session.digest(&CKM_SHA256.into(), b"abc")?;
            ensure!(hex(&digest) == EXAMPLES[1].1, "another digest");
            Ok(())
        };
        one()?;
        ensure!(counted("fake")? == (1, 0), "it is the cheapest: {:?}", counted("fake")?);
        for (order, how) in [("digest-fails", "error"), ("digest-short", ""), ("digest-long", "")] {
            under(order, how, || (0..20).try_for_each(|_| one()))?;
        }
        let failed = counted("fake")?.1;
        ensure!(failed > 0, "it was not asked");
        module.finalize()?;
        module.initialize()?;
        let session = open(&module)?;
        // In parts, too: what fails at the first of them has taken nothing yet.
        under("digest-fails", "error", || {
            (0..20).try_for_each(|_| {
                let digest = in_parts(&session, b"abc").context("in parts")?;
                ensure!(hex(&digest) == EXAMPLES[1].1, "another digest");
                Ok(())
            })
        })?;
        ensure!(counted("fake")?.1 > failed, "it was not asked for the parts");
        Ok(())
    });
}

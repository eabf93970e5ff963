// SPDX-License-Identifier: Apache-2.0
//! One key in three tokens, each in a process of its own, of which one after another dies and comes back under load.

use super::*;
use std::path::PathBuf;
use std::process::Command;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

const TOKENS: [&str; 3] = ["a", "b", "c"];
const THREADS: usize = 4;
/// How long it lasts, in seconds; `SOAK` has another number for a longer run.
const SECONDS: u64 = 20;
/// From one death to the next.
const CYCLE: Duration = Duration::from_secs(5);
/// How long a token is away.
const AWAY: Duration = Duration::from_secs(2);
/// By then a token that is back signs, on any machine.
const PATIENCE: Duration = Duration::from_secs(60);

/// Starts p11-kit for the token that its module's name says, with files of its own; while the token is away it cannot.
const START: &str = r#"#!/bin/sh
token=$(basename "$2" .so)
[ ! -e "$HOME/away-$token" ] || exit 1
echo $$ >"$HOME/process-$token"
SOFTHSM2_CONF="$HOME/$token.conf" exec p11-kit "$@"
"#;

fn seconds() -> u64 {
    std::env::var("SOAK").ok().and_then(|number| number.parse().ok()).unwrap_or(SECONDS)
}

/// `more`: further settings of each.
fn prepared(token: &mut TestToken, more: &str) -> Result<()> {
    let start = token.write("start", START)?;
    token.program("chmod").arg("+x").arg(&start).run()?;
    let key = token.path("key.pem");
    let new = ["genpkey", "-algorithm", "RSA", "-pkeyopt", "rsa_keygen_bits:2048", "-out"];
    token.program("openssl").args(new).arg(&key).run()?;
    for label in TOKENS {
        let (files, module) = (token.path(&format!("files-{label}")), format!("{label}.so"));
        std::fs::create_dir(&files)?;
        let conf = format!("directories.tokendir = {}\n", files.display());
        let conf = token.write(&format!("{label}.conf"), conf)?;
        // A module has one section.
        std::fs::copy(SOFTHSM, token.path(&module))?;
        let tool = || token.program("softhsm2-util").env("SOFTHSM2_CONF", &conf);
        let pins = ["--pin", USER_PIN, "--so-pin", SO_PIN];
        tool().args(["--init-token", "--free", "--label", label]).args(pins).run()?;
        let import = ["--token", label, "--label", "web", "--id", "01", "--pin", USER_PIN];
        tool().arg("--import").arg(&key).args(import).run()?;
        let module = token.path(&module).display().to_string();
        let section = format!("name = \"soft-{label}\"\nmodule = \"{module}\"");
        configure(token, &format!("{section}\nisolated = \"{}\"\n{more}", start.display()))?;
    }
    let text = std::fs::read_to_string(token.path("metaslot.toml"))?;
    let pool = format!("[[pool]]\nname = \"web\"\ntokens = {TOKENS:?}\n");
    token.write("metaslot.toml", format!("{text}\n{pool}"))?;
    token.set("SOAK", seconds().to_string());
    token.limit(2 * Duration::from_secs(seconds()) + PATIENCE);
    Ok(())
}

fn file(kind: &str, token: &str) -> Result<PathBuf> {
    let home = std::env::var_os("HOME").context("no home")?;
    Ok(Path::new(&home).join(format!("{kind}-{token}")))
}

/// The number of a token's process.
fn process(token: &str) -> Result<String> {
    Ok(std::fs::read_to_string(file("process", token)?)?.trim().to_owned())
}

/// The processor time that a process has had, in hundredths of a second; none once it has gone.
fn time_of(process: &str) -> Option<u64> {
    let stat = std::fs::read_to_string(format!("/proc/{process}/stat")).ok()?;
    let mut fields = stat.rsplit_once(')')?.1.split_whitespace().skip(11);
    Some(fields.next()?.parse::<u64>().ok()? + fields.next()?.parse::<u64>().ok()?)
}

/// What happened in one death.
struct Death {
    /// Signatures a second before it, while the token was away, and in the second after it came back.
    rates: [u64; 3],
    /// From its return until it signed.
    back: Duration,
}

fn rate(done: &AtomicU64, time: Duration) -> u64 {
    let (begin, before) = (Instant::now(), done.load(Ordering::SeqCst));
    std::thread::sleep(time);
    let made = done.load(Ordering::SeqCst) - before;
    made * 1000 / u64::try_from(begin.elapsed().as_millis()).unwrap_or(u64::MAX).max(1)
}

fn die_and_come_back(token: &str, done: &AtomicU64) -> Result<Death> {
    let begin = Instant::now();
    let before = rate(done, Duration::from_secs(1));
    let old = process(token)?;
    std::fs::write(file("away", token)?, "")?;
    ensure!(Command::new("kill").args(["-9", &old]).status()?.success(), "no process of {token}");
    let away = rate(done, AWAY);
    std::fs::remove_file(file("away", token)?)?;
    let returned = Instant::now();
    let (after, back) = std::thread::scope(|scope| -> Result<(u64, Duration)> {
        let after = scope.spawn(|| rate(done, Duration::from_secs(1)));
        let signs = || {
            let now = process(token).ok().filter(|now| *now != old)?;
            time_of(&now).filter(|time| *time > 5)
        };
        while signs().is_none() {
            ensure!(returned.elapsed() < PATIENCE, "{token} does not come back");
            std::thread::sleep(Duration::from_millis(5));
        }
        let back = returned.elapsed();
        Ok((after.join().expect("no panic"), back))
    })?;
    std::thread::sleep(CYCLE.saturating_sub(begin.elapsed()));
    Ok(Death { rates: [before, away, after], back })
}

/// Runs `work` in a process of its own, with the pool.
fn three(what: &str, name: &str, more: &str, work: impl FnOnce() -> Result<()>) {
    let files = Path::new(SOFTHSM).exists();
    let there =
        files && find_program("p11-kit").is_some() && find_program("softhsm2-util").is_some();
    match there || is_inside() {
        true => apart(CLIENT, what, name, |token| prepared(token, more), work),
        false => metaslot_testkit::not_run(CLIENT, what, "SoftHSM or p11-kit is not installed"),
    }
}

#[test]
fn token_whose_process_stands_still_fails_no_operation() {
    let name = "soak::token_whose_process_stands_still_fails_no_operation";
    three("a process that stands still", name, "limit = \"1s\"", || {
        let module = started()?;
        let (session, private) = server::key(&module)?;
        let mechanism = &CKM_SHA256_RSA_PKCS.into();
        let right = session.sign(mechanism, private, b"message")?;
        for token in TOKENS {
            let still = process(token)?;
            ensure!(Command::new("kill").args(["-STOP", &still]).status()?.success(), "{token}");
            let begin = Instant::now();
            // Until it is given up, and started again.
            while process(token)? == still {
                ensure!(begin.elapsed() < PATIENCE, "{token} is not started again");
                ensure!(session.sign(mechanism, private, b"message")? == right, "wrong");
            }
        }
        Ok(())
    });
}

#[test]
fn tokens_in_processes_of_their_own_die_and_come_back_unnoticed() {
    let name = "soak::tokens_in_processes_of_their_own_die_and_come_back_unnoticed";
    three("three processes, of which one after another dies", name, "", || {
        let module = started()?;
        let (session, private) = server::key(&module)?;
        let mechanism = &CKM_SHA256_RSA_PKCS.into();
        let right = session.sign(mechanism, private, b"message")?;
        let (over, done, slowest) = (AtomicBool::new(false), AtomicU64::new(0), AtomicU64::new(0));
        let work = || -> Result<()> {
            let (session, private) = server::key(&module)?;
            while !over.load(Ordering::SeqCst) {
                let begin = Instant::now();
                let made = session.sign(mechanism, private, b"message");
                let made = made.with_context(|| module.detail().unwrap_or_default());
                ensure!(made? == right, "a wrong signature");
                let took = u64::try_from(begin.elapsed().as_micros()).unwrap_or(u64::MAX);
                slowest.fetch_max(took, Ordering::SeqCst);
                done.fetch_add(1, Ordering::SeqCst);
            }
            Ok(())
        };
        let work = || work().inspect_err(|_| over.store(true, Ordering::SeqCst));
        let deaths = std::thread::scope(|scope| -> Result<Vec<Death>> {
            let threads = [(); THREADS].map(|()| scope.spawn(work));
            let mut deaths = Vec::new();
            for (_, token) in (0..seconds() / CYCLE.as_secs()).zip(TOKENS.iter().cycle()) {
                match die_and_come_back(token, &done) {
                    Ok(death) if !over.load(Ordering::SeqCst) => deaths.push(death),
                    Ok(_) => break,
                    Err(error) => {
                        over.store(true, Ordering::SeqCst);
                        return Err(error);
                    }
                }
            }
            over.store(true, Ordering::SeqCst);
            threads.into_iter().try_for_each(|thread| thread.join().expect("no panic"))?;
            Ok(deaths)
        })?;
        let middle = |at: usize| {
            let mut rates: Vec<_> = deaths.iter().map(|death| death.rates[at]).collect();
            rates.sort_unstable();
            rates[rates.len() / 2]
        };
        let latest = deaths.iter().map(|death| death.back).max().unwrap_or_default();
        println!(
            "    {} signatures in {} deaths, none failed; a second: {} before, {} without it, {} after; \
             it signed again after {latest:.2?} at most; the slowest call took {:.0} ms",
            done.into_inner(),
            deaths.len(),
            middle(0),
            middle(1),
            middle(2),
            slowest.into_inner() as f64 / 1e3,
        );
        Ok(())
    });
}

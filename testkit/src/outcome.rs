// SPDX-License-Identifier: Apache-2.0
//! What became of a check, and where that is written down.

use std::fmt;
use std::io::Write as _;
use std::time::{Duration, Instant};

use anyhow::Result;

use crate::process::find_program;
use crate::token::TestToken;

/// What became of one check of one client.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum Outcome {
    /// The client did what it should.
    Passed,
    /// It did not; the text says what happened.
    Failed(String),
    /// The client or the module is not here; the text says what is missing.
    NotRun(String),
}

impl fmt::Display for Outcome {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Passed => f.write_str("passed"),
            Self::Failed(reason) => write!(f, "failed: {reason}"),
            Self::NotRun(reason) => write!(f, "not run: {reason}"),
        }
    }
}

/// Runs one check of `client` with a token of its own, when every program in `needs` is here.
///
/// # Panics
///
/// When the check failed; and, where `CI` is set, when it could not run.
pub fn check(
    client: &str,
    what: &str,
    needs: &[&str],
    work: impl FnOnce(&mut TestToken) -> Result<()>,
) {
    let started = Instant::now();
    let outcome = outcome_of(client, what, needs, work);
    tell(client, what, outcome, started.elapsed());
}

/// Says that a test of this crate could not check what it should, for want of something on this machine.
///
/// # Panics
///
/// Where `CI` is set: there everything must be.
pub fn not_run(krate: &str, what: &str, reason: &str) {
    tell(krate, what, Outcome::NotRun(reason.into()), Duration::ZERO);
}

/// Says that a check is not run here, for another reason than a package that is missing: a kernel that forbids it, or
/// what another command builds.
pub fn left_out(client: &str, what: &str, reason: &str) {
    let outcome = Outcome::NotRun(reason.into());
    record(client, what, &outcome, Duration::ZERO);
    println!("{client}, {what}: {outcome}");
}

fn tell(client: &str, what: &str, outcome: Outcome, took: Duration) {
    record(client, what, &outcome, took);
    println!("{client}, {what}: {outcome}");
    match outcome {
        Outcome::Passed => {}
        Outcome::NotRun(_) if std::env::var_os("CI").is_none() => {}
        Outcome::NotRun(reason) => panic!("{client}, {what}: not run: {reason}"),
        Outcome::Failed(reason) => panic!("{client}, {what}: {reason}"),
    }
}

fn outcome_of(
    client: &str,
    what: &str,
    needs: &[&str],
    work: impl FnOnce(&mut TestToken) -> Result<()>,
) -> Outcome {
    if let Some(missing) = needs.iter().find(|name| find_program(name).is_none()) {
        return Outcome::NotRun(format!("{missing} is not installed"));
    }
    let mut token = match TestToken::new(&format!("{client} {what}")) {
        Ok(Some(token)) => token,
        Ok(None) => return Outcome::NotRun("no module is built".into()),
        Err(error) => return Outcome::Failed(format!("no token: {error:#}")),
    };
    match work(&mut token) {
        Ok(()) => {
            token.remove();
            Outcome::Passed
        }
        Err(error) => Outcome::Failed(format!("{error:#}\nkept: {}", token.home().display())),
    }
}

/// Characters of a reason that the summary shows: the end, since programs name the error last.
const SHOWN: usize = 400;

/// Appends one line to the file that the summary of `cargo xtask test` is made from.
fn record(client: &str, what: &str, outcome: &Outcome, took: Duration) {
    let Some(path) = std::env::var_os("METASLOT_TEST_REPORT") else { return };
    let (word, reason) = match outcome {
        Outcome::Passed => ("passed", ""),
        Outcome::Failed(reason) => ("failed", reason.as_str()),
        Outcome::NotRun(reason) => ("not run", reason.as_str()),
    };
    let reason = reason.split_whitespace().collect::<Vec<_>>().join(" ");
    let start = reason.char_indices().rev().nth(SHOWN).map_or(0, |(at, _)| at);
    let reason = &reason[start..];
    let line = format!("{client}\t{what}\t{word}\t{:.2}\t{reason}\n", took.as_secs_f64());
    let file = std::fs::OpenOptions::new().create(true).append(true).open(path);
    if let Err(error) = file.and_then(|mut file| file.write_all(line.as_bytes())) {
        println!("the report could not be written: {error}");
    }
}

// SPDX-License-Identifier: Apache-2.0
//! The process that holds one store open and does what it is told, one JSON line at a time.

use crate::child::Child;
use crate::clock::{measure, process_cpu};
use crate::meter::Done;
use crate::random::Random;
use crate::role::Role;
use crate::sandbox::Store;
use crate::token::{self, Token, aes_template};
use crate::{Failure, Result};
use metaslot_ck::{CKA_LABEL, CKA_PRIVATE, CKM_AES_KEY_GEN, CKM_ECDSA, CKO_DATA, CKO_PRIVATE_KEY};
use metaslot_client::{Mechanism, Session, Template};
use serde::{Deserialize, Serialize};
use serde_json::json;
use std::io::Write;
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

/// Label of the public object that a cold start looks for.
pub(crate) const PUBLIC: &str = "public";

/// What a holder can be told.
#[derive(Clone, Copy, Debug, Deserialize, Serialize)]
pub(crate) enum Request {
    /// Create that many AES-256 keys, labelled by their number from `first`.
    Populate { first: u64, objects: u64, threads: usize },
    /// Find random keys among the first `objects` by label for so long.
    Find { objects: u64, millis: u64, seed: u64 },
    /// Sign with the P-256 key for so long.
    Sign { millis: u64 },
    /// Create keys for so long; their labels begin with the seed.
    Create { millis: u64, threads: usize, seed: u64 },
    /// Create exactly so many keys.
    CreateCount { count: u64, seed: u64 },
}

/// Starts one on a store.
///
/// # Errors
/// The process could not be started.
pub(crate) fn start(store: &Store, module: &Path, make: bool) -> Result<Child> {
    Child::start(store.command(&Role::Holder { module: module.to_owned(), make })?)
}

/// Tells it to do something and waits for the answer.
///
/// # Errors
/// What the holder could not do, in its own words; it prints more on stderr when it dies.
pub(crate) fn ask(holder: &mut Child, request: &Request) -> Result<Done> {
    holder.ask(serde_json::to_string(request)?)
}

/// The holder's life.
pub(crate) fn run(module: &Path, make: bool) -> Result<()> {
    let token = if make { Token::make(module)? } else { Token::open(module)? };
    if make {
        token::p256(&token.session)?;
        let public = Template::new()
            .class(CKO_DATA)
            .token(true)
            .bool(CKA_PRIVATE, false)
            .label(PUBLIC)
            .bytes(metaslot_ck::CKA_VALUE, b"anybody may read this");
        token.session.create(&public)?;
    }
    for line in std::io::stdin().lines() {
        let request: Request = serde_json::from_str(&line?)?;
        let answer = match serve(&token, request) {
            Ok(done) => serde_json::to_value(done)?,
            Err(failure) => json!({ "error": failure.message }),
        };
        let mut output = std::io::stdout().lock();
        writeln!(output, "{answer}")?;
        output.flush()?;
    }
    let Token { module, session, .. } = token;
    session.close()?;
    Ok(module.finalize()?)
}

fn serve(token: &Token, request: Request) -> Result<Done> {
    match request {
        Request::Populate { first, objects, threads } => populate(token, first, objects, threads),
        Request::Find { objects, millis, seed } => find(token, objects, millis, seed),
        Request::Sign { millis } => sign(token, millis),
        Request::Create { millis, threads, seed } => {
            let until = Instant::now() + Duration::from_millis(millis);
            create(token, threads, seed, |_| Instant::now() < until)
        }
        Request::CreateCount { count, seed } => create(token, 1, seed, |made| made < count),
    }
}

fn label(number: u64) -> String {
    format!("key-{number:08}")
}

fn make_key(session: &Session, label: &str) -> Result<()> {
    let template = aes_template(label, true);
    session.generate_key(&Mechanism::new(CKM_AES_KEY_GEN), &template)?;
    Ok(())
}

fn populate(token: &Token, first: u64, objects: u64, threads: usize) -> Result<Done> {
    let next = AtomicU64::new(first);
    let began = (Instant::now(), process_cpu());
    on_threads(token, threads, |session, _| {
        loop {
            let number = next.fetch_add(1, Ordering::Relaxed);
            if number >= first + objects {
                return Ok(());
            }
            make_key(session, &label(number))?;
        }
    })?;
    Ok(done(objects, began))
}

/// Keys with labels that no other request makes, while `go_on` says so of the number made so far.
fn create(
    token: &Token,
    threads: usize,
    seed: u64,
    go_on: impl Fn(u64) -> bool + Sync,
) -> Result<Done> {
    let made = AtomicU64::new(0);
    let began = (Instant::now(), process_cpu());
    let work = |session: &Session, thread: usize| {
        let mut own = 0_u64;
        while go_on(made.load(Ordering::Relaxed)) {
            make_key(session, &format!("new-{seed:016x}-{thread}-{own}"))?;
            own += 1;
            made.fetch_add(1, Ordering::Relaxed);
        }
        Ok(())
    };
    on_threads(token, threads, work)?;
    Ok(done(made.into_inner(), began))
}

/// What all threads did since.
fn done(operations: u64, (wall, cpu): (Instant, Duration)) -> Done {
    Done {
        operations: operations as f64,
        cpu_ns: nanoseconds(process_cpu().saturating_sub(cpu)),
        wall_ns: nanoseconds(wall.elapsed()),
    }
}

fn on_threads(
    token: &Token,
    threads: usize,
    work: impl Fn(&Session, usize) -> Result<()> + Sync,
) -> Result<()> {
    std::thread::scope(|scope| {
        let work = &work;
        let start = |number| scope.spawn(move || work(&token.session()?, number));
        let running: Vec<_> = (0..threads).map(start).collect();
        for thread in running {
            thread.join().map_err(|_| Failure::new("a thread panicked"))??;
        }
        Ok(())
    })
}

/// `C_FindObjectsInit`, `C_FindObjects`, `C_FindObjectsFinal` by a label that one object has.
fn find(token: &Token, objects: u64, millis: u64, seed: u64) -> Result<Done> {
    let session = token.session()?;
    let mut random = Random::new(seed);
    repeat(millis, 16, || {
        let name = label(random.below(objects.max(1)));
        let found = session.find(&Template::new().bytes(CKA_LABEL, &name))?;
        if found.len() == 1 {
            return Ok(());
        }
        Err(Failure::new(format!("{} objects are labelled {name}", found.len())))
    })
}

fn sign(token: &Token, millis: u64) -> Result<Done> {
    let session = token.session()?;
    let template = Template::new().class(CKO_PRIVATE_KEY).bytes(CKA_LABEL, "ec");
    let key = session.find_one(&template)?.ok_or_else(|| Failure::new("the P-256 key is gone"))?;
    let mut out = [0; 64];
    repeat(millis, 16, || {
        session.sign_init(&Mechanism::new(CKM_ECDSA), key)?;
        session.sign_into(&[7; 32], &mut out)?;
        Ok(())
    })
}

/// Batches of `batch` operations until `millis` of CPU time are used.
fn repeat(millis: u64, batch: u64, mut once: impl FnMut() -> Result<()>) -> Result<Done> {
    let mut answer = Done::default();
    // The first call fetches and prepares; it is not what a busy program pays.
    once()?;
    while answer.cpu_ns < millis as f64 * 1e6 {
        let (result, spent) = measure(|| (0..batch).try_for_each(|_| once()));
        result?;
        answer.operations += batch as f64;
        answer.cpu_ns += nanoseconds(spent.cpu);
        answer.wall_ns += nanoseconds(spent.wall);
    }
    Ok(answer)
}

fn nanoseconds(duration: Duration) -> f64 {
    duration.as_secs_f64() * 1e9
}

// SPDX-License-Identifier: Apache-2.0
//! The store's own figures, in one run: opening cold, searching, creating, beside raw SQLite doing
//! the same inserts.
//!
//! `cargo run --release -p metaslot-keystore --example figures -- [DIRECTORY [OBJECTS [SECONDS]]]`
//! keeps the token in DIRECTORY for the next run.

use metaslot_ck::{CKA_CLASS, CKA_KEY_TYPE, CKA_LABEL, CKA_UNIQUE_ID};
use metaslot_keystore::{Config, SqliteStore};
use metaslot_memory::Secret;
use metaslot_spi::store::{Change, Record, Role, Scope, Store, Term};
use rusqlite::Connection;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

type Failure = Box<dyn std::error::Error>;

const PIN: &[u8] = b"figures-1234";

fn main() -> Result<(), Failure> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    if arguments.first().is_some_and(|word| word == "cold") {
        return cold(Path::new(&arguments[1]), &arguments[2]);
    }
    let directory = arguments
        .first()
        .map_or_else(|| std::env::temp_dir().join("metaslot-figures"), PathBuf::from);
    let objects: u64 = arguments.get(1).map_or(Ok(10_000), |word| word.parse())?;
    let seconds: u64 = arguments.get(2).map_or(Ok(3), |word| word.parse())?;
    let span = Duration::from_secs(seconds);

    let path = directory.join("token.db");
    let store = SqliteStore::new(Config::new(&path));
    if !store.token()?.initialized {
        store.initialize(PIN, "figures")?;
    }
    store.login(Role::So, PIN)?;
    fill(&store, objects)?;
    store.logout();
    drop(store);

    for label in ["public 7", "key 7"] {
        let program = std::env::current_exe()?;
        let out = Command::new(program).arg("cold").arg(&path).arg(label).output()?;
        print!("{}", String::from_utf8_lossy(&out.stdout));
    }

    let store = SqliteStore::new(Config::new(&path));
    store.login(Role::So, PIN)?;
    logins(&directory)?;
    searches(&store, objects)?;
    let raw = Raw::open(&directory.join("raw.db"), objects)?;
    let mut best = (Vec::new(), Vec::new());
    for _ in 0..3 {
        best.0.push(rate(span, |at| raw.create(at)));
        best.1.push(rate(span, |at| create(&store, at)));
    }
    best.0.sort_by(f64::total_cmp);
    best.1.sort_by(f64::total_cmp);
    let (plain, ours) = (best.0[1], best.1[1]);
    println!("creates among {objects}, raw SQLite     {plain:10.0} /s");
    println!(
        "creates among {objects}, one thread     {ours:10.0} /s  ({:.2} of raw)",
        ours / plain
    );
    let before = store.statistics();
    let eight = threads(&store, 8, span);
    let after = store.statistics();
    let commits = after.commits - before.commits;
    println!(
        "creates among {objects}, eight threads  {eight:10.0} /s  ({:.2} of one)",
        eight / ours
    );
    println!(
        "syncs per create, eight threads    {:10.2}",
        commits as f64 / (after.writes - before.writes) as f64
    );
    Ok(())
}

/// In a process of its own: open, and find a public or a private object.
fn cold(path: &Path, label: &str) -> Result<(), Failure> {
    let started = Instant::now();
    let store = SqliteStore::new(Config::new(path));
    let query = [(CKA_LABEL, label.as_bytes().to_vec())];
    let found = store.search(&query, Scope::Public, 0, 10)?;
    let took = started.elapsed();
    let memory = std::fs::read_to_string("/proc/self/status")?;
    let memory = memory.lines().find(|line| line.starts_with("VmHWM")).unwrap_or_default();
    println!("cold open and search, {} found      {took:10.0?}  {memory}", found.len());
    Ok(())
}

fn fill(store: &SqliteStore, objects: u64) -> Result<(), Failure> {
    let have = store.search(&[], Scope::Private, 0, usize::MAX)?.len() as u64;
    let started = Instant::now();
    for start in (have..objects).step_by(5_000) {
        let numbers = start..objects.min(start + 5_000);
        store.write(numbers.map(|number| Change::Insert(record(number))).collect())?;
    }
    if store.search(&[(CKA_LABEL, b"public 7".to_vec())], Scope::Public, 0, 1)?.is_empty() {
        let terms = vec![(CKA_LABEL, b"public 7".to_vec())];
        let public = Record { private: false, attributes: vec![1; 300], secrets: None, terms };
        store.write(vec![Change::Insert(public)])?;
    }
    println!("filled with {} objects in {:.1?}", objects.saturating_sub(have), started.elapsed());
    Ok(())
}

/// The long way and the fast one, each with its two durable writes.
fn logins(directory: &Path) -> Result<(), Failure> {
    let runtime = directory.join("runtime");
    std::fs::create_dir_all(&runtime)?;
    let fast_login = Some(Duration::from_mins(1));
    let fast =
        Config { fast_login, runtime: Some(runtime), ..Config::new(directory.join("token.db")) };
    for (name, config) in
        [("long", Config::new(&fast.path)), ("fast", fast.clone()), ("fast", fast)]
    {
        let store = SqliteStore::new(config);
        let (started, busy) = (Instant::now(), on_cpu()?);
        store.login(Role::So, PIN)?;
        let (took, busy) = (started.elapsed(), on_cpu()? - busy);
        let way = if store.statistics().fast_hits == 1 { "served" } else { "not served" };
        println!("open and log in, {name} way {way:10} {took:10.2?}, on CPU {busy:.2?}");
    }
    Ok(())
}

fn searches(store: &SqliteStore, objects: u64) -> Result<(), Failure> {
    for round in 0..3 {
        let (rounds, started, busy) = (20_000_u64, Instant::now(), on_cpu()?);
        for at in 0..rounds {
            let number = at.wrapping_mul(0x9e37_79b9_7f4a_7c15) % objects;
            let label: Term = (CKA_LABEL, format!("key {number}").into_bytes());
            let found = store.search(&[label], Scope::Private, 0, 16)?;
            assert_eq!(found.len(), 1, "key {number}");
        }
        let each = started.elapsed() / u32::try_from(rounds)?;
        let busy = (on_cpu()? - busy) / u32::try_from(rounds)?;
        println!("search by label among {objects}, round {round} {each:10.2?}, on CPU {busy:.2?}");
    }
    let (class, started) = ((CKA_CLASS, vec![4; 8]), Instant::now());
    let (mut after, mut found) = (0, 0);
    loop {
        let part = store.search(std::slice::from_ref(&class), Scope::Private, after, 1_000)?;
        let Some(last) = part.last() else { break };
        (after, found) = (last.id, found + part.len());
    }
    let rate = found as f64 / started.elapsed().as_secs_f64();
    println!("search by class streams {found} ids     {rate:10.0} /s");
    Ok(())
}

/// How long this thread has been on a CPU: a busy machine does not count.
fn on_cpu() -> Result<Duration, Failure> {
    let text = std::fs::read_to_string("/proc/thread-self/schedstat")?;
    let nanoseconds = text.split(' ').next().ok_or("no schedstat")?;
    Ok(Duration::from_nanos(nanoseconds.parse()?))
}

/// An AES-256 key as the engine writes it.
fn record(number: u64) -> Record {
    let label = format!("key {number}").into_bytes();
    Record {
        private: true,
        attributes: vec![7; 420],
        secrets: Some(Secret::copy_of(&[9; 44])),
        terms: vec![
            (CKA_CLASS, vec![4; 8]),
            (CKA_KEY_TYPE, vec![31; 8]),
            (CKA_LABEL, label.clone()),
            (CKA_UNIQUE_ID, [&label[..], b"unique"].concat()),
        ],
    }
}

static NEXT: AtomicU64 = AtomicU64::new(1 << 40);

fn create(store: &SqliteStore, _: u64) {
    let number = NEXT.fetch_add(1, Ordering::Relaxed);
    store.write(vec![Change::Insert(record(number))]).expect("a durable create");
}

fn rate(span: Duration, mut one: impl FnMut(u64)) -> f64 {
    let (started, mut count) = (Instant::now(), 0);
    while started.elapsed() < span {
        one(count);
        count += 1;
    }
    count as f64 / started.elapsed().as_secs_f64()
}

fn threads(store: &SqliteStore, count: usize, span: Duration) -> f64 {
    std::thread::scope(|scope| {
        let workers: Vec<_> =
            (0..count).map(|_| scope.spawn(|| rate(span, |at| create(store, at)))).collect();
        workers.into_iter().map(|worker| worker.join().expect("a worker")).sum()
    })
}

/// SQLite alone, with the same tables, index entries and settings, and no cryptography.
struct Raw(Connection);

impl Raw {
    fn open(path: &Path, objects: u64) -> Result<Self, Failure> {
        let connection = Connection::open(path)?;
        connection.execute_batch(
            "PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL; PRAGMA cache_size = -2048;
             CREATE TABLE IF NOT EXISTS object(id INTEGER PRIMARY KEY, version INTEGER, private INTEGER,
                 verified INTEGER, attributes BLOB, secrets BLOB, terms BLOB, tag BLOB);
             CREATE INDEX IF NOT EXISTS object_private ON object(private);
             CREATE TABLE IF NOT EXISTS lookup(value BLOB, object INTEGER, PRIMARY KEY(value, object))
                 WITHOUT ROWID;
             CREATE TABLE IF NOT EXISTS token(next_id INTEGER, row_set BLOB);",
        )?;
        let raw = Self(connection);
        let have: u64 = raw
            .0
            .query_row("SELECT count(*) FROM object", (), |row| row.get::<_, i64>(0))?
            .cast_unsigned();
        if have == 0 {
            raw.0.execute("INSERT INTO token VALUES(1, zeroblob(92))", ())?;
        }
        raw.0.execute_batch("BEGIN")?;
        for _ in have..objects {
            raw.insert()?;
        }
        raw.0.execute_batch("COMMIT")?;
        Ok(raw)
    }

    fn create(&self, _: u64) {
        let created = || -> rusqlite::Result<()> {
            self.0.prepare_cached("BEGIN IMMEDIATE")?.execute(())?;
            self.insert()?;
            self.0.prepare_cached("COMMIT")?.execute(())?;
            Ok(())
        };
        created().expect("a durable create");
    }

    fn insert(&self) -> rusqlite::Result<()> {
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let mut random = number;
        let mut word = || {
            random = random.wrapping_add(0x9e37_79b9_7f4a_7c15);
            let mixed = (random ^ (random >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
            mixed ^ (mixed >> 27)
        };
        let terms = [[1, 1], [2, 2], [word(), word()], [word(), word()]]
            .map(|pair| pair.map(u64::to_be_bytes).concat());
        self.0
            .prepare_cached(
                "INSERT INTO object(version, private, verified, attributes, secrets, terms, tag)
                 VALUES(1, 1, 1, ?1, ?2, ?3, ?4)",
            )?
            .execute((&[7_u8; 448][..], &[9_u8; 72][..], terms.concat(), &[5_u8; 32][..]))?;
        let id = self.0.last_insert_rowid();
        let mut lookup = self.0.prepare_cached("INSERT INTO lookup VALUES(?1, ?2)")?;
        for term in &terms {
            lookup.execute((term, id))?;
        }
        self.0
            .prepare_cached("UPDATE token SET next_id = ?1, row_set = ?2")?
            .execute((id + 1, &[3_u8; 92][..]))?;
        Ok(())
    }
}

// SPDX-License-Identifier: Apache-2.0
//! Several processes and threads on one token, some of which are killed.
#![expect(clippy::unwrap_used, reason = "a test fails where it cannot go on")]

mod common;

use common::{Sandbox, USER, find, insert, private, public};
use metaslot_ck::Error;
use metaslot_keystore::{SqliteStore, fork};
use metaslot_spi::store::{Change, Role, Scope, Store};
use rustix::fs::{FlockOperation, fcntl_lock};
use std::io::{BufRead, BufReader, Read};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

/// Set for a child that writes to the token at this path until it is killed.
const WRITER: &str = "METASLOT_TEST_WRITER";

/// In a child: writes objects and says so once they are durable. In the test run itself: nothing.
#[test]
fn child_that_writes() {
    let Some(path) = std::env::var_os(WRITER) else { return };
    let store = SqliteStore::new(metaslot_keystore::Config::new(path));
    store.login(Role::User, USER).unwrap();
    let most = std::env::var("METASLOT_TEST_WRITES").map_or(u64::MAX, |most| most.parse().unwrap());
    let mut kept = Vec::new();
    for number in 0..most {
        let label = format!("{} {number}", std::process::id());
        let id = insert(&store, private(&label));
        println!("\nacknowledged {id} {label}");
        let changes = number % 4 != 3 && number % 5 == 4;
        kept.push((id, if changes { 2 } else { 1 }));
        // Every fourth goes away again, and every fifth changes.
        if number % 4 == 3 {
            let (id, version) = kept.remove(0);
            println!("\ndeleting {id}");
            store.write(vec![Change::Delete { id, version, unique_id: None }]).unwrap();
        } else if changes {
            let record = private(&label);
            store.write(vec![Change::Update { id, version: 1, record }]).unwrap();
        }
    }
}

fn writer(database: &Path) -> Child {
    Command::new(std::env::current_exe().unwrap())
        .args(["child_that_writes", "--exact", "--nocapture", "--test-threads=1"])
        .env(WRITER, database)
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap()
}

/// What a writer said: ids and labels that must be there. What it was about to delete may be there
/// or not.
fn acknowledged(out: impl Read) -> Vec<(u64, String)> {
    let mut there = Vec::new();
    for line in BufReader::new(out).lines().map_while(Result::ok) {
        let mut words = line.splitn(3, ' ');
        match (words.next(), words.next().and_then(|id| id.parse().ok()), words.next()) {
            (Some("acknowledged"), Some(id), Some(label)) => there.push((id, label.to_owned())),
            (Some("deleting"), Some(id), _) => there.retain(|(other, _)| *other != id),
            _ => {}
        }
    }
    there
}

fn check(store: &SqliteStore, there: &[(u64, String)]) {
    for (id, label) in there {
        assert_eq!(find(store, label), [*id]);
        let row = store.read(*id).unwrap().unwrap();
        let secret = store.secrets(*id, row.version).unwrap();
        assert_eq!(secret.expose(), format!("secret of {label}").as_bytes());
    }
}

#[test]
fn writers_that_are_killed_lose_nothing_that_was_acknowledged() {
    let kills = std::env::var("METASLOT_TEST_KILLS").map_or(30, |kills| kills.parse().unwrap());
    let place = Sandbox::new();
    let mut store = place.user();
    let mut there = Vec::new();
    for round in 0_u64.. {
        if round >= kills / 2 && !there.is_empty() {
            break;
        }
        let mut children = [writer(&place.database()), writer(&place.database())];
        // Spread over start, login, first and later writes.
        let slow = if round < kills / 2 { 0 } else { 2_000 };
        let pause = 5 + round.wrapping_mul(0x9e37_79b9) % 120 + slow;
        std::thread::sleep(Duration::from_millis(pause));
        for child in &mut children {
            child.kill().unwrap();
            child.wait().unwrap();
            there.extend(acknowledged(child.stdout.take().unwrap()));
        }
        if round % 4 == 0 {
            store = place.store();
            // A kill between the count and the clearing of an attempt leaves the count.
            place.raw().execute("UPDATE token SET user_failures = 0", ()).unwrap();
            store.login(Role::User, USER).unwrap();
        }
        let report = store.verify().unwrap();
        assert!(report.is_sound(), "after {round} rounds: {report:?}");
        place.raw().execute("UPDATE token SET user_failures = 0", ()).unwrap();
    }
    check(&store, &there);
    assert!(!there.is_empty());
    insert(&store, private("life goes on"));
    assert_eq!(store.generation().unwrap() & 1, 0);
}

/// Set for a child that locks the file at this path and never gives it up.
const HOLDER: &str = "METASLOT_TEST_HOLDER";

/// In a child: holds a lock until it is killed. In the test run itself: nothing.
#[test]
fn child_that_holds_a_lock() {
    let Some(path) = std::env::var_os(HOLDER) else { return };
    let file = std::fs::File::options().write(true).open(path).unwrap();
    fcntl_lock(&file, FlockOperation::LockExclusive).unwrap();
    println!("\nheld");
    std::io::stdin().read_line(&mut String::new()).unwrap();
}

#[test]
fn a_lock_that_another_process_never_gives_up_is_an_error_that_names_it() {
    let refused = |suffix: &str| {
        let place = Sandbox::new();
        let store = place.token();
        let file = place.path().join(format!("token.db.{suffix}"));
        let mut holder = Command::new(std::env::current_exe().unwrap())
            .args(["child_that_holds_a_lock", "--exact", "--nocapture", "--test-threads=1"])
            .env(HOLDER, &file)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let said = BufReader::new(holder.stdout.take().unwrap()).lines();
        assert!(said.map_while(Result::ok).any(|line| line == "held"));
        assert_eq!(store.login(Role::User, USER).unwrap_err(), Error::DEVICE_ERROR);
        let text = store.last_error().unwrap();
        let reason = format!("cannot lock: process {} has held it for", holder.id());
        assert!(text.contains(&reason) && text.contains(file.to_str().unwrap()), "{text}");
        holder.kill().unwrap();
        holder.wait().unwrap();
        store.login(Role::User, USER).unwrap();
    };
    std::thread::scope(|scope| {
        scope.spawn(|| refused("login"));
        scope.spawn(|| refused("lock"));
    });
}

#[test]
fn two_processes_write_at_once_and_see_each_other() {
    let place = Sandbox::new();
    let store = place.user();
    let mut children: Vec<Child> = (0..2)
        .map(|_| {
            Command::new(std::env::current_exe().unwrap())
                .args(["child_that_writes", "--exact", "--nocapture", "--test-threads=1"])
                .env(WRITER, place.database())
                .env("METASLOT_TEST_WRITES", "50")
                .stdout(Stdio::piped())
                .spawn()
                .unwrap()
        })
        .collect();
    let mine: Vec<u64> = (0..50).map(|at| insert(&store, private(&format!("own {at}")))).collect();
    for child in &mut children {
        let there = acknowledged(child.stdout.take().unwrap());
        assert!(child.wait().unwrap().success());
        assert!(there.len() > 30);
        check(&store, &there);
    }
    assert!(mine.windows(2).all(|pair| pair[0] < pair[1]));
    assert!(store.verify().unwrap().is_sound());
}

#[test]
fn the_generation_moves_with_every_commit_and_with_no_login() {
    let place = Sandbox::new();
    let (one, two) = (place.user(), place.store());
    assert!(find(&two, "nothing").is_empty());
    let before = two.generation().unwrap();
    assert_eq!(before & 1, 0);
    assert_eq!(one.generation(), Some(before));
    two.login(Role::User, USER).unwrap();
    assert_eq!(two.generation(), Some(before), "a login changes no object");
    insert(&one, public("news"));
    assert!(two.generation() > Some(before));
    assert!(one.write(vec![Change::Delete { id: 99, version: 1, unique_id: None }]).is_err());
    assert_eq!(two.generation().unwrap() & 1, 0);
}

#[test]
fn a_generation_left_odd_by_a_dead_writer_is_repaired() {
    let place = Sandbox::new();
    let store = place.user();
    let before = store.generation().unwrap();
    drop(store);
    let page = place.path().join("token.db.gen");
    let mut bytes = std::fs::read(&page).unwrap();
    bytes[..8].copy_from_slice(&(before | 1).to_le_bytes());
    std::fs::write(&page, &bytes).unwrap();
    let store = place.store();
    assert!(find(&store, "nothing").is_empty());
    assert!(store.generation() > Some(before));
}

#[test]
fn eight_threads_share_commits() {
    let place = Sandbox::new();
    let store = place.user();
    let before = store.statistics();
    let ids: Vec<u64> = std::thread::scope(|scope| {
        let store = &store;
        let threads: Vec<_> = (0..8)
            .map(|thread| {
                scope.spawn(move || {
                    let one = |at| insert(store, private(&format!("{thread} {at}")));
                    (0..40).map(one).collect::<Vec<u64>>()
                })
            })
            .collect();
        threads.into_iter().flat_map(|thread| thread.join().unwrap()).collect()
    });
    let after = store.statistics();
    assert_eq!(after.writes - before.writes, 320);
    assert!(after.commits - before.commits < 320, "{after:?}");
    let mut sorted = ids;
    sorted.sort_unstable();
    sorted.dedup();
    assert_eq!(sorted.len(), 320);
    for thread in 0..8 {
        for at in [0, 39] {
            assert_eq!(find(&store, &format!("{thread} {at}")).len(), 1);
        }
    }
    assert!(store.verify().unwrap().is_sound());
}

#[test]
fn one_failing_change_harms_no_other_in_its_commit() {
    let place = Sandbox::new();
    let store = place.user();
    std::thread::scope(|scope| {
        for thread in 0..8 {
            let store = &store;
            scope.spawn(move || {
                for at in 0..20 {
                    if thread % 2 == 0 {
                        insert(store, private(&format!("{thread} {at}")));
                    } else {
                        let changes = vec![
                            Change::Insert(private("never")),
                            Change::Delete { id: 1 << 40, version: 1, unique_id: None },
                        ];
                        assert!(store.write(changes).is_err());
                    }
                }
            });
        }
    });
    assert!(find(&store, "never").is_empty());
    assert_eq!(store.search(&[], Scope::Private, 0, 1000).unwrap().len(), 80);
    assert!(store.verify().unwrap().is_sound());
}

/// The descriptors of this process on files of this place.
fn descriptors(place: &Sandbox) -> Vec<String> {
    std::fs::read_dir("/proc/self/fd")
        .unwrap()
        .filter_map(|entry| std::fs::read_link(entry.ok()?.path()).ok())
        .filter(|path| path.starts_with(place.path()))
        .map(|path| path.extension().unwrap().to_str().unwrap().to_owned())
        .filter(|name| name.starts_with("db"))
        .collect()
}

/// But the index of its log, which no lock of the process is on.
#[test]
fn nothing_of_the_database_is_open_during_a_fork() {
    let place = Sandbox::new();
    let store = place.user();
    let id = insert(&store, private("kept"));
    assert!(!descriptors(&place).is_empty());
    fork::before();
    assert_eq!(descriptors(&place), ["db-shm"]);
    // A call in another thread waits until the fork is over.
    let over = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let waiting = scope.spawn(|| {
            let row = store.read(id).unwrap().unwrap();
            assert!(over.load(Ordering::SeqCst), "it read during the fork");
            row
        });
        std::thread::sleep(Duration::from_millis(50));
        over.store(true, Ordering::SeqCst);
        fork::after();
        assert_eq!(waiting.join().unwrap().attributes, b"attributes of kept");
    });
    insert(&store, private("after"));
}

#[test]
fn the_index_of_the_log_is_not_made_anew_after_a_fork() {
    let place = Sandbox::new();
    let store = place.user();
    insert(&store, private("kept"));
    assert_eq!(find(&store, "kept").len(), 1);
    let index = place.path().read_dir().unwrap().filter_map(|entry| Some(entry.ok()?.path()));
    let index = index.filter(|path| path.extension().is_some_and(|name| name == "db-shm"));
    let index: Vec<_> = index.collect();
    let made = || std::fs::metadata(&index[0]).unwrap().modified().unwrap();
    let before = made();
    std::thread::sleep(Duration::from_millis(50));
    fork::before();
    fork::after();
    assert_eq!(find(&store, "kept").len(), 1);
    assert_eq!(made(), before);
}

/// Set for a child whose log's index is replaced while the store is closed.
const REPLACED: &str = "METASLOT_TEST_REPLACED";

/// In a child, which has no other store. In the test run itself: nothing.
#[test]
fn child_whose_index_is_replaced() {
    let Some(path) = std::env::var_os(REPLACED).map(PathBuf::from) else { return };
    let store = SqliteStore::new(metaslot_keystore::Config::new(&path));
    let (index, copy) = (path.with_extension("db-shm"), path.with_extension("copy"));
    for _ in 0..3 {
        find(&store, "kept");
        fork::before();
        std::fs::copy(&index, &copy).unwrap();
        std::fs::rename(&copy, &index).unwrap();
        fork::after();
    }
    find(&store, "kept");
    fork::before();
    let kept = std::fs::read_dir("/proc/self/fd").unwrap().flatten().filter(|entry| {
        let target = std::fs::read_link(entry.path());
        target.is_ok_and(|target| target.to_string_lossy().contains(".db-shm"))
    });
    let kept: Vec<_> =
        kept.map(|entry| Path::new("/proc/self/fdinfo").join(entry.file_name())).collect();
    assert_eq!(kept.len(), 1);
    let info = std::fs::read_to_string(&kept[0]).unwrap();
    let flags = info.lines().find_map(|line| line.strip_prefix("flags:")).unwrap();
    assert!(flags.trim().ends_with('0'), "a child cannot write by it: {info}");
}

#[test]
fn of_the_indexes_of_a_log_one_is_kept_and_is_not_written_by_that() {
    let place = Sandbox::new();
    insert(&place.user(), private("kept"));
    let mut child = Command::new(std::env::current_exe().unwrap());
    child.args(["child_whose_index_is_replaced", "--exact"]).env(REPLACED, place.database());
    assert!(child.status().unwrap().success());
}

#[test]
fn one_descriptor_per_lock_file_serves_every_store_of_a_process() {
    let place = Sandbox::new();
    let (one, two) = (place.user(), place.store());
    two.login(Role::User, USER).unwrap();
    insert(&one, private("one"));
    insert(&two, private("two"));
    let locks = || {
        std::fs::read_dir("/proc/self/fd")
            .unwrap()
            .filter_map(|entry| std::fs::read_link(entry.ok()?.path()).ok())
            .filter(|path| path.starts_with(place.path()))
            .filter(|path| path.extension().is_some_and(|name| name == "lock" || name == "login"))
            .count()
    };
    assert_eq!(locks(), 2);
    drop(one);
    assert_eq!(locks(), 2);
    drop(two);
    assert_eq!(locks(), 0);
}

#[test]
fn a_thread_that_waits_to_write_does_not_hold_up_readers() {
    let place = Sandbox::new();
    let store = place.user();
    let id = insert(&store, private("read me"));
    // Another connection has the writer's place inside SQLite, as a foreign program might.
    let raw = place.raw();
    raw.execute_batch("BEGIN IMMEDIATE").unwrap();
    let written = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            insert(&store, private("waiting"));
            written.store(true, Ordering::SeqCst);
        });
        std::thread::sleep(Duration::from_millis(100));
        assert_eq!(store.read(id).unwrap().unwrap().attributes, b"attributes of read me");
        assert_eq!(find(&store, "read me"), [id]);
        assert!(find(&store, "waiting").is_empty());
        assert!(!written.load(Ordering::SeqCst));
        raw.execute_batch("ROLLBACK").unwrap();
    });
    assert_eq!(find(&store, "waiting").len(), 1);
}

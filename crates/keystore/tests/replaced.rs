// SPDX-License-Identifier: Apache-2.0
//! A store whose files are replaced, or taken away, while processes have it open.
#![expect(clippy::unwrap_used, reason = "a test fails where it cannot go on")]

mod common;

use common::{Sandbox, USER, find, insert, private};
use metaslot_ck::Error;
use metaslot_keystore::{Config, SqliteStore, fork};
use metaslot_spi::store::{Change, Role, Store};
use rusqlite::Connection;
use rusqlite::config::DbConfig;
use std::fs;
use std::io::{BufRead, BufReader, Read};
use std::os::unix::fs::symlink;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::Duration;

fn file(place: &Sandbox, suffix: &str) -> PathBuf {
    place.path().join(format!("token.db{suffix}"))
}

/// A connection beside the store's that leaves the log when it is closed.
fn raw(place: &Sandbox) -> Connection {
    let raw = place.raw();
    raw.set_db_config(DbConfig::SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, true).unwrap();
    raw
}

/// Everything is in the database itself.
fn empty_log(place: &Sandbox) {
    raw(place).query_row("PRAGMA wal_checkpoint(TRUNCATE)", (), |_| Ok(())).unwrap();
}

/// What a process that comes later finds.
fn later(place: &Sandbox, label: &str) -> usize {
    let store = place.store();
    store.login(Role::User, USER).unwrap();
    assert!(store.verify().unwrap().is_sound());
    find(&store, label).len()
}

/// Set for a child that adds an object to the token at this path.
const OTHER: &str = "METASLOT_TEST_OTHER";

/// In a child: adds an object. In the test run itself: nothing.
#[test]
fn child_that_adds() {
    let Some(path) = std::env::var_os(OTHER) else { return };
    let store = SqliteStore::new(Config::new(path));
    find(&store, "");
    println!("\nopen");
    std::io::stdin().read_to_end(&mut Vec::new()).unwrap();
    store.login(Role::User, USER).unwrap();
    insert(&store, private("of another"));
}

fn another_process_adds(place: &Sandbox) {
    assert!(another_process(place).wait().unwrap().success());
}

/// Another process that has the token open, and adds an object when its input ends.
fn another_process(place: &Sandbox) -> Child {
    let mut child = Command::new(std::env::current_exe().unwrap());
    child.args(["child_that_adds", "--exact", "--nocapture"]).env(OTHER, place.database());
    let mut child = child.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    let mut out = BufReader::new(child.stdout.take().unwrap());
    out.by_ref().lines().map(Result::unwrap).find(|line| line == "open").unwrap();
    child.stdout = Some(out.into_inner());
    child
}

#[test]
fn what_is_acknowledged_is_in_the_file_that_has_the_name() {
    let place = Sandbox::new();
    let store = place.user();
    insert(&store, private("before"));
    empty_log(&place);
    for name in [place.database(), file(&place, "-wal"), file(&place, "-shm")] {
        let copy = file(&place, ".copy");
        fs::copy(&name, &copy).unwrap();
        fs::rename(&copy, name).unwrap();
    }
    insert(&store, private("after"));
    drop(store);
    assert_eq!((later(&place, "before"), later(&place, "after")), (1, 1));
}

#[test]
fn what_is_acknowledged_is_not_in_a_log_that_was_taken_away() {
    let place = Sandbox::new();
    let store = place.user();
    empty_log(&place);
    fs::remove_file(file(&place, "-wal")).unwrap();
    insert(&store, private("after"));
    drop(store);
    assert_eq!(later(&place, "after"), 1);
}

/// As processes are after a fork, until they use it again: they keep the log's index in use.
#[test]
fn an_index_that_is_kept_in_use_is_not_that_of_another_log() {
    let cut = |name: &PathBuf| fs::write(name, "").unwrap();
    let gone = |name: &PathBuf| fs::remove_file(name).unwrap();
    for (what, harm) in [("cut", &cut as &dyn Fn(&PathBuf)), ("gone", &gone)] {
        let place = Sandbox::new();
        let store = place.user();
        empty_log(&place);
        insert(&store, private("in the log"));
        fork::before();
        harm(&file(&place, "-wal"));
        fork::after();
        assert_eq!(find(&store, "in the log").len(), 0, "{what}");
        insert(&store, private("after"));
        drop(store);
        assert_eq!(later(&place, "after"), 1, "{what}");
    }
}

#[test]
fn writers_share_the_index_of_the_log_after_it_was_taken_away() {
    let place = Sandbox::new();
    let store = place.user();
    insert(&store, private("before"));
    fs::remove_file(file(&place, "-shm")).unwrap();
    another_process_adds(&place);
    assert_eq!(find(&store, "of another").len(), 1, "a reader follows too");
    insert(&store, private("after"));
    drop(store);
    for label in ["before", "of another", "after"] {
        assert_eq!(later(&place, label), 1, "{label}");
    }
}

#[test]
fn what_changes_in_a_directory_that_was_long_the_same_is_noticed() {
    let beside = ["", "-wal", "-shm", ".lock", ".gen"];
    let places = beside.map(|suffix| {
        let place = Sandbox::new();
        let store = place.user();
        (place, store, suffix)
    });
    // From now on a look at the directory is enough.
    thread::sleep(Duration::from_secs(4));
    for (place, store, suffix) in places {
        insert(&store, private("before"));
        insert(&store, private("before, too"));
        empty_log(&place);
        let (name, copy) = (file(&place, suffix), file(&place, ".copy"));
        fs::copy(&name, &copy).unwrap();
        fs::rename(&copy, &name).unwrap();
        another_process_adds(&place);
        insert(&store, private("after"));
        assert_eq!(find(&store, "of another").len(), 1, "{suffix}");
        fs::remove_file(file(&place, "-shm")).unwrap();
        insert(&store, private("last"));
        drop(store);
        for label in ["before", "of another", "after", "last"] {
            assert_eq!(later(&place, label), 1, "{suffix}: {label}");
        }
    }
}

#[test]
fn what_is_acknowledged_is_not_in_files_that_went_away_while_it_was_written() {
    let place = Sandbox::new();
    let store = place.user();
    insert(&store, private("before"));
    let raw = raw(&place);
    raw.execute_batch("BEGIN IMMEDIATE").unwrap();
    let (written, mut other) = thread::scope(|scope| {
        let meanwhile = vec![Change::Insert(private("meanwhile"))];
        let written = scope.spawn(|| store.write(meanwhile));
        // It has looked at its files, and waits for the other connection, as far as that can be had.
        thread::sleep(Duration::from_millis(200));
        fs::remove_file(file(&place, "-shm")).unwrap();
        let other = another_process(&place);
        raw.execute_batch("ROLLBACK").unwrap();
        (written.join().unwrap(), other)
    });
    assert!(other.wait().unwrap().success());
    drop((raw, store));
    assert_eq!(later(&place, "of another"), 1);
    assert!(written.is_err() || later(&place, "meanwhile") == 1, "{written:?}");
}

#[test]
fn a_generation_that_is_replaced_during_a_change_tells_of_it() {
    let place = Sandbox::new();
    let store = place.user();
    // From now on a look at the directory is enough.
    thread::sleep(Duration::from_secs(4));
    let id = insert(&store, private("before"));
    let raw = raw(&place);
    raw.execute_batch("BEGIN IMMEDIATE").unwrap();
    let (written, other, seen) = thread::scope(|scope| {
        let written = scope.spawn(|| store.write(vec![Change::Insert(private("meanwhile"))]));
        // It waits for the other connection, as far as that can be had.
        thread::sleep(Duration::from_millis(200));
        fs::remove_file(file(&place, ".gen")).unwrap();
        let other = place.store();
        assert!(other.read(id).unwrap().is_none(), "it has no login");
        let seen = other.generation();
        raw.execute_batch("ROLLBACK").unwrap();
        (written.join().unwrap(), other, seen)
    });
    assert!(written.is_err() || other.generation() != seen, "{seen:?}");
}

#[test]
fn a_store_that_is_open_twice_in_a_process_has_no_index_of_its_own() {
    let place = Sandbox::new();
    let (one, other) = (place.user(), place.store());
    fs::remove_file(file(&place, "-shm")).unwrap();
    another_process_adds(&place);
    // What SQLite has open for the first store, it takes for the second one.
    other.login(Role::User, USER).unwrap();
    insert(&other, private("after"));
    drop((one, other));
    assert_eq!((later(&place, "of another"), later(&place, "after")), (1, 1));
}

#[test]
fn a_generation_that_is_replaced_tells_of_every_change_again() {
    let place = Sandbox::new();
    let (one, mut other) = (place.user(), place.store());
    let mut seen = vec![one.generation()];
    for round in 0..8 {
        insert(&one, private("before"));
        seen.push(one.generation());
        fs::remove_file(file(&place, ".gen")).unwrap();
        if round % 2 == 0 {
            // A process that comes later makes it anew, and every login looks which file it is.
            other = place.store();
            other.login(Role::User, USER).unwrap();
            one.token().unwrap();
        } else {
            insert(&one, private("anew"));
            other.token().unwrap();
        }
        for (writer, reader) in [(&one, &other), (&other, &one)] {
            let before = reader.generation();
            insert(writer, private("after"));
            let after = reader.generation();
            assert!(after.is_none() || after != before, "{round}: {before:?}");
        }
        assert!(one.generation().is_none() || !seen.contains(&one.generation()), "{round}");
    }
    assert!(other.verify().unwrap().is_sound());
}

#[test]
fn a_lock_file_that_was_taken_away_is_made_anew() {
    let place = Sandbox::new();
    let store = place.user();
    for suffix in [".lock", ".login"] {
        let path = file(&place, suffix);
        fs::remove_file(&path).unwrap();
        insert(&store, private("writers"));
        store.logout();
        store.login(Role::User, USER).unwrap();
        assert!(path.is_file(), "writers and logins come one at a time again");
        fs::remove_file(&path).unwrap();
        fs::create_dir(&path).unwrap();
        let refused = store.login(Role::User, USER).unwrap_err();
        assert_eq!(refused, Error::DEVICE_ERROR);
        fs::remove_dir(&path).unwrap();
    }
    store.login(Role::User, USER).unwrap();
}

#[test]
fn a_directory_whose_link_leads_elsewhere_is_followed() {
    let (place, next) = (Sandbox::new(), Sandbox::new());
    drop(place.user());
    drop(next.user());
    let link = place.path().with_extension("link");
    let point = |to: &Sandbox| {
        fs::remove_file(&link).unwrap_or_default();
        symlink(to.path(), &link).unwrap();
    };
    point(&place);
    let config = Config { path: link.join("token.db"), ..place.config() };
    let store = SqliteStore::new(config);
    store.login(Role::User, USER).unwrap();
    insert(&store, private("here"));
    point(&next);
    let refused = store.write(vec![Change::Insert(private("nowhere"))]).unwrap_err();
    assert_eq!(refused, Error::USER_NOT_LOGGED_IN, "it is another token");
    store.login(Role::User, USER).unwrap();
    insert(&store, private("there"));
    fs::remove_file(&link).unwrap();
    assert_eq!((later(&place, "here"), later(&next, "there")), (1, 1));
}

/// Set for a child that goes into another root directory with the token at this path open.
const ROOT: &str = "METASLOT_TEST_ROOT";

/// In a child: goes on after `chroot`. In the test run itself: nothing.
#[test]
fn child_that_changes_its_root() {
    let Some(path) = std::env::var_os(ROOT) else { return };
    let path = PathBuf::from(path);
    let store = SqliteStore::new(Config::new(&path));
    store.login(Role::User, USER).unwrap();
    let id = insert(&store, private("before"));
    assert!(store.read(id).unwrap().is_some());
    rustix::process::chroot(path.parent().unwrap()).unwrap();
    insert(&store, private("after"));
    assert_eq!((find(&store, "before").len(), find(&store, "after").len()), (1, 1));
}

#[test]
fn a_store_stays_open_where_its_names_lead_nowhere_any_more() {
    if !rustix::process::geteuid().is_root() {
        return metaslot_testkit::not_run("keystore", "chroot", "only root can do that");
    }
    let place = Sandbox::new();
    drop(place.token());
    let mut child = Command::new(std::env::current_exe().unwrap());
    child.args(["child_that_changes_its_root", "--exact"]).env(ROOT, place.database());
    assert!(child.status().unwrap().success());
    assert_eq!((later(&place, "before"), later(&place, "after")), (1, 1));
}

// SPDX-License-Identifier: Apache-2.0
//! What a token is called, and its end.
#![expect(clippy::unwrap_used, reason = "a test fails where it cannot go on")]

mod common;

use common::{SO, Sandbox, USER, find, insert, private};
use metaslot_ck::Error;
use metaslot_keystore::{Config, SqliteStore, fork};
use metaslot_spi::store::{Examination, Role, Store};
use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Child, Command, Stdio};

fn does(store: &SqliteStore, pin: &[u8], what: Examination<'_>) -> Result<(), Error> {
    let role = if pin == SO { Role::So } else { Role::User };
    store.examine(role, pin, what, &mut |_| true).map(drop)
}

#[test]
fn a_renamed_token_is_the_same_token_for_everybody() {
    let place = Sandbox::new();
    let (store, other) = (place.user(), place.store());
    let id = insert(&store, private("key"));
    other.login(Role::User, USER).unwrap();
    for (pin, label) in [(USER, "by the user"), (SO, "by the officer")] {
        does(&other, pin, Examination::Rename(label)).unwrap();
        assert_eq!(store.token().unwrap().label, label);
    }
    assert!(store.keeps_login() && other.keeps_login());
    assert_eq!(find(&store, "key"), [id]);
    insert(&store, private("another"));
    assert!(store.verify().unwrap().is_sound());
    let anew = place.store();
    anew.login(Role::User, USER).unwrap();
    assert_eq!(find(&anew, "another").len(), 1);
}

#[test]
fn a_wrong_pin_renames_and_removes_nothing() {
    let place = Sandbox::new();
    let store = place.token();
    for what in [Examination::Rename("other"), Examination::Remove("test token")] {
        assert_eq!(does(&store, b"not the pin", what), Err(Error::PIN_INCORRECT));
    }
    assert_eq!(
        does(&store, SO, Examination::Remove("another")),
        Err(Error::DEVICE_ERROR),
        "the label is another one"
    );
    // A right PIN of the user's is not the officer's.
    assert_eq!(
        does(&store, USER, Examination::Remove("test token")),
        Err(Error::USER_NOT_LOGGED_IN)
    );
    let token = store.token().unwrap();
    assert_eq!((&*token.label, token.initialized), ("test token", true));
    assert_eq!((token.user.failures, token.so.failures), (0, 0));
}

#[test]
fn an_anchor_follows_a_new_name() {
    let place = Sandbox::new();
    let anchor = place.path().with_extension("anchor");
    fs::write(&anchor, "").unwrap();
    let config = || Config { anchor: Some(anchor.clone()), ..place.config() };
    let store = SqliteStore::new(config());
    common::initialize(&store);
    store.login(Role::User, USER).unwrap();
    let before = fs::read(&anchor).unwrap();
    does(&store, USER, Examination::Rename("other")).unwrap();
    assert_ne!(fs::read(&anchor).unwrap(), before);
    SqliteStore::new(config()).login(Role::User, USER).unwrap();
    fs::remove_file(&anchor).unwrap();
}

#[test]
fn an_anchor_of_a_token_in_which_nothing_ever_was_is_free_again() {
    let place = Sandbox::new();
    let anchor = place.path().with_extension("anchor");
    fs::write(&anchor, "").unwrap();
    let config = Config { anchor: Some(anchor.clone()), ..place.config() };
    let store = SqliteStore::new(config);
    store.initialize(SO, "test token").unwrap();
    assert_ne!(fs::read(&anchor).unwrap(), b"");
    does(&store, SO, Examination::Remove("test token")).unwrap();
    assert_eq!(fs::read(&anchor).unwrap(), b"");
    common::initialize(&store);
    does(&store, SO, Examination::Remove("test token")).unwrap();
    assert_eq!(fs::read(&anchor).unwrap(), b"");
    // Of another older copies are refused still.
    common::initialize(&store);
    store.login(Role::User, USER).unwrap();
    insert(&store, private("key"));
    does(&store, SO, Examination::Remove("test token")).unwrap();
    assert_ne!(fs::read(&anchor).unwrap(), b"");
    assert_eq!(store.initialize(SO, "test token"), Err(Error::DEVICE_ERROR));
    let told = store.last_error().unwrap();
    assert!(told.contains("another token's: that of a new one begins as an empty file"), "{told}");
    fs::remove_file(&anchor).unwrap();
}

#[test]
fn nothing_is_left_of_a_token_that_was_removed() {
    let place = Sandbox::new();
    let (store, other) = (place.user(), place.store());
    insert(&store, private("key"));
    other.login(Role::User, USER).unwrap();
    assert_eq!(find(&other, "key").len(), 1);
    does(&store, SO, Examination::Remove("test token")).unwrap();
    assert_eq!(fs::read_dir(place.path()).unwrap().count(), 0);
    for store in [&store, &other] {
        assert!(!store.token().unwrap().initialized);
        assert!(!store.keeps_login());
        assert!(find(store, "key").is_empty());
    }
    common::initialize(&store);
    assert_eq!(other.token().unwrap().label, "test token");
}

#[test]
fn the_log_of_a_token_that_was_removed_is_empty_before() {
    let place = Sandbox::new();
    let store = place.user();
    insert(&store, private("key"));
    let log = fs::File::open(place.database().with_extension("db-wal")).unwrap();
    assert!(log.metadata().unwrap().len() > 0);
    does(&store, SO, Examination::Remove("test token")).unwrap();
    // A kill after the first file leaves nothing that could be read.
    assert_eq!(log.metadata().unwrap().len(), 0);
}

#[test]
fn what_is_left_of_a_removal_that_was_killed_is_in_no_tokens_way() {
    let place = Sandbox::new();
    let store = place.user();
    insert(&store, private("key"));
    drop(store);
    fs::remove_file(place.database()).unwrap();
    let store = place.store();
    assert!(!store.token().unwrap().initialized);
    common::initialize(&store);
    store.login(Role::User, USER).unwrap();
    assert!(find(&store, "key").is_empty() && store.verify().unwrap().is_sound());
}

/// Set for a child that keeps the token at this path open until its input ends.
const KEEPER: &str = "METASLOT_TEST_KEEPER";

/// In a child: opens the token. In the test run itself: nothing.
#[test]
fn child_that_has_it_open() {
    let Some(path) = std::env::var_os(KEEPER) else { return };
    let store = SqliteStore::new(Config::new(path));
    assert!(store.token().unwrap().initialized);
    println!("\nopen");
    std::io::stdin().read_line(&mut String::new()).unwrap();
}

/// In a child: logs in, and has nothing open since, as after a fork.
#[test]
fn child_that_has_it_closed() {
    let Some(path) = std::env::var_os(KEEPER) else { return };
    let store = SqliteStore::new(Config::new(path));
    store.login(Role::User, USER).unwrap();
    let key = find(&store, "key")[0];
    store.secrets(key, 1).unwrap();
    assert!(store.keeps_login());
    fork::before();
    fork::after();
    println!("\nopen");
    std::io::stdin().read_line(&mut String::new()).unwrap();
    assert!(!store.keeps_login());
    store.secrets(key, 1).unwrap_err();
}

fn keeper(child: &str, database: &Path) -> Child {
    Command::new(std::env::current_exe().unwrap())
        .args([child, "--exact", "--nocapture", "--test-threads=1"])
        .env(KEEPER, database)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap()
}

/// What the child prints from then on.
fn wait_until_open(child: &mut Child) -> impl Sized + use<> {
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines().map_while(Result::ok);
    assert!(lines.any(|line| line == "open"));
    lines
}

#[test]
fn who_had_a_token_closed_as_it_was_removed_has_lost_it() {
    let place = Sandbox::new();
    let store = place.user();
    insert(&store, private("key"));
    let mut child = keeper("child_that_has_it_closed", &place.database());
    let _printed = wait_until_open(&mut child);
    does(&store, SO, Examination::Remove("test token")).unwrap();
    child.stdin.take().unwrap().write_all(b"\n").unwrap();
    assert!(child.wait().unwrap().success());
}

#[test]
fn a_token_that_another_process_has_open_is_not_removed() {
    let place = Sandbox::new();
    let store = place.user();
    insert(&store, private("key"));
    let mut child = keeper("child_that_has_it_open", &place.database());
    let _printed = wait_until_open(&mut child);
    assert_eq!(does(&store, SO, Examination::Remove("test token")), Err(Error::DEVICE_ERROR));
    let why = store.last_error().unwrap();
    assert!(why.ends_with(&format!("process {} has it open", child.id())), "{why}");
    // Nothing has happened to it.
    store.login(Role::User, USER).unwrap();
    assert_eq!(find(&store, "key").len(), 1);
    child.stdin.take().unwrap().write_all(b"\n").unwrap();
    child.wait().unwrap();
    does(&store, SO, Examination::Remove("test token")).unwrap();
    assert!(!place.database().exists());
}

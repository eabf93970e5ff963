// SPDX-License-Identifier: Apache-2.0
//! PINs: counted, delayed, locked, changed.
#![expect(clippy::unwrap_used, reason = "a test fails where it cannot go on")]

mod common;

use common::{CHEAP, SO, Sandbox, USER, find, insert, private};
use metaslot_ck::Error;
use metaslot_keystore::{Config, Cost, Kdf, SqliteStore};
use metaslot_spi::store::{Examination, Identities, Name, NewPin, Role, Scope, Store};
use std::time::{SystemTime, UNIX_EPOCH};

/// Lets the time pass that a PIN has to wait for.
fn wait(place: &Sandbox) {
    place.raw().execute("UPDATE token SET user_failed_at = 0, so_failed_at = 0", ()).unwrap();
}

#[test]
fn a_wrong_pin_is_counted_and_a_right_one_clears_the_counter() {
    let place = Sandbox::new();
    let store = place.token();
    assert_eq!(store.login(Role::User, b"wrong").unwrap_err(), Error::PIN_INCORRECT);
    assert_eq!(store.last_error().unwrap(), "wrong PIN, 9 attempts left");
    assert_eq!(place.store().token().unwrap().user.failures, 1);
    assert_eq!(store.token().unwrap().so.failures, 0);
    store.login(Role::User, USER).unwrap();
    assert_eq!(store.token().unwrap().user.left, 10);
}

#[test]
fn after_three_failures_an_attempt_is_refused_until_its_time() {
    let place = Sandbox::new();
    let store = place.token();
    for _ in 0..3 {
        assert_eq!(store.login(Role::User, b"wrong").unwrap_err(), Error::PIN_INCORRECT);
    }
    assert_eq!(store.token().unwrap().user.failures, 3);
    // The third one costs a second; the ninth costs 64, which no slow machine misses.
    place.raw().execute("UPDATE token SET user_failures = 9", ()).unwrap();
    let retry_at = store.token().unwrap().user.retry_at;
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_secs();
    assert!((now + 1..=now + 64).contains(&retry_at), "{retry_at} {now}");
    // Even the right PIN, and the refusal does not count.
    assert_eq!(store.login(Role::User, USER).unwrap_err(), Error::PIN_LOCKED);
    assert!(store.last_error().unwrap().contains("no PIN is taken before second"));
    assert_eq!(store.token().unwrap().user.failures, 9);
    wait(&place);
    store.login(Role::User, USER).unwrap();
}

#[test]
fn ten_failures_lock_the_pin_and_the_so_unlocks_it() {
    let place = Sandbox::new();
    let store = place.token();
    for _ in 0..10 {
        assert_eq!(store.login(Role::User, b"wrong").unwrap_err(), Error::PIN_INCORRECT);
        wait(&place);
    }
    assert_eq!(store.login(Role::User, USER).unwrap_err(), Error::PIN_LOCKED);
    assert_eq!(place.store().login(Role::User, USER).unwrap_err(), Error::PIN_LOCKED);
    store.login(Role::So, SO).unwrap();
    store.init_pin(b"another").unwrap();
    store.logout();
    store.login(Role::User, b"another").unwrap();
}

#[test]
fn the_so_pin_locks_too() {
    let place = Sandbox::new();
    let store = place.token();
    for _ in 0..10 {
        assert_eq!(store.initialize(b"wrong", "stolen").unwrap_err(), Error::PIN_INCORRECT);
        wait(&place);
    }
    assert_eq!(store.initialize(SO, "own").unwrap_err(), Error::PIN_LOCKED);
    assert_eq!(store.token().unwrap().label, "test token");
}

#[test]
fn a_new_pin_opens_what_the_old_one_sealed() {
    let place = Sandbox::new();
    let store = place.user();
    let id = insert(&store, private("kept"));
    store.logout();
    assert_eq!(store.set_pin(Role::User, b"wrong", b"new").unwrap_err(), Error::PIN_INCORRECT);
    assert_eq!(store.token().unwrap().user.failures, 1);
    store.set_pin(Role::User, USER, b"new").unwrap();
    assert_eq!(store.token().unwrap().user.failures, 0);
    assert_eq!(store.login(Role::User, USER).unwrap_err(), Error::PIN_INCORRECT);
    store.login(Role::User, b"new").unwrap();
    assert_eq!(store.secrets(id, 1).unwrap().expose(), b"secret of kept");
}

#[test]
fn only_the_so_sets_the_users_first_pin() {
    let place = Sandbox::new();
    let store = place.store();
    store.initialize(SO, "bare").unwrap();
    assert!(!store.token().unwrap().user_pin_set);
    assert_eq!(store.login(Role::User, USER).unwrap_err(), Error::USER_PIN_NOT_INITIALIZED);
    assert_eq!(store.init_pin(USER).unwrap_err(), Error::USER_NOT_LOGGED_IN);
    store.login(Role::So, SO).unwrap();
    store.init_pin(USER).unwrap();
    assert!(store.token().unwrap().user_pin_set);
}

#[test]
fn initialising_again_empties_the_token_and_voids_other_logins() {
    let place = Sandbox::new();
    let store = place.user();
    insert(&store, private("old"));
    let serial = store.token().unwrap().serial;
    assert!(store.keeps_login());
    let other = place.store();
    other.login(Role::User, USER).unwrap();
    insert(&other, private("of another"));
    assert!(store.keeps_login() && store.keeps_login());
    other.initialize(SO, "fresh").unwrap();
    assert!(!store.keeps_login() && !other.keeps_login());
    let row = other.token().unwrap();
    assert_eq!((row.label.as_str(), row.serial), ("fresh", serial));
    assert!(!row.user_pin_set);
    assert!(find(&store, "old").is_empty());
    let refused = store.write(vec![metaslot_spi::store::Change::Insert(private("late"))]);
    assert_eq!(refused.unwrap_err(), Error::USER_NOT_LOGGED_IN);
    other.login(Role::So, SO).unwrap();
    assert!(insert(&other, private("new")) > 1, "ids go on");
    // What is there was sealed under a key that the first store does not have.
    let found = other.search(&[], Scope::Private, 0, 10).unwrap();
    assert_eq!(store.read(found[0].id).unwrap_err(), Error::USER_NOT_LOGGED_IN);
}

#[test]
fn attempts_of_many_threads_are_taken_one_at_a_time() {
    let place = Sandbox::new();
    let stores: Vec<SqliteStore> = (0..6).map(|_| place.token_or_store()).collect();
    let codes: Vec<Error> = std::thread::scope(|scope| {
        let all: Vec<_> = stores
            .iter()
            .map(|store| scope.spawn(|| store.login(Role::User, b"wrong").unwrap_err()))
            .collect();
        all.into_iter().map(|thread| thread.join().unwrap()).collect()
    });
    let tried = codes.iter().filter(|code| **code == Error::PIN_INCORRECT).count();
    // Three at once; a machine that stalls for seconds lets the next one through.
    assert!((3..6).contains(&tried), "{codes:?}");
    assert_eq!(stores[0].token().unwrap().user.failures as usize, tried);
}

#[test]
fn every_key_derivation_opens_again() {
    for kdf in [Cost::Argon2id, Cost::Fixed(Kdf::Pbkdf2HmacSha256 { iterations: 1_000 })] {
        let place = Sandbox::new();
        let store = SqliteStore::new(Config { kdf, ..place.config() });
        common::initialize(&store);
        // The parameters are the token's, not the configuration's.
        let other = SqliteStore::new(Config { kdf: CHEAP, ..place.config() });
        other.login(Role::User, USER).unwrap();
    }
}

/// A stored cost that would keep a login busy for a quarter of an hour.
#[test]
fn a_stored_cost_beyond_the_limit_is_refused_before_anything_is_derived() {
    let place = Sandbox::new();
    let store = place.token();
    let mut wrap: Vec<u8> =
        place.raw().query_row("SELECT user_wrap FROM token", (), |row| row.get(0)).unwrap();
    wrap[1..5].copy_from_slice(&(1_u32 << 20).to_le_bytes());
    wrap[5..9].copy_from_slice(&1024_u32.to_le_bytes());
    place.raw().execute("UPDATE token SET user_wrap = ?1", [&wrap]).unwrap();
    assert_eq!(store.login(Role::User, USER).unwrap_err(), Error::TOKEN_NOT_RECOGNIZED);
    let text = store.last_error().unwrap();
    assert!(text.contains("Argon2id with 1048576 KiB, 1024 passes, 1 lanes"), "{text}");
    assert!(text.contains("at most 512 MiB, 4 GiB in all passes"), "{text}");
    assert_eq!(store.token().unwrap().user.failures, 0, "that was no attempt");
    // The officer can set a new one.
    store.login(Role::So, SO).unwrap();
    store.init_pin(USER).unwrap();
    store.logout();
    store.login(Role::User, USER).unwrap();
}

#[test]
fn a_pepper_is_needed_once_it_was_used() {
    use std::os::unix::fs::PermissionsExt;
    let place = Sandbox::new();
    std::fs::create_dir_all(place.path()).unwrap();
    let file = place.path().join("pepper");
    std::fs::write(&file, [7; 32]).unwrap();
    let config = Config { pepper: Some(file.clone()), ..place.config() };
    let store = SqliteStore::new(config.clone());
    assert_eq!(store.initialize(SO, "open").unwrap_err(), Error::TOKEN_NOT_RECOGNIZED);
    std::fs::set_permissions(&file, std::fs::Permissions::from_mode(0o600)).unwrap();
    let store = SqliteStore::new(config);
    common::initialize(&store);
    store.login(Role::User, USER).unwrap();
    let without = place.store();
    assert_eq!(without.login(Role::User, USER).unwrap_err(), Error::TOKEN_NOT_RECOGNIZED);
    assert!(without.last_error().unwrap().contains("pepper"));
    assert_eq!(without.token().unwrap().user.failures, 0, "that was no attempt");
}

#[test]
fn a_pepper_configured_later_serves_from_the_next_pin_on() {
    use std::os::unix::fs::PermissionsExt;
    let place = Sandbox::new();
    drop(place.token());
    let file = place.path().join("pepper");
    std::fs::write(&file, [7; 32]).unwrap();
    std::fs::set_permissions(&file, std::fs::Permissions::from_mode(0o600)).unwrap();
    let store = SqliteStore::new(Config { pepper: Some(file), ..place.config() });
    store.login(Role::User, USER).unwrap();
    store.set_pin(Role::User, USER, b"peppered").unwrap();
    store.login(Role::User, b"peppered").unwrap();
    let refused = place.store().login(Role::User, b"peppered");
    assert_eq!(refused.unwrap_err(), Error::TOKEN_NOT_RECOGNIZED);
}

impl Sandbox {
    /// A store on the one token of this place, made by the first call.
    fn token_or_store(&self) -> SqliteStore {
        if self.database().exists() { self.store() } else { self.token() }
    }
}

#[test]
fn a_right_pin_costs_no_try_where_what_it_is_for_fails() {
    let place = Sandbox::new();
    let anchor = place.path().with_extension("anchor");
    std::fs::write(&anchor, "").unwrap();
    let config = Config { anchor: Some(anchor.clone()), ..place.config() };
    let store = SqliteStore::new(config);
    common::initialize(&store);
    std::fs::remove_file(anchor).unwrap();
    for _ in 0..4 {
        store.set_pin(Role::User, USER, b"another PIN").unwrap_err();
        store.set_pin(Role::So, SO, b"another PIN").unwrap_err();
        store.initialize(SO, "anew").unwrap_err();
        let token = store.token().unwrap();
        assert_eq!((token.so.failures, token.user.failures), (0, 0));
    }
}

#[test]
fn a_clock_that_was_set_back_keeps_nobody_out() {
    let place = Sandbox::new();
    let store = place.token();
    let now = || SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_secs();
    let raw = place.raw();
    let failed = "UPDATE token SET user_failures = 4, user_failed_at = ?1";
    raw.execute(failed, [i64::try_from(now() + 1_000_000).unwrap()]).unwrap();
    assert_eq!(store.login(Role::User, USER), Err(Error::PIN_LOCKED));
    let read = "SELECT user_failures, user_failed_at FROM token";
    let (failures, failed_at) =
        raw.query_row(read, (), |row| Ok((row.get::<_, u32>(0)?, row.get::<_, i64>(1)?))).unwrap();
    assert_eq!(failures, 4);
    assert!(failed_at <= i64::try_from(now()).unwrap(), "its pause passes");
    raw.execute("UPDATE token SET user_failed_at = user_failed_at - 2", ()).unwrap();
    store.login(Role::User, USER).unwrap();
}

/// Who waits until then looks again and again, and tries nothing.
#[test]
fn a_pause_of_a_clock_that_was_set_back_ends_for_who_only_looks() {
    let place = Sandbox::new();
    let store = place.token();
    let web = Name::new(b"web").unwrap();
    let add = Examination::Identities(Identities::Add(web, NewPin(USER)));
    store.examine(Role::So, SO, add, &mut |_| true).unwrap();
    for identity in [None, Some(web)] {
        let (table, column) = match identity {
            None => ("token", "user_failed_at"),
            Some(_) => ("identity", "failed_at"),
        };
        let failures = column.replace("failed_at", "failures");
        let failed = format!("UPDATE {table} SET {failures} = 4, {column} = 1 << 40");
        place.raw().execute(&failed, ()).unwrap();
        assert!(store.retry_at(identity).unwrap() < 1 << 40);
        let passes = format!("UPDATE {table} SET {column} = {column} - 2");
        place.raw().execute(&passes, ()).unwrap();
        assert_eq!(store.retry_at(identity), Ok(0), "its pause passes");
    }
}

/// Set for the child that has too little memory for a guess.
const SHORT: &str = "METASLOT_TEST_SHORT";

#[test]
fn child_with_too_little_memory() {
    let Some(path) = std::env::var_os(SHORT) else { return };
    let error = SqliteStore::new(Config::new(path)).login(Role::User, USER).unwrap_err();
    assert_ne!(error, Error::PIN_INCORRECT);
    println!("not tried");
}

#[test]
fn a_pin_that_was_not_tried_for_want_of_memory_costs_no_try() {
    let place = Sandbox::new();
    let kdf = Cost::Fixed(Kdf::Argon2id { memory_kib: 256 * 1024, passes: 1, lanes: 1 });
    let store = SqliteStore::new(Config { kdf, ..place.config() });
    common::initialize(&store);
    for _ in 0..2 {
        assert_eq!(store.login(Role::User, b"wrong"), Err(Error::PIN_INCORRECT));
    }
    drop(store);
    for _ in 0..3 {
        let output = std::process::Command::new("bash")
            .args(["-c", "ulimit -v 200000; exec \"$0\" \"$@\""])
            .arg(std::env::current_exe().unwrap())
            .args(["child_with_too_little_memory", "--exact", "--nocapture", "--test-threads=1"])
            .env(SHORT, place.database())
            .output()
            .unwrap();
        let said = String::from_utf8_lossy(&output.stdout);
        assert!(said.contains("not tried"), "{said}{}", String::from_utf8_lossy(&output.stderr));
    }
    // Nor does it take others back.
    assert_eq!(place.store().token().unwrap().user.failures, 2);
    place.store().login(Role::User, USER).unwrap();
}

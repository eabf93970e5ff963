// SPDX-License-Identifier: Apache-2.0
//! Identities: each opens the token by a PIN of its own, is locked alone and revoked alone, and only the officer
//! brings one back.
#![expect(clippy::unwrap_used, reason = "a test fails where it cannot go on")]

mod common;

use common::{SO, Sandbox, USER, examine, find, insert, private, public};
use metaslot_ck::{Error, Result};
use metaslot_keystore::{Config, SqliteStore};
use metaslot_spi::store::{
    Examination, Identities, Name, NewPin, PinState, Remark, Role, Scope, Store,
};
use std::io::{BufRead, BufReader};
use std::process::{Command, Stdio};
use std::thread;
use std::time::Duration;

const WEB: &[u8] = b"web-pin-1";
const MAIL: &[u8] = b"mail-pin-1";

fn name(name: &str) -> Name {
    Name::new(name.as_bytes()).unwrap()
}

fn officer(store: &SqliteStore, asked: Identities<'_>) -> Result<Vec<(String, PinState)>> {
    let mut all = Vec::new();
    store.examine(Role::So, SO, Examination::Identities(asked), &mut |remark| {
        if let Remark::Identity(name, pin) = remark {
            all.push((name.as_str().to_owned(), pin));
        }
        true
    })?;
    Ok(all)
}

fn add(store: &SqliteStore, who: &str, pin: &[u8]) {
    officer(store, Identities::Add(name(who), NewPin(pin))).unwrap();
}

fn revoke(store: &SqliteStore, who: &str) -> Result<()> {
    officer(store, Identities::Revoke(name(who))).map(drop)
}

fn names(store: &SqliteStore) -> Vec<String> {
    officer(store, Identities::List).unwrap().into_iter().map(|(name, _)| name).collect()
}

fn version(place: &Sandbox) -> i64 {
    place.raw().query_row("PRAGMA user_version", (), |row| row.get(0)).unwrap()
}

/// With an object of the user's, and two identities.
fn place() -> (Sandbox, SqliteStore) {
    let place = Sandbox::in_memory();
    let store = place.user();
    insert(&store, private("key"));
    store.logout();
    add(&store, "web", WEB);
    add(&store, "mail", MAIL);
    (place, store)
}

#[test]
fn an_identity_opens_the_token_and_changes_its_pin() {
    let (_place, store) = place();
    assert_eq!(names(&store), ["mail", "web"]);
    store.login_as(name("web"), WEB).unwrap();
    assert!(store.keeps_login());
    assert_eq!(store.secrets(1, 1).unwrap().expose(), b"secret of key");
    let id = insert(&store, private("another key"));
    store.check_pin_as(name("web"), WEB).unwrap();
    assert_eq!(store.check_pin_as(name("web"), MAIL), Err(Error::PIN_INCORRECT));
    store.set_pin_as(name("web"), WEB, b"a new PIN").unwrap();
    assert!(store.keeps_login(), "its wrap is another one, and it is the same");
    store.logout();
    assert_eq!(store.login_as(name("web"), WEB), Err(Error::PIN_INCORRECT));
    store.login_as(name("web"), b"a new PIN").unwrap();
    store.logout();
    store.login_as(name("mail"), MAIL).unwrap();
    assert_eq!(store.read(id).unwrap().unwrap().version, 1);
    assert!(store.verify().unwrap().is_sound());
}

#[test]
fn other_pins_leave_identities_as_they_are_and_a_new_token_has_none() {
    let (place, store) = place();
    store.set_pin(Role::User, USER, b"another user PIN").unwrap();
    store.set_pin(Role::So, SO, b"another SO PIN").unwrap();
    store.login(Role::So, b"another SO PIN").unwrap();
    store.init_pin(b"a third user PIN").unwrap();
    store.logout();
    for (who, pin) in [("web", WEB), ("mail", MAIL)] {
        place.store().login_as(name(who), pin).unwrap();
    }
    store.initialize(b"another SO PIN", "made anew").unwrap();
    assert_eq!(store.login_as(name("web"), WEB), Err(Error::PIN_INCORRECT));
    store.set_pin(Role::So, b"another SO PIN", SO).unwrap();
    assert_eq!(names(&store), [""; 0]);
    add(&store, "web", MAIL);
    store.login_as(name("web"), MAIL).unwrap();
    assert!(store.verify().unwrap().is_sound());
}

#[test]
fn only_the_officer_has_identities_and_each_name_once() {
    let (_place, store) = place();
    for asked in [Identities::List, Identities::Revoke(name("web"))] {
        let what = Examination::Identities(asked);
        let asked = store.examine(Role::User, USER, what, &mut |_| true);
        assert_eq!(asked, Err(Error::USER_NOT_LOGGED_IN));
    }
    let again = officer(&store, Identities::Add(name("web"), NewPin(b"1234")));
    assert_eq!(again, Err(Error::ARGUMENTS_BAD));
    assert!(store.last_error().unwrap().contains("\"web\" is there already"));
    assert_eq!(revoke(&store, "nobody"), Err(Error::ARGUMENTS_BAD));
    let set = officer(&store, Identities::SetPin(name("nobody"), NewPin(b"1234")));
    assert_eq!(set, Err(Error::ARGUMENTS_BAD));
    assert_eq!(names(&store), ["mail", "web"]);
}

#[test]
fn a_wrong_pin_a_locked_one_and_an_unknown_name_have_one_answer() {
    let (place, store) = place();
    let answer = |who: &str, pin: &[u8]| {
        let answer = store.login_as(name(who), pin).unwrap_err();
        (answer, store.last_error().unwrap())
    };
    let wrong = answer("web", b"wrong");
    assert_eq!(wrong.0, Error::PIN_INCORRECT);
    assert_eq!(answer("nobody", b"wrong"), wrong);
    let lock = "UPDATE identity SET failures = 10 WHERE name = 'web'";
    place.raw().execute(lock, ()).unwrap();
    // Not even the right one says that it is locked.
    assert_eq!(answer("web", WEB), wrong);
    let no_identities = Sandbox::in_memory();
    let other = no_identities.token();
    assert_eq!(other.login_as(name("web"), WEB), Err(Error::PIN_INCORRECT));
    assert_eq!(other.last_error().unwrap(), wrong.1);
}

#[test]
fn an_identity_is_locked_alone_and_the_officer_unlocks_it() {
    let (place, store) = place();
    for failures in 1..=3 {
        assert_eq!(store.login_as(name("web"), b"wrong"), Err(Error::PIN_INCORRECT));
        let all = officer(&store, Identities::List).unwrap();
        assert_eq!(all.iter().map(|(_, pin)| pin.failures).collect::<Vec<_>>(), [0, failures]);
    }
    // Within the pause nothing is tried, or counted.
    assert_eq!(store.login_as(name("web"), WEB), Err(Error::PIN_INCORRECT));
    let count = |who: &str| -> (i64, i64) {
        let of = format!("SELECT failures, failed_at FROM identity WHERE name = '{who}'");
        place.raw().query_row(&of, (), |row| Ok((row.get(0)?, row.get(1)?))).unwrap()
    };
    assert_eq!(count("web").0, 3);
    assert!(count("").1 > 0, "who is not tried is counted elsewhere, for the same price");
    // A pause of a clock that was set back begins once.
    place.raw().execute("UPDATE identity SET failed_at = 1 << 40", ()).unwrap();
    assert_eq!(store.login_as(name("web"), WEB), Err(Error::PIN_INCORRECT));
    assert!(count("web").1 < 1 << 40);
    place.raw().execute("UPDATE identity SET failures = 9, failed_at = 0", ()).unwrap();
    assert_eq!(store.login_as(name("web"), b"wrong"), Err(Error::PIN_INCORRECT));
    assert_eq!(store.login_as(name("web"), WEB), Err(Error::PIN_INCORRECT), "it is locked");
    assert_eq!(officer(&store, Identities::List).unwrap()[1].1.left, 0);
    place.store().login(Role::User, USER).unwrap();
    assert_eq!(store.token().unwrap().user.failures, 0);
    // The last attempt that is left is a right one.
    place.store().login_as(name("mail"), MAIL).unwrap();
    assert_eq!(count("mail"), (0, 0));
    officer(&store, Identities::SetPin(name("web"), NewPin(b"unlocked"))).unwrap();
    store.login_as(name("web"), b"unlocked").unwrap();
}

#[test]
fn what_is_revoked_is_logged_out_everywhere_and_its_wrap_is_gone() {
    let (place, mine) = place();
    let (theirs, others) = (place.store(), place.store());
    theirs.login_as(name("web"), WEB).unwrap();
    others.login_as(name("mail"), MAIL).unwrap();
    assert!(theirs.read(1).unwrap().is_some());
    let wrap: Vec<u8> = place
        .raw()
        .query_row("SELECT wrap FROM identity WHERE name = 'web'", (), |row| row.get(0))
        .unwrap();
    let is_there = || place.bytes().windows(wrap.len()).any(|bytes| bytes == wrap);
    assert!(is_there());
    revoke(&mine, "web").unwrap();
    assert!(others.keeps_login() && others.read(1).unwrap().is_some());
    assert_eq!(theirs.read(1).unwrap_err(), Error::USER_NOT_LOGGED_IN);
    assert_eq!(theirs.secrets(1, 1).unwrap_err(), Error::USER_NOT_LOGGED_IN);
    assert_eq!(theirs.search(&[], Scope::Both, 0, 9).unwrap_err(), Error::USER_NOT_LOGGED_IN);
    let write = theirs.write(vec![metaslot_spi::store::Change::Insert(public("x"))]);
    assert_eq!(write.unwrap_err(), Error::USER_NOT_LOGGED_IN);
    assert!(!theirs.keeps_login());
    // Another one of this name is another.
    add(&mine, "web", WEB);
    assert!(!theirs.keeps_login());
    assert_eq!(theirs.read(1).unwrap_err(), Error::USER_NOT_LOGGED_IN);
    theirs.logout();
    theirs.login_as(name("web"), WEB).unwrap();
    assert!(theirs.keeps_login() && theirs.read(1).unwrap().is_some());
    drop((theirs, others));
    revoke(&mine, "web").unwrap();
    assert!(!is_there(), "it is in the file or the log still");
    assert_eq!(place.store().login_as(name("web"), WEB), Err(Error::PIN_INCORRECT));
}

#[test]
fn a_wrap_is_gone_although_another_process_reads_meanwhile() {
    let (place, mine) = place();
    let (reads, wrap) = (place.raw(), "SELECT wrap FROM identity WHERE name = 'web'");
    reads.execute_batch("BEGIN").unwrap();
    let wrap: Vec<u8> = reads.query_row(wrap, (), |row| row.get(0)).unwrap();
    thread::scope(|scope| {
        scope.spawn(move || {
            thread::sleep(Duration::from_millis(200));
            reads.execute_batch("ROLLBACK").unwrap();
        });
        revoke(&mine, "web").unwrap();
    });
    let is_there = place.bytes().windows(wrap.len()).any(|bytes| bytes == wrap);
    assert!(!is_there, "it is in the file or the log still");
}

#[test]
fn a_shared_login_goes_on_when_its_identity_is_revoked() {
    let (place, mine) = place();
    let store = place.store();
    let before = store.incarnation(name("web")).unwrap().unwrap();
    store.login_as(name("web"), WEB).unwrap();
    store.share_login().unwrap();
    assert_eq!(store.incarnation(name("web")), Ok(Some(before)));
    revoke(&mine, "web").unwrap();
    assert_eq!(store.incarnation(name("web")), Ok(None));
    assert!(store.keeps_login() && store.read(1).unwrap().is_some());
    add(&mine, "web", WEB);
    assert_ne!(store.incarnation(name("web")), Ok(Some(before)));
}

/// What an attacker writes who can write the file, and once had an identity.
#[test]
fn an_identity_that_is_put_back_is_seen_and_a_repair_takes_all_out() {
    let (place, store) = place();
    let keep = "CREATE TABLE kept AS SELECT * FROM identity WHERE name = 'web'";
    place.raw().execute_batch(keep).unwrap();
    let theirs = place.store();
    theirs.login_as(name("web"), WEB).unwrap();
    revoke(&store, "web").unwrap();
    place.raw().execute_batch("INSERT INTO identity SELECT * FROM kept").unwrap();
    assert!(!theirs.keeps_login());
    for (who, pin) in [("web", WEB), ("mail", MAIL)] {
        assert_eq!(store.login_as(name(who), pin), Err(Error::DEVICE_ERROR));
        assert!(store.last_error().unwrap().contains("not those that were last added"));
    }
    for (role, pin) in [(Role::User, USER), (Role::So, SO)] {
        assert_eq!(store.login(role, pin), Err(Error::DEVICE_ERROR));
    }
    assert_eq!(revoke(&store, "web"), Err(Error::DEVICE_ERROR));
    let (examined, findings) = examine(&store, SO, true).unwrap();
    assert_eq!((examined.rows, findings.len()), (1, 1), "{findings:?}");
    assert_eq!(names(&store), [""; 0]);
    store.login(Role::User, USER).unwrap();
    assert!(store.verify().unwrap().is_sound());
    store.logout();
    add(&store, "web", MAIL);
    place.store().login_as(name("web"), MAIL).unwrap();
}

#[test]
fn rows_that_are_no_identities_and_wraps_of_others_are_seen() {
    for change in [
        "INSERT INTO identity VALUES('a' || char(10), 1, x'00', 0, 0)",
        "INSERT INTO identity VALUES(1, 'a', NULL || 'b', -1, 'c')",
        "UPDATE identity SET wrap = (SELECT wrap FROM identity WHERE name = 'mail') WHERE name = 'web'",
        "UPDATE identity SET incarnation = 1 WHERE name = 'mail'",
        "UPDATE identity SET name = 'www' WHERE name = 'web'",
        "UPDATE identity SET failures = -1 WHERE name = 'web'",
        "DELETE FROM identity WHERE name = 'mail'",
    ] {
        let (place, store) = place();
        if place.raw().execute(change, ()).is_err() {
            // The table does not take it.
            continue;
        }
        assert_eq!(store.login(Role::User, USER), Err(Error::DEVICE_ERROR), "{change}");
        examine(&store, USER, true).unwrap();
        store.login(Role::User, USER).unwrap();
        assert_eq!(store.login_as(name("web"), MAIL), Err(Error::PIN_INCORRECT), "{change}");
        assert!(store.verify().unwrap().is_sound(), "{change}");
    }
}

#[test]
fn a_repair_goes_on_where_the_store_denies_that_it_has_identities() {
    let version = "PRAGMA user_version = 2";
    for change in [&format!("{version}; DROP TABLE identity"), version] {
        let (place, store) = place();
        place.raw().execute_batch(change).unwrap();
        assert_eq!(store.login(Role::User, USER), Err(Error::DEVICE_ERROR), "{change}");
        examine(&store, SO, true).unwrap();
        assert_eq!(names(&store), [""; 0], "{change}");
        add(&store, "web", MAIL);
        place.store().login_as(name("web"), MAIL).unwrap();
        assert!(store.login_as(name("web"), WEB).is_err());
    }
}

#[test]
fn a_store_of_before_a_revocation_is_older_than_its_anchor() {
    let (place, outside) = (Sandbox::in_memory(), Sandbox::in_memory());
    std::fs::create_dir_all(outside.path()).unwrap();
    let anchor = outside.path().join("anchor");
    std::fs::write(&anchor, "").unwrap();
    let store = SqliteStore::new(Config { anchor: Some(anchor), ..place.config() });
    common::initialize(&store);
    add(&store, "web", WEB);
    let before = outside.path().join("before.db");
    place.raw().execute("VACUUM INTO ?1", [before.to_str().unwrap()]).unwrap();
    revoke(&store, "web").unwrap();
    // As an attacker would: the rows of before, state and all.
    place
        .raw()
        .execute_batch(&format!(
            "ATTACH '{}' AS before; DELETE FROM identity;
             INSERT INTO identity SELECT * FROM before.identity;
             UPDATE token SET row_set = (SELECT row_set FROM before.token);",
            before.display()
        ))
        .unwrap();
    assert_eq!(store.login_as(name("web"), WEB), Err(Error::DEVICE_ERROR));
    assert!(store.last_error().unwrap().contains("anchor"), "{:?}", store.last_error());
}

#[test]
fn the_format_is_another_from_the_first_identity_on() {
    let place = Sandbox::in_memory();
    let store = place.token();
    assert_eq!(version(&place), 2);
    assert_eq!(store.login_as(name("web"), WEB), Err(Error::PIN_INCORRECT));
    assert_eq!(version(&place), 2);
    let other = place.store();
    other.login(Role::User, USER).unwrap();
    add(&store, "web", WEB);
    assert_eq!(version(&place), 3);
    insert(&other, private("by who was logged in before"));
    revoke(&store, "web").unwrap();
    assert_eq!(version(&place), 3);
    add(&store, "web", WEB);
    // Not even with its number does it pass for one of before.
    place.raw().pragma_update(None, "user_version", 2).unwrap();
    assert_eq!(place.store().login(Role::User, USER), Err(Error::DEVICE_ERROR));
    place.raw().pragma_update(None, "user_version", 4).unwrap();
    assert_eq!(place.store().login(Role::User, USER), Err(Error::TOKEN_NOT_RECOGNIZED));
    place.raw().pragma_update(None, "user_version", 3).unwrap();
    place.store().login_as(name("web"), WEB).unwrap();
    assert_eq!(find(&other, "by who was logged in before"), [1]);
}

#[test]
fn a_backup_has_the_identities() {
    let (place, store) = place();
    let copies = Sandbox::in_memory();
    std::fs::create_dir_all(copies.path()).unwrap();
    let copy = copies.path().join("copy");
    store.examine(Role::So, SO, Examination::Backup(&copy), &mut |_| true).unwrap();
    revoke(&store, "web").unwrap();
    drop(place);
    let other = Sandbox::in_memory();
    let restored = other.store();
    restored.examine(Role::So, SO, Examination::Restore(&copy), &mut |_| true).unwrap();
    assert_eq!(names(&restored), ["mail", "web"]);
    restored.login_as(name("web"), WEB).unwrap();
    assert!(restored.verify().unwrap().is_sound());
}

/// Set for a child that adds and revokes identities of the token at this path until it is killed.
const OFFICER: &str = "METASLOT_TEST_OFFICER";

/// In a child: says what is there once it is durable. In the test run itself: nothing.
#[test]
fn child_that_adds_and_revokes() {
    let Some(path) = std::env::var_os(OFFICER) else { return };
    let store = SqliteStore::new(Config { kdf: common::CHEAP, ..Config::new(path) });
    for number in 0_u64.. {
        let who = format!("{}-{number}", std::process::id());
        add(&store, &who, WEB);
        println!("\nadded {who}");
        if number % 3 > 0 {
            println!("\nrevoking {who}");
            revoke(&store, &who).unwrap();
            println!("\nrevoked {who}");
        }
    }
}

#[test]
fn an_officer_who_is_killed_leaves_each_identity_there_or_not() {
    let (place, store) = place();
    for round in 0_u64..8 {
        let mut child = Command::new(std::env::current_exe().unwrap())
            .args(["child_that_adds_and_revokes", "--exact", "--nocapture", "--test-threads=1"])
            .env(OFFICER, place.database())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        thread::sleep(Duration::from_millis(15 + 31 * round));
        child.kill().unwrap();
        child.wait().unwrap();
        // A kill between the count and the clearing of an attempt leaves the count.
        place.raw().execute("UPDATE token SET so_failures = 0", ()).unwrap();
        let there = names(&store);
        for line in BufReader::new(child.stdout.take().unwrap()).lines().map_while(|line| line.ok())
        {
            let Some((what, who)) = line.split_once(' ') else { continue };
            let is_there = there.iter().any(|name| name == who);
            match (what, is_there) {
                ("revoked", true) => panic!("{who} is there again"),
                ("added", true) => store.login_as(name(who), WEB).unwrap(),
                _ => {}
            }
            store.logout();
        }
        store.login_as(name("mail"), MAIL).unwrap();
        assert!(store.verify().unwrap().is_sound());
        store.logout();
        for who in there.iter().filter(|name| !["web", "mail"].contains(&name.as_str())) {
            revoke(&store, who).unwrap();
        }
    }
}

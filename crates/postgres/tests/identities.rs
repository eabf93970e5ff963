// SPDX-License-Identifier: Apache-2.0
//! Identities of a token in PostgreSQL: counted and revoked over all machines, alone.
#![expect(clippy::unwrap_used, reason = "a test fails where it cannot go on")]

mod common;

use common::{CHEAP, Place, SO, USER, examine, insert, private, told, until};
use metaslot_ck::{Error, Result};
use metaslot_keystore::{Config as FileConfig, Cost, Kdf, SqliteStore};
use metaslot_postgres::{Config, PostgresStore};
use metaslot_spi::store::{
    Change, Examination, Identities, Name, NewPin, PinState, Remark, Role, Scope, Store,
};
use std::thread;
use std::time::Duration;

const WEB: &[u8] = b"web-pin-1";
const MAIL: &[u8] = b"mail-pin-1";

fn name(name: &str) -> Name {
    Name::new(name.as_bytes()).unwrap()
}

fn officer(store: &dyn Store, asked: Identities<'_>) -> Result<Vec<(String, PinState)>> {
    let mut all = Vec::new();
    store.examine(Role::So, SO, Examination::Identities(asked), &mut |remark| {
        if let Remark::Identity(name, pin) = remark {
            all.push((name.as_str().to_owned(), pin));
        }
        true
    })?;
    Ok(all)
}

fn add(store: &dyn Store, who: &str, pin: &[u8]) {
    let added = officer(store, Identities::Add(name(who), NewPin(pin)));
    assert!(added.is_ok(), "{}", told());
}

#[test]
fn identities_are_counted_locked_and_revoked_over_all_machines() {
    let Some(place) = Place::new("identities") else { return };
    let mine = place.user();
    let id = insert(&mine, private("key"));
    assert_eq!(mine.login_as(name("web"), WEB), Err(Error::PIN_INCORRECT));
    let unknown = told();
    add(&mine, "web", WEB);
    add(&mine, "mail", MAIL);
    let again = officer(&mine, Identities::Add(name("web"), NewPin(WEB)));
    assert_eq!(again.unwrap_err(), Error::ARGUMENTS_BAD);
    let (theirs, others) = (place.store(), place.store());
    theirs.login_as(name("web"), WEB).unwrap();
    others.login_as(name("mail"), MAIL).unwrap();
    assert_eq!(theirs.secrets(id, 1).unwrap().expose(), b"secret of key");
    assert_eq!(others.retry_at(Some(name("web"))), Ok(0));
    // Three wrong ones, wherever: the next one is not tried.
    for machine in [&mine, &theirs, &others] {
        assert_eq!(machine.check_pin_as(name("web"), b"wrong"), Err(Error::PIN_INCORRECT));
        assert_eq!(told(), unknown);
    }
    assert!(others.retry_at(Some(name("web"))).unwrap() > 0);
    assert_eq!(["mail", "nobody"].map(|who| others.retry_at(Some(name(who)))), [Ok(0), Ok(0)]);
    assert_eq!(others.check_pin_as(name("web"), WEB), Err(Error::PIN_INCORRECT));
    assert_eq!(told(), unknown);
    let counted = |at: usize| officer(&mine, Identities::List).unwrap()[at].1.failures;
    assert_eq!((counted(0), counted(1)), (0, 3));
    others.set_pin_as(name("mail"), MAIL, b"a new PIN").unwrap();
    assert_eq!(others.check_pin_as(name("mail"), MAIL), Err(Error::PIN_INCORRECT));
    officer(&mine, Identities::SetPin(name("web"), NewPin(b"unlocked"))).unwrap();
    mine.check_pin_as(name("web"), b"unlocked").unwrap();
    // Other PINs have nothing to do with it.
    mine.set_pin(Role::User, USER, b"another user PIN").unwrap();
    mine.set_pin(Role::User, b"another user PIN", USER).unwrap();
    assert!(theirs.keeps_login() && others.keeps_login());
    officer(&mine, Identities::Revoke(name("web"))).unwrap();
    until("the login is none", || !theirs.keeps_login());
    assert_eq!(theirs.read(id).unwrap_err(), Error::USER_NOT_LOGGED_IN);
    assert_eq!(theirs.secrets(id, 1).unwrap_err(), Error::USER_NOT_LOGGED_IN);
    assert_eq!(theirs.search(&[], Scope::Both, 0, 9).unwrap_err(), Error::USER_NOT_LOGGED_IN);
    let write = theirs.write(vec![Change::Insert(private("x"))]);
    assert_eq!(write.unwrap_err(), Error::USER_NOT_LOGGED_IN);
    assert!(others.keeps_login() && others.read(id).unwrap().is_some());
    add(&mine, "web", WEB);
    assert!(!theirs.keeps_login(), "another one of this name is another");
    assert_eq!(examine(&mine).1, []);
    mine.initialize(SO, "anew").unwrap();
    assert_eq!(theirs.login_as(name("web"), WEB), Err(Error::PIN_INCORRECT));
    assert!(officer(&mine, Identities::List).unwrap().is_empty());
}

#[test]
fn who_is_logged_in_or_writes_does_not_wait_for_a_pin_that_is_tried() {
    let Some(place) = Place::new("identities-wait") else { return };
    let mine = place.user();
    let id = insert(&mine, private("key"));
    add(&mine, "web", WEB);
    let theirs = place.store();
    theirs.login_as(name("web"), WEB).unwrap();
    assert!(theirs.read(id).unwrap().is_some());
    let tries = |granted: &str| {
        let of = "SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND";
        place.sql(&format!("{of} {granted}")) == "1"
    };
    thread::scope(|scope| {
        // Another machine tries one, until it is told to end.
        let held = "SELECT pg_advisory_lock(1297304660, id) FROM metaslot.token;
                    DO $$ BEGIN FOR i IN 1..800 LOOP
                        PERFORM pg_sleep(0.01);
                        EXIT WHEN EXISTS(SELECT FROM pg_class WHERE relname = 'ended');
                    END LOOP; END $$";
        let held = scope.spawn(|| place.sql(held));
        until("it is tried", || tries("granted"));
        let tried = scope.spawn(|| theirs.check_pin_as(name("web"), WEB));
        until("the next one waits", || tries("NOT granted"));
        let before = theirs.generation();
        insert(&mine, private("another key"));
        until("it is heard of", || theirs.generation() != before);
        assert!(theirs.read(id).unwrap().is_some());
        let is_tried = !held.is_finished();
        place.sql("CREATE TABLE public.ended()");
        tried.join().unwrap().unwrap();
        assert!(is_tried, "it has waited");
    });
    // Nor for one that this machine tries; on a busy machine a write may take longer than a short one.
    let others_pins = [("slow", 12_000), ("slower", 60_000), ("slowest", 60_000)];
    let overtakes = |(who, passes): (&str, u32)| {
        let kdf = Cost::Fixed(Kdf::Argon2id { memory_kib: 64, passes, lanes: 1 });
        add(&PostgresStore::new(Config { kdf, ..place.config() }), who, MAIL);
        thread::scope(|scope| {
            let tried = scope.spawn(|| theirs.check_pin_as(name(who), b"wrong"));
            let failures = format!("SELECT failures FROM metaslot.identity WHERE name = '{who}'");
            until("it is counted", || place.sql(&failures) == "1");
            insert(&theirs, private("meanwhile"));
            // What has waited for it comes just after it.
            thread::sleep(Duration::from_millis(50));
            let overtakes = !tried.is_finished();
            assert_eq!(tried.join().unwrap(), Err(Error::PIN_INCORRECT));
            overtakes
        })
    };
    assert!(others_pins.into_iter().any(overtakes), "each write has waited");
}

#[test]
fn what_waits_while_its_identity_is_revoked_is_not_written() {
    let Some(place) = Place::new("revoked-meanwhile") else { return };
    let mine = place.user();
    add(&mine, "web", WEB);
    add(&mine, "mail", MAIL);
    let theirs = place.store();
    for (who, pin, is_shared) in [("web", WEB, false), ("mail", MAIL, true)] {
        theirs.login_as(name(who), pin).unwrap();
        let identity = (name(who), theirs.incarnation(name(who)).unwrap().unwrap());
        if is_shared {
            theirs.share_login().unwrap();
        }
        let waits = |mode: &str, granted: &str| {
            let of = "SELECT count(*) FROM pg_locks WHERE relation = 'metaslot.identity'::regclass";
            place.sql(&format!("{of} AND mode = '{mode}' AND {granted}")) != "0"
        };
        thread::scope(|scope| {
            // Until both wait.
            let held = "LOCK TABLE metaslot.identity IN SHARE MODE;
                        DO $$ BEGIN FOR i IN 1..800 LOOP
                            PERFORM pg_sleep(0.01);
                            EXIT WHEN (SELECT count(*) FROM pg_locks WHERE NOT granted) > 1;
                        END LOOP; END $$";
            scope.spawn(|| place.sql(held));
            until("it is held", || waits("ShareLock", "granted"));
            let revoked = scope.spawn(|| officer(&mine, Identities::Revoke(name(who))));
            // By then it has the token's row, for which the other machine waits.
            until("it waits", || waits("RowExclusiveLock", "NOT granted"));
            let change = vec![Change::Insert(private("x"))];
            let written =
                if is_shared { theirs.write_as(identity, change) } else { theirs.write(change) };
            assert_eq!(written, Err(Error::USER_NOT_LOGGED_IN), "{who}");
            revoked.join().unwrap().unwrap();
        });
        theirs.logout();
    }
}

#[test]
fn who_waits_while_others_change_the_token_is_told_that_and_not_of_a_logout() {
    let Some(place) = Place::new("changed-meanwhile") else { return };
    let mine = place.user();
    add(&mine, "web", WEB);
    let theirs = place.store();
    theirs.login_as(name("web"), WEB).unwrap();
    theirs.write(vec![Change::Insert(private("x"))]).unwrap();
    thread::scope(|scope| {
        // One transaction, which ends when the other one waits for it.
        let changed = "UPDATE metaslot.token SET label = 'another';
                       DO $$ BEGIN FOR i IN 1..800 LOOP
                           PERFORM pg_sleep(0.01);
                           EXIT WHEN (SELECT count(*) FROM pg_locks WHERE NOT granted) > 0;
                       END LOOP; END $$";
        scope.spawn(|| place.sql(changed));
        let held = "SELECT count(*) FROM pg_locks WHERE relation = 'metaslot.token'::regclass
                    AND mode = 'RowExclusiveLock' AND granted";
        until("it is held", || place.sql(held) != "0");
        let written = theirs.write(vec![Change::Insert(private("y"))]);
        assert_eq!(written, Err(Error::DEVICE_ERROR), "{}", told());
        assert!(told().contains("its label was changed"), "{}", told());
    });
}

#[test]
fn an_identity_that_is_put_back_is_seen_and_tables_of_before_get_the_new_one() {
    let Some(place) = Place::new("put-back") else { return };
    let store = place.user();
    // As a release before this one has made them.
    place.sql("DROP TABLE metaslot.identity");
    place.sql("UPDATE metaslot.format SET version = 1");
    place.store().login(Role::User, USER).unwrap();
    assert_eq!(store.login_as(name("web"), WEB), Err(Error::PIN_INCORRECT));
    assert!(officer(&store, Identities::List).unwrap().is_empty());
    insert(&store, private("in tables of before"));
    add(&store, "web", WEB);
    add(&store, "mail", MAIL);
    place.sql("CREATE TABLE kept AS SELECT * FROM metaslot.identity WHERE name = 'web'");
    let theirs = place.store();
    theirs.login_as(name("web"), WEB).unwrap();
    officer(&store, Identities::Revoke(name("web"))).unwrap();
    place.sql("INSERT INTO metaslot.identity SELECT * FROM kept");
    until("the login is none", || !theirs.keeps_login());
    for (who, pin) in [("web", WEB), ("mail", MAIL)] {
        assert_eq!(place.store().login_as(name(who), pin), Err(Error::DEVICE_ERROR));
        assert!(told().contains("not those that were last added"), "{}", told());
    }
    place.store().login(Role::User, USER).unwrap_err();
    place.sql("DELETE FROM metaslot.identity WHERE name = 'web'");
    place.store().login_as(name("mail"), MAIL).unwrap();
}

#[test]
fn a_copy_has_the_identities_both_ways() {
    let Some(place) = Place::new("identities-copied") else { return };
    let file = |path: &str| {
        let config = FileConfig { kdf: CHEAP, ..FileConfig::new(place.path(path)) };
        SqliteStore::new(config)
    };
    let (first, second) = (file("first/token.db"), file("second/token.db"));
    first.initialize(SO, "moving").unwrap();
    add(&first, "web", WEB);
    let run = |store: &dyn Store, what: Examination<'_>| {
        assert_eq!(store.examine(Role::So, SO, what, &mut |_| true).unwrap().findings, 0);
    };
    let (copy, back) = (place.path("copy"), place.path("back"));
    run(&first, Examination::Backup(&copy));
    let store = place.store();
    run(&store, Examination::Restore(&copy));
    store.login_as(name("web"), WEB).unwrap();
    add(&store, "mail", MAIL);
    run(&store, Examination::Backup(&back));
    run(&second, Examination::Restore(&back));
    for (who, pin) in [("web", WEB), ("mail", MAIL)] {
        second.login_as(name(who), pin).unwrap();
    }
    assert!(second.verify().unwrap().is_sound());
}

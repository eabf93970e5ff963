// SPDX-License-Identifier: Apache-2.0
//! The database goes away, comes back, and goes back.
#![expect(clippy::unwrap_used, reason = "a test fails where it cannot go on")]

mod common;

use common::{Place, USER, examine, find, insert, private, told, touch, until};
use metaslot_ck::Error;
use metaslot_postgres::{Config, PostgresStore};
use metaslot_spi::store::{Change, Role, Scope, Store};
use std::time::{Duration, Instant};

#[test]
fn what_was_read_is_used_while_the_database_is_away_and_no_longer_than_it_may() {
    let Some(mut place) = Place::new("away") else { return };
    let store = place.user();
    let unseen = insert(&store, private("never read"));
    let id = insert(&store, private("key"));
    let short = Config { away: Duration::from_secs(1), ..place.config() };
    let short = PostgresStore::new(short);
    short.login(Role::User, USER).unwrap();
    for store in [&store, &short] {
        assert_eq!(find(store, "key"), [id]);
        store.secrets(id, 1).unwrap();
        store.token().unwrap();
    }
    place.stop();
    until("it is away", || store.write(vec![Change::Insert(private("more"))]).is_err());
    assert!(told().contains("the database is away"), "{}", told());
    assert_eq!(find(&store, "key"), [id]);
    assert_eq!(store.secrets(id, 1).unwrap().expose(), b"secret of key");
    assert!(store.token().unwrap().initialized && store.keeps_login());
    assert!(store.generation().is_some());
    assert_eq!(store.secrets(unseen, 1).unwrap_err(), Error::DEVICE_ERROR);
    assert_eq!(store.login(Role::User, USER).unwrap_err(), Error::DEVICE_ERROR);
    until("it may not go on", || short.secrets(id, 1).is_err());
    assert!(short.generation().is_none());
    place.start();
    until("it is back", || store.write(vec![Change::Insert(private("more"))]).is_ok());
    until("so is the other", || short.secrets(id, 1).is_ok());
    until("what happened is heard of", || !find(&short, "more").is_empty());
}

#[test]
fn a_standby_that_is_promoted_is_found_with_all_that_it_has_seen() {
    let Some(mut place) = Place::new("promoted") else { return };
    drop(place.token());
    let standby = place.standby();
    let anchor = Some(touch(&place.path("anchor")));
    let address = Place::url_of([&standby, &place]).parse().unwrap();
    let store = PostgresStore::new(Config { address, anchor, ..place.config() });
    store.login(Role::User, USER).unwrap();
    let id = insert(&store, private("key"));
    store.secrets(id, 1).unwrap();
    until("the standby has it", || standby.sql("SELECT count(*) FROM metaslot.object") == "1");
    place.stop();
    // Until there is one that takes writes, what was read is used.
    assert_eq!(store.secrets(id, 1).unwrap().expose(), b"secret of key");
    assert!(store.write(vec![Change::Insert(private("more"))]).is_err());
    standby.sql("SELECT pg_promote()");
    until("it is found", || store.write(vec![Change::Insert(private("more"))]).is_ok());
    assert_eq!(store.secrets(id, 1).unwrap().expose(), b"secret of key");
    store.check_pin(Role::User, USER).unwrap();
    assert_eq!(examine(&store).1, []);
}

#[test]
fn a_change_that_the_standby_does_not_have_is_not_acknowledged() {
    let Some(place) = Place::new("unsynced") else { return };
    let store = place.user();
    let waits_for = |standby: &str| {
        place.sql(&format!("ALTER SYSTEM SET synchronous_standby_names = '{standby}'"));
        place.sql("SELECT pg_reload_conf()");
        until("it is read", || place.sql("SHOW synchronous_standby_names") == standby);
    };
    waits_for("gone");
    let written = std::thread::scope(|scope| {
        let write = || store.write(vec![Change::Insert(private("key"))]).map_err(|_| told());
        let write = scope.spawn(write);
        // As the end of the statement's time does.
        let ended = "SELECT count(pg_cancel_backend(pid)) FROM pg_stat_activity WHERE wait_event = 'SyncRep'";
        until("it waits for it", || place.sql(ended) == "1");
        write.join().unwrap()
    });
    assert!(written.unwrap_err().contains("no standby has taken the change in time"));
    waits_for("");
    until("it is back", || store.write(vec![Change::Insert(private("more"))]).is_ok());
    // It may be there, and here it is; once.
    assert_eq!(find(&store, "key").len(), 1);
}

#[test]
fn calls_that_wait_for_one_another_end_together_where_the_database_stalls() {
    let Some(place) = Place::new("stalls") else { return };
    drop(place.token());
    let away = Duration::from_secs(1);
    let store = PostgresStore::new(Config { away, ..place.config() });
    store.login(Role::User, USER).unwrap();
    let backends = place.backends();
    place.signal("STOP", &backends);
    let begun = Instant::now();
    let said = std::thread::scope(|scope| {
        let call = || store.write(vec![Change::Insert(private("never"))]).map_err(|_| told());
        let calls: Vec<_> = (0..5).map(|_| scope.spawn(call)).collect();
        Vec::from_iter(calls.into_iter().map(|call| call.join().unwrap().unwrap_err()))
    });
    let waited = begun.elapsed();
    // An attempt to connect takes longer than what was read may be used.
    std::thread::sleep(2 * away);
    let generation = store.generation();
    place.signal("CONT", &backends);
    assert_eq!(generation, None);
    assert!(said.iter().all(|said| said.contains("the database is away")), "{said:?}");
    assert!(waited < Duration::from_secs(20), "{waited:?}");
    until("it is back", || store.write(vec![Change::Insert(private("key"))]).is_ok());
}

#[test]
fn a_database_that_goes_back_is_refused() {
    let Some(place) = Place::new("back") else { return };
    let token = place.user();
    let anchor = touch(&place.path("anchor"));
    let anchored = Config { anchor: Some(anchor), ..place.config() };
    let machine = PostgresStore::new(anchored.clone());
    machine.login(Role::User, USER).unwrap();
    let [id, changed] = ["key", "changed"].map(|label| insert(&machine, private(label)));
    let tables = ["object", "lookup", "tree", "token"];
    for table in tables {
        place.sql(&format!("CREATE TABLE {table} AS SELECT * FROM metaslot.{table}"));
    }
    machine.write(vec![Change::Delete { id, version: 1, unique_id: None }]).unwrap();
    let update = Change::Update { id: changed, version: 1, record: private("changed") };
    machine.write(vec![update]).unwrap();
    until("it is gone", || token.read(id).unwrap().is_none());
    until("it is changed", || token.secrets(changed, 2).is_ok());
    let go_back = |and: &str| {
        place.sql(&format!(
            "BEGIN; SET session_replication_role = replica;
             DELETE FROM metaslot.token; DELETE FROM metaslot.object; DELETE FROM metaslot.lookup; DELETE FROM metaslot.tree;
             INSERT INTO metaslot.token OVERRIDING SYSTEM VALUE SELECT * FROM token; INSERT INTO metaslot.object SELECT * FROM object;
             INSERT INTO metaslot.lookup SELECT * FROM lookup; INSERT INTO metaslot.tree SELECT * FROM tree; {and}; COMMIT"
        ))
    };
    // In silence: a search refuses what it finds, and keeps nothing of it.
    let generation = token.generation().unwrap();
    go_back(&format!("UPDATE metaslot.token SET generation = {generation}"));
    let query = [(metaslot_ck::CKA_LABEL, b"changed".to_vec())];
    assert_eq!(token.search(&query, Scope::Private, 0, 7).unwrap_err(), Error::DEVICE_ERROR);
    assert!(token.secrets(changed, 1).is_err());
    // As a restore of a backup does it, or a standby that had not seen everything.
    go_back("SELECT pg_notify('metaslot', '0 test')");
    // A process that has seen more, and one that was started since.
    until("it is seen", || token.read(id).is_err());
    assert!(told().contains("gone back behind this process"), "{}", told());
    assert_eq!(
        token.write(vec![Change::Insert(private("more"))]).unwrap_err(),
        Error::DEVICE_ERROR
    );
    let back = "gone back behind this process";
    assert_eq!(token.check_pin(Role::User, USER).unwrap_err(), Error::DEVICE_ERROR);
    assert!(told().contains(back), "{}", told());
    token.logout();
    token.login(Role::User, USER).unwrap_err();
    assert_eq!(token.set_pin(Role::User, USER, b"another pin").unwrap_err(), Error::DEVICE_ERROR);
    assert!(told().contains(back), "{}", told());
    let late = PostgresStore::new(anchored);
    assert_eq!(late.login(Role::User, USER).unwrap_err(), Error::DEVICE_ERROR);
    assert!(told().contains("has seen change"), "{}", told());
    // Who has no anchor cannot know.
    let blind = place.store();
    blind.login(Role::User, USER).unwrap();
    assert!(blind.read(id).unwrap().is_some());
}

#[test]
fn what_was_read_before_the_last_change_is_used_while_the_database_is_away_and_read_again_after() {
    let Some(mut place) = Place::new("older") else { return };
    let store = place.user();
    let ids = ["kept", "gone", "own"].map(|label| insert(&store, private(label)));
    let other = place.store();
    other.login(Role::User, USER).unwrap();
    until("all are found", || {
        ids.iter().all(|id| other.secrets(*id, 1).is_ok()) && find(&other, "kept") == [ids[0]]
    });
    other.write(vec![Change::Delete { id: ids[2], version: 1, unique_id: None }]).unwrap();
    let before = other.generation();
    store.write(vec![Change::Delete { id: ids[1], version: 1, unique_id: None }]).unwrap();
    until("it is heard of", || other.generation() != before);
    place.stop();
    assert_eq!(other.secrets(ids[0], 1).unwrap().expose(), b"secret of kept");
    assert_eq!(find(&other, "kept"), [ids[0]]);
    // It is not known here which one was changed, but for what was changed here.
    assert!(other.secrets(ids[1], 1).is_ok());
    assert_eq!(other.secrets(ids[2], 1).unwrap_err(), Error::DEVICE_ERROR);
    let away = other.generation();
    assert!(away.is_some());
    place.start();
    until("it is back", || other.generation() != away);
    assert!(other.read(ids[1]).unwrap().is_none());
    assert!(other.secrets(ids[0], 1).is_ok());
}

#[test]
fn a_look_that_fails_is_no_change() {
    let Some(place) = Place::new("look") else { return };
    let store = place.user();
    let id = insert(&store, private("key"));
    store.secrets(id, 1).unwrap();
    let look = |named: &str| {
        place.sql(&format!("ALTER TABLE metaslot.token RENAME COLUMN {named}"));
        place.sql("SELECT pg_notify('metaslot', '0 test')");
        std::thread::sleep(Duration::from_millis(300));
    };
    let before = store.generation();
    look("generation TO other");
    assert_eq!(store.generation(), before);
    assert!(store.secrets(id, 1).is_ok());
    look("other TO generation");
    let other = place.store();
    other.login(Role::User, USER).unwrap();
    other.write(vec![Change::Delete { id, version: 1, unique_id: None }]).unwrap();
    until("the next change is heard of", || store.read(id).is_ok_and(|row| row.is_none()));
}

// SPDX-License-Identifier: Apache-2.0
//! A token in PostgreSQL is what one in SQLite is, and machines share it.
#![expect(clippy::unwrap_used, reason = "a test fails where it cannot go on")]

mod common;

use common::{Place, SO, USER, examine, find, insert, private, public, told, until};
use metaslot_ck::{CKA_CLASS, CKA_LABEL, CKA_UNIQUE_ID, Error};
use metaslot_postgres::{Config, PostgresStore};
use metaslot_spi::store::{Change, Examination, Record, Role, Scope, Store};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

#[test]
fn objects_come_are_found_change_and_go() {
    let Some(place) = Place::new("objects") else { return };
    assert!(!place.store().token().unwrap().initialized);
    assert!(find(&place.store(), "nothing").is_empty());
    let store = place.user();
    let token = store.token().unwrap();
    assert_eq!((token.label.as_str(), token.user_pin_set), ("test token", true));
    let id = insert(&store, private("key one"));
    insert(&store, private("key two"));
    let open = insert(&store, public("certificate"));
    let other = place.store();
    assert_eq!(find(&other, "key one"), []);
    assert_eq!(find(&other, "certificate"), [open]);
    assert!(other.read(id).unwrap().is_none());
    assert_eq!(other.secrets(id, 1).unwrap_err(), Error::USER_NOT_LOGGED_IN);
    other.login(Role::User, USER).unwrap();
    for store in [&store, &other] {
        assert_eq!(find(store, "key one"), [id]);
        let row = store.read(id).unwrap().unwrap();
        assert_eq!(row.attributes, b"attributes of key one");
        assert!(row.private && row.verified && row.has_secrets);
        assert_eq!(store.secrets(id, row.version).unwrap().expose(), b"secret of key one");
    }
    let mut record = private("after");
    record.secrets = None;
    store.write(vec![Change::Update { id, version: 1, record }]).unwrap();
    assert!(find(&store, "key one").is_empty());
    assert_eq!(store.secrets(id, 2).unwrap().expose(), b"secret of key one");
    let late = Change::Update { id, version: 1, record: private("late") };
    assert_eq!(other.write(vec![late]).unwrap_err(), Error::OBJECT_HANDLE_INVALID);
    let both =
        vec![Change::Insert(private("no")), Change::Delete { id: 77, version: 1, unique_id: None }];
    assert_eq!(store.write(both).unwrap_err(), Error::OBJECT_HANDLE_INVALID);
    assert!(find(&store, "no").is_empty());
    store.write(vec![Change::Delete { id, version: 2, unique_id: None }]).unwrap();
    assert!(store.read(id).unwrap().is_none());
    assert_eq!(examine(&store).1, []);
    let log = place.log();
    assert!(log.contains("ready to accept connections") && !log.contains("WARNING"), "{log}");
}

#[test]
fn a_change_is_of_the_object_that_was_read() {
    let Some(place) = Place::new("unique") else { return };
    let store = place.user();
    let named = |name: &[u8]| {
        let mut record = private("one");
        record.terms.push((CKA_UNIQUE_ID, name.to_vec()));
        record
    };
    let id = insert(&store, named(b"1"));
    let update =
        |version, name| store.write(vec![Change::Update { id, version, record: named(name) }]);
    assert_eq!(update(1, b"2").unwrap_err(), Error::OBJECT_HANDLE_INVALID);
    update(1, b"1").unwrap();
}

#[test]
fn a_search_goes_on_where_it_was_and_says_which_are_private() {
    let Some(place) = Place::new("search") else { return };
    let store = place.user();
    // More than two levels of the tree's leaves.
    let changes = (0..150)
        .map(|at| Change::Insert(if at % 3 == 0 { public("same") } else { private("same") }));
    let ids = store.write(changes.collect()).unwrap();
    for query in [vec![], private("same").terms] {
        for scope in [Scope::Both, Scope::Private, Scope::Public] {
            let (mut after, mut all) = (0, Vec::new());
            loop {
                let page = store.search(&query, scope, after, 7).unwrap();
                let Some(last) = page.last() else { break };
                after = last.id;
                all.extend(page);
            }
            let is_one = |at: usize| match scope {
                Scope::Both => true,
                Scope::Private => !at.is_multiple_of(3),
                Scope::Public => at.is_multiple_of(3),
            };
            let expected: Vec<_> = (0..150).filter(|at| is_one(*at)).map(|at| ids[at]).collect();
            assert_eq!(all.iter().map(|found| found.id).collect::<Vec<_>>(), expected);
            assert!(all.iter().all(|found| found.private != (found.id % 3 == ids[0] % 3)));
        }
    }
    assert_eq!(
        examine(&store),
        (metaslot_spi::store::Examined { rows: 150, ..Default::default() }, vec![])
    );
}

#[test]
fn the_database_learns_nothing_and_what_it_changes_shows() {
    let Some(place) = Place::new("learns") else { return };
    let store = place.user();
    let first = insert(&store, private("key one"));
    let second = insert(&store, private("key two"));
    let all = ["token", "object", "lookup", "tree"]
        .map(|table| place.sql(&format!("SELECT t::text FROM metaslot.{table} t")));
    for hidden in ["attributes of", "secret of", "key one", "user-pin"] {
        let hex: String = hidden.bytes().map(|byte| format!("{byte:02x}")).collect();
        assert!(all.iter().all(|rows| !rows.contains(hidden) && !rows.contains(&hex)));
    }
    place.sql("CREATE TABLE old AS SELECT * FROM metaslot.object");
    store
        .write(vec![Change::Update { id: first, version: 1, record: private("key one") }])
        .unwrap();
    // One row is put back, and another one taken out.
    place.sql(&format!(
        "UPDATE metaslot.object o SET version = old.version, attributes = old.attributes,
                secrets = old.secrets, tag = old.tag FROM old WHERE old.id = o.id AND o.id = {first};
         DELETE FROM metaslot.object WHERE id = {second}"
    ));
    let late = place.store();
    assert_eq!(late.login(Role::User, USER).unwrap_err(), Error::DEVICE_ERROR);
    assert!(told().contains("1 objects and not 2"), "{}", told());
    let fresh = |id| {
        store.logout();
        assert!(store.login(Role::User, USER).is_err());
        store.read(id)
    };
    assert!(fresh(first).unwrap_or(None).is_none());
    let findings = examine(&late).1;
    let of = |id| findings.iter().any(|(row, _)| *row == Some(id));
    assert!(of(first) && of(second), "{findings:?}");
}

#[test]
fn a_search_finds_nothing_that_was_moved_or_damaged_and_all_else() {
    let Some(place) = Place::new("moved") else { return };
    let store = place.user();
    let (one, two) = (insert(&store, private("one")), insert(&store, private("two")));
    let (three, four) = (insert(&store, public("three")), insert(&store, public("four")));
    place.sql("CREATE TABLE lookup AS SELECT * FROM metaslot.lookup");
    place.sql("CREATE TABLE object AS SELECT * FROM metaslot.object");
    let is_not_found = |label: &str, change: &str, is_refused: bool| {
        // Later a login would refuse that there are fewer.
        let late = place.store();
        late.login(Role::User, USER).unwrap();
        place.sql(change);
        let query = [(CKA_LABEL, label.as_bytes().to_vec())];
        for scope in [Scope::Both, Scope::Private, Scope::Public] {
            match late.search(&query, scope, 0, 9) {
                Ok(found) => assert_eq!(found.len(), 0, "{change}"),
                Err(error) => assert_eq!(error, Error::DEVICE_ERROR),
            }
        }
        assert_eq!(late.search(&query, Scope::Both, 0, 9).is_err(), is_refused, "{change}");
        assert!(!examine(&late).1.is_empty(), "{change}");
        place.sql(
            "BEGIN; DELETE FROM metaslot.lookup; INSERT INTO metaslot.lookup SELECT * FROM lookup;
             DELETE FROM metaslot.object; INSERT INTO metaslot.object SELECT * FROM object; COMMIT",
        );
    };
    let is_refused = |label: &str, change: &str| is_not_found(label, change, true);
    let swapped = |a, b| {
        format!(
            "DELETE FROM metaslot.lookup WHERE object IN ({a}, {b});
             INSERT INTO metaslot.lookup SELECT token, value, {a} + {b} - object FROM lookup
              WHERE object IN ({a}, {b})"
        )
    };
    is_refused("one", &swapped(one, two));
    is_refused("three", &swapped(three, four));
    is_refused("three", &swapped(one, three));
    let added = "INSERT INTO metaslot.lookup SELECT token, value,";
    is_refused(
        "one",
        &format!("{added} {two} FROM lookup WHERE object = {one} ON CONFLICT DO NOTHING"),
    );
    is_refused("one", &format!("{added} 99 FROM lookup WHERE object = {one}"));
    is_not_found("one", &format!("DELETE FROM metaslot.object WHERE id = {one}"), false);
    is_not_found(
        "one",
        &format!(
            "DELETE FROM metaslot.object WHERE id = {two}; UPDATE metaslot.object SET id = {two} WHERE id = {one}"
        ),
        false,
    );
    let late = place.store();
    late.login(Role::User, USER).unwrap();
    assert_eq!(
        ["one", "two", "three", "four"].map(|label| find(&late, label)),
        [one, two, three, four].map(|id| vec![id])
    );
    // What is damaged hides no other that has the same label.
    let all: Vec<u64> = (0..4).map(|_| insert(&store, private("same"))).collect();
    for damage in ["attributes = '\\x00'", "tag = NULL", "version = -1"] {
        place.sql(&format!("UPDATE metaslot.object SET {damage} WHERE id = {}", all[1]));
        let late = place.store();
        late.login(Role::User, USER).unwrap();
        assert_eq!(find(&late, "same"), [all[0], all[2], all[3]], "{damage}");
        let query = [(CKA_LABEL, b"same".to_vec())];
        let two = late.search(&query, Scope::Private, 0, 2).unwrap();
        assert_eq!(two.iter().map(|found| found.id).collect::<Vec<_>>(), [all[0], all[2]]);
        assert_eq!(late.read(all[1]).unwrap_err(), Error::DEVICE_ERROR, "{damage}");
        assert!(told().contains(&format!("object {} is damaged", all[1])), "{}", told());
    }
}

/// What these write while the token's row is locked: each is written by a thread of its own, and all are waiting when it is
/// unlocked.
fn written_at_once(
    place: &Place,
    store: &PostgresStore,
    all: Vec<Vec<Change>>,
) -> Vec<Result<Vec<u64>, Error>> {
    let locked = "DO $$ BEGIN
                      PERFORM 1 FROM metaslot.token FOR UPDATE;
                      FOR i IN 1..3000 LOOP
                          PERFORM pg_sleep(0.01);
                          EXIT WHEN EXISTS(SELECT FROM pg_class WHERE relname = 'unlocked');
                      END LOOP;
                  END $$";
    thread::scope(|scope| {
        let locked = scope.spawn(|| place.sql(locked));
        until("the row is locked", || {
            place.sql("SELECT count(*) FROM pg_stat_activity WHERE wait_event = 'PgSleep'") == "1"
        });
        let all = all.into_iter().map(|changes| scope.spawn(move || store.write(changes)));
        let all = Vec::from_iter(all);
        until("all wait", || store.waiting() == all.len());
        place.sql("CREATE TABLE public.unlocked()");
        locked.join().unwrap();
        place.sql("DROP TABLE public.unlocked");
        all.into_iter().map(|one| one.join().unwrap()).collect()
    })
}

#[test]
fn what_threads_write_at_once_is_one_transaction_and_what_fails_fails_alone() {
    let Some(place) = Place::new("group") else { return };
    let store = place.user();
    let generation = || place.sql("SELECT generation FROM metaslot.token").parse::<u64>().unwrap();
    let label = |at: usize| format!("key {at}");
    let one = |at: usize| vec![Change::Insert(private(&label(at)))];
    let before = generation();
    let written = written_at_once(&place, &store, (0..8).map(one).collect());
    assert!(written.iter().all(Result::is_ok), "{written:?}");
    assert_eq!(generation(), before + 1);
    // One that finds no object, and one that the server refuses.
    place.sql("ALTER TABLE metaslot.object ADD CHECK(octet_length(attributes) < 4000)");
    let long = Record { attributes: vec![0; 4000], ..private("long") };
    let gone = Change::Delete { id: 1 << 40, version: 1, unique_id: None };
    let mut all: Vec<_> = (8..14).map(one).collect();
    all.insert(2, vec![Change::Insert(long)]);
    all.insert(5, vec![Change::Insert(private("never")), gone]);
    let written = written_at_once(&place, &store, all);
    let failed: Vec<_> = written.iter().map(|one| one.as_ref().err().copied()).collect();
    let mut expected = [None; 8];
    (expected[2], expected[5]) = (Some(Error::DEVICE_ERROR), Some(Error::OBJECT_HANDLE_INVALID));
    assert_eq!(failed, expected);
    for at in 0..14 {
        assert_eq!(find(&store, &label(at)).len(), 1);
    }
    assert!(find(&store, "never").is_empty());
    assert_eq!(examine(&store).0.rows, 14);
}

#[test]
fn pins_are_counted_before_they_are_tried_on_all_machines_together() {
    let Some(place) = Place::new("pins") else { return };
    let stores = [place.token(), place.store()];
    for (at, left) in [9, 8, 7].into_iter().enumerate() {
        let store = &stores[at % 2];
        assert_eq!(store.login(Role::User, b"wrong pin").unwrap_err(), Error::PIN_INCORRECT);
        assert!(told().contains(&format!("{left} attempts left")), "{}", told());
    }
    assert_eq!(place.sql("SELECT user_failures FROM metaslot.token"), "3");
    // The pause after three is a second, which a busy machine takes to ask again.
    let long = "UPDATE metaslot.token SET user_failures = 9, user_failed_at = extract(epoch FROM now())::bigint";
    place.sql(long);
    assert_eq!(stores[1].login(Role::User, USER).unwrap_err(), Error::PIN_LOCKED);
    assert!(told().contains("no PIN is taken before"), "{}", told());
    assert_eq!(place.sql("SELECT user_failures FROM metaslot.token"), "9");
    place.sql("UPDATE metaslot.token SET user_failures = 10");
    assert_eq!(stores[0].login(Role::User, USER).unwrap_err(), Error::PIN_LOCKED);
    stores[0].login(Role::So, SO).unwrap();
    stores[0].init_pin(b"another pin").unwrap();
    stores[1].login(Role::User, b"another pin").unwrap();
    stores[1].set_pin(Role::User, b"another pin", USER).unwrap();
    // As many machines at a time as would lock it.
    thread::scope(|scope| {
        for _ in 0..12 {
            scope.spawn(|| {
                let store = place.store();
                while let Err(error) = store.login(Role::User, USER) {
                    // Where one try takes a second the last has waited too long for its turn.
                    assert!(told().contains("for nine seconds"), "{error:?}: {}", told());
                }
            });
        }
    });
    assert_eq!(place.sql("SELECT user_failures FROM metaslot.token"), "0");
}

#[test]
fn an_attempt_that_dies_stays_counted() {
    let Some(place) = Place::new("dies") else { return };
    drop(place.token());
    place.sql(
        "CREATE FUNCTION die() RETURNS trigger LANGUAGE plpgsql AS
         'BEGIN IF new.user_failures = 0 AND old.user_failures > 0 THEN
              PERFORM pg_terminate_backend(pg_backend_pid()); END IF; RETURN new; END';
         CREATE TRIGGER die BEFORE UPDATE ON metaslot.token FOR EACH ROW EXECUTE FUNCTION die()",
    );
    assert_eq!(place.store().login(Role::User, USER).unwrap_err(), Error::DEVICE_ERROR);
    assert_eq!(place.sql("SELECT user_failures FROM metaslot.token"), "1");
    place.sql("DROP TRIGGER die ON metaslot.token");
    place.store().login(Role::User, USER).unwrap();
}

#[test]
fn a_machine_that_stops_keeps_others_neither_from_trying_pins_nor_from_writing_for_long() {
    let Some(place) = Place::new("holds") else { return };
    let store = place.token();
    place.sql(
        "CREATE TABLE public.seen(failures integer, timeout text, writing text);
         CREATE FUNCTION see() RETURNS trigger LANGUAGE plpgsql AS
         'BEGIN INSERT INTO public.seen VALUES(new.user_failures, current_setting(''idle_session_timeout''),
              current_setting(''idle_in_transaction_session_timeout'')); RETURN new; END';
         CREATE TRIGGER see BEFORE UPDATE ON metaslot.token FOR EACH ROW EXECUTE FUNCTION see()",
    );
    store.login(Role::User, USER).unwrap();
    assert_eq!(place.sql("SELECT timeout FROM seen WHERE failures = 1"), "30s");
    place.sql("DELETE FROM seen");
    insert(&store, private("key"));
    // Shorter than others wait for the row.
    assert_eq!(place.sql("SELECT DISTINCT timeout, writing FROM seen"), "0|5s");
}

#[test]
fn machines_write_at_the_same_time_and_hear_of_each_other() {
    let Some(place) = Place::new("machines") else { return };
    // Whatever the database has for others.
    place.sql("ALTER DATABASE postgres SET default_transaction_isolation = 'serializable'");
    let store = place.user();
    let first = insert(&store, private("first"));
    let other = place.store();
    other.login(Role::User, USER).unwrap();
    assert_eq!(other.secrets(first, 1).unwrap().expose(), b"secret of first");
    let before = other.generation();
    assert!(before.is_some_and(|number| number % 2 == 0));
    assert_eq!(other.generation(), before);
    thread::scope(|scope| {
        for name in ["a", "b", "c"] {
            let place = &place;
            scope.spawn(move || {
                let store = place.store();
                store.login(Role::User, USER).unwrap();
                for at in 0..20 {
                    insert(&store, private(&format!("{name} {at}")));
                }
            });
        }
    });
    until("the change is heard of", || other.generation() != before);
    until("the last is found", || {
        ["a 19", "b 19", "c 19"].iter().all(|name| find(&other, name).len() == 1)
    });
    store.write(vec![Change::Delete { id: first, version: 1, unique_id: None }]).unwrap();
    until("it is gone", || other.read(first).unwrap().is_none());
    assert_eq!(examine(&other).0.rows, 60);
}

#[test]
fn who_may_only_connect_keeps_no_change_from_a_machine() {
    let Some(place) = Place::new("tells") else { return };
    let store = place.user();
    let id = insert(&store, private("key"));
    let other = place.store();
    other.login(Role::User, USER).unwrap();
    other.secrets(id, 1).unwrap();
    // The next change is told before there is one.
    place.sql("SELECT pg_notify('metaslot', generation + 1 || ' test') FROM metaslot.token");
    thread::sleep(Duration::from_millis(200));
    other.secrets(id, 1).unwrap();
    store.write(vec![Change::Delete { id, version: 1, unique_id: None }]).unwrap();
    until("it is gone", || other.read(id).unwrap().is_none());
}

#[test]
fn a_token_is_made_anew_renamed_and_removed() {
    let Some(place) = Place::new("anew") else { return };
    let (store, other) = (place.user(), place.store());
    other.login(Role::User, USER).unwrap();
    let id = insert(&store, private("key"));
    assert_eq!(store.initialize(b"wrong so pin", "anew").unwrap_err(), Error::PIN_INCORRECT);
    store.initialize(SO, "anew").unwrap();
    until("the login is none", || !other.keeps_login());
    assert_eq!(
        other.write(vec![Change::Insert(private("no"))]).unwrap_err(),
        Error::USER_NOT_LOGGED_IN
    );
    assert!(find(&store, "key").is_empty());
    store.login(Role::So, SO).unwrap();
    assert!(insert(&store, public("next")) > id);
    let mut silent = |_: metaslot_spi::store::Remark<'_>| true;
    store.examine(Role::So, SO, Examination::Rename("other"), &mut silent).unwrap();
    assert_eq!(store.token().unwrap().label, "other");
    store.login(Role::So, SO).unwrap();
    store.examine(Role::So, SO, Examination::Remove("other"), &mut silent).unwrap();
    assert!(!other.token().unwrap().initialized);
    assert_eq!(place.sql("SELECT count(*) FROM metaslot.object"), "0");
}

#[test]
fn only_a_server_that_proves_its_name_is_told_a_password() {
    let Some(place) = Place::new("tls") else { return };
    place.certify("other-");
    let url = place.url();
    let others = [
        (url.replace("ca.pem", "other-ca.pem"), "certificate"),
        (url.replace("localhost", "127.0.0.1"), "certificate"),
        (url.replace("ca.pem", "none.pem"), "none.pem"),
    ];
    for (url, says) in others {
        let store = PostgresStore::new(Config { address: url.parse().unwrap(), ..place.config() });
        assert_eq!(store.token().unwrap_err(), Error::DEVICE_ERROR);
        let told = told();
        assert!(told.contains("the database cannot be reached: ") && told.contains(says), "{told}");
        assert!(!told.contains("password"), "{told}");
    }
}

#[test]
fn a_server_of_this_machine_is_reached_by_its_socket() {
    let Some(place) = Place::new("here") else { return };
    let store = place.user();
    let id = insert(&store, private("key"));
    let config = Config { address: place.url_here().parse().unwrap(), ..place.config() };
    let here = PostgresStore::new(config);
    here.login(Role::User, USER).unwrap_or_else(|error| panic!("{error:?}: {}", told()));
    assert_eq!(find(&here, "key"), [id]);
}

#[test]
fn tables_of_a_later_release_are_left_as_they_are() {
    let Some(place) = Place::new("newer") else { return };
    let store = place.token();
    place.sql("UPDATE metaslot.format SET version = 99");
    assert!(store.login(Role::User, USER).is_err());
    assert!(told().contains("version 99, newer than this release"), "{}", told());
    let second = place.url().replace("token=test", "token=second");
    let second = Config { address: second.parse().unwrap(), ..place.config() };
    assert!(PostgresStore::new(second).initialize(SO, "second").is_err());
    assert!(told().contains("version 99, newer than this release"), "{}", told());
    place.sql("UPDATE metaslot.format SET version = 0");
    assert!(store.login(Role::User, USER).is_err());
    assert!(told().contains("version 0, which no release has made"), "{}", told());
}

#[test]
fn several_tokens_share_a_database() {
    let Some(place) = Place::new("several") else { return };
    let first = place.user();
    let second = place.url().replace("token=test", "token=second");
    let second = Config { address: second.parse().unwrap(), ..place.config() };
    let second = PostgresStore::new(second);
    second.initialize(SO, "second").unwrap();
    second.login(Role::So, SO).unwrap();
    insert(&first, private("mine"));
    assert!(find(&second, "mine").is_empty());
    assert_eq!(second.token().unwrap().label, "second");
    assert_eq!(first.token().unwrap().label, "test token");
}

/// Nodes that are remembered are not read again; which others are needed a search does not know before it has found its rows.
#[test]
fn a_search_finds_what_it_is_after_whatever_it_knows_of_the_tree() {
    let Some(place) = Place::new("levels") else { return };
    let store = place.user();
    let mut labels = Vec::new();
    for next in [1, 5_000, 300_000] {
        place.sql(&format!("UPDATE metaslot.token SET next_id = {next}"));
        for at in 0..40 {
            let label = format!("{next} {at}");
            let record = if at % 2 == 0 { private(&label) } else { public(&label) };
            labels.push((insert(&store, record), label));
        }
    }
    let late = place.store();
    late.login(Role::User, USER).unwrap();
    // From here to there and back, and often enough at one place that only a row is asked for.
    let far = labels.iter().rev().step_by(40).chain(&labels[..17]).chain(&labels[72..90]);
    for (at, (id, label)) in far.enumerate() {
        assert_eq!(find(&late, label), [*id], "{label}");
        if at % 8 == 7 {
            insert(&store, public("one more"));
        }
    }
    // More than are asked for first, and another one than was written last among them.
    let class = [(CKA_CLASS, vec![3])];
    let found = |limit| {
        let found = late.search(&class, Scope::Both, 0, limit).unwrap();
        found.iter().map(|row| row.id).collect::<Vec<_>>()
    };
    let all = Vec::from_iter(labels.iter().map(|(id, _)| *id));
    assert_eq!(
        (found(16), found(17), found(100)),
        (all[..16].into(), all[..17].into(), all[..100].into())
    );
    let damaged = all[5];
    place.sql(&format!(
        "UPDATE metaslot.object SET version = version + 1 WHERE id = {damaged};
         UPDATE metaslot.token SET generation = generation + 1"
    ));
    place.sql("SELECT pg_notify('metaslot', generation || ' ' || name) FROM metaslot.token");
    until("it is left out", || !found(100).contains(&damaged));
    assert_eq!(found(100), [&all[..5], &all[6..101]].concat());
}

/// Among 22 objects 21 have the label at any moment.
#[test]
fn what_a_search_finds_is_of_one_moment_however_much_it_is() {
    let Some(place) = Place::new("moment") else { return };
    let writer = place.user();
    let mut all: Vec<_> = (0..21).map(|_| insert(&writer, private("many"))).collect();
    all.push(insert(&writer, private("other")));
    let reader = place.store();
    reader.login(Role::User, USER).unwrap();
    let is_over = AtomicBool::new(false);
    let swap = |version: u64| {
        let labels = if version % 2 == 1 { ["other", "many"] } else { ["many", "other"] };
        let ends = [all[0], all[21]].into_iter().zip(labels);
        let change = |(id, label)| Change::Update { id, version, record: private(label) };
        writer.write(ends.map(change).collect()).unwrap();
    };
    thread::scope(|scope| {
        let writes =
            scope.spawn(|| (1..).take_while(|_| !is_over.load(Ordering::Relaxed)).for_each(swap));
        // Each is asked for anew.
        let found = (0..500).map(|more| {
            let found = reader.search(&[(CKA_LABEL, b"many".to_vec())], Scope::Both, 0, 100 + more);
            found.map(|found| found.len())
        });
        let counts: Vec<_> = found.collect();
        is_over.store(true, Ordering::Relaxed);
        writes.join().unwrap();
        assert!(counts.iter().all(|count| *count == Ok(21)), "{counts:?}");
    });
}

/// The server says of what kind a row is that it finds.
#[test]
fn a_server_that_finds_private_rows_among_public_ones_is_not_believed() {
    let Some(place) = Place::new("kinds") else { return };
    let store = place.user();
    let (one, three) = (insert(&store, private("one")), insert(&store, public("three")));
    let late = place.store();
    late.login(Role::User, USER).unwrap();
    place.sql(&format!(
        "SET allow_system_table_mods = on;
         UPDATE metaslot.lookup l SET object = {one} WHERE object = {three} AND NOT EXISTS(
             SELECT 1 FROM metaslot.lookup b WHERE b.object = {one} AND b.value = l.value);
         CREATE FUNCTION public.yes(boolean) RETURNS bytea LANGUAGE sql IMMUTABLE AS $$ SELECT '\\x01'::bytea $$;
         UPDATE pg_type SET typsend = 'public.yes(boolean)'::regprocedure WHERE typname = 'bool'"
    ));
    for scope in [Scope::Public, Scope::Both] {
        let found = late.search(&[(CKA_LABEL, b"three".to_vec())], scope, 0, 9);
        assert!(found.is_err(), "{scope:?}: {found:?}");
    }
}

// SPDX-License-Identifier: Apache-2.0
//! What an attacker who can write the file, and knows no PIN or an old one, puts back, takes out or puts
//! in another's place. Each shows at the next login, or when the row is used; nothing passes.
#![expect(clippy::unwrap_used, reason = "a test fails where it cannot go on")]

mod common;

use common::{SO, Sandbox, USER, examine, find, insert, private, public};
use metaslot_ck::Error;
use metaslot_keystore::{Config, SqliteStore};
use metaslot_memory::Secret;
use metaslot_spi::store::{Change, Examination, Record, Remark, Role, Scope, Store};

const NEW: &[u8] = b"another-pin";

/// A hundred private rows and two public ones, and a copy of every table as it was then.
fn place() -> (Sandbox, SqliteStore, Vec<u64>) {
    let place = Sandbox::in_memory();
    let store = place.user();
    let label = |at| private(&format!("key {at}"));
    let changes = (0..100).map(|at| Change::Insert(label(at)));
    let mut ids = store.write(changes.collect()).unwrap();
    ids.extend((0..2).map(|at| insert(&store, public(&format!("certificate {at}")))));
    place
        .raw()
        .execute_batch(
            "CREATE TABLE old_token AS SELECT * FROM token;
             CREATE TABLE old_object AS SELECT * FROM object;
             CREATE TABLE old_lookup AS SELECT * FROM lookup;
             CREATE TABLE old_tree AS SELECT * FROM tree;",
        )
        .unwrap();
    (place, store, ids)
}

/// Row `id` as it was when the place was made.
fn put_back(place: &Sandbox, id: u64) {
    place
        .raw()
        .execute_batch(&format!(
            "INSERT OR REPLACE INTO object SELECT * FROM old_object WHERE id = {id};
             DELETE FROM lookup WHERE object = {id};
             INSERT INTO lookup SELECT * FROM old_lookup WHERE object = {id};"
        ))
        .unwrap();
}

fn change(store: &SqliteStore, id: u64, label: &str) {
    store.write(vec![Change::Update { id, version: 1, record: private(label) }]).unwrap();
}

/// What the store says of a refused login.
fn refused(store: &SqliteStore, role: Role, pin: &[u8]) -> String {
    assert_eq!(store.login(role, pin).unwrap_err(), Error::DEVICE_ERROR);
    assert_eq!(store.search(&[], Scope::Private, 0, 1).unwrap(), [], "no user is logged in");
    store.last_error().unwrap()
}

/// What the store says of a row that it does not give.
fn unread(store: &SqliteStore, id: u64) -> String {
    assert_eq!(store.read(id).unwrap_err(), Error::DEVICE_ERROR);
    store.last_error().unwrap()
}

#[test]
fn an_old_row_put_back_is_refused() {
    let (place, store, ids) = place();
    change(&store, ids[5], "key 5, which must not be extracted");
    put_back(&place, ids[5]);
    for _ in 0..2 {
        let text = unread(&store, ids[5]);
        assert!(text.contains("is not the row that was last written"), "{text}");
        let update = Change::Update { id: ids[5], version: 1, record: private("key 5") };
        assert_eq!(store.write(vec![update]).unwrap_err(), Error::DEVICE_ERROR);
        assert!(store.read(ids[6]).unwrap().unwrap().verified);
        assert_eq!(store.verify().unwrap().findings[0].0, Some(ids[5]));
        // The same after another login.
        store.logout();
        store.login(Role::User, USER).unwrap();
    }
}

#[test]
fn a_row_of_another_history_is_refused_when_its_secrets_are_read() {
    let (place, store, ids) = place();
    let id = ids[5];
    // What happened before a backup was restored.
    let other = Sandbox::in_memory();
    copy(&place, &other);
    let before = other.store();
    before.login(Role::User, USER).unwrap();
    change(&before, id, "what it was once");
    drop(before);
    change(&store, id, "what it is");
    assert!(store.read(id).unwrap().is_some());
    assert!(store.secrets(id, 2).is_ok());
    let raw = place.raw();
    raw.execute("ATTACH ?1 AS other", [other.database().to_str().unwrap()]).unwrap();
    let swap = "INSERT OR REPLACE INTO object SELECT * FROM other.object WHERE id = ?1";
    raw.execute(swap, [id.cast_signed()]).unwrap();
    assert_eq!(store.secrets(id, 2).unwrap_err(), Error::DEVICE_ERROR);
    assert!(store.last_error().unwrap().contains("not the row that was last written"));
}

#[test]
fn a_destroyed_row_put_back_is_refused() {
    let (place, store, ids) = place();
    store.write(vec![Change::Delete { id: ids[7], version: 1, unique_id: None }]).unwrap();
    assert!(store.read(ids[7]).unwrap().is_none());
    put_back(&place, ids[7]);
    assert!(unread(&store, ids[7]).contains("is not the row that was last written"));
    store.logout();
    let text = refused(&store, Role::User, USER);
    assert!(text.contains("it has 102 objects and not 101"), "{text}");
    assert!(text.contains("metaslot token verify"), "{text}");
}

#[test]
fn an_old_row_with_its_hashes_is_refused() {
    let (place, store, ids) = place();
    change(&store, ids[5], "key 5, which must not be extracted");
    put_back(&place, ids[5]);
    place.raw().execute_batch("DELETE FROM tree; INSERT INTO tree SELECT * FROM old_tree").unwrap();
    let text = unread(&store, ids[5]);
    assert!(text.contains("tree of hashes was changed"), "{text}");
    assert!(!store.verify().unwrap().is_sound());
}

#[test]
fn a_deleted_row_shows() {
    let (place, store, ids) = place();
    let raw = place.raw();
    let id = ids[4].cast_signed();
    raw.execute("DELETE FROM object WHERE id = ?1", [id]).unwrap();
    raw.execute("DELETE FROM lookup WHERE object = ?1", [id]).unwrap();
    assert!(unread(&store, ids[4]).contains("it was taken out of the file"));
    assert_eq!(store.verify().unwrap().findings[0].0, Some(ids[4]));
    store.logout();
    assert!(refused(&store, Role::User, USER).contains("it has 101 objects and not 102"));
    assert!(refused(&store, Role::So, SO).contains("it has 101 objects and not 102"));
    // A person looks at it, and goes on with what is there.
    let (examined, findings) = examine(&store, USER, false).unwrap();
    assert_eq!((examined.rows, examined.removed, findings[0].0), (101, 0, Some(ids[4])));
    assert!(refused(&store, Role::User, USER).contains("it has 101 objects"));
    examine(&store, USER, true).unwrap();
    store.login(Role::User, USER).unwrap();
    assert!(store.verify().unwrap().is_sound());
    assert!(store.read(ids[4]).unwrap().is_none());
    assert_eq!(insert(&store, private("one more")), ids[101] + 1, "no id is given twice");
}

#[test]
fn a_deleted_row_that_another_hides_shows_when_it_is_used() {
    let (place, store, ids) = place();
    place
        .raw()
        .execute_batch(&format!(
            "UPDATE object SET id = 1000 WHERE id = {}; UPDATE token SET next_id = 1001",
            ids[4]
        ))
        .unwrap();
    store.logout();
    store.login(Role::User, USER).unwrap();
    assert!(unread(&store, ids[4]).contains("it was taken out"));
    assert!(unread(&store, 1000).contains("is not the row that was last written"));
    assert_eq!(store.verify().unwrap().findings.len(), 2);
}

#[test]
fn an_unverified_row_in_the_place_of_a_verified_one_is_refused() {
    let (place, store, ids) = place();
    let strip = "UPDATE object SET verified = 0, tag = NULL, attributes = x'00' WHERE id = ?1";
    place.raw().execute(strip, [ids[100].cast_signed()]).unwrap();
    let text = unread(&store, ids[100]);
    assert!(text.contains("it was put there without a login"), "{text}");
    let update = Change::Update { id: ids[100], version: 1, record: public("certificate 0") };
    assert_eq!(store.write(vec![update]).unwrap_err(), Error::DEVICE_ERROR);
    // A private row cannot pass so at all.
    place.raw().execute(strip, [ids[0].cast_signed()]).unwrap();
    assert_eq!(store.read(ids[0]).unwrap_err(), Error::DEVICE_ERROR);
    store.logout();
    assert!(!store.read(ids[100]).unwrap().unwrap().verified, "it cannot be known before login");
    assert!(refused(&store, Role::User, USER).contains("it has 100 objects and not 102"));
}

#[test]
fn a_row_that_was_read_before_login_is_looked_at_again_after_it() {
    let (place, store, ids) = place();
    store.logout();
    let forge = "UPDATE object SET attributes = x'00' WHERE id = ?1";
    place.raw().execute(forge, [ids[100].cast_signed()]).unwrap();
    assert_eq!(store.read(ids[100]).unwrap().unwrap().attributes, [0]);
    store.login(Role::User, USER).unwrap();
    assert!(unread(&store, ids[100]).contains("its authentication tag does not match"));
}

#[test]
fn a_lowered_next_id_is_refused() {
    let (place, store, ids) = place();
    let lower = |to: u64| place.raw().execute("UPDATE token SET next_id = ?1", [to.cast_signed()]);
    lower(ids[0]).unwrap();
    let insert = store.write(vec![Change::Insert(private("over another"))]);
    assert_eq!(insert.unwrap_err(), Error::DEVICE_ERROR);
    assert!(store.last_error().unwrap().contains("the number of its next object was changed"));
    store.logout();
    let text = refused(&store, Role::User, USER);
    assert!(text.contains("the number of its next object was changed"), "{text}");
    lower(u64::MAX >> 1).unwrap();
    assert!(refused(&store, Role::User, USER).contains("the number of its next object"));
    examine(&store, USER, true).unwrap();
    store.login(Role::User, USER).unwrap();
    assert_eq!(common::insert(&store, private("the next")), ids[101] + 1);
}

#[test]
fn what_is_written_before_login_raises_the_next_id_and_nothing_else() {
    let (_place, store, ids) = place();
    store.logout();
    let open = insert(&store, public("before login"));
    store.login(Role::User, USER).unwrap();
    assert_eq!(open, ids[101] + 1);
    assert!(!store.read(open).unwrap().unwrap().verified);
    assert_eq!(insert(&store, private("after it")), open + 1);
    change(&store, open, "adopted");
    assert!(store.read(open).unwrap().unwrap().verified);
    let report = store.verify().unwrap();
    assert!(report.is_sound(), "{report:?}");
}

fn reopened(place: &Sandbox, store: SqliteStore) -> SqliteStore {
    drop(store);
    SqliteStore::new(place.config())
}

/// None of these is anything that a store ever writes.
#[test]
fn what_no_store_writes_is_found_and_taken_out() {
    for (edit, what) in [
        (
            "INSERT INTO object SELECT 9223372036854775807, version, 0, 0, attributes, NULL, terms, NULL FROM object LIMIT 1",
            "no object has its number yet",
        ),
        ("UPDATE tree SET entries = 'text'", "the hashes of objects 0 to 63 were changed"),
        ("INSERT INTO lookup VALUES ('text', -1)", "its index was changed"),
    ] {
        let (place, store, _) = place();
        store.logout();
        place.raw().execute_batch(edit).unwrap();
        let (_, found) = examine(&store, USER, true).unwrap();
        assert!(found.iter().any(|found| found.1.contains(what)), "{edit}: {found:?}");
        store.login(Role::User, USER).unwrap();
        assert!(store.verify().unwrap().is_sound(), "{edit}");
        insert(&store, private("after it"));
    }
}

#[test]
fn a_trigger_in_the_file_makes_no_change_vanish() {
    let (place, store, ids) = place();
    for table in ["object", "token", "tree"] {
        for event in ["UPDATE", "DELETE", "INSERT"] {
            let trigger = format!(
                "CREATE TRIGGER {table}_{event} BEFORE {event} ON {table} BEGIN SELECT RAISE(IGNORE); END"
            );
            place.raw().execute_batch(&trigger).unwrap();
        }
    }
    let store = reopened(&place, store);
    store.login(Role::User, USER).unwrap();
    change(&store, ids[0], "changed");
    let more = insert(&store, private("one more"));
    store.set_pin(Role::User, USER, NEW).unwrap();
    let store = reopened(&place, store);
    store.login(Role::User, NEW).unwrap();
    assert!(store.read(more).unwrap().is_some());
    assert!(store.read(ids[0]).unwrap().unwrap().version > 1);
    assert!(store.verify().unwrap().is_sound());
}

/// Each creation after the first does not happen, and is no error.
const FORGETFUL: &str = "
    CREATE TABLE copy(id INTEGER PRIMARY KEY, version INTEGER NOT NULL, private INTEGER NOT NULL,
        verified INTEGER NOT NULL, attributes BLOB NOT NULL, secrets BLOB, terms BLOB NOT NULL,
        tag BLOB, old INTEGER AS (CASE WHEN id > 102 THEN 0 ELSE id END) STORED,
        UNIQUE(old) ON CONFLICT IGNORE);
    INSERT INTO copy SELECT * FROM object; DROP TABLE object; ALTER TABLE copy RENAME TO object;";

#[test]
fn a_table_that_forgets_what_is_written_makes_the_call_fail() {
    let (place, store, ids) = place();
    place.raw().execute_batch(FORGETFUL).unwrap();
    let refused = [
        store.write(vec![Change::Insert(private("forgotten"))]).unwrap_err(),
        store.write(vec![Change::Delete { id: ids[0], version: 1, unique_id: None }]).unwrap_err(),
        store.set_pin(Role::User, USER, b"forgotten").unwrap_err(),
    ];
    assert_eq!(refused, [Error::TOKEN_NOT_RECOGNIZED; 3]);
    let text = store.last_error().unwrap();
    assert!(text.contains("tables or indexes are not those that were made"), "{text}");
}

#[test]
fn a_store_that_a_later_release_has_taken_over_is_left_as_it_is() {
    let (place, store, ids) = place();
    place.raw().execute_batch("PRAGMA user_version = 4").unwrap();
    let rows = || -> u32 {
        place.raw().query_row("SELECT count(*) FROM object", (), |row| row.get(0)).unwrap()
    };
    let before = rows();
    let refused = store.write(vec![Change::Insert(private("of the old format"))]).unwrap_err();
    assert_eq!(refused, Error::TOKEN_NOT_RECOGNIZED);
    assert!(store.last_error().unwrap().contains("format 4 is newer"));
    assert!(store.write(vec![Change::Delete { id: ids[0], version: 1, unique_id: None }]).is_err());
    assert_eq!(rows(), before);
}

#[test]
fn a_token_that_is_said_to_be_of_no_version_is_not_made_anew() {
    let (place, store, _) = place();
    drop(store);
    place.raw().execute_batch("PRAGMA user_version = 0").unwrap();
    let store = place.store();
    assert_eq!(store.token().unwrap_err(), Error::TOKEN_NOT_RECOGNIZED);
    assert!(store.initialize(SO, "anew").is_err());
    place.raw().execute_batch("PRAGMA user_version = 2").unwrap();
    place.store().login(Role::User, USER).unwrap();
}

#[test]
fn tables_that_are_defined_otherwise_are_refused() {
    let definitions = [
        FORGETFUL,
        // Each count of an attempt would take minutes.
        "CREATE INDEX slow ON token(length(hex(zeroblob(100000000))) + user_failures);",
        "ALTER TABLE object RENAME TO hidden; CREATE VIEW object AS SELECT * FROM hidden;",
        "DROP TABLE lookup;",
        "ALTER TABLE token ADD COLUMN more CHECK(user_failures = 0);",
    ];
    for definition in definitions {
        let (place, store, _) = place();
        drop(store);
        place.raw().execute_batch(definition).unwrap();
        let store = place.store();
        let refused = store.login(Role::User, USER).unwrap_err();
        assert_eq!(refused, Error::TOKEN_NOT_RECOGNIZED, "{definition}");
        let text = store.last_error().unwrap();
        assert!(text.contains("tables or indexes are not those that were made"), "{text}");
    }
}

#[test]
fn the_old_pin_put_back_is_refused() {
    let (place, store, _) = place();
    store.set_pin(Role::User, USER, NEW).unwrap();
    store.logout();
    let put_back = |column: &str| {
        place
            .raw()
            .execute_batch(&format!("UPDATE token SET {column} = (SELECT {column} FROM old_token)"))
            .unwrap();
    };
    put_back("user_wrap");
    let text = refused(&store, Role::User, USER);
    assert!(text.contains("the user PIN is not the one that was last set"), "{text}");
    assert_eq!(store.check_pin(Role::User, USER).unwrap_err(), Error::DEVICE_ERROR);
    // Neither a change nor a repair makes it the right one.
    assert_eq!(store.set_pin(Role::User, USER, b"and-another").unwrap_err(), Error::DEVICE_ERROR);
    assert_eq!(examine(&store, USER, true).unwrap_err(), Error::DEVICE_ERROR);
    assert!(store.last_error().unwrap().contains("cannot be repaired"));
    refused(&store, Role::User, USER);
    // Nothing else has changed since: with this the whole file is the old one.
    put_back("row_set");
    store.login(Role::User, USER).unwrap();
    assert!(store.verify().unwrap().is_sound());
}

#[test]
fn the_officer_sets_a_new_pin_where_an_old_one_was_put_back() {
    let (place, store, ids) = place();
    store.set_pin(Role::User, USER, NEW).unwrap();
    store.logout();
    let put_back = "UPDATE token SET user_wrap = (SELECT user_wrap FROM old_token)";
    place.raw().execute_batch(put_back).unwrap();
    assert!(refused(&store, Role::User, USER).contains("the SO can set a new one"));
    store.login(Role::So, SO).unwrap();
    store.init_pin(b"and-another").unwrap();
    store.logout();
    store.login(Role::User, b"and-another").unwrap();
    assert!(store.read(ids[0]).unwrap().unwrap().verified);
    assert!(store.verify().unwrap().is_sound());
}

#[test]
fn the_old_row_of_the_token_is_refused_once_objects_have_changed() {
    let (place, store, ids) = place();
    store.set_pin(Role::User, USER, NEW).unwrap();
    insert(&store, private("one more"));
    change(&store, ids[0], "changed");
    store.logout();
    let raw = place.raw();
    raw.execute_batch("DELETE FROM token; INSERT INTO token SELECT * FROM old_token").unwrap();
    assert!(refused(&store, Role::User, USER).contains("it has 103 objects and not 102"));
    raw.execute("DELETE FROM object WHERE id > ?1", [ids[101].cast_signed()]).unwrap();
    store.login(Role::User, USER).unwrap();
    unread(&store, ids[0]);
    assert!(unread(&store, ids[1]).contains("tree of hashes was changed"));
}

#[test]
fn a_changed_row_of_the_token_is_refused() {
    for (change, said) in [
        ("label = 'another'", "its label was changed"),
        ("row_set = zeroblob(92)", "its own row was changed or is damaged"),
        ("row_set = substr(row_set, 1, 40)", "its own row was changed or is damaged"),
        ("so_wrap = user_wrap", "the SO PIN is not the one"),
        ("user_wrap = user_wrap, key_id = zeroblob(16)", "the name of its key was changed"),
    ] {
        let (place, store, _) = place();
        place.raw().execute_batch(&format!("UPDATE token SET {change}")).unwrap();
        store.logout();
        let text = refused(&store, Role::User, USER);
        assert!(text.contains(said), "{text}");
        assert!(examine(&store, USER, false).unwrap().1[0].0.is_none());
    }
}

#[test]
fn a_store_that_is_said_to_be_older_is_refused() {
    let (place, store, ids) = place();
    change(&store, ids[5], "key 5, which must not be extracted");
    put_back(&place, ids[5]);
    store.logout();
    drop(store);
    place.raw().execute_batch("PRAGMA user_version = 1").unwrap();
    let store = place.store();
    assert!(refused(&store, Role::User, USER).contains("its set hash was changed"));
    assert_eq!(examine(&store, USER, true).unwrap_err(), Error::DEVICE_ERROR);
}

#[test]
fn a_repair_takes_out_what_is_damaged_and_nothing_else() {
    let (place, store, ids) = place();
    change(&store, ids[5], "key 5, which must not be extracted");
    put_back(&place, ids[5]);
    let raw = place.raw();
    raw.execute("UPDATE object SET secrets = zeroblob(40) WHERE id = ?1", [ids[9].cast_signed()])
        .unwrap();
    raw.execute("UPDATE object SET terms = 7 WHERE id = ?1", [ids[10].cast_signed()]).unwrap();
    raw.execute("INSERT INTO object SELECT -5, 1, 0, 0, x'', NULL, x'', NULL", ()).unwrap();
    store.logout();
    let (examined, findings) = examine(&store, USER, false).unwrap();
    let named: Vec<u64> = findings.iter().filter_map(|(id, _)| *id).collect();
    assert_eq!((&named[..], findings.len()), (&[ids[5], ids[9], ids[10]][..], 4));
    assert_eq!((examined.rows, examined.removed), (102, 0));
    assert_eq!(examine(&store, USER, true).unwrap().0.removed, 3);
    store.login(Role::User, USER).unwrap();
    let report = store.verify().unwrap();
    assert!(report.is_sound(), "{report:?}");
    assert_eq!(report.examined.rows, 99);
    assert_eq!(find(&store, "key 5"), []);
    assert_eq!(store.secrets(ids[8], 1).unwrap().len(), 15);
    assert_eq!(store.restored().unwrap(), 0, "what is left is as it was");
}

#[test]
fn a_damaged_hash_stops_its_rows_until_they_are_looked_at() {
    let (place, store, ids) = place();
    let first = "UPDATE tree SET entries = zeroblob(length(entries)) WHERE node = 0";
    place.raw().execute(first, ()).unwrap();
    unread(&store, ids[0]);
    assert!(store.read(ids[80]).unwrap().unwrap().verified, "its hashes are others");
    insert(&store, private("one more"));
    let findings = store.verify().unwrap().findings;
    assert!(findings[0].1.contains("the hashes of objects 0 to 63"), "{findings:?}");
    examine(&store, USER, true).unwrap();
    assert_ne!(store.restored().unwrap(), 0, "what is counted in its rows may be older");
    assert!(store.read(ids[0]).unwrap().unwrap().verified);
    assert!(store.verify().unwrap().is_sound());
}

#[test]
fn a_check_ends_when_its_caller_says_so() {
    let (place, store, ids) = place();
    place.raw().execute("DELETE FROM object WHERE id = ?1", [ids[0].cast_signed()]).unwrap();
    let ended = store.examine(Role::User, USER, Examination::Repair, &mut |_| false);
    assert_eq!(ended.unwrap_err(), Error::FUNCTION_CANCELED);
    // The last remark comes when everything is found, and nothing is repaired yet.
    let mut last = None;
    let ended = store.examine(Role::User, USER, Examination::Repair, &mut |remark| match remark {
        Remark::Progress { done, total } => {
            last = Some((done, total));
            done < total
        }
        Remark::Finding { .. } | Remark::Identity(..) => true,
    });
    assert_eq!(last, Some((101, 101)));
    assert_eq!(ended.unwrap_err(), Error::FUNCTION_CANCELED);
    assert!(!store.verify().unwrap().is_sound());
    assert_eq!(store.verify().unwrap().examined.rows, 101);
}

#[test]
fn rows_of_many_leaves_come_and_go() {
    let place = Sandbox::in_memory();
    let store = place.user();
    let mut there = Vec::new();
    for round in 0..40_u64 {
        let changes = (0..150).map(|at| Change::Insert(private(&format!("{round} {at}"))));
        there.extend(store.write(changes.collect()).unwrap());
        let gone: Vec<u64> = there.iter().copied().filter(|id| id % 7 == round % 7).collect();
        there.retain(|id| !gone.contains(id));
        let deletes = gone.iter().map(|id| Change::Delete { id: *id, version: 1, unique_id: None });
        store.write(deletes.collect()).unwrap();
    }
    let report = store.verify().unwrap();
    assert!(report.is_sound(), "{report:?}");
    assert_eq!(report.examined.rows, there.len() as u64);
    for id in &there {
        assert!(store.read(*id).unwrap().unwrap().verified);
    }
    store.logout();
    store.login(Role::User, USER).unwrap();
    let deletes = there.iter().map(|id| Change::Delete { id: *id, version: 1, unique_id: None });
    store.write(deletes.collect()).unwrap();
    let left: i64 =
        place.raw().query_row("SELECT count(*) FROM tree", (), |row| row.get(0)).unwrap();
    assert_eq!(left, 0);
    assert!(store.verify().unwrap().is_sound());
}

#[test]
fn nested_templates_without_end_are_an_error() {
    let mut bytes: Vec<u8> = Vec::new();
    // Each template holds the next: written from the innermost, which is nothing.
    let mut heads = Vec::new();
    for length in (0..100_000_u32).map(|depth| depth * 13) {
        heads.push([&1_u64.to_le_bytes()[..], &[4], &length.to_le_bytes()].concat());
    }
    bytes.extend(heads.iter().rev().flatten());
    let place = Sandbox::in_memory();
    let store = place.token();
    let record = Record { attributes: bytes, secrets: None::<Secret>, ..public("deep") };
    let id = insert(&store, record);
    let row = store.read(id).unwrap().unwrap();
    let decoded = metaslot_spi::Attributes::decode(&row.attributes);
    assert_eq!(decoded.unwrap_err(), Error::DATA_INVALID);
}

/// A copy of the whole store: the database and its log.
fn copy(place: &Sandbox, to: &Sandbox) {
    std::fs::create_dir_all(to.path()).unwrap();
    for name in ["token.db", "token.db-wal", "token.db-shm"] {
        std::fs::copy(place.path().join(name), to.path().join(name)).unwrap();
    }
}

/// A token with an anchor beside its directory.
fn anchored() -> (Sandbox, Sandbox, Config) {
    let (place, outside) = (Sandbox::in_memory(), Sandbox::in_memory());
    std::fs::create_dir_all(outside.path()).unwrap();
    let anchor = outside.path().join("anchor");
    std::fs::write(&anchor, "").unwrap();
    let config = Config { anchor: Some(anchor), ..place.config() };
    (place, outside, config)
}

#[test]
fn a_store_that_is_older_than_its_anchor_is_refused() {
    let (place, _outside, config) = anchored();
    let anchor = config.anchor.clone().unwrap();
    let store = SqliteStore::new(config.clone());
    common::initialize(&store);
    store.login(Role::User, USER).unwrap();
    insert(&store, private("one"));
    store.logout();
    let old = Sandbox::in_memory();
    copy(&place, &old);
    for step in 0..2 {
        store.login(Role::User, USER).unwrap();
        match step {
            0 => drop(insert(&store, private("two"))),
            _ => store.set_pin(Role::User, USER, NEW).unwrap(),
        }
        store.logout();
        let back = Sandbox::in_memory();
        copy(&old, &back);
        let aged = SqliteStore::new(Config { anchor: config.anchor.clone(), ..back.config() });
        let text = refused(&aged, Role::User, USER);
        assert!(text.contains("this is an older file"), "{text}");
        assert!(examine(&aged, USER, false).unwrap().1[0].1.contains("this is an older file"));
        assert_eq!(examine(&aged, SO, true).unwrap_err(), Error::DEVICE_ERROR);
        let text = aged.last_error().unwrap();
        assert!(text.contains("empty the anchor to go on") && !text.contains("repaired"), "{text}");
        refused(&aged, Role::So, SO);
        // A process that has looked at it goes on with it.
        let kept = std::fs::read(&anchor).unwrap();
        std::fs::write(&anchor, "").unwrap();
        aged.login(Role::User, USER).unwrap();
        std::fs::write(&anchor, kept).unwrap();
    }
    store.login(Role::User, NEW).unwrap();
    store.logout();
    store.initialize(SO, "anew").unwrap();
    store.login(Role::So, SO).unwrap();
    assert!(store.verify().unwrap().is_sound());
}

#[test]
fn a_store_that_is_newer_than_its_anchor_moves_it_on() {
    let (place, _outside, config) = anchored();
    let anchor = config.anchor.clone().unwrap();
    let store = SqliteStore::new(config);
    common::initialize(&store);
    store.login(Role::User, USER).unwrap();
    let before = std::fs::read(&anchor).unwrap();
    insert(&store, private("one"));
    let after = std::fs::read(&anchor).unwrap();
    assert_ne!(before, after, "it is written with each change");
    // As after a crash between the commit and the anchor.
    std::fs::write(&anchor, before).unwrap();
    store.logout();
    store.login(Role::User, USER).unwrap();
    assert_eq!(std::fs::read(&anchor).unwrap(), after);
    // Another file with as many changes is not the same.
    let mut other = after;
    other[47] ^= 1;
    std::fs::write(&anchor, &other).unwrap();
    store.logout();
    assert!(refused(&store, Role::User, USER).contains("has seen another change"));
    other[0] ^= 1;
    std::fs::write(&anchor, &other).unwrap();
    assert!(refused(&store, Role::User, USER).contains("is another token's"));
    std::fs::remove_file(&anchor).unwrap();
    assert!(refused(&store, Role::User, USER).contains("the anchor is missing"));
    drop(place);
}

#[test]
fn a_row_without_measure_is_an_error_of_that_row() {
    let (place, store, ids) = place();
    let stretch = |to: &str, id: u64| {
        let change = format!("UPDATE object SET attributes = {to} WHERE id = {id}");
        place.raw().execute(&change, ()).unwrap();
    };
    stretch("7", ids[1]);
    assert!(unread(&store, ids[1]).contains("object 2 is damaged: a column has the wrong type"));
    stretch("zeroblob(280000000)", ids[2]);
    assert!(unread(&store, ids[2]).contains("object 3 is damaged: it is too long"));
    let found = store.verify().unwrap().findings;
    let named: Vec<Option<u64>> = found.iter().map(|(id, _)| *id).collect();
    assert_eq!(named, [Some(ids[1]), Some(ids[2])], "{found:?}");
    assert!(store.read(ids[3]).unwrap().unwrap().verified);
}

#[test]
fn nothing_is_written_where_the_anchor_cannot_follow() {
    let place = Sandbox::in_memory();
    let outside = Sandbox::in_memory();
    std::fs::create_dir_all(outside.path()).unwrap();
    let anchor = outside.path().join("anchor");
    let store = SqliteStore::new(Config { anchor: Some(anchor.clone()), ..place.config() });
    // It is missing, or another token's: no token is made.
    let another = [[9; 8].as_slice(), &[0; 40]].concat();
    for (wrong, reason) in [(None, "the anchor is missing"), (Some(another), "another token's")] {
        if let Some(wrong) = wrong {
            std::fs::write(&anchor, wrong).unwrap();
        }
        assert_eq!(store.initialize(SO, "test token").unwrap_err(), Error::DEVICE_ERROR);
        assert!(store.last_error().unwrap().contains(reason));
        assert!(!place.path().exists(), "nothing is left behind");
    }
    // One that is empty has seen the token from its first moment on.
    std::fs::write(&anchor, "").unwrap();
    common::initialize(&store);
    let so = std::fs::read(&anchor).unwrap();
    assert_eq!(so.len(), 48);
    store.login(Role::User, USER).unwrap();
    let id = insert(&store, private("kept"));
    let seen = std::fs::read(&anchor).unwrap();
    // Without it no change is made that is then said to have failed.
    std::fs::remove_file(&anchor).unwrap();
    let refused = store.write(vec![Change::Insert(private("lost"))]);
    assert_eq!(refused.unwrap_err(), Error::DEVICE_ERROR);
    assert!(store.set_pin(Role::User, USER, NEW).is_err());
    assert!(store.initialize(SO, "anew").is_err());
    std::fs::write(&anchor, seen).unwrap();
    store.login(Role::User, USER).unwrap();
    assert_eq!(common::ids(&store, &[], Scope::Both, 0, 9), [id]);
    assert_eq!(store.token().unwrap().label, "test token");
}

#[test]
fn no_change_makes_an_old_store_newer_than_its_anchor() {
    let (place, _outside, config) = anchored();
    let store = SqliteStore::new(config.clone());
    common::initialize(&store);
    store.login(Role::User, USER).unwrap();
    let [old, kept] = [(); 2].map(|()| Sandbox::in_memory());
    copy(&place, &old);
    copy(&place, &kept);
    store.set_pin(Role::User, USER, NEW).unwrap();
    let aged = SqliteStore::new(Config { anchor: config.anchor, ..old.config() });
    aged.set_pin(Role::User, USER, b"a third pin").unwrap_err();
    aged.set_pin(Role::User, b"a third pin", USER).unwrap_err();
    refused(&aged, Role::User, USER);
    // The old files come under a login that is there already.
    for name in ["token.db", "token.db-wal", "token.db-shm"] {
        std::fs::rename(kept.path().join(name), place.path().join(name)).unwrap();
    }
    for version in [2, 1] {
        // The format before this one had no count of changes.
        place.raw().pragma_update(None, "user_version", version).unwrap();
        for label in ["one", "two", "three"] {
            store.write(vec![Change::Insert(private(label))]).unwrap_err();
            store.write(vec![Change::Insert(public(label))]).unwrap_err();
        }
    }
    refused(&store, Role::User, USER);
}

#[test]
fn no_pin_is_set_in_a_store_that_is_said_to_be_older() {
    let (place, _outside, config) = anchored();
    let store = SqliteStore::new(config);
    common::initialize(&store);
    store.login(Role::So, SO).unwrap();
    place.raw().pragma_update(None, "user_version", 1).unwrap();
    store.init_pin(NEW).unwrap_err();
    place.raw().pragma_update(None, "user_version", 2).unwrap();
    store.init_pin(NEW).unwrap();
}

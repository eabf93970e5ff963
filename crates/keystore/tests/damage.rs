// SPDX-License-Identifier: Apache-2.0
//! What an attacker who writes the file can do, and how it shows.
#![expect(clippy::unwrap_used, reason = "a test fails where it cannot go on")]

mod common;

use common::{Sandbox, USER, examine, find, insert, private, public};
use metaslot_ck::Error;
use metaslot_keystore::SqliteStore;
use metaslot_spi::store::{Change, Found, Role, Scope, Store};
use std::fs;

/// Ten private rows and two public ones, checked.
fn place() -> (Sandbox, SqliteStore, Vec<u64>) {
    let place = Sandbox::new();
    let store = place.user();
    let mut ids: Vec<u64> =
        (0..10).map(|at| insert(&store, private(&format!("key {at}")))).collect();
    ids.extend((0..2).map(|at| insert(&store, public(&format!("certificate {at}")))));
    let report = store.verify().unwrap();
    assert!(report.is_sound(), "{report:?}");
    assert_eq!((report.examined.rows, report.examined.unverified), (12, 0));
    (place, store, ids)
}

/// The rows with which something is wrong.
fn found(store: &SqliteStore) -> Vec<u64> {
    store.verify().unwrap().findings.into_iter().map(|(id, _)| id.unwrap_or(0)).collect()
}

#[test]
fn a_damaged_row_fails_alone_and_is_named() {
    let (place, store, ids) = place();
    place
        .raw()
        .execute(
            "UPDATE object SET attributes = zeroblob(length(attributes)) WHERE id = ?1",
            [ids[3].cast_signed()],
        )
        .unwrap();
    assert_eq!(store.read(ids[3]).unwrap_err(), Error::DEVICE_ERROR);
    let text = store.last_error().unwrap();
    assert!(text.contains(&format!("object {} is damaged", ids[3])), "{text}");
    assert_eq!(store.secrets(ids[3], 1).unwrap_err(), Error::DEVICE_ERROR);
    for id in ids.iter().filter(|id| **id != ids[3]) {
        assert!(store.read(*id).unwrap().unwrap().verified);
    }
    assert_eq!(found(&store), [ids[3]]);
    // It can be thrown away, and then all is well again.
    store.write(vec![Change::Delete { id: ids[3], version: 1, unique_id: None }]).unwrap();
    assert!(store.verify().unwrap().is_sound());
}

#[test]
fn a_column_that_is_never_written_so_is_damage_and_others_are_found() {
    for column in
        ["private = 2", "private = 'x'", "verified = 2", "verified = -1", "verified = 'x'"]
    {
        let (place, store, ids) = place();
        let change = format!("UPDATE object SET {column} WHERE id = ?1");
        place.raw().execute(&change, [ids[3].cast_signed()]).unwrap();
        assert_eq!(store.read(ids[3]).unwrap_err(), Error::DEVICE_ERROR, "{column}");
        assert!(store.last_error().unwrap().contains("is damaged: a column has"), "{column}");
        let all = common::ids(&store, &[], Scope::Both, 0, 100);
        assert_eq!(all, ids, "{column}");
        assert_eq!(found(&store), [ids[3]], "{column}");
    }
}

#[test]
fn an_index_that_points_to_no_number_hides_no_row_and_is_mended() {
    for object in ["'text'", "x'00'", "5.5"] {
        let (place, store, ids) = place();
        let entry =
            format!("INSERT INTO lookup SELECT value, {object} FROM lookup WHERE object = ?1");
        place.raw().execute(&entry, [ids[3].cast_signed()]).unwrap();
        let keys = [(metaslot_ck::CKA_CLASS, vec![3])];
        assert_eq!(common::ids(&store, &keys, Scope::Both, 0, ids.len()), ids, "{object}");
        let report = store.verify().unwrap();
        assert_eq!(report.findings, [(None, "its index was changed".to_owned())], "{object}");
        examine(&store, USER, true).unwrap();
        assert!(store.verify().unwrap().is_sound(), "{object}");
    }
}

#[test]
fn a_row_without_a_login_that_says_nothing_is_found_and_taken_out() {
    let (place, store, _) = place();
    let raw = place.raw();
    raw.execute_batch(
        "INSERT INTO object VALUES(100, 1, 0, 0, x'00', NULL, x'', NULL);
         UPDATE token SET next_id = 101",
    )
    .unwrap();
    assert_eq!(found(&store), [100]);
    assert_eq!(examine(&store, USER, true).unwrap().0.removed, 1);
    assert!(store.verify().unwrap().is_sound());
}

#[test]
fn an_edited_public_row_is_refused_after_login() {
    let (place, store, ids) = place();
    let id = ids[10];
    place
        .raw()
        .execute("UPDATE object SET attributes = x'00' WHERE id = ?1", [id.cast_signed()])
        .unwrap();
    assert_eq!(store.read(id).unwrap_err(), Error::DEVICE_ERROR);
    assert_eq!(found(&store), [id]);
    store.logout();
    assert!(!store.read(id).unwrap().unwrap().verified, "it cannot be known before login");
}

#[test]
fn swapped_rows_fail_both() {
    let (place, store, ids) = place();
    place
        .raw()
        .execute(
            "UPDATE object SET id = CASE id WHEN ?1 THEN -1 ELSE id END",
            [ids[0].cast_signed()],
        )
        .unwrap();
    let raw = place.raw();
    let (one, two) = (ids[0].cast_signed(), ids[1].cast_signed());
    raw.execute("UPDATE object SET id = ?1 WHERE id = ?2", [one, two]).unwrap();
    raw.execute("UPDATE object SET id = ?1 WHERE id = -1", [two]).unwrap();
    for id in &ids[..2] {
        assert_eq!(store.read(*id).unwrap_err(), Error::DEVICE_ERROR);
    }
    assert_eq!(found(&store), ids[..2]);
}

#[test]
fn secrets_do_not_move_to_another_row() {
    let (place, store, ids) = place();
    place
        .raw()
        .execute(
            "UPDATE object SET secrets = (SELECT secrets FROM object WHERE id = ?1) WHERE id = ?2",
            [ids[0].cast_signed(), ids[1].cast_signed()],
        )
        .unwrap();
    assert_eq!(store.secrets(ids[1], 1).unwrap_err(), Error::DEVICE_ERROR);
}

#[test]
fn a_row_that_the_index_does_not_find_shows() {
    let (place, store, ids) = place();
    let raw = place.raw();
    raw.execute("DELETE FROM lookup WHERE object = ?1", [ids[2].cast_signed()]).unwrap();
    assert_eq!(found(&store), [ids[2]]);
    raw.execute("INSERT INTO lookup VALUES(zeroblob(16), ?1)", [ids[3].cast_signed()]).unwrap();
    assert_eq!(found(&store), [ids[2], ids[3]]);
    store.logout();
    assert_eq!(examine(&store, USER, true).unwrap().0.removed, 0);
    store.login(Role::User, USER).unwrap();
    assert!(store.verify().unwrap().is_sound());
    assert_eq!(find(&store, "key 2"), [ids[2]]);
}

#[test]
fn neither_labels_nor_keys_of_private_objects_are_in_the_files() {
    let place = Sandbox::new();
    let store = place.user();
    insert(&store, private("a-very-private-label"));
    insert(&store, public("a-public-label"));
    let bytes = place.bytes();
    let holds = |text: &str| bytes.windows(text.len()).any(|window| window == text.as_bytes());
    assert!(holds("attributes of a-public-label"));
    assert!(!holds("a-very-private-label"));
    assert!(!holds("secret of"));
    let pin = String::from_utf8(USER.to_vec()).unwrap();
    assert!(!holds(&pin));
}

#[test]
fn a_newer_format_is_refused_and_left_as_it_is() {
    let (place, store, _) = place();
    drop(store);
    let raw = place.raw();
    raw.execute_batch("PRAGMA user_version = 4; PRAGMA wal_checkpoint(TRUNCATE)").unwrap();
    drop(raw);
    let before = fs::read(place.database()).unwrap();
    let store = place.store();
    assert_eq!(store.token().unwrap_err(), Error::TOKEN_NOT_RECOGNIZED);
    assert!(store.last_error().unwrap().contains("format 4 is newer"));
    assert_eq!(store.login(Role::User, USER).unwrap_err(), Error::TOKEN_NOT_RECOGNIZED);
    assert_eq!(store.initialize(USER, "over it").unwrap_err(), Error::TOKEN_NOT_RECOGNIZED);
    assert_eq!(store.search(&[], Scope::Public, 0, 1).unwrap_err(), Error::TOKEN_NOT_RECOGNIZED);
    drop(store);
    assert_eq!(fs::read(place.database()).unwrap(), before);
}

#[test]
fn another_programs_file_is_refused_and_left_as_it_is() {
    let place = Sandbox::new();
    fs::create_dir_all(place.path()).unwrap();
    fs::write(place.database(), [b'x'; 5000]).unwrap();
    let store = place.store();
    assert_eq!(store.token().unwrap_err(), Error::TOKEN_NOT_RECOGNIZED);
    assert_eq!(store.initialize(USER, "over it").unwrap_err(), Error::TOKEN_NOT_RECOGNIZED);
    assert_eq!(fs::read(place.database()).unwrap(), [b'x'; 5000]);
}

#[test]
fn no_damage_to_the_file_makes_more_than_an_error() {
    let (place, store, ids) = place();
    drop(store);
    place.raw().execute_batch("PRAGMA wal_checkpoint(TRUNCATE)").unwrap();
    let whole = fs::read(place.database()).unwrap();
    let mut random = 0x9e37_79b9_7f4a_7c15_u64;
    let mut next = |below: usize| {
        random ^= random << 13;
        random ^= random >> 7;
        random ^= random << 17;
        usize::try_from(random >> 33).unwrap() % below
    };
    let (mut served, mut refused) = (0, 0);
    for _ in 0..200 {
        let mut bytes = whole.clone();
        for _ in 0..=next(8) {
            let at = next(bytes.len());
            bytes[at] ^= 1 << next(8);
        }
        if next(10) == 0 {
            bytes.truncate(next(whole.len()));
        }
        let place = Sandbox::in_memory();
        fs::create_dir_all(place.path()).unwrap();
        fs::write(place.database(), bytes).unwrap();
        let store = place.store();
        store.token().unwrap_or_default();
        store.login(Role::User, USER).unwrap_or_default();
        store.verify().unwrap_or_default();
        for id in &ids {
            match store.read(*id) {
                // What is served after login is what was written.
                Ok(Some(row)) if row.verified => {
                    assert!(row.attributes.starts_with(b"attributes of "));
                    served += 1;
                }
                Ok(_) => {}
                Err(_) => refused += 1,
            }
            store.secrets(*id, 1).map(drop).unwrap_or_default();
        }
        store.search(&[], Scope::Private, 0, 100).unwrap_or_default();
    }
    assert!(served > 0 && refused > 0, "{served} {refused}");
}

#[test]
fn two_rows_with_one_label_are_both_found() {
    let place = Sandbox::new();
    let store = place.user();
    let ids = [insert(&store, private("twin")), insert(&store, private("twin"))];
    assert_eq!(find(&store, "twin"), ids);
}

#[test]
fn pages_that_lead_back_to_themselves_end_a_search_with_an_error() {
    /// SQLite's inner pages: of an index, of a table.
    const INNER: [u8; 2] = [2, 5];
    let place = Sandbox::new();
    let store = place.user();
    let changes = (0..300).map(|at| Change::Insert(private(&format!("key {at}"))));
    store.write(changes.collect()).unwrap();
    drop(store);
    let raw = place.raw();
    raw.query_row("PRAGMA wal_checkpoint(TRUNCATE)", (), |_| Ok(())).unwrap();
    drop(raw);
    let mut file = fs::read(place.database()).unwrap();
    for (number, page) in (1_u32..).zip(file.chunks_mut(4096)).skip(1) {
        if INNER.contains(&page[0]) {
            page[8..12].copy_from_slice(&number.to_be_bytes());
        }
    }
    fs::write(place.database(), file).unwrap();
    let store = place.store();
    store.login(Role::User, USER).unwrap_or_default();
    let mut after = 0;
    for scope in [Scope::Public, Scope::Both] {
        let ended = (0..100).any(|_| match store.search(&[], scope, after, 256) {
            Ok(page) if page.len() == 256 => {
                after = page[255].id;
                false
            }
            _ => true,
        });
        assert!(ended);
    }
    // It says what is wrong, or that there is something.
    assert!(examine(&store, USER, false).map_or(true, |(examined, _)| examined.findings > 0));
}

/// What a search by a label gives, with a login and without.
fn searched(store: &SqliteStore, label: &str) -> [Result<Vec<u64>, Error>; 2] {
    let query = [common::term(metaslot_ck::CKA_LABEL, label)];
    let ids = |found: Vec<Found>| found.iter().map(|row| row.id).collect();
    let with = store.search(&query, Scope::Both, 0, 9).map(ids);
    store.logout();
    let without = store.search(&query, Scope::Both, 0, 9).map(ids);
    store.login(Role::User, USER).unwrap_or_default();
    [with, without]
}

/// `id`'s entries of the index become those that `of` had.
fn move_entries(place: &Sandbox, id: u64, of: u64) {
    place
        .raw()
        .execute_batch(&format!(
            "DELETE FROM lookup WHERE object = {id};
             INSERT OR IGNORE INTO lookup SELECT value, {id} FROM old WHERE object = {of}"
        ))
        .unwrap();
}

#[test]
fn a_search_finds_nothing_by_entries_that_were_moved() {
    const WRONG: Error = Error::DEVICE_ERROR;
    let (place, store, ids) = place();
    place.raw().execute_batch("CREATE TABLE old AS SELECT * FROM lookup").unwrap();
    let (one, two, cert, other) = (ids[0], ids[1], ids[10], ids[11]);
    let restore = || {
        let undo = "DELETE FROM lookup; INSERT INTO lookup SELECT * FROM old";
        place.raw().execute_batch(undo).unwrap();
        assert_eq!(find(&store, "key 0"), [one]);
    };
    // Two private objects, two open ones, and one of each.
    for (a, b) in [(one, two), (cert, other), (one, cert)] {
        move_entries(&place, a, b);
        move_entries(&place, b, a);
        let label = if a == cert { "certificate 0" } else { "key 0" };
        let without = if a == cert { Err(WRONG) } else { Ok(Vec::new()) };
        assert_eq!(searched(&store, label), [Err(WRONG), without], "{a} and {b}");
        assert!(store.last_error().unwrap().contains("by what it does not have"));
        restore();
    }
    let open = "INSERT OR IGNORE INTO lookup SELECT value, 99 FROM old WHERE object = ";
    // One more object, and one that there is to be.
    place.raw().execute_batch(&format!("{} {one}", open.replace("99", &two.to_string()))).unwrap();
    assert_eq!(searched(&store, "key 0")[0], Err(WRONG));
    restore();
    place.raw().execute_batch(&format!("{open} {one}; {open} {cert}")).unwrap();
    assert_eq!(searched(&store, "key 0")[0], Err(WRONG));
    assert_eq!(searched(&store, "certificate 0"), [Err(WRONG), Err(WRONG)]);
    restore();
    // The others are found, and a check says what was changed.
    move_entries(&place, one, two);
    assert_eq!(find(&store, "key 2"), [ids[2]]);
    assert_eq!(found(&store), [one, one]);
}

#[test]
fn a_search_finds_no_row_that_was_changed_to_be_found() {
    let (place, store, ids) = place();
    let (one, two) = (ids[0].cast_signed(), ids[1].cast_signed());
    let raw = place.raw();
    // The second one's row says that it has what the first one has, and so does the index.
    raw.execute_batch(&format!(
        "CREATE TABLE old AS SELECT * FROM object;
         CREATE TABLE index_then AS SELECT * FROM lookup;
         UPDATE object SET terms = (SELECT terms FROM old WHERE id = {one}) WHERE id = {two};
         INSERT OR IGNORE INTO lookup SELECT value, {two} FROM lookup WHERE object = {one}"
    ))
    .unwrap();
    assert_eq!(searched(&store, "key 0"), [Ok(vec![ids[0]]), Ok(Vec::new())]);
    // It is the row that it was before it got another label.
    raw.execute_batch(
        "DELETE FROM object; INSERT INTO object SELECT * FROM old;
         DELETE FROM lookup; INSERT INTO lookup SELECT * FROM index_then",
    )
    .unwrap();
    let record = private("another");
    store.write(vec![Change::Update { id: ids[0], version: 1, record }]).unwrap();
    raw.execute_batch(&format!(
        "DELETE FROM object WHERE id = {one};
         INSERT INTO object SELECT * FROM old WHERE id = {one};
         INSERT OR IGNORE INTO lookup SELECT * FROM index_then WHERE object = {one}"
    ))
    .unwrap();
    assert_eq!(searched(&store, "key 0"), [Ok(Vec::new()), Ok(Vec::new())]);
    // The others of its class are found, a few at a time, too.
    let class = [(metaslot_ck::CKA_CLASS, vec![3])];
    assert_eq!(common::ids(&store, &class, Scope::Both, 0, 100), ids[1..]);
    assert_eq!(common::ids(&store, &class, Scope::Both, 0, 3), ids[1..4]);
}

// SPDX-License-Identifier: Apache-2.0
//! A token goes from a file into a database and back, sealed as it is.
#![expect(clippy::unwrap_used, reason = "a test fails where it cannot go on")]

mod common;

use common::{CHEAP, Place, SO, USER, examine, find, insert, private, public, told};
use metaslot_ck::Error;
use metaslot_keystore::{Config as FileConfig, SqliteStore};
use metaslot_postgres::{Config, PostgresStore};
use metaslot_spi::store::{Change, Examination, Remark, Role, Store};
use std::cell::Cell;
use std::path::Path;

fn run(store: &dyn Store, what: Examination<'_>) -> metaslot_ck::Result<u64> {
    let mut silent = |_: Remark<'_>| true;
    let seen = store.examine(Role::User, USER, what, &mut silent)?;
    assert_eq!(seen.findings, 0);
    Ok(seen.rows)
}

fn file(path: &Path) -> SqliteStore {
    SqliteStore::new(FileConfig { kdf: CHEAP, ..FileConfig::new(path) })
}

#[test]
fn a_token_moves_from_a_file_into_a_database_and_back() {
    let Some(place) = Place::new("copies") else { return };
    let first = file(&place.path("first/token.db"));
    first.initialize(SO, "moving").unwrap();
    first.login(Role::So, SO).unwrap();
    first.init_pin(USER).unwrap();
    first.logout();
    first.login(Role::User, USER).unwrap();
    let changes = (0..200).map(|at| Change::Insert(private(&format!("key {at}"))));
    let ids = first.write(changes.collect()).unwrap();
    first.write(vec![Change::Insert(public("open"))]).unwrap();
    first.write(vec![Change::Delete { id: ids[7], version: 1, unique_id: None }]).unwrap();
    assert_eq!(first.login(Role::User, b"wrong pin").unwrap_err(), Error::PIN_INCORRECT);
    let copy = place.path("copy");
    run(&first, Examination::Backup(&copy)).unwrap();

    let store = place.store();
    assert_eq!(run(&store, Examination::Restore(&copy)), Ok(200));
    assert_eq!(run(&store, Examination::Restore(&copy)), Err(Error::DEVICE_ERROR));
    assert!(told().contains("a token is there already"), "{}", told());
    store.login(Role::User, USER).unwrap();
    assert_eq!(find(&store, "key 9"), [ids[9]]);
    assert_eq!(store.secrets(ids[9], 1).unwrap().expose(), b"secret of key 9");
    assert!(store.read(ids[7]).unwrap().is_none());
    assert_ne!(store.restored().unwrap(), 0, "what counts does not go on by itself");
    assert!(insert(&store, private("made there")) > ids[199]);
    assert_eq!(examine(&store).1, []);

    let back = place.path("back");
    assert_eq!(run(&store, Examination::Backup(&back)), Ok(201));
    assert_eq!(run(&store, Examination::Backup(&back)), Err(Error::DEVICE_ERROR));
    let second = file(&place.path("second/token.db"));
    assert_eq!(run(&second, Examination::Restore(&back)), Ok(201));
    second.login(Role::User, USER).unwrap();
    assert_eq!(second.secrets(ids[9], 1).unwrap().expose(), b"secret of key 9");
    assert_eq!(second.token().unwrap().serial, first.token().unwrap().serial);
    assert_ne!(second.restored().unwrap(), store.restored().unwrap());
    assert_eq!(run(&second, Examination::Look), Ok(201));
}

#[test]
fn what_is_not_sound_is_not_copied() {
    let Some(place) = Place::new("unsound") else { return };
    let store = place.user();
    let id = insert(&store, private("key"));
    place.sql(&format!("UPDATE metaslot.object SET version = 2 WHERE id = {id}"));
    let findings = Cell::new(0);
    let mut count = |remark: Remark<'_>| {
        findings.update(|all| all + u64::from(matches!(remark, Remark::Finding { .. })));
        true
    };
    let to = place.path("copy");
    let seen = store.examine(Role::User, USER, Examination::Backup(&to), &mut count).unwrap();
    assert_eq!((seen.findings, findings.get()), (1, 1));
    assert!(!to.exists());
    let wrong = store.examine(Role::User, b"wrong pin", Examination::Backup(&to), &mut count);
    assert_eq!(wrong.unwrap_err(), Error::PIN_INCORRECT);
    std::fs::write(&to, "no token").unwrap();
    let other = place.url().replace("token=test", "token=other");
    let other = PostgresStore::new(Config { address: other.parse().unwrap(), ..place.config() });
    assert!(run(&other, Examination::Restore(&to)).is_err());
    assert!(!other.token().unwrap().initialized);
}

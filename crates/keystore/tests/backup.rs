// SPDX-License-Identifier: Apache-2.0
//! Copies of a token in one file, and tokens made of them.
#![expect(clippy::unwrap_used, reason = "a test fails where it cannot go on")]

mod common;

use common::{SO, Sandbox, USER, find, insert, private, public};
use metaslot_ck::Error;
use metaslot_keystore::{Config, SqliteStore};
use metaslot_spi::store::{Examination, Examined, Role, Store};
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread::scope;

fn does(store: &SqliteStore, pin: &[u8], what: Examination<'_>) -> Result<Examined, Error> {
    let role = if pin == SO { Role::So } else { Role::User };
    store.examine(role, pin, what, &mut |_| true)
}

fn backup(store: &SqliteStore, to: &Path) -> Result<Examined, Error> {
    does(store, USER, Examination::Backup(to))
}

fn restore(store: &SqliteStore, from: &Path) -> Result<Examined, Error> {
    does(store, USER, Examination::Restore(from))
}

/// A file beside the store's directory.
fn outside(place: &Sandbox) -> (Sandbox, PathBuf) {
    let room = Sandbox::new();
    fs::create_dir_all(room.path()).unwrap();
    let name = place.path().file_name().unwrap().to_owned();
    let file = room.path().join(name);
    (room, file)
}

/// The names in a directory.
fn names(directory: &Path) -> Vec<String> {
    let name = |entry: std::io::Result<fs::DirEntry>| entry.unwrap().file_name();
    let mut names: Vec<_> =
        fs::read_dir(directory).unwrap().map(|e| name(e).into_string().unwrap()).collect();
    names.sort();
    names
}

#[test]
fn a_copy_has_all_that_was_acknowledged_while_others_write() {
    let (place, target) = (Sandbox::new(), Sandbox::new());
    let store = place.user();
    let (room, _) = outside(&place);
    let (is_over, written) = (AtomicBool::new(false), AtomicU64::new(0));
    let mut copies = Vec::new();
    scope(|scope| {
        scope.spawn(|| {
            while !is_over.load(Ordering::SeqCst) {
                let number = written.load(Ordering::SeqCst);
                insert(&store, private(&format!("key {number}")));
                written.store(number + 1, Ordering::SeqCst);
            }
        });
        for copy in 0..5 {
            let file = room.path().join(format!("copy {copy}"));
            let other = SqliteStore::new(place.config());
            let before = written.load(Ordering::SeqCst);
            let examined = backup(&other, &file).unwrap();
            assert!(examined.rows >= before && examined.findings == 0, "{examined:?}, {before}");
            copies.push((file, before, examined.rows));
        }
        is_over.store(true, Ordering::SeqCst);
    });
    assert_eq!(names(room.path()).len(), copies.len(), "nothing else is left");
    let (file, before, rows) = copies.pop().unwrap();
    let restored = target.store();
    assert_eq!(restore(&restored, &file).unwrap().rows, rows);
    restored.login(Role::User, USER).unwrap();
    assert!(restored.verify().unwrap().is_sound());
    for number in 0..before {
        let id = find(&restored, &format!("key {number}"));
        let row = restored.read(id[0]).unwrap().unwrap();
        let secret = restored.secrets(id[0], row.version).unwrap();
        assert_eq!(secret.expose(), format!("secret of key {number}").as_bytes());
    }
    insert(&restored, public("new"));
    assert_eq!(restored.token().unwrap().serial, store.token().unwrap().serial);
}

#[test]
fn each_restore_has_a_number_of_its_own() {
    let place = Sandbox::new();
    let store = place.user();
    let (_room, file) = outside(&place);
    backup(&store, &file).unwrap();
    let of_restored = |pin: &[u8]| {
        let target = Sandbox::new();
        let restored = target.store();
        does(&restored, pin, Examination::Restore(&file)).unwrap();
        assert_eq!(restored.restored(), Err(Error::USER_NOT_LOGGED_IN));
        restored.login(Role::User, USER).unwrap();
        let number = restored.restored().unwrap();
        for name in 0..70 {
            insert(&restored, private(&format!("{name}")));
        }
        restored.set_pin(Role::User, USER, b"another pin").unwrap();
        assert_eq!(restored.restored(), Ok(number), "whatever is written");
        assert!(restored.verify().unwrap().is_sound());
        number
    };
    let numbers =
        [store.restored().unwrap(), of_restored(USER), of_restored(USER), of_restored(SO)];
    assert_eq!(numbers[0], 0);
    let different = numbers.iter().collect::<std::collections::BTreeSet<_>>();
    assert_eq!(different.len(), numbers.len(), "{numbers:?}");
}

#[test]
fn a_copy_that_is_put_in_the_place_of_a_token_by_hand_knows_that_it_is_one() {
    let (place, target) = (Sandbox::new(), Sandbox::new());
    let store = place.user();
    insert(&store, private("key"));
    fs::create_dir(target.path()).unwrap();
    backup(&store, &target.database()).unwrap();
    assert_eq!(store.restored(), Ok(0));
    let copied = target.store();
    copied.login(Role::User, USER).unwrap();
    assert_ne!(copied.restored(), Ok(0));
    assert!(copied.verify().unwrap().is_sound());
}

#[test]
fn a_copy_is_no_newer_to_an_anchor_than_its_token_was() {
    let (place, target) = (Sandbox::new(), Sandbox::new());
    drop(place.token());
    let (_room, file) = outside(&place);
    let anchor = file.with_extension("anchor");
    fs::write(&anchor, "").unwrap();
    let anchored = |config| SqliteStore::new(Config { anchor: Some(anchor.clone()), ..config });
    let store = anchored(place.config());
    store.login(Role::User, USER).unwrap();
    backup(&store, &file).unwrap();
    insert(&store, private("since"));
    let restored = anchored(target.config());
    restore(&restored, &file).unwrap();
    assert_eq!(restored.login(Role::User, USER), Err(Error::DEVICE_ERROR));
}

#[test]
fn a_copy_that_an_anchor_refuses_is_the_token_once_it_is_restored() {
    let place = Sandbox::new();
    drop(place.token());
    let (_room, file) = outside(&place);
    let anchor = file.with_extension("anchor");
    fs::write(&anchor, "").unwrap();
    let store = SqliteStore::new(Config { anchor: Some(anchor), ..place.config() });
    store.login(Role::User, USER).unwrap();
    insert(&store, private("key"));
    backup(&store, &file).unwrap();
    store.logout();
    fs::remove_dir_all(place.path()).unwrap();
    fs::create_dir(place.path()).unwrap();
    fs::rename(&file, place.database()).unwrap();
    assert_eq!(store.login(Role::User, USER), Err(Error::DEVICE_ERROR));
    let said = store.last_error().unwrap();
    assert!(said.contains("given to 'metaslot token restore'"), "{said}");
    fs::rename(place.database(), &file).unwrap();
    restore(&store, &file).unwrap();
    store.login(Role::User, USER).unwrap();
    assert_eq!(find(&store, "key").len(), 1);
}

#[test]
fn what_a_copy_that_was_killed_has_left_goes_with_the_next() {
    let place = Sandbox::new();
    let store = place.user();
    let (room, file) = outside(&place);
    let left = |name: &str, mode: u32| {
        let path = room.path().join(name);
        fs::create_dir(&path).unwrap();
        fs::set_permissions(&path, PermissionsExt::from_mode(mode)).unwrap();
        for file in ["token", "examined", "examined-wal", "examined.lock"] {
            fs::write(path.join(file), "sealed").unwrap();
        }
        path
    };
    let dead = left(".metaslot-0123456789abcdef", 0o700);
    let locked = left(".metaslot-1123456789abcdef", 0o700);
    let opened = left(".metaslot-2123456789abcdef", 0o755);
    let other = left(".metaslot-3123456789abcdef", 0o700);
    fs::write(other.join("mine"), "").unwrap();
    let held = fs::File::open(&locked).unwrap();
    held.lock().unwrap();
    backup(&store, &file).unwrap();
    assert!(!dead.exists() && locked.join("token").exists() && opened.join("token").exists());
    assert_eq!(names(&other), ["mine"]);
    drop(held);
    fs::remove_file(&file).unwrap();
    backup(&store, &file).unwrap();
    assert!(!locked.exists() && other.exists());
}

#[test]
fn a_copy_that_cannot_be_written_is_not_the_tokens_fault() {
    let place = Sandbox::new();
    let store = place.user();
    let told = |to: &str| {
        assert_eq!(backup(&store, Path::new(to)), Err(Error::DEVICE_ERROR));
        store.last_error().unwrap()
    };
    for to in ["/sys/copy", "/nowhere/copy"] {
        let told = told(to);
        assert!(told.starts_with(&format!("{to}: cannot write: ")), "{told}");
    }
}

#[test]
fn nothing_is_replaced() {
    let (place, other) = (Sandbox::new(), Sandbox::new());
    let store = place.user();
    insert(&store, private("key"));
    let (room, file) = outside(&place);
    backup(&store, &file).unwrap();
    let before = fs::read(&file).unwrap();
    assert_eq!(backup(&store, &file).unwrap_err(), Error::DEVICE_ERROR);
    assert!(store.last_error().unwrap().contains("it is there already"));
    assert_eq!(fs::read(&file).unwrap(), before);
    let taken = other.token();
    let serial = taken.token().unwrap().serial;
    assert_eq!(restore(&taken, &file).unwrap_err(), Error::DEVICE_ERROR);
    assert!(taken.last_error().unwrap().contains("a token is there already"));
    assert_eq!(taken.token().unwrap().serial, serial);
    assert_eq!(names(room.path()).len(), 1);
}

#[test]
fn a_wrong_pin_counts_on_the_token_and_makes_nothing() {
    let place = Sandbox::new();
    let store = place.user();
    let (room, file) = outside(&place);
    let wrong = does(&store, b"not the pin", Examination::Backup(&file));
    assert_eq!(wrong.unwrap_err(), Error::PIN_INCORRECT);
    assert_eq!(store.token().unwrap().user.left, 9);
    assert!(names(room.path()).is_empty());
    backup(&store, &file).unwrap();
    let target = Sandbox::new();
    let wrong = does(&target.store(), b"not the pin", Examination::Restore(&file));
    assert_eq!(wrong.unwrap_err(), Error::PIN_INCORRECT);
    assert!(names(target.path()).iter().all(|name| !name.starts_with("token.db")));
    // The SO's opens it, too.
    does(&target.store(), SO, Examination::Restore(&file)).unwrap();
}

#[test]
fn a_changed_file_becomes_no_token() {
    let place = Sandbox::new();
    let store = place.user();
    for number in 0..20 {
        insert(&store, private(&format!("key {number}")));
    }
    let (_room, file) = outside(&place);
    backup(&store, &file).unwrap();
    let sound = fs::read(&file).unwrap();
    let mut refused = 0;
    let step = sound.len() / 97;
    for at in (100..sound.len()).step_by(step) {
        let mut changed = sound.clone();
        changed[at] ^= 0x10;
        fs::write(&file, &changed).unwrap();
        let target = Sandbox::new();
        let store = target.store();
        match restore(&store, &file) {
            Ok(Examined { findings: 0, rows: 20, .. }) => {
                // The bit was in what SQLite does not use.
                store.login(Role::User, USER).unwrap();
                assert!(store.verify().unwrap().is_sound());
            }
            _ => {
                refused += 1;
                assert!(!store.token().unwrap().initialized);
            }
        }
    }
    assert!(refused > 10, "{refused}");
    for length in [0, 1, 100, sound.len() / 2, sound.len() - 1] {
        fs::write(&file, &sound[..length]).unwrap();
        let target = Sandbox::new();
        let done = restore(&target.store(), &file);
        assert!(!matches!(done, Ok(Examined { findings: 0, .. })), "{length}: {done:?}");
        assert!(!target.store().token().unwrap().initialized);
    }
}

#[test]
fn what_a_lost_database_left_is_not_taken_for_a_part_of_the_restored_one() {
    let place = Sandbox::new();
    let store = place.user();
    insert(&store, private("key"));
    let (_room, file) = outside(&place);
    backup(&store, &file).unwrap();
    // Its log is not empty.
    insert(&store, private("later"));
    drop(store);
    assert!(fs::metadata(place.path().join("token.db-wal")).unwrap().len() > 0);
    fs::remove_file(place.database()).unwrap();
    let store = place.store();
    restore(&store, &file).unwrap();
    store.login(Role::User, USER).unwrap();
    assert!(store.verify().unwrap().is_sound());
    assert_eq!((find(&store, "key").len(), find(&store, "later").len()), (1, 0));
}

#[test]
fn a_damaged_token_is_not_copied() {
    let place = Sandbox::new();
    let store = place.user();
    insert(&store, private("key"));
    place.raw().execute("UPDATE object SET attributes = zeroblob(40)", ()).unwrap();
    let (room, file) = outside(&place);
    assert!(backup(&store, &file).unwrap().findings > 0);
    assert!(names(room.path()).is_empty());
}

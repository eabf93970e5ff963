// SPDX-License-Identifier: Apache-2.0
//! Every format ever released opens: its example stands in `testdata/keystores`.
#![expect(clippy::unwrap_used, reason = "a test fails where it cannot go on")]

mod common;

use common::{Sandbox, find, insert, private, term};
use metaslot_ck::{CKA_ID, CKA_LABEL, CKA_VALUE, Error};
use metaslot_keystore::SqliteStore;
use metaslot_spi::store::{Examination, Name, Record, Remark, Role, Scope, Store};
use metaslot_spi::{Attributes, Secrets};
use std::fs;
use std::path::Path;

/// A copy of an example, which itself is never touched.
fn copy(name: &str) -> (Sandbox, SqliteStore) {
    use std::os::unix::fs::PermissionsExt;
    let examples = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../testdata/keystores");
    let place = Sandbox::new();
    fs::create_dir_all(place.path()).unwrap();
    fs::set_permissions(place.path(), fs::Permissions::from_mode(0o700)).unwrap();
    fs::copy(examples.join(name), place.database()).unwrap();
    fs::set_permissions(place.database(), fs::Permissions::from_mode(0o600)).unwrap();
    let store = place.store();
    (place, store)
}

#[test]
fn version_1_opens_and_holds_what_it_held() {
    holds("v1.db", "example of version 1", 2);
}

#[test]
fn version_2_opens_and_holds_what_it_held() {
    holds("v2.db", "example of version 2", 2);
}

#[test]
fn version_3_opens_and_holds_what_it_held() {
    holds("v3.db", "example of version 3", 3);
    let (_place, store) = copy("v3.db");
    store.login_as(Name::new(b"example").unwrap(), b"example-pin").unwrap();
    assert_eq!(store.secrets(3, 1).unwrap().len(), 28);
    assert!(store.verify().unwrap().is_sound());
}

fn holds(name: &str, label: &str, becomes: i64) {
    let (place, store) = copy(name);
    let token = store.token().unwrap();
    assert_eq!(token.label, label);
    assert!(token.initialized && token.user_pin_set && token.writable);
    assert_eq!(find(&store, "before login"), [1]);
    assert_eq!(find(&store, "certificate"), [2]);
    assert!(find(&store, "secret key one").is_empty());

    store.login(Role::User, b"example-user-pin").unwrap();
    assert!(!store.read(1).unwrap().unwrap().verified);
    assert!(store.read(2).unwrap().unwrap().verified);
    assert_eq!(find(&store, "secret key one"), [3]);
    assert_eq!(find(&store, "changed key"), [4]);
    assert!(find(&store, "secret key two").is_empty());
    assert!(find(&store, "deleted").is_empty());
    let query = [(CKA_ID, vec![1, 2, 3]), term(CKA_LABEL, "secret key one")];
    assert_eq!(common::ids(&store, &query, Scope::Private, 0, 10), [3]);
    for (id, version, label) in [(3, 1, "secret key one"), (4, 2, "changed key")] {
        let row = store.read(id).unwrap().unwrap();
        assert_eq!(row.version, version);
        let attributes = Attributes::decode(&row.attributes).unwrap();
        assert_eq!(attributes.bytes(CKA_LABEL), Some(label.as_bytes()));
        let secrets = Secrets::decode(&store.secrets(id, version).unwrap()).unwrap();
        assert_eq!(secrets.get(CKA_VALUE), Some(&[label.len().to_le_bytes()[0]; 16][..]));
    }
    let report = store.verify().unwrap();
    assert!(report.is_sound(), "{report:?}");
    assert_eq!((report.examined.rows, report.examined.unverified), (4, 1));
    assert_eq!(insert(&store, private("one more")), 6, "id 5 was given before");
    assert_eq!(version(&place), becomes, "the login made it the current one");
    for (role, pin) in [(Role::So, &b"example-so-pin"[..]), (Role::User, b"example-user-pin")] {
        let again = place.store();
        again.login(role, pin).unwrap();
        assert!(again.verify().unwrap().is_sound());
    }
}

fn version(place: &Sandbox) -> i64 {
    place.raw().query_row("PRAGMA user_version", (), |row| row.get(0)).unwrap()
}

#[test]
fn version_1_opens_for_the_so() {
    let (_place, store) = copy("v1.db");
    store.login(Role::So, b"example-so-pin").unwrap();
    store.init_pin(b"a new user PIN").unwrap();
    store.logout();
    store.login(Role::User, b"a new user PIN").unwrap();
    assert_eq!(store.secrets(3, 1).unwrap().len(), 28);
}

#[test]
fn version_1_stays_as_it_is_until_somebody_logs_in() {
    let (place, store) = copy("v1.db");
    let open = Record { attributes: Vec::new(), ..common::public("before login, too") };
    assert_eq!(insert(&store, open), 6);
    assert_eq!(store.login(Role::User, b"a wrong PIN").unwrap_err(), Error::PIN_INCORRECT);
    assert_eq!(version(&place), 1);
    // A change of the PIN is the first to know the key.
    store.set_pin(Role::User, b"example-user-pin", b"another PIN").unwrap();
    assert_eq!(version(&place), 2);
    store.login(Role::User, b"another PIN").unwrap();
    assert!(store.verify().unwrap().is_sound());
}

#[test]
fn version_1_with_other_rows_than_it_should_have_is_not_made_the_current_one() {
    let (place, store) = copy("v1.db");
    place.raw().execute("DELETE FROM object WHERE id = 4", ()).unwrap();
    assert_eq!(store.login(Role::User, b"example-user-pin").unwrap_err(), Error::DEVICE_ERROR);
    let text = store.last_error().unwrap();
    assert!(text.contains("its rows are not those that were last written"), "{text}");
    assert_eq!(version(&place), 1);
    // A person looks at it and goes on with what is there.
    let mut remarks = Vec::new();
    let mut examine = |repair| {
        remarks.clear();
        let what = if repair { Examination::Repair } else { Examination::Look };
        let examined = store.examine(Role::User, b"example-user-pin", what, &mut |remark| {
            if let Remark::Finding { what, .. } = remark {
                remarks.push(what.to_owned());
            }
            true
        });
        (examined.map(|examined| examined.findings), remarks.clone())
    };
    let (findings, said) = examine(false);
    assert_eq!(findings, Ok(2), "its entries of the index are left: {said:?}");
    assert_eq!(examine(true).0, Ok(2));
    assert_eq!(version(&place), 2);
    store.login(Role::User, b"example-user-pin").unwrap();
    assert!(store.verify().unwrap().is_sound());
}

// SPDX-License-Identifier: Apache-2.0
//! Objects come, are found, change and go.
#![expect(clippy::unwrap_used, reason = "a test fails where it cannot go on")]

mod common;

use common::{Sandbox, find, ids, insert, private, public, term};
use metaslot_ck::{CKA_CLASS, CKA_ID, CKA_LABEL, CKA_UNIQUE_ID, Error};
use metaslot_keystore::SqliteStore;
use metaslot_spi::store::{Change, Role, Scope, Store, Term};

#[test]
fn a_private_object_is_written_found_and_opened_again() {
    let place = Sandbox::new();
    let store = place.user();
    let id = insert(&store, private("key one"));
    insert(&store, private("key two"));
    for (store, again) in [(store, false), (place.store(), true)] {
        if again {
            store.login(Role::User, common::USER).unwrap();
        }
        assert_eq!(find(&store, "key one"), [id]);
        let row = store.read(id).unwrap().unwrap();
        assert_eq!(row.attributes, b"attributes of key one");
        assert!(row.private && row.verified && row.has_secrets);
        let secrets = store.secrets(id, row.version).unwrap();
        assert_eq!(secrets.expose(), b"secret of key one");
    }
}

#[test]
fn a_private_object_is_not_there_for_who_is_not_logged_in() {
    let place = Sandbox::new();
    let store = place.user();
    let id = insert(&store, private("hidden"));
    store.logout();
    assert!(store.read(id).unwrap().is_none());
    assert!(find(&store, "hidden").is_empty());
    assert_eq!(store.secrets(id, 1).unwrap_err(), Error::USER_NOT_LOGGED_IN);
    let refused = store.write(vec![Change::Insert(private("another"))]);
    assert_eq!(refused.unwrap_err(), Error::USER_NOT_LOGGED_IN);
    let refused = store.write(vec![Change::Delete { id, version: 1, unique_id: None }]);
    assert_eq!(refused.unwrap_err(), Error::USER_NOT_LOGGED_IN);
}

#[test]
fn a_public_object_written_before_login_is_marked_so() {
    let place = Sandbox::new();
    let store = place.token();
    let id = insert(&store, public("certificate"));
    assert_eq!(find(&store, "certificate"), [id]);
    store.login(Role::User, common::USER).unwrap();
    assert!(!store.read(id).unwrap().unwrap().verified);
    let record = public("certificate");
    store.write(vec![Change::Update { id, version: 1, record }]).unwrap();
    assert!(store.read(id).unwrap().unwrap().verified);
    store.logout();
    let refused = store.write(vec![Change::Delete { id, version: 2, unique_id: None }]);
    assert_eq!(refused.unwrap_err(), Error::USER_NOT_LOGGED_IN);
}

#[test]
fn an_update_keeps_the_secrets_and_moves_the_index() {
    let place = Sandbox::new();
    let store = place.user();
    let id = insert(&store, private("before"));
    let mut record = private("after");
    record.secrets = None;
    store.write(vec![Change::Update { id, version: 1, record }]).unwrap();
    assert!(find(&store, "before").is_empty());
    assert_eq!(find(&store, "after"), [id]);
    assert_eq!(store.secrets(id, 2).unwrap().expose(), b"secret of before");
    assert_eq!(store.secrets(id, 1).unwrap_err(), Error::OBJECT_HANDLE_INVALID);
    let late = Change::Update { id, version: 1, record: private("late") };
    assert_eq!(store.write(vec![late]).unwrap_err(), Error::OBJECT_HANDLE_INVALID);
}

#[test]
fn a_change_or_end_of_one_object_is_not_that_of_another() {
    let place = Sandbox::new();
    let store = place.user();
    for make in [private, public] {
        let named = |name: &[u8]| {
            let mut record = make("one");
            record.terms.push((CKA_UNIQUE_ID, name.to_vec()));
            record
        };
        let id = insert(&store, named(b"1"));
        let update =
            |version, name| store.write(vec![Change::Update { id, version, record: named(name) }]);
        assert_eq!(update(1, b"2").unwrap_err(), Error::OBJECT_HANDLE_INVALID);
        update(1, b"1").unwrap();
        let delete = |name: &[u8]| {
            let unique_id = Some((CKA_UNIQUE_ID, name.to_vec()));
            store.write(vec![Change::Delete { id, version: 2, unique_id }])
        };
        assert_eq!(delete(b"2").unwrap_err(), Error::OBJECT_HANDLE_INVALID);
        delete(b"1").unwrap();
    }
}

#[test]
fn all_changes_happen_or_none() {
    let place = Sandbox::new();
    let store = place.user();
    let changes = vec![
        Change::Insert(private("first")),
        Change::Delete { id: 77, version: 1, unique_id: None },
    ];
    assert_eq!(store.write(changes).unwrap_err(), Error::OBJECT_HANDLE_INVALID);
    assert!(find(&store, "first").is_empty());
    assert!(store.search(&[], Scope::Private, 0, 10).unwrap().is_empty());
}

#[test]
fn what_was_changed_since_it_was_read_is_not_deleted() {
    let place = Sandbox::new();
    let store = place.user();
    let id = insert(&store, private("mine"));
    let record = private("must stay");
    store.write(vec![Change::Update { id, version: 1, record }]).unwrap();
    let refused = store.write(vec![Change::Delete { id, version: 1, unique_id: None }]);
    assert_eq!(refused.unwrap_err(), Error::OBJECT_HANDLE_INVALID);
    assert_eq!(find(&store, "must stay"), [id]);
    store.write(vec![Change::Delete { id, version: 2, unique_id: None }]).unwrap();
    assert!(find(&store, "must stay").is_empty());
}

#[test]
fn an_id_is_never_given_twice() {
    let place = Sandbox::new();
    let store = place.user();
    let first = insert(&store, private("one"));
    store.write(vec![Change::Delete { id: first, version: 1, unique_id: None }]).unwrap();
    assert!(insert(&store, private("two")) > first);
}

#[test]
fn a_search_needs_every_term_and_goes_on_where_it_stopped() {
    let place = Sandbox::new();
    let store = place.user();
    let ids: Vec<u64> = (0..25).map(|at| insert(&store, private(&format!("key {at}")))).collect();
    let class = (CKA_CLASS, vec![3]);
    assert_eq!(streamed(&store, std::slice::from_ref(&class), Scope::Private), ids);
    assert_eq!(streamed(&store, &[], Scope::Private), ids);
    let both = [class, term(CKA_LABEL, "key 7"), term(CKA_ID, "key 7")];
    assert_eq!(streamed(&store, &both, Scope::Private), [ids[7]]);
    let neither = [term(CKA_LABEL, "key 7"), term(CKA_ID, "key 8")];
    assert!(streamed(&store, &neither, Scope::Private).is_empty());
}

#[test]
fn a_search_of_both_kinds_comes_in_the_order_of_the_rows() {
    let place = Sandbox::new();
    let store = place.user();
    let make = |at: u64| {
        let label = format!("key {at}");
        insert(&store, if at.is_multiple_of(3) { public(&label) } else { private(&label) })
    };
    let ids: Vec<u64> = (0..25).map(make).collect();
    let (thirds, others): (Vec<u64>, Vec<u64>) =
        ids.iter().partition(|id| (*id - ids[0]).is_multiple_of(3));
    for query in [&[][..], &[(CKA_CLASS, vec![3])]] {
        assert_eq!(streamed(&store, query, Scope::Both), ids);
        assert_eq!(streamed(&store, query, Scope::Public), thirds);
        assert_eq!(streamed(&store, query, Scope::Private), others);
        let kinds = store.search(query, Scope::Both, 0, 100).unwrap();
        assert!(kinds.iter().all(|row| row.private != thirds.contains(&row.id)));
    }
    store.logout();
    assert_eq!(streamed(&store, &[], Scope::Both), thirds);
    assert!(streamed(&store, &[], Scope::Private).is_empty());
}

/// What a search finds, ten rows at a time.
fn streamed(store: &SqliteStore, query: &[Term], scope: Scope) -> Vec<u64> {
    let mut found = Vec::new();
    loop {
        let part = ids(store, query, scope, found.last().copied().unwrap_or(0), 10);
        if part.is_empty() {
            return found;
        }
        found.extend(part);
    }
}

#[test]
fn an_uninitialised_place_answers_and_makes_no_file() {
    let place = Sandbox::new();
    let store = place.store();
    assert!(!store.token().unwrap().initialized);
    assert!(store.read(1).unwrap().is_none());
    assert!(store.search(&[], Scope::Public, 0, 10).unwrap().is_empty());
    assert_eq!(store.generation(), None);
    assert!(!place.path().exists());
}

// SPDX-License-Identifier: Apache-2.0
//! A token that another process makes anew at the worst moment of a call: what the call was allowed of the old one it does not get
//! of the new one.

use crate::common::{Place, SO, USER, initialized, pairs};
use metaslot_ck::*;
use metaslot_daemon::{Own, Rights, Shared, View};
use metaslot_keystore::SqliteStore;
use metaslot_memory::Secret;
use metaslot_spi::store::{
    Change, Examination, Examined, Found, Identities, Name, NewPin, ObjectRow, Record, Remark,
    Role, Scope, Store, Term, TokenRow,
};
use metaslot_wiring::config::source::Source;
use std::fs;
use std::os::unix::net::UnixStream;
use std::sync::{Arc, Mutex, mpsc};
use std::thread;
use std::time::Duration;

/// What is done within the next call that reaches rows.
type Meanwhile = Arc<Mutex<Option<Box<dyn FnOnce() + Send>>>>;

/// A token's store, in whose calls something else happens.
struct Staged {
    store: SqliteStore,
    meanwhile: Meanwhile,
}

impl Staged {
    fn now(&self) -> &SqliteStore {
        let meanwhile = self.meanwhile.lock().expect("no panic").take();
        if let Some(meanwhile) = meanwhile {
            meanwhile();
        }
        &self.store
    }
}

impl Store for Staged {
    fn token(&self) -> Result<TokenRow> {
        self.store.token()
    }

    fn initialize(&self, so_pin: &[u8], label: &str) -> Result<()> {
        self.store.initialize(so_pin, label)
    }

    fn login(&self, role: Role, pin: &[u8]) -> Result<()> {
        self.store.login(role, pin)
    }

    fn check_pin(&self, role: Role, pin: &[u8]) -> Result<()> {
        self.now().check_pin(role, pin)
    }

    fn logout(&self) {
        self.store.logout();
    }

    fn keeps_login(&self) -> bool {
        self.store.keeps_login()
    }

    fn init_pin(&self, pin: &[u8]) -> Result<()> {
        self.now().init_pin(pin)
    }

    fn set_pin(&self, role: Role, old: &[u8], new: &[u8]) -> Result<()> {
        self.store.set_pin(role, old, new)
    }

    fn login_as(&self, name: Name, pin: &[u8]) -> Result<()> {
        self.store.login_as(name, pin)
    }

    fn incarnation(&self, name: Name) -> Result<Option<u64>> {
        self.store.incarnation(name)
    }

    fn share_login(&self) -> Result<()> {
        self.store.share_login()
    }

    fn write(&self, changes: Vec<Change>) -> Result<Vec<u64>> {
        self.now().write(changes)
    }

    fn write_as(&self, identity: (Name, u64), changes: Vec<Change>) -> Result<Vec<u64>> {
        self.now().write_as(identity, changes)
    }

    fn read(&self, id: u64) -> Result<Option<ObjectRow>> {
        self.now().read(id)
    }

    fn secrets(&self, id: u64, version: u64) -> Result<Secret> {
        self.now().secrets(id, version)
    }

    fn search(&self, query: &[Term], scope: Scope, after: u64, limit: usize) -> Result<Vec<Found>> {
        self.now().search(query, scope, after, limit)
    }

    fn examine(
        &self,
        role: Role,
        pin: &[u8],
        what: Examination<'_>,
        remark: &mut dyn FnMut(Remark<'_>) -> bool,
    ) -> Result<Examined> {
        self.store.examine(role, pin, what, remark)
    }

    fn restored(&self) -> Result<u64> {
        self.store.restored()
    }

    fn generation(&self) -> Option<u64> {
        self.store.generation()
    }
}

/// A token with keys, in the daemon's hands.
struct Stage {
    place: Arc<Place>,
    meanwhile: Meanwhile,
    shared: Arc<Shared>,
}

impl Stage {
    fn new() -> Self {
        Self::of(None)
    }

    /// The daemon has it by the PIN of the user, or of this identity, which is there then.
    fn of(identity: Option<Name>) -> Self {
        let place = Arc::new(Place::new());
        initialized(&place);
        pairs(&place, CKA_DECRYPT);
        if let Some(name) = identity {
            officer(&place, Identities::Add(name, NewPin(WEB)));
        }
        let meanwhile = Meanwhile::default();
        let store = Box::new(Staged { store: place.store(), meanwhile: Arc::clone(&meanwhile) });
        let pin = Secret::try_copy_of(identity.map_or(USER, |_| WEB));
        let shared = Arc::new(Shared::new(store, pin.map(|pin| Own { identity, pin })));
        Self { place, meanwhile, shared }
    }

    /// What happens within the next call.
    fn meanwhile(&self, work: impl FnOnce() + Send + 'static) {
        *self.meanwhile.lock().expect("no panic") = Some(Box::new(work));
    }

    /// A client that may sign by each key of a token.
    fn service(&self, label: &str) -> View {
        let file = self.place.path().join("metaslotd.toml");
        let text = format!(
            "[[token]]\npath = \"/t\"\n[[client]]\nservices = []\ntoken = \"{label}\"\noperations = [\"sign\"]\n"
        );
        fs::write(&file, text).expect("it is written");
        let (config, _) = Source::of_file(file).read().expect("it is right");
        let rights = Rights::of(label, config.daemon.clients.iter());
        self.shared.view(Some(rights.expect("there are some")), None)
    }
}

const WEB: &[u8] = b"web-pin-1";

fn web() -> Name {
    Name::new(b"web").expect("it is one")
}

fn officer(place: &Place, asked: Identities<'_>) {
    let what = Examination::Identities(asked);
    place.store().examine(Role::So, SO, what, &mut |_| true).expect("the officer may");
}

/// Another process makes the token anew, with other keys under the same labels, and the same user's PIN.
fn made_anew(place: &Place, label: &str) {
    let elsewhere = place.store();
    elsewhere.initialize(SO, label).expect("a token in its place");
    elsewhere.login(Role::So, SO).expect("the officer's PIN");
    elsewhere.init_pin(USER).expect("the user's PIN");
    drop(elsewhere);
    pairs(place, CKA_DECRYPT);
}

fn row(view: &View) -> Found {
    let found = view.search(&[(CKA_LABEL, b"site".to_vec())], Scope::Both, 0, 9).expect("a search");
    let is_private = |found: &&Found| {
        let row = view.read(found.id).expect("it is whole").expect("it is there");
        metaslot_spi::Attributes::decode(&row.attributes).expect("it is whole").bool(CKA_SIGN)
    };
    *found.iter().find(is_private).expect("the key")
}

#[test]
fn rights_to_one_token_show_nothing_of_another_that_comes_within_the_call() {
    for look in [
        (|view, row: Found| view.read(row.id).map(drop)) as fn(&View, Found) -> Result<()>,
        |view, row| view.secrets(row.id, 1).map(drop),
        |view, _| view.search(&[], Scope::Both, 0, 9).map(drop),
    ] {
        let stage = Stage::new();
        let service = stage.service("door");
        let key = row(&service);
        look(&service, key).expect("that is its right");
        let (place, shared) = (Arc::clone(&stage.place), Arc::clone(&stage.shared));
        stage.meanwhile(move || {
            made_anew(&place, "private");
            shared.open().expect("the daemon's PIN opens this one, too");
        });
        look(&service, key).expect_err("it is of another token");
        assert_eq!(service.search(&[], Scope::Private, 0, 9).expect("a search"), []);
    }
}

#[test]
fn rights_are_to_the_token_that_they_name_whenever_it_was_made_anew() {
    let stage = Stage::new();
    // Between the look at the rights and the first call.
    made_anew(&stage.place, "private");
    let service = stage.service("door");
    assert_eq!(service.search(&[], Scope::Private, 0, 9).expect("a search"), []);
    let public = service.search(&[], Scope::Both, 0, 9).expect("a search");
    assert!(public.iter().all(|row| !service.read(row.id).unwrap().unwrap().has_secrets));
    assert!(stage.service("private").search(&[], Scope::Both, 0, 9).unwrap().len() > public.len());
}

/// A service has no login that it could be told has ended.
#[test]
fn keys_by_an_identity_that_is_revoked_within_the_call_are_not_there() {
    let nothing_is_there = [
        (|view, row| view.read(row.id).map(|row| row.is_none()))
            as fn(&View, Found) -> Result<bool>,
        |view, row| Ok(view.secrets(row.id, 1).err() == Some(Error::OBJECT_HANDLE_INVALID)),
        |view, _| view.search(&[], Scope::Private, 0, 9).map(|all| all.is_empty()),
    ];
    for look in nothing_is_there {
        let stage = Stage::of(Some(web()));
        let service = stage.service("door");
        let key = row(&service);
        let place = Arc::clone(&stage.place);
        stage.meanwhile(move || officer(&place, Identities::Revoke(web())));
        assert_eq!(look(&service, key), Ok(true));
    }
}

/// What a client that was logged in does while another process makes the token anew and another client logs in to that.
fn while_another_logs_in(
    role: Role,
    work: impl FnOnce(&View) -> Result<()>,
) -> (Stage, Result<()>) {
    let stage = Stage::new();
    let [old, new] = [(); 2].map(|()| stage.shared.view(None, None));
    let pin = if role == Role::So { SO } else { USER };
    old.login(role, pin).expect("the PIN");
    let (place, (told, entered)) = (Arc::clone(&stage.place), mpsc::channel());
    stage.meanwhile(move || {
        made_anew(&place, "door");
        thread::spawn(move || {
            let login = new.login(role, pin);
            told.send(login).ok();
            // Until the end: with it the login ends.
            thread::sleep(Duration::from_secs(5));
        });
        // It waits until the call that is under way has ended.
        assert!(entered.recv_timeout(Duration::from_millis(500)).is_err(), "it did not wait");
    });
    let done = work(&old);
    (stage, done)
}

#[test]
fn what_is_written_by_a_login_to_one_token_is_not_written_to_another() {
    let record = || Record { private: false, attributes: vec![], secrets: None, terms: vec![] };
    let write = |view: &View| view.write(vec![Change::Insert(record())]).map(drop);
    let (_stage, written) = while_another_logs_in(Role::User, write);
    assert!(written.is_err(), "it is in the other one");
    let (stage, set) = while_another_logs_in(Role::So, |view| view.init_pin(b"another-pin"));
    assert!(set.is_err(), "it is the other one's");
    stage.place.store().login(Role::User, USER).expect("its PIN is what it was");
}

#[test]
fn what_is_written_by_an_identity_that_is_revoked_meanwhile_is_not_written() {
    let stage = Stage::new();
    officer(&stage.place, Identities::Add(web(), NewPin(WEB)));
    let view = stage.shared.view(None, None);
    view.login_as(web(), WEB).expect("the PIN");
    let record = Record { private: false, attributes: vec![], secrets: None, terms: vec![] };
    let place = Arc::clone(&stage.place);
    stage.meanwhile(move || officer(&place, Identities::Revoke(web())));
    let written = view.write(vec![Change::Insert(record)]);
    assert_eq!(written, Err(Error::USER_NOT_LOGGED_IN));
}

#[test]
fn no_pin_is_tried_for_a_client_that_has_gone_while_it_waited_for_its_turn() {
    let stage = Stage::new();
    let first = stage.shared.view(None, None);
    first.login(Role::User, USER).expect("the PIN");
    let ((asked, is_asked), (go, may)) = (mpsc::channel(), mpsc::channel());
    stage.meanwhile(move || {
        asked.send(()).expect("it is heard");
        may.recv().expect("it is told");
    });
    thread::scope(|scope| {
        let client = |pin: &'static [u8]| {
            let (ours, theirs) = UnixStream::pair().expect("a pair of sockets");
            let view = stage.shared.view(None, Some(Arc::new(ours)));
            (theirs, scope.spawn(move || view.login(Role::User, pin)))
        };
        let tried = scope.spawn(|| first.check_pin(Role::User, USER));
        is_asked.recv().expect("it is tried");
        let (gone, waited): (Vec<_>, Vec<_>) = (0..4).map(|_| client(b"wrong pin")).unzip();
        let (theirs, stays) = client(b"wrong pin");
        drop(gone);
        go.send(()).expect("it waits");
        assert_eq!(tried.join().expect("no panic"), Ok(()));
        for waited in waited {
            assert_eq!(waited.join().expect("no panic"), Err(Error::SESSION_CLOSED));
        }
        assert_eq!(stays.join().expect("no panic"), Err(Error::PIN_INCORRECT));
        drop(theirs);
    });
    let left = stage.place.store().token().expect("a token").user.left;
    assert_eq!(left, 9, "one was tried, and counted once");
}

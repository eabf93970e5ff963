// SPDX-License-Identifier: Apache-2.0
//! What becomes of who has a token by an identity that is revoked: of a program that is logged in by our module, and of the daemon.

use crate::common::{Killed, Place, SO, USER, configured, initialized, pairs, started, write_own};
use crate::itself::{self, Itself};
use crate::secrets::pieces;
use metaslot_ck::*;
use metaslot_client::{Access, Module, Result as Called, Session, Template, User};
use metaslot_spi::store::{Examination, Identities, Name, NewPin, Role, Store as _};
use metaslot_testkit::{copies, module_path, not_run};
use std::collections::BTreeSet;
use std::fmt::Debug;
use std::fs;
use std::thread::{self, sleep};
use std::time::{Duration, Instant};

const WEB: &[u8] = b"web-pin-1";

/// Logs in by the identity's PIN, and says once it has read a line what becomes of that.
#[test]
fn client() {
    let Some((_module, session)) = itself::opened() else { return };
    session.login_user("web", WEB).expect("the PIN");
    let find = || session.find(&Template::new().class(CKO_PRIVATE_KEY));
    let state = || session.info().expect("it is open").state;
    let code = |done: Called<()>| done.map_err(|failure| failure.code.to_string());
    let say = |answer: &dyn Debug| itself::say(&format!("{answer:?}"));
    say(&(find().expect("a search").len(), state() == CKS_RW_USER_FUNCTIONS));
    itself::heard();
    for _ in 0..2 {
        say(&find().map(|all| all.len()).map_err(|failure| failure.code.to_string()));
    }
    say(&(state() == CKS_RW_PUBLIC_SESSION));
    say(&code(session.set_pin(WEB, b"another-pin")));
    say(&code(session.login(User::User, USER)));
}

fn officer(place: &Place, asked: Identities<'_>) {
    let asked = Examination::Identities(asked);
    place.store().examine(Role::So, SO, asked, &mut |_| true).expect("the officer's PIN");
}

fn web() -> Name {
    Name::new(b"web").expect("a name")
}

#[test]
fn a_program_whose_identity_is_revoked_is_told_that_it_is_logged_out() {
    let Some(module) = module_path() else {
        return not_run("metaslotd", "a revoked identity", "there is no libmetaslot.so");
    };
    let place = Place::in_memory();
    initialized(&place);
    pairs(&place, CKA_DECRYPT);
    officer(&place, Identities::Add(web(), NewPin(WEB)));
    configured(&place);
    let _server = started(&place);
    let mut client = Itself::started(&place, "revoked::client", &module);
    assert_eq!(client.answer().as_deref(), Some("(2, true)"));
    officer(&place, Identities::Revoke(web()));
    client.tell("");
    let ended = "Err(\"CKR_USER_NOT_LOGGED_IN\")";
    assert_eq!(client.rest(), [ended, ended, "true", ended, "Ok(())"]);
    let row = place.store().token().expect("there is a token");
    assert_eq!(row.user.failures, 0, "its PIN is tried as the user's");
}

/// A daemon that has the token by the identity, and what it is by.
fn by_identity(place: &Place) -> Killed {
    let (at, user) = (place.path().display(), rustix::process::geteuid().as_raw());
    write_own(place.path().join("pin"), WEB);
    let text = format!(
        "counters = false\n[[token]]\npath = \"{at}/token/token.db\"\nkdf = \"weak-for-tests\"\n\
         pin-source = \"file:{at}/pin\"\nidentity = \"web\"\n[daemon]\nsocket = \"{at}/socket\"\n\
         [[client]]\nservices = [\"user:{user}\"]\ntoken = \"door\"\noperations = [\"sign\"]\n"
    );
    fs::write(place.path().join("metaslotd.toml"), text).expect("it is written");
    started(place)
}

/// A service, which has a key and has signed with it.
fn service(place: &Place) -> (Module, Session, ObjectHandle) {
    let module = place.module_of_program();
    module.initialize().expect("it begins");
    let session = module.open_session(SlotId(0), Access::ReadOnly).expect("a session");
    let site = Template::new().class(CKO_PRIVATE_KEY).label("site");
    let key = session.find_one(&site).expect("a search").expect("the key");
    session.sign(&CKM_ECDSA.into(), key, &[1; 32]).expect("it may");
    (module, session, key)
}

#[test]
fn keys_that_services_have_used_leave_the_daemon_when_its_identity_is_revoked() {
    let place = Place::in_memory();
    initialized(&place);
    pairs(&place, CKA_DECRYPT);
    officer(&place, Identities::Add(web(), NewPin(WEB)));
    let daemon = by_identity(&place);
    let (_quiet, (_module, session, key)) = (service(&place), service(&place));
    let pieces = pieces(&place, Some("site"));
    let held = || copies(daemon.0.id(), &pieces).concat().iter().sum::<usize>();
    assert!(held() > 0, "what is there is not found");
    officer(&place, Identities::Revoke(web()));
    // One of the two asks for something; the other says nothing any more.
    assert!(session.sign(&CKM_ECDSA.into(), key, &[1; 32]).is_err(), "it signs still");
    let begun = Instant::now();
    while held() > 0 {
        assert!(begun.elapsed() < Duration::from_secs(10), "they are there still");
        sleep(Duration::from_millis(10));
    }
}

/// Does with its key what it is told by a line, and says what came of it; by many threads where that may be.
#[test]
fn served_client() {
    let Some((module, session)) = itself::opened() else { return };
    let slot = session.info().expect("it is open").slot;
    let open = || module.open_session(slot, Access::ReadOnly).expect("a session");
    let (begun, many) = (open(), [(); 8].map(|()| open()));
    let find = || session.find_one(&Template::new().class(CKO_PRIVATE_KEY).label("site"));
    let mut key = find().expect("a search").expect("the key");
    let told = |done: Called<()>| done.map_or_else(|why| why.code.to_string(), |()| "ok".into());
    while let Some(line) = itself::heard() {
        let sign = |by: &Session| told(by.sign(&CKM_ECDSA.into(), key, &[1; 32]).map(drop));
        let answer = match &*line {
            "find" => {
                let found = find().expect("a search");
                key = found.unwrap_or(key);
                found.map_or("none", |_| "one").into()
            }
            "sign" => thread::scope(|scope| {
                let all = many.each_ref().map(|by| scope.spawn(|| [(); 4].map(|()| sign(by))));
                let all = all.map(|thread| thread.join().expect("no panic"));
                Vec::from_iter(BTreeSet::from_iter(all.concat())).join(" ")
            }),
            "begin" => {
                let init = begun.sign_init(&CKM_ECDSA_SHA256.into(), key);
                told(init.and_then(|()| begun.sign_update(&[1; 100])))
            }
            "end" => told(begun.sign_final().map(drop)),
            _ => told(many.iter().try_for_each(|session| session.info().map(drop))),
        };
        itself::say(&answer);
    }
}

#[test]
fn a_service_is_told_that_its_keys_are_gone_and_has_them_when_the_identity_is_added_anew() {
    let Some(module) = module_path() else {
        return not_run("metaslotd", "a service of it", "there is no libmetaslot.so");
    };
    let place = Place::in_memory();
    initialized(&place);
    pairs(&place, CKA_DECRYPT);
    officer(&place, Identities::Add(web(), NewPin(WEB)));
    configured(&place);
    let _daemon = by_identity(&place);
    let mut client = Itself::started(&place, "revoked::served_client", &module);
    let mut ask = |what: &str| {
        client.tell(what);
        client.answer().expect("it answers")
    };
    assert_eq!(["sign", "begin"].map(&mut ask), ["ok"; 2]);
    officer(&place, Identities::Revoke(web()));
    assert_eq!(ask("end"), "CKR_DEVICE_ERROR", "what cannot be repeated");
    // Of two calls the key may have gone between them, since other threads hear of it, too.
    let gone = ["CKR_KEY_HANDLE_INVALID", "CKR_OPERATION_NOT_INITIALIZED"];
    for _ in 0..2 {
        let codes = ask("sign");
        assert!(codes.split(' ').all(|code| gone.contains(&code)), "{codes}");
    }
    assert_eq!(["find", "begin", "state"].map(&mut ask), ["none", gone[0], "ok"]);
    officer(&place, Identities::Add(web(), NewPin(WEB)));
    let added = Instant::now();
    while ask("find") == "none" {
        assert!(added.elapsed() < Duration::from_secs(20), "it is not there again");
    }
    assert_eq!(["sign", "begin", "end"].map(&mut ask), ["ok"; 3]);
}

// SPDX-License-Identifier: Apache-2.0
//! What becomes of who has a token by an identity that is revoked: of a program that is logged in by our module, and of the daemon.

use crate::common::{Killed, Place, SO, USER, configured, initialized, pairs, started, write_own};
use crate::itself::{self, Itself};
use crate::secrets::pieces;
use metaslot_ck::*;
use metaslot_client::{Access, Module, Result as Called, Session, Template, User};
use metaslot_spi::store::{Examination, Identities, Name, NewPin, Role, Store as _};
use metaslot_testkit::{copies, module_path, not_run};
use std::fmt::Debug;
use std::fs;
use std::thread::sleep;
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
    itself::goes_on();
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
    client.go_on();
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

// SPDX-License-Identifier: Apache-2.0
//! A daemon that is started while nobody may log in: it waits, and what its clients had before comes back when they may.

use crate::common::{Place, SO, USER, configured, initialized, pairs, started, write_own};
use crate::far::Said;
use crate::itself::{self, Itself};
use metaslot_ck::*;
use metaslot_client::Template;
use metaslot_spi::store::{Examination, Identities, Name, NewPin, Role, Store as _};
use metaslot_testkit::{module_path, not_run};
use std::fs;
use std::os::unix::net::UnixDatagram;
use std::thread::sleep;
use std::time::{Duration, Instant};

/// Logs in by the PIN, and signs for each line that it reads.
#[test]
fn client() {
    let Some((_module, session)) = itself::logged_in() else { return };
    let site = Template::new().ulong(CKA_CLASS, CKO_PRIVATE_KEY).bytes(CKA_LABEL, b"site");
    let key = session.find_one(&site).expect("a search").expect("the key");
    while itself::heard().is_some() {
        let signed = session.sign(&CKM_ECDSA.into(), key, &[1; 32]);
        itself::say(&signed.map_or_else(|error| error.code.to_string(), |_| "signed".into()));
    }
}

#[test]
fn a_login_comes_back_when_the_pause_that_others_made_is_over() {
    let Some(module) = module_path() else {
        return not_run("metaslotd", "a pause", "there is no libmetaslot.so");
    };
    let place = Place::in_memory();
    initialized(&place);
    pairs(&place, CKA_DECRYPT);
    configured(&place);
    let server = started(&place);
    let mut client = Itself::started(&place, "pause::client", &module);
    let mut sign = || {
        client.tell("");
        client.answer().expect("it answers")
    };
    assert_eq!(sign(), "signed");
    let other = place.engine();
    let session = other.open_session(SlotId(0), CKF_SERIAL_SESSION).expect("a session opens");
    // In the end it is one of four seconds.
    for pause in [0, 1_100, 2_100] {
        sleep(Duration::from_millis(pause));
        while other.login(session, CKU_USER, b"another-pin") != Err(Error::PIN_LOCKED) {}
    }
    drop(server);
    let _server = started(&place);
    let begin = Instant::now();
    let mut refused = 0;
    while sign() != "signed" {
        refused += 1;
        assert!(begin.elapsed() < Duration::from_secs(60), "it is refused for good");
        sleep(Duration::from_millis(500));
    }
    assert!(refused > 0, "there was no pause");
}

/// A start that fails for its PIN is not repeated.
#[test]
fn a_start_in_the_pause_after_wrong_pins_waits_for_its_end() {
    for identity in [None, Name::new(b"web")] {
        let place = Place::in_memory();
        initialized(&place);
        let at = place.path().display();
        write_own(place.path().join("pin"), USER);
        let whose = identity.map(|name| format!("identity = {name:?}\n")).unwrap_or_default();
        let text = format!(
            "counters = false\n[[token]]\npath = \"{at}/token/token.db\"\nkdf = \"weak-for-tests\"\n\
             pin-source = \"file:{at}/pin\"\n{whose}[daemon]\nsocket = \"{at}/socket\"\n"
        );
        fs::write(place.path().join("metaslotd.toml"), text).expect("it is written");
        let store = place.store();
        if let Some(name) = identity {
            let add = Examination::Identities(Identities::Add(name, NewPin(USER)));
            store.examine(Role::So, SO, add, &mut |_| true).expect("the officer's PIN");
        }
        // In the end it is one of four seconds.
        for _ in 0..3 {
            while store.retry_at(identity).expect("it is read") > 0 {
                sleep(Duration::from_millis(50));
            }
            while store.retry_at(identity).expect("it is read") == 0 {
                let tried = match identity {
                    Some(name) => store.login_as(name, b"another-pin"),
                    None => store.login(Role::User, b"another-pin"),
                };
                assert_eq!(tried, Err(Error::PIN_INCORRECT));
            }
        }
        let manager = place.path().join("manager");
        let told = UnixDatagram::bind(&manager).expect("a socket is made");
        told.set_read_timeout(Some(Duration::from_secs(60))).expect("it may be set");
        let daemon = Said::with(&place, "daemon", |command| {
            command.args(["--config", "metaslotd.toml"]).env("NOTIFY_SOCKET", &manager)
        });
        daemon.line("waits for the token in ");
        daemon.line("serves ");
        let mut state = [0; 128];
        let states = std::iter::from_fn(|| {
            let length = told.recv(&mut state).expect("it tells the manager");
            Some(String::from_utf8_lossy(&state[..length]).into_owned())
        });
        let states = Vec::from_iter(states.take_while(|state| state != "READY=1"));
        assert!(states[0].starts_with("EXTEND_TIMEOUT_USEC=30000000\n"), "{states:?}");
        assert_eq!(states.last().map(String::as_str), Some("STATUS="), "it waits still");
        assert_eq!(store.token().expect("there is a token").user.failures, 0, "{identity:?}");
    }
}

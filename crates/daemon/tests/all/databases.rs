// SPDX-License-Identifier: Apache-2.0
//! A daemon whose token is in a database: behind its fence it connects to that and to nothing else.

#[expect(clippy::unwrap_used, reason = "a test fails where it cannot go on")]
#[path = "../../../postgres/tests/common/mod.rs"]
pub(crate) mod postgres;

use crate::common::{Place, SO, USER, write_own};
use crate::far::Said;
use metaslot_ck::*;
use metaslot_client::{Access, Mechanism, Session, Template};
use metaslot_engine::{Config, Engine, Policy, SlotConfig};
use metaslot_postgres::PostgresStore;
use metaslot_spi::provider::Provider;
use metaslot_spi::store::{Examination, Identities, Name, NewPin, Role, Store as _};
use metaslot_spi::{Params, RawValue};
use std::fs;

/// A token with a key to sign with.
pub(crate) fn fill(store: PostgresStore) {
    static PROVIDERS: &[&dyn Provider] = &[&metaslot_awslc::AWSLC];
    let (description, store) = ("shared".into(), Box::new(store));
    let slot = SlotConfig { description, store, policy: Policy::DEFAULT };
    let engine = Engine::new(Config { slots: vec![slot], providers: PROVIDERS });
    engine.init_token(SlotId(0), SO, "door").expect("a token is made");
    let session = engine.open_session(SlotId(0), CKF_SERIAL_SESSION | CKF_RW_SESSION);
    let session = session.expect("a session opens");
    engine.login(session, CKU_SO, SO).expect("the officer logs in");
    engine.init_pin(session, USER).expect("the PIN is set");
    engine.logout(session).expect("the officer goes");
    engine.login(session, CKU_USER, USER).expect("the user logs in");
    let bytes = |attribute, value: &[u8]| (attribute, RawValue::Bytes(value.to_vec()));
    let named = || [bytes(CKA_LABEL, b"site"), bytes(CKA_TOKEN, &[1])];
    let p256 = bytes(CKA_EC_PARAMS, &[6, 8, 0x2a, 0x86, 0x48, 0xce, 0x3d, 3, 1, 7]);
    let public = named().into_iter().chain([p256]).collect();
    let private = named().into_iter().chain([bytes(CKA_SIGN, &[1])]).collect();
    engine
        .generate_key_pair(session, CKM_EC_KEY_PAIR_GEN, Params::None, public, private)
        .expect("a pair is made");
}

fn configure(place: &Place, url: &str) {
    configure_for(place, url, (USER, ""));
}

/// With a PIN, and what is said of it.
fn configure_for(place: &Place, url: &str, (pin, whose): (&[u8], &str)) {
    let at = place.path().display();
    write_own(place.path().join("pin"), pin);
    write_own(place.path().join("password"), postgres::PASSWORD);
    fs::write(place.path().join("anchor"), "").expect("it is made");
    let user = rustix::process::geteuid().as_raw();
    let text = format!(
        "counters = false\naudit = \"{at}/audit\"\n[[token]]\nstore = \"{url}\"\nkdf = \"weak-for-tests\"\nanchor = \"{at}/anchor\"\n\
         password-source = \"file:{at}/password\"\npin-source = \"file:{at}/pin\"\n{whose}\n\
         [daemon]\nsocket = \"{at}/door\"\n\
         [[client]]\nservices = [\"user:{user}\"]\ntoken = \"door\"\noperations = [\"sign\"]\n"
    );
    fs::write(place.path().join("metaslotd.toml"), text).expect("it is written");
}

fn sign(session: &Session) -> usize {
    let template = Template::new().class(CKO_PRIVATE_KEY).label("site");
    let key = session.find_one(&template).expect("a search").expect("the key is there");
    session.sign(&Mechanism::new(CKM_ECDSA), key, &[1; 32]).expect("it signs").len()
}

#[test]
fn a_url_that_is_wrong_is_a_wrong_configuration() {
    let place = Place::new();
    configure(&place, "postgresql://keys@db/vault?sslcert=/c");
    let mut check = Said::by(&place, "check", &["--config", "metaslotd.toml", "--check"]);
    // The service manager does not start it again.
    assert_eq!(check.process.0.wait().expect("it ends").code(), Some(78));
    check.line("metaslotd.toml: the URL of a token's store: sslcert and sslkey belong together");
}

#[test]
fn a_password_that_is_not_there_is_said_to_be_none() {
    let place = Place::new();
    configure(&place, "postgresql://keys@db/vault");
    fs::remove_file(place.path().join("password")).expect("it was there");
    let check = Said::by(&place, "check", &["--config", "metaslotd.toml", "--check"]);
    let said = check.line("there is no password of the role: ");
    assert!(said.ends_with("/password cannot be read: No such file or directory"), "{said}");
}

#[test]
fn a_daemon_behind_its_fence_signs_by_a_key_in_a_database_and_connects_again() {
    let Some(mut server) = postgres::Place::new("daemon") else { return };
    let place = Place::new();
    fill(server.store());
    configure(&place, &server.url());
    let daemon = Said::by(&place, "daemon", &["--config", "metaslotd.toml"]);
    daemon.line("serves ");
    let module = place.module(1);
    module.initialize().expect("it begins");
    let session = module.open_session(SlotId(0), Access::ReadOnly).expect("a session opens");
    assert_eq!(sign(&session), 64);
    server.stop();
    assert_eq!(sign(&session), 64, "what was read is used");
    // The client has a code alone: the reason is in the log.
    let never = Template::new().label("never asked");
    assert!(session.find(&never).is_err());
    daemon.line("CKR_DEVICE_ERROR for a client: ");
    daemon.line("the database is away: ");
    server.start();
    let other = server.store();
    other.login(Role::User, USER).expect("it is back");
    postgres::insert(&other, postgres::public("found later"));
    // It hears of that only by a new connection, through its fence.
    let later = Template::new().label("found later");
    postgres::until("it is found", || session.find(&later).is_ok_and(|found| found.len() == 1));
    // The thread that connects to the database, too.
    let threads = fs::read_dir(format!("/proc/{}/task", daemon.process.0.id())).expect("it runs");
    for thread in threads {
        let status = fs::read_to_string(thread.expect("a thread").path().join("status"));
        let status = status.expect("it runs");
        assert!(status.contains("\nNoNewPrivs:\t1\nSeccomp:\t2\n"), "{status}");
    }
    assert_ne!(fs::read(place.path().join("anchor")).expect("it is there"), b"");
}

fn connected(place: &Place) -> Session {
    let module = place.module(1);
    module.initialize().expect("it begins");
    module.open_session(SlotId(0), Access::ReadOnly).expect("a session opens")
}

#[test]
fn one_machine_of_two_is_revoked_by_its_identity() {
    let Some(mut server) = postgres::Place::new("machines") else { return };
    fill(server.store());
    let name = |which: usize| Name::new(format!("web{which}").as_bytes()).expect("a name");
    let officer = |asked| {
        let asked = Examination::Identities(asked);
        server.store().examine(Role::So, SO, asked, &mut |_| true).expect("the officer's PIN");
    };
    let machine = |which| {
        officer(Identities::Add(name(which), NewPin(b"machine-pin")));
        let place = Place::new();
        let whose = format!("identity = \"web{which}\"");
        configure_for(&place, &server.url(), (b"machine-pin", &whose));
        let daemon = Said::by(&place, "daemon", &["--config", "metaslotd.toml"]);
        daemon.line("serves ");
        let session = connected(&place);
        assert_eq!(sign(&session), 64);
        (place, daemon, session)
    };
    let (place, daemon, first) = machine(1);
    let (_other, _its, second) = machine(2);
    let search = |session: &Session| session.find(&Template::new().class(CKO_PRIVATE_KEY));
    let keys = |place: &Place| search(&connected(place)).ok().map(|keys| keys.len());
    officer(Identities::Revoke(name(1)));
    postgres::until("the first has nothing", || keys(&place) == Some(0));
    let ended = search(&first).expect_err("its connection has ended");
    assert_eq!(ended.code, Error::DEVICE_REMOVED);
    daemon.line("services have nothing of the token \"door\": its officer has revoked the identity \"web1\"");
    assert_eq!(sign(&second), 64, "the other one has nothing to do with it");
    // Nor is it let in again by a start, which is counted for nobody else.
    let mut check = Said::by(&place, "check", &["--config", "metaslotd.toml", "--check"]);
    assert_eq!(check.process.0.wait().expect("it ends").code(), Some(77));
    check.line("is not opened as identity \"web1\": CKR_PIN_INCORRECT: ");
    officer(Identities::Add(name(1), NewPin(b"machine-pin")));
    postgres::until("it is added anew", || keys(&place) == Some(1));
    let first = connected(&place);
    assert_eq!(sign(&first), 64);
    let log = fs::read_to_string(place.path().join("audit")).expect("there are lines");
    let events = ["opened", "closed", "opened"];
    let told = Vec::from_iter(log.lines().filter(|line| line.contains("\"identity\":\"web1\"")));
    assert_eq!(told.len(), events.len(), "{log}");
    for (line, event) in told.iter().zip(events) {
        assert!(line.contains(&format!("\"event\":\"{event}\",\"token\":\"door\"")), "{log}");
    }
    server.stop();
    assert_eq!([&first, &second].map(sign), [64, 64], "what was read is used");
}

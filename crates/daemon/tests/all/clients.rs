// SPDX-License-Identifier: Apache-2.0
//! What clients of one daemon have of each other, and what the configuration gives them: nothing and no more.

use metaslot_ck::*;
use metaslot_daemon::Tokens;
use metaslot_engine::{Answer, Engine, Output};
use metaslot_keystore::{Cost, Kdf, SqliteStore};
use metaslot_spi::store::{Examination, Identities, Name, NewPin, Remark, Role, Store};
use metaslot_spi::{Params, RawValue, Template, Value};
use metaslot_wiring::audit::Log;
use metaslot_wiring::config::source::Source;
use rustix::process::geteuid;
use std::fs;
use std::net::Shutdown;
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::sync::Arc;

const SLOT: SlotId = SlotId(0);
const PIN: &[u8] = b"12345678";
const SO_PIN: &[u8] = b"officer-pin";
const WRITE: u64 = CKF_SERIAL_SESSION | CKF_RW_SESSION;

/// A directory with a token in which there are two pairs, `site` and `other`.
struct Place(PathBuf);

impl Drop for Place {
    fn drop(&mut self) {
        fs::remove_dir_all(&self.0).ok();
    }
}

impl Place {
    fn new(name: &str) -> Self {
        let path = format!("metaslotd-{name}-{}", std::process::id());
        let place = Self(std::env::temp_dir().join(path));
        fs::create_dir_all(&place.0).expect("the directory is made");
        fs::write(place.0.join("pin"), PIN).expect("the PIN is written");
        let tokens = place.tokens("", "");
        let owner = client(&tokens);
        owner.init_token(SLOT, SO_PIN, "web").expect("there is a token");
        let session = owner.open_session(SLOT, WRITE).expect("a session");
        owner.login(session, CKU_SO, SO_PIN).expect("the officer's PIN");
        owner.init_pin(session, PIN).expect("the user has a PIN");
        owner.logout(session).expect("the officer goes");
        owner.login(session, CKU_USER, PIN).expect("the user's PIN");
        for label in ["site", "other"] {
            pair(&owner, session, label).expect("a pair");
        }
        place
    }

    /// What a daemon with such a configuration serves.
    fn tokens(&self, of_token: &str, more: &str) -> Tokens {
        self.try_tokens(of_token, more).unwrap_or_else(|reason| panic!("{reason}"))
    }

    fn try_tokens(&self, of_token: &str, more: &str) -> Result<Tokens, String> {
        let (directory, file) = (self.0.display(), self.0.join("metaslotd.toml"));
        let text = format!(
            "counters = false\n[[token]]\npath = \"{directory}/token/token.db\"\nkdf = \"weak-for-tests\"\n\
             {of_token}\n{more}\n"
        );
        fs::write(&file, text).expect("the configuration is written");
        let (config, _) = Source::of_file(file).read().map_err(|problem| problem.to_string())?;
        Tokens::of(config).map_err(|failure| failure.to_string())
    }

    /// One in which this user has rights without a PIN.
    fn with_rights(&self, rights: &str) -> Tokens {
        let pin = format!("pin-source = \"file:{}/pin\"", self.0.display());
        let user = geteuid().as_raw();
        let client =
            format!("[[client]]\nservices = [\"user:{user}\"]\ntoken = \"web\"\n{rights}\n");
        self.tokens(&pin, &client)
    }
}

type Result<T, E = Error> = std::result::Result<T, E>;

/// A connection of this process.
fn client(tokens: &Tokens) -> Engine {
    let (engine, far) = connected(tokens);
    // It lasts as long as the process.
    std::mem::forget(far);
    engine
}

/// The same, and its other end.
fn connected(tokens: &Tokens) -> (Engine, UnixStream) {
    let (near, far) = UnixStream::pair().expect("a pair of sockets");
    let admitted = tokens.admit(&Arc::new(near)).expect("it is admitted");
    (tokens.client(admitted).engine, far)
}

fn bytes(attribute: CK_ATTRIBUTE_TYPE, value: &[u8]) -> (CK_ATTRIBUTE_TYPE, RawValue) {
    (attribute, RawValue::Bytes(value.to_vec()))
}

fn pair(
    client: &Engine,
    session: SessionHandle,
    label: &str,
) -> Result<(ObjectHandle, ObjectHandle)> {
    let (yes, label) = ([1], label.as_bytes());
    let p256 = [6, 8, 0x2a, 0x86, 0x48, 0xce, 0x3d, 3, 1, 7];
    let public = vec![bytes(CKA_TOKEN, &yes), bytes(CKA_LABEL, label), bytes(CKA_EC_PARAMS, &p256)];
    let mut private = vec![bytes(CKA_TOKEN, &yes), bytes(CKA_LABEL, label)];
    private.extend([CKA_PRIVATE, CKA_SIGN, CKA_DERIVE].map(|said| bytes(said, &yes)));
    let made = client;
    made.generate_key_pair(session, CKM_EC_KEY_PAIR_GEN, Params::None, public, private)
}

/// The labels of the private keys that a session sees.
fn found(client: &Engine, session: SessionHandle, more: Template) -> Vec<(ObjectHandle, String)> {
    let mut template = vec![bytes(CKA_CLASS, &CKO_PRIVATE_KEY.to_ne_bytes())];
    template.extend(more);
    client.find_init(session, template).expect("a search");
    let all = client.find(session, 100).expect("what is found");
    client.find_final(session).expect("it ends");
    let label = |handle: &ObjectHandle| {
        let object = client.object(session, *handle).expect("it is there");
        let Ok(Answer::Value(Value::Bytes(label))) = object.answer(CKA_LABEL) else {
            panic!("each has a label")
        };
        (*handle, String::from_utf8_lossy(label).into_owned())
    };
    all.iter().map(label).collect()
}

fn labels(client: &Engine, session: SessionHandle) -> Vec<String> {
    found(client, session, vec![]).into_iter().map(|(_, label)| label).collect()
}

fn sign(client: &Engine, session: SessionHandle, key: ObjectHandle) -> Result<()> {
    let mut signature = [0; 64];
    client.sign_init(session, CKM_ECDSA, Params::None, key)?;
    client.sign(session, &[1; 32], &mut Output::buffer(&mut signature))
}

#[test]
fn a_login_is_that_of_one_client() {
    let place = Place::new("login");
    let tokens = place.tokens("", "");
    let [one, other] = [client(&tokens), client(&tokens)];
    let [mine, theirs] =
        [&one, &other].map(|who| who.open_session(SLOT, WRITE).expect("a session"));
    assert!(labels(&one, mine).is_empty(), "private keys before a login");
    one.login(mine, CKU_USER, PIN).expect("the PIN");
    assert_eq!(labels(&one, mine), ["site", "other"]);
    assert!(labels(&other, theirs).is_empty(), "the login is not this client's");
    assert_eq!(pair(&other, theirs, "new"), Err(Error::USER_NOT_LOGGED_IN));
    assert_eq!(other.login(theirs, CKU_USER, b"87654321"), Err(Error::PIN_INCORRECT));
    assert!(labels(&other, theirs).is_empty(), "nor is it after a wrong PIN");
    let so = other.login(theirs, CKU_SO, SO_PIN);
    assert_eq!(so, Err(Error::USER_ANOTHER_ALREADY_LOGGED_IN));
    other.login(theirs, CKU_USER, PIN).expect("the PIN");
    // The first one goes; the second stays logged in, and uses its key.
    one.logout(mine).expect("it was logged in");
    assert!(labels(&one, mine).is_empty(), "after the logout");
    let key = found(&other, theirs, vec![bytes(CKA_LABEL, b"site")])[0].0;
    sign(&other, theirs, key).expect("it is logged in still");
    drop(other);
    one.login(mine, CKU_SO, SO_PIN).expect("now the token is closed");
}

/// What the officer does with the identities of the token, in another process's place.
fn officer(place: &Place, asked: Identities<'_>) {
    let asked = Examination::Identities(asked);
    store(place).examine(Role::So, SO_PIN, asked, &mut |_| true).expect("the officer's PIN");
}

/// The token, as another process has it.
fn store(place: &Place) -> SqliteStore {
    let kdf = Cost::Fixed(Kdf::Argon2id { memory_kib: 64, passes: 1, lanes: 1 });
    let path = place.0.join("token/token.db");
    SqliteStore::new(metaslot_keystore::Config { kdf, ..metaslot_keystore::Config::new(path) })
}

#[test]
fn an_identity_is_revoked_alone_while_others_use_the_token() {
    let place = Place::new("identities");
    let [web, mail] = ["web", "mail"].map(|name| Name::new(name.as_bytes()).expect("a name"));
    for name in [web, mail] {
        officer(&place, Identities::Add(name, NewPin(b"identity-pin")));
    }
    let tokens = place.tokens("", "");
    let clients = [(); 3].map(|()| client(&tokens));
    let sessions = clients.each_ref().map(|who| who.open_session(SLOT, WRITE).expect("a session"));
    let ([one, two, user], [first, second, third]) = (&clients, sessions);
    // The first one's keys are those of the store.
    one.login_as(first, web, b"identity-pin").expect("its PIN");
    assert_eq!(two.login_as(second, mail, b"another-pin"), Err(Error::PIN_INCORRECT));
    assert_eq!(two.login_as(second, mail, b"identity-pin"), Ok(()));
    let again = [two.login_as(second, mail, b"x"), two.login_as(second, web, b"x")];
    let taken = Error::USER_ANOTHER_ALREADY_LOGGED_IN;
    assert_eq!(again, [Err(Error::USER_ALREADY_LOGGED_IN), Err(taken)]);
    user.login(third, CKU_USER, PIN).expect("the user's PIN");
    one.set_pin(first, b"identity-pin", b"its new PIN").expect("its own PIN");
    user.set_pin(third, PIN, b"87654321").expect("the user's PIN");
    let key = found(two, second, vec![bytes(CKA_LABEL, b"site")])[0].0;
    assert_eq!(labels(one, first), ["site", "other"]);
    officer(&place, Identities::Revoke(web));
    assert!(labels(one, first).is_empty(), "what it had is not shown any more");
    assert_eq!(one.session_info(first).map(|info| info.state), Ok(CKS_RW_PUBLIC_SESSION));
    assert_eq!(pair(one, first, "new"), Err(Error::USER_NOT_LOGGED_IN));
    sign(two, second, key).expect("it is logged in still");
    assert_eq!(labels(user, third), ["site", "other"]);
    assert_eq!(one.login_as(first, web, b"its new PIN"), Err(Error::PIN_INCORRECT));
    officer(&place, Identities::Revoke(mail));
    assert!(sign(two, second, key).is_err(), "a key of before is used still");
    assert_eq!(labels(user, third), ["site", "other"]);
    // Another one of the same name is another.
    officer(&place, Identities::Add(web, NewPin(b"a third pin")));
    assert!(labels(one, first).is_empty());
    one.login_as(first, web, b"a third pin").expect("its PIN");
    assert_eq!(labels(one, first), ["site", "other"]);
}

/// A daemon that opens the token as an identity, with a service that may sign.
fn as_identity(place: &Place, name: &str) -> Result<Tokens, String> {
    let (directory, user) = (place.0.display(), geteuid().as_raw());
    let of_token = format!("pin-source = \"file:{directory}/{name}\"\nidentity = {name:?}");
    let client = format!("services = [\"user:{user}\"]\ntoken = \"web\"\noperations = [\"sign\"]");
    place.try_tokens(&of_token, &format!("[[client]]\n{client}"))
}

#[test]
fn a_daemon_whose_identity_is_revoked_has_nothing_for_services_until_it_is_added_anew() {
    let place = Place::new("as-identity");
    let web = Name::new(b"web1").expect("a name");
    fs::write(place.0.join("web1"), "web1-pin\n").expect("the PIN is written");
    let add = |pin: &[u8]| officer(&place, Identities::Add(web, NewPin(pin)));
    let refused = as_identity(&place, "web1").expect_err("there is none");
    assert!(
        refused.contains("is not opened as identity \"web1\": CKR_PIN_INCORRECT: "),
        "{refused}"
    );
    assert!(refused.contains("or no such identity"), "{refused}");
    add(b"another-pin");
    assert_eq!(as_identity(&place, "web1").expect_err("it is wrong"), refused);
    officer(&place, Identities::Revoke(web));
    add(b"web1-pin");
    let tokens = as_identity(&place, "web1").expect("it is right");
    let service = client(&tokens);
    let session = service.open_session(SLOT, WRITE).expect("a session");
    let key = found(&service, session, vec![bytes(CKA_LABEL, b"site")])[0].0;
    // Clients with PINs of their own have nothing to do with it.
    let user = client(&tokens);
    let its = user.open_session(SLOT, WRITE).expect("a session");
    user.login(its, CKU_USER, PIN).expect("the user's PIN");
    officer(&place, Identities::Revoke(web));
    assert!(sign(&service, session, key).is_err(), "a key of before is used still");
    assert!(labels(&service, session).is_empty(), "what it had is not shown any more");
    assert_eq!(labels(&user, its), ["site", "other"]);
    // What is not there is not tried, though it is asked for again and again.
    (0..12).for_each(|_| assert!(labels(&service, session).is_empty()));
    // Another one of that name is tried three times, and no more.
    add(b"another-pin");
    (0..12).for_each(|_| assert!(labels(&service, session).is_empty()));
    let failures = || {
        let (mut failures, store) = (None, store(&place));
        let asked = Examination::Identities(Identities::List);
        let told = store.examine(Role::So, SO_PIN, asked, &mut |remark| {
            if let Remark::Identity(_, pin) = remark {
                failures = Some(pin.failures);
            }
            true
        });
        told.expect("the officer's PIN");
        failures.expect("there is one")
    };
    assert_eq!(failures(), 3);
    user.logout(its).expect("it was logged in");
    for _ in 0..2 {
        officer(&place, Identities::Revoke(web));
        assert!(labels(&service, session).is_empty());
        add(b"web1-pin");
        assert_eq!(labels(&service, session), ["site", "other"]);
        let key = found(&service, session, vec![bytes(CKA_LABEL, b"site")])[0].0;
        sign(&service, session, key).expect("it is there again");
    }
    assert_eq!(failures(), 0);
    // The user's PIN may be locked, and the token made anew under the same names.
    user.login(its, CKU_USER, PIN).expect("the user's PIN");
    made_anew(&place, "web", b"87654321");
    assert!(labels(&service, session).is_empty());
    add(b"web1-pin");
    assert_eq!(labels(&service, session), ["site"], "those of the new one");
}

/// Also while a client has the token open by a PIN of its own.
#[test]
fn the_daemons_login_is_logged_before_services_have_it() {
    let place = Place::new("identity-log");
    let web = Name::new(b"web1").expect("a name");
    fs::write(place.0.join("web1"), "web1-pin\n").expect("the PIN is written");
    let add = |pin: &[u8]| officer(&place, Identities::Add(web, NewPin(pin)));
    add(b"web1-pin");
    let tokens = as_identity(&place, "web1").expect("it is right");
    let (file, directory) = (place.0.join("audit.toml"), place.0.join("log"));
    let audit = format!(
        "audit = \"{}/audit\"\naudit_required = true\n[[token]]\npath = \"/web\"\n",
        directory.display()
    );
    fs::write(&file, audit).expect("the configuration is written");
    fs::create_dir(&directory).expect("the directory is made");
    tokens.log(Log::of(&Source::of_file(file).read().expect("it is right").0));
    tokens.tell_opened().expect("a line");
    let (service, user) = (client(&tokens), client(&tokens));
    let [session, its] =
        [&service, &user].map(|who| who.open_session(SLOT, WRITE).expect("a session"));
    user.login(its, CKU_USER, PIN).expect("the user's PIN");
    for (pin, is_right) in [(&b"web1-pin"[..], true), (b"another-pin", false), (b"web1-pin", true)]
    {
        officer(&place, Identities::Revoke(web));
        assert!(labels(&service, session).is_empty());
        add(pin);
        assert_ne!(labels(&service, session).is_empty(), is_right);
    }
    let events = || {
        let lines = fs::read_to_string(directory.join("audit")).expect("there are lines");
        let field = |line: &str, name: &str| {
            let (_, rest) = line.split_once(&format!("\"{name}\":\""))?;
            Some(rest.split('"').next()?.to_owned())
        };
        let of_daemon = lines.lines().filter(|line| !line.contains("\"session\""));
        let event = |line| Some((field(line, "event")?, field(line, "result")));
        of_daemon.filter_map(event).collect::<Vec<_>>()
    };
    let opened = |result: &str| (String::from("opened"), Some(result.to_owned()));
    let closed = (String::from("closed"), None);
    let (well, wrong) = (opened("CKR_OK"), opened("CKR_PIN_INCORRECT"));
    let begun = [&well, &closed, &well, &closed, &wrong, &well].map(Clone::clone);
    assert_eq!(events(), begun);
    // What cannot be logged does not happen.
    officer(&place, Identities::Revoke(web));
    assert!(labels(&service, session).is_empty());
    fs::rename(&directory, place.0.join("away")).expect("it is taken away");
    add(b"web1-pin");
    assert!(labels(&service, session).is_empty());
    fs::rename(place.0.join("away"), &directory).expect("it is back");
    assert_eq!(labels(&service, session), ["site", "other"]);
    let begun = [&begun[..], &[closed.clone(), well]].concat();
    assert_eq!(events(), begun);
    // Of a token that was made anew it ends as well where a client is the first to come in.
    user.logout(its).expect("it was logged in");
    made_anew(&place, "web", PIN);
    user.login(its, CKU_USER, PIN).expect("the user's PIN");
    assert_eq!(events(), [&begun[..], &[closed]].concat());
}

#[test]
fn a_revoked_identity_of_the_daemon_leaves_no_keys_behind() {
    let place = Place::new("identity-keys");
    let web = Name::new(b"web1").expect("a name");
    fs::write(place.0.join("web1"), "web1-pin\n").expect("the PIN is written");
    officer(&place, Identities::Add(web, NewPin(b"web1-pin")));
    let tokens = as_identity(&place, "web1").expect("it is right");
    let user = client(&tokens);
    let session = user.open_session(SLOT, WRITE).expect("a session");
    assert_eq!(user.login(session, CKU_SO, SO_PIN), Err(Error::USER_ANOTHER_ALREADY_LOGGED_IN));
    // A client that is the same identity by its PIN ends with it.
    let session_of = |who: &Engine| who.open_session(SLOT, WRITE).expect("a session");
    let twin = client(&tokens);
    let its = session_of(&twin);
    twin.login_as(its, web, b"web1-pin").expect("its PIN");
    officer(&place, Identities::Revoke(web));
    assert!(labels(&twin, its).is_empty());
    // One that comes in again without having gone is one client still.
    let add = Identities::Add(web, NewPin(b"web1-pin"));
    officer(&place, add);
    twin.login_as(its, web, b"web1-pin").expect("its PIN");
    officer(&place, Identities::Revoke(web));
    user.login(session, CKU_USER, PIN).expect("the user's PIN");
    drop((user, twin));
    // The last one has gone, and the token is closed.
    let officer = client(&tokens);
    officer.login(session_of(&officer), CKU_SO, SO_PIN).expect("nobody is logged in");
}

#[test]
fn what_is_known_of_providers_is_known_to_all_clients() {
    let place = Place::new("routes");
    let tokens = place.tokens("", "");
    let [one, other] = [client(&tokens), client(&tokens)];
    assert!(std::ptr::eq(one.routes(), other.routes()));
}

#[test]
fn objects_of_a_session_are_those_of_one_client() {
    let place = Place::new("session");
    let tokens = place.tokens("", "");
    let [one, other] = [client(&tokens), client(&tokens)];
    let [mine, theirs] =
        [&one, &other].map(|who| who.open_session(SLOT, WRITE).expect("a session"));
    let template = vec![bytes(CKA_VALUE_LEN, &16_u64.to_ne_bytes()), bytes(CKA_LABEL, b"mine")];
    let made = one.generate_key(mine, CKM_AES_KEY_GEN, Params::None, template);
    let key = made.expect("a key of the session");
    one.object(mine, key).expect("it is there");
    assert_eq!(other.object(theirs, key).err(), Some(Error::OBJECT_HANDLE_INVALID));
    other.find_init(theirs, vec![bytes(CKA_LABEL, b"mine")]).expect("a search");
    assert_eq!(other.find(theirs, 10), Ok(vec![]));
}

#[test]
fn a_service_has_its_key_without_a_pin_and_nothing_else() {
    let place = Place::new("rights");
    let tokens = place.with_rights("keys = [\"site\"]\noperations = [\"sign\"]");
    let service = client(&tokens);
    let info = service.token_info(SLOT).expect("a token");
    assert_eq!(info.flags & (CKF_LOGIN_REQUIRED | CKF_PROTECTED_AUTHENTICATION_PATH), 0);
    let session = service.open_session(SLOT, WRITE).expect("a session");
    assert_eq!(labels(&service, session), ["site"]);
    assert!(found(&service, session, vec![bytes(CKA_LABEL, b"other")]).is_empty());
    let key = found(&service, session, vec![bytes(CKA_LABEL, b"site")])[0].0;
    sign(&service, session, key).expect("that is its right");
    let derivation = service.derive_key(session, CKM_ECDH1_DERIVE, Params::None, key, vec![]);
    assert!(derivation.is_err(), "deriving is not");
    let object = service.object(session, key).expect("it is there");
    let derives = object.answer(CKA_DERIVE);
    assert!(matches!(derives, Ok(Answer::Value(Value::Bool(false)))), "and is not said to be");
    assert_eq!(service.copy_object(session, key, vec![]).err(), Some(Error::ACTION_PROHIBITED));
    assert_eq!(service.destroy_object(session, key), Err(Error::ACTION_PROHIBITED));
    let changed = service.set_attributes(session, key, vec![bytes(CKA_DERIVE, &[1])]);
    assert_eq!(changed, Err(Error::ACTION_PROHIBITED));
    assert_eq!(pair(&service, session, "new"), Err(Error::USER_NOT_LOGGED_IN));
    // With the PIN it has what the token gives, until it logs out.
    service.login(session, CKU_USER, PIN).expect("the PIN");
    assert_eq!(labels(&service, session), ["site", "other"]);
    assert_eq!(service.object(session, key).err(), Some(Error::OBJECT_HANDLE_INVALID));
    service.logout(session).expect("it was logged in");
    assert_eq!(labels(&service, session), ["site"]);
}

#[test]
fn a_service_has_its_key_for_the_mechanisms_that_it_is_given() {
    let place = Place::new("mechanisms");
    let signs = |mechanisms: &str| {
        let tokens = place.with_rights(&format!("operations = [\"sign\"]\n{mechanisms}"));
        let service = client(&tokens);
        let session = service.open_session(SLOT, WRITE).expect("a session");
        let key = found(&service, session, vec![bytes(CKA_LABEL, b"site")])[0].0;
        sign(&service, session, key)
    };
    assert_eq!(signs(""), Ok(()));
    assert_eq!(signs("mechanisms = [\"CKM_ECDSA\"]"), Ok(()));
    assert_eq!(signs("mechanisms = [\"CKM_ECDSA_SHA256\"]"), Err(Error::MECHANISM_INVALID));
    assert_eq!(signs("mechanisms = []"), Err(Error::KEY_FUNCTION_NOT_PERMITTED));
}

#[test]
fn rights_of_others_are_none() {
    let place = Place::new("others");
    let pin = format!("pin-source = \"file:{}/pin\"", place.0.display());
    let client_of = |services: &str, token: &str| {
        let section = "keys = [\"site\"]\noperations = [\"sign\"]";
        let text =
            format!("[[client]]\nservices = [\"{services}\"]\ntoken = \"{token}\"\n{section}");
        let tokens = place.tokens(&pin, &text);
        let client = client(&tokens);
        let session = client.open_session(SLOT, WRITE).expect("a session");
        labels(&client, session)
    };
    let user = format!("user:{}", geteuid().as_raw());
    assert_eq!(client_of(&user, "web"), ["site"]);
    assert!(client_of(&user, "other").is_empty());
    assert!(client_of("user:4294967294", "web").is_empty());
    assert!(client_of("program:/bin/true", "web").is_empty());
    let own = std::env::current_exe().expect("the test has a file");
    assert_eq!(client_of(&format!("program:{}", own.display()), "web"), ["site"]);
}

/// Each try would count.
#[test]
fn a_pin_that_is_not_the_tokens_any_more_is_tried_once() {
    let place = Place::new("anew");
    let tokens = place.with_rights("operations = [\"sign\"]");
    let elsewhere = place.tokens("", "");
    let owner = client(&elsewhere);
    owner.init_token(SLOT, SO_PIN, "web").expect("a token in its place");
    let session = owner.open_session(SLOT, WRITE).expect("a session");
    owner.login(session, CKU_SO, SO_PIN).expect("the officer's PIN");
    owner.init_pin(session, b"another-pin").expect("another PIN");
    owner.logout(session).expect("the officer goes");
    let service = client(&tokens);
    for _ in 0..12 {
        let session = service.open_session(SLOT, WRITE).expect("a session");
        assert!(labels(&service, session).is_empty());
    }
    let left = owner.token_info(SLOT).expect("a token").user.left;
    owner.login(session, CKU_USER, b"another-pin").expect("it is not locked");
    assert_eq!(left, 9, "of ten tries one was the daemon's");
}

#[test]
fn a_token_that_cannot_be_opened_is_named() {
    let place = Place::new("pin");
    fs::write(place.0.join("pin"), b"87654321\n").expect("a wrong PIN");
    let pin = format!("pin-source = \"file:{}/pin\"", place.0.display());
    let refused = place.try_tokens(&pin, "").expect_err("the PIN is wrong");
    assert!(refused.contains("token.db") && refused.contains("CKR_PIN_INCORRECT"), "{refused}");
    assert!(!refused.contains("87654321"), "{refused}");
    let refused = place.try_tokens("pin-source = \"file:/nowhere/pin\"", "");
    let reason = "/nowhere/pin cannot be read: No such file or directory";
    assert!(refused.expect_err("no file").ends_with(reason));
    let refused = place.try_tokens("pin-source = \"file:/dev/null\"", "");
    assert!(refused.expect_err("a device").ends_with(": /dev/null is not a file"));
    for (said, reason) in
        [("\n", "/pin is empty"), (&*"1".repeat(256), "/pin has more than 255 bytes")]
    {
        fs::write(place.0.join("pin"), said).expect("it is no PIN");
        let refused = place.try_tokens(&pin, "").expect_err("it is none");
        assert!(refused.ends_with(reason), "{refused}");
    }
    let refused = place.try_tokens("pin-source = \"credential:web\"", "");
    let refused = refused.expect_err("no credential");
    assert!(refused.contains("systemd has passed no credential web"), "{refused}");
}

/// A token in the place of the one that was there, with keys of its own.
fn made_anew(place: &Place, label: &str, pin: &[u8]) {
    let elsewhere = place.tokens("", "");
    let owner = client(&elsewhere);
    owner.init_token(SLOT, SO_PIN, label).expect("a token in its place");
    let session = owner.open_session(SLOT, WRITE).expect("a session");
    owner.login(session, CKU_SO, SO_PIN).expect("the officer's PIN");
    owner.init_pin(session, pin).expect("another PIN");
    owner.logout(session).expect("the officer goes");
    owner.login(session, CKU_USER, pin).expect("it is right");
    pair(&owner, session, "site").expect("a pair");
}

#[test]
fn a_login_to_a_token_that_was_made_anew_opens_nothing_when_another_logs_in() {
    let place = Place::new("void");
    let tokens = place.tokens("", "");
    let [old, new] = [client(&tokens), client(&tokens)];
    let [mine, theirs] = [&old, &new].map(|who| who.open_session(SLOT, WRITE).expect("a session"));
    old.login(mine, CKU_USER, PIN).expect("the PIN");
    made_anew(&place, "web", b"another-pin");
    assert!(labels(&old, mine).is_empty(), "its token has gone");
    new.login(theirs, CKU_USER, b"another-pin").expect("the new PIN");
    assert_eq!(labels(&new, theirs), ["site"]);
    assert!(labels(&old, mine).is_empty(), "by the PIN of a token that has gone");
    assert_eq!(pair(&old, mine, "new").err(), Some(Error::USER_NOT_LOGGED_IN));
    // Its end is not that of the other one's login.
    drop(old);
    let key = found(&new, theirs, vec![])[0].0;
    sign(&new, theirs, key).expect("it is logged in still");
}

#[test]
fn a_pin_of_a_client_gives_a_service_no_rights_that_the_daemons_does_not() {
    let place = Place::new("own");
    let tokens = place.with_rights("operations = [\"sign\"]");
    let [service, owner] = [client(&tokens), client(&tokens)];
    let [session, theirs] =
        [&service, &owner].map(|who| who.open_session(SLOT, WRITE).expect("a session"));
    made_anew(&place, "web", b"another-pin");
    owner.login(theirs, CKU_USER, b"another-pin").expect("the new PIN");
    assert_eq!(labels(&owner, theirs), ["site"]);
    assert!(labels(&service, session).is_empty(), "the daemon's PIN is not the token's");
    owner.logout(theirs).expect("it was logged in");
    owner.login(theirs, CKU_SO, SO_PIN).expect("the token is not kept open");
}

#[test]
fn a_service_does_not_end_the_login_of_an_officer() {
    let place = Place::new("officer");
    let tokens = place.with_rights("operations = [\"sign\"]");
    let [service, officer] = [client(&tokens), client(&tokens)];
    let [session, theirs] =
        [&service, &officer].map(|who| who.open_session(SLOT, WRITE).expect("a session"));
    let elsewhere = place.tokens("", "");
    client(&elsewhere).init_token(SLOT, SO_PIN, "web").expect("a token in its place");
    officer.login(theirs, CKU_SO, SO_PIN).expect("the officer's PIN");
    assert!(labels(&service, session).is_empty(), "there is no user yet");
    officer.init_pin(theirs, PIN).expect("the officer is logged in still");
    assert!(labels(&service, session).is_empty(), "the officer has the token");
    officer.logout(theirs).expect("it was logged in");
    officer.login(theirs, CKU_USER, PIN).expect("the PIN");
    pair(&officer, theirs, "site").expect("a pair");
    assert_eq!(labels(&service, session), ["site"], "the daemon's PIN is the token's again");
}

#[test]
fn a_service_has_no_rights_to_a_token_of_another_label() {
    let place = Place::new("label");
    let tokens = place.with_rights("operations = [\"sign\"]");
    let service = client(&tokens);
    let session = service.open_session(SLOT, WRITE).expect("a session");
    assert_eq!(labels(&service, session), ["site", "other"]);
    made_anew(&place, "private", PIN);
    assert!(labels(&service, session).is_empty(), "by rights to another");
    made_anew(&place, "web", PIN);
    assert_eq!(labels(&service, session), ["site"], "it is the one that the rights name");
}

#[test]
fn wrong_pins_of_a_client_keep_a_service_out_for_a_while_only() {
    let place = Place::new("wrong");
    let tokens = place.with_rights("operations = [\"sign\"]");
    let [service, stranger] = [client(&tokens), client(&tokens)];
    let [session, theirs] =
        [&service, &stranger].map(|who| who.open_session(SLOT, WRITE).expect("a session"));
    assert_eq!(labels(&service, session), ["site", "other"]);
    let wrong = || stranger.login(theirs, CKU_USER, b"87654321").expect_err("it is wrong");
    while wrong() != Error::PIN_LOCKED {}
    assert_eq!(labels(&service, session), ["site", "other"], "the token is open");
    made_anew(&place, "web", PIN);
    while wrong() != Error::PIN_LOCKED {}
    assert!(labels(&service, session).is_empty(), "nobody may try a PIN now");
    let begin = std::time::Instant::now();
    while labels(&service, session).is_empty() {
        assert!(begin.elapsed().as_secs() < 20, "it is over");
        std::thread::sleep(std::time::Duration::from_millis(50));
    }
}

#[test]
fn no_pin_is_tried_for_a_connection_that_has_ended() {
    let place = Place::new("ended");
    let tokens = place.tokens("", "");
    let (client, far) = connected(&tokens);
    let session = client.open_session(SLOT, WRITE).expect("a session");
    let store = metaslot_keystore::Config::new(place.0.join("token/token.db"));
    let store = SqliteStore::new(store);
    let left = || store.token().map(|row| (row.user.left, row.so.left));
    let before = left().expect("a token");
    // Who says no more may wait for an answer.
    far.shutdown(Shutdown::Write).expect("it is open");
    assert_eq!(client.login(session, CKU_USER, b"wrong pin"), Err(Error::PIN_INCORRECT));
    let counted = left().expect("a token");
    assert_eq!(counted, (before.0 - 1, before.1));
    drop(far);
    let ended = Err(Error::SESSION_CLOSED);
    for pin in [PIN, b"wrong pin"] {
        assert_eq!(client.login(session, CKU_USER, pin), ended);
        assert_eq!(client.login(session, CKU_SO, pin), ended);
        assert_eq!(client.set_pin(session, pin, b"another pin"), ended);
    }
    client.close_session(session).expect("it is open");
    assert_eq!(client.init_token(SLOT, SO_PIN, "anew"), ended);
    assert_eq!(left().expect("a token"), counted);
}

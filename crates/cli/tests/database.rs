// SPDX-License-Identifier: Apache-2.0
//! `metaslot token init --store` and `metaslot token copy`, with a server of PostgreSQL.

#[expect(clippy::unwrap_used, reason = "a test fails where it cannot go on")]
#[path = "../../postgres/tests/common/mod.rs"]
mod postgres;

use metaslot_spi::store::{Role, Store as _};
use postgres::{PASSWORD, Place, SO, USER};
use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::process::{Command, Output};

fn metaslot(place: &Place, arguments: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_metaslot"));
    command.current_dir(place.path("")).args(["token"]).args(arguments);
    command.args(["--password-source", "role"]).output().expect("it is built")
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

#[test]
fn an_error_says_what_is_wrong_with_which_url() {
    for (url, says) in [
        ("postgresql:///vault", "database: it names no host"),
        ("postgresql://db:port/vault", "database: is no URL such as postgresql://"),
    ] {
        let init = ["token", "init", "--label", "web", "--store", url];
        let command = Command::new(env!("CARGO_BIN_EXE_metaslot")).args(init).output();
        let told = text(&command.expect("it is built").stderr);
        assert!(
            told.starts_with("error: the URL of the token's ") && told.contains(says),
            "{told}"
        );
    }
}

#[test]
fn a_token_is_made_in_a_database_and_copied_both_ways() {
    let Some(place) = Place::new("command") else { return };
    for (name, content) in [("role", PASSWORD.as_bytes()), ("so", SO), ("user", USER)] {
        fs::write(place.path(name), content).expect("it is written");
    }
    let url = place.url();
    let init = ["init", "--store", &url, "--label", "web", "--so-pin-source", "so"];
    let init = [&init[..], &["--pin-source", "user"]].concat();
    let made = metaslot(&place, &init);
    let said = text(&made.stdout);
    assert!(made.status.success(), "{}", text(&made.stderr));
    assert!(said.starts_with("initialised token 'web' in postgresql://"), "{said}");
    // The roles that it prints are ones that can be made, by who may make roles.
    assert!(said.contains("by a superuser or an owner with CREATEROLE"), "{said}");
    let (_, roles) = said.split_once("schema:\n").expect("roles follow");
    place.sql(roles);
    place.sql(&format!("CREATE ROLE reader LOGIN PASSWORD '{PASSWORD}' IN ROLE metaslot_use"));
    place.sql(&format!("CREATE ROLE writer LOGIN PASSWORD '{PASSWORD}' IN ROLE metaslot_change"));
    let by = |role: &str| {
        let url = url.replace("postgres@", &format!("{role}@"));
        let address = url.parse().expect("it is right");
        metaslot_postgres::PostgresStore::new(metaslot_postgres::Config {
            address,
            ..place.config()
        })
    };
    let (reader, writer) = (by("reader"), by("writer"));
    for store in [&reader, &writer] {
        store.login(Role::User, USER).expect("the PIN is right");
    }
    let id = postgres::insert(&writer, postgres::private("key"));
    postgres::until("it is heard of", || postgres::find(&reader, "key") == [id]);
    assert_eq!(reader.secrets(id, 1).expect("it opens").expose(), b"secret of key");
    let change = metaslot_spi::store::Change::Delete { id, version: 1, unique_id: None };
    let refused = reader.write(vec![change]).expect_err("it only uses");
    assert_eq!(refused, metaslot_ck::Error::TOKEN_WRITE_PROTECTED);
    writer.set_pin(Role::User, USER, USER).expect("it changes PINs");
    let again = metaslot(&place, &init);
    assert!(text(&again.stderr).contains("there is token 'web' already"));

    let out = metaslot(&place, &["copy", &url, "web.token", "--pin-source", "user"]);
    assert!(out.status.success(), "{}", text(&out.stderr));
    assert_eq!(text(&out.stdout), "1 objects copied into web.token\n");
    let second = url.replace("token=test", "token=second");
    let copied = metaslot(&place, &["copy", "web.token", &second, "--pin-source", "user"]);
    assert!(copied.status.success(), "{}", text(&copied.stderr));
    for (arguments, says) in [
        (["copy", "web.token", &second, "--pin-source", "so"], "a token is there already"),
        (["copy", &url, "other.token", "--pin-source", "so"], "wrong PIN, 9 attempts left"),
        (["copy", "web.token", "other.token", "--pin-source", "user"], "one of the two is a URL"),
    ] {
        let refused = metaslot(&place, &arguments);
        let told = text(&refused.stderr);
        assert!(!refused.status.success() && told.contains(says), "{told}");
    }
    assert!(!place.path("other.token").exists());
}

#[test]
fn a_token_whose_pins_are_mixed_with_a_pepper_is_made_and_copied_with_it() {
    let Some(place) = Place::new("pepper") else { return };
    for (name, content) in [("role", PASSWORD.as_bytes()), ("so", SO), ("user", USER)] {
        fs::write(place.path(name), content).expect("it is written");
    }
    fs::write(place.path("pepper"), [7; 32]).expect("it is written");
    fs::set_permissions(place.path("pepper"), fs::Permissions::from_mode(0o600)).expect("it is");
    let url = place.url();
    let init = ["init", "--store", &url, "--so-pin-source", "so", "--pin-source", "user"];
    let made = metaslot(&place, &[&init[..], &["--pepper", "pepper"]].concat());
    assert!(made.status.success(), "{}", text(&made.stderr));
    assert!(place.store().login(Role::User, USER).is_err());
    let pepper = Some(place.path("pepper"));
    let store = metaslot_postgres::Config { pepper, ..place.config() };
    metaslot_postgres::PostgresStore::new(store).login(Role::User, USER).expect("it is right");
    let copy = ["copy", &url, "web.token", "--pin-source", "user"];
    let refused = metaslot(&place, &copy);
    assert!(text(&refused.stderr).contains("set pepper"), "{}", text(&refused.stderr));
    let copied = metaslot(&place, &[&copy[..], &["--pepper", "pepper"]].concat());
    assert!(copied.status.success(), "{}", text(&copied.stderr));
}

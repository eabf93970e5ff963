// SPDX-License-Identifier: Apache-2.0
//! Fast login: it needs the PIN, it expires, and a new PIN voids it.
#![expect(clippy::unwrap_used, reason = "a test fails where it cannot go on")]

mod common;

use common::{Place, SO, USER};
use metaslot_ck::Error;
use metaslot_keystore::{Config, SqliteStore};
use metaslot_spi::store::{Role, Store};
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::time::Duration;

/// A token, and a store on it with fast login.
fn place() -> (Place, Config) {
    let place = Place::new();
    drop(place.token());
    let runtime = place.path().join("runtime");
    fs::create_dir(&runtime).unwrap();
    let config = Config {
        fast_login: Some(Duration::from_mins(10)),
        runtime: Some(runtime),
        ..place.config()
    };
    (place, config)
}

/// Logs in with a fresh store and says whether the fast way served.
fn fast(config: &Config, pin: &[u8]) -> Result<bool, Error> {
    let store = SqliteStore::new(config.clone());
    store.login(Role::User, pin)?;
    assert_eq!(store.token().unwrap().user.failures, 0);
    let statistics = store.statistics();
    assert_eq!(statistics.fast_hits + statistics.fast_misses, 1);
    Ok(statistics.fast_hits == 1)
}

#[test]
fn the_second_login_is_fast() {
    let (_place, config) = place();
    assert_eq!(fast(&config, USER), Ok(false));
    assert_eq!(fast(&config, USER), Ok(true));
    assert_eq!(fast(&config, USER), Ok(true));
    let secret = config.runtime.unwrap().join("login-secret");
    assert_eq!(fs::metadata(secret).unwrap().permissions().mode() & 0o777, 0o600);
}

#[test]
fn a_wrong_pin_is_wrong_and_counted_on_the_fast_way_too() {
    let (place, config) = place();
    fast(&config, USER).unwrap();
    assert_eq!(fast(&config, b"wrong"), Err(Error::PIN_INCORRECT));
    assert_eq!(place.store().token().unwrap().user.failures, 1);
    assert_eq!(fast(&config, USER), Ok(true));
}

#[test]
fn a_new_pin_voids_it() {
    let (place, config) = place();
    fast(&config, USER).unwrap();
    place.store().set_pin(Role::User, USER, b"new").unwrap();
    assert_eq!(fast(&config, USER), Err(Error::PIN_INCORRECT));
    assert_eq!(fast(&config, b"new"), Ok(false));
    assert_eq!(fast(&config, b"new"), Ok(true));
    let store = place.store();
    store.login(Role::So, SO).unwrap();
    store.init_pin(b"newer").unwrap();
    assert_eq!(fast(&config, b"newer"), Ok(false));
}

#[test]
fn it_expires() {
    let (place, config) = place();
    fast(&config, USER).unwrap();
    place.raw().execute("UPDATE fast_login SET expires = expires - 700", ()).unwrap();
    assert_eq!(fast(&config, USER), Ok(false));
    // A later date does not open either: the seal knows it.
    place.raw().execute("UPDATE fast_login SET expires = expires - 1", ()).unwrap();
    assert_eq!(fast(&config, USER), Ok(false));
}

#[test]
fn another_boots_secret_opens_nothing() {
    let (_place, config) = place();
    fast(&config, USER).unwrap();
    let secret = config.runtime.as_ref().unwrap().join("login-secret");
    fs::remove_file(&secret).unwrap();
    assert_eq!(fast(&config, USER), Ok(false));
    assert_eq!(fast(&config, USER), Ok(true));
}

#[test]
fn a_secret_that_others_can_read_is_not_used() {
    let (_place, config) = place();
    fast(&config, USER).unwrap();
    let secret = config.runtime.as_ref().unwrap().join("login-secret");
    fs::set_permissions(&secret, fs::Permissions::from_mode(0o644)).unwrap();
    let store = SqliteStore::new(config);
    store.login(Role::User, USER).unwrap();
    assert_eq!(store.statistics().fast_hits, 0);
}

#[test]
fn without_a_runtime_directory_nothing_is_made() {
    let (place, config) = place();
    let runtime = place.path().join("nowhere");
    let store = SqliteStore::new(Config { runtime: Some(runtime.clone()), ..config });
    store.login(Role::User, USER).unwrap();
    assert!(!runtime.exists());
}

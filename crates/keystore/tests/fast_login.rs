// SPDX-License-Identifier: Apache-2.0
//! Fast login: it needs the PIN, it expires, and a new PIN voids it.
#![expect(clippy::unwrap_used, reason = "a test fails where it cannot go on")]

mod common;

use common::{SO, Sandbox, USER};
use metaslot_ck::Error;
use metaslot_keystore::{Config, SqliteStore};
use metaslot_memory::{Secret, keyring};
use metaslot_spi::store::{Role, Store};
use std::collections::BTreeMap;
use std::ffi::CString;
use std::fs::{self, Permissions};
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::PathBuf;
use std::sync::OnceLock;
use std::time::Duration;

/// A token, and a store on it with fast login.
fn place() -> (Sandbox, Config) {
    let place = Sandbox::new();
    drop(place.token());
    let config = Config { fast_login: Some(Duration::from_mins(10)), ..place.config() };
    (place, config)
}

/// Whether the kernel keeps secrets here; containers often deny it. There every login is slow.
fn possible() -> bool {
    static KEPT: OnceLock<bool> = OnceLock::new();
    let name = c"metaslot:test:possible";
    *KEPT.get_or_init(|| {
        let kept = keyring::keep(name, &Secret::copy_of(b"probe"), 10);
        if let Err(error) = &kept {
            metaslot_testkit::not_run("keystore", "fast logins", &error.to_string());
        }
        kept.is_ok()
    })
}

/// As the kernel knows the secret of this token's user.
fn secret_name(config: &Config) -> CString {
    let serial = SqliteStore::new(config.clone()).token().unwrap().serial;
    CString::new(format!("metaslot:{serial}:1")).unwrap()
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
    assert_eq!(fast(&config, USER), Ok(possible()));
    assert_eq!(fast(&config, USER), Ok(possible()));
}

#[test]
fn a_wrong_pin_is_wrong_and_counted_on_the_fast_way_too() {
    let (place, config) = place();
    fast(&config, USER).unwrap();
    assert_eq!(fast(&config, b"wrong PIN"), Err(Error::PIN_INCORRECT));
    assert_eq!(place.store().token().unwrap().user.failures, 1);
    assert_eq!(fast(&config, USER), Ok(possible()));
}

#[test]
fn a_new_pin_voids_it() {
    let (place, config) = place();
    fast(&config, USER).unwrap();
    place.store().set_pin(Role::User, USER, b"new PIN 1").unwrap();
    assert_eq!(fast(&config, USER), Err(Error::PIN_INCORRECT));
    assert_eq!(fast(&config, b"new PIN 1"), Ok(false));
    assert_eq!(fast(&config, b"new PIN 1"), Ok(possible()));
    let store = place.store();
    store.login(Role::So, SO).unwrap();
    store.init_pin(b"newer PIN").unwrap();
    assert_eq!(fast(&config, b"newer PIN"), Ok(false));
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
fn without_the_kernels_secret_a_wrap_opens_nothing() {
    let (_place, config) = place();
    fast(&config, USER).unwrap();
    keyring::forget(&secret_name(&config)).unwrap_or_default();
    assert_eq!(fast(&config, USER), Ok(false));
    assert_eq!(fast(&config, USER), Ok(possible()));
}

#[test]
fn another_secret_opens_nothing_and_a_token_made_anew_has_no_wraps() {
    let (place, config) = place();
    fast(&config, USER).unwrap();
    let other = Secret::copy_of(&[7; 32]);
    if keyring::keep(&secret_name(&config), &other, 60).is_ok() {
        assert_eq!(fast(&config, USER), Ok(false));
    }
    place.store().initialize(SO, "anew").unwrap();
    let rows = place.raw().query_row("SELECT count(*) FROM fast_login", (), |row| row.get(0));
    assert_eq!(rows, Ok(0));
}

/// Anyone who has the files tries all of its kind in seconds.
#[test]
fn a_short_pin_has_no_fast_way() {
    let (place, config) = place();
    fast(&config, USER).unwrap();
    place.store().set_pin(Role::User, USER, b"1234567").unwrap();
    let rows = || {
        let count = "SELECT count(*) FROM fast_login";
        place.raw().query_row(count, (), |row| row.get::<_, u32>(0)).unwrap()
    };
    assert_eq!(fast(&config, b"1234567"), Ok(false));
    assert_eq!((fast(&config, b"1234567"), rows()), (Ok(false), 0));
    // Nor does one that an older release has left.
    let owner = rustix::process::geteuid().as_raw();
    place
        .raw()
        .execute("INSERT INTO fast_login VALUES(?1, 1, 9999999999, x'00')", [owner])
        .unwrap();
    assert_eq!((fast(&config, b"1234567"), rows()), (Ok(false), 0));
}

#[test]
fn no_login_leaves_a_secret_on_the_disk_and_one_of_an_older_release_goes() {
    let (place, config) = place();
    let runtime = place.path().join("runtime");
    let config = Config { runtime: Some(runtime.clone()), ..config };
    fast(&config, USER).unwrap();
    assert!(!runtime.exists(), "the directory is not made");
    fs::create_dir(&runtime).unwrap();
    fs::write(runtime.join("login-secret"), [1; 32]).unwrap();
    fast(&config, USER).unwrap();
    assert_eq!(fs::read_dir(&runtime).unwrap().count(), 0);
}

#[test]
fn a_fast_login_of_the_old_pin_that_is_put_back_opens_nothing() {
    let (place, config) = place();
    fast(&config, USER).unwrap();
    assert_eq!(fast(&config, USER), Ok(possible()));
    let raw = place.raw();
    raw.execute_batch("CREATE TABLE old AS SELECT * FROM fast_login").unwrap();
    SqliteStore::new(config.clone()).set_pin(Role::User, USER, b"another-pin").unwrap();
    raw.execute_batch("INSERT INTO fast_login SELECT * FROM old").unwrap();
    assert_eq!(fast(&config, USER), Err(Error::PIN_INCORRECT));
    assert_eq!(fast(&config, b"another-pin"), Ok(false));
    assert_eq!(fast(&config, b"another-pin"), Ok(possible()));
}

#[test]
fn a_wrap_that_has_expired_goes_with_the_next_attempt() {
    let (place, config) = place();
    fast(&config, USER).unwrap();
    let raw = place.raw();
    raw.execute_batch("INSERT OR REPLACE INTO fast_login VALUES(7, 1, 5, x'00')").unwrap();
    assert_eq!(fast(&config, b"wrong PIN"), Err(Error::PIN_INCORRECT));
    let old = "SELECT count(*) FROM fast_login WHERE expires = 5";
    assert_eq!(raw.query_row(old, (), |row| row.get::<_, u32>(0)), Ok(0));
}

/// A directory in memory for this test alone; it goes with it.
struct Memory(PathBuf);

impl Memory {
    fn new(name: &str) -> Self {
        let path = PathBuf::from(format!("/dev/shm/metaslot-test-{name}-{}", std::process::id()));
        fs::create_dir(&path).unwrap();
        fs::set_permissions(&path, Permissions::from_mode(0o700)).unwrap();
        Self(path)
    }
}

impl Drop for Memory {
    fn drop(&mut self) {
        fs::remove_dir_all(&self.0).unwrap_or_default();
    }
}

/// What a power cut would leave: all of the store but the index of its log, which is made anew.
fn on_the_disk(place: &Sandbox) -> BTreeMap<PathBuf, Vec<u8>> {
    let files = fs::read_dir(place.path()).unwrap().map(|entry| entry.unwrap().path());
    let files = files.filter(|path| path.is_file() && !path.to_string_lossy().ends_with("-shm"));
    files.map(|path| (path.clone(), fs::read(path).unwrap())).collect()
}

#[test]
fn a_fast_login_writes_nothing_to_the_disk_and_a_wrong_pin_ends_that() {
    let (place, config) = place();
    let memory = Memory::new("writes-nothing");
    let config = Config { volatile: vec![memory.0.clone()], ..config };
    assert_eq!(fast(&config, USER), Ok(false));
    let login = |pin: &[u8]| {
        let before = on_the_disk(&place);
        let is_fast = fast(&config, pin);
        (is_fast, before == on_the_disk(&place))
    };
    assert_eq!(login(USER), (Ok(true), true));
    assert_eq!(login(USER), (Ok(true), true));
    assert_eq!(login(b"wrong PIN"), (Err(Error::PIN_INCORRECT), false));
    assert_eq!(place.store().token().unwrap().user.failures, 1);
    // A right PIN clears the count, in the store.
    assert_eq!(login(USER), (Ok(true), false));
    assert_eq!(login(USER), (Ok(true), true));
}

/// What processes leave that are killed in a fast login, so many in each of these directories.
fn killed(bases: &[PathBuf], number: u64) {
    for base in bases {
        let own = fs::read_dir(base).unwrap().next().unwrap().unwrap().path();
        let mut files = fs::read_dir(own).unwrap().map(|entry| entry.unwrap().path());
        let file = files.find(|path| path.extension() == Some("attempts".as_ref())).unwrap();
        // By a clock that was set back since.
        fs::write(file, [number.to_le_bytes(), 99_999_999_999_u64.to_le_bytes()].concat()).unwrap();
    }
}

#[test]
fn logins_that_are_killed_in_the_fast_way_are_among_the_ten() {
    let (place, config) = place();
    let memory = [Memory::new("killed-1"), Memory::new("killed-2")];
    let bases: Vec<PathBuf> = memory.iter().map(|memory| memory.0.clone()).collect();
    for base in &bases {
        let config = Config { volatile: vec![base.clone()], ..config.clone() };
        fast(&config, USER).unwrap();
        assert_eq!(fast(&config, USER), Ok(true));
    }
    let config = Config { volatile: bases.clone(), ..config };
    killed(&bases, 1);
    assert_eq!(fast(&config, USER), Ok(true), "a right PIN takes all of them away");
    assert_eq!(fast(&config, b"wrong PIN"), Err(Error::PIN_INCORRECT));
    assert_eq!(place.store().token().unwrap().user.failures, 1, "one attempt is one");
    assert_eq!(fast(&config, USER), Ok(true));
    killed(&bases, 1);
    for failures in 3..=10 {
        // Without the pauses.
        place.raw().execute("UPDATE token SET user_failed_at = 0", ()).unwrap();
        assert_eq!(fast(&config, b"wrong PIN"), Err(Error::PIN_INCORRECT));
        assert_eq!(place.store().token().unwrap().user.failures, failures);
    }
    assert_eq!(fast(&config, USER), Err(Error::PIN_LOCKED));
}

/// A lock that only memory has is gone with the next boot; the first attempt that finds the store writable gives it to it.
#[test]
fn a_lock_in_memory_comes_into_the_store() {
    let (place, config) = place();
    let memory = Memory::new("locked");
    let config = Config { volatile: vec![memory.0.clone()], ..config };
    for _ in 0..2 {
        fast(&config, USER).unwrap();
    }
    killed(std::slice::from_ref(&memory.0), 10);
    assert_eq!(fast(&config, USER), Err(Error::PIN_LOCKED));
    let locked = || place.store().token().unwrap().user.failures;
    assert_eq!(locked(), 10);
    drop(memory);
    assert_eq!((fast(&config, USER), locked()), (Err(Error::PIN_LOCKED), 10));
}

/// As where the runtime directory is `/dev/shm`.
#[test]
fn a_wrong_pin_counts_once_where_two_names_are_one_directory() {
    let (place, config) = place();
    let memory = Memory::new("names");
    let link = place.path().join("link");
    symlink(&memory.0, &link).unwrap();
    let config = Config { volatile: vec![memory.0.clone(), link], ..config };
    for _ in 0..2 {
        fast(&config, USER).unwrap();
    }
    assert_eq!(fast(&config, b"wrong PIN"), Err(Error::PIN_INCORRECT));
    assert_eq!(place.store().token().unwrap().user.failures, 1);
}

#[test]
fn a_login_empties_a_log_that_the_next_would_read() {
    let (place, config) = place();
    let memory = Memory::new("empties");
    let config = Config { volatile: vec![memory.0.clone()], ..config };
    fast(&config, USER).unwrap();
    // Of processes that ended without a close.
    let raw = place.raw();
    raw.execute_batch("PRAGMA wal_autocheckpoint = 0; CREATE TABLE more(x)").unwrap();
    for _ in 0..200 {
        raw.execute_batch("INSERT INTO more VALUES(zeroblob(3000))").unwrap();
    }
    let log = config.path.with_extension("db-wal");
    let long = fs::metadata(&log).unwrap().len();
    raw.execute_batch("DROP TABLE more").unwrap();
    assert_eq!(fast(&config, USER), Ok(true));
    let short = fs::metadata(&log).unwrap().len();
    assert!(long > 800_000 && short == 0, "{long} {short}");
}

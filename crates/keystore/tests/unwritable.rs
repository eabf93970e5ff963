// SPDX-License-Identifier: Apache-2.0
//! Stores that nobody can write: on a read-only file system, on a full disk. A right PIN opens them, and costs no try.
#![expect(clippy::unwrap_used, reason = "a test fails where it cannot go on")]

mod common;

use common::{SO, Sandbox, USER, find, insert, private};
use metaslot_ck::Error;
use metaslot_keystore::{Config, SqliteStore};
use metaslot_spi::store::{Change, Examination, Identities, Name, NewPin, Role, Store};
use rustix::process::{Resource, Rlimit, setrlimit};
use std::env;
use std::fs::{self, Permissions};
use std::io::Write;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;

const WRONG: &[u8] = b"not the PIN";

/// Runs a test of this file in a mount namespace of its own, after `script` has made `$PLACE` what it is to be. `memory` is where
/// counts may be.
fn within(child: &str, script: &str, place: &Path, memory: Option<&Path>) {
    unshare(&["--map-root-user", "--mount"], child, script, place, memory);
}

fn unshare(options: &[&str], child: &str, script: &str, place: &Path, memory: Option<&Path>) {
    let mut command = Command::new("unshare");
    command
        .args(options)
        .args(["bash", "-c"])
        .arg(format!("set -e; trap '' XFSZ; {script}; exec \"$0\" \"$@\""))
        .arg(env::current_exe().unwrap())
        .args([child, "--exact", "--nocapture"])
        .env("PLACE", place)
        .env("METASLOT_TEST_UNWRITABLE", place.join("token.db"));
    match memory {
        Some(memory) => command.env("METASLOT_TEST_MEMORY", memory),
        None => command.env_remove("METASLOT_TEST_MEMORY"),
    };
    let what = "stores that nobody can write";
    let output = match command.output() {
        Ok(output) => output,
        Err(error) => return metaslot_testkit::not_run("keystore", what, &error.to_string()),
    };
    let text = [&output.stdout[..], &output.stderr].map(String::from_utf8_lossy).concat();
    if !text.contains("running 1 test") {
        return metaslot_testkit::not_run("keystore", what, &format!("no mount: {text}"));
    }
    assert!(output.status.success() && text.contains("1 passed"), "{text}");
}

/// In a child: the store, with cheap PINs.
fn inside() -> Option<Config> {
    let path = env::var_os("METASLOT_TEST_UNWRITABLE")?;
    let volatile = env::var_os("METASLOT_TEST_MEMORY").map(PathBuf::from).into_iter().collect();
    Some(Config { volatile, kdf: common::CHEAP, ..Config::new(path) })
}

/// A directory in memory that goes with its test.
struct Memory(PathBuf);

impl Memory {
    fn new(name: &str) -> Self {
        let name = format!("metaslot-unwritable-{name}-{}", std::process::id());
        let path = Path::new("/dev/shm").join(name);
        fs::create_dir_all(&path).unwrap();
        Self(path)
    }
}

impl Drop for Memory {
    fn drop(&mut self) {
        fs::remove_dir_all(&self.0).unwrap_or_default();
    }
}

const READ_ONLY: &str = "mount --bind \"$PLACE\" \"$PLACE\"; mount -o remount,bind,ro \"$PLACE\"";

/// In a child: a right PIN opens the store again and again, nothing is written, three wrong ones bring a pause.
#[test]
fn child_that_reads_only() {
    let Some(config) = inside() else { return };
    let shared = !config.volatile.is_empty();
    let store = SqliteStore::new(config.clone());
    assert!(!store.token().unwrap().writable);
    for _ in 0..12 {
        let store = SqliteStore::new(config.clone());
        store.login(Role::User, USER).unwrap();
        let [id] = find(&store, "key")[..] else { panic!("one key") };
        let version = store.read(id).unwrap().unwrap().version;
        assert_eq!(store.secrets(id, version).unwrap().expose(), b"secret of key");
        assert!(store.verify().unwrap().is_sound());
        assert_eq!(
            store.write(vec![Change::Insert(private("x"))]),
            Err(Error::TOKEN_WRITE_PROTECTED)
        );
        let changed = store.set_pin(Role::User, USER, b"another PIN");
        assert_eq!(changed, Err(Error::TOKEN_WRITE_PROTECTED));
    }
    store.login(Role::So, SO).unwrap();
    store.logout();
    for failures in 1..=3 {
        assert_eq!(store.login(Role::User, WRONG), Err(Error::PIN_INCORRECT));
        let said = format!("wrong PIN, {} attempts left", 10 - failures);
        assert_eq!(store.last_error(), Some(said));
        let seen = store.token().unwrap().user;
        assert_eq!(
            (seen.failures, seen.left),
            if shared { (failures, 10 - failures) } else { (0, 10) }
        );
    }
    // Another store of the process has no tries of its own. Each pause is twice as long as the one before: on a slow machine
    // more attempts are taken.
    let mut attempts = (0..7).map(|_| {
        let other = SqliteStore::new(config.clone());
        (other.login(Role::User, WRONG), other.last_error().unwrap())
    });
    let (last, said) = attempts.find(|(done, _)| *done != Err(Error::PIN_INCORRECT)).unwrap();
    assert_eq!(last, Err(Error::PIN_LOCKED));
    assert!(said.starts_with("no PIN is taken before second"), "{said}");
}

/// In a child, after one that has tried wrong PINs.
#[test]
fn child_that_comes_later() {
    let Some(config) = inside() else { return };
    let store = SqliteStore::new(config);
    assert!((3..10).contains(&store.token().unwrap().user.failures));
    // Its pause may be over.
    if store.login(Role::User, USER).is_ok() {
        assert_eq!(store.token().unwrap().user.failures, 0);
    }
}

#[test]
fn a_store_on_a_read_only_file_system_is_opened_by_a_right_pin_and_wrong_ones_are_limited() {
    let place = Sandbox::new();
    let store = place.user();
    insert(&store, private("key"));
    within("child_that_reads_only", READ_ONLY, place.path(), None);
    let memory = Memory::new("ro");
    within("child_that_reads_only", READ_ONLY, place.path(), Some(&memory.0));
    within("child_that_comes_later", READ_ONLY, place.path(), Some(&memory.0));
    assert_eq!(store.token().unwrap().user.failures, 0);
    drop(store);
    // A copy on a medium, of which the log has been left out.
    place.raw().execute_batch("PRAGMA wal_checkpoint(TRUNCATE)").unwrap();
    for end in ["-wal", "-shm", ".gen", ".lock", ".login"] {
        fs::remove_file(place.path().join(format!("token.db{end}"))).unwrap_or_default();
    }
    within("child_that_reads_only", READ_ONLY, place.path(), None);
}

fn remount(config: &Config, how: &str) {
    let mut mount = Command::new("mount");
    mount.args(["-o", &format!("remount,bind,{how}")]).arg(config.path.parent().unwrap());
    assert!(mount.status().unwrap().success());
}

/// In a child: what was counted in memory is over with the next right PIN, and with the PIN that it was tried at.
#[test]
fn child_whose_store_can_be_written_again() {
    let Some(config) = inside() else { return };
    let failures = || place_of(&config).token().unwrap().user.failures;
    for _ in 0..12 {
        assert_eq!(place_of(&config).login(Role::User, WRONG), Err(Error::PIN_INCORRECT));
        place_of(&config).login(Role::User, USER).unwrap();
        assert_eq!(failures(), 0);
    }
    for _ in 0..2 {
        assert_eq!(place_of(&config).login(Role::User, WRONG), Err(Error::PIN_INCORRECT));
    }
    remount(&config, "rw");
    place_of(&config).login(Role::User, USER).unwrap();
    remount(&config, "ro");
    assert_eq!(failures(), 0);
    assert_eq!(place_of(&config).login(Role::User, WRONG), Err(Error::PIN_INCORRECT));
    assert_eq!(failures(), 1);
    remount(&config, "rw");
    let store = place_of(&config);
    store.login(Role::So, SO).unwrap();
    store.init_pin(b"another PIN").unwrap();
    drop(store);
    remount(&config, "ro");
    assert_eq!(failures(), 0);
    place_of(&config).login(Role::User, b"another PIN").unwrap();
}

/// In a child: the store's last failure is yet to come, and so is that in memory.
#[test]
fn child_whose_clock_was_set_back() {
    let Some(config) = inside() else { return };
    let is_tried = || place_of(&config).retry_at(None) == Ok(0);
    assert_eq!(place_of(&config).retry_at(Name::new(b"web")), Ok(0), "it is not counted at all");
    assert!(is_tried(), "who waits for that waits without end");
    place_of(&config).login(Role::User, USER).unwrap();
    assert_eq!(place_of(&config).login(Role::User, WRONG), Err(Error::PIN_INCORRECT));
    let own = config.volatile[0].join("metaslot-login-0");
    let mut files = fs::read_dir(own).unwrap().map(|entry| entry.unwrap().path());
    let numbers = files.find(|path| path.extension() == Some("attempts".as_ref())).unwrap();
    let mut bytes = fs::read(&numbers).unwrap();
    let at = |bytes: &[u8]| u64::from_le_bytes(bytes[8..16].try_into().unwrap());
    let later = at(&bytes) + 1_000_000;
    bytes[8..16].copy_from_slice(&later.to_le_bytes());
    fs::write(&numbers, &bytes).unwrap();
    assert!(is_tried(), "who waits for that waits without end");
    // After five failures there is a pause, from now on.
    assert_eq!(place_of(&config).login(Role::User, USER), Err(Error::PIN_LOCKED));
    assert!(!is_tried());
    assert!(at(&fs::read(&numbers).unwrap()) <= later - 999_000);
}

#[test]
fn a_clock_that_was_set_back_keeps_nobody_out_of_what_nobody_can_write() {
    let place = Sandbox::new();
    let add = Identities::Add(Name::new(b"web").unwrap(), NewPin(USER));
    place.token().examine(Role::So, SO, Examination::Identities(add), &mut |_| true).unwrap();
    let failed = "UPDATE token SET user_failures = 4, user_failed_at = 99999999999;
                  UPDATE identity SET failures = 4, failed_at = 99999999999";
    place.raw().execute_batch(failed).unwrap();
    let memory = Memory::new("back");
    within("child_whose_clock_was_set_back", READ_ONLY, place.path(), Some(&memory.0));
}

#[test]
fn what_is_counted_in_memory_ends_with_a_right_pin_and_with_a_new_one() {
    let place = Sandbox::new();
    drop(place.token());
    let memory = Memory::new("again");
    let child = "child_whose_store_can_be_written_again";
    within(child, READ_ONLY, place.path(), Some(&memory.0));
}

/// In a child: there is a place for counts, and somebody is in the way.
#[test]
fn child_that_is_refused_a_count() {
    let Some(config) = inside() else { return };
    let place = config.volatile[0].join("metaslot-login-0");
    for pin in [WRONG, USER] {
        let store = SqliteStore::new(config.clone());
        let code = store.login(Role::User, pin).unwrap_err();
        assert!([Error::DEVICE_ERROR, Error::DEVICE_MEMORY].contains(&code), "{code:?}");
        let said = store.last_error().unwrap();
        assert!(said.starts_with(&place.display().to_string()), "{said}");
    }
}

#[test]
fn who_takes_the_name_or_the_space_of_a_count_does_not_switch_it_off() {
    let place = Sandbox::new();
    drop(place.token());
    let memory = Memory::new("taken");
    let own = memory.0.join("metaslot-login-0");
    fs::write(&own, "").unwrap();
    within("child_that_is_refused_a_count", READ_ONLY, place.path(), Some(&memory.0));
    fs::remove_file(&own).unwrap();
    let full = format!(
        "{READ_ONLY}; mount -t tmpfs -o size=64k,mode=0700 full \"$METASLOT_TEST_MEMORY\"; \
         cat /dev/zero > \"$METASLOT_TEST_MEMORY/filler\" 2> /dev/null || true"
    );
    within("child_that_is_refused_a_count", &full, place.path(), Some(&memory.0));
    // Nor does who leaves no room for more files.
    let full = format!(
        "{READ_ONLY}; mount -t tmpfs -o nr_inodes=1,mode=0700 full \"$METASLOT_TEST_MEMORY\""
    );
    within("child_that_is_refused_a_count", &full, place.path(), Some(&memory.0));
}

/// In a child that may read the store because its file has a capability.
#[test]
fn child_with_more_rights_than_its_user() {
    let Some(config) = inside() else { return };
    let store = SqliteStore::new(config);
    assert!(!store.token().unwrap().writable);
    for pin in [WRONG, USER] {
        assert_eq!(store.login(Role::User, pin), Err(Error::TOKEN_WRITE_PROTECTED));
    }
}

#[test]
fn a_program_with_capabilities_of_its_file_guesses_nothing_without_a_count() {
    let place = Sandbox::new();
    drop(place.token());
    let what = "programs with capabilities";
    if !rustix::process::geteuid().is_root() {
        return metaslot_testkit::not_run("keystore", what, "not root");
    }
    let copy = env::temp_dir().join(format!("metaslot-capable-{}", std::process::id()));
    fs::copy(env::current_exe().unwrap(), &copy).unwrap();
    let given = Command::new("setcap").arg("cap_dac_override+ep").arg(&copy).status();
    match given {
        Ok(given) if given.success() => {
            let copy = copy.display();
            let nobody = "setpriv --reuid=65534 --regid=65534 --clear-groups";
            let script = format!("{READ_ONLY}; exec {nobody} {copy} \"$@\"");
            let child = "child_with_more_rights_than_its_user";
            unshare(&["--mount"], child, &script, place.path(), Some(Path::new("/dev/shm")));
        }
        given => metaslot_testkit::not_run("keystore", what, &format!("setcap: {given:?}")),
    }
    fs::remove_file(copy).unwrap();
}

/// In a child: the database is here alone, and its writer has the log elsewhere.
#[test]
fn child_that_has_the_database_alone() {
    let Some(config) = inside() else { return };
    let store = SqliteStore::new(config);
    assert!(store.token().is_err());
    assert!(store.login(Role::User, USER).is_err());
}

#[test]
fn a_database_that_is_mounted_by_itself_is_not_taken_for_one_that_nobody_writes() {
    let place = Sandbox::new();
    drop(place.token());
    place.raw().execute_batch("PRAGMA wal_checkpoint(TRUNCATE)").unwrap();
    let guest = place.path().with_extension("guest");
    fs::create_dir(&guest).unwrap();
    fs::write(guest.join("token.db"), "").unwrap();
    let script = "mount --bind \"$PLACE/token.db\" \"$PLACE.guest/token.db\"; \
                  mount --rbind \"$PLACE.guest\" \"$PLACE\"; mount -o remount,bind,ro \"$PLACE\"";
    within("child_that_has_the_database_alone", script, place.path(), None);
    fs::remove_dir_all(guest).unwrap();
}

#[test]
fn an_anchor_is_compared_where_nobody_can_write() {
    let place = Sandbox::new();
    let anchor = place.path().with_extension("anchor");
    fs::write(&anchor, "").unwrap();
    let config = Config { anchor: Some(anchor.clone()), ..place.config() };
    let store = SqliteStore::new(config);
    common::initialize(&store);
    store.login(Role::User, USER).unwrap();
    drop(store);
    let seen = fs::read(&anchor).unwrap();
    within("child_with_an_anchor", READ_ONLY, place.path(), None);
    assert_eq!(fs::read(&anchor).unwrap(), seen);
    let mut later = seen;
    later[8] += 1;
    fs::write(&anchor, &later).unwrap();
    within("child_with_a_later_anchor", READ_ONLY, place.path(), None);
    fs::remove_file(&anchor).unwrap();
}

fn anchored() -> Option<SqliteStore> {
    let config = inside()?;
    let anchor = Some(config.path.parent().unwrap().with_extension("anchor"));
    Some(SqliteStore::new(Config { anchor, ..config }))
}

#[test]
fn child_with_an_anchor() {
    let Some(store) = anchored() else { return };
    store.login(Role::User, USER).unwrap();
}

#[test]
fn child_with_a_later_anchor() {
    let Some(store) = anchored() else { return };
    assert_eq!(store.login(Role::User, USER), Err(Error::DEVICE_ERROR));
    assert!(store.last_error().unwrap().contains("this is an older file"));
}

/// A small disk in memory with the store on it, and not a byte left.
const FULL: &str = "cp -a \"$PLACE\" \"$PLACE.from\"; mount -t tmpfs -o size=2m,mode=0700 full \"$PLACE\"; \
                    cp -a \"$PLACE.from\"/. \"$PLACE\"; rm -r \"$PLACE.from\"; \
                    cat /dev/zero > \"$PLACE/filler\" 2> /dev/null || true";

fn is_full(config: &Config) -> bool {
    let more = config.path.with_file_name("more");
    fs::write(&more, [1; 4096]).is_err() && fs::remove_file(more).is_ok()
}

/// In a child: right PINs cost nothing, and wrong ones are counted in the store all the same.
#[test]
fn child_on_a_full_disk() {
    let Some(config) = inside() else { return };
    for _ in 0..12 {
        assert!(is_full(&config));
        let store = SqliteStore::new(config.clone());
        store.login(Role::User, USER).unwrap();
        assert_eq!(find(&store, "key").len(), 1);
        assert_eq!(store.token().unwrap().user.failures, 0);
    }
    let store = SqliteStore::new(config.clone());
    assert_eq!(store.login(Role::User, WRONG), Err(Error::PIN_INCORRECT));
    assert_eq!(place_of(&config).token().unwrap().user.failures, 1);
    store.login(Role::User, USER).unwrap();
    assert_eq!(place_of(&config).token().unwrap().user.failures, 0);
}

fn place_of(config: &Config) -> SqliteStore {
    SqliteStore::new(config.clone())
}

/// In a child: while somebody reads, the log cannot begin anew, and there is no room for a count.
#[test]
fn child_on_a_full_disk_that_is_read() {
    let Some(config) = inside() else { return };
    let reader = rusqlite::Connection::open(&config.path).unwrap();
    reader.execute_batch("BEGIN; SELECT * FROM token").unwrap();
    for _ in 0..12 {
        assert!(is_full(&config));
        let store = SqliteStore::new(config.clone());
        store.login(Role::User, USER).unwrap();
        assert_eq!(find(&store, "key").len(), 1);
    }
    let store = SqliteStore::new(config);
    assert_eq!(store.login(Role::User, WRONG), Err(Error::PIN_INCORRECT));
    assert_eq!(store.login(Role::User, WRONG), Err(Error::PIN_INCORRECT));
    assert_eq!(store.last_error().as_deref(), Some("wrong PIN, 8 attempts left"));
    assert_eq!(store.token().unwrap().user.failures, 0, "the store has no room for them");
}

/// In a child: a long log is cut when its store is closed, and keeps the room for a count.
#[test]
fn child_that_cuts_its_log_before_the_disk_is_full() {
    let Some(config) = inside() else { return };
    let store = SqliteStore::new(config.clone());
    store.login(Role::User, USER).unwrap();
    for number in 0..64 {
        insert(&store, private(&format!("key {number}")));
    }
    drop(store);
    let log = fs::metadata(config.path.with_extension("db-wal")).unwrap();
    assert_eq!(log.len(), 0);
    let mut filler = fs::File::create(config.path.with_file_name("filler")).unwrap();
    while filler.write_all(&[1; 4096]).is_ok() {}
    let reader = rusqlite::Connection::open(&config.path).unwrap();
    reader.execute_batch("BEGIN; SELECT * FROM token").unwrap();
    assert!(is_full(&config));
    let store = SqliteStore::new(config);
    assert_eq!(store.login(Role::User, WRONG), Err(Error::PIN_INCORRECT));
    assert_eq!(store.token().unwrap().user.failures, 1);
}

#[test]
fn a_log_that_is_cut_keeps_the_room_for_a_count() {
    let place = Sandbox::new();
    drop(place.token());
    let disk = FULL.split("; cat /dev/zero").next().unwrap();
    within("child_that_cuts_its_log_before_the_disk_is_full", disk, place.path(), None);
}

#[test]
fn a_full_disk_costs_no_right_pin_a_try() {
    let place = Sandbox::new();
    let store = place.user();
    insert(&store, private("key"));
    drop(store);
    within("child_on_a_full_disk", FULL, place.path(), None);
    within("child_on_a_full_disk_that_is_read", FULL, place.path(), None);
}

fn limit(bytes: Option<u64>) {
    setrlimit(Resource::Fsize, Rlimit { current: bytes, maximum: None }).unwrap();
}

/// In a child: there is room for the count of an attempt, and none for taking it back.
#[test]
fn child_whose_disk_fills_up_during_a_login() {
    let Some(config) = inside() else { return };
    let log = config.path.with_extension("db-wal");
    let raw = rusqlite::Connection::open(&config.path).unwrap();
    let empty = || {
        raw.execute_batch("PRAGMA wal_checkpoint(TRUNCATE)").unwrap();
        assert_eq!(fs::metadata(&log).unwrap().len(), 0);
    };
    let store = SqliteStore::new(config.clone());
    empty();
    assert_eq!(store.login(Role::User, WRONG), Err(Error::PIN_INCORRECT));
    let room = fs::metadata(&log).unwrap().len();
    store.login(Role::User, USER).unwrap();
    let failures = || place_of(&config).token().unwrap().user.failures;
    let log_in = |pin: &[u8]| {
        // Where the count is as it was in the same second, nothing is written.
        raw.execute_batch("UPDATE token SET user_failed_at = 0").unwrap();
        empty();
        // A reader keeps the log from going into the database.
        raw.execute_batch("BEGIN; SELECT * FROM token").unwrap();
        limit(Some(room));
        store.login(Role::User, pin).unwrap();
        limit(None);
        raw.execute_batch("COMMIT").unwrap();
    };
    for _ in 0..12 {
        log_in(USER);
        assert_eq!(failures(), 1, "it could not be taken back yet");
    }
    // It is taken back, and what another process has counted since is not.
    raw.execute_batch("UPDATE token SET user_failures = user_failures + 1").unwrap();
    assert_eq!(store.login(Role::User, WRONG), Err(Error::PIN_INCORRECT));
    assert_eq!(failures(), 2);
    // A right PIN ends those that were before it, too.
    log_in(USER);
    assert_eq!(failures(), 3);
    assert_eq!(store.login(Role::User, WRONG), Err(Error::PIN_INCORRECT));
    assert_eq!(failures(), 1);
    // With another PIN there is nothing to be taken back any more.
    log_in(USER);
    let other = place_of(&config);
    other.login(Role::So, SO).unwrap();
    other.init_pin(USER).unwrap();
    assert_eq!(other.login(Role::User, WRONG), Err(Error::PIN_INCORRECT));
    assert_eq!(store.login(Role::User, WRONG), Err(Error::PIN_INCORRECT));
    assert_eq!(failures(), 2);
    // Whose files may not grow has chosen that, and guesses nothing without a count.
    empty();
    raw.execute_batch("BEGIN; SELECT * FROM token").unwrap();
    limit(Some(1));
    for pin in [WRONG, USER] {
        assert_eq!(store.login(Role::User, pin), Err(Error::DEVICE_MEMORY));
    }
}

#[test]
fn a_right_pin_is_right_though_its_count_cannot_be_taken_back_at_once() {
    let place = Sandbox::new();
    drop(place.token());
    fs::set_permissions(place.path(), Permissions::from_mode(0o700)).unwrap();
    within("child_whose_disk_fills_up_during_a_login", ":", place.path(), None);
}

// SPDX-License-Identifier: Apache-2.0
//! Permissions, directories, and a disk that is full.
#![expect(clippy::unwrap_used, reason = "a test fails where it cannot go on")]

mod common;

use common::{SO, Sandbox, USER, find, insert, private, public};
use metaslot_ck::Error;
use metaslot_keystore::{Config, SqliteStore};
use metaslot_spi::store::{Role, Scope, Store};
use rustix::fs::{CWD, Mode, mkfifoat};
use std::fs::{self, Permissions};
use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};
use std::path::Path;
use std::process::Command;

fn mode(path: &Path) -> u32 {
    fs::metadata(path).unwrap().permissions().mode() & 0o7777
}

fn chmod(path: &Path, mode: u32) {
    fs::set_permissions(path, Permissions::from_mode(mode)).unwrap();
}

#[test]
fn a_users_own_store_is_closed_to_everybody_else() {
    let place = Sandbox::new();
    let store = place.user();
    insert(&store, private("mine"));
    assert_eq!(mode(place.path()), 0o700);
    let mut names: Vec<_> = fs::read_dir(place.path())
        .unwrap()
        .map(|entry| {
            let entry = entry.unwrap();
            assert_eq!(mode(&entry.path()), 0o600, "{entry:?}");
            entry.file_name().into_string().unwrap()
        })
        .collect();
    names.sort();
    let all = ["token.db", "token.db-shm", "token.db-wal", "token.db.gen", "token.db.lock"];
    assert_eq!(names[..5], all);
    assert_eq!(names[5..], ["token.db.login"]);
}

#[test]
fn the_log_stays_when_the_store_is_closed() {
    let place = Sandbox::new();
    let store = place.user();
    insert(&store, private("logged"));
    drop(store);
    assert!(place.path().join("token.db-wal").exists());
    assert!(place.path().join("token.db-shm").exists());
}

#[test]
fn a_groups_store_has_a_setgid_directory_and_files_for_the_group() {
    let place = Sandbox::new();
    fs::create_dir_all(place.path()).unwrap();
    let group = fs::metadata(place.path()).unwrap().gid();
    let path = place.path().join("shared/token.db");
    let config = Config { group: Some(group.to_string()), ..place.config() };
    let store = SqliteStore::new(Config { path: path.clone(), ..config });
    common::initialize(&store);
    store.login(Role::User, USER).unwrap();
    insert(&store, private("ours"));
    let directory = path.parent().unwrap();
    assert_eq!(mode(directory), 0o2770);
    for entry in fs::read_dir(directory).unwrap() {
        let path = entry.unwrap().path();
        assert_eq!(mode(&path), 0o660, "{}", path.display());
        assert_eq!(fs::metadata(&path).unwrap().gid(), group);
    }
}

/// What is made in another directory would be its maker's group's.
#[test]
fn a_group_gets_a_directory_that_is_its_own_or_empty_or_none() {
    let place = Sandbox::new();
    let directory = place.path().join("used");
    fs::create_dir_all(&directory).unwrap();
    fs::write(directory.join("other"), "").unwrap();
    let path = directory.join("token.db");
    let group = fs::metadata(&directory).unwrap().gid().to_string();
    let make = |group: &str| {
        let config = Config { group: Some(group.to_owned()), path: path.clone(), ..place.config() };
        SqliteStore::new(config).initialize(SO, "token").map_err(|_| ())
    };
    assert_eq!((make(&group), make("no such group")), (Err(()), Err(())));
    assert!(!path.exists(), "nothing is made");
    chmod(&directory, 0o2770);
    assert_eq!((make("no such group"), make(&group)), (Err(()), Ok(())));
    assert_eq!(mode(&path), 0o660);
}

#[test]
fn a_directory_that_everybody_may_write_is_refused() {
    let place = Sandbox::new();
    let store = place.user();
    drop(store);
    chmod(place.path(), 0o777);
    let store = place.store();
    assert_eq!(store.token().unwrap_err(), Error::TOKEN_NOT_RECOGNIZED);
    assert!(store.last_error().unwrap().contains("every user may write"));
    chmod(place.path(), 0o700);
    assert!(store.token().unwrap().initialized);
    chmod(&place.database(), 0o666);
    assert_eq!(place.store().token().unwrap_err(), Error::TOKEN_NOT_RECOGNIZED);
}

#[test]
fn a_link_in_the_place_of_the_database_is_refused() {
    let (real, trap) = (Sandbox::new(), Sandbox::new());
    drop(real.user());
    fs::create_dir_all(trap.path()).unwrap();
    symlink(real.database(), trap.database()).unwrap();
    assert_eq!(trap.store().token().unwrap_err(), Error::TOKEN_NOT_RECOGNIZED);
    // A link on the way to the directory is a user's own, and is followed.
    let way = trap.path().join("way");
    symlink(real.path(), &way).unwrap();
    let store = SqliteStore::new(Config::new(way.join("token.db")));
    assert!(store.token().unwrap().initialized);
}

#[test]
fn a_link_in_the_place_of_a_lock_file_is_refused() {
    let place = Sandbox::new();
    drop(place.token());
    let (lock, victim) = (place.path().join("token.db.login"), place.path().join("victim"));
    fs::remove_file(&lock).unwrap();
    symlink(&victim, &lock).unwrap();
    assert!(place.store().login(Role::User, USER).is_err());
    assert!(!victim.exists());
}

#[test]
fn a_pipe_in_the_place_of_a_file_is_refused_and_waits_for_nobody() {
    for beside in ["-journal", "-wal", "-shm", ".gen", ".lock", ".login"] {
        let place = Sandbox::new();
        drop(place.token());
        let file = place.path().join(format!("token.db{beside}"));
        fs::remove_file(&file).unwrap_or_default();
        mkfifoat(CWD, &file, Mode::RWXU).unwrap();
        let store = place.store();
        store.login(Role::User, USER).unwrap_err();
        let text = store.last_error().unwrap();
        assert!(text.contains(beside) && text.contains("refused: not a regular file"), "{text}");
    }
}

#[test]
fn two_lock_files_that_are_one_are_refused() {
    let place = Sandbox::new();
    drop(place.token());
    let (login, queue) = (place.path().join("token.db.login"), place.path().join("token.db.lock"));
    fs::remove_file(&login).unwrap();
    fs::hard_link(&queue, &login).unwrap();
    let store = place.store();
    assert_eq!(store.login(Role::User, USER).unwrap_err(), Error::TOKEN_NOT_RECOGNIZED);
    assert!(store.last_error().unwrap().contains("it has a second name"));
}

#[test]
fn a_token_made_in_place_of_another_is_noticed() {
    let place = Sandbox::new();
    let store = place.token();
    let serial = store.token().unwrap().serial;
    fs::remove_dir_all(place.path()).unwrap();
    assert!(!store.token().unwrap().initialized);
    drop(place.token());
    assert_ne!(store.token().unwrap().serial, serial);
    store.login(Role::User, USER).unwrap();
    insert(&store, private("in the new one"));
}

/// Runs a test of this file in a child. Where we are root it is nobody there, in these groups:
/// `setpriv` of util-linux; elsewhere, and where nobody cannot start our program, it is not run.
fn as_nobody(test: &str, groups: &str, path: &Path) {
    let not_run = |reason| metaslot_testkit::not_run("keystore", test, reason);
    if !is_root() {
        return not_run("only root can be another user");
    }
    let program = std::env::temp_dir().join(format!("metaslot-{}-{test}", std::process::id()));
    fs::copy(std::env::current_exe().unwrap(), &program).unwrap();
    chmod(&program, 0o755);
    let output = Command::new("setpriv")
        .args(["--reuid=65534", "--regid=65534", groups])
        .arg(&program)
        .args([test, "--exact", "--nocapture"])
        .env("METASLOT_TEST_PLACE", path)
        .output();
    fs::remove_file(&program).unwrap();
    let Ok(output) = output else { return not_run("setpriv is not installed") };
    let text = String::from_utf8_lossy(&output.stdout);
    let error = String::from_utf8_lossy(&output.stderr);
    if matches!(output.status.code(), Some(126 | 127)) {
        return not_run("another user cannot start this program here");
    }
    assert!(output.status.success() && text.contains("1 passed"), "{text}{error}");
}

fn is_root() -> bool {
    fs::metadata("/proc/self").unwrap().uid() == 0
}

/// In a child that may only read: finds a public object, and cannot log in.
#[test]
fn child_that_may_only_read() {
    let Some(path) = std::env::var_os("METASLOT_TEST_PLACE") else { return };
    let store = SqliteStore::new(Config::new(path));
    assert!(!store.token().unwrap().writable);
    assert_eq!(find(&store, "for all").len(), 1);
    assert_eq!(store.login(Role::User, USER).unwrap_err(), Error::TOKEN_WRITE_PROTECTED);
    assert_eq!(store.initialize(SO, "mine").unwrap_err(), Error::TOKEN_WRITE_PROTECTED);
}

#[test]
fn who_may_only_read_finds_public_objects_and_cannot_log_in() {
    let place = Sandbox::new();
    let store = place.user();
    insert(&store, public("for all"));
    chmod(place.path(), 0o755);
    for entry in fs::read_dir(place.path()).unwrap() {
        chmod(&entry.unwrap().path(), 0o644);
    }
    as_nobody("child_that_may_only_read", "--clear-groups", &place.database());
}

/// In a child that sees the file and may not open it: told once which, and why.
#[test]
fn child_that_may_not_open() {
    let Some(path) = std::env::var_os("METASLOT_TEST_PLACE") else { return };
    let store = SqliteStore::new(Config::new(&path));
    assert_eq!(store.token().unwrap_err(), Error::DEVICE_ERROR);
    let told = format!("{}: cannot open: Permission denied", path.display());
    assert_eq!(store.last_error().as_deref(), Some(&*told));
}

#[test]
fn who_may_not_open_a_store_is_told_its_name_once_and_the_reason() {
    let place = Sandbox::new();
    drop(place.token());
    chmod(place.path(), 0o755);
    as_nobody("child_that_may_not_open", "--clear-groups", &place.database());
}

/// In a child that is another user of the same group: logs in, finds, creates.
#[test]
fn child_in_the_group() {
    let Some(path) = std::env::var_os("METASLOT_TEST_PLACE") else { return };
    let store = SqliteStore::new(Config::new(path));
    assert!(store.token().unwrap().writable);
    store.login(Role::User, USER).unwrap();
    assert_eq!(find(&store, "ours").len(), 1);
    insert(&store, private("theirs"));
    assert_eq!(store.generation().unwrap() & 1, 0);
}

#[test]
fn another_user_of_the_group_uses_a_store_that_was_closed_cleanly() {
    const GROUP: &str = "54321";
    if !is_root() {
        let what = "another user of the group";
        return metaslot_testkit::not_run("keystore", what, "only root can be another user");
    }
    let place = Sandbox::new();
    fs::create_dir_all(place.path()).unwrap();
    chmod(place.path(), 0o755);
    // A directory that the administrator made beforehand is given to the group while it is empty.
    fs::create_dir(place.path().join("shared")).unwrap();
    let path = place.path().join("shared/token.db");
    let config = Config { group: Some(GROUP.to_owned()), path: path.clone(), ..place.config() };
    let store = SqliteStore::new(config.clone());
    common::initialize(&store);
    store.login(Role::User, USER).unwrap();
    insert(&store, private("ours"));
    drop(store);
    as_nobody("child_in_the_group", &format!("--groups={GROUP}"), &path);
    let store = SqliteStore::new(config);
    store.login(Role::User, USER).unwrap();
    assert_eq!(find(&store, "theirs").len(), 1);
    assert!(store.verify().unwrap().is_sound());
}

/// In a child that is another user of the same group: a fast login of his own.
#[test]
fn child_that_logs_in_fast() {
    let Some(path) = std::env::var_os("METASLOT_TEST_PLACE") else { return };
    log_in_fast(&Config { path: path.into(), ..fast(Config::new("")) });
}

fn fast(config: Config) -> Config {
    let fast_login = Some(std::time::Duration::from_mins(10));
    Config { fast_login, volatile: vec!["/dev/shm".into()], ..config }
}

/// Twice, the second time fast where there is a place for the secret.
fn log_in_fast(config: &Config) {
    let possible = metaslot_keystore::fast_login_place(&config.volatile).is_ok();
    for hits in [0, u64::from(possible)] {
        let store = SqliteStore::new(config.clone());
        store.login(Role::User, USER).unwrap();
        assert_eq!(store.statistics().fast_hits, hits);
    }
}

#[test]
fn each_user_of_a_group_has_a_fast_login_of_his_own() {
    const GROUP: &str = "54322";
    if !is_root() {
        let what = "fast logins of two users";
        return metaslot_testkit::not_run("keystore", what, "only root can be another user");
    }
    let place = Sandbox::new();
    fs::create_dir_all(place.path()).unwrap();
    chmod(place.path(), 0o755);
    let path = place.path().join("shared/token.db");
    let config = Config { group: Some(GROUP.to_owned()), path: path.clone(), ..place.config() };
    common::initialize(&SqliteStore::new(config.clone()));
    log_in_fast(&fast(config.clone()));
    as_nobody("child_that_logs_in_fast", &format!("--groups={GROUP}"), &path);
    // The second user took nothing from the first.
    let store = SqliteStore::new(fast(config));
    store.login(Role::User, USER).unwrap();
    let possible = metaslot_keystore::fast_login_place(&["/dev/shm".into()]).is_ok();
    assert_eq!(store.statistics().fast_hits, u64::from(possible));
}

/// A mapped file that is cut kills anyone who looks at it.
#[test]
fn a_generation_that_others_may_cut_is_not_mapped_and_a_cut_one_is_a_change() {
    let place = Sandbox::new();
    drop(place.token());
    let file = place.path().join("token.db.gen");
    let mapped = || fs::read_to_string("/proc/self/maps").unwrap().contains(file.to_str().unwrap());
    let alone = place.store();
    let before = alone.token().map(|_| alone.generation()).unwrap();
    assert!(mapped(), "only this user can cut it");
    drop(alone);
    assert!(!mapped());

    chmod(&place.database(), 0o660);
    chmod(&file, 0o660);
    let (one, two) = (place.store(), place.store());
    for store in [&one, &two] {
        store.login(Role::User, USER).unwrap();
        assert_eq!(store.generation(), before, "a login is no change");
    }
    assert!(!mapped());
    insert(&one, public("before"));
    assert!(two.generation() > before);

    fs::File::options().write(true).open(&file).unwrap().set_len(0).unwrap();
    assert_eq!((one.generation(), two.generation()), (None, None));
    assert_eq!(find(&two, "before").len(), 1);
    insert(&one, public("after"));
    assert_eq!(find(&two, "after").len(), 1);
    let after = two.generation().unwrap();
    assert!(after.is_multiple_of(2) && after > 1 << 40, "no number that was there before: {after}");
    assert_eq!(one.generation(), Some(after));
}

#[test]
fn a_token_whose_making_was_cut_short_is_no_token_and_can_be_made() {
    let place = Sandbox::new();
    fs::create_dir_all(place.path()).unwrap();
    chmod(place.path(), 0o700);
    for begun in ["", "PRAGMA journal_mode = WAL", "CREATE TABLE token(one); DROP TABLE token"] {
        let store = place.store();
        if begun.is_empty() {
            fs::write(place.database(), []).unwrap();
        } else {
            place.raw().execute_batch(begun).unwrap();
        }
        assert!(!store.token().unwrap().initialized);
        assert!(find(&store, "anything").is_empty());
        common::initialize(&store);
        assert!(store.token().unwrap().initialized);
        drop(store);
        for entry in fs::read_dir(place.path()).unwrap() {
            fs::remove_file(entry.unwrap().path()).unwrap();
        }
    }
}

/// In a child whose files may not grow beyond some KiB.
#[test]
fn child_whose_token_has_no_room() {
    let Some(path) = std::env::var_os("METASLOT_TEST_ROOM") else { return };
    let store = SqliteStore::new(Config { kdf: common::CHEAP, ..Config::new(path) });
    match store.initialize(SO, "no room") {
        Ok(()) => println!("made"),
        Err(error) => println!("not made: {error:?}"),
    }
}

#[test]
fn a_token_that_has_no_room_leaves_no_database() {
    let mut outcomes = Vec::new();
    for kib in [0, 4, 8, 20, 24, 28, 32, 36, 40, 64] {
        let place = Sandbox::new();
        let output = Command::new("bash")
            .args(["-c", "trap '' XFSZ; ulimit -f $KIB; exec \"$0\" \"$@\" 2>&1 | cat"])
            .arg(std::env::current_exe().unwrap())
            .args(["child_whose_token_has_no_room", "--exact", "--nocapture"])
            .env("METASLOT_TEST_ROOM", place.database())
            .env("KIB", kib.to_string())
            .output()
            .expect("bash runs");
        let text = String::from_utf8_lossy(&output.stdout);
        let was_made = text.contains("made\n") && !text.contains("not made");
        assert!(was_made || text.contains("not made: "), "{text}");
        assert_eq!(place.store().token().unwrap().initialized, was_made, "{kib} KiB: {text}");
        assert_eq!(place.database().exists(), was_made, "{kib} KiB: {text}");
        if !was_made {
            common::initialize(&place.store());
        }
        outcomes.push(was_made);
    }
    assert!(outcomes.contains(&true) && !outcomes[0], "{outcomes:?}");
}

/// In a child whose files may not grow: a write fails, what was there stays.
#[test]
fn child_with_a_full_disk() {
    let Some(path) = std::env::var_os("METASLOT_TEST_FULL") else { return };
    let store = SqliteStore::new(Config::new(path));
    store.login(Role::User, USER).unwrap();
    let mut acknowledged = Vec::new();
    let error = loop {
        let label = format!("key {}", acknowledged.len());
        let mut record = private(&label);
        record.attributes = vec![7; 3_000];
        match store.write(vec![metaslot_spi::store::Change::Insert(record)]) {
            Ok(ids) => acknowledged.push((ids[0], label)),
            Err(error) => break error,
        }
        assert!(acknowledged.len() < 10_000, "the disk never filled");
    };
    assert_eq!(error, Error::DEVICE_MEMORY, "{:?}", store.last_error());
    for (id, label) in &acknowledged {
        assert_eq!(find(&store, label), [*id]);
    }
    assert_eq!(store.search(&[], Scope::Private, 0, 100_000).unwrap().len(), acknowledged.len());
    assert!(store.verify().unwrap().is_sound());
    assert_eq!(store.generation().unwrap() & 1, 0);
    println!("full after {}", acknowledged.len());
}

#[test]
fn a_full_disk_fails_the_call_and_loses_nothing() {
    let program = std::env::current_exe().unwrap();
    let child = "child_with_a_full_disk --exact --nocapture";
    // A file size limit works for every user; a small file system only for one who may mount one.
    let limited = "trap '' XFSZ; ulimit -f 1500; exec \"$0\" \"$@\"";
    let mounted = "mount -t tmpfs -o size=3m full \"$FULL\" && cp -a \"$FROM\"/. \"$FULL\" && \
                   exec \"$0\" \"$@\"";
    for (script, unshare) in [(limited, false), (mounted, true)] {
        let place = Sandbox::new();
        drop(place.token());
        let full = Sandbox::new();
        fs::create_dir_all(full.path()).unwrap();
        chmod(full.path(), 0o700);
        let mut command = if unshare { Command::new("unshare") } else { Command::new("bash") };
        if unshare {
            command.args(["--map-root-user", "--mount", "bash"]);
        }
        let database = if unshare { full.database() } else { place.database() };
        let output = command
            .args(["-c", script])
            .arg(&program)
            .args(child.split(' '))
            .env("FULL", full.path())
            .env("FROM", place.path())
            .env("METASLOT_TEST_FULL", database)
            .output();
        let Ok(output) = output else { continue };
        let text = String::from_utf8_lossy(&output.stdout);
        let error = String::from_utf8_lossy(&output.stderr);
        if unshare && !text.contains("running 1 test") {
            continue;
        }
        assert!(output.status.success() && text.contains("full after"), "{text}{error}");
        if !unshare {
            let store = place.store();
            store.login(Role::User, USER).unwrap();
            insert(&store, private("room again"));
        }
    }
}

#[test]
fn a_database_that_was_emptied_is_not_taken_for_one_that_was_never_made() {
    let place = Sandbox::new();
    drop(place.user());
    fs::write(place.database(), "").unwrap();
    let store = place.store();
    assert_eq!(store.token().unwrap_err(), Error::TOKEN_NOT_RECOGNIZED);
    assert!(store.last_error().unwrap().contains("the file is empty, and was not"));
    assert_eq!(store.initialize(SO, "another"), Err(Error::TOKEN_NOT_RECOGNIZED));
    // So it begins.
    for entry in fs::read_dir(place.path()).unwrap() {
        fs::remove_file(entry.unwrap().path()).unwrap();
    }
    fs::write(place.database(), "").unwrap();
    chmod(&place.database(), 0o600);
    assert!(!store.token().unwrap().initialized);
    common::initialize(&store);
    store.login(Role::User, USER).unwrap();
}

#[test]
fn a_database_with_a_second_name_is_refused() {
    let (place, other) = (Sandbox::new(), Sandbox::new());
    drop(place.token());
    drop(other.token());
    fs::remove_file(other.database()).unwrap();
    fs::hard_link(place.database(), other.database()).unwrap();
    for store in [place.store(), other.store()] {
        assert_eq!(store.login(Role::User, USER).unwrap_err(), Error::TOKEN_NOT_RECOGNIZED);
        assert!(store.last_error().unwrap().contains("it has a second name"));
    }
}

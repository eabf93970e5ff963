// SPDX-License-Identifier: Apache-2.0
//! What the module does where it is put: on read-only and full file systems, and where the kernel keeps no secrets. Programs in C,
//! run against the built library in mount namespaces of their own.

#[expect(dead_code, reason = "this file uses its own part")]
mod harness;

use harness::{Home, module, program, program_with};
use metaslot_counters::{Event, read};
use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::Command;

/// `/dev/shm` as it usually is, and a directory of a disk in its place.
const IN_MEMORY: &str = "mount -t tmpfs -o mode=1777 memory /dev/shm";
const ON_A_DISK: &str = "mount --bind \"$HOME\" /dev/shm";

/// Runs a program in a mount namespace after `script`, in which `$PLACE` is a directory; `None` where there is no namespace to
/// be had. Gives what it printed.
fn within(
    script: &str,
    place: &Path,
    home: &Home,
    program: &Path,
    argument: &str,
) -> Option<String> {
    let mut command = Command::new("unshare");
    command
        .args(["--map-root-user", "--mount", "bash", "-c"])
        .arg(format!("set -e; {script}; echo mounted; exec \"$0\" \"$@\""))
        .arg(program)
        .arg(argument)
        .env_clear()
        .env("PATH", "/usr/bin:/bin:/usr/sbin:/sbin")
        .env("HOME", home.path())
        .env("PLACE", place)
        .env("METASLOT_MODULE", module())
        .current_dir("/");
    let output = command.output().ok();
    let text = output.as_ref().map(|output| String::from_utf8_lossy(&output.stdout).into_owned());
    let Some((output, text)) = output.zip(text).filter(|(_, text)| text.starts_with("mounted\n"))
    else {
        metaslot_testkit::not_run("module", argument, "no mount namespace");
        return None;
    };
    let error = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success() && error.is_empty(), "{}{text}{error}", output.status);
    text.strip_prefix("mounted\n").map(str::to_owned)
}

#[test]
fn a_token_that_nobody_can_write_signs_after_a_right_pin() {
    let program = program("unwritable");
    let read_only = "mount --bind \"$PLACE\" \"$PLACE\"; mount -o remount,bind,ro \"$PLACE\"";
    let full = "cp -a \"$PLACE\" \"$PLACE.from\"; mount -t tmpfs -o size=2m,mode=0700 full \"$PLACE\"; \
                cp -a \"$PLACE.from\"/. \"$PLACE\"; rm -r \"$PLACE.from\"; \
                cat /dev/zero > \"$PLACE/filler\" 2> /dev/null || true";
    // With a place in memory for the counts of all processes, and with none.
    for (counts, memory) in [("shared", IN_MEMORY), ("alone", ON_A_DISK)] {
        for (what, script) in [("read-only", read_only), ("full", full)] {
            let home = Home::new(&format!("unwritable-{what}-{counts}"));
            let (own, place) = (home.path().join(".config/metaslot"), home.path().join("store"));
            let token = place.join("token.db");
            let text = format!("[[token]]\npath = {token:?}\nkdf = \"weak-for-tests\"\n");
            fs::create_dir_all(&own).expect("the home is ours");
            fs::write(own.join("metaslot.toml"), text).expect("the home is ours");
            home.run(&program, &["make"]);
            within(&format!("{memory}; {script}"), &place, &home, &program, what);
        }
    }
}

#[test]
fn a_host_whose_files_may_not_grow_lives() {
    Home::new("short-files").run(&program("short_files"), &[]);
}

/// A program with more rights than its user does not believe what the user's environment and files say.
#[test]
fn a_program_with_more_rights_than_its_user_takes_the_systems_files_only() {
    const USER: u32 = 54_321;
    let left_out = |why: &str| metaslot_testkit::not_run("module", "a set-user-ID program", why);
    if !rustix::process::geteuid().is_root() {
        return left_out("only root can make one");
    }
    // Where that user can enter.
    let place = std::env::temp_dir().join(format!("metaslot-rights-{}", std::process::id()));
    let own = place.join(".config/metaslot/metaslot.d");
    let (copied, library) = (place.join("rights"), place.join("libmetaslot.so"));
    fs::create_dir_all(&own).expect("a directory can be made");
    fs::copy(program("rights"), &copied).expect("it is copied");
    fs::copy(module(), &library).expect("it is copied");
    let mine = "[[token]]\npath = \"/nowhere/mine.db\"\ndescription = \"mine\"\n";
    fs::write(own.join("mine.toml"), mine).expect("the directory is ours");
    let told = |mode: u32| {
        fs::set_permissions(&copied, Permissions::from_mode(mode)).expect("it is ours");
        let mut command = Command::new(&copied);
        command.uid(USER).gid(USER).current_dir("/").env_clear();
        let output = command.env("HOME", &place).env("METASLOT_MODULE", &library).output();
        output.map(|output| String::from_utf8_lossy(&output.stdout).into_owned())
    };
    let (usual, privileged) = (told(0o755), told(0o4755));
    let mounted = rustix::fs::statvfs(&place).expect("it is there").f_flag;
    fs::remove_dir_all(&place).expect("it is ours");
    if mounted.contains(rustix::fs::StatVfsMountFlags::NOSUID) {
        return left_out("they have no effect here");
    }
    let (Ok(usual), Ok(privileged)) = (usual, privileged) else {
        return left_out("another user cannot start a program here");
    };
    assert!(usual.lines().any(|line| line.trim_end() == "mine"), "{usual}");
    assert!(!privileged.is_empty() && !privileged.contains("mine"), "{privileged}");
}

/// What a program says of fast logins, and how many of its three were fast.
fn fast_logins(name: &str, denied: &str, script: &str) -> Option<(String, u64)> {
    let home = Home::new(name);
    let own = home.path().join(".config/metaslot");
    let (pages, token) = (home.path().join("pages"), home.path().join("store/token.db"));
    fs::create_dir_all(&own).expect("the home is ours");
    fs::create_dir(&pages).expect("the home is ours");
    let text = format!(
        "counters = {pages:?}\n[[token]]\npath = {token:?}\nfast_login = \"15m\"\nkdf = \"weak-for-tests\"\n"
    );
    fs::write(own.join("metaslot.toml"), text).expect("the home is ours");
    let said = within(script, home.path(), &home, &program("fast_login"), denied)?;
    let all = read::processes(&[pages]);
    let [sum] = &all[..] else { panic!("{all:?}") };
    let fast = sum.events.iter().find(|(event, _)| *event == Event::FastLogin);
    Some((said, fast.map_or(0, |(_, count)| *count)))
}

#[test]
fn fast_logins_have_a_place_for_their_secret_or_say_why_not() {
    let said = |text: &str, fast| Some((format!("{text}\n"), fast));
    // The users of a namespace are others than ours: its root has a keyring of its own, if any.
    if let Some((text, fast)) = fast_logins("fast-kernel", "kernel", ":") {
        assert_eq!((text.as_str(), fast), ("1 the kernel's keyring\n", 2));
    }
    let denied = |name, script| fast_logins(name, "denied", script);
    // In a namespace this user is root.
    let memory = "1 /dev/shm/metaslot-login-0";
    let found = denied("fast-memory", IN_MEMORY);
    assert!(found.is_none() || found == said(memory, 2), "{found:?}");
    let nowhere = denied("fast-nowhere", ON_A_DISK);
    if let Some((text, fast)) = nowhere {
        let why = "0 the kernel's keyring: operation not permitted; /run/metaslot: ";
        assert!(text.starts_with(why) && text.contains("; /dev/shm: is not in memory"), "{text}");
        assert_eq!(fast, 0);
    }
}

/// What is kept for the user whose rights it has now is not root's, who logs in.
#[test]
fn a_program_that_can_have_other_rights_again_has_no_fast_login() {
    if !rustix::process::geteuid().is_root() {
        return metaslot_testkit::not_run("module", "a saved user", "only root has another one");
    }
    let place = std::env::temp_dir().join(format!("metaslot-saved-{}", std::process::id()));
    fs::create_dir_all(&place).expect("a directory can be made");
    fs::set_permissions(&place, Permissions::from_mode(0o777)).expect("it is ours");
    let library = place.join("libmetaslot.so");
    fs::copy(module(), &library).expect("it is copied");
    let token = place.join("store/token.db");
    let text = format!(
        "counters = false\n[[token]]\npath = {token:?}\nfast_login = \"15m\"\nkdf = \"weak-for-tests\"\n"
    );
    fs::write(place.join("m.toml"), text).expect("the directory is ours");
    let mut command = Command::new(program("fast_login"));
    command.arg("saved").env("METASLOT_CONF", place.join("m.toml"));
    let output = command.env("METASLOT_MODULE", &library).output().expect("it runs");
    fs::remove_dir_all(&place).expect("it is ours");
    let said = String::from_utf8_lossy(&output.stdout);
    let why =
        "0 the kernel's keyring: permission denied; this program has more rights than its user\n";
    assert_eq!(said, why);
}

#[test]
fn a_lock_that_is_not_given_up_once_costs_one_call() {
    let home = Home::new("unlock-fails");
    let (file, token) = (home.path().join("metaslot.toml"), home.path().join("token/token.db"));
    fs::write(&file, format!("[[token]]\npath = {token:?}\nkdf = \"weak-for-tests\"\n")).unwrap();
    let program = program_with("unlock_fails", "unlock_fails", &["-rdynamic"]);
    home.run_with(&program, &[], &[("METASLOT_CONF", file.as_os_str())]);
}

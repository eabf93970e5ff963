// SPDX-License-Identifier: Apache-2.0
//! The audit log, written through the C ABI.

#[allow(dead_code, reason = "other tests need more of it")]
mod harness;

use harness::{Home, program};
use serde_json::Value;
use std::collections::BTreeSet;
use std::fs::{self, Permissions};
use std::os::unix::fs::{MetadataExt, PermissionsExt, chown};
use std::panic::resume_unwind;
use std::path::{Path, PathBuf};
use std::sync::LazyLock;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

/// A home with a token whose log is `audit.log`, and its configuration.
fn home(name: &str, more: &str) -> (Home, PathBuf) {
    let home = Home::new(name);
    let [log, token] = ["audit.log", "token/token.db"].map(|name| home.path().join(name));
    let file = home.path().join("metaslot.toml");
    let text =
        format!("audit = {log:?}\n{more}\n[[token]]\npath = {token:?}\nkdf = \"weak-for-tests\"\n");
    fs::write(&file, text).expect("the home can be written");
    (home, file)
}

static PROGRAM: LazyLock<PathBuf> = LazyLock::new(|| program("audit"));

fn run(home: &Home, file: &Path, arguments: &[&str]) -> String {
    home.run_with(&PROGRAM, arguments, &[("METASLOT_CONF", file.as_os_str())])
}

/// Every line of the log; each is JSON.
fn lines(home: &Home) -> Vec<Value> {
    lines_of(&home.path().join("audit.log"))
}

fn lines_of(file: &Path) -> Vec<Value> {
    let text = fs::read_to_string(file).expect("there is a log");
    let json = |line: &str| serde_json::from_str(line).unwrap_or_else(|e| panic!("{e}: {line}"));
    text.lines().map(json).collect()
}

/// What one line says, as far as it is the same each time.
fn said(line: &Value) -> String {
    let text = |value: &Value| value.as_str().unwrap_or("-").to_owned();
    let part = |name: &str| match &line[name] {
        Value::Null => String::new(),
        object => format!(" {name}={}", text(&object["label"])),
    };
    let user = line["user"].as_str().map(|user| format!(" {user}")).unwrap_or_default();
    let parts = ["object", "copy", "by"].map(part).concat();
    format!("{}{user}{parts} {}", text(&line["event"]), text(&line["result"]))
}

#[test]
fn an_identity_logs_in_is_named_and_is_revoked_while_another_process_is_it() {
    let (home, file) = home("identities", "");
    home.run_with(&program("identities"), &[], &[("METASLOT_CONF", file.as_os_str())]);
    let lines = lines(&home);
    let of = |event: &str, field: &str, name: &str| {
        let is_it = |line: &&Value| line["event"] == event && line[field] == name;
        lines.iter().filter(is_it).filter(|line| line["result"] == "CKR_OK").count()
    };
    assert_eq!(of("identity-added", "name", "web"), 1);
    assert_eq!(of("login", "name", "web"), 2, "of two processes");
    assert_eq!(of("generated", "identity", "web"), 1);
    assert_eq!(of("pin", "identity", "web"), 1);
    assert_eq!(of("identity-revoked", "name", "web"), 1);
    let user = lines.iter().rfind(|line| line["event"] == "login").expect("the user's");
    assert!(user["identity"].is_null() && user["name"].is_null(), "{user}");
    let text = fs::read_to_string(home.path().join("audit.log")).expect("there is a log");
    assert!(!text.contains("first pin") && !text.contains("second pin"));
}

#[test]
fn one_thing_of_each_kind_leaves_its_line_and_nothing_secret() {
    let (home, file) = home("audit-events", "");
    run(&home, &file, &["events"]);
    let lines = lines(&home);
    let said: Vec<String> = lines.iter().map(said).collect();
    let wanted = [
        "token CKR_OK",
        "login so CKR_OK",
        "pin CKR_OK",
        "login user CKR_PIN_INCORRECT",
        "login user CKR_OK",
        "generated object=wrapper CKR_OK",
        "generated object=base CKR_OK",
        "generated object=first\"\n CKR_OK",
        "changed object=first\"\n CKR_OK",
        "copied object=renamed copy=copy CKR_OK",
        "wrapped object=renamed by=wrapper CKR_OK",
        "unwrapped object=back CKR_OK",
        "derived object=derived CKR_OK",
        "derived object=derived CKR_OK",
        "derived object=derived CKR_OK",
        "derived object=derived CKR_OK",
        "destroyed object=copy CKR_OK",
        "refused CKR_MECHANISM_PARAM_INVALID",
        "pin CKR_OK",
        "pin CKR_PIN_INCORRECT",
        "logout CKR_OK",
        "logout CKR_USER_NOT_LOGGED_IN",
        "repaired so CKR_OK",
        "examined user CKR_PIN_INCORRECT",
        "renamed so CKR_OK",
        "removed so CKR_DEVICE_ERROR",
        "renamed so CKR_OK",
        "token CKR_PIN_INCORRECT",
    ];
    assert_eq!(said, wanted, "{said:#?}");
    let text = fs::read_to_string(home.path().join("audit.log")).expect("there is a log");
    for pin in ["12345678", "1234\"", "9999", "4321"] {
        assert!(!text.contains(&format!("\"{pin}")), "{pin}");
    }
}

#[test]
fn what_has_begun_has_an_end() {
    let (home, file) = home("audit-required", "audit_required = true");
    run(&home, &file, &["events"]);
    let lines = lines(&home);
    let is_alone = |line: &&Value| line["function"] == "C_EncryptInit";
    let events: Vec<_> =
        lines.iter().filter(|line| !is_alone(line)).map(|line| line["event"].to_string()).collect();
    assert!(events.contains(&String::from("\"ended\"")));
    for pair in events.chunks(2) {
        assert!(pair[0] == "\"begun\"" && pair[1] != "\"begun\"", "{pair:?}");
    }
}

/// One that is asked for often leaves no more lines than one that is there at once.
#[test]
fn what_is_pending_leaves_no_line_before_it_is_there() {
    let (home, file) = home("audit-pending", "audit_required = true");
    let said = run(&home, &file, &["pending"]);
    let mut numbers = said.split_whitespace().map(|number| number.parse::<usize>());
    let mut number = || numbers.next().and_then(Result::ok).expect("two numbers");
    let (acts, polls) = (number(), number());
    println!("{acts} acts, pending {polls} times");
    let lines = lines(&home);
    let count = |event: &str| {
        let of = |line: &&Value| line["function"] == "C_DeriveKey" && line["event"] == event;
        lines.iter().filter(of).count()
    };
    assert_eq!((count("begun"), count("ended")), (acts, acts), "pending {polls} times");
}

/// Also where the file is moved away meanwhile, again and again.
#[test]
fn a_crowd_that_is_killed_leaves_a_line_for_every_key() {
    let (home, file) = home("audit-crowd", "");
    let log = home.path().join("audit.log");
    let is_over = AtomicBool::new(false);
    let move_away = || {
        let mut moved = Vec::new();
        while !is_over.load(Ordering::SeqCst) {
            let to = home.path().join(format!("audit.log.{}", moved.len()));
            if fs::rename(&log, &to).is_ok() {
                moved.push(to);
            }
            thread::sleep(Duration::from_millis(2));
        }
        moved
    };
    let (made, mut files) = thread::scope(|scope| {
        let moving = scope.spawn(move_away);
        let made = scope.spawn(|| run(&home, &file, &["crowd"])).join();
        is_over.store(true, Ordering::SeqCst);
        let moved = moving.join().expect("it ends");
        (made.unwrap_or_else(|reason| resume_unwind(reason)), moved)
    });
    files.extend(log.exists().then_some(log));
    let label = |line: &Value| line["object"]["label"].as_str().map(str::to_owned);
    let logged: BTreeSet<String> =
        files.iter().flat_map(|file| lines_of(file)).filter_map(|line| label(&line)).collect();
    let missing: Vec<_> = made.lines().filter(|label| !logged.contains(*label)).collect();
    assert!(missing.is_empty() && made.lines().count() > 128, "{missing:?}");
}

#[test]
fn the_journal_gets_a_line_as_one_datagram() {
    let (home, file) = home("audit-journal", "audit_required = true");
    let text = fs::read_to_string(&file).expect("it was written");
    let log = text.lines().next().expect("it is the first");
    fs::write(&file, text.replace(log, "audit = \"journald\"")).expect("the home can be written");
    let said = run(&home, &file, &["journal"]);
    if said.starts_with("not run") {
        println!("{said}");
        return;
    }
    let lines: Vec<_> = said.lines().filter_map(|line| line.strip_prefix("MESSAGE=")).collect();
    let events = lines.iter().map(|line| serde_json::from_str::<Value>(line).expect("it is JSON"));
    let events: Vec<_> = events.map(|line| line["event"].to_string()).collect();
    assert_eq!(events, ["\"begun\"", "\"login\""]);
    assert_eq!(said.matches("\nPRIORITY=5\nSYSLOG_IDENTIFIER=metaslot\n").count(), 2);
}

const NOT_RECOGNIZED: &str = "0xe1";
const FUNCTION_FAILED: &str = "0x6";

/// What cannot be logged happens all the same, or not at all where the log is required; nothing waits, and no process is killed.
#[test]
fn a_log_that_fails_costs_its_lines_or_the_calls_that_need_them() {
    for (required, code) in [("", NOT_RECOGNIZED), ("audit_required = true", FUNCTION_FAILED)] {
        let (home, file) = home(&format!("audit-fails-{code}"), required);
        let log = home.path().join("audit.log");
        fs::create_dir(&log).unwrap();
        run(&home, &file, &["login", code]);
        fs::remove_dir(&log).unwrap();
        // A limit on files ends a process by a signal, unless one looks before.
        fs::write(&log, [b'\n'; 2048]).unwrap();
        let limited = format!("ulimit -f 2; exec {} login {code}", PROGRAM.display());
        let shell = Path::new("/bin/sh");
        home.run_with(shell, &["-c", &limited], &[("METASLOT_CONF", file.as_os_str())]);
        assert_eq!(fs::metadata(&log).unwrap().len(), 2048);
    }
}

/// A stress: between the look at the file and the line another process may write.
#[test]
fn processes_that_fill_a_log_up_to_its_limit_are_not_ended_by_it() {
    let (home, file) = home("audit-limit", "");
    let log = home.path().join("audit.log");
    let limited = format!("ulimit -f 40; exec {} login {NOT_RECOGNIZED}", PROGRAM.display());
    for round in 0..40 {
        fs::write(&log, [b'\n'; 20_480]).unwrap();
        fs::OpenOptions::new().write(true).open(&log).unwrap().set_len(20_480 - 300).unwrap();
        thread::scope(|scope| {
            for _ in 0..3 {
                scope.spawn(|| {
                    let variable = [("METASLOT_CONF", file.as_os_str())];
                    home.run_with(Path::new("/bin/sh"), &["-c", &limited], &variable);
                });
            }
        });
        let length = fs::metadata(&log).unwrap().len();
        assert!((20_181..=20_480).contains(&length), "round {round}: {length}");
    }
}

/// A file for a group is written by its members, also where they cannot read it, and a file that is not theirs is not.
#[test]
fn a_second_user_writes_a_file_that_is_shared() {
    const USER: &str = "65534";
    if !fs::metadata("/proc/self").is_ok_and(|own| own.uid() == 0) {
        println!("not run: only root can become another user");
        return;
    }
    let (home, file) = home("audit-users", "audit_required = true");
    let log = home.path().join("audit.log");
    run(&home, &file, &["login", NOT_RECOGNIZED]);
    run(&home, &file, &["login", FUNCTION_FAILED, USER]);
    chown(&log, None, Some(65534)).unwrap();
    fs::set_permissions(&log, Permissions::from_mode(0o620)).unwrap();
    run(&home, &file, &["login", NOT_RECOGNIZED, USER]);
    let users: Vec<_> = lines(&home).iter().map(|line| line["uid"].as_u64()).collect();
    assert_eq!(users, [Some(0), Some(0), Some(65534), Some(65534)]);
}

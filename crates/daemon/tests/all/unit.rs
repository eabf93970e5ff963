// SPDX-License-Identifier: Apache-2.0
//! What an administrator gets beside the program: its unit, and its page; and the memory that it takes.

use crate::common::{Killed, Place, Raw, configured, initialized, program, started_by};
use crate::protocol::{mechanism, numbers};
use metaslot_ck::{CKF_SERIAL_SESSION, CKM_SHA256};
use metaslot_testkit::not_run;
use std::fs;
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::process::{Command, Output};
use std::thread::{self, sleep};
use std::time::{Duration, Instant};

const UNIT: &str = include_str!("../../metaslotd.service");
const CONNECT: &str = include_str!("../../metaslotd-connect@.service");
const SOCKET: &str = include_str!("../../metaslotd.socket");
const PAGE: &str = include_str!("../../metaslotd.8");
const BOOK: &str = include_str!("../../../../docs/daemon.md");
const ANALYZE: &str = "/usr/bin/systemd-analyze";

fn run(command: &mut Command) -> (Output, String) {
    let output = command.output().expect("it is installed");
    let said = [&output.stdout[..], &output.stderr].concat();
    let said = String::from_utf8_lossy(&said).into_owned();
    (output, said)
}

#[test]
fn systemd_takes_the_unit_and_finds_it_fenced_as_the_book_says() {
    if !Path::new(ANALYZE).exists() {
        not_run("metaslotd", "its unit", "there is no systemd-analyze");
        return;
    }
    let directory = std::env::temp_dir().join(format!("metaslotd-unit-{}", std::process::id()));
    fs::create_dir_all(&directory).expect("a directory is made");
    let file = directory.join("metaslotd.service");
    // It looks for the program, and for the page where `man` is.
    let unit =
        UNIT.replace("@SBIN@/metaslotd", "/bin/true").replace("man:metaslotd(8)", "man:ls(1)");
    fs::write(&file, unit).expect("it is written");
    let socket = directory.join("metaslotd.socket");
    fs::write(&socket, SOCKET.replace("man:metaslotd(8)", "man:ls(1)")).expect("it is written");
    let (_, said) = run(Command::new(ANALYZE).arg("verify").args([&file, &socket]));
    let is_ours = |line: &&str| {
        ["service:", "socket:"].iter().any(|unit| line.contains(&format!("metaslotd.{unit}")))
    };
    let complaint = said.lines().find(is_ours);
    assert_eq!(complaint.filter(|line| !line.contains("'man ")), None);
    let mut security = Command::new(ANALYZE);
    let (output, said) =
        run(security.args(["security", "--offline=true", "--no-pager"]).arg(&file));
    fs::remove_dir_all(directory).expect("it was there");
    assert!(output.status.success(), "{said}");
    let level = said.split("service: ").nth(1).and_then(|rest| rest.split(' ').next());
    let level = level.expect("it says a level");
    assert!(level.parse::<f32>().expect("a number") < 1.0, "{said}");
    // Another version of systemd looks at other things.
    let (_, version) = run(Command::new(ANALYZE).arg("--version"));
    assert!(
        !version.starts_with("systemd 252") || BOOK.contains(&format!("exposure {level}")),
        "{said}"
    );
}

#[test]
fn systemd_takes_the_unit_of_connect_and_its_program_what_stands_there() {
    let line = CONNECT.lines().find_map(|line| line.strip_prefix("ExecStart=@SBIN@/metaslotd "));
    let line = line.expect("it starts the program").replace("${FAR}", "127.0.0.1:1");
    let line = line.replace(" $OPTIONS", " --group root").replace("/etc/metaslot", "/nowhere");
    let (output, said) = run(Command::new(env!("CARGO_BIN_EXE_metaslotd")).args(line.split(' ')));
    let missing = "/nowhere/connect/%i/";
    assert!(output.status.code() == Some(1) && said.contains(missing), "{said}");
    if !Path::new(ANALYZE).exists() {
        return not_run("metaslotd", "the unit of connect", "there is no systemd-analyze");
    }
    let directory = std::env::temp_dir().join(format!("metaslotd-far-{}", std::process::id()));
    fs::create_dir_all(&directory).expect("a directory is made");
    let file = directory.join("metaslotd-connect@vault.service");
    let unit = CONNECT.replace("@SBIN@/metaslotd", "/bin/true").replace("metaslotd(8)", "ls(1)");
    fs::write(&file, unit).expect("it is written");
    let (_, said) = run(Command::new(ANALYZE).arg("verify").arg(&file));
    fs::remove_dir_all(directory).expect("it was there");
    let complaint = said.lines().find(|line| line.contains("metaslotd-connect@vault.service:"));
    assert_eq!(complaint.filter(|line| !line.contains("'man ")), None);
}

#[test]
fn a_wrong_pin_is_not_tried_again_by_the_service_manager() {
    assert!(UNIT.contains("RestartPreventExitStatus=77 78\n"));
    assert!(CONNECT.contains("RestartPreventExitStatus=78\n"), "it has no PIN");
    // Nor by clients: each that connects would start it.
    assert!(UNIT.contains(" 77|78) exec systemctl --no-block stop metaslotd.socket;;"));
}

#[test]
fn what_is_not_there_yet_when_the_machine_starts_is_waited_for() {
    for unit in [UNIT, CONNECT] {
        let (beginning, rest) = unit.split_once("[Service]\n").expect("it has sections");
        assert!(beginning.contains("StartLimitIntervalSec=0\n"));
        assert!(rest.contains("Restart=on-failure\n") && rest.contains("RestartSec=1s\n"));
    }
}

#[test]
fn the_page_has_each_option() {
    let help = |of: &[&str]| run(Command::new(env!("CARGO_BIN_EXE_metaslotd")).args(of)).1;
    let help = help(&["--help"]) + &help(&["connect", "--help"]);
    let page = PAGE.replace('\\', "");
    let options = help.split_whitespace().filter(|word| word.starts_with("--"));
    let missing: Vec<_> = options.filter(|option| !page.contains(*option)).collect();
    assert!(help.contains("--check") && help.contains("--ca") && missing.is_empty(), "{missing:?}");
}

/// What the daemon's memory is, in KiB.
fn resident(daemon: &Killed) -> u64 {
    let status = fs::read_to_string(format!("/proc/{}/status", daemon.0.id())).expect("it runs");
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).expect("it is said");
    line.trim().trim_end_matches(" kB").parse().expect("a number")
}

#[test]
fn what_long_messages_took_goes_back() {
    let place = Place::new();
    initialized(&place);
    configured(&place);
    let mut command = Command::new(program());
    // What would have the C library's allocator do it.
    command.env_remove("GLIBC_TUNABLES");
    let daemon = started_by(command, &place);
    let socket = place.path().join("socket");
    let long = vec![1; 6 << 20];
    let digest = || {
        let mut raw = Raw::over(UnixStream::connect(&socket).expect("it serves"), 2);
        let session = raw.number(10, |request| numbers(request, &[0, CKF_SERIAL_SESSION]));
        let session = session.expect("a session opens");
        for _ in 0..4 {
            raw.call(37, |request| {
                request.number(session);
                mechanism(request, CKM_SHA256, None);
            })
            .expect("it begins");
            raw.call(38, |request| {
                request.number(session);
                request.bytes(Some(&long));
                request.half(32);
            })
            .expect("a digest");
        }
    };
    let all = || thread::scope(|scope| drop(Vec::from_iter((0..6).map(|_| scope.spawn(digest)))));
    digest();
    let before = resident(&daemon);
    all();
    let begun = Instant::now();
    while resident(&daemon) > before + (8 << 10) {
        let now = resident(&daemon);
        assert!(begun.elapsed() < Duration::from_secs(5), "{before} KiB before, {now} KiB after");
        sleep(Duration::from_millis(20));
    }
}

// SPDX-License-Identifier: Apache-2.0
//! Where a daemon has its PINs from: one that asks for them on the terminal, and one whose file is everybody's.

#[path = "../../../cli/tests/common/terminal.rs"]
mod terminal;

use crate::common::{Place, USER, initialized, program};
use crate::far::Said;
use metaslot_testkit::not_run;
use rustix::process::{Pid, Signal, kill_process};
use rustix::termios::{LocalModes, tcgetattr};
use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt as _;
use std::process::Command;
use terminal::Terminal;

fn configure(place: &Place, source: &str) {
    let at = place.path().display();
    let text = format!(
        "counters = false\n[[token]]\npath = \"{at}/token/token.db\"\nkdf = \"weak-for-tests\"\n\
         pin-source = \"{source}\"\n[daemon]\nsocket = \"{at}/socket\"\n"
    );
    fs::write(place.path().join("metaslotd.toml"), text).expect("it is written");
}

/// `setsid --ctty` makes it the controlling terminal.
fn on_a_terminal(place: &Place, more: &[&str]) -> Terminal {
    let mut setsid = Command::new("/usr/bin/setsid");
    setsid.arg("--ctty").arg(program()).arg("--config");
    setsid.arg(place.path().join("metaslotd.toml")).args(more);
    Terminal::start(setsid)
}

#[test]
fn a_pin_is_asked_for_on_the_terminal_and_not_shown() {
    if !fs::exists("/usr/bin/setsid").unwrap_or(false) {
        not_run("metaslotd", "a terminal", "there is no setsid");
        return;
    }
    let place = Place::in_memory();
    initialized(&place);
    configure(&place, "ask");
    let right = String::from_utf8_lossy(USER).into_owned();
    let question = "metaslotd: user PIN of the token in ";
    for (typed, reason, status) in [
        ("wrong-pin\n", "wrong PIN, 9 attempts left", Some(77)),
        ("\n", "on a terminal: nothing was typed", Some(77)),
        ("\x03", "on a terminal: cancelled", Some(77)),
        (&format!("x\x7f{right}\n"), "", Some(0)),
    ] {
        let mut terminal = on_a_terminal(&place, &["--check"]);
        terminal.expect(question);
        terminal.expect(": ");
        assert!(!modes(&terminal).contains(LocalModes::ECHO), "what is typed is not shown");
        terminal.answer(typed);
        let (screen, code) = terminal.end();
        assert!(code == status && screen.contains(reason), "{typed:?}: {code:?} {screen}");
        assert!(!screen.contains("pin-1") && !screen.contains("wrong-pin"), "{screen}");
    }
    // It serves, and ends by SIGTERM as one that asked for nothing.
    let mut terminal = on_a_terminal(&place, &[]);
    terminal.expect(question);
    terminal.expect(": ");
    terminal.answer(&format!("{right}\n"));
    terminal.expect("metaslotd: serves ");
    assert!(modes(&terminal).contains(LocalModes::ECHO), "the terminal is as it was");
    let daemon = Pid::from_child(&terminal.child);
    kill_process(daemon, Signal::TERM).expect("it runs");
    assert_eq!(terminal.end().1, Some(0));
    assert!(!place.path().join("socket").exists(), "it has put its things away");
}

fn modes(terminal: &Terminal) -> LocalModes {
    tcgetattr(&terminal.master).expect("it is a terminal").local_modes
}

#[test]
fn without_a_terminal_none_is_asked_for() {
    let place = Place::in_memory();
    initialized(&place);
    configure(&place, "ask");
    // In a session of its own.
    let mut alone = Command::new("/usr/bin/setsid");
    alone.args(["--wait"]).arg(program()).arg("--config");
    let ended = alone.arg(place.path().join("metaslotd.toml")).output().expect("it is installed");
    let said = String::from_utf8_lossy(&ended.stderr).into_owned();
    assert!(said.contains("it cannot be asked for on a terminal: "), "{said}");
    assert_eq!(ended.status.code(), Some(77), "the service manager does not start it again");
}

#[test]
fn a_pin_that_everybody_may_read_is_named() {
    let place = Place::in_memory();
    initialized(&place);
    let pin = place.path().join("pin");
    fs::write(&pin, USER).expect("the PIN is written");
    configure(&place, &format!("file:{}", pin.display()));
    for (mode, is_said) in [(0o644, true), (0o602, true), (0o640, false), (0o600, false)] {
        fs::set_permissions(&pin, Permissions::from_mode(mode)).expect("it is ours");
        let mut check = Said::by(&place, "check", &["--config", "metaslotd.toml", "--check"]);
        assert!(check.process.0.wait().expect("it ends").success(), "it is no failure");
        let said = fs::read_to_string(place.path().join("check")).expect("it is there");
        let warning = format!("{}: others may read or write it", pin.display());
        assert_eq!(said.contains(&warning), is_said, "{mode:o}: {said}");
    }
}

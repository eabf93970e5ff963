// SPDX-License-Identifier: Apache-2.0
//! A test of this program in a process of its own, which loads our module. It is told by lines, and tells by lines.

use crate::common::{Killed, Place, USER};
use metaslot_client::{Access, Module, Session, User};
use std::io::{BufRead as _, BufReader, Lines, Write as _};
use std::path::Path;
use std::process::{ChildStdin, ChildStdout, Command, Stdio};
use std::{env, fs};

/// Names the module in that process.
const MODULE: &str = "METASLOT_TEST_MODULE";

/// The process.
pub(crate) struct Itself {
    pub(crate) process: Killed,
    asks: ChildStdin,
    answers: Lines<BufReader<ChildStdout>>,
}

impl Itself {
    /// The test of this name, as a client that the place configures.
    pub(crate) fn started(place: &Place, test: &str, module: &Path) -> Self {
        let mut command = Command::new(env::current_exe().expect("the test has a file"));
        command.args(["--exact", test, "--nocapture"]);
        command.env(MODULE, fs::canonicalize(module).expect("it is there"));
        command.env("METASLOT_CONF", place.path().join("metaslot.toml"));
        let process = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn();
        let mut process = process.expect("it is this program");
        let asks = process.stdin.take().expect("a pipe");
        let answers = BufReader::new(process.stdout.take().expect("a pipe")).lines();
        Self { process: Killed(process), asks, answers }
    }

    /// What it says next; nothing where it has ended.
    pub(crate) fn answer(&mut self) -> Option<String> {
        let mut lines = self.answers.by_ref().map(|line| line.expect("a line"));
        lines.find_map(|line| line.strip_prefix("=> ").map(str::to_owned))
    }

    /// Tells it something, until which it waits.
    pub(crate) fn tell(&mut self, what: &str) {
        writeln!(self.asks, "{what}").expect("it reads");
    }

    /// What else it says until it ends, which it does well; it is told nothing any more.
    pub(crate) fn rest(self) -> Vec<String> {
        let Self { mut process, asks, answers } = self;
        drop(asks);
        let lines = answers.map(|line| line.expect("a line"));
        let lines = lines.filter_map(|line| line.strip_prefix("=> ").map(str::to_owned)).collect();
        assert!(process.0.wait().expect("it ends").success());
        lines
    }
}

/// In that process: the module, and a session without a login. In any other there is nothing to do.
pub(crate) fn opened() -> Option<(Module, Session)> {
    let module = Module::load(env::var_os(MODULE)?).expect("it is loaded");
    module.initialize().expect("it begins");
    let slot = module.slots(true).expect("its slots")[0];
    let session = module.open_session(slot, Access::ReadWrite).expect("a session");
    Some((module, session))
}

/// The same, with the user logged in.
pub(crate) fn logged_in() -> Option<(Module, Session)> {
    let (module, session) = opened()?;
    session.login(User::User, USER).expect("the PIN");
    Some((module, session))
}

/// Says something.
pub(crate) fn say(what: &str) {
    println!("\n=> {what}");
}

/// What it is told; nothing where it is to end.
pub(crate) fn heard() -> Option<String> {
    std::io::stdin().lines().next().map(|line| line.expect("it is text"))
}

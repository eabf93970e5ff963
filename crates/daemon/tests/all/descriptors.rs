// SPDX-License-Identifier: Apache-2.0
//! A daemon that has no descriptor to spare, for a moment.

use crate::common::{Killed, Place, USER, initialized, pairs, program, write_own};
use metaslot_ck::*;
use metaslot_client::{Access, Mechanism, Module, Session, Template};
use metaslot_testkit::not_run;
use rustix::process::{Pid, Resource, Rlimit, getrlimit, prlimit};
use std::collections::BTreeSet;
use std::fs;
use std::io::{BufRead as _, BufReader};
use std::process::{Command, Stdio};
use std::thread::{scope, sleep};
use std::time::Duration;

/// As long as the daemon has none: it looks a hundred times in a second.
const SCARCE: Duration = Duration::from_millis(150);

/// Gives processes of every control group the keys.
fn configure(place: &Place) {
    let at = place.path().display();
    write_own(place.path().join("pin"), USER);
    let text = format!(
        "counters = false\n[[token]]\npath = \"{at}/token/token.db\"\nkdf = \"weak-for-tests\"\n\
         pin-source = \"file:{at}/pin\"\n[daemon]\nsocket = \"{at}/door\"\n\
         [[client]]\nservices = [\"cgroup:/\"]\ntoken = \"door\"\noperations = [\"sign\"]\n"
    );
    fs::write(place.path().join("metaslotd.toml"), text).expect("it is written");
}

/// A daemon, and what it says.
fn begun(place: &Place) -> (Killed, impl Iterator<Item = String>) {
    let mut command = Command::new(program());
    command.arg("--config").arg(place.path().join("metaslotd.toml")).stderr(Stdio::piped());
    let mut daemon = Killed(command.spawn().expect("it is built"));
    let said = BufReader::new(daemon.0.stderr.take().expect("a pipe"));
    let mut said = said.lines().map(|line| line.expect("a line"));
    said.find(|line| line.contains("serves ")).expect("it serves");
    (daemon, said)
}

/// The highest number that leaves it so many descriptors.
fn leaving(daemon: &Killed, spare: u64) -> u64 {
    let all = fs::read_dir(format!("/proc/{}/fd", daemon.0.id())).expect("it runs");
    let numbers = all.map(|one| one.expect("it is read").file_name().into_string());
    let numbers = numbers.map(|one| one.ok().and_then(|one| one.parse::<u64>().ok()));
    let taken: BTreeSet<_> = numbers.map(|one| one.expect("a number")).collect();
    let free = (0..).filter(|number| !taken.contains(number));
    let spare = usize::try_from(spare).expect("a few");
    free.take(spare + 1).last().expect("there is no end")
}

fn limit(daemon: &Killed, current: Option<u64>) {
    let (process, maximum) =
        (Some(Pid::from_child(&daemon.0)), getrlimit(Resource::Nofile).maximum);
    let limit = Rlimit { current, maximum };
    prlimit(process, Resource::Nofile, limit).expect("it is this user's");
}

fn key(session: &Session) -> Option<ObjectHandle> {
    let site = Template::new().class(CKO_PRIVATE_KEY).label("site");
    session.find_one(&site).expect("a search")
}

#[test]
fn a_client_that_comes_while_there_is_no_descriptor_is_served_as_what_it_is_or_not_at_all() {
    let groups = fs::read_to_string("/proc/self/cgroup").expect("it is there");
    if !groups.lines().any(|line| line.starts_with("0::/")) {
        return not_run("metaslotd", "descriptors", "there are no control groups of version 2");
    }
    let place = Place::in_memory();
    initialized(&place);
    pairs(&place, CKA_DECRYPT);
    configure(&place);
    let (daemon, said) = begun(&place);
    let begin = || -> Result<Session> {
        let module: Module = place.module(2);
        module.initialize().map_err(|failed| failed.code)?;
        module.open_session(SlotId(0), Access::ReadOnly).map_err(|failed| failed.code)
    };
    let other = begin().expect("there are descriptors");
    let mine = key(&other).expect("it is there");
    let mut served = 0;
    for spare in 0..9 {
        let highest = leaving(&daemon, spare);
        limit(&daemon, Some(highest));
        scope(|scope| {
            let comes = scope.spawn(begin);
            sleep(SCARCE);
            // Who has come before is served.
            other.sign(&Mechanism::new(CKM_ECDSA), mine, &[1; 32]).expect("a signature");
            limit(&daemon, getrlimit(Resource::Nofile).maximum);
            // One that is not served is to come again.
            if let Ok(session) = comes.join().expect("no panic") {
                assert!(key(&session).is_some(), "with {spare} to spare it is a stranger");
                served += 1;
            }
        });
    }
    assert!(served > 1, "none is served with a few to spare");
    drop(daemon);
    let lines = Vec::from_iter(said);
    assert_eq!(lines, ["metaslotd: takes no connection: Too many open files"], "it says so once");
}

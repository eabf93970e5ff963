// SPDX-License-Identifier: Apache-2.0
//! Control groups: whether a process in a group of its own is accounted for.

use super::outcome::{Outcome, Trouble};
use crate::meter::{DELEGATION, Group, Hierarchy};
use metaslot_system::signal::Deferred;
use std::io::{ErrorKind, Write};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

type Attempt = Result<Outcome, Trouble>;

/// How long the process in the group may take.
const LIMIT: Duration = Duration::from_millis(800);
/// Waits for a line, and then computes for some 20 ms.
const WORK: &str = "read go; i=0; while [ $i -lt 30000 ]; do i=$((i+1)); done";

/// CPU time of a group of version 1.
pub(crate) fn version_one() -> Attempt {
    account(Hierarchy::One)
}

/// CPU time of a group of version 2.
pub(crate) fn version_two() -> Attempt {
    account(Hierarchy::Two)
}

/// Makes a group, has a process work in it, reads what that cost, and removes the group.
fn account(hierarchy: Hierarchy) -> Attempt {
    let Some(parent) = hierarchy.own_directory()? else {
        return Err(Trouble::reason("not mounted", "the hierarchy mounted, by root"));
    };
    // ^C is not to leave the group behind.
    let _deferred = Deferred::new()?;
    let group = Group::make_in(&parent, hierarchy).map_err(|error| match error.kind() {
        ErrorKind::PermissionDenied => {
            let why = format!("no group can be made in {}", parent.display());
            Trouble::reason(why, DELEGATION)
        }
        _ => error.into(),
    })?;
    let mut worker = Worker::start()?;
    let refused = |_| Trouble::reason("the group takes no process", DELEGATION);
    group.take(worker.0.id()).map_err(refused)?;
    let wall = worker.work()?.as_secs_f64() * 1e3;
    let Ok(used) = group.spent() else {
        return Err(Trouble::reason("the group has no account of CPU time", "a kernel with it"));
    };
    let used = used.cpu / 1e6;
    group.remove()?;
    let says = format!("{used:.1} ms of a process that took {wall:.1} ms, in {}", parent.display());
    let doubt = !(0.5..=1.2 * wall).contains(&used);
    Ok(Outcome::new(&says).figure("ms", used).doubted(doubt.then_some(says)))
}

/// A process that works when it is told to.
#[derive(Debug)]
struct Worker(Child);

impl Worker {
    fn start() -> std::io::Result<Self> {
        let mut command = Command::new("/bin/sh");
        command.args(["-c", WORK]).stdin(Stdio::piped());
        command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().map(Self)
    }

    /// How long it took.
    fn work(&mut self) -> Result<Duration, Trouble> {
        let started = Instant::now();
        if let Some(mut input) = self.0.stdin.take() {
            input.write_all(b"go\n")?;
        }
        while started.elapsed() < LIMIT {
            if self.0.try_wait()?.is_some() {
                return Ok(started.elapsed());
            }
            std::thread::sleep(Duration::from_micros(500));
        }
        Err(Trouble::reason("the process in the group did not end in time", "an idle machine"))
    }
}

impl Drop for Worker {
    fn drop(&mut self) {
        self.0.kill().ok();
        self.0.wait().ok();
    }
}

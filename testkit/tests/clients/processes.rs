// SPDX-License-Identifier: Apache-2.0
//! What a server has of processes: which children, of which user, with how many threads.

use std::collections::BTreeSet;
use std::time::{Duration, Instant};

use anyhow::{Result, ensure};
use metaslot_testkit::{Program, Server, TestToken};

/// How long something may take that a process does on its own.
const PATIENCE: Duration = Duration::from_secs(60);

/// The children of a server, which have to become this user's.
pub(crate) fn children_of(server: &Server, user: &str) -> Result<BTreeSet<u32>> {
    let expected = Program::new("id").args(["-u", user]).run()?.text();
    let (parent, mut children) = (server.pid().to_string(), BTreeSet::new());
    until("its children are another user's", || {
        // Without any its status is 1.
        let list = Program::new("ps").args(["--ppid", &parent, "-o", "euid=,pid="]).output()?;
        let list = list.text();
        let rows = || list.lines().filter_map(|line| line.trim().split_once(' '));
        children = rows().filter_map(|(_, pid)| pid.trim().parse().ok()).collect();
        Ok(!children.is_empty() && rows().all(|(id, _)| id == expected.trim()))
    })?;
    Ok(children)
}

/// Waits until something holds that a process does on its own.
pub(crate) fn until(otherwise: &str, mut holds: impl FnMut() -> Result<bool>) -> Result<()> {
    let deadline = Instant::now() + PATIENCE;
    while !holds()? {
        ensure!(Instant::now() < deadline, "{otherwise}");
        std::thread::sleep(Duration::from_millis(1));
    }
    Ok(())
}

/// How many threads a server's process has.
pub(crate) fn threads(server: &Server) -> Result<usize> {
    Ok(std::fs::read_dir(format!("/proc/{}/task", server.pid()))?.count())
}

/// Runs `work` while a process stands still.
pub(crate) fn without<T>(pid: u32, work: impl FnOnce() -> Result<T>) -> Result<T> {
    let signal = |name: &str| Program::new("kill").args(["-s", name, &pid.to_string()]).run();
    signal("STOP")?;
    let status = format!("/proc/{pid}/status");
    let stopped =
        until("it does not stop", || Ok(std::fs::read_to_string(&status)?.contains("State:\tT")));
    let done = stopped.and_then(|()| work());
    signal("CONT")?;
    done
}

/// Runs `work` as often as it is asked for, all at once.
pub(crate) fn at_once(
    token: &TestToken,
    times: usize,
    work: impl Fn(&TestToken, usize) -> Result<()> + Sync,
) -> Result<()> {
    let work = &work;
    std::thread::scope(|scope| {
        let all: Vec<_> = (0..times).map(|time| scope.spawn(move || work(token, time))).collect();
        all.into_iter().try_for_each(|one| one.join().unwrap_or_else(|_| anyhow::bail!("panicked")))
    })
}

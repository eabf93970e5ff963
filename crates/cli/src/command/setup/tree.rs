// SPDX-License-Identifier: Apache-2.0
//! A script and all that it starts, which ends with it: also what has left its group and its session.

use rustix::process::{
    Pid, Signal, WaitOptions, getpid, kill_process, kill_process_group, set_child_subreaper,
    waitpid,
};
use signal_hook::consts::{SIGHUP, SIGINT, SIGQUIT, SIGTERM};
use signal_hook::flag;
use std::collections::HashSet;
use std::fs;
use std::io;
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, ExitStatus};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock};
use std::thread;
use std::time::{Duration, Instant};

/// How long processes may take to end when they are told to, and then when they are killed.
const LAST_PATIENCE: Duration = Duration::from_secs(5);
/// How often they are looked at.
const PAUSE: Duration = Duration::from_millis(10);

/// How the script ended.
pub(super) enum Ended {
    With(ExitStatus),
    /// It did not.
    Late,
    /// This signal came for us meanwhile.
    Interrupted(i32),
}

/// The processes; they end when this is dropped.
pub(super) struct Tree {
    script: Child,
    /// Children that were there before: an isolated module's.
    others: HashSet<Pid>,
}

/// The signal that came for us, if one did since this was first asked: from then on none ends us by itself.
pub(super) fn signal() -> io::Result<Option<i32>> {
    static SIGNAL: OnceLock<Arc<AtomicUsize>> = OnceLock::new();
    if SIGNAL.get().is_none() {
        let signal = Arc::new(AtomicUsize::new(0));
        for number in [SIGHUP, SIGINT, SIGQUIT, SIGTERM] {
            flag::register_usize(number, Arc::clone(&signal), number.unsigned_abs() as usize)?;
        }
        SIGNAL.set(signal).ok();
    }
    let came = SIGNAL.get().map_or(0, |signal| signal.load(Ordering::SeqCst));
    Ok(i32::try_from(came).ok().filter(|signal| *signal != 0))
}

impl Tree {
    pub(super) fn start(command: &mut Command) -> io::Result<Self> {
        signal()?;
        let others = processes().filter(|process| process.parent == getpid());
        let others = others.map(|process| process.pid).collect();
        // Orphans become our children, so that none is out of sight.
        set_child_subreaper(Some(getpid()))?;
        Ok(Self { script: command.process_group(0).spawn()?, others })
    }

    /// Waits, and looks meanwhile.
    pub(super) fn wait(&mut self, patience: Duration, look: &mut dyn FnMut()) -> io::Result<Ended> {
        let end = Instant::now() + patience;
        while Instant::now() < end {
            if let Some(status) = self.script.try_wait()? {
                return Ok(Ended::With(status));
            }
            if let Some(signal) = signal()? {
                return Ok(Ended::Interrupted(signal));
            }
            look();
            thread::sleep(PAUSE);
        }
        Ok(Ended::Late)
    }

    /// What still runs.
    fn left(&mut self) -> HashSet<Pid> {
        self.script.try_wait().ok();
        let all: Vec<Process> = processes().collect();
        let mut parents = HashSet::from([getpid()]);
        loop {
            let below = |process: &&Process| parents.contains(&process.parent);
            let new = all.iter().filter(below).map(|process| process.pid);
            let new: Vec<Pid> =
                new.filter(|pid| !parents.contains(pid) && !self.others.contains(pid)).collect();
            if new.is_empty() {
                break;
            }
            parents.extend(new);
        }
        let ours = all.into_iter().filter(|process| parents.contains(&process.pid));
        let ours = ours.filter(|process| process.pid != getpid());
        ours.filter(|process| !process.is_collected()).map(|process| process.pid).collect()
    }
}

impl Drop for Tree {
    fn drop(&mut self) {
        // A server that may clean up leaves no shared memory behind.
        for signal in [Signal::TERM, Signal::KILL] {
            let end = Instant::now() + LAST_PATIENCE;
            let mut told = HashSet::new();
            let mut left = self.left();
            while !left.is_empty() && Instant::now() < end {
                for pid in left.into_iter().filter(|pid| told.insert(*pid)) {
                    // It may have ended just now.
                    kill_process(pid, signal).ok();
                }
                thread::sleep(PAUSE);
                left = self.left();
            }
        }
        // Without /proc nothing else is known of.
        if let (Ok(None), Some(group)) =
            (self.script.try_wait(), Pid::from_raw(self.script.id().cast_signed()))
        {
            kill_process_group(group, Signal::KILL).ok();
            self.script.wait().ok();
        }
    }
}

/// A row of the system's table.
struct Process {
    pid: Pid,
    parent: Pid,
    has_ended: bool,
}

impl Process {
    /// `/proc/PID/stat`: a name in parentheses, which may have any in it, the state, the parent.
    fn read(stat: &str) -> Option<Self> {
        let (number, rest) = stat.split_once(' ')?;
        let mut fields = rest.rsplit_once(") ")?.1.split(' ');
        let has_ended = ["Z", "X"].contains(&fields.next()?);
        let pid = |text: &str| Pid::from_raw(text.parse().ok()?);
        Some(Self { pid: pid(number)?, parent: pid(fields.next()?)?, has_ended })
    }

    /// Whether it has ended, and its number is given back where we are the parent.
    fn is_collected(&self) -> bool {
        if self.has_ended {
            waitpid(Some(self.pid), WaitOptions::NOHANG).ok();
        }
        self.has_ended
    }
}

fn processes() -> impl Iterator<Item = Process> {
    let entries = fs::read_dir("/proc").into_iter().flatten().flatten();
    entries.filter_map(|entry| {
        let stat = fs::read_to_string(entry.path().join("stat")).ok()?;
        Process::read(&stat)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_row_is_read_whatever_a_program_calls_itself() {
        let row = Process::read("7 (a) Z 1 (x) R 5 7 0\n").expect("it is one");
        assert_eq!((row.pid.as_raw_pid(), row.parent.as_raw_pid(), row.has_ended), (7, 5, false));
        assert!(Process::read("8 (sh) Z 7 8").is_some_and(|row| row.has_ended));
        assert!(Process::read("nothing").is_none());
    }
}

// SPDX-License-Identifier: Apache-2.0
//! Whose CPU time is counted.

use super::Group;
use super::spent::Spent;
use crate::Result;
use crate::clock::{children_cpu, process_cpu, thread_cpu};
use std::fs;

/// Who does the work.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Account<'a> {
    /// The calling thread.
    Thread,
    /// This process, all threads.
    Process,
    /// A control group of the experiment's own.
    Group(&'a Group),
    /// Processes that the experiment has started, each with all its threads. What the kernel does for
    /// them in other processes is not seen.
    Processes(&'a [u32]),
    /// All processes that this one has started and that have ended, in ticks of 10 ms.
    Children,
}

impl Account<'_> {
    /// CPU time so far.
    ///
    /// # Errors
    /// The group or a process is gone.
    pub(crate) fn read(&self) -> Result<Spent> {
        match self {
            Self::Thread => Ok(Spent::of(thread_cpu())),
            Self::Process => Ok(Spent::of(process_cpu())),
            Self::Group(group) => group.spent(),
            Self::Processes(pids) => Ok(Spent {
                cpu: pids.iter().map(|pid| of_process(*pid)).sum(),
                user: None,
                system: None,
            }),
            Self::Children => Ok(Spent::of(children_cpu())),
        }
    }

    /// Whether the lab's own process does the work.
    pub(super) const fn own(&self) -> bool {
        matches!(self, Self::Thread | Self::Process)
    }

    /// Where the numbers come from.
    pub(crate) fn source(&self) -> String {
        match self {
            Self::Thread => "CLOCK_THREAD_CPUTIME_ID of the working thread".to_owned(),
            Self::Process => "CLOCK_PROCESS_CPUTIME_ID".to_owned(),
            Self::Group(group) => group.source(),
            Self::Children => "children's times in /proc/self/stat, in ticks of 10 ms".to_owned(),
            Self::Processes(_) => "/proc/PID/schedstat of the experiment's processes".to_owned(),
        }
    }
}

/// CPU time of a process's living threads so far; nothing of one that has gone.
fn of_process(pid: u32) -> f64 {
    let threads = fs::read_dir(format!("/proc/{pid}/task")).into_iter().flatten().flatten();
    threads.map(|thread| of_thread(&thread.path().join("schedstat"))).sum()
}

fn of_thread(path: &std::path::Path) -> f64 {
    let text = fs::read_to_string(path).unwrap_or_default();
    text.split(' ').next().and_then(|first| first.parse().ok()).unwrap_or(0.0)
}

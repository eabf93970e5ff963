// SPDX-License-Identifier: Apache-2.0
//! On which CPUs both ends run. Bytes that change the CPU cost about twice as much as bytes that are
//! still in the cache of the one that wrote them: where the scheduler puts two processes by chance, the
//! cost is a matter of chance as well.

use crate::{Failure, Result};
use rustix::process::Pid;
use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};

/// The placement of sender and receiver.
#[derive(Clone, Copy, Debug, Eq, PartialEq, clap::ValueEnum)]
pub enum Cpus {
    /// Each on a CPU of its own
    Apart,
    /// Both on one
    Together,
    /// Wherever the scheduler puts them
    Free,
}

impl Cpus {
    /// Its name in the manifest.
    pub(super) const fn name(self) -> &'static str {
        match self {
            Self::Apart => "sender and receiver each on a CPU of its own",
            Self::Together => "sender and receiver on one CPU",
            Self::Free => "wherever the scheduler puts sender and receiver",
        }
    }

    /// Puts a sender and a receiver there.
    pub(super) fn place(self, pids: [u32; 2]) -> Result<()> {
        let failed = |error| Failure::new(format!("the CPUs of sender and receiver: {error}"));
        let allowed = sched_getaffinity(None).map_err(failed)?;
        let cpus: Vec<usize> = (0..CpuSet::MAX_CPU).filter(|cpu| allowed.is_set(*cpu)).collect();
        let (Some(first), Some(last)) = (cpus.first(), cpus.get(1).or_else(|| cpus.first())) else {
            return Err(Failure::new("this process may run on no CPU"));
        };
        let places = match self {
            Self::Free => return Ok(()),
            Self::Apart => [*first, *last],
            Self::Together => [*first; 2],
        };
        for (pid, cpu) in pids.into_iter().zip(places) {
            let mut set = CpuSet::new();
            set.set(cpu);
            let pid = i32::try_from(pid).ok().and_then(Pid::from_raw);
            sched_setaffinity(pid, &set).map_err(failed)?;
        }
        Ok(())
    }
}

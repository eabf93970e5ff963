// SPDX-License-Identifier: Apache-2.0
//! What a stretch of work cost: CPU time of the experiment alone, apart from what the machine and
//! strangers did meanwhile.
//!
//! CPU time and not throughput, because a busy machine takes away throughput but hardly makes the
//! work dearer. Only the window counts: what happens before its begin and after its end is no part
//! of it.

mod account;
mod done;
mod group;
mod spent;
mod stat;

pub(crate) use account::Account;
pub(crate) use done::{Done, besides};
#[cfg(test)]
pub(crate) use group::PREFIX;
pub(crate) use group::{DELEGATION, Group, Hierarchy};
pub(crate) use stat::Stat;

use crate::clock::{monotonic, process_cpu};
use crate::experiment::Measured;
use spent::Spent;
use std::collections::BTreeMap;
use std::time::Instant;

/// Others used more than this share of a CPU: the sample is marked.
pub(crate) const CONTAMINATED: f64 = 0.2;

/// The experiment's clock.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Meter {
    began: Instant,
}

/// A window that is open: everything at its begin.
#[derive(Debug)]
pub(crate) struct Window<'a> {
    meter: Meter,
    account: Account<'a>,
    wall: Instant,
    stat: Option<Stat>,
    lab: f64,
    spent: Spent,
}

impl Meter {
    pub(crate) fn start() -> Self {
        Self { began: Instant::now() }
    }

    /// When it began, in nanoseconds of the monotonic clock.
    pub(crate) fn origin(&self) -> u64 {
        let origin = monotonic().saturating_sub(self.began.elapsed());
        u64::try_from(origin.as_nanos()).unwrap_or(u64::MAX)
    }

    /// Opens a window on an account. The account is read last, so what is read before costs it nothing.
    ///
    /// # Errors
    /// The account cannot be read.
    pub(crate) fn open<'a>(&self, account: Account<'a>) -> crate::Result<Window<'a>> {
        let (stat, lab) = (Stat::read(), nanoseconds(process_cpu()));
        let wall = Instant::now();
        let spent = account.read()?;
        Ok(Window { meter: *self, account, wall, stat, lab, spent })
    }

    /// What the calling thread does in `work`, which says how many units it did.
    ///
    /// # Errors
    /// Those of the work.
    pub(crate) fn thread(
        &self,
        work: impl FnOnce() -> crate::Result<f64>,
    ) -> crate::Result<Measured> {
        let window = self.open(Account::Thread)?;
        let units = work()?;
        window.close(units)
    }

    /// What this process does in `work`, all threads.
    ///
    /// # Errors
    /// Those of the work.
    pub(crate) fn process(
        &self,
        work: impl FnOnce() -> crate::Result<f64>,
    ) -> crate::Result<Measured> {
        let window = self.open(Account::Process)?;
        let units = work()?;
        window.close(units)
    }
}

impl Window<'_> {
    /// Closes it: so many units of work were done. The account is read first.
    ///
    /// # Errors
    /// The account cannot be read.
    pub(crate) fn close(self, work: f64) -> crate::Result<Measured> {
        let spent = self.account.read()?.since(self.spent);
        let (wall, end) = (self.wall.elapsed(), self.meter.began.elapsed());
        let lab = nanoseconds(process_cpu()) - self.lab;
        let stat = Stat::read().zip(self.stat).map(|(after, before)| after.since(before));
        let wall_ns = nanoseconds(wall);
        // What the lab itself did beside the work, which may be its own process's.
        let lab = (lab - if self.account.own() { spent.cpu } else { 0.0 }).max(0.0);
        let mut counters = BTreeMap::from([("lab_ns".to_owned(), lab)]);
        counters.extend(spent.user.map(|user| ("user_ns".to_owned(), user)));
        counters.extend(spent.system.map(|system| ("system_ns".to_owned(), system)));
        let mut foreign_cpu = None;
        if let Some(stat) = stat {
            counters.extend(stat.shares().map(|(name, cpus)| (format!("machine_{name}"), cpus)));
            foreign_cpu = Some(((stat.busy() - spent.cpu - lab) / wall_ns.max(1.0)).max(0.0));
        }
        let contaminated = foreign_cpu.is_some_and(|cpus| cpus > CONTAMINATED);
        let end = nanoseconds(end);
        Ok(Measured {
            window_ns: [whole(end - wall_ns), whole(end)],
            work,
            cpu_ns: spent.cpu,
            wall_ns,
            foreign_cpu,
            counters,
            flags: contaminated.then(|| "contaminated".to_owned()).into_iter().collect(),
        })
    }
}

fn nanoseconds(time: std::time::Duration) -> f64 {
    time.as_secs_f64() * 1e9
}

#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "nanoseconds since the start"
)]
const fn whole(value: f64) -> u64 {
    value.max(0.0) as u64
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::clock::thread_cpu;
    use std::time::Duration;

    fn compute(length: Duration) {
        let end = thread_cpu() + length;
        while thread_cpu() < end {
            std::hint::black_box(0);
        }
    }

    #[test]
    fn a_window_counts_the_work_and_nothing_else() {
        let meter = Meter::start();
        compute(Duration::from_millis(20));
        let sample = meter.thread(|| {
            compute(Duration::from_millis(10));
            Ok(10.0)
        });
        let sample = sample.unwrap();
        assert!((10e6..12e6).contains(&sample.cpu_ns), "{sample:?}");
        assert!(sample.window_ns[0] >= 20_000_000 && sample.wall_ns >= 10e6, "{sample:?}");
    }

    #[test]
    fn strangers_are_not_the_work_and_are_named() {
        let mut stranger =
            std::process::Command::new("sh").args(["-c", "while :; do :; done"]).spawn().unwrap();
        let sample = Meter::start().thread(|| {
            std::thread::sleep(Duration::from_millis(400));
            Ok(1.0)
        });
        stranger.kill().unwrap();
        stranger.wait().unwrap();
        let sample = sample.unwrap();
        assert!(sample.cpu_ns < 5e6, "{sample:?}");
        assert!(
            sample.foreign_cpu.unwrap() > 0.2 && sample.flags == ["contaminated"],
            "{sample:?}"
        );
    }

    #[test]
    fn a_group_counts_its_processes_and_goes_away() {
        // Nothing to see where groups may not be made: the account by processes is used there.
        let Ok(group) = Group::make() else { return };
        let mut worker =
            std::process::Command::new("sh").args(["-c", "while :; do :; done"]).spawn().unwrap();
        group.take(worker.id()).unwrap();
        let window = Meter::start().open(Account::Group(&group)).unwrap();
        // However busy the machine is, some time it will be its turn.
        let spent = || group.spent().unwrap().cpu;
        let before = spent();
        while spent() < before + 60e6 {
            std::thread::sleep(Duration::from_millis(20));
        }
        let sample = window.close(1.0).unwrap();
        let processes = [worker.id()];
        let counted = Account::Processes(&processes).read().unwrap();
        worker.kill().unwrap();
        worker.wait().unwrap();
        assert!(
            sample.cpu_ns > 50e6 && counted.cpu > sample.cpu_ns * 0.9,
            "{sample:?} {counted:?}"
        );
        let path = group.path().to_owned();
        drop(group);
        assert!(!path.exists());
    }

    #[test]
    fn the_other_threads_belong_to_the_process() {
        let sample = Meter::start().process(|| {
            let other = std::thread::spawn(|| compute(Duration::from_millis(10)));
            compute(Duration::from_millis(10));
            other.join().unwrap();
            Ok(1.0)
        });
        assert!(sample.unwrap().cpu_ns >= 20e6);
    }
}

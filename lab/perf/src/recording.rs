// SPDX-License-Identifier: Apache-2.0
//! Sampling anyone who does the work, on all CPUs, while a thread of its own takes the records away.

use crate::event::{Event, Request, USER_ONLY, Wanted, Whom, open, tell};
use crate::family;
use crate::record::{FIELDS, Record, Records};
use crate::recorded::Recorded;
use crate::ring::Ring;
use rustix::thread::gettid;
use rustix::time::{ClockId, clock_gettime};
use std::collections::HashSet;
use std::fs::{self, File};
use std::io;
use std::os::fd::AsRawFd;
use std::path::{Path, PathBuf};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::thread::JoinHandle;
use std::time::Duration;

/// Who is sampled; always with all threads and processes that these have started or will start.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum Target {
    /// Processes.
    Processes(Vec<u32>),
    /// A process that waits before its `exec`: from then on.
    FromExec(u32),
    /// Those of a control group, by its directory.
    Group(PathBuf),
}

/// How samples are taken.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Way {
    /// Whatever runs on a CPU, and strangers are left out later. A timer of a CPU costs the same however
    /// often threads are exchanged; one of a thread is started and stopped each time, which made two
    /// processes that wake each other a fifth dearer, where this way costs a twentieth.
    Cpus,
    /// The target's threads, for users who may not see others.
    Threads,
    /// The same, outside the kernel only.
    InUser,
}

/// Pages of a ring: a tenth of a second of the deepest stacks fits.
const PAGES: usize = 128;
/// Between two looks at the rings.
const PAUSE: Duration = Duration::from_millis(40);
/// `mmap`, `comm`, `task`, `sample_id_all`, `mmap2`, `comm_exec`, `use_clockid`
const FLAGS: u64 = 1 << 8 | 1 << 9 | 1 << 13 | 1 << 18 | 1 << 23 | 1 << 24 | 1 << 25;
const INHERIT: u64 = 1 << 1;
const DISABLED: u64 = 1;
const ON_EXEC: u64 = 1 << 12;
const NOT_IDLE: u64 = 1 << 7;

/// A recording that is running.
#[derive(Debug)]
pub struct Recording {
    events: Vec<File>,
    reader: Option<JoinHandle<Recorded>>,
    stop: Sender<()>,
    /// What was there when it began.
    present: Recorded,
    way: Way,
}

impl Recording {
    /// Samples from now on, each time when `period` more events were counted.
    ///
    /// # Errors
    /// The kernel's: ENOENT for an event that the machine does not have, EACCES or EPERM where this user
    /// may not look, ESRCH where there is no such process.
    pub fn start(target: &Target, event: Event, period: u64) -> io::Result<Self> {
        let (give, take) = channel::<(Vec<Ring>, HashSet<u32>)>();
        let (stop, stopped) = channel();
        let (say, said) = channel();
        let group = match target {
            Target::Group(path) => Some(path.clone()),
            Target::Processes(_) | Target::FromExec(_) => None,
        };
        // The thread is there before the events, so that it does not inherit them.
        let reader =
            std::thread::Builder::new().name("lab-profile".to_owned()).spawn(move || {
                let itself = gettid().as_raw_nonzero().get().unsigned_abs();
                say.send(itself).ok();
                let (rings, strangers) = take.recv().unwrap_or_default();
                read(&rings, &stopped, itself, group.as_deref(), &strangers)
            })?;
        let itself = said.recv().unwrap_or(0);
        let (way, events, rings) = open_best(target, event, period, itself)?;
        let strangers = match target {
            Target::Group(_) => HashSet::from([0]),
            Target::Processes(_) | Target::FromExec(_) => family::strangers(&processes(target)),
        };
        give.send((rings, strangers))
            .map_err(|_| io::Error::other("the reading thread has ended"))?;
        let mut present = Recorded::default();
        match target {
            Target::FromExec(pid) => present.from_exec = Some(*pid),
            Target::Processes(_) | Target::Group(_) => present.take_present(&processes(target)),
        }
        Ok(Self { events, reader: Some(reader), stop, present, way })
    }

    /// Stops, and says what was recorded.
    ///
    /// # Errors
    /// The kernel's, or the reading thread has panicked.
    pub fn stop(mut self) -> io::Result<Recorded> {
        for event in &self.events {
            tell(event, Request::Disable, 0)?;
        }
        self.stop.send(()).ok();
        let reader = self.reader.take().map(JoinHandle::join);
        let mut recorded = reader
            .and_then(Result::ok)
            .ok_or_else(|| io::Error::other("the thread that reads samples has panicked"))?;
        recorded.user_only = self.way == Way::InUser;
        recorded.happenings.append(&mut self.present.happenings);
        recorded.members.append(&mut self.present.members);
        recorded.from_exec = self.present.from_exec;
        Ok(recorded)
    }
}

/// Events of all CPUs, a ring for each, and how samples come into them.
type Opened = (Way, Vec<File>, Vec<Ring>);

/// In the best way that this user may.
fn open_best(target: &Target, event: Event, period: u64, itself: u32) -> io::Result<Opened> {
    let threads = threads(target, itself)?;
    let mut last = io::Error::from(io::ErrorKind::PermissionDenied);
    for way in [Way::Cpus, Way::Threads, Way::InUser] {
        match open_all(way, target, event, period, &threads) {
            Err(error) if error.kind() == io::ErrorKind::PermissionDenied => last = error,
            other => return other,
        }
    }
    Err(last)
}

fn open_all(
    way: Way,
    target: &Target,
    event: Event,
    period: u64,
    threads: &[i32],
) -> io::Result<Opened> {
    let (mut events, mut rings) = (Vec::new(), Vec::new());
    let on_exec = way != Way::Cpus && matches!(target, Target::FromExec(_));
    let flags = match way {
        // Not every processor can leave idleness out; its cycles stand still then anyway.
        Way::Cpus if event == Event::CpuClock => NOT_IDLE,
        Way::Cpus => 0,
        Way::Threads => INHERIT,
        Way::InUser => INHERIT | USER_ONLY,
    } | FLAGS
        | DISABLED
        | if on_exec { ON_EXEC } else { 0 };
    let clock = libc::CLOCK_MONOTONIC;
    let wanted = Wanted { period, sample: FIELDS, flags, clock, ..Wanted::default() };
    let ids = if way == Way::Cpus { &[-1] } else { threads };
    for cpu in cpus()? {
        let mut first: Option<usize> = None;
        for id in ids {
            let opened = match open(event, Whom { pid: *id, cpu }, wanted) {
                // A thread that has ended meanwhile.
                Err(error) if error.raw_os_error() == Some(libc::ESRCH) && ids.len() > 1 => {
                    continue;
                }
                other => other?,
            };
            match first {
                None => rings.push(Ring::map(&opened, PAGES)?),
                Some(at) => {
                    let ring: &File = &events[at];
                    tell(&opened, Request::Output, ring.as_raw_fd())?;
                }
            }
            first.get_or_insert(events.len());
            events.push(opened);
        }
    }
    if !on_exec {
        events.iter().try_for_each(|event| tell(event, Request::Enable, 0))?;
    }
    Ok((way, events, rings))
}

/// The processes of a control group.
fn of_group(path: &Path) -> Vec<u32> {
    let text = fs::read_to_string(path.join("cgroup.procs")).unwrap_or_default();
    text.lines().filter_map(|line| line.parse().ok()).collect()
}

/// The target's processes, as far as they are there.
fn processes(target: &Target) -> Vec<u32> {
    match target {
        Target::Processes(pids) => family::of(pids),
        Target::FromExec(pid) => vec![*pid],
        Target::Group(path) => of_group(path),
    }
}

/// All threads of the target but one.
fn threads(target: &Target, without: u32) -> io::Result<Vec<i32>> {
    let pids = processes(target);
    let mut threads = Vec::new();
    for pid in pids {
        // One that has ended meanwhile has no threads.
        for entry in fs::read_dir(format!("/proc/{pid}/task")).into_iter().flatten() {
            let name = entry?.file_name();
            let thread = name.to_str().and_then(|name| name.parse::<u32>().ok());
            let thread = thread.filter(|thread| *thread != without);
            threads.extend(thread.and_then(|thread| i32::try_from(thread).ok()));
        }
    }
    // A group may be filled later.
    if threads.is_empty() && !matches!(target, Target::Group(_)) {
        return Err(io::ErrorKind::NotFound.into());
    }
    Ok(threads)
}

/// The numbers of all CPUs that are online: `0-3,6`.
fn cpus() -> io::Result<Vec<i32>> {
    let text = fs::read_to_string("/sys/devices/system/cpu/online")?;
    let cpus = text.trim().split(',').flat_map(|range| {
        let (first, last) = range.split_once('-').unwrap_or((range, range));
        first.parse().unwrap_or(0)..=last.parse().unwrap_or(-1)
    });
    Ok(cpus.collect())
}

/// Takes records away until it is told to stop, and then once more; not those of the thread that does it.
/// Samples of `strangers` are left where they are.
fn read(
    rings: &[Ring],
    stopped: &Receiver<()>,
    itself: u32,
    group: Option<&Path>,
    strangers: &HashSet<u32>,
) -> Recorded {
    let (mut recorded, mut bytes) = (Recorded::default(), Vec::new());
    let own = |record: &Record| matches!(record, Record::Sample(taken) if taken.tid == itself);
    loop {
        let last = !matches!(stopped.recv_timeout(PAUSE), Err(RecvTimeoutError::Timeout));
        let members = group.into_iter().flat_map(of_group);
        let new: Vec<u32> = members.filter(|pid| !recorded.members.contains(pid)).collect();
        recorded.take_present(&new);
        for ring in rings {
            bytes.clear();
            ring.drain(&mut bytes);
            let records = Records::without(&bytes, strangers).filter(|record| !own(record));
            records.for_each(|record| recorded.take(record));
        }
        if last {
            break;
        }
    }
    let time = clock_gettime(ClockId::ThreadCPUTime);
    let nanoseconds = u32::try_from(time.tv_nsec).unwrap_or(0);
    recorded.reader = Duration::new(time.tv_sec.unsigned_abs(), nanoseconds);
    recorded
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_such_process_is_an_error() {
        let absent = Target::Processes(vec![u32::MAX]);
        Recording::start(&absent, Event::CpuClock, 1_000_000).unwrap_err();
    }
}

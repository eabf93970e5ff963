// SPDX-License-Identifier: Apache-2.0
//! Control groups: whether a process in a group of its own is accounted for.

use super::ability::{Outcome, Trouble};
use super::files::text;
use metaslot_sys::signal::Deferred;
use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

type Attempt = Result<Outcome, Trouble>;

pub(crate) const PREFIX: &str = "metaslot-probe-";
/// How long the process in the group may take.
const LIMIT: Duration = Duration::from_millis(800);
/// Waits for a line, and then computes for some 20 ms.
const WORK: &str = "read go; i=0; while [ $i -lt 30000 ]; do i=$((i+1)); done";
const DELEGATION: &str =
    "root, or a group of one's own: systemd-run --user --scope -p Delegate=yes";

/// One of the two kinds of hierarchies, as this process sees it.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Hierarchy {
    /// Version 1, the one that accounts for CPU time.
    One,
    Two,
}

/// CPU time of a group of version 1.
pub(crate) fn version_one() -> Attempt {
    let nanoseconds = |group: &Path| text(group.join("cpuacct.usage")).ok()?.parse().ok();
    account(Hierarchy::One, nanoseconds)
}

/// CPU time of a group of version 2.
pub(crate) fn version_two() -> Attempt {
    account(Hierarchy::Two, |group| {
        let stat = text(group.join("cpu.stat")).ok()?;
        let usage = stat.lines().find_map(|line| line.strip_prefix("usage_usec "))?;
        Some(usage.parse::<f64>().ok()? * 1e3)
    })
}

/// Makes a group, has a process work in it, reads what that cost, and removes the group.
fn account(hierarchy: Hierarchy, usage: impl Fn(&Path) -> Option<f64>) -> Attempt {
    let parent = hierarchy.own_directory()?;
    sweep(&parent);
    // ^C is not to leave the group behind.
    let _deferred = Deferred::new()?;
    let group = Group::make(&parent)?;
    let mut worker = Worker::start()?;
    fs::write(group.0.join("cgroup.procs"), worker.0.id().to_string())?;
    let wall = worker.work()?.as_secs_f64() * 1e3;
    let Some(used) = usage(&group.0) else {
        return Err(Trouble::reason("the group has no account of CPU time", "a kernel with it"));
    };
    let used = used / 1e6;
    group.remove()?;
    let says = format!("{used:.1} ms of a process that took {wall:.1} ms, in {}", parent.display());
    let doubt = !(0.5..=1.2 * wall).contains(&used);
    Ok(Outcome::new(&says).figure("ms", used).doubted(doubt.then_some(says)))
}

impl Hierarchy {
    /// The directory of this process's own group.
    fn own_directory(self) -> Result<PathBuf, Trouble> {
        let mounts = fs::read_to_string("/proc/mounts")?;
        let mount = mounts.lines().find_map(|line| self.mounted_by(line));
        let Some(mount) = mount else {
            return Err(Trouble::reason("not mounted", "the hierarchy mounted, by root"));
        };
        let groups = fs::read_to_string("/proc/self/cgroup")?;
        let own = groups.lines().find_map(|line| self.path_in(line)).unwrap_or("/");
        let own = own.trim_matches('/');
        let directory = if own.is_empty() { mount.clone() } else { mount.join(own) };
        // In a container, the path can be one of the world outside.
        Ok(if directory.is_dir() { directory } else { mount })
    }

    /// Where a line of the table of mounts mounts it.
    fn mounted_by(self, line: &str) -> Option<PathBuf> {
        let mut fields = line.split(' ').skip(1);
        let (place, kind, options) = (fields.next()?, fields.next()?, fields.next()?);
        let is_it = match self {
            Self::One => kind == "cgroup" && options.split(',').any(|option| option == "cpuacct"),
            Self::Two => kind == "cgroup2",
        };
        is_it.then(|| PathBuf::from(place))
    }

    /// The path of a group, from a line `number:controllers:path`.
    fn path_in(self, line: &str) -> Option<&str> {
        let mut fields = line.splitn(3, ':').skip(1);
        let (controllers, path) = (fields.next()?, fields.next()?);
        let is_it = match self {
            Self::One => controllers.split(',').any(|controller| controller == "cpuacct"),
            Self::Two => controllers.is_empty(),
        };
        is_it.then_some(path)
    }
}

/// A group that goes away.
#[derive(Debug)]
struct Group(PathBuf);

impl Group {
    fn make(parent: &Path) -> Result<Self, Trouble> {
        static NUMBER: AtomicU32 = AtomicU32::new(0);
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let path = parent.join(format!("{PREFIX}{}-{number}", std::process::id()));
        match fs::create_dir(&path) {
            Ok(()) => Ok(Self(path)),
            Err(error) if error.kind() == std::io::ErrorKind::PermissionDenied => {
                let why = format!("no group can be made in {}", parent.display());
                Err(Trouble::reason(why, DELEGATION))
            }
            Err(error) => Err(error.into()),
        }
    }

    fn remove(self) -> Result<(), Trouble> {
        self.try_remove().map_err(Trouble::from)
    }

    /// A process that has ended can be in its group for a moment.
    fn try_remove(&self) -> std::io::Result<()> {
        let started = Instant::now();
        loop {
            match fs::remove_dir(&self.0) {
                Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(()),
                Err(error) if started.elapsed() > LIMIT / 4 => return Err(error),
                Err(_) => std::thread::sleep(Duration::from_millis(1)),
                Ok(()) => return Ok(()),
            }
        }
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        self.try_remove().ok();
    }
}

/// Removes groups of processes that were killed in the middle of this.
fn sweep(parent: &Path) {
    let entries = fs::read_dir(parent).into_iter().flatten().flatten();
    for path in entries.map(|entry| entry.path()) {
        let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let pid = name.strip_prefix(PREFIX).and_then(|rest| rest.split('-').next());
        if pid.is_some_and(|pid| !Path::new("/proc").join(pid).exists()) {
            fs::remove_dir(&path).ok();
        }
    }
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hierarchies_are_found_among_others() {
        let one = "cgroup /sys/fs/cgroup/cpu,cpuacct cgroup rw,relatime,cpu,cpuacct 0 0";
        let two = "cgroup2 /sys/fs/cgroup cgroup2 rw,relatime 0 0";
        assert_eq!(
            Hierarchy::One.mounted_by(one).unwrap(),
            Path::new("/sys/fs/cgroup/cpu,cpuacct")
        );
        assert_eq!(Hierarchy::Two.mounted_by(two).unwrap(), Path::new("/sys/fs/cgroup"));
        assert_eq!(Hierarchy::One.mounted_by(two), None);
        assert_eq!(Hierarchy::One.path_in("2:cpu,cpuacct:/a:b"), Some("/a:b"));
        assert_eq!(Hierarchy::Two.path_in("0::/user.slice"), Some("/user.slice"));
        assert_eq!(Hierarchy::Two.path_in("2:cpuacct:/"), None);
    }

    #[test]
    fn groups_of_the_dead_are_swept() {
        let place = std::env::temp_dir().join(format!("groups-{}", std::process::id()));
        let (dead, alive) = (format!("{PREFIX}4294967295-0"), format!("{PREFIX}1-0"));
        fs::create_dir_all(place.join(&dead)).unwrap();
        fs::create_dir_all(place.join(&alive)).unwrap();
        sweep(&place);
        assert!(!place.join(dead).exists());
        fs::remove_dir(place.join(alive)).unwrap();
        fs::remove_dir(place).unwrap();
    }
}

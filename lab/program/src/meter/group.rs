// SPDX-License-Identifier: Apache-2.0
//! Control groups of the experiment's own: everything that its processes use, and nothing else.

use super::spent::Spent;
use crate::{Failure, Result};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};
use std::{fs, io};

pub(crate) const PREFIX: &str = "metaslot-lab-";
/// A process that has ended can be in its group for a moment.
const LIMIT: Duration = Duration::from_millis(500);
/// What a user without the right to make groups can do.
pub(crate) const DELEGATION: &str =
    "root, or a group of one's own: systemd-run --user --scope -p Delegate=yes";

/// One of the two kinds of hierarchies, as this process sees it.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Hierarchy {
    /// Version 1, the one that accounts for CPU time: nanoseconds.
    One,
    /// Version 2: microseconds.
    Two,
}

impl Hierarchy {
    /// The directory of this process's own group; `None`: not mounted.
    ///
    /// # Errors
    /// `/proc` cannot be read.
    pub(crate) fn own_directory(self) -> io::Result<Option<PathBuf>> {
        let mounts = fs::read_to_string("/proc/mounts")?;
        let Some(mount) = mounts.lines().find_map(|line| self.mounted_by(line)) else {
            return Ok(None);
        };
        let groups = fs::read_to_string("/proc/self/cgroup")?;
        let own = groups.lines().find_map(|line| self.path_in(line)).unwrap_or("/");
        let own = own.trim_matches('/');
        let directory = if own.is_empty() { mount.clone() } else { mount.join(own) };
        // In a container, the path can be one of the world outside.
        Ok(Some(if directory.is_dir() { directory } else { mount }))
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

/// A group that goes away with its value.
#[derive(Debug)]
pub(crate) struct Group {
    path: PathBuf,
    hierarchy: Hierarchy,
}

impl Group {
    /// Makes a group in the better hierarchy that there is.
    ///
    /// # Errors
    /// There is none, or this user may not make groups.
    pub(crate) fn make() -> Result<Self> {
        let mut last = Failure::new("no hierarchy of control groups is mounted");
        for hierarchy in [Hierarchy::One, Hierarchy::Two] {
            let Some(parent) = hierarchy.own_directory()? else { continue };
            match Self::make_in(&parent, hierarchy) {
                Ok(group) if group.spent().is_ok() => return Ok(group),
                Ok(_) => last = Failure::new("groups have no account of CPU time"),
                Err(error) => last = Failure::file(&parent, &error).hint(DELEGATION),
            }
        }
        Err(last)
    }

    /// Makes a group in this directory, and takes away what killed processes have left there.
    ///
    /// # Errors
    /// The kernel's.
    pub(crate) fn make_in(parent: &Path, hierarchy: Hierarchy) -> io::Result<Self> {
        static NUMBER: AtomicU32 = AtomicU32::new(0);
        sweep(parent);
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let path = parent.join(format!("{PREFIX}{}-{number}", std::process::id()));
        fs::create_dir(&path)?;
        Ok(Self { path, hierarchy })
    }

    #[cfg(test)]
    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// Moves a process into the group; what it starts from now on is in it too.
    ///
    /// # Errors
    /// The kernel's.
    pub(crate) fn take(&self, pid: u32) -> Result<()> {
        let path = self.path.join("cgroup.procs");
        fs::write(&path, pid.to_string()).map_err(|error| Failure::file(&path, &error))
    }

    /// CPU time of the group so far.
    ///
    /// # Errors
    /// The group has no account.
    pub(crate) fn spent(&self) -> Result<Spent> {
        match self.hierarchy {
            Hierarchy::One => Ok(Spent {
                cpu: self.number("cpuacct.usage")?,
                user: self.number("cpuacct.usage_user").ok(),
                system: self.number("cpuacct.usage_sys").ok(),
            }),
            Hierarchy::Two => {
                let text = self.text("cpu.stat")?;
                let microseconds = |name: &str| {
                    let mut fields = text.lines().filter_map(|line| line.split_once(' '));
                    let value = fields.find(|(field, _)| *field == name)?.1.parse::<f64>().ok()?;
                    Some(value * 1e3)
                };
                let cpu = microseconds("usage_usec");
                let cpu = cpu.ok_or_else(|| Failure::new("cpu.stat has no usage_usec"))?;
                Ok(Spent {
                    cpu,
                    user: microseconds("user_usec"),
                    system: microseconds("system_usec"),
                })
            }
        }
    }

    /// Where the number comes from.
    pub(crate) fn source(&self) -> String {
        match self.hierarchy {
            Hierarchy::One => "cgroup-v1 cpuacct.usage of the experiment's own group".to_owned(),
            Hierarchy::Two => "cgroup-v2 cpu.stat of the experiment's own group".to_owned(),
        }
    }

    fn text(&self, name: &str) -> Result<String> {
        let path = self.path.join(name);
        fs::read_to_string(&path).map_err(|error| Failure::file(&path, &error))
    }

    fn number(&self, name: &str) -> Result<f64> {
        let text = self.text(name)?;
        text.trim().parse().map_err(|_| Failure::new(format!("{name} holds no number")))
    }

    /// Removes it, when its processes have ended.
    ///
    /// # Errors
    /// A process is still in it.
    pub(crate) fn remove(&self) -> io::Result<()> {
        let started = Instant::now();
        loop {
            match fs::remove_dir(&self.path) {
                Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
                Err(error) if started.elapsed() > LIMIT => return Err(error),
                Err(_) => std::thread::sleep(Duration::from_millis(1)),
                Ok(()) => return Ok(()),
            }
        }
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        self.remove().ok();
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

// SPDX-License-Identifier: Apache-2.0
//! Where an experiment ran: without this, its numbers mean nothing.

use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::path::Path;

/// The machine, its system and its state at the start.
#[derive(Clone, Debug, Deserialize, Serialize)]
pub(crate) struct Machine {
    pub(crate) processor: String,
    pub(crate) cpus: usize,
    pub(crate) memory_mib: u64,
    pub(crate) kernel: String,
    pub(crate) system: String,
    /// Frequency governor of the first CPU, where it has one.
    pub(crate) governor: Option<String>,
    pub(crate) virtual_machine: bool,
    /// One-minute load average at the start.
    pub(crate) load: f64,
}

impl Machine {
    pub(crate) fn this() -> Self {
        let cpuinfo = read("/proc/cpuinfo").unwrap_or_default();
        let field = |name: &str| {
            let line = cpuinfo.lines().find(|line| line.starts_with(name))?;
            Some(line.split_once(':')?.1.trim().to_owned())
        };
        let release = read("/etc/os-release").unwrap_or_default();
        let system = release.lines().find_map(|line| line.strip_prefix("PRETTY_NAME="));
        let memory = read("/proc/meminfo").unwrap_or_default();
        let memory = memory.split_ascii_whitespace().nth(1).and_then(|text| text.parse().ok());
        let load = read("/proc/loadavg").unwrap_or_default();
        let load = load.split_ascii_whitespace().next().and_then(|text| text.parse().ok());
        Self {
            processor: field("model name").unwrap_or_else(|| std::env::consts::ARCH.to_owned()),
            cpus: std::thread::available_parallelism().map_or(1, Into::into),
            memory_mib: memory.unwrap_or(0) / 1024,
            kernel: read("/proc/sys/kernel/osrelease").unwrap_or_default().trim().to_owned(),
            system: system.unwrap_or("unknown").trim_matches('"').to_owned(),
            governor: read("/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor")
                .map(|text| text.trim().to_owned()),
            virtual_machine: field("flags")
                .is_some_and(|flags| flags.split(' ').any(|flag| flag == "hypervisor")),
            load: load.unwrap_or(0.0),
        }
    }

    /// One line for the head of a table.
    pub(crate) fn line(&self) -> String {
        let kind = if self.virtual_machine { ", virtual" } else { "" };
        format!(
            "{}, {} CPUs{kind}, {} MiB, {}, Linux {}, load {:.2}",
            self.processor, self.cpus, self.memory_mib, self.system, self.kernel, self.load
        )
    }
}

fn read(path: &str) -> Option<String> {
    std::fs::read_to_string(path).ok()
}

/// The commit that the file at `path` was built from: asked of the source tree around it, where
/// there is one. A `+` says that the tree had changes.
pub(crate) fn commit_around(path: &Path) -> Option<String> {
    let directory = path.parent().filter(|directory| directory.is_absolute())?;
    let git = |arguments: &[&str]| {
        let output = std::process::Command::new("git")
            .arg("-C")
            .arg(directory)
            .args(arguments)
            .output()
            .ok()
            .filter(|output| output.status.success())?;
        Some(String::from_utf8_lossy(&output.stdout).trim().to_owned())
    };
    let commit = git(&["rev-parse", "--short=12", "HEAD"])?;
    let changed = git(&["status", "--porcelain", "--untracked-files=no"])?;
    Some(if changed.is_empty() { commit } else { format!("{commit}+") })
}

/// A library's path, with the commit of the source tree around it.
///
/// # Errors
/// There is no current directory.
pub(crate) fn library(path: &Path) -> std::io::Result<String> {
    let commit = commit_around(&std::path::absolute(path)?);
    let commit = commit.map_or_else(String::new, |name| format!(" ({name})"));
    Ok(format!("{}{commit}", path.display()))
}

/// Seconds since 1970.
pub(crate) fn now() -> u64 {
    let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
    now.map_or(0, |now| now.as_secs())
}

/// Seconds since 1970 as a date and time, UTC. Years are counted from March, so that the day of a leap
/// year comes last.
pub(crate) fn date(seconds: u64) -> String {
    let (days, rest) = (seconds / 86_400 + 719_468, seconds % 86_400);
    let (era, day) = (days / 146_097, days % 146_097);
    let year = (day - day / 1_460 + day / 36_524 - day / 146_096) / 365;
    let of_year = day - (365 * year + year / 4 - year / 100);
    let month = (5 * of_year + 2) / 153;
    let of_month = of_year - (153 * month + 2) / 5 + 1;
    let month = if month < 10 { month + 3 } else { month - 9 };
    let year = era * 400 + year + u64::from(month < 3);
    format!("{year}-{month:02}-{of_month:02} {:02}:{:02} UTC", rest / 3_600, rest / 60 % 60)
}

/// The command line of this process, to be repeated.
pub(crate) fn command_line() -> Vec<String> {
    std::env::args_os().map(|argument| argument.to_string_lossy().into_owned()).collect()
}

/// What the lab takes from its environment, where it is set.
pub(crate) fn environment() -> BTreeMap<String, String> {
    const NAMES: [&str; 1] = ["METASLOT_MODULE"];
    let value = |name: &str| Some((name.to_owned(), std::env::var(name).ok()?));
    NAMES.into_iter().filter_map(value).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dates_are_those_of_the_calendar() {
        assert_eq!(date(0), "1970-01-01 00:00 UTC");
        assert_eq!(date(951_782_400), "2000-02-29 00:00 UTC");
        assert_eq!(date(1_709_251_199), "2024-02-29 23:59 UTC");
        assert_eq!(date(1_795_296_728), "2026-11-21 21:32 UTC");
        assert_eq!(date(4_102_444_800), "2100-01-01 00:00 UTC");
    }
}

// SPDX-License-Identifier: Apache-2.0
//! Where an experiment ran: without this, its numbers mean nothing.

use serde::{Deserialize, Serialize};
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

/// Seconds since 1970.
pub(crate) fn now() -> u64 {
    let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
    now.map_or(0, |now| now.as_secs())
}

/// The command line of this process, to be repeated.
pub(crate) fn command_line() -> Vec<String> {
    std::env::args_os().map(|argument| argument.to_string_lossy().into_owned()).collect()
}

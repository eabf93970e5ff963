// SPDX-License-Identifier: Apache-2.0
//! What the kernel says in files: its settings, accounts and limits.

use super::outcome::{Outcome, Trouble};
use rustix::process::{Resource, getrlimit};
use std::path::Path;

type Attempt = Result<Outcome, Trouble>;

/// A file's text without the line's end.
pub(crate) fn text(path: impl AsRef<Path>) -> Result<String, Trouble> {
    Ok(std::fs::read_to_string(path)?.trim_end().to_owned())
}

fn number(path: &str) -> Result<i64, Trouble> {
    let text = text(path)?;
    text.parse().map_err(|_| Trouble::reason(format!("'{text}' in {path}"), "another kernel"))
}

/// The setting that says who may count what.
pub(crate) fn perf_paranoid() -> Attempt {
    let level = number("/proc/sys/kernel/perf_event_paranoid")?;
    let meaning = match level {
        ..=-1 => "every user may count everything",
        0 => "every user may count whole CPUs, but no raw tracepoints",
        1 => "every user may count their own work, in the kernel too",
        2 => "every user may count their own work outside the kernel",
        _ => "counting needs CAP_PERFMON",
    };
    Ok(Outcome::new(format!("{level}: {meaning}")).figure("level", level as f64))
}

/// The setting that says who sees the kernel's addresses, and whether this process does.
pub(crate) fn kernel_symbols() -> Attempt {
    let level = number("/proc/sys/kernel/kptr_restrict")?;
    let symbols = std::fs::read_to_string("/proc/kallsyms")?;
    let first = symbols.split_ascii_whitespace().next().unwrap_or("0");
    if first.chars().all(|digit| digit == '0') {
        let why = format!("kptr_restrict {level}: addresses are zero for this user");
        let needs = "root, or kernel.kptr_restrict = 0 and kernel.perf_event_paranoid below 2";
        return Err(Trouble::reason(why, needs));
    }
    let symbols = symbols.lines().count();
    Ok(Outcome::new(format!("kptr_restrict {level}, {symbols} symbols with addresses")))
}

/// Which clock the kernel reads, and which it could.
pub(crate) fn clocksource() -> Attempt {
    let directory = "/sys/devices/system/clocksource/clocksource0";
    let current = text(format!("{directory}/current_clocksource"))?;
    let all = text(format!("{directory}/available_clocksource"))?;
    Ok(Outcome::new(format!("{current} of: {}", all.trim())))
}

const COLUMNS: [&str; 8] = ["user", "nice", "system", "idle", "iowait", "irq", "softirq", "steal"];

/// Which columns of the machine's CPU time ever moved since the machine started.
pub(crate) fn stat_columns() -> Attempt {
    let text = text("/proc/stat")?;
    let ticks =
        columns(&text).ok_or_else(|| Trouble::reason("no line of CPUs", "another kernel"))?;
    let named = |moved: bool| {
        let names = COLUMNS.iter().zip(ticks).filter(|(_, ticks)| (*ticks > 0) == moved);
        let names: Vec<&str> = names.map(|(name, _)| *name).collect();
        if names.is_empty() { "none".to_owned() } else { names.join(" ") }
    };
    let mut outcome = Outcome::new(format!("moved: {}; never: {}", named(true), named(false)));
    for (name, ticks) in COLUMNS.iter().zip(ticks) {
        outcome = outcome.figure(name, ticks as f64);
    }
    Ok(outcome)
}

fn columns(stat: &str) -> Option<[u64; 8]> {
    let mut fields = stat.lines().next()?.strip_prefix("cpu ")?.split_ascii_whitespace();
    let mut ticks = [0; 8];
    for column in &mut ticks {
        *column = fields.next()?.parse().ok()?;
    }
    Some(ticks)
}

/// How long work waited for a CPU.
pub(crate) fn pressure() -> Attempt {
    let text = text("/proc/pressure/cpu")?;
    Ok(Outcome::new(text.lines().next().unwrap_or_default()))
}

/// What this process ran and waited, in nanoseconds.
pub(crate) fn own_schedstat() -> Attempt {
    let text = text("/proc/self/schedstat")?;
    let mut fields = text.split(' ').map(|field| field.parse::<f64>().unwrap_or(0.0));
    let (ran, waited) = (fields.next().unwrap_or(0.0), fields.next().unwrap_or(0.0));
    let says = format!("ran {:.1} ms, waited {:.1} ms", ran / 1e6, waited / 1e6);
    let doubt = (ran == 0.0).then(|| "0 ns for a process that runs".to_owned());
    Ok(Outcome::new(says).figure("ran_ns", ran).figure("waited_ns", waited).doubted(doubt))
}

/// How large pages are given for the asking.
pub(crate) fn thp_mode() -> Attempt {
    let modes = text("/sys/kernel/mm/transparent_hugepage/enabled")?;
    let mode = modes.split(['[', ']']).nth(1).unwrap_or(&modes).to_owned();
    if mode == "never" {
        return Err(Trouble::reason("never", "root: write 'madvise' to the file"));
    }
    Ok(Outcome::new(mode))
}

/// How much memory may be locked.
pub(crate) fn locked_limit() -> Attempt {
    limit(Resource::Memlock, |bytes| format!("{} KiB", bytes / 1024))
}

/// How many files may be open.
pub(crate) fn files_limit() -> Attempt {
    limit(Resource::Nofile, |files| files.to_string())
}

fn limit(resource: Resource, shown: fn(u64) -> String) -> Attempt {
    let limit = getrlimit(resource);
    let said = |value: Option<u64>| value.map_or_else(|| "unlimited".to_owned(), shown);
    let says = format!("{}, can be raised to {}", said(limit.current), said(limit.maximum));
    let figures = [("now", limit.current), ("most", limit.maximum)];
    let figures = figures.into_iter().filter_map(|(name, value)| Some((name, value?)));
    Ok(figures
        .fold(Outcome::new(says), |outcome, (name, value)| outcome.figure(name, value as f64)))
}

/// The capabilities that measuring can need, and their numbers.
const CAPABILITIES: &[(&str, u32)] = &[
    ("NET_ADMIN", 12),
    ("NET_RAW", 13),
    ("IPC_LOCK", 14),
    ("SYS_PTRACE", 19),
    ("SYS_ADMIN", 21),
    ("SYS_NICE", 23),
    ("SYS_RESOURCE", 24),
    ("SYSLOG", 34),
    ("PERFMON", 38),
    ("BPF", 39),
];

/// What this process may do beyond its user.
pub(crate) fn capabilities() -> Attempt {
    let status = text("/proc/self/status")?;
    let line = status.lines().find_map(|line| line.strip_prefix("CapEff:"));
    let set = line.and_then(|line| u64::from_str_radix(line.trim(), 16).ok()).unwrap_or(0);
    let named = |present: bool| {
        let names = CAPABILITIES.iter().filter(|(_, bit)| (set >> bit & 1 == 1) == present);
        names.map(|(name, _)| *name).collect::<Vec<_>>().join(" ")
    };
    match (named(true), named(false)) {
        (none, _) if none.is_empty() => {
            Err(Trouble::reason("none of those that matter", "root, or setcap on this program"))
        }
        (all, none) if none.is_empty() => Ok(Outcome::new(all)),
        (some, others) => Ok(Outcome::new(format!("{some}; without {others}"))),
    }
}

/// Whether the processor says that it has a feature.
pub(crate) fn feature(name: &str) -> Attempt {
    if flags()?.iter().any(|flag| flag == name) {
        Ok(Outcome::new("the processor says so"))
    } else {
        Err(Trouble::reason("the processor does not say so", "another processor"))
    }
}

/// The processor's features, as Linux names them.
pub(crate) fn flags() -> Result<Vec<String>, Trouble> {
    let text = text("/proc/cpuinfo")?;
    let line = text.lines().find(|line| line.starts_with("flags") || line.starts_with("Features"));
    let flags = line.and_then(|line| line.split_once(':')).map_or("", |(_, flags)| flags);
    Ok(flags.split_ascii_whitespace().map(str::to_owned).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_are_those_of_the_first_line() {
        let stat = "cpu  1 2 3 4 5 6 7 8 0 0\ncpu0 9 9 9 9 9 9 9 9 0 0\n";
        assert_eq!(columns(stat), Some([1, 2, 3, 4, 5, 6, 7, 8]));
        assert_eq!(columns("cpu  1 2"), None);
    }
}

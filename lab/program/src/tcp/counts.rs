// SPDX-License-Identifier: Apache-2.0
//! What the kernel counts of processes and of networks, read from outside: no process has to be asked in the
//! middle of a window.

use crate::{Failure, Result};
use std::collections::BTreeMap;
use std::fs;

/// Bytes and calls of a process that reads and writes, from `/proc/PID/io`.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct Io {
    pub(super) read: f64,
    pub(super) written: f64,
    pub(super) reads: f64,
    pub(super) writes: f64,
}

impl Io {
    pub(super) fn of(pid: u32) -> Result<Self> {
        let path = format!("/proc/{pid}/io");
        let text = fs::read_to_string(&path).map_err(|error| {
            Failure::new(format!("{path}: {error}"))
                .hint("the kernel needs CONFIG_TASK_IO_ACCOUNTING")
        })?;
        Self::parse(&text).ok_or_else(|| Failure::new(format!("{path} lacks a number")))
    }

    fn parse(text: &str) -> Option<Self> {
        let number = |name: &str| {
            let mut fields = text.lines().filter_map(|line| line.split_once(": "));
            fields.find(|(field, _)| *field == name)?.1.trim().parse().ok()
        };
        Some(Self {
            read: number("rchar")?,
            written: number("wchar")?,
            reads: number("syscr")?,
            writes: number("syscw")?,
        })
    }
}

/// Whether a process is no more than what its parent has not asked for yet, or not even that.
pub(super) fn has_ended(pid: u32) -> bool {
    matches!(stat(pid).trim_start().chars().next(), None | Some('Z' | 'X'))
}

/// `/proc/PID/stat` from the state on: the program's name, which may hold anything, comes before.
fn stat(pid: u32) -> String {
    let text = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    text.rsplit_once(')').map_or_else(String::new, |(_, fields)| fields.to_owned())
}

/// User and system time of a process so far in nanoseconds, from `/proc/PID/stat`: ticks of 10 ms.
pub(super) fn ticks(pid: u32) -> [f64; 2] {
    const TICK: f64 = 1e7;
    let text = stat(pid);
    let mut fields = text.split_ascii_whitespace().skip(11);
    let mut next = || fields.next().and_then(|text| text.parse::<f64>().ok()).unwrap_or(0.0);
    [next() * TICK, next() * TICK]
}

/// TCP's segments of the networks that processes are in, from `/proc/PID/net`.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct Segments {
    /// All that were sent, and not again.
    out: f64,
    acks: f64,
    again: f64,
}

impl Segments {
    /// Each network once: of several processes in one, only the first one counts.
    pub(super) fn of(pids: [u32; 2]) -> Self {
        let network = |pid: u32| fs::read_link(format!("/proc/{pid}/ns/net")).ok();
        let first = Self::of_process(pids[0]);
        if network(pids[0]) == network(pids[1]) {
            return first;
        }
        let second = Self::of_process(pids[1]);
        Self {
            out: first.out + second.out,
            acks: first.acks + second.acks,
            again: first.again + second.again,
        }
    }

    fn of_process(pid: u32) -> Self {
        let read = |name: &str| fs::read_to_string(format!("/proc/{pid}/net/{name}"));
        let (tcp, extended) = (read("snmp"), read("netstat"));
        let tcp = table(&tcp.unwrap_or_default(), "Tcp:");
        let extended = table(&extended.unwrap_or_default(), "TcpExt:");
        let of =
            |table: &BTreeMap<String, f64>, name: &str| table.get(name).copied().unwrap_or(0.0);
        Self {
            out: of(&tcp, "OutSegs"),
            acks: of(&extended, "TCPPureAcks") + of(&extended, "TCPHPAcks"),
            again: of(&tcp, "RetransSegs"),
        }
    }

    /// The counters of a window that began at `earlier`.
    pub(super) fn since(self, earlier: Self) -> [(&'static str, f64); 3] {
        let acks = self.acks - earlier.acks;
        let data = (self.out - earlier.out - acks).max(0.0);
        [("segments", data), ("acks", acks), ("retransmits", self.again - earlier.again)]
    }
}

/// A line of names and a line of values, both with the same first word.
fn table(text: &str, first: &str) -> BTreeMap<String, f64> {
    let mut lines = text.lines().filter(|line| line.split(' ').next() == Some(first));
    let (names, values) = (lines.next().unwrap_or(""), lines.next().unwrap_or(""));
    let pairs = names.split(' ').zip(values.split(' ')).skip(1);
    pairs.filter_map(|(name, value)| Some((name.to_owned(), value.parse().ok()?))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_kernels_tables_are_read_by_name() {
        let text = "Ip: A B\nIp: 1 2\nTcp: MaxConn OutSegs RetransSegs\nTcp: -1 20 3\n";
        let table = table(text, "Tcp:");
        assert_eq!((table["OutSegs"], table["RetransSegs"], table.get("A")), (20.0, 3.0, None));
        let io = "rchar: 5\nwchar: 6\nsyscr: 7\nsyscw: 8\nread_bytes: 9\n";
        let expected = Io { read: 5.0, written: 6.0, reads: 7.0, writes: 8.0 };
        assert_eq!(Io::parse(io), Some(expected));
        assert_eq!(Io::parse("rchar: 5\n"), None);
    }

    #[test]
    fn segments_are_data_and_acknowledgements() {
        let early = Segments { out: 10.0, acks: 5.0, again: 1.0 };
        let late = Segments { out: 40.0, acks: 15.0, again: 1.0 };
        let counted = late.since(early);
        assert_eq!(counted, [("segments", 20.0), ("acks", 10.0), ("retransmits", 0.0)]);
    }

    #[test]
    fn a_process_that_has_ended_is_noticed() {
        assert!(!has_ended(std::process::id()) && has_ended(u32::MAX));
        let mut child = std::process::Command::new("true").spawn().unwrap();
        while !has_ended(child.id()) {
            std::thread::sleep(std::time::Duration::from_millis(1));
        }
        child.wait().unwrap();
    }

    #[test]
    fn what_a_process_reads_is_seen_from_outside() {
        let pid = std::process::id();
        let before = Io::of(pid).unwrap();
        let bytes = fs::read("/proc/self/cmdline").unwrap();
        assert!(Io::of(pid).unwrap().read >= before.read + bytes.len() as f64);
        assert!(Io::of(u32::MAX).is_err());
    }
}

// SPDX-License-Identifier: Apache-2.0
//! What was recorded: every different stack once, and what processes mapped, started and became.

use crate::record::{Mapping, Record, Taken};
use std::collections::{BTreeSet, HashMap};
use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// What was recorded.
#[derive(Clone, Debug, Default)]
pub struct Recorded {
    /// Samples: time, process, and which of `stacks`.
    pub(crate) samples: Vec<(u64, u32, u32)>,
    /// Every different stack once: kernel and program.
    pub(crate) stacks: Vec<(Vec<u64>, Vec<u64>)>,
    pub(crate) known: HashMap<(Vec<u64>, Vec<u64>), u32>,
    /// Mappings, names, forks.
    pub(crate) happenings: Vec<Record>,
    /// The target's processes; those that they start are found among the happenings.
    pub(crate) members: BTreeSet<u32>,
    /// The one that is the target from its `exec` on.
    pub(crate) from_exec: Option<u32>,
    /// Records that did not fit the ring.
    pub lost: u64,
    /// How often the kernel took no samples for a while.
    pub throttled: u64,
    /// CPU time of the thread that took the records away.
    pub reader: Duration,
    /// The kernel's part was not allowed to be seen.
    pub user_only: bool,
}

impl Recorded {
    /// Keeps a record.
    pub fn take(&mut self, record: Record) {
        match record {
            Record::Sample(Taken { time, pid, kernel, user, .. }) => {
                let next = u32::try_from(self.stacks.len()).unwrap_or(u32::MAX);
                let stack = (kernel, user);
                let number = match self.known.get(&stack) {
                    Some(number) => *number,
                    None => {
                        self.known.insert(stack.clone(), next);
                        self.stacks.push(stack);
                        next
                    }
                };
                self.samples.push((time, pid, number));
            }
            Record::Lost(count) => self.lost += count,
            Record::Throttled => self.throttled += 1,
            Record::Other => {}
            happening => self.happenings.push(happening),
        }
    }

    /// Notes what processes have mapped already, as if it had happened at the beginning of time.
    pub(crate) fn take_present(&mut self, pids: &[u32]) {
        self.members.extend(pids);
        for pid in pids {
            let directory = PathBuf::from(format!("/proc/{pid}"));
            let name = fs::read_to_string(directory.join("comm")).unwrap_or_default();
            let name = name.trim_end().to_owned();
            self.take(Record::Named { time: 0, pid: *pid, tid: *pid, name, exec: false });
            for mapping in mappings(&directory.join("maps"), *pid) {
                self.take(Record::Mapped(0, mapping));
            }
        }
    }

    /// How many samples there are.
    #[must_use]
    pub const fn samples(&self) -> usize {
        self.samples.len()
    }
}

/// What a process may execute.
fn mappings(path: &Path, pid: u32) -> Vec<Mapping> {
    let text = fs::read(path).unwrap_or_default();
    String::from_utf8_lossy(&text).lines().filter_map(|line| mapping(line, pid)).collect()
}

/// `7f00-7f10 r-xp 00001000 fd:00 99   /lib/x.so`
fn mapping(line: &str, pid: u32) -> Option<Mapping> {
    let mut fields = line.splitn(6, ' ');
    let (range, access, offset) = (fields.next()?, fields.next()?, fields.next()?);
    let path = fields.nth(2).map(str::trim).filter(|path| !path.is_empty()).unwrap_or("//anon");
    let (start, end) = range.split_once('-')?;
    let number = |text: &str| u64::from_str_radix(text, 16).ok();
    let start = number(start)?;
    let length = number(end)?.checked_sub(start)?;
    access.contains('x').then_some(())?;
    Some(Mapping { pid, start, length, offset: number(offset)?, path: path.to_owned() })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_may_be_executed_is_read_from_the_table_of_mappings() {
        let line = "7f00-7f10 r-xp 00001000 fd:00 99                         /lib/a b.so";
        let mapping = mapping(line, 5).unwrap();
        assert_eq!((mapping.start, mapping.length, mapping.offset), (0x7f00, 0x10, 0x1000));
        assert_eq!(mapping.path, "/lib/a b.so");
        assert_eq!(super::mapping("7f00-7f10 rw-p 00001000 fd:00 99 /lib/a.so", 5), None);
        assert_eq!(super::mapping("7f00-7f10 r-xp 00000000 00:00 0 ", 5).unwrap().path, "//anon");
        assert_eq!(super::mapping("nonsense", 5), None);
    }

    #[test]
    fn equal_stacks_are_kept_once_and_losses_are_added() {
        let mut recorded = Recorded::default();
        let taken = Taken { time: 1, pid: 2, tid: 2, kernel: vec![1, 2], user: vec![3] };
        recorded.take(Record::Sample(taken.clone()));
        recorded.take(Record::Sample(Taken { time: 2, ..taken.clone() }));
        recorded.take(Record::Sample(Taken { user: vec![4], ..taken }));
        recorded.take(Record::Lost(3));
        recorded.take(Record::Lost(4));
        assert_eq!((recorded.samples(), recorded.stacks.len(), recorded.lost), (3, 2, 7));
        assert_eq!(recorded.samples[1], (2, 2, 0));
    }
}

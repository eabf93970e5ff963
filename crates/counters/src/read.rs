// SPDX-License-Identifier: Apache-2.0
//! Reading the pages of all processes.

use crate::directory;
use crate::ended::{Ended, PATIENTLY, add_left, bury};
use crate::layout::{self, CELL, ENDED_PROCESSES, ENDED_SINCE, EVENTS, ROWS, SIZES};
use crate::raw::Raw;
use crate::{Event, record};
use metaslot_ck::{CK_MECHANISM_TYPE, CK_RV, Function};
use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// One process's numbers at one moment, or those of all that have ended.
#[derive(Clone, Debug, Default)]
pub struct Process {
    /// Of how many processes that have ended this is the sum; 0 for a process.
    pub ended: u64,
    /// The process; 0 for the sum.
    pub pid: u32,
    /// The program's name, up to 15 bytes; empty for the sum.
    pub program: String,
    /// When the page was made, or the first of the sum had ended, in seconds since 1970.
    pub since: u64,
    /// Calls and errors, by function; only functions that were called.
    pub calls: Vec<(Function, Calls)>,
    /// How often each function answered with each code that is not `CKR_OK`.
    pub codes: Vec<(Function, CK_RV, u64)>,
    /// Only those that happened.
    pub events: Vec<(Event, u64)>,
    /// By provider, mechanism and size class.
    pub operations: Vec<(Kind, Cell)>,
    /// Threads that are in another module's code now, and for how long.
    pub outside: Vec<Duration>,
}

/// How often a function was called.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct Calls {
    /// All calls.
    pub calls: u64,
    /// Those that did not answer `CKR_OK`.
    pub errors: u64,
}

/// What was done, by whom.
#[derive(Clone, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub struct Kind {
    /// The provider's name.
    pub provider: String,
    /// `CKM_…`; [`layout::OTHERS`] for those beyond the page's rows.
    pub mechanism: CK_MECHANISM_TYPE,
    /// Its size class: an index beside [`layout::SIZE_LIMITS`].
    pub size: usize,
}

/// What it came to.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct Cell {
    /// Operations, exactly.
    pub operations: u64,
    /// Bytes of input, exactly.
    pub bytes: u64,
    /// Operations that failed, exactly.
    pub errors: u64,
    /// Nanoseconds over the operations that [`Self::buckets`] counts.
    pub nanoseconds: u64,
    /// Operations whose time was taken, by time; [`layout::BUCKETS`] says by which.
    pub buckets: [u64; layout::BUCKET_COUNT],
}

impl Cell {
    /// Mean time of an operation in nanoseconds, as far as the sample shows it.
    #[must_use]
    pub fn mean(&self) -> Option<u64> {
        self.nanoseconds.checked_div(self.timed())
    }

    /// How many operations had their time taken.
    #[must_use]
    pub fn timed(&self) -> u64 {
        self.buckets.iter().fold(0, |sum, count| sum.saturating_add(*count))
    }

    /// The time below which so many in a hundred of the timed operations stayed: the end of a bucket, so at
    /// most twice the time itself. `None` where none was timed, or in the last bucket, which has no end.
    #[must_use]
    pub fn quantile(&self, percent: u64) -> Option<u64> {
        let wanted = (u128::from(self.timed()) * u128::from(percent)).div_ceil(100).max(1);
        let mut passed = 0;
        let at = self.buckets.iter().position(|count| {
            passed += u128::from(*count);
            passed >= wanted
        });
        at.and_then(layout::bucket_end)
    }

    /// Together with another cell, or without it.
    pub fn combine(&mut self, other: &Self, with: impl Fn(u64, u64) -> u64) {
        self.operations = with(self.operations, other.operations);
        self.bytes = with(self.bytes, other.bytes);
        self.errors = with(self.errors, other.errors);
        self.nanoseconds = with(self.nanoseconds, other.nanoseconds);
        for (bucket, other) in self.buckets.iter_mut().zip(&other.buckets) {
            *bucket = with(*bucket, *other);
        }
    }

    fn of(words: &[u64]) -> Self {
        let mut cell = Self {
            operations: words[layout::OPERATIONS],
            bytes: words[layout::BYTES],
            errors: words[layout::ERRORS],
            nanoseconds: words[layout::NANOSECONDS],
            buckets: [0; layout::BUCKET_COUNT],
        };
        cell.buckets.copy_from_slice(&words[layout::BUCKETS..CELL]);
        cell
    }
}

/// All processes that live and whose pages in these directories we may read, and last, where there is one, the sum of those
/// that have ended: each process is in one of both. Pages of the dead are added to the sum and removed, as far as they are
/// this user's; root does so for all.
#[must_use]
pub fn processes(directories: &[PathBuf]) -> Vec<Process> {
    let mut found = Vec::new();
    let mut ended = Raw::default();
    for directory in directories {
        for user in directory::users_of(directory) {
            found.extend(of_user(directory, user, &mut ended));
        }
    }
    found.sort_by_key(|process: &Process| process.pid);
    if ended.header[ENDED_PROCESSES] > 0 {
        found.push(of_sum(&ended));
    }
    found
}

/// So often the pages of a user are looked at while another process adds to the sum.
const LOOKS: usize = 4;

/// Those of one user. Nobody adds a page to the sum meanwhile: a process whose page was read here would be there, too.
fn of_user(directory: &Path, user: u32, ended: &mut Raw) -> Vec<Process> {
    let mut looks = 1;
    loop {
        let mut sum = sum_of(directory, user);
        let (mut found, mut left) = (Vec::new(), Raw::default());
        for (path, pid, lives) in directory::pages(directory, user) {
            if lives {
                found.extend(page_of(&path, pid).ok());
            } else {
                bury(&path, &mut sum);
                add_left(&mut left, &path, &sum);
            }
        }
        // One that has the lock.
        if looks < LOOKS && sum.as_ref().is_ok_and(|sum| !sum.is_current()) {
            looks += 1;
            continue;
        }
        sum.iter().for_each(|sum| ended.join(sum.counted()));
        ended.join(&left);
        return found;
    }
}

/// The sum of a user, made where there is something to add.
fn sum_of(directory: &Path, user: u32) -> io::Result<Ended> {
    let none = || Err(io::ErrorKind::NotFound.into());
    match Ended::open(directory, user, PATIENTLY).and_then(|sum| sum.map_or_else(none, Ok)) {
        Err(_) if directory::pages(directory, user).next().is_some() => {
            Ended::make(directory, user, PATIENTLY)
        }
        sum => sum,
    }
}

/// The pages of one process, also of one that is gone: they stay until another process begins to
/// count or [`processes`] looks, and are then part of the sum.
#[must_use]
pub fn of(pid: u32, directories: &[PathBuf]) -> Vec<Process> {
    let entries = directories.iter().filter_map(|directory| fs::read_dir(directory).ok());
    let pages = entries.flatten().flatten().filter(|entry| {
        directory::owner(&entry.file_name()).is_some_and(|(owner, _)| owner == pid)
    });
    pages.filter_map(|entry| page_of(&entry.path(), pid).ok()).collect()
}

/// The page of a process that lives or has just ended: made by its user or by root, and about it.
fn page_of(path: &Path, pid: u32) -> io::Result<Process> {
    let file = directory::open_to_read(path)?;
    // Of the file that is read: another one may stand in its place by now.
    let made_by = file.metadata()?.uid();
    let users = directory::users(pid);
    let found = counted(&file)?;
    // One that was made by root may be of a process that has another user since.
    let is_theirs = made_by == 0 || users.is_none_or(|users| users.contains(&made_by));
    match found.pid == pid && is_theirs {
        true => Ok(found),
        false => Err(io::Error::new(io::ErrorKind::InvalidData, "another process's page")),
    }
}

/// One page, which this user made; root reads those of all. Links are not followed, and whatever else
/// stands in a page's place is an error at once.
///
/// # Errors
/// What the file system says; [`io::ErrorKind::InvalidData`] for a page of another version.
pub fn process(path: &Path) -> io::Result<Process> {
    counted(&directory::open_to_read(path)?)
}

fn counted(file: &File) -> io::Result<Process> {
    Ok(of_raw(&Raw::of(file)?))
}

fn of_raw(raw: &Raw) -> Process {
    let Raw { header, sums, codes, outside } = raw;
    let now = record::now();
    let outside = outside.iter().map(|since| Duration::from_millis(now.saturating_sub(*since)));
    Process {
        ended: 0,
        pid: u32::try_from(header[layout::PID]).unwrap_or(0),
        program: text(&header[layout::PROGRAM..][..2]),
        since: header[layout::MADE],
        calls: calls(sums),
        codes: codes.iter().filter_map(|(key, count)| code(*key, *count)).collect(),
        events: Event::ALL
            .iter()
            .map(|(event, _)| (*event, sums[EVENTS + *event as usize]))
            .filter(|(_, count)| *count > 0)
            .collect(),
        operations: operations(header, sums),
        outside: outside.collect(),
    }
}

/// The sum of processes that have ended.
fn of_sum(sum: &Raw) -> Process {
    let [ended, since] = [ENDED_PROCESSES, ENDED_SINCE].map(|at| sum.header[at]);
    Process { ended, since, pid: 0, program: String::new(), ..of_raw(sum) }
}

pub(crate) fn text(words: &[u64]) -> String {
    let bytes: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).collect();
    printable(String::from_utf8_lossy(&bytes).trim_end_matches('\0'))
}

/// A program may call itself anything: what is not printed as it is, is escaped. A backslash is, as units have them in their names, and
/// what writes JSON or labels escapes it.
fn printable(text: &str) -> String {
    let mut printable = String::new();
    for character in text.chars() {
        match character {
            '"' | '\'' | '\\' => printable.push(character),
            other => printable.extend(other.escape_debug()),
        }
    }
    printable
}

fn calls(sums: &[u64]) -> Vec<(Function, Calls)> {
    let counted = Function::ALL.iter().enumerate().map(|(at, function)| {
        let at = layout::CALLS + 2 * at;
        (*function, Calls { calls: sums[at], errors: sums[at + 1] })
    });
    counted.filter(|(_, calls)| calls.calls > 0).collect()
}

fn code(key: u64, count: u64) -> Option<(Function, CK_RV, u64)> {
    let function = usize::try_from(key >> 32).ok()?.checked_sub(1)?;
    Some((*Function::ALL.get(function)?, key & 0xffff_ffff, count))
}

fn operations(header: &[u64], sums: &[u64]) -> Vec<(Kind, Cell)> {
    let mut cells: BTreeMap<Kind, Cell> = BTreeMap::new();
    let used = usize::try_from(header[layout::ROWS_USED]).unwrap_or(ROWS).min(ROWS - 1);
    // Providers beyond those that have names are among the others from the beginning.
    for row in (0..used).chain([ROWS - 1]) {
        let key = header[layout::ROW_KEYS + row];
        let (provider, mechanism) = if key == layout::OTHERS {
            (String::from("others"), key)
        } else {
            let provider = usize::try_from(key >> 56).unwrap_or(0) % layout::PROVIDERS;
            let name = text(&header[layout::PROVIDER_NAMES + 2 * provider..][..2]);
            (name, key & 0x00ff_ffff_ffff_ffff)
        };
        for size in 0..SIZES {
            let words = &sums[layout::cell(row, size)..][..CELL];
            if words[layout::OPERATIONS] > 0 {
                let kind = Kind { provider: provider.clone(), mechanism, size };
                cells.entry(kind).or_default().combine(&Cell::of(words), u64::saturating_add);
            }
        }
    }
    cells.into_iter().collect()
}

#[cfg(test)]
mod tests;

// SPDX-License-Identifier: Apache-2.0
//! Reading the pages of all processes.

use crate::layout::{self, CELL, CODE_COUNT, CODES, EVENTS, HEADER, ROWS, SHARD, SHARDS, SIZES};
use crate::{Event, page, record};
use metaslot_ck::{CK_MECHANISM_TYPE, CK_RV, Function};
use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io;
use std::os::unix::fs::{FileExt, MetadataExt};
use std::path::{Path, PathBuf};
use std::time::Duration;

/// One process's numbers at one moment.
#[derive(Clone, Debug, Default)]
pub struct Process {
    /// The process.
    pub pid: u32,
    /// The program's name, up to 15 bytes.
    pub program: String,
    /// When the page was made, in seconds since 1970.
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

/// All processes that live and whose pages in these directories we may read. Pages of the dead are
/// removed, as far as they are this user's; root removes all.
#[must_use]
pub fn processes(directories: &[PathBuf]) -> Vec<Process> {
    let mut found = Vec::new();
    for directory in directories {
        let Ok(entries) = fs::read_dir(directory) else { continue };
        for entry in entries.flatten() {
            match page::owner(&entry.file_name()) {
                Some((pid, true)) => found.extend(page_of(&entry.path(), pid).ok()),
                Some((_, false)) => page::remove(&entry.path()),
                None => {}
            }
        }
    }
    found.sort_by_key(|process| process.pid);
    found
}

/// The pages of one process, also of one that is gone: they stay until another process begins to
/// count or [`processes`] looks.
#[must_use]
pub fn of(pid: u32, directories: &[PathBuf]) -> Vec<Process> {
    let entries = directories.iter().filter_map(|directory| fs::read_dir(directory).ok());
    let pages = entries
        .flatten()
        .flatten()
        .filter(|entry| page::owner(&entry.file_name()).is_some_and(|(owner, _)| owner == pid));
    pages.filter_map(|entry| page_of(&entry.path(), pid).ok()).collect()
}

/// The page of a process that lives or has just ended: made by its user, and about it.
fn page_of(path: &Path, pid: u32) -> io::Result<Process> {
    let file = page::open_to_read(path)?;
    // Of the file that is read: another one may stand in its place by now.
    let made_by = file.metadata()?.uid();
    let users = page::users(pid);
    let found = counted(&file)?;
    match found.pid == pid && users.is_none_or(|users| users.contains(&made_by)) {
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
    counted(&page::open_to_read(path)?)
}

fn counted(file: &File) -> io::Result<Process> {
    let header = words(file, 0, HEADER)?;
    let expected = [(0, layout::MAGIC), (1, layout::VERSION)];
    let lengths = [(layout::SHARD_COUNT, SHARDS as u64), (layout::SHARD_LENGTH, SHARD as u64)];
    if expected.iter().chain(&lengths).any(|(at, value)| header[*at] != *value) {
        return Err(io::Error::new(io::ErrorKind::InvalidData, "a page of another version"));
    }
    let mut sums = vec![0_u64; SHARD];
    let (mut codes, mut outside) = (BTreeMap::new(), Vec::new());
    for index in 0..SHARDS {
        // Read, not mapped: reading a page that was never written does not allocate it.
        let shard = words(file, HEADER + index * SHARD, SHARD)?;
        for (sum, word) in sums.iter_mut().zip(&shard) {
            *sum = sum.saturating_add(*word);
        }
        if let since @ 1.. = shard[layout::OUTSIDE] {
            outside.push(Duration::from_millis(record::now().saturating_sub(since)));
        }
        for pair in shard[CODES..CODES + 2 * CODE_COUNT].chunks_exact(2) {
            let count: &mut u64 = codes.entry(pair[0]).or_default();
            *count = count.saturating_add(pair[1]);
        }
    }
    Ok(Process {
        pid: u32::try_from(header[layout::PID]).unwrap_or(0),
        program: text(&header[layout::PROGRAM..][..2]),
        since: header[layout::MADE],
        calls: calls(&sums),
        codes: codes.iter().filter_map(|(key, count)| code(*key, *count)).collect(),
        events: Event::ALL
            .iter()
            .map(|(event, _)| (*event, sums[EVENTS + *event as usize]))
            .filter(|(_, count)| *count > 0)
            .collect(),
        operations: operations(&header, &sums),
        outside,
    })
}

fn words(file: &File, at: usize, count: usize) -> io::Result<Vec<u64>> {
    let mut bytes = vec![0; count * 8];
    file.read_exact_at(&mut bytes, (at * 8) as u64)?;
    Ok(bytes.as_chunks().0.iter().map(|word| u64::from_le_bytes(*word)).collect())
}

fn text(words: &[u64]) -> String {
    let bytes: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).collect();
    printable(String::from_utf8_lossy(&bytes).trim_end_matches('\0'))
}

/// A program may call itself anything: what is not printed as it is, is escaped.
fn printable(text: &str) -> String {
    let mut printable = String::new();
    for character in text.chars() {
        match character {
            '"' | '\'' => printable.push(character),
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

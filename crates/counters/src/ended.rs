// SPDX-License-Identifier: Apache-2.0
//! What processes that have ended counted: a file for each user, to which the process that removes a dead page adds it.
//!
//! It has two halves, of which one counts. A page is added by writing the other half whole, then the word that says which half
//! counts, and is taken away last: who is killed in between leaves a page that is not yet added, or one that the half names.

use crate::directory::{self, sum_name};
use crate::layout::{
    CODE_COUNT, CODES, ENDED_ACTIVE, ENDED_HALF, ENDED_HEADER, ENDED_MAGIC, ENDED_PROCESSES,
    ENDED_SINCE, ENDED_VERSION, ENDED_WORDS, HEADER, MADE, PID, SHARD, STARTED,
};
use crate::raw::{Raw, words};
use rustix::fs::{FlockOperation, Mode, OFlags, flock};
use std::collections::BTreeSet;
use std::fs::{self, File};
use std::io;
use std::os::unix::fs::{FileExt, MetadataExt};
use std::path::{Path, PathBuf};
use std::thread;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// How often a reader asks for the lock: it is kept waiting for no more than a tenth of a second, for the owner may keep it.
pub(crate) const PATIENTLY: u32 = 100;
/// A process that begins does not wait.
pub(crate) const ONCE: u32 = 1;
const PAUSE: Duration = Duration::from_millis(1);

/// By which words of its header a page is known, and the sum tells the one that was added last.
const LAST: [usize; 3] = [PID, STARTED, MADE];

/// The sum of one user.
#[derive(Debug)]
pub(crate) struct Ended {
    file: File,
    /// Nobody else adds to it meanwhile.
    locked: bool,
    /// The half that counts.
    active: usize,
    sum: Raw,
}

impl Drop for Ended {
    fn drop(&mut self) {
        // A child that was forked meanwhile has the file open, too, and would keep the lock.
        if self.locked {
            flock(&self.file, FlockOperation::Unlock).unwrap_or_default();
        }
    }
}

impl Ended {
    /// The sum of a user's processes in a directory; `None` where none has been made. Its lock is asked for so many times.
    ///
    /// # Errors
    /// What the file system says; [`io::ErrorKind::InvalidData`] for what is no such file.
    pub(crate) fn open(place: &Path, user: u32, tries: u32) -> io::Result<Option<Self>> {
        let path = place.join(sum_name(user));
        let flags = OFlags::RDWR | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
        let file = match rustix::fs::open(&path, flags, Mode::empty()) {
            Ok(file) => File::from(file),
            Err(rustix::io::Errno::NOENT) => return Ok(None),
            Err(errno) => return Err(errno.into()),
        };
        let metadata = file.metadata()?;
        let length = (ENDED_WORDS * 8) as u64;
        if !metadata.is_file() || metadata.uid() != user || metadata.len() != length {
            return Err(invalid());
        }
        let locked = lock(&file, tries)?;
        let head = words(&file, 0, ENDED_ACTIVE + 1)?;
        if head[..2] != [ENDED_MAGIC, ENDED_VERSION] {
            return Err(invalid());
        }
        let active = usize::from(head[ENDED_ACTIVE] == 1);
        let at = ENDED_HEADER + active * ENDED_HALF;
        let mut sum = Raw { header: words(&file, at, HEADER)?, ..Raw::default() };
        sum.add(&words(&file, at + HEADER, SHARD)?);
        if locked {
            take_away_the_last(place, user, &sum);
        }
        Ok(Some(Self { file, locked, active, sum }))
    }

    /// The same, made where it is missing.
    ///
    /// # Errors
    /// As [`Self::open`].
    pub(crate) fn make(place: &Path, user: u32, tries: u32) -> io::Result<Self> {
        match Self::open(place, user, tries) {
            Ok(Some(ended)) => return Ok(ended),
            // Of another version, say.
            Err(error) if error.kind() == io::ErrorKind::InvalidData => {
                fs::remove_file(place.join(sum_name(user)))?;
            }
            opened => drop(opened?),
        }
        // It gets its name when it is whole, and with its space: a later write needs none.
        let beside = place.join(format!(".{}.{}.new", sum_name(user), std::process::id()));
        let made = write_new(&beside, user);
        let named = made.and_then(|()| fs::hard_link(&beside, place.join(sum_name(user))));
        drop(fs::remove_file(&beside));
        match named {
            Err(error) if error.kind() != io::ErrorKind::AlreadyExists => return Err(error),
            _ => {}
        }
        Self::open(place, user, tries)?.ok_or_else(invalid)
    }

    /// Whether nobody has added a page since this was read.
    pub(crate) fn is_current(&self) -> bool {
        let now = |at, count| words(&self.file, at, count).unwrap_or_default();
        let processes = ENDED_HEADER + self.active * ENDED_HALF + ENDED_PROCESSES;
        self.locked
            || now(ENDED_ACTIVE, 1) == [self.active as u64]
                && now(processes, 1) == [self.sum.header[ENDED_PROCESSES]]
    }

    /// What they counted.
    pub(crate) const fn counted(&self) -> &Raw {
        &self.sum
    }

    /// Adds a page. It is to be taken away then.
    ///
    /// # Errors
    /// What the file system says; [`io::ErrorKind::InvalidData`] for what is no page, [`io::ErrorKind::WouldBlock`] where
    /// another process has the lock.
    pub(crate) fn add(&mut self, file: &File) -> io::Result<()> {
        if !self.locked {
            return Err(io::ErrorKind::WouldBlock.into());
        }
        let page = Raw::of(file)?;
        let known: BTreeSet<u64> = self.sum.codes.keys().copied().collect();
        add_page(&mut self.sum, &page);
        // What has a place keeps it.
        let mut free = CODE_COUNT.saturating_sub(known.iter().filter(|key| **key != 0).count());
        self.sum.codes.retain(|key, _| {
            let has_place = known.contains(key) || *key == 0;
            let stays = has_place || free > 0;
            free -= usize::from(stays && !has_place);
            stays
        });
        self.write()
    }

    /// Writes the other half, which then counts.
    fn write(&mut self) -> io::Result<()> {
        let other = 1 - self.active;
        let mut half = self.sum.header.clone();
        half.extend(&self.sum.sums);
        let codes = &mut half[HEADER + CODES..][..2 * CODE_COUNT];
        codes.fill(0);
        let known = self.sum.codes.iter().filter(|(key, _)| **key != 0);
        for (place, (key, count)) in codes.chunks_exact_mut(2).zip(known) {
            place.copy_from_slice(&[*key, *count]);
        }
        write_words(&self.file, ENDED_HEADER + other * ENDED_HALF, &half)?;
        write_words(&self.file, ENDED_ACTIVE, &[other as u64])?;
        self.active = other;
        Ok(())
    }
}

/// The process that added a page last may have been killed before it was gone. Which page that is says the sum, which its user
/// writes: it is that user's, or root would take away another one's.
fn take_away_the_last(place: &Path, user: u32, sum: &Raw) {
    let last = LAST.map(|at| sum.header[at]);
    let Ok(pid) = u32::try_from(last[0]) else { return };
    let path = place.join(directory::file_name(pid, last[1]));
    let is_it = |file: File| {
        Ok(file.metadata()?.uid() == user && words(&file, 0, MADE + 1)?[PID..] == last)
    };
    if directory::open_to_read(&path).and_then(is_it).unwrap_or(false) {
        directory::remove(&path);
    }
}

/// Adds a page to a sum.
fn add_page(sum: &mut Raw, page: &Raw) {
    sum.header[ENDED_PROCESSES] = sum.header[ENDED_PROCESSES].saturating_add(1);
    for at in LAST {
        sum.header[at] = page.header[at];
    }
    if sum.header[ENDED_SINCE] == 0 {
        let now = SystemTime::now().duration_since(UNIX_EPOCH);
        sum.header[ENDED_SINCE] = now.map_or(0, |since| since.as_secs());
    }
    sum.add_counts(page);
}

/// Adds what a page counted that could not be added to the sum for now, and is not there yet: it counts for this reader.
pub(crate) fn add_left(left: &mut Raw, path: &Path, sum: &io::Result<Ended>) {
    let Ok(page) = directory::open_to_read(path).and_then(|file| Raw::of(&file)) else { return };
    let is_last = |ended: &Ended| LAST.iter().all(|at| ended.sum.header[*at] == page.header[*at]);
    if !sum.as_ref().is_ok_and(is_last) {
        add_page(left, &page);
    }
}

/// Adds the page of a process that is gone to what its user's others counted, and takes it away. Without a place for the sum it
/// is lost; what is so for now only leaves it for another time.
pub(crate) fn bury(path: &Path, sum: &mut io::Result<Ended>) {
    let added = match sum {
        Ok(sum) => directory::open_to_read(path).and_then(|file| sum.add(&file)),
        Err(error) if is_passing(error) => return,
        Err(_) => Ok(()),
    };
    match added {
        Err(error) if is_passing(&error) => {}
        _ => directory::remove(path),
    }
}

/// Whether it may be otherwise soon: another process has the lock, or there is no descriptor, no memory or no space.
fn is_passing(error: &io::Error) -> bool {
    use rustix::io::Errno;
    let passing = [
        Errno::WOULDBLOCK,
        Errno::INTR,
        Errno::MFILE,
        Errno::NFILE,
        Errno::NOMEM,
        Errno::NOSPC,
        Errno::DQUOT,
    ];
    error.kind() == io::ErrorKind::WouldBlock
        || Errno::from_io_error(error).is_some_and(|errno| passing.contains(&errno))
}

/// How many are buried when a page is made: enough that they do not pile up.
const BURY_AT_ONCE: usize = 64;

/// Takes away the pages of this user's processes that are gone, and keeps what they counted.
pub(crate) fn remove_dead(place: &Path) {
    let user = rustix::process::geteuid().as_raw();
    let mut dead = to_bury(directory::pages(place, user)).peekable();
    if dead.peek().is_some() {
        let mut sum = Ended::make(place, user, ONCE);
        dead.for_each(|path| bury(&path, &mut sum));
    }
}

fn to_bury(pages: impl Iterator<Item = (PathBuf, u32, bool)>) -> impl Iterator<Item = PathBuf> {
    pages.filter(|(_, _, lives)| !lives).map(|(path, ..)| path).take(BURY_AT_ONCE)
}

/// Keeps what this process counted before it called `execve`: it has its number and its start still. Gives when that page was
/// made, 0 where there is none: the next one is told from it by another time.
pub(crate) fn bury_former_self(place: &Path, path: &Path) -> u64 {
    let made = directory::open_to_read(path).and_then(|file| Ok(words(&file, MADE, 1)?[0]));
    let Ok(made) = made else { return 0 };
    bury(path, &mut Ended::make(place, rustix::process::geteuid().as_raw(), PATIENTLY));
    made
}

/// Whether the lock was free at one of so many tries.
fn lock(file: &File, tries: u32) -> io::Result<bool> {
    for left in (0..tries).rev() {
        match flock(file, FlockOperation::NonBlockingLockExclusive) {
            Err(rustix::io::Errno::WOULDBLOCK) if left > 0 => thread::sleep(PAUSE),
            Err(rustix::io::Errno::WOULDBLOCK) => {}
            locked => return Ok(locked.map(|()| true)?),
        }
    }
    Ok(false)
}

/// An empty sum, of this user also where root makes it.
fn write_new(path: &PathBuf, user: u32) -> io::Result<()> {
    let flags = OFlags::RDWR | OFlags::CREATE | OFlags::EXCL | OFlags::CLOEXEC;
    let file = File::from(rustix::fs::open(path, flags, Mode::RUSR | Mode::WUSR)?);
    if rustix::process::geteuid().as_raw() != user {
        std::os::unix::fs::fchown(&file, Some(user), None)?;
    }
    write_words(&file, 0, &[0; ENDED_WORDS])?;
    write_words(&file, 0, &[ENDED_MAGIC, ENDED_VERSION])
}

fn write_words(file: &File, at: usize, words: &[u64]) -> io::Result<()> {
    let bytes: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).collect();
    file.write_all_at(&bytes, (at * 8) as u64)
}

fn invalid() -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, "no sum of this version")
}

#[cfg(test)]
mod tests;

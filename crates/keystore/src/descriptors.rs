// SPDX-License-Identifier: Apache-2.0
//! What stays open between calls. A host may close descriptors that are not its own, and have files of its own by their numbers then: those are
//! neither read nor written, locked or closed here.

use crate::error::Error;
use crate::files::{Inode, Inodes};
use metaslot_memory::{PerProcess, file_at, has_locked};
use rustix::fs::{CWD, Mode, OFlags, fstat, openat};
use rustix::io::Errno;
use std::mem;
use std::os::fd::{AsRawFd, OwnedFd, RawFd};
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

/// A file that stays open.
#[derive(Debug)]
pub(crate) struct Open {
    file: Option<OwnedFd>,
    pub(crate) inode: Inode,
    /// For ever: the next file of ours may get the same number, and be the same.
    lost: AtomicBool,
}

impl Open {
    pub(crate) fn new(file: impl Into<OwnedFd>) -> Result<Self, Errno> {
        let file = file.into();
        let inode = Inode::of(&fstat(&file)?);
        Ok(Self { file: Some(file), inode, lost: AtomicBool::new(false) })
    }

    /// The file.
    ///
    /// # Errors
    /// `EBADF` where the host has closed it.
    pub(crate) fn file(&self) -> Result<&OwnedFd, Errno> {
        let file = self.file.as_ref().filter(|_| !self.lost.load(Ordering::SeqCst));
        let file = file.ok_or(Errno::BADF)?;
        if fstat(file).is_ok_and(|stat| Inode::of(&stat) == self.inode) {
            return Ok(file);
        }
        self.lost.store(true, Ordering::SeqCst);
        Err(Errno::BADF)
    }

    pub(crate) fn is_lost(&self) -> bool {
        self.file().is_err()
    }
}

impl Drop for Open {
    fn drop(&mut self) {
        if self.is_lost() {
            mem::forget(self.file.take());
        }
    }
}

/// By which numbers SQLite has files open.
#[derive(Clone, Debug, Default)]
pub(crate) struct Descriptors(Vec<(RawFd, Inode)>);

/// What has become of descriptors.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub(crate) enum Fate {
    /// They are what they were.
    Kept,
    /// The host has closed some.
    Closed,
    /// And has others by their numbers.
    Reused,
}

impl Descriptors {
    /// As far from the first number as what is opened next has its numbers, unless many threads open files.
    const NEAR: RawFd = 64;

    /// The number that what is opened next gets.
    pub(crate) fn next() -> Option<RawFd> {
        let root = openat(CWD, "/", OFlags::PATH | OFlags::CLOEXEC, Mode::empty());
        root.ok().map(|root| root.as_raw_fd())
    }

    /// That of a file that was opened when the next number was `first`, and is none of `others`.
    fn find(first: Option<RawFd>, wanted: Option<Inode>, others: &[RawFd]) -> Self {
        let (Some(first), Some(wanted)) = (first, wanted) else { return Self::default() };
        // Another thread may have closed a lower one meanwhile.
        let mut numbers = (first..first.saturating_add(Self::NEAR)).chain(0..first);
        let found =
            numbers.find(|number| !others.contains(number) && inode(*number) == Some(wanted));
        Self(found.map(|number| (number, wanted)).into_iter().collect())
    }

    /// These and others.
    fn and(mut self, others: &Self) -> Self {
        self.0.extend_from_slice(&others.0);
        self
    }

    fn numbers(&self) -> Vec<RawFd> {
        self.0.iter().map(|(number, _)| *number).collect()
    }

    pub(crate) fn fate(&self) -> Fate {
        Self::fate_of(&self.0)
    }

    /// The same of one of them, where all cost too much: hosts close all, or a number by mistake.
    pub(crate) fn fate_of_last(&self) -> Fate {
        Self::fate_of(self.0.last())
    }

    /// Whether a process has one of SQLite's locks of the log's index (its format's description, 2.3.1) for itself. In the writers' queue
    /// none does but for a moment, unless SQLite could not give it up.
    pub(crate) fn index_is_locked(&self) -> bool {
        self.0.last().is_some_and(|(number, _)| has_locked(*number, 120, 8))
    }

    fn fate_of<'a>(some: impl IntoIterator<Item = &'a (RawFd, Inode)>) -> Fate {
        let fates = some.into_iter().map(|(number, before)| match inode(*number) {
            Some(now) if now == *before => Fate::Kept,
            Some(_) => Fate::Reused,
            None => Fate::Closed,
        });
        fates.max().unwrap_or(Fate::Kept)
    }
}

fn inode(number: RawFd) -> Option<Inode> {
    file_at(number).map(|(device, number)| Inode::new(device, number))
}

/// The connections of this process to one database that are open.
#[derive(Debug, Default)]
pub(crate) struct Opened {
    /// How many there are.
    count: usize,
    /// What had the names of the files when the first was opened, and the number of the index.
    first: Option<(Inodes, Descriptors)>,
    /// By which numbers they have the log: each has its own, which is closed with it.
    logs: Descriptors,
}

impl Opened {
    pub(crate) const fn is_none(&self) -> bool {
        self.count == 0
    }

    /// Adds a connection that was opened when the next number was `first`, and found these files. It uses the database and the index
    /// that the first one opened. By `kept` the index is open, too, and not for SQLite.
    pub(crate) fn add(
        &mut self,
        first: Option<RawFd>,
        found: Inodes,
        kept: &[RawFd],
    ) -> (Inodes, Descriptors) {
        let [database, log, index] = found;
        self.count += 1;
        let opened = || (found, Descriptors::find(first, index, kept));
        let (inodes, index) = self.first.get_or_insert_with(opened);
        let log = Descriptors::find(first, log, &self.logs.numbers());
        self.logs.0.extend(&log.0);
        // Of the database SQLite uses those of earlier connections again, and closes none before the last.
        (*inodes, Descriptors::find(first, database, &[]).and(&log).and(index))
    }

    /// Notes that a connection was closed. What the last one had may be anyone's now.
    pub(crate) fn remove(&mut self, connection: &Descriptors) {
        self.logs.0.retain(|log| !connection.0.contains(log));
        self.count = self.count.saturating_sub(1);
        if self.count == 0 {
            self.first = None;
        }
    }
}

/// What SQLite shares among the connections of this process to one database.
#[derive(Debug)]
pub(crate) struct Shared {
    pub(crate) database: Option<Inode>,
    /// Locked while a connection is opened or closed, and by anyone who opens one of these files for a moment.
    opened: Mutex<Opened>,
    /// Whether the host has files of its own by its numbers. SQLite would use these for all further connections.
    pub(crate) lost: AtomicBool,
}

impl Shared {
    /// That of a database, for as long as anyone has it.
    pub(crate) fn of(database: Option<Inode>) -> Arc<Self> {
        static ALL: PerProcess<Mutex<Vec<Weak<Shared>>>> = PerProcess::new(|_| Mutex::default());
        let mut all = ALL.get().lock().unwrap_or_else(PoisonError::into_inner);
        all.retain(|shared| shared.strong_count() > 0);
        let mut known = all.iter().filter_map(Weak::upgrade);
        known.find(|shared| shared.database == database).unwrap_or_else(|| {
            let (opened, lost) = (Mutex::default(), AtomicBool::new(false));
            let shared = Arc::new(Self { database, opened, lost });
            all.push(Arc::downgrade(&shared));
            shared
        })
    }

    pub(crate) fn opened(&self) -> MutexGuard<'_, Opened> {
        self.opened.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Why a database cannot be used any more.
    pub(crate) fn error(database: &Path) -> Error {
        let reason = "the program has closed descriptors that are not its own and opened others by their numbers: start it again";
        Error::file(database, "use", reason)
    }
}

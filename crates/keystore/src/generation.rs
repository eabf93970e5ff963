// SPDX-License-Identifier: Apache-2.0
//! The file beside the store that counts commits: mapped where only this user may cut it, else read.
//!
//! A mapped file that is cut kills the process that looks at it. So no other user may be able to: in a
//! store that a group shares, or that is another user's, each look costs a system call.

use crate::descriptors::Open;
use crate::error::{Error, Result};
use crate::files::{Files, Inode};
use metaslot_memory::SharedWords;
use rustix::fs::{FallocateFlags, fallocate};
use rustix::io::{Errno, pread, pwrite, retry_on_intr};
use std::path::PathBuf;
use std::sync::atomic::Ordering;
use std::time::{SystemTime, UNIX_EPOCH};

/// How long the file is, in bytes.
const LENGTH: u64 = 4096;

/// The generation: odd while a commit is under way.
#[derive(Debug)]
pub(crate) struct Generation {
    number: Number,
    path: PathBuf,
    pub(crate) inode: Inode,
}

#[derive(Debug)]
enum Number {
    /// The first word.
    Mapped(SharedWords),
    /// The first eight bytes.
    Read(Open),
}

impl Generation {
    /// Makes the file where it is missing.
    pub(crate) fn open(files: &Files) -> Result<Self> {
        let file = files.open_generation()?;
        // A hole in a mapped file kills too, when the disk is full as the first byte is written.
        let filled = fallocate(&file, FallocateFlags::empty(), 0, LENGTH);
        let mapped = filled.map_err(Into::into).and_then(|()| SharedWords::map(&file, 1));
        let path = files.generation.clone();
        let file = Open::new(file).map_err(|errno| Error::file(&path, "open", errno))?;
        let inode = file.inode;
        let number = mapped.map_or_else(|_| Number::Read(file), Number::Mapped);
        Ok(Self { number, path, inode })
    }

    /// `None` when the file has been cut: anyone who asks must look at the store.
    pub(crate) fn now(&self) -> Option<u64> {
        match &self.number {
            Number::Mapped(page) => Some(page.words()[0].load(Ordering::Acquire)),
            Number::Read(file) => {
                let mut word = [0; 8];
                // Straight from the kernel: the C library's call is one at which a thread of the
                // host may be cancelled.
                let read = file.file().and_then(|file| pread(file, &mut word, 0));
                (read == Ok(word.len())).then(|| u64::from_le_bytes(word))
            }
        }
    }

    /// Runs `commit`, odd meanwhile and higher afterwards. The caller holds the writers' queue. Where
    /// the end cannot be written the number stays odd, and every process looks at the store.
    pub(crate) fn during<R>(&self, commit: impl FnOnce() -> Result<R>) -> Result<R> {
        self.change(|last| last | 1)?;
        let done = commit();
        // Whatever is there now: a writer with another lock file may have made it even meanwhile.
        self.end().unwrap_or_default();
        done
    }

    /// Says that no commit is under way. The caller holds the writers' queue.
    pub(crate) fn end(&self) -> Result<()> {
        // Commits after an older file was put back do not count up to a number that was seen before that.
        self.change(|last| (last | 1).wrapping_add(1).max(unseen()))
    }

    /// Whether the host has closed it.
    pub(crate) fn is_lost(&self) -> bool {
        matches!(&self.number, Number::Read(file) if file.is_lost())
    }

    /// Whether a writer is at work, or has died at it.
    pub(crate) fn is_odd(&self) -> bool {
        self.now().is_none_or(|now| now & 1 == 1)
    }

    /// In one step where that can be had: a writer with another lock file may be at it, too.
    fn change(&self, next: impl Fn(u64) -> u64) -> Result<()> {
        match &self.number {
            Number::Mapped(page) => {
                page.words()[0].update(Ordering::AcqRel, Ordering::Acquire, next);
                Ok(())
            }
            Number::Read(file) => {
                let word = next(self.now().unwrap_or_else(unseen)).to_le_bytes();
                let write = |file| retry_on_intr(|| pwrite(file, &word, 0));
                let written = file.file().and_then(write);
                let written = written.and_then(|count| match count == word.len() {
                    true => Ok(()),
                    false => Err(Errno::NOSPC),
                });
                written.map_err(|errno| Error::file(&self.path, "write", errno))
            }
        }
    }
}

/// A number that no process has seen before: what stood in a file that was cut, or replaced, is not known.
fn unseen() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH);
    since.map_or(0, |since| u64::try_from(since.as_nanos()).unwrap_or(0)) & !1
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_seen_while_a_commit_is_under_way_is_old_after_it() {
        let name = format!("metaslot-keystore-{}-during.db", std::process::id());
        let files = Files::new(&std::env::temp_dir().join(name));
        let page = Generation::open(&files).expect("it is made");
        let seen = page.during(|| {
            assert!(page.is_odd());
            // Another process has lost the lock file, and was at it, too.
            page.end()?;
            Ok(page.now())
        });
        assert!(seen.expect("it is read") < page.now());
        assert!(!page.is_odd());
        std::fs::remove_file(&files.generation).expect("it goes");
    }

    #[test]
    fn a_file_that_is_put_back_does_not_count_up_to_what_was_seen() {
        let name = format!("metaslot-keystore-{}-put-back.db", std::process::id());
        let files = Files::new(&std::env::temp_dir().join(name));
        let page = Generation::open(&files).expect("it is made");
        let older = std::fs::read(&files.generation).expect("it is read");
        page.end().expect("it is written");
        let seen = page.now();
        std::fs::write(&files.generation, older).expect("it is written over");
        page.end().expect("it is written");
        assert!(page.now() > seen);
        std::fs::remove_file(&files.generation).expect("it goes");
    }

    #[test]
    fn a_number_never_goes_back_whoever_writes() {
        let name = format!("metaslot-keystore-{}-back.db", std::process::id());
        let files = Files::new(&std::env::temp_dir().join(name));
        let page = Generation::open(&files).expect("it is made");
        std::thread::scope(|scope| {
            // Each has a lock file of its own.
            let writer =
                || (0..1_000_000).for_each(|_| page.during(|| Ok(())).expect("it is written"));
            let writers = [scope.spawn(writer), scope.spawn(writer)];
            let mut last = page.now();
            while !writers.iter().all(|writer| writer.is_finished()) {
                let now = page.now();
                assert!(now >= last, "{last:?}, then {now:?}");
                last = now;
            }
        });
        std::fs::remove_file(&files.generation).expect("it goes");
    }
}

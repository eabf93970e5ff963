// SPDX-License-Identifier: Apache-2.0
//! The file beside the store that counts commits: mapped where only this user may cut it, else read.
//!
//! A mapped file that is cut kills the process that looks at it. So no other user may be able to: in a
//! store that a group shares, or that is another user's, each look costs a system call.

use crate::error::{Error, Result};
use crate::files::Files;
use metaslot_memory::SharedWords;
use rustix::fs::{FallocateFlags, fallocate};
use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::PathBuf;
use std::sync::atomic::Ordering;
use std::time::{SystemTime, UNIX_EPOCH};

/// How long the file is, in bytes.
const LENGTH: u64 = 4096;

/// The generation: odd while a commit is under way.
#[derive(Debug)]
pub(crate) enum Generation {
    /// Its first word is the number.
    Mapped(SharedWords),
    /// Its first eight bytes are.
    Read(File, PathBuf),
}

impl Generation {
    /// Makes the file where it is missing.
    pub(crate) fn open(files: &Files) -> Result<Self> {
        let file = files.open_generation()?;
        // A hole in a mapped file kills too, when the disk is full as the first byte is written.
        let filled = fallocate(&file, FallocateFlags::empty(), 0, LENGTH);
        match filled.map_err(Into::into).and_then(|()| SharedWords::map(&file, 1)) {
            Ok(words) => Ok(Self::Mapped(words)),
            Err(_) => Ok(Self::Read(file, files.generation.clone())),
        }
    }

    /// `None` when the file has been cut: anyone who asks must look at the store.
    pub(crate) fn now(&self) -> Option<u64> {
        match self {
            Self::Mapped(page) => Some(page.words()[0].load(Ordering::Acquire)),
            Self::Read(file, _) => {
                let mut word = [0; 8];
                // Straight from the kernel: the C library's call is one at which a thread of the
                // host may be cancelled.
                let read = rustix::io::pread(file, &mut word, 0);
                (read == Ok(word.len())).then(|| u64::from_le_bytes(word))
            }
        }
    }

    /// Says that a commit begins. The caller holds the writers' queue; a number left odd by a writer
    /// that died stays odd until [`Self::end`].
    pub(crate) fn begin(&self) -> Result<()> {
        let now = self.now().unwrap_or_else(unseen);
        self.set(now | 1)
    }

    /// Says that the commit is over, done or not. The caller holds the writers' queue. Where this
    /// fails the number stays odd, and every process looks at the store.
    pub(crate) fn end(&self) -> Result<()> {
        let now = self.now().unwrap_or_else(unseen);
        self.set((now | 1).wrapping_add(1))
    }

    /// Whether a writer is at work, or has died at it.
    pub(crate) fn is_odd(&self) -> bool {
        self.now().is_none_or(|now| now & 1 == 1)
    }

    fn set(&self, number: u64) -> Result<()> {
        match self {
            Self::Mapped(page) => page.words()[0].store(number, Ordering::Release),
            Self::Read(file, path) => file
                .write_all_at(&number.to_le_bytes(), 0)
                .map_err(|error| Error::file(path, "write", error))?,
        }
        Ok(())
    }
}

/// A number that no process has seen before: what stood in a file that was cut is not known.
fn unseen() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH);
    since.map_or(0, |since| u64::try_from(since.as_nanos()).unwrap_or(0)) & !1
}

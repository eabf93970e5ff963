// SPDX-License-Identifier: Apache-2.0
//! A lock among threads and processes: a mutex before an `fcntl` lock of a file of its own.
//!
//! An `fcntl` lock ends with its process whatever children live on, but it belongs to the process
//! as a whole: two descriptors of one file share it, and closing either gives it up. Hence one
//! descriptor per file and process, however many stores are opened.

use crate::error::{Error, Result};
use crate::files::{self, Inode};
use metaslot_memory::PerProcess;
use rustix::fs::{FlockOperation, Mode, fcntl_lock};
use rustix::io::Errno;
use std::fs::File;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::Duration;

/// One lock file.
#[derive(Debug)]
pub(crate) struct Lock {
    path: PathBuf,
    file: File,
    turn: Mutex<()>,
}

/// The lock, held.
#[derive(Debug)]
pub(crate) struct Held<'a> {
    lock: &'a Lock,
    _turn: MutexGuard<'a, ()>,
}

struct Known {
    inode: Inode,
    lock: Weak<Lock>,
}

/// Every lock file open in this process.
static KNOWN: PerProcess<Mutex<Vec<Known>>> = PerProcess::new(|_| Mutex::default());

impl Lock {
    /// The one lock of this file, made where it is missing.
    ///
    /// # Errors
    /// [`Error::WriteProtected`] when it may not be written.
    pub(crate) fn open(path: &Path, mode: Mode) -> Result<Arc<Self>> {
        let mut known = KNOWN.get().lock().unwrap_or_else(PoisonError::into_inner);
        known.retain(|known| known.lock.strong_count() > 0);
        if let Ok(metadata) = std::fs::symlink_metadata(path) {
            let here = inode(&metadata);
            let open = known.iter().find(|known| known.inode == here);
            if let Some(lock) = open.and_then(|known| known.lock.upgrade()) {
                return Ok(lock);
            }
        }
        let file = files::open_own(path, mode)?;
        let metadata = file.metadata().map_err(|error| Error::file(path, "open", error))?;
        let lock = Arc::new(Self { path: path.to_owned(), file, turn: Mutex::new(()) });
        known.push(Known { inode: inode(&metadata), lock: Arc::downgrade(&lock) });
        Ok(lock)
    }

    /// Waits for the lock, behind the threads of this process and all other processes.
    pub(crate) fn hold(&self) -> Result<Held<'_>> {
        let turn = self.turn.lock().unwrap_or_else(PoisonError::into_inner);
        loop {
            match fcntl_lock(&self.file, FlockOperation::LockExclusive) {
                Ok(()) => return Ok(Held { lock: self, _turn: turn }),
                Err(Errno::INTR) => {}
                // The kernel looks for deadlocks between processes, not threads: one process with a
                // thread in each of two queues looks like one to it. The order of our locks
                // (login, then queue) leaves no real deadlock.
                Err(Errno::DEADLK) => std::thread::sleep(Duration::from_millis(1)),
                Err(errno) => return Err(Error::file(&self.path, "lock", errno)),
            }
        }
    }

    /// The lock, if nobody has it.
    pub(crate) fn try_hold(&self) -> Option<Held<'_>> {
        let turn = self.turn.try_lock().ok()?;
        fcntl_lock(&self.file, FlockOperation::NonBlockingLockExclusive).ok()?;
        Some(Held { lock: self, _turn: turn })
    }
}

impl Drop for Held<'_> {
    fn drop(&mut self) {
        // Nothing can be done about a failure, and there is none for a lock that is held.
        fcntl_lock(&self.lock.file, FlockOperation::Unlock).unwrap_or_default();
    }
}

fn inode(metadata: &std::fs::Metadata) -> Inode {
    Inode { device: metadata.dev(), number: metadata.ino() }
}

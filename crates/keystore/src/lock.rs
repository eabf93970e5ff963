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
use rustix::process::{Flock, FlockType, Pid, fcntl_getlk};
use std::fs::File;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::{Duration, Instant};

/// How long to wait for other processes: many times as long as the longest of ours holds a lock.
const PATIENCE: Duration = Duration::from_secs(10);
/// What is left of it, at least, for a thread that other threads of its process have kept waiting.
const LEAST_PATIENCE: Duration = Duration::from_secs(1);
/// The kernel's own queue of waiters knows no end, so a lock that is taken is asked for again after
/// a pause: shorter than a commit, so that writers lose nothing by it.
const FIRST_PAUSE: Duration = Duration::from_micros(50);
const LAST_PAUSE: Duration = Duration::from_micros(250);

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

    /// Waits for the lock, behind the threads of this process and all other processes, but not for
    /// ever: a process that never gives it up must not hang the host of this one.
    ///
    /// # Errors
    /// [`Error::File`], which names the process that has the lock.
    pub(crate) fn hold(&self) -> Result<Held<'_>> {
        let begun = Instant::now();
        let turn = self.turn.lock().unwrap_or_else(PoisonError::into_inner);
        // The threads of this process have waited for one another, and did not all come first.
        let patience = PATIENCE.saturating_sub(begun.elapsed()).max(LEAST_PATIENCE);
        let begun = Instant::now();
        let mut pause = FIRST_PAUSE;
        loop {
            match fcntl_lock(&self.file, FlockOperation::NonBlockingLockExclusive) {
                Ok(()) => return Ok(Held { lock: self, _turn: turn }),
                Err(Errno::INTR) => {}
                Err(Errno::AGAIN | Errno::ACCESS) if begun.elapsed() < patience => {
                    std::thread::sleep(pause);
                    pause = (pause * 2).min(LAST_PAUSE);
                }
                Err(Errno::AGAIN | Errno::ACCESS) => return Err(self.held_by_another(patience)),
                Err(errno) => return Err(Error::file(&self.path, "lock", errno)),
            }
        }
    }

    fn held_by_another(&self, patience: Duration) -> Error {
        let wanted = Flock::from(FlockType::WriteLock);
        let holder = fcntl_getlk(&self.file, &wanted).ok().flatten().and_then(|lock| lock.pid);
        // None, or a negative number, for a process of another namespace or a lock of another kind.
        let holder = match holder.map(Pid::as_raw_nonzero) {
            Some(pid) if pid.get() > 0 => format!("process {pid}"),
            _ => String::from("another process"),
        };
        let reason = format!("{holder} has held it for {} seconds", patience.as_secs());
        Error::file(&self.path, "lock", reason)
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

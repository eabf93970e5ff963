// SPDX-License-Identifier: Apache-2.0
//! A lock among threads and processes: a mutex before an `fcntl` lock of a file of its own.
//!
//! An `fcntl` lock ends with its process whatever children live on, but it belongs to the process
//! as a whole: two descriptors of one file share it, and closing either gives it up. Hence one
//! descriptor per file and process, however many stores are opened.

use crate::descriptors::Open;
use crate::error::{Error, Result};
use crate::files::{self, Inode, process};
use metaslot_memory::{PerProcess, lock_whole, unlock_whole};
use rustix::fs::{FlockOperation, Mode, fcntl_lock, lstat};
use rustix::io::Errno;
use rustix::process::{Flock, FlockType, Pid, fcntl_getlk};
use std::fs::File;
use std::ops::Deref;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::{Duration, Instant};

/// How long to wait for another process that holds a lock: many times as long as the longest of ours does. On a disk that others
/// write gigabytes to, a token that is made has taken more than ten seconds.
const PATIENCE: Duration = Duration::from_secs(30);
/// How long to wait for all of them. Hundreds of processes that log in at once wait for one another, and a machine that is busy
/// makes each attempt take seconds.
const LONGEST: Duration = Duration::from_secs(120);
/// What is left of it, at least, for a thread that other threads of its process have kept waiting.
const LEAST_PATIENCE: Duration = Duration::from_secs(1);
/// The kernel's own queue of waiters knows no end, so a lock that is taken is asked for again after
/// a pause: at first shorter than a commit, so that writers lose nothing by it, then a share of the time that was waited, so
/// that hundreds who wait leave the processor to the one who has it.
const FIRST_PAUSE: Duration = Duration::from_micros(50);
const LAST_PAUSE: Duration = Duration::from_millis(10);
const SHARE: u32 = 16;

/// One lock file.
#[derive(Debug)]
pub(crate) struct Lock {
    path: PathBuf,
    pub(crate) inode: Inode,
    /// None only while this goes away.
    file: Option<Arc<Open>>,
    turn: Mutex<Option<Vain>>,
}

/// Who has the lock of a file, as far as a thread that waits for it has seen.
#[derive(Clone, Copy, Debug)]
struct Holder {
    pid: Option<Pid>,
    since: Instant,
}

/// What the last thread waited for until it gave up.
#[derive(Clone, Copy, Debug)]
struct Vain {
    holder: Holder,
    until: Instant,
}

/// The lock, held.
#[derive(Debug)]
pub(crate) struct Held<'a> {
    lock: &'a Lock,
    _turn: MutexGuard<'a, Option<Vain>>,
}

/// A lock file that is open, whether or not its lock is on the way out.
struct Known {
    file: Arc<Open>,
    lock: Weak<Lock>,
}

/// Every lock file open in this process. A file is opened and closed with this locked only: one that
/// is closed late would take away the lock that was taken with the next.
static KNOWN: PerProcess<Mutex<Vec<Known>>> = PerProcess::new(|_| Mutex::default());

fn known() -> MutexGuard<'static, Vec<Known>> {
    KNOWN.get().lock().unwrap_or_else(PoisonError::into_inner)
}

impl Lock {
    /// The one lock of this file, made where it is missing.
    ///
    /// # Errors
    /// [`Error::WriteProtected`] when it may not be written.
    pub(crate) fn open(path: &Path, mode: Mode) -> Result<Arc<Self>> {
        let mut known = known();
        if let Ok(stat) = lstat(path) {
            let here = Inode::of(&stat);
            // Of one that the host has closed the lock is lost.
            let mut known = known.iter_mut().filter(|known| !known.file.is_lost());
            if let Some(known) = known.find(|known| known.file.inode == here) {
                // The other lock under this name would be waited for by a thread that has it.
                files::check_own(path, &stat)?;
                return Ok(known.lock.upgrade().unwrap_or_else(|| known.revive(path)));
            }
        }
        let file = Open::new(files::open_own(path, mode)?);
        let file = Arc::new(file.map_err(|errno| Error::file(path, "open", errno))?);
        known.push(Known { file, lock: Weak::new() });
        let newest = known.last_mut().ok_or(Error::Memory)?;
        Ok(newest.revive(path))
    }

    /// Waits for the lock, behind the threads of this process and all other processes, but not for
    /// ever: a process that never gives it up must not hang the host of this one.
    ///
    /// # Errors
    /// [`Error::File`], which names the process that has the lock.
    pub(crate) fn hold(&self) -> Result<Held<'_>> {
        let begun = Instant::now();
        let mut turn = self.turn.lock().unwrap_or_else(PoisonError::into_inner);
        let mut holder = Holder::seen_by_one_before(*turn, begun);
        let pid = || self.holder()?.pid;
        let take = || self.control(FlockOperation::NonBlockingLockExclusive);
        let taken = wait(PATIENCE, &mut holder, take, pid);
        *turn = taken.err().map(|_| Vain { holder, until: Instant::now() });
        match taken {
            Ok(()) => Ok(Held { lock: self, _turn: turn }),
            Err(Errno::AGAIN | Errno::ACCESS) => Err(self.held_by_another(&holder)),
            Err(errno) => Err(Error::file(&self.path, "lock", errno)),
        }
    }

    fn control(&self, operation: FlockOperation) -> std::result::Result<(), Errno> {
        fcntl_lock(self.file.as_ref().ok_or(Errno::BADF)?.file()?, operation)
    }

    /// Another process's lock, where there is one.
    fn holder(&self) -> Option<Flock> {
        fcntl_getlk(self.file.as_ref()?.file().ok()?, &Flock::from(FlockType::WriteLock)).ok()?
    }

    fn held_by_another(&self, last: &Holder) -> Error {
        let holder = self.holder();
        let holder = holder.map_or_else(|| String::from("another process"), |it| process(&it));
        let reason = match last.since.elapsed() {
            waited if waited < PATIENCE => {
                String::from("other processes had it in turn for too long")
            }
            waited => format!("{holder} has held it for {} seconds", waited.as_secs()),
        };
        Error::file(&self.path, "lock", reason)
    }

    /// Whether the host has closed it.
    pub(crate) fn is_lost(&self) -> bool {
        self.file.as_ref().is_none_or(|file| file.is_lost())
    }

    /// The lock, if it is free.
    pub(crate) fn try_hold(&self) -> Option<Held<'_>> {
        let turn = self.turn.try_lock().ok()?;
        self.control(FlockOperation::NonBlockingLockExclusive).ok()?;
        Some(Held { lock: self, _turn: turn })
    }
}

impl Holder {
    /// No one yet.
    fn none() -> Self {
        Self { pid: None, since: Instant::now() }
    }

    /// What a thread knows that waited since `begun` behind those of its process: where the last of them gave up, it waited for the same.
    fn seen_by_one_before(last: Option<Vain>, begun: Instant) -> Self {
        let now = Self::none();
        let Some(Vain { holder, .. }) = last.filter(|last| begun < last.until) else { return now };
        let waited = now.since.saturating_duration_since(holder.since.max(begun));
        let counted = waited.min(PATIENCE - LEAST_PATIENCE);
        Self { since: now.since.checked_sub(counted).unwrap_or(now.since), ..holder }
    }
}

/// Waits for the lock that `take` asks for: so long at most for each process that has it in turn, as `pid` says.
fn wait(
    patience: Duration,
    holder: &mut Holder,
    take: impl Fn() -> std::result::Result<(), Errno>,
    pid: impl Fn() -> Option<Pid>,
) -> std::result::Result<(), Errno> {
    let begun = Instant::now();
    loop {
        match take() {
            Err(Errno::INTR) => {}
            Err(Errno::AGAIN | Errno::ACCESS) if begun.elapsed() < LONGEST => {
                let pause = pause(begun.elapsed());
                // One who waits briefly need not ask.
                let now = if pause == LAST_PAUSE { pid() } else { holder.pid };
                if now != holder.pid {
                    *holder = Holder { pid: now, since: Instant::now() };
                }
                if holder.since.elapsed() >= patience {
                    return Err(Errno::AGAIN);
                }
                std::thread::sleep(pause);
            }
            done => return done,
        }
    }
}

/// A file of which this open one may have the lock: another that the process closes does not take it along.
#[derive(Debug)]
pub(crate) struct LockedFile(File);

impl LockedFile {
    pub(crate) const fn unlocked(file: File) -> Self {
        Self(file)
    }

    /// Waits for the lock. A file system may have none.
    ///
    /// # Errors
    /// [`Error::File`] where it is not given up.
    pub(crate) fn hold(file: File, path: &Path) -> Result<Self> {
        let take = || match lock_whole(&file) {
            // A file system may know only the locks of processes.
            Err(error) if Errno::from_io_error(&error) == Some(Errno::INVAL) => {
                fcntl_lock(&file, FlockOperation::NonBlockingLockExclusive)
            }
            taken => taken.map_err(|error| Errno::from_io_error(&error).unwrap_or(Errno::IO)),
        };
        match wait(PATIENCE, &mut Holder::none(), take, || None) {
            Err(Errno::AGAIN | Errno::ACCESS) => {
                let reason = format!("another has held it for {} seconds", PATIENCE.as_secs());
                Err(Error::file(path, "lock", reason))
            }
            _ => Ok(Self(file)),
        }
    }
}

impl Deref for LockedFile {
    type Target = File;

    fn deref(&self) -> &File {
        &self.0
    }
}

impl Drop for LockedFile {
    fn drop(&mut self) {
        // A child that was forked without the C library's knowledge may have the file open for long.
        unlock_whole(&self.0).unwrap_or_default();
    }
}

/// How long to wait before a lock is asked for again.
fn pause(waited: Duration) -> Duration {
    (waited / SHARE).clamp(FIRST_PAUSE, LAST_PAUSE)
}

impl Known {
    /// A lock on the descriptor that is there, after the one before has gone.
    fn revive(&mut self, path: &Path) -> Arc<Lock> {
        let file = Some(Arc::clone(&self.file));
        let (path, inode) = (path.to_owned(), self.file.inode);
        let lock = Arc::new(Lock { path, inode, file, turn: Mutex::default() });
        self.lock = Arc::downgrade(&lock);
        lock
    }
}

impl Drop for Lock {
    fn drop(&mut self) {
        let mut known = known();
        let Some(file) = self.file.take() else { return };
        known.retain(|known| !Arc::ptr_eq(&known.file, &file) || known.lock.strong_count() > 0);
        drop(file);
    }
}

impl Drop for Held<'_> {
    fn drop(&mut self) {
        // Nothing can be done about a failure, and there is none for a lock that is held.
        self.lock.control(FlockOperation::Unlock).unwrap_or_default();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;
    use std::os::unix::fs::MetadataExt;

    fn path(name: &str) -> PathBuf {
        std::env::temp_dir().join(format!("metaslot-keystore-{}-{name}", std::process::id()))
    }

    #[test]
    fn a_lock_that_is_open_is_not_had_by_a_second_name() {
        let (queue, login) = (path("queue.lock"), path("login.lock"));
        let open = Lock::open(&queue, Mode::RUSR | Mode::WUSR).unwrap();
        fs::hard_link(&queue, &login).unwrap();
        let second = Lock::open(&login, Mode::RUSR | Mode::WUSR);
        fs::remove_file(&login).unwrap();
        assert!(matches!(second, Err(Error::Unsafe { .. })), "{second:?}");
        Lock::open(&queue, Mode::RUSR | Mode::WUSR).unwrap();
        drop(open);
        fs::remove_file(&queue).unwrap();
    }

    #[test]
    fn who_waits_long_asks_seldom_and_not_late() {
        let (mut waited, mut asked) = (Duration::ZERO, 0);
        while waited < Duration::from_secs(10) {
            let pause = pause(waited);
            assert!(pause <= FIRST_PAUSE.max(waited / 10), "{waited:?}");
            waited += pause;
            asked += 1;
        }
        assert!(asked < 2_000, "{asked}");
    }

    #[test]
    fn a_locked_file_stays_so_whatever_else_of_its_name_is_closed() {
        let path = path("file.lock");
        let open = || File::options().append(true).create(true).open(&path).unwrap();
        let held = LockedFile::hold(open(), &path).unwrap();
        drop(open());
        let other = open();
        lock_whole(&other).unwrap_err();
        let inherited = held.try_clone().unwrap();
        drop(held);
        lock_whole(&other).unwrap();
        drop((inherited, other));
        fs::remove_file(&path).unwrap();
    }

    #[test]
    fn a_lock_that_goes_round_is_waited_for_and_one_that_stays_is_not() {
        let patience = Duration::from_millis(500);
        let wait = |until: Duration, each: Duration| {
            let begun = Instant::now();
            let take = || if begun.elapsed() < until { Err(Errno::AGAIN) } else { Ok(()) };
            let turn = || i32::try_from(begun.elapsed().as_millis() / each.as_millis()).unwrap();
            wait(patience, &mut Holder::none(), take, || Pid::from_raw(turn() + 1))
        };
        assert_eq!(wait(4 * patience, patience / 4), Ok(()));
        assert_eq!(wait(40 * patience, 80 * patience), Err(Errno::AGAIN));
    }

    #[test]
    fn a_thread_behind_others_waits_for_each_process_as_long_as_the_first() {
        let (now, first) = (Instant::now(), Pid::from_raw(1));
        let ago = |time: Duration| now.checked_sub(time).unwrap();
        let left = |last: Option<Vain>, begun| {
            let holder = Holder::seen_by_one_before(last, begun);
            (holder.pid, (PATIENCE - holder.since.elapsed()).as_secs_f64().round())
        };
        let (all, half) = (PATIENCE, PATIENCE / 2);
        // Others of its process had the lock, or gave up before it came.
        let seconds = PATIENCE.as_secs_f64();
        assert_eq!(left(None, ago(3 * all)), (None, seconds));
        let vain = Some(Vain { holder: Holder { pid: first, since: ago(all) }, until: now });
        assert_eq!(left(vain, Instant::now()), (None, seconds));
        assert_eq!(left(vain, ago(half)), (first, seconds / 2.0));
        assert_eq!(left(vain, ago(3 * all)), (first, 1.0));
        // The process before it gave up to another.
        let mut holder = Holder::seen_by_one_before(vain, ago(3 * all));
        let begun = Instant::now();
        let take = || match begun.elapsed() < 2 * LEAST_PATIENCE {
            true => Err(Errno::AGAIN),
            false => Ok(()),
        };
        assert_eq!(wait(PATIENCE, &mut holder, take, || Pid::from_raw(2)), Ok(()));
    }

    /// Whether this process has a lock on the file, as the kernel says.
    fn is_locked(path: &Path) -> bool {
        let number = fs::metadata(path).unwrap().ino();
        let ours = format!(" {} ", std::process::id());
        let here = format!(":{number} ");
        let locks = fs::read_to_string("/proc/locks").unwrap();
        locks.lines().any(|line| line.contains(&ours) && line.contains(&here))
    }

    #[test]
    fn a_late_close_takes_no_newer_lock_away() {
        let path = path("late.lock");
        let mode = Mode::RUSR | Mode::WUSR;
        let first = Lock::open(&path, mode).unwrap();
        let gone = Arc::downgrade(&first);
        // Its last owner is about to close it, and another thread is faster.
        let last = std::thread::scope(|scope| {
            let mut table = known();
            let last = scope.spawn(move || drop(first));
            while gone.strong_count() > 0 {
                std::thread::yield_now();
            }
            let here = Inode::of(&lstat(&path).unwrap());
            let newer = table.iter_mut().find(|known| known.file.inode == here);
            let newer = newer.expect("it is open still").revive(&path);
            drop(table);
            let held = newer.try_hold().expect("it is free");
            last.join().expect("no panic");
            assert!(is_locked(&path), "the first close gave it up");
            drop(held);
            assert!(!is_locked(&path));
            Arc::downgrade(&newer)
        });
        assert_eq!(last.strong_count(), 0);
        let descriptors = fs::read_dir("/proc/self/fd").unwrap();
        let is_open = |entry: fs::DirEntry| fs::read_link(entry.path()).is_ok_and(|to| to == path);
        assert!(!descriptors.flatten().any(is_open), "nothing stays open");
        fs::remove_file(&path).unwrap();
    }
}

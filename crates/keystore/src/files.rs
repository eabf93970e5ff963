// SPDX-License-Identifier: Apache-2.0
//! The files of a store: where they are, who may have them, and how they come into being.

use crate::error::{Error, Result};
use rustix::fs::{self, AtFlags, FallocateFlags, FileType, Mode, OFlags, StatxFlags};
use rustix::io::{Errno, pread};
use rustix::process::{Flock, FlockType, Pid, fcntl_getlk};
use rustix::time::{ClockId, Timespec, clock_gettime};
use std::ffi::OsString;
use std::fs::File;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

/// What an empty log keeps, in bytes: a count changes one page, and each page is a little longer in the log.
const LOG_ROOM: u64 = 1 << 16;

/// What is wrong with a database that has a log and nothing else.
const EMPTIED: &str = "the file is empty, and was not: what was in it is lost, by a full disk perhaps; move it away with all that \
                       begins with its name, then 'metaslot token restore' takes a copy";

/// The names, with every link in the directory's own path resolved.
#[derive(Clone, Debug)]
pub(crate) struct Files {
    pub(crate) database: PathBuf,
    pub(crate) queue: PathBuf,
    pub(crate) login: PathBuf,
    pub(crate) generation: PathBuf,
    /// SQLite's own.
    logs: [PathBuf; 3],
}

impl Files {
    /// The names as configured; the directory need not exist.
    pub(crate) fn new(database: &Path) -> Self {
        let beside = |suffix: &str| {
            let mut name = OsString::from(database);
            name.push(suffix);
            PathBuf::from(name)
        };
        Self {
            database: database.to_owned(),
            queue: beside(".lock"),
            login: beside(".login"),
            generation: beside(".gen"),
            logs: ["-journal", "-wal", "-shm"].map(beside),
        }
    }

    /// The same with the directory's real path: the last component may not be a link, the
    /// others may.
    pub(crate) fn resolve(&self) -> Result<Self> {
        let directory = directory(&self.database);
        let real = directory.canonicalize().map_err(|error| match error.kind() {
            std::io::ErrorKind::NotFound => Error::Uninitialized { path: self.database.clone() },
            std::io::ErrorKind::OutOfMemory => Error::Memory,
            _ => Error::file(directory, "open", error),
        })?;
        let name = self
            .database
            .file_name()
            .ok_or_else(|| Error::file(&self.database, "open", "a file name is missing"))?;
        Ok(Self::new(&real.join(name)))
    }

    /// Refuses places that other people could change under our hands.
    pub(crate) fn check_directory(&self) -> Result<()> {
        let path = directory(&self.database);
        let stat = fs::stat(path).map_err(|errno| Error::file(path, "open", errno))?;
        let mode = Mode::from_raw_mode(stat.st_mode);
        let ours = stat.st_uid == rustix::process::geteuid().as_raw();
        let refuse =
            |reason: &str| Err(Error::Unsafe { path: path.to_owned(), reason: reason.to_owned() });
        if mode.contains(Mode::WOTH) {
            return refuse("every user may write this directory");
        }
        // A store for service users has a setgid directory, made by root or by its owner.
        let for_group = mode.contains(Mode::SGID);
        if mode.contains(Mode::WGRP) && !ours && !for_group {
            return refuse("a group may write this directory, and it belongs to another user");
        }
        if !ours && stat.st_uid != 0 && !for_group {
            return refuse("this directory belongs to another user");
        }
        Ok(())
    }

    /// Whether there is a database into which something was written.
    ///
    /// # Errors
    /// [`Error::NotToken`] for an empty one that has a log: that is made with the first page, so there was something.
    pub(crate) fn has_database(&self) -> Result<bool> {
        match fs::lstat(&self.database) {
            Ok(stat) => {
                // Under another name it would have another log.
                check_own(&self.database, &stat)?;
                match Mode::from_raw_mode(stat.st_mode).contains(Mode::WOTH) {
                    true => Err(Error::Unsafe {
                        path: self.database.clone(),
                        reason: "every user may write it".to_owned(),
                    }),
                    false if stat.st_size > 0 => Ok(true),
                    false if self.has_log() => Err(Error::NotToken {
                        path: self.database.clone(),
                        reason: String::from(EMPTIED),
                    }),
                    false => Ok(false),
                }
            }
            Err(Errno::NOENT | Errno::NOTDIR) => Ok(false),
            Err(errno) => Err(Error::file(&self.database, "open", errno)),
        }
    }

    fn has_log(&self) -> bool {
        let [_, log, _] = &self.logs;
        fs::lstat(log).is_ok()
    }

    /// What the directory says of the names in it. `None` where it cannot tell.
    pub(crate) fn stamp(&self) -> Option<Stamp> {
        let now = clock_gettime(ClockId::RealtimeCoarse);
        let stat = fs::stat(directory(&self.database)).ok()?;
        Stamp::of(&stat, now)
    }

    /// What SQLite has open, as it is under its names now: the database, its log, the log's index.
    pub(crate) fn inodes(&self) -> Looked<Inodes> {
        let [_, log, index] = &self.logs;
        Ok([Inode::at(&self.database)?, Inode::at(log)?, Inode::at(index)?])
    }

    /// Refuses what would keep SQLite waiting, or have it write elsewhere, in the place of the files
    /// that it keeps beside the database.
    pub(crate) fn check_logs(&self) -> Result<()> {
        for log in &self.logs {
            match fs::lstat(log) {
                Ok(stat) => check_own(log, &stat)?,
                Err(Errno::NOENT) => {}
                Err(errno) => return Err(Error::file(log, "open", errno)),
            }
        }
        Ok(())
    }

    /// Takes the log's index away where it is that of another log, which was replaced while processes had the database closed and
    /// the index in use: SQLite would read and write by it. A log that SQLite begins anew is no such log, because the index says
    /// first that it is empty. This process has no connection to it.
    pub(crate) fn check_index(&self) {
        let [_, log, index] = &self.logs;
        let head = read_head::<INDEX_HEAD>(index);
        let Some(frames) = head.as_ref().and_then(|(head, _)| IndexHead::of(head)) else { return };
        let is_its =
            read_head::<LOG_HEAD>(log).is_some_and(|(log, length)| frames.are_in(&log, length));
        // It may have changed between both looks.
        if !is_its && read_head::<INDEX_HEAD>(index) == head {
            remove([index]).unwrap_or_default();
        }
    }

    /// Has every process make the log's index anew: one that another process has made knows nothing of what was done to the log by the one
    /// before. The writers' queue is held.
    pub(crate) fn forget_index(&self) {
        let [_, _, index] = &self.logs;
        remove([index]).unwrap_or_default();
    }

    /// Whether it lies where nobody can write, without a log: SQLite could neither make one nor do without.
    pub(crate) fn is_frozen(&self) -> bool {
        let [_, log, _] = &self.logs;
        fs::lstat(log).is_err_and(|errno| errno == Errno::NOENT) && is_read_only(&self.database)
    }

    /// The name of a database that no user can write, as SQLite reads it without locks and a log.
    pub(crate) fn immutable(&self) -> String {
        let mut name = String::from("file:");
        for byte in self.database.as_os_str().as_bytes() {
            match byte {
                b'/' | b'.' | b'-' | b'_' => name.push(char::from(*byte)),
                byte if byte.is_ascii_alphanumeric() => name.push(char::from(*byte)),
                byte => name.push_str(&format!("%{byte:02X}")),
            }
        }
        name + "?immutable=1"
    }

    /// Gives an empty log the space of some pages, where the file system knows how: a full disk then has room for the count of
    /// an attempt. Its content stays as it is for every user.
    pub(crate) fn reserve_log(&self) {
        let [_, log, _] = &self.logs;
        let flags = OFlags::WRONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
        let file = fs::open(log, flags, Mode::empty());
        let space = |file| fs::fallocate(file, FallocateFlags::KEEP_SIZE, 0, LOG_ROOM);
        file.and_then(space).unwrap_or_default();
    }

    /// Takes away what a database that is gone has left.
    pub(crate) fn remove_remains(&self) -> Result<()> {
        remove([&self.database].into_iter().chain(&self.logs))
    }

    /// Takes the log away of a token whose removal was killed, where a new database has its name. Both locks are held.
    pub(crate) fn begin(&self) -> Result<()> {
        match fs::lstat(&self.database) {
            Ok(stat) if stat.st_size == 0 => remove(&self.logs),
            _ => Ok(()),
        }
    }

    /// Takes all files away.
    pub(crate) fn remove(&self) -> Result<()> {
        self.remove_remains()?;
        remove([&self.generation, &self.login, &self.queue])?;
        self.sync_directory()
    }

    /// SQLite's index of its log.
    pub(crate) fn index(&self) -> &Path {
        let [_, _, index] = &self.logs;
        index
    }

    /// Another process that has the database open, where that can be known: as long as it has a log SQLite shares a lock on
    /// the database. This process has it closed, or its own locks would go.
    pub(crate) fn user(&self) -> Result<Option<String>> {
        let path = &self.database;
        let flags = OFlags::RDWR | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
        let file = match fs::open(path, flags, Mode::empty()) {
            Ok(file) => file,
            Err(Errno::NOENT) => return Ok(None),
            Err(errno) => return Err(Error::system(path, "open", errno)),
        };
        let wanted = Flock::from(FlockType::WriteLock);
        let held = fcntl_getlk(&file, &wanted);
        let held = held.map_err(|errno| Error::system(path, "lock", errno))?;
        Ok(held.map(|lock| process(&lock)))
    }

    /// Makes the directory where it is missing, 0700, or 2770 for a group; an empty one is given
    /// to the group, and any other one must be the group's.
    pub(crate) fn create_directory(&self, group: Option<&str>) -> Result<()> {
        let path = directory(&self.database);
        let group = group.map(group_id).transpose()?;
        if path.is_dir() {
            let empty = std::fs::read_dir(path).is_ok_and(|mut entries| entries.next().is_none());
            return match group {
                Some(group) if empty => share(path, group),
                Some(group) => check_shared(path, group),
                None => Ok(()),
            };
        }
        if let Some(parent) = path.parent() {
            std::fs::create_dir_all(parent).map_err(|error| Error::io(parent, "create", &error))?;
        }
        let refused = |errno| Error::system(path, "create", errno);
        match fs::mkdir(path, Mode::RWXU) {
            Ok(()) => {}
            Err(Errno::EXIST) => return Ok(()),
            Err(errno) => return Err(refused(errno)),
        }
        group.map_or(Ok(()), |group| share(path, group))
    }

    /// The mode for our files: as the database has it or, while there is none, as configured.
    pub(crate) fn mode(&self, group: bool) -> Mode {
        let own = Mode::RUSR | Mode::WUSR;
        let shared = own | Mode::RGRP | Mode::WGRP;
        match fs::lstat(&self.database) {
            Ok(stat) => Mode::from_raw_mode(stat.st_mode) & shared | own,
            Err(_) if group => shared,
            Err(_) => own,
        }
    }

    /// The file that counts commits.
    pub(crate) fn open_generation(&self) -> Result<File> {
        open_own(&self.generation, self.mode(false))
    }

    /// Makes names durable.
    pub(crate) fn sync_directory(&self) -> Result<()> {
        let path = directory(&self.database);
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let opened = fs::open(path, flags, Mode::empty());
        opened.and_then(fs::fsync).map_err(|errno| Error::system(path, "sync", errno))
    }
}

/// The two copies of the head of a log's index, and the head of a log (SQLite's `WalIndexHdr`, and "WAL File Format").
const INDEX_HEAD: usize = 2 * 48;
const LOG_HEAD: usize = 32;

/// How a file begins, and its length.
fn read_head<const N: usize>(path: &Path) -> Option<([u8; N], u64)> {
    let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
    let file = fs::open(path, flags, Mode::empty()).ok()?;
    let mut head = [0; N];
    let read = pread(&file, &mut head, 0).ok()?;
    let length = fs::fstat(&file).ok()?.st_size;
    (read == N).then_some((head, u64::try_from(length).unwrap_or(0)))
}

/// What the head of an index says of its log.
struct IndexHead {
    frames: u64,
    page: u64,
    salt: [u8; 8],
}

impl IndexHead {
    /// None where it says that it is empty, or SQLite makes it anew.
    fn of(head: &[u8; INDEX_HEAD]) -> Option<Self> {
        let (one, other) = head.split_at(INDEX_HEAD / 2);
        let page = u64::from(u16::from_ne_bytes(*one.get(14..)?.first_chunk()?));
        let frames = u64::from(u32::from_ne_bytes(*one.get(16..)?.first_chunk()?));
        let salt = *one.get(32..)?.first_chunk()?;
        // A page of 65,536 bytes is written as 1.
        let page = page & 0xfe00 | (page & 1) << 16;
        (one == other && one.get(12) == Some(&1) && frames > 0).then_some(Self {
            frames,
            page,
            salt,
        })
    }

    fn are_in(&self, log: &[u8; LOG_HEAD], length: u64) -> bool {
        let end = LOG_HEAD as u64 + self.frames * (24 + self.page);
        log.get(16..24) == Some(&self.salt[..]) && length >= end
    }
}

fn remove<'a>(paths: impl IntoIterator<Item = &'a PathBuf>) -> Result<()> {
    for path in paths {
        match fs::unlink(path) {
            Ok(()) | Err(Errno::NOENT) => {}
            Err(errno) => return Err(Error::system(path, "remove", errno)),
        }
    }
    Ok(())
}

/// A directory, and when names in it were last changed: where that is the same, every name in it means the same file.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) struct Stamp {
    directory: Inode,
    changed: (i64, u64),
}

impl Stamp {
    /// File systems count time in steps of up to a second. What has changed this long ago, in seconds, has
    /// another time after the next change.
    const SETTLED: i64 = 2;

    fn of(stat: &fs::Stat, now: Timespec) -> Option<Self> {
        // The root of a FAT file system has no time.
        let is_settled = stat.st_ctime > 0 && stat.st_ctime < now.tv_sec - Self::SETTLED;
        let changed = (stat.st_ctime, stat.st_ctime_nsec);
        is_settled.then_some(Self { directory: Inode::of(stat), changed })
    }
}

/// What is found under names; an error where this process cannot look, as after `setuid` or `chroot`: it goes on with
/// what it has open.
pub(crate) type Looked<T> = std::result::Result<T, Errno>;

/// The database, its log, the log's index.
pub(crate) type Inodes = [Option<Inode>; 3];

/// Whether names mean what they meant when this was asked first.
pub(crate) fn has_first_root() -> bool {
    static FIRST: OnceLock<Option<Inode>> = OnceLock::new();
    let now = fs::lstat("/").ok().map(|stat| Inode::of(&stat));
    now == *FIRST.get_or_init(|| now)
}

/// A file, whatever its name.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) struct Inode {
    device: u64,
    number: u64,
}

impl Inode {
    pub(crate) const fn new(device: u64, number: u64) -> Self {
        Self { device, number }
    }

    pub(crate) const fn of(stat: &fs::Stat) -> Self {
        Self::new(stat.st_dev, stat.st_ino)
    }

    /// What has this name, if anything has.
    fn at(path: &Path) -> Looked<Option<Self>> {
        match fs::lstat(path) {
            Ok(stat) => Ok(Some(Self::of(&stat))),
            Err(Errno::NOENT | Errno::NOTDIR) if has_first_root() => Ok(None),
            Err(errno) => Err(errno),
        }
    }

    /// Whether another file has this name now, or none.
    pub(crate) fn has_lost(self, path: &Path) -> bool {
        Self::at(path).is_ok_and(|now| now != Some(self))
    }
}

/// Who has a lock, in words. Of a process of another name space nothing is known.
pub(crate) fn process(lock: &Flock) -> String {
    match lock.pid.map(Pid::as_raw_nonzero) {
        Some(pid) if pid.get() > 0 => format!("process {pid}"),
        _ => String::from("another process"),
    }
}

/// Opens a file of ours for reading and writing, and makes it where it is missing. What another program
/// has put in its place is refused: a pipe, a device, a second name of another file.
pub(crate) fn open_own(path: &Path, mode: Mode) -> Result<File> {
    let file = open_or_make(path, mode)?;
    check_own(path, &fs::fstat(&file).map_err(|errno| Error::file(path, "open", errno))?)?;
    Ok(file)
}

pub(crate) fn check_own(path: &Path, stat: &fs::Stat) -> Result<()> {
    let refuse =
        |reason: &str| Err(Error::Unsafe { path: path.to_owned(), reason: reason.to_owned() });
    if FileType::from_raw_mode(stat.st_mode) != FileType::RegularFile {
        return refuse("not a regular file");
    }
    if stat.st_nlink > 1 { refuse("it has a second name") } else { Ok(()) }
}

fn open_or_make(path: &Path, mode: Mode) -> Result<File> {
    let flags = OFlags::RDWR | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
    let refused = |errno| Error::system(path, "open", errno);
    match fs::open(path, flags, Mode::empty()) {
        Ok(file) => return Ok(file.into()),
        Err(Errno::NOENT) => {}
        Err(errno) => return Err(refused(errno)),
    }
    match fs::open(path, flags | OFlags::CREATE | OFlags::EXCL, mode) {
        Ok(file) => {
            // The umask may have taken the group's bits away.
            fs::fchmod(&file, mode).map_err(refused)?;
            Ok(file.into())
        }
        Err(Errno::EXIST) => fs::open(path, flags, Mode::empty()).map(File::from).map_err(refused),
        Err(errno) => Err(refused(errno)),
    }
}

/// Whether nobody can write a file where it is: it and its directory are in one mount, and that is read-only here. A file that is
/// mounted by itself has its log elsewhere, where others write it. Before Linux 5.8 that cannot be told.
pub(crate) fn is_read_only(path: &Path) -> bool {
    let directory = directory(path);
    let mount = |path: &Path| {
        let stat = fs::statx(fs::CWD, path, AtFlags::empty(), StatxFlags::MNT_ID).ok()?;
        let known = StatxFlags::from_bits_retain(stat.stx_mask).contains(StatxFlags::MNT_ID);
        known.then_some(stat.stx_mnt_id)
    };
    let system = fs::statvfs(directory);
    system.is_ok_and(|system| system.f_flag.contains(fs::StatVfsMountFlags::RDONLY))
        && mount(path).is_some_and(|of_file| mount(directory) == Some(of_file))
}

/// The directory of a file.
pub(crate) fn directory(database: &Path) -> &Path {
    match database.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => parent,
        _ => Path::new("."),
    }
}

/// Gives a directory, and all that will be made in it, to a group.
fn share(path: &Path, group: fs::Gid) -> Result<()> {
    let refused = |errno| Error::system(path, "share", errno);
    fs::chown(path, None, Some(group)).map_err(refused)?;
    fs::chmod(path, Mode::RWXU | Mode::RWXG | Mode::SGID).map_err(refused)
}

/// Whether what is made in a directory is a group's; otherwise it would be of its maker's group.
fn check_shared(path: &Path, group: fs::Gid) -> Result<()> {
    let stat = fs::stat(path).map_err(|errno| Error::system(path, "share", errno))?;
    let needed = Mode::RWXU | Mode::RWXG | Mode::SGID;
    let has = Mode::from_raw_mode(stat.st_mode).contains(needed);
    if stat.st_gid == group.as_raw() && has {
        return Ok(());
    }
    let wanted =
        format!("it is not empty and not the group's: chgrp {}, chmod 2770", group.as_raw());
    Err(Error::file(path, "share", wanted))
}

/// A group's number, by number or by name in the group file.
fn group_id(group: &str) -> Result<fs::Gid> {
    let path = Path::new("/etc/group");
    let number = match group.parse::<u32>() {
        Ok(number) => Some(number),
        Err(_) => std::fs::read_to_string(path)
            .map_err(|error| Error::file(path, "read", error))?
            .lines()
            .filter_map(|line| line.strip_prefix(group)?.strip_prefix(':')?.split(':').nth(1))
            .find_map(|number| number.parse().ok()),
    };
    number.map(fs::Gid::from_raw).ok_or_else(|| {
        Error::file(path, "find the group", format!("there is no \"{group}\" in it"))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_directory_that_has_just_changed_tells_nothing() {
        let mut stat = fs::stat("/").unwrap();
        let now = Timespec { tv_sec: 1_000_000_000, tv_nsec: 0 };
        let mut at = |second, nanosecond| {
            (stat.st_ctime, stat.st_ctime_nsec) = (second, nanosecond);
            Stamp::of(&stat, now)
        };
        let long_ago = at(now.tv_sec - 3, 0);
        assert!(long_ago.is_some());
        assert_ne!(at(now.tv_sec - 3, 1), long_ago);
        for second in [0, now.tv_sec - 2, now.tv_sec, now.tv_sec + 3] {
            assert_eq!(at(second, 0), None, "{second}");
        }
    }
}

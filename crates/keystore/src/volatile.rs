// SPDX-License-Identifier: Apache-2.0
//! A directory in memory that only this user has: what is there is on no disk (unless memory is swapped out), and gone with
//! the next boot. It is where secrets of fast logins are that the kernel does not keep, and counts of attempts that a store
//! cannot take.

use crate::crypto;
use crate::files::Inode;
use metaslot_memory::{Secret, keyring};
use rustix::fs::{self, AtFlags, Mode, OFlags};
use rustix::io::Errno;
use rustix::process::{getegid, geteuid, getgid};
use std::fs::File;
use std::io::{Read, Write};
use std::os::fd::OwnedFd;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

/// File systems in memory.
const TMPFS: i64 = 0x0102_1994;
const RAMFS: i64 = 0x8584_58f6;
/// How the names of secrets end, also of one that is being written.
pub(crate) const SECRET: &str = ".secret";
/// Length of the time before which a secret counts, in bytes.
const EXPIRY: usize = 8;

/// Why there is none.
#[derive(Debug)]
pub(crate) struct Unfit {
    pub(crate) reason: String,
    /// Where there would be one, if nobody had taken its name or its space: anyone can do that to anyone.
    pub(crate) blocked: Option<PathBuf>,
}

impl Unfit {
    fn new(reason: impl Into<String>) -> Self {
        Self { reason: reason.into(), blocked: None }
    }

    fn blocked(path: &Path, reason: String) -> Self {
        Self { reason, blocked: Some(path.to_owned()) }
    }
}

impl From<Errno> for Unfit {
    fn from(errno: Errno) -> Self {
        match errno {
            // At each login where there is no runtime directory: the C library would read its catalogues for it.
            Errno::NOENT => Self::new("no such file or directory"),
            errno => Self::new(words(errno)),
        }
    }
}

/// The directory.
#[derive(Debug)]
pub(crate) struct Volatile {
    pub(crate) path: PathBuf,
    directory: OwnedFd,
}

/// A program with more rights than its user acts for two people: what is kept for one of them is not the other's.
pub(crate) fn is_own() -> bool {
    keyring::is_own() && getgid() == getegid()
}

/// Where it is or may be made: in the first of these directories that is in memory and where no one else can take it away.
///
/// # Errors
/// Why in none of them.
pub(crate) fn place(bases: &[PathBuf]) -> Result<PathBuf, Unfit> {
    if !is_own() {
        return Err(Unfit::new("this program has more rights than its user"));
    }
    let (mut reasons, mut blocked) = (Vec::new(), None);
    for base in bases {
        match fit(base) {
            Ok(path) => return Ok(path),
            Err(unfit) => {
                reasons.push(format!("{}: {}", base.display(), unfit.reason));
                blocked = blocked.or(unfit.blocked);
            }
        }
    }
    Err(Unfit { reason: reasons.join("; "), blocked })
}

fn fit(base: &Path) -> Result<PathBuf, Unfit> {
    let path = base.join(format!("metaslot-login-{}", geteuid().as_raw()));
    let stat = fs::stat(base)?;
    let mode = Mode::from_raw_mode(stat.st_mode);
    let ours = [0, geteuid().as_raw()].contains(&stat.st_uid);
    if !ours || (mode.intersects(Mode::WOTH | Mode::WGRP) && !mode.contains(Mode::SVTX)) {
        return Err(Unfit::new("others may rename what is in it"));
    }
    if !is_in_memory(&fs::statfs(base)?) {
        return Err(Unfit::new("is not in memory"));
    }
    match fs::lstat(&path) {
        Ok(stat) => check(&stat).map_err(|reason| Unfit::blocked(&path, reason))?,
        Err(Errno::NOENT) => {
            fs::accessat(fs::CWD, base, fs::Access::WRITE_OK, AtFlags::EACCESS)?;
        }
        Err(errno) => return Err(errno.into()),
    }
    Ok(path)
}

/// An error without its number.
pub(crate) fn words(error: impl Into<std::io::Error>) -> String {
    let text = error.into().to_string();
    text.split_once(" (os error").map_or_else(|| text.clone(), |(words, _)| words.to_lowercase())
}

fn is_in_memory(system: &fs::StatFs) -> bool {
    [TMPFS, RAMFS].contains(&system.f_type)
}

/// Whether it is a directory of this user's alone.
fn check(stat: &fs::Stat) -> Result<(), String> {
    let mode = Mode::from_raw_mode(stat.st_mode);
    let is_directory = fs::FileType::from_raw_mode(stat.st_mode) == fs::FileType::Directory;
    let is_closed = !mode.intersects(Mode::RWXG | Mode::RWXO);
    match is_directory && is_closed && stat.st_uid == geteuid().as_raw() {
        true => Ok(()),
        false => Err(String::from("something else has the name of this user's directory")),
    }
}

impl Volatile {
    /// The directory, made where it is missing.
    ///
    /// # Errors
    /// Why there is none.
    pub(crate) fn make(bases: &[PathBuf]) -> Result<Self, Unfit> {
        let path = place(bases)?;
        let made = match fs::mkdir(&path, Mode::RWXU) {
            Ok(()) | Err(Errno::EXIST) => Self::open(path.clone()),
            Err(errno) => Err(words(errno)),
        };
        made.map_err(|reason| Unfit::blocked(&path, reason))
    }

    /// The directory, where it has been made.
    pub(crate) fn find(bases: &[PathBuf]) -> Option<Self> {
        Self::open(place(bases).ok()?).ok()
    }

    fn open(path: PathBuf) -> Result<Self, String> {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let directory = fs::open(&path, flags, Mode::empty()).map_err(words)?;
        // Of what is open: the name may mean another one by now.
        check(&fs::fstat(&directory).map_err(words)?)?;
        match is_in_memory(&fs::fstatfs(&directory).map_err(words)?) {
            true => Ok(Self { path, directory }),
            false => Err(String::from("is not in memory")),
        }
    }

    /// What it is, whatever its name.
    pub(crate) fn inode(&self) -> Result<Inode, Errno> {
        fs::fstat(&self.directory).map(|stat| Inode::of(&stat))
    }

    /// Keeps a secret until a time, in the place of an older one of this name.
    pub(crate) fn keep(&self, name: &str, secret: &Secret, expires: u64) -> std::io::Result<()> {
        // Another container's process may have the same number, and one that was killed has left its file.
        let random = crypto::random::<8>().map_err(|_| std::io::ErrorKind::Other)?;
        let beside = format!(".{:016x}-{name}", u64::from_be_bytes(random));
        let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::CLOEXEC;
        let mode = Mode::RUSR | Mode::WUSR;
        let mut file = File::from(fs::openat(&self.directory, &beside, flags, mode)?);
        let written = file.write_all(&expires.to_le_bytes());
        let written = written.and_then(|()| file.write_all(secret.expose()));
        let named = written
            .and_then(|()| Ok(fs::renameat(&self.directory, &beside, &self.directory, name)?));
        if named.is_err() {
            fs::unlinkat(&self.directory, &beside, AtFlags::empty()).unwrap_or_default();
        }
        named
    }

    /// The secret of this name and length, unless its time is over.
    pub(crate) fn secret(&self, name: &str, length: usize, now: u64) -> Option<Secret> {
        let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
        let file = fs::openat(&self.directory, name, flags, Mode::empty()).ok()?;
        let mut file = File::from(file);
        let metadata = file.metadata().ok()?;
        if !metadata.is_file() || metadata.len() != (EXPIRY + length) as u64 {
            return None;
        }
        let mut expires = [0; EXPIRY];
        file.read_exact(&mut expires).ok()?;
        if u64::from_le_bytes(expires) < now {
            self.forget(name);
            return None;
        }
        let mut secret = Secret::zeroed(length);
        file.read_exact(secret.expose_mut()).ok()?;
        Some(secret)
    }

    /// Takes the secrets away whose time is over.
    pub(crate) fn sweep(&self, now: u64) {
        let Ok(entries) = fs::Dir::read_from(&self.directory) else { return };
        for entry in entries.flatten() {
            let Ok(name) = entry.file_name().to_str() else { continue };
            if name.ends_with(SECRET) && self.expires(name).is_some_and(|expires| expires < now) {
                self.forget(name);
            }
        }
    }

    /// Until when a secret counts.
    fn expires(&self, name: &str) -> Option<u64> {
        let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
        let file = File::from(fs::openat(&self.directory, name, flags, Mode::empty()).ok()?);
        let mut expires = [0; EXPIRY];
        file.read_exact_at(&mut expires, 0).ok()?;
        Some(u64::from_le_bytes(expires))
    }

    /// Takes what has this name away.
    pub(crate) fn forget(&self, name: &str) {
        fs::unlinkat(&self.directory, name, AtFlags::empty()).unwrap_or_default();
    }

    /// A file of numbers, and whether it is made where it is missing.
    pub(crate) fn numbers<const N: usize>(
        &self,
        name: &str,
        make: bool,
    ) -> Result<Numbers<N>, Errno> {
        let mut flags = OFlags::RDWR | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        flags.set(OFlags::CREATE, make);
        let mode = Mode::RUSR | Mode::WUSR;
        Ok(Numbers(fs::openat(&self.directory, name, flags, mode)?.into()))
    }
}

/// Numbers in a file, zeros at first.
#[derive(Debug)]
pub(crate) struct Numbers<const N: usize>(File);

impl<const N: usize> Numbers<N> {
    /// What stands there.
    pub(crate) fn read(&self) -> [u64; N] {
        let mut numbers = [0; N];
        for (at, number) in numbers.iter_mut().enumerate() {
            let mut bytes = [0; 8];
            if self.0.read_exact_at(&mut bytes, (at * 8) as u64).is_ok() {
                *number = u64::from_le_bytes(bytes);
            }
        }
        numbers
    }

    /// Writes some of them.
    pub(crate) fn write<const M: usize>(&self, at: usize, some: [u64; M]) -> Result<(), Errno> {
        let bytes: Vec<u8> = some.iter().flat_map(|number| number.to_le_bytes()).collect();
        let written = self.0.write_all_at(&bytes, (at * 8) as u64);
        written.map_err(|error| Errno::from_io_error(&error).unwrap_or(Errno::IO))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::{PermissionsExt, symlink};

    /// A directory in memory for one test; `None` where there is none.
    fn base(name: &str) -> Option<PathBuf> {
        let base = Path::new("/dev/shm").join(format!("metaslot-{name}-{}", std::process::id()));
        std::fs::create_dir_all(&base).ok()?;
        let is = fs::statfs(&base).is_ok_and(|system| is_in_memory(&system));
        if !is {
            std::fs::remove_dir_all(&base).unwrap_or_default();
            metaslot_testkit::not_run("keystore", "a directory in memory", "/dev/shm is on a disk");
        }
        is.then_some(base)
    }

    #[test]
    fn a_secret_is_kept_in_memory_for_this_user_and_a_time() {
        let Some(base) = base("kept") else { return };
        let bases = [PathBuf::from("/nowhere"), base.clone()];
        assert!(Volatile::find(&bases).is_none(), "nothing is made by looking");
        let place = Volatile::make(&bases).unwrap();
        let mode = |path: &Path| std::fs::metadata(path).unwrap().permissions().mode() & 0o7777;
        assert_eq!((place.path.parent(), mode(&place.path)), (Some(base.as_path()), 0o700));
        // What a process has left that was killed is in nobody's way, and goes when its time is over.
        let left = format!(".one.{}.{:?}", std::process::id(), std::thread::current().id());
        std::fs::write(place.path.join(left), "").unwrap();
        place.keep("one", &Secret::copy_of(&[1; 32]), 100).unwrap();
        place.keep("one", &Secret::copy_of(&[2; 32]), 100).unwrap();
        assert_eq!(mode(&place.path.join("one")), 0o600);
        let found = |length, now| {
            let place = Volatile::find(&bases).unwrap();
            place.secret("one", length, now).map(|secret| secret.expose().to_vec())
        };
        assert_eq!(found(32, 100), Some(vec![2; 32]));
        assert_eq!((found(16, 100), found(32, 101)), (None, None));
        assert_eq!(std::fs::read_dir(&place.path).unwrap().count(), 1, "it is taken away");
        place.keep("a.secret", &Secret::copy_of(&[1; 32]), 100).unwrap();
        std::fs::copy(place.path.join("a.secret"), place.path.join(".0-a.secret")).unwrap();
        place.sweep(100);
        assert_eq!(std::fs::read_dir(&place.path).unwrap().count(), 3);
        place.sweep(101);
        assert_eq!(std::fs::read_dir(&place.path).unwrap().count(), 1);
        std::fs::remove_dir_all(&base).unwrap();
    }

    #[test]
    fn numbers_are_zeros_until_they_are_written() {
        let Some(base) = base("numbers") else { return };
        let place = Volatile::make(std::slice::from_ref(&base)).unwrap();
        assert_eq!(place.numbers::<4>("numbers", false).unwrap_err(), Errno::NOENT);
        let numbers = || place.numbers::<4>("numbers", true).unwrap();
        assert_eq!(numbers().read(), [0; 4]);
        numbers().write(0, [1, 2, 3, 4]).unwrap();
        numbers().write(1, [5]).unwrap();
        assert_eq!(numbers().read(), [1, 5, 3, 4]);
        std::fs::remove_dir_all(&base).unwrap();
    }

    #[test]
    fn a_disk_or_what_others_could_change_is_no_place() {
        let Some(base) = base("refused") else { return };
        let refused = |base: &Path| place(&[base.to_owned()]).expect_err("it is no place").reason;
        let disk = std::env::current_exe().unwrap();
        let disk = disk.parent().unwrap();
        if !is_in_memory(&fs::statfs(disk).unwrap()) {
            assert!(refused(disk).ends_with(": is not in memory"));
        }
        assert!(refused(Path::new("/nowhere")).ends_with("no such file or directory"));
        std::fs::set_permissions(&base, PermissionsExt::from_mode(0o777)).unwrap();
        assert!(refused(&base).ends_with("others may rename what is in it"));
        std::fs::set_permissions(&base, PermissionsExt::from_mode(0o1777)).unwrap();
        let path = place(std::slice::from_ref(&base)).unwrap();
        symlink("/tmp", &path).unwrap();
        assert!(refused(&base).contains("something else"));
        std::fs::remove_file(&path).unwrap();
        std::fs::create_dir(&path).unwrap();
        std::fs::set_permissions(&path, PermissionsExt::from_mode(0o750)).unwrap();
        assert!(refused(&base).contains("something else"));
        std::fs::remove_dir_all(&base).unwrap();
    }
}

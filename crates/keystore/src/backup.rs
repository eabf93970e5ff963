// SPDX-License-Identifier: Apache-2.0
//! A copy of a token in one file, taken while others use it, and a token made of such a file. What is in it is sealed as
//! it is in the token, and opens with the same PINs.

use crate::crypto::Keys;
use crate::error::{Error, Result};
use crate::files::directory;
use crate::format::FORMAT;
use crate::open::{Config, SqliteStore};
use crate::schema::{now, signed};
use crate::{crypto, pin, state, v1, verify};
use metaslot_spi::store::{Examined, Remark, Role};
use rusqlite::{Connection, OpenFlags};
use rustix::fs::{self, AtFlags, CWD, Dir, FlockOperation, Mode, OFlags, RenameFlags};
use rustix::io::Errno;
use rustix::process::geteuid;
use std::fs::File;
use std::io::{Read, Write};
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};

/// Copies the token into the file `to`, which must not be there. Nothing is left there where the copy is not sound.
pub(crate) fn backup(
    store: &SqliteStore,
    role: Role,
    pin: &[u8],
    to: &Path,
    remark: &mut dyn FnMut(Remark<'_>) -> bool,
) -> Result<Examined> {
    if fs::lstat(to).is_ok() {
        return Err(Error::file(to, "create", "it is there already"));
    }
    // A wrong PIN counts on the token itself.
    drop(pin::keys(store, role, pin)?);
    let copied = copy(store, role, pin, to, remark);
    // The token is only read: what cannot be written is the copy.
    copied.map_err(|error| match error {
        Error::WriteProtected { reason, .. } => Error::file(to, "write", reason),
        Error::Full { .. } => Error::file(to, "write", "no space left"),
        error => error,
    })
}

fn copy(
    store: &SqliteStore,
    role: Role,
    pin: &[u8],
    to: &Path,
    remark: &mut dyn FnMut(Remark<'_>) -> bool,
) -> Result<Examined> {
    let room = Room::new(to)?;
    let copy = room.token();
    let name = copy.to_str().ok_or_else(|| Error::file(to, "create", "its name is not UTF-8"))?;
    store.gate.read(|database| {
        database.connection.execute("VACUUM INTO ?1", [name])?;
        Ok(())
    })?;
    let (seen, keys) = room.examine(store, role, pin, remark)?;
    if seen.findings == 0 {
        store.gate.apart(|| mark(&copy, &keys, 0))?;
        room.give(to, Mode::RUSR | Mode::WUSR)?;
    }
    Ok(seen)
}

/// Makes the file `from` the token of a store that has none. Nothing is changed where the file is not sound.
pub(crate) fn restore(
    store: &SqliteStore,
    role: Role,
    pin: &[u8],
    from: &Path,
    remark: &mut dyn FnMut(Remark<'_>) -> bool,
) -> Result<Examined> {
    let taken = |path: &Path| Err(Error::file(path, "restore", "a token is there already"));
    if store.files.has_database()? {
        return taken(&store.files.database);
    }
    store.files.create_directory(store.config.group.as_deref())?;
    let files = store.files.resolve()?;
    files.check_directory()?;
    let room = Room::new(&files.database)?;
    // What is written in the room is the token's: the file is only read.
    let room_is_full = |error| match error {
        Error::Full { .. } => Error::Full { path: files.database.clone() },
        error => error,
    };
    room.take(from).map_err(room_is_full)?;
    let examined = room.examine(store, role, pin, remark);
    let (seen, keys) = examined.map_err(|error| room_is_full(error.of(from)))?;
    if seen.findings > 0 {
        return Ok(seen);
    }
    let marked = store.gate.apart(|| mark(&room.token(), &keys, 1));
    marked.map_err(|error| room_is_full(error.at(&files.database)))?;
    let mode = files.mode(store.config.group.is_some());
    let locks = store.gate.locks()?;
    let _attempt = locks.login.hold()?;
    let _turn = locks.queue.hold()?;
    if files.has_database()? {
        return taken(&files.database);
    }
    // What was left of another token would be taken for a part of this one.
    files.remove_remains()?;
    room.give(&files.database, mode)?;
    Ok(seen)
}

/// A directory of our own beside the place where a file is to be. It goes when it is dropped, or when its process was killed
/// with the next one there: a process that lives has it locked.
#[derive(Debug)]
pub(crate) struct Room {
    path: PathBuf,
    _locked: Option<OwnedFd>,
}

/// How its name begins, and the names of all that is ever in it: the file, and what is looked at.
const ROOM: &str = ".metaslot-";
const CONTENTS: [&str; 2] = ["token", "examined"];
/// So often it is made, where others take it away.
const MAKINGS: usize = 4;

impl Room {
    /// Beside the file `to`.
    pub(crate) fn new(to: &Path) -> Result<Self> {
        let beside = directory(to);
        sweep(beside);
        let refused = |errno| Error::system(to, "write", errno);
        for _ in 0..MAKINGS {
            let random = u64::from_ne_bytes(crypto::random::<8>()?);
            let path = beside.join(format!("{ROOM}{random:016x}"));
            fs::mkdir(&path, Mode::RWXU).map_err(refused)?;
            // Until it is locked another process takes it for one that was left. A file system without such locks has
            // none who could.
            let locked = lock(&path);
            if !matches!(locked, Err(Errno::WOULDBLOCK)) && fs::lstat(&path).is_ok() {
                return Ok(Self { path, _locked: locked.ok() });
            }
        }
        Err(Error::file(to, "write", "what is made beside it is taken away again and again"))
    }

    pub(crate) fn token(&self) -> PathBuf {
        self.path.join("token")
    }

    /// Copies a file into it.
    pub(crate) fn take(&self, from: &Path) -> Result<()> {
        let refused = |errno| Error::system(from, "open", errno);
        let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::CLOEXEC;
        let mut source = File::from(fs::open(from, flags, Mode::empty()).map_err(refused)?);
        if !source.metadata().is_ok_and(|metadata| metadata.is_file()) {
            return Err(Error::file(from, "open", "not a regular file"));
        }
        let mut copy = self.create("token")?;
        let mut bytes = vec![0; 1 << 16];
        loop {
            let read = source.read(&mut bytes).map_err(|error| Error::file(from, "read", error))?;
            let written = copy.write_all(bytes.get(..read).unwrap_or_default());
            written.map_err(|error| Error::io(&self.token(), "write", &error))?;
            if read == 0 {
                return Ok(());
            }
        }
    }

    pub(crate) fn create(&self, name: &str) -> Result<File> {
        let path = self.path.join(name);
        let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::CLOEXEC;
        let file = fs::open(&path, flags, Mode::RUSR | Mode::WUSR);
        file.map(File::from).map_err(|errno| Error::system(&path, "create", errno))
    }

    /// Looks at all of a second copy: what is given away is as it was written.
    pub(crate) fn examine(
        &self,
        store: &SqliteStore,
        role: Role,
        pin: &[u8],
        remark: &mut dyn FnMut(Remark<'_>) -> bool,
    ) -> Result<(Examined, Keys)> {
        let token = self.token();
        let length =
            store.gate.apart(|| begin_log(&token).map_err(|e| Error::from(e).at(&token)))?;
        // SQLite reads zeros behind the end.
        if std::fs::metadata(&token).is_ok_and(|file| file.len() != length) {
            return Err(Error::not_token("its end is missing"));
        }
        let path = self.path.join("examined");
        std::fs::copy(&token, &path).map_err(|error| Error::io(&path, "write", &error))?;
        let config = Config {
            kdf: store.config.kdf,
            pepper: store.config.pepper.clone(),
            ..Config::new(path)
        };
        verify::examine_by(&SqliteStore::new(config), role, pin, false, remark)
    }

    /// Gives the file, durably, a name that nothing has.
    pub(crate) fn give(&self, to: &Path, mode: Mode) -> Result<()> {
        let token = self.token();
        let refused = |errno| Error::system(to, "create", errno);
        let file = File::open(&token).map_err(|error| Error::file(&token, "open", error))?;
        fs::fchmod(&file, mode).and_then(|()| fs::fsync(&file)).map_err(refused)?;
        fs::renameat_with(CWD, &token, CWD, to, RenameFlags::NOREPLACE).map_err(refused)?;
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let directory = fs::open(directory(to), flags, Mode::empty());
        directory.and_then(fs::fsync).map_err(|errno| {
            // It could be gone after a power cut, and is said not to be there.
            fs::unlink(to).unwrap_or_default();
            refused(errno)
        })
    }
}

impl Drop for Room {
    fn drop(&mut self) {
        // What cannot be removed is in a directory that only we can read.
        std::fs::remove_dir_all(&self.path).unwrap_or_default();
    }
}

fn lock(path: &Path) -> std::result::Result<OwnedFd, Errno> {
    let room = open(path)?;
    fs::flock(&room, FlockOperation::NonBlockingLockExclusive)?;
    Ok(room)
}

fn open(path: &Path) -> std::result::Result<OwnedFd, Errno> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    fs::open(path, flags, Mode::empty())
}

/// After so many seconds without a new file nobody is in a room. No copy takes as long, and clocks of file servers differ by less.
const ABANDONED: i64 = 24 * 60 * 60;

/// Whether nobody is in a room: the lock says so, or its age where the file system, such as NFS, does not lock directories.
fn is_abandoned(
    locked: std::result::Result<(), Errno>,
    changed: i64,
    now: i64,
) -> std::result::Result<(), Errno> {
    match locked {
        Err(errno) if errno == Errno::WOULDBLOCK || now.saturating_sub(changed) < ABANDONED => {
            Err(errno)
        }
        _ => Ok(()),
    }
}

/// Takes away what processes of this user's have left that were killed.
fn sweep(directory: &Path) {
    for entry in std::fs::read_dir(directory).into_iter().flatten().flatten() {
        if entry.file_name().to_str().is_some_and(|name| name.starts_with(ROOM)) {
            clear(&entry.path()).unwrap_or_default();
        }
    }
}

/// Nothing but what a room has is taken away: another may have put something else there.
fn clear(path: &Path) -> std::result::Result<(), Errno> {
    let room = open(path)?;
    let stat = fs::fstat(&room)?;
    let locked = fs::flock(&room, FlockOperation::NonBlockingLockExclusive);
    is_abandoned(locked, stat.st_mtime, signed(now()))?;
    let mode = Mode::from_raw_mode(stat.st_mode);
    if stat.st_uid != geteuid().as_raw() || mode.intersects(Mode::RWXG | Mode::RWXO) {
        return Ok(());
    }
    for entry in Dir::read_from(&room)?.flatten() {
        let name = entry.file_name();
        if CONTENTS.iter().any(|known| name.to_bytes().starts_with(known.as_bytes())) {
            fs::unlinkat(&room, name, AtFlags::empty())?;
        }
    }
    fs::rmdir(path)
}

/// Says in the token that it is a copy, or was restored: keys that count in their rows do not go on by themselves.
/// To an anchor it is so many changes newer.
pub(crate) fn mark(token: &Path, keys: &Keys, changes: u64) -> Result<()> {
    let mut connection = connect(token)?;
    let transaction = connection.transaction()?;
    if transaction.pragma_query_value(None, "user_version", |row| row.get::<_, i64>(0))? < FORMAT {
        v1::upgrade(&transaction, keys)?;
    }
    let mut state = state::of(&transaction, keys)?;
    state.doubt_counts()?;
    state.commits = (state.commits + changes).saturating_sub(1);
    state.write(&transaction, keys)?;
    transaction.commit()?;
    // The file alone is given away: closing would not say that what is in its log did not get there.
    let is_busy = connection.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |row| row.get(0))?;
    connection.close().map_err(|(_, error)| error)?;
    match is_busy {
        false => Ok(()),
        true => Err(Error::file(token, "write", "another program reads it")),
    }
}

pub(crate) fn connect(token: &Path) -> rusqlite::Result<Connection> {
    let flags = OpenFlags::SQLITE_OPEN_READ_WRITE
        | OpenFlags::SQLITE_OPEN_NO_MUTEX
        | OpenFlags::SQLITE_OPEN_NOFOLLOW;
    Connection::open_with_flags(token, flags)
}

/// As a token has it; the copy that SQLite makes does not. Gives the bytes that the file should have.
fn begin_log(token: &Path) -> rusqlite::Result<u64> {
    let connection = connect(token)?;
    connection.pragma_update(None, "journal_mode", "WAL")?;
    let number = |name| connection.pragma_query_value(None, name, |row| row.get::<_, u32>(0));
    Ok(u64::from(number("page_size")?) * u64::from(number("page_count")?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_room_that_cannot_be_locked_is_abandoned_after_a_day() {
        let free = |locked, age| is_abandoned(locked, 1_000_000, 1_000_000 + age).is_ok();
        assert!(free(Ok(()), 0) && free(Ok(()), -5));
        for errno in [Errno::BADF, Errno::NOLCK, Errno::OPNOTSUPP] {
            assert!(!free(Err(errno), ABANDONED - 1) && !free(Err(errno), -5));
            assert!(free(Err(errno), ABANDONED));
            assert!(
                is_abandoned(Err(errno), i64::MIN, 1_000_000).is_ok(),
                "as any user may set it"
            );
        }
        assert!(!free(Err(Errno::WOULDBLOCK), 10 * ABANDONED), "somebody is in it");
    }
}

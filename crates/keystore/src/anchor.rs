// SPDX-License-Identifier: Apache-2.0
//! The anchor: a small file outside of the store that remembers its last state, so that a store that
//! was rolled back as a whole is refused. It must be where no one who can write the store can write.
//!
//! It is written after a commit and before the commit is acknowledged: a store may be newer than its
//! anchor after a crash, never older.

use crate::crypto::Serial;
use crate::error::{Error, Result};
use crate::lock::LockedFile;
use crate::state::{MAC, State};
use rustix::fs::{self, Mode, OFlags};
use rustix::io::Errno;
use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::Path;

/// Length of a written anchor, in bytes.
const LENGTH: usize = 8 + 8 + MAC;

/// What an anchor remembers.
struct Mark {
    serial: Serial,
    commits: u64,
    mac: [u8; MAC],
}

/// Compares a token's state with its anchor, and moves that on to it. The caller holds the writers'
/// queue. An empty file has no anchor yet.
pub(crate) fn advance(path: &Path, database: &Path, serial: &Serial, state: &State) -> Result<()> {
    let (file, mark) = of_token(path, database, serial, OFlags::RDWR)?;
    match mark {
        Some(mark) => {
            mark.check(path, database, state)?;
            let is_newer = state.commits > mark.commits;
            if is_newer { write(&file, path, serial, state) } else { Ok(()) }
        }
        None => write(&file, path, serial, state),
    }
}

/// Compares a token's state with its anchor, which stays where it is.
pub(crate) fn compare(path: &Path, database: &Path, serial: &Serial, state: &State) -> Result<()> {
    let (_, mark) = of_token(path, database, serial, OFlags::RDONLY)?;
    mark.map_or(Ok(()), |mark| mark.check(path, database, state))
}

impl Mark {
    /// Refuses a state that is not this one or a later one.
    fn check(&self, path: &Path, database: &Path, state: &State) -> Result<()> {
        let refused = |reason: String| Err(refused(path, database, &reason));
        if state.commits < self.commits {
            return refused(format!(
                "has seen change {} of it, and this is an older file with {}: restore the newer one, or \
                 empty the anchor to go on with this, in which one-time keys may sign again",
                self.commits, state.commits
            ));
        }
        if state.commits == self.commits && state.mac != self.mac {
            return refused(format!(
                "has seen another change {} of it: a backup that was put here by hand is to be moved away and given to \
                 'metaslot token restore'; or empty the anchor to go on with this",
                self.commits
            ));
        }
        Ok(())
    }
}

/// Whether an anchor can follow this token: asked before anything is written. Gives how many changes it
/// has seen.
pub(crate) fn check(path: &Path, database: &Path, serial: &Serial) -> Result<u64> {
    Ok(of_token(path, database, serial, OFlags::RDWR)?.1.map_or(0, |mark| mark.commits))
}

/// Empties the anchor of a token that is no more, where it is this one's.
pub(crate) fn forget(path: &Path, database: &Path, serial: &Serial) -> Result<()> {
    let (file, _) = of_token(path, database, serial, OFlags::RDWR)?;
    let emptied = file.set_len(0).and_then(|()| file.sync_data());
    emptied.map_err(|error| Error::file(path, "write", error))
}

fn of_token(
    path: &Path,
    database: &Path,
    serial: &Serial,
    access: OFlags,
) -> Result<(LockedFile, Option<Mark>)> {
    let file = open(path, access)?;
    // Who has the queue of files that lost their names would write over what those write that have it now.
    let file = match access {
        OFlags::RDWR => LockedFile::hold(file, path)?,
        _ => LockedFile::unlocked(file),
    };
    let mark = read(&file, path)?;
    match mark.as_ref().is_none_or(|mark| mark.serial == *serial) {
        true => Ok((file, mark)),
        false => {
            let reason = "is another token's: that of a new one begins as an empty file";
            Err(refused(path, database, reason))
        }
    }
}

fn refused(path: &Path, database: &Path, reason: &str) -> Error {
    Error::tampered(&format!("its anchor {} {reason}", path.display())).at(database)
}

fn open(path: &Path, access: OFlags) -> Result<File> {
    let flags = access | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
    match fs::open(path, flags, Mode::empty()) {
        Ok(file) => Ok(file.into()),
        Err(Errno::NOENT) => Err(Error::file(
            path,
            "open",
            "the anchor is missing; a new one begins as an empty file",
        )),
        Err(errno) => Err(Error::file(path, "open", errno)),
    }
}

fn read(file: &File, path: &Path) -> Result<Option<Mark>> {
    let failed = |error: std::io::Error| Error::file(path, "read", error);
    let mut bytes = [0; LENGTH];
    let metadata = file.metadata().map_err(failed)?;
    match metadata.len() {
        _ if !metadata.is_file() => return Err(Error::file(path, "read", "it is no regular file")),
        0 => return Ok(None),
        length if length == LENGTH as u64 => {}
        _ => return Err(Error::file(path, "read", "it is no anchor")),
    }
    file.read_exact_at(&mut bytes, 0).map_err(failed)?;
    let mut mark = Mark { serial: [0; 8], commits: 0, mac: [0; MAC] };
    let (serial, rest) = bytes.split_at(mark.serial.len());
    let (commits, mac) = rest.split_at(8);
    mark.serial.copy_from_slice(serial);
    mark.mac.copy_from_slice(mac);
    mark.commits = u64::from_le_bytes(commits.try_into().map_err(|_| Error::Cryptography)?);
    Ok(Some(mark))
}

fn write(file: &File, path: &Path, serial: &Serial, state: &State) -> Result<()> {
    let bytes = [&serial[..], &state.commits.to_le_bytes(), &state.mac].concat();
    let written = file.write_all_at(&bytes, 0).and_then(|()| file.sync_data());
    written.map_err(|error| Error::file(path, "write", error))
}

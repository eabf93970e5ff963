// SPDX-License-Identifier: Apache-2.0
//! Files that are written whole, or stay as they were; by one command at a time.

use crate::failure::{Failure, Result};
use rustix::fs::OFlags;
use std::fs::{self, File, TryLockError};
use std::io::{self, Seek, Write};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt, fchown};
use std::path::{Path, PathBuf};
use std::thread;
use std::time::{Duration, Instant};

/// Writes a file that may be there; `is_new`: its directory may be missing, too.
pub(crate) fn replace(file: &Path, is_new: bool, text: &str) -> Result<()> {
    let mut draft = Draft::begin(file, is_new)?;
    let written = draft.write(text).and_then(|()| draft.replace());
    written.map_err(|error| Failure::io(format!("cannot write {}", file.display()), &error))
}

/// Refuses what is there and is no plain file: a device would be one afterwards.
pub(crate) fn check(file: &Path) -> Result<()> {
    match fs::metadata(file) {
        Ok(there) if !there.is_file() => {
            Err(Failure::failed(format!("{} is no plain file", file.display())))
        }
        _ => Ok(()),
    }
}

/// How long a command waits for another one that changes the same file.
const PATIENCE: Duration = Duration::from_secs(20);

/// What is to replace a file. Only the process that has it locked changes the file; one that was killed leaves it unlocked, to
/// be used again.
#[derive(Debug)]
pub(crate) struct Draft {
    path: PathBuf,
    /// The file itself: a link to it stays one.
    replaces: PathBuf,
    file: File,
    /// It is the file now, and what has its name by then is another command's.
    is_done: bool,
}

impl Draft {
    /// Waits for another command that changes the file.
    pub(crate) fn begin(file: &Path, is_new: bool) -> Result<Self> {
        check(file)?;
        let cannot = |error| Failure::io(format!("cannot write {}", file.display()), &error);
        let replaces = fs::canonicalize(file).unwrap_or_else(|_| file.to_owned());
        if is_new {
            fs::create_dir_all(directory(&replaces)).map_err(cannot)?;
        }
        let mut path = replaces.clone().into_os_string();
        path.push(".new");
        let path = PathBuf::from(path);
        let end = Instant::now() + PATIENCE;
        while Instant::now() < end {
            if let Some(file) = locked(&path).map_err(cannot)? {
                return Ok(Self { path, replaces, file, is_done: false });
            }
            thread::sleep(Duration::from_millis(10));
        }
        Err(Failure::failed(format!("another process is changing {}", file.display()))
            .hint(format!("it has {} locked", path.display())))
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// With the owner and the mode of the file that it replaces.
    pub(crate) fn write(&self, text: &str) -> io::Result<()> {
        let mut file = &self.file;
        file.set_len(0)?;
        file.rewind()?;
        // First, or others could read what they may not.
        if let Ok(there) = fs::metadata(&self.replaces) {
            let own = file.metadata()?;
            if (own.uid(), own.gid()) != (there.uid(), there.gid()) {
                fchown(file, Some(there.uid()), Some(there.gid()))?;
            }
            file.set_permissions(there.permissions())?;
        }
        file.write_all(text.as_bytes())?;
        file.sync_all()
    }

    /// From now on it is the file.
    pub(crate) fn replace(&mut self) -> io::Result<()> {
        fs::rename(&self.path, &self.replaces)?;
        self.is_done = true;
        File::open(directory(&self.replaces))?.sync_all()
    }
}

impl Drop for Draft {
    fn drop(&mut self) {
        if !self.is_done {
            fs::remove_file(&self.path).ok();
        }
    }
}

/// The file of this name, made where it is missing; `None` while another process has it.
fn locked(path: &Path) -> io::Result<Option<File>> {
    let flags = (OFlags::NOFOLLOW | OFlags::NONBLOCK).bits().cast_signed();
    let mut options = File::options();
    let options = options.write(true).create(true).truncate(false).custom_flags(flags);
    let file = options.open(path)?;
    match file.try_lock() {
        Err(TryLockError::WouldBlock) => return Ok(None),
        locked => locked?,
    }
    let Ok(named) = fs::symlink_metadata(path) else { return Ok(None) };
    let own = file.metadata()?;
    if (named.dev(), named.ino()) != (own.dev(), own.ino()) {
        // Who had it made it the file.
        return Ok(None);
    }
    // Else it would stay in another user's hands, or be another file of ours.
    let is_ours =
        own.is_file() && own.nlink() == 1 && own.uid() == rustix::process::geteuid().as_raw();
    let in_the_way = || io::Error::other(format!("{} is in the way", path.display()));
    is_ours.then_some(Some(file)).ok_or_else(in_the_way)
}

fn directory(file: &Path) -> &Path {
    file.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or_else(|| Path::new("."))
}

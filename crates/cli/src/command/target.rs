// SPDX-License-Identifier: Apache-2.0
//! Where a result goes: to a file that appears whole or not at all, or to standard output.

use crate::failure::{Failure, Result};
use crate::inputs;
use rustix::fs::{AtFlags, CWD, Mode, OFlags, RenameFlags};
use rustix::io::Errno;
use std::fs::{self, File, Metadata, OpenOptions};
use std::io::{self, IsTerminal, Write};
use std::os::fd::{AsFd, AsRawFd};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::process;

/// Where this process's descriptors are files.
const DESCRIPTORS: &str = "/proc/self/fd";

/// A result on its way. Dropped before [`Target::finish`], it leaves no file.
#[derive(Debug)]
pub(crate) struct Target {
    name: String,
    file: File,
    /// What standard output, a device and a pipe do not need: they are written in place.
    place: Option<Place>,
}

/// Where a file is to be.
#[derive(Debug)]
struct Place {
    path: PathBuf,
    /// Whether there may be nothing of this name yet.
    is_new: bool,
    temporary: PathBuf,
    /// Whether the file has its temporary name.
    is_named: bool,
}

impl Place {
    fn new(path: &Path, is_new: bool) -> Self {
        let mut temporary = path.as_os_str().to_owned();
        temporary.push(format!(".{}.part", process::id()));
        Self { path: path.to_owned(), is_new, temporary: temporary.into(), is_named: false }
    }

    /// The file, without a name where the system can do that: then nothing is left of it when we are killed.
    fn open(&mut self, mode: u32) -> io::Result<File> {
        let flags = OFlags::TMPFILE | OFlags::WRONLY | OFlags::CLOEXEC;
        let made = match Path::new(DESCRIPTORS).exists() {
            true => rustix::fs::open(directory(&self.path), flags, Mode::from_raw_mode(mode)),
            false => Err(Errno::OPNOTSUPP),
        };
        match made {
            Ok(file) => return Ok(file.into()),
            Err(Errno::OPNOTSUPP | Errno::ISDIR | Errno::INVAL) => {}
            Err(error) => return Err(error.into()),
        }
        let mut new = OpenOptions::new();
        let file = new.write(true).create_new(true).mode(mode).open(&self.temporary)?;
        self.is_named = true;
        Ok(file)
    }

    /// Gives the file its name.
    fn take(&mut self, file: &File) -> io::Result<()> {
        if !self.is_named {
            let unnamed = format!("{DESCRIPTORS}/{}", file.as_raw_fd());
            let name = if self.is_new { &self.path } else { &self.temporary };
            rustix::fs::linkat(CWD, unnamed, CWD, name, AtFlags::SYMLINK_FOLLOW)?;
            self.is_named = !self.is_new;
        }
        if !self.is_named {
            return Ok(());
        }
        let flags = if self.is_new { RenameFlags::NOREPLACE } else { RenameFlags::empty() };
        match rustix::fs::renameat_with(CWD, &self.temporary, CWD, &self.path, flags) {
            // Some file systems have links instead.
            Err(Errno::INVAL) if self.is_new => fs::hard_link(&self.temporary, &self.path)?,
            renamed => {
                renamed?;
                self.is_named = false;
            }
        }
        Ok(())
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        if self.is_named {
            fs::remove_file(&self.temporary).ok();
        }
    }
}

impl Target {
    /// Standard output for `-` or nothing. A new file has this mode, less the umask, and replaces one that is there.
    pub(crate) fn open(path: Option<&Path>, mode: u32) -> Result<Self> {
        let Some(path) = path.filter(|path| *path != Path::new("-")) else {
            let output = of_stream(&io::stdout());
            let file = output.map_err(|error| Failure::io("cannot write", &error))?;
            refuse_to_replace(file.metadata())?;
            return Ok(Self { name: "standard output".to_owned(), file, place: None });
        };
        refuse_to_replace(path.metadata())?;
        let is_descriptor = is_descriptor(path);
        if !is_descriptor && path.metadata().map_or(true, |metadata| metadata.is_file()) {
            return Self::file(path, mode, false);
        }
        let name = path.display().to_string();
        let cannot = |error: &io::Error| cannot(&name, error);
        let file = OpenOptions::new().append(true).open(path).map_err(|error| cannot(&error))?;
        if !is_descriptor && file.metadata().is_ok_and(|metadata| metadata.is_file()) {
            return Err(cannot(&io::Error::other("it became a plain file just now")));
        }
        Ok(Self { name, file, place: None })
    }

    /// The same for a secret that may be nowhere else, as what is there may be: no file is replaced.
    pub(crate) fn open_secret(path: Option<&Path>) -> Result<Self> {
        let mode = 0o600;
        match path.filter(|path| *path != Path::new("-")) {
            Some(path) if path.symlink_metadata().is_err() => Self::create(path, mode),
            Some(path) if !is_descriptor(path) && path.is_file() => {
                Err(Failure::failed(format!("{} is there already", path.display()))
                    .hint("a secret replaces no file: give another name"))
            }
            _ => Self::open(path, mode),
        }
    }

    /// A file that is not there yet.
    pub(crate) fn create(path: &Path, mode: u32) -> Result<Self> {
        Self::file(path, mode, true)
    }

    fn file(path: &Path, mode: u32, is_new: bool) -> Result<Self> {
        let name = path.display().to_string();
        let mut place = Place::new(path, is_new);
        let file = place.open(mode).map_err(|error| cannot(&name, &error))?;
        Ok(Self { name, file, place: Some(place) })
    }

    /// Whether what is written is seen at once.
    pub(crate) fn is_terminal(&self) -> bool {
        self.file.is_terminal()
    }

    /// The next bytes.
    pub(crate) fn write(&mut self, bytes: &[u8]) -> Result<()> {
        self.file.write_all(bytes).map_err(|error| cannot(&self.name, &error))
    }

    /// All there is. Who reads standard output may have had enough (`metaslot cert export site | head -1`).
    pub(crate) fn write_whole(&mut self, bytes: &[u8]) -> Result<()> {
        match self.file.write_all(bytes) {
            Err(error) if self.place.is_none() && error.kind() == io::ErrorKind::BrokenPipe => {
                Ok(())
            }
            written => written.map_err(|error| cannot(&self.name, &error)),
        }
    }

    /// The result is complete: it takes its name.
    pub(crate) fn finish(mut self) -> Result<()> {
        let Some(place) = &mut self.place else { return Ok(()) };
        // What was read since it was opened counts, too.
        refuse_to_replace(place.path.metadata())?;
        let done = self.file.sync_all().and_then(|()| place.take(&self.file));
        done.map_err(|error| cannot(&self.name, &error))
    }
}

/// What is not there yet was not read.
fn refuse_to_replace(written: io::Result<Metadata>) -> Result<()> {
    written.map_or(Ok(()), |written| inputs::refuse_to_replace(&written))
}

/// The file behind a stream.
pub(crate) fn of_stream(stream: &impl AsFd) -> io::Result<File> {
    Ok(stream.as_fd().try_clone_to_owned()?.into())
}

fn cannot(name: &str, error: &io::Error) -> Failure {
    Failure::io(format!("cannot write {name}"), error)
}

/// Whether a name such as `/dev/stdout` leads to a descriptor of this process: that is no file to be replaced.
fn is_descriptor(path: &Path) -> bool {
    let Ok(descriptors) = fs::canonicalize(DESCRIPTORS) else { return false };
    let mut path = path.to_owned();
    // The kernel follows no more.
    for _ in 0..40 {
        let Ok(link) = fs::read_link(&path) else { return false };
        let directory = directory(&path).to_owned();
        if fs::canonicalize(&directory).is_ok_and(|directory| directory == descriptors) {
            return true;
        }
        path = directory.join(link);
    }
    false
}

fn directory(path: &Path) -> &Path {
    path.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or_else(|| Path::new("."))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs::read_dir;

    #[test]
    fn what_is_not_finished_leaves_nothing_and_takes_nothing_away() {
        let directory = std::env::temp_dir().join(format!("metaslot-target-{}", process::id()));
        fs::create_dir_all(&directory).unwrap();
        let path = directory.join("it");
        let others = Place::new(&path, false).temporary.clone();
        fs::write(&others, "another's").unwrap();
        for target in [Target::open(Some(&path), 0o600), Target::create(&path, 0o600)] {
            target.unwrap().write(b"half").unwrap();
            assert_eq!(read_dir(&directory).unwrap().count(), 1);
            assert_eq!(fs::read(&others).unwrap(), b"another's");
        }
        let mut target = Target::create(&path, 0o600).unwrap();
        target.write(b"whole").unwrap();
        target.finish().unwrap();
        assert_eq!(fs::read(&path).unwrap(), b"whole");
        assert!(Target::create(&path, 0o600).and_then(Target::finish).is_err());
        assert_eq!(fs::read(&path).unwrap(), b"whole");
        fs::remove_dir_all(&directory).unwrap();
    }
}

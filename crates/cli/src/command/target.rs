// SPDX-License-Identifier: Apache-2.0
//! Where a result goes: to a file that appears whole or not at all, or to standard output.

use crate::failure::{Failure, Result};
use crate::output::write_out;
use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::process;

/// A result on its way. Dropped before [`Target::finish`], it leaves no file.
#[derive(Debug)]
pub(crate) struct Target(Place);

#[derive(Debug)]
enum Place {
    Output,
    /// A device or a pipe is written in place.
    Device(File, PathBuf),
    File(Unfinished),
}

#[derive(Debug)]
struct Unfinished {
    file: File,
    temporary: PathBuf,
    path: PathBuf,
}

impl Drop for Unfinished {
    fn drop(&mut self) {
        // There is nothing under this name once it is finished.
        fs::remove_file(&self.temporary).ok();
    }
}

impl Target {
    /// Standard output for `-` or nothing. A new file has this mode, less the umask.
    pub(crate) fn open(path: Option<&Path>, mode: u32) -> Result<Self> {
        let Some(path) = path.filter(|path| *path != Path::new("-")) else {
            return Ok(Self(Place::Output));
        };
        let path = path.to_owned();
        if path.metadata().is_ok_and(|metadata| !metadata.is_file()) {
            let opened = OpenOptions::new().write(true).open(&path);
            let file = opened.map_err(|error| cannot(&path, &error))?;
            return Ok(Self(Place::Device(file, path)));
        }
        let temporary = beside(&path);
        let made = OpenOptions::new().write(true).create_new(true).mode(mode).open(&temporary);
        let file = made.map_err(|error| cannot(&path, &error))?;
        Ok(Self(Place::File(Unfinished { file, temporary, path })))
    }

    /// The next bytes.
    pub(crate) fn write(&mut self, bytes: &[u8]) -> Result<()> {
        match &mut self.0 {
            Place::Output => write_out(bytes),
            Place::Device(file, path) => {
                file.write_all(bytes).map_err(|error| cannot(path, &error))
            }
            Place::File(new) => {
                new.file.write_all(bytes).map_err(|error| cannot(&new.path, &error))
            }
        }
    }

    /// The result is complete: it takes its name.
    pub(crate) fn finish(self) -> Result<()> {
        let Place::File(new) = &self.0 else { return Ok(()) };
        let kept = new.file.sync_all().and_then(|()| fs::rename(&new.temporary, &new.path));
        kept.map_err(|error| cannot(&new.path, &error))
    }
}

fn cannot(path: &Path, error: &io::Error) -> Failure {
    Failure::io(format!("cannot write {}", path.display()), error)
}

fn beside(path: &Path) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(format!(".{}.part", process::id()));
    PathBuf::from(name)
}

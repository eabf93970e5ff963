// SPDX-License-Identifier: Apache-2.0
//! The data that is signed or verified, read in pieces of bounded size.

use super::target::Target;
use crate::failure::{Failure, Result};
use crate::output::{Output, Report};
use std::fs::File;
use std::io::{self, Read};
use std::path::Path;

/// Data up to this size goes to the token in one call, longer data in pieces of this size.
const PIECE: usize = 64 * 1024;

/// A file or standard input (`-`, or nothing).
#[derive(Debug)]
pub(crate) struct Payload {
    name: String,
    source: Source,
}

enum Source {
    File(File),
    Input,
}

impl std::fmt::Debug for Source {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::File(_) => "File",
            Self::Input => "Input",
        })
    }
}

impl Payload {
    /// Opens it.
    pub(crate) fn open(path: Option<&Path>) -> Result<Self> {
        let path = path.filter(|path| *path != Path::new("-"));
        let Some(path) = path else {
            return Ok(Self { name: "standard input".to_owned(), source: Source::Input });
        };
        let name = path.display().to_string();
        match File::open(path) {
            Ok(file) => Ok(Self { name, source: Source::File(file) }),
            Err(error) => Err(Failure::io(format!("cannot open {name}"), &error)),
        }
    }

    /// All of it.
    pub(crate) fn all(&mut self) -> Result<Vec<u8>> {
        let mut data = Vec::new();
        let read = match &mut self.source {
            Source::File(file) => file.read_to_end(&mut data),
            Source::Input => io::stdin().read_to_end(&mut data),
        };
        read.map_err(|error| self.unreadable(&error))?;
        Ok(data)
    }

    /// The next piece, empty at the end, shorter than [`PIECE`] only before the end.
    pub(crate) fn piece<'a>(&mut self, buffer: &'a mut Vec<u8>) -> Result<&'a [u8]> {
        buffer.clear();
        let limit = PIECE as u64;
        let read = match &mut self.source {
            Source::File(file) => file.take(limit).read_to_end(buffer),
            Source::Input => io::stdin().take(limit).read_to_end(buffer),
        };
        read.map_err(|error| self.unreadable(&error))?;
        Ok(buffer)
    }

    /// Feeds it to `whole` when it is short, else piece by piece to `update`; true when it was
    /// short.
    pub(crate) fn feed(
        &mut self,
        whole: impl FnOnce(&[u8]) -> Result<()>,
        update: impl Fn(&[u8]) -> Result<()>,
    ) -> Result<bool> {
        let mut buffer = Vec::with_capacity(PIECE);
        if self.piece(&mut buffer)?.len() < PIECE {
            whole(&buffer)?;
            return Ok(true);
        }
        while !buffer.is_empty() {
            update(&buffer)?;
            self.piece(&mut buffer)?;
        }
        Ok(false)
    }

    fn unreadable(&self, error: &io::Error) -> Failure {
        Failure::io(format!("cannot read {}", self.name), error)
    }
}

/// Writes a result, and with `--json` says what it is: then it goes to standard output only where a path
/// says so.
pub(crate) fn write_beside(
    output: &Output,
    path: Option<&Path>,
    bytes: &[u8],
    report: &Report,
) -> Result<()> {
    if !output.json {
        return write(path, bytes);
    }
    let file = path.filter(|path| *path != Path::new("-"));
    file.map_or(Ok(()), |file| write(Some(file), bytes))?;
    output.print(report)
}

/// Writes a result: to a file that appears whole or not at all, or to standard output.
fn write(path: Option<&Path>, bytes: &[u8]) -> Result<()> {
    let mut target = Target::open(path, 0o666)?;
    target.write(bytes)?;
    target.finish()
}

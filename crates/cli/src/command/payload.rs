// SPDX-License-Identifier: Apache-2.0
//! The data that is signed, verified or encrypted, read in pieces of bounded size.

use super::target::Target;
use crate::failure::{Failure, Result};
use crate::output::{Output, Report};
use std::fs::{File, Metadata};
use std::io::{self, Read};
use std::os::fd::AsFd;
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

    /// The next piece, empty at the end, shorter than `limit` only before the end.
    pub(crate) fn piece<'a>(&mut self, buffer: &'a mut Vec<u8>, limit: usize) -> Result<&'a [u8]> {
        buffer.clear();
        let limit = limit as u64;
        let read = match &mut self.source {
            Source::File(file) => file.take(limit).read_to_end(buffer),
            Source::Input => io::stdin().take(limit).read_to_end(buffer),
        };
        read.map_err(|error| self.unreadable(&error))?;
        Ok(buffer)
    }

    /// Gives `each` what is left, in pieces of this size, and says which is the last one; nothing is
    /// one empty piece.
    pub(crate) fn pieces(
        &mut self,
        size: usize,
        mut each: impl FnMut(&[u8], bool) -> Result<()>,
    ) -> Result<()> {
        let (mut piece, mut next) = (Vec::with_capacity(size), Vec::with_capacity(size));
        self.piece(&mut piece, size)?;
        loop {
            let last = self.piece(&mut next, size)?.is_empty();
            each(&piece, last)?;
            if last {
                return Ok(());
            }
            std::mem::swap(&mut piece, &mut next);
        }
    }

    /// What the system says about the file.
    pub(crate) fn metadata(&self) -> Result<Metadata> {
        let known = match &self.source {
            Source::File(file) => file.metadata(),
            Source::Input => of_stream(&io::stdin()),
        };
        known.map_err(|error| self.unreadable(&error))
    }

    /// What messages call it.
    pub(crate) fn name(&self) -> &str {
        &self.name
    }

    /// Feeds it to `whole` when it is short, else piece by piece to `update`; true when it was
    /// short.
    pub(crate) fn feed(
        &mut self,
        whole: impl FnOnce(&[u8]) -> Result<()>,
        update: impl Fn(&[u8]) -> Result<()>,
    ) -> Result<bool> {
        let mut buffer = Vec::with_capacity(PIECE);
        if self.piece(&mut buffer, PIECE)?.len() < PIECE {
            whole(&buffer)?;
            return Ok(true);
        }
        while !buffer.is_empty() {
            update(&buffer)?;
            self.piece(&mut buffer, PIECE)?;
        }
        Ok(false)
    }

    fn unreadable(&self, error: &io::Error) -> Failure {
        Failure::io(format!("cannot read {}", self.name), error)
    }
}

/// What the system says about the file behind a stream.
pub(crate) fn of_stream(stream: &impl AsFd) -> io::Result<Metadata> {
    File::from(stream.as_fd().try_clone_to_owned()?).metadata()
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

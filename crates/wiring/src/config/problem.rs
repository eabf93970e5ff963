// SPDX-License-Identifier: Apache-2.0
//! A file of a configuration, and what is wrong with one.

use super::setting::Complaint;
use crate::text::words;
use rustix::io::Errno;
use std::fmt;
use std::io;
use std::path::{Path, PathBuf};

/// What is wrong with a file, and where.
#[derive(Debug, Eq, PartialEq)]
pub struct Problem {
    file: PathBuf,
    line: Option<usize>,
    pub(super) reason: String,
    /// The process lacks something, and may have it later.
    pub passes: bool,
}

impl Problem {
    /// Of a configuration as a whole.
    pub fn new(file: Option<PathBuf>, reason: String) -> Self {
        let file = file.unwrap_or_else(|| PathBuf::from("configuration"));
        Self { file, line: None, reason, passes: false }
    }

    /// The system refused to read it.
    pub(super) fn unread(file: &Path, error: &io::Error) -> Self {
        let lacks = [Errno::MFILE, Errno::NFILE, Errno::NOMEM];
        let passes = Errno::from_io_error(error).is_some_and(|errno| lacks.contains(&errno));
        Self {
            passes,
            ..Self::new(Some(file.to_owned()), format!("cannot be read: {}", words(error)))
        }
    }
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: ", self.file.display())?;
        if let Some(line) = self.line {
            write!(f, "line {line}: ")?;
        }
        f.write_str(&self.reason)
    }
}

/// A file's text.
#[derive(Debug)]
pub(super) struct Text {
    pub(super) file: PathBuf,
    pub(super) text: String,
}

impl Text {
    pub(super) fn new(file: &Path, text: io::Result<String>) -> Result<Self, Problem> {
        match text {
            Ok(text) => Ok(Self { file: file.to_owned(), text }),
            Err(error) => Err(Problem::unread(file, &error)),
        }
    }

    /// What is wrong here.
    pub(super) fn problem(&self, (span, reason): Complaint) -> Problem {
        let line = span.map(|span| line(&self.text, span.start));
        Problem { file: self.file.clone(), line, reason, passes: false }
    }
}

fn line(text: &str, at: usize) -> usize {
    text.bytes().take(at).filter(|byte| *byte == b'\n').count() + 1
}

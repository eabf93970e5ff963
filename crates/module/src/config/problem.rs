// SPDX-License-Identifier: Apache-2.0
//! A file of a configuration, and what is wrong with one.

use super::setting::Complaint;
use std::fmt;
use std::io;
use std::path::{Path, PathBuf};

/// What is wrong with a file, and where.
#[derive(Debug, Eq, PartialEq)]
pub(crate) struct Problem {
    file: PathBuf,
    line: Option<usize>,
    pub(super) reason: String,
}

impl Problem {
    /// Of a configuration as a whole.
    pub(crate) fn new(file: Option<PathBuf>, reason: String) -> Self {
        Self { file: file.unwrap_or_else(|| PathBuf::from("configuration")), line: None, reason }
    }

    /// The system refused to read it; its words without the number that [`io::Error`] adds.
    pub(super) fn unread(file: &Path, error: &io::Error) -> Self {
        let text = error.to_string();
        let words = text.split_once(" (os error").map_or(&*text, |(words, _)| words);
        Self::new(Some(file.to_owned()), format!("cannot be read: {words}"))
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
        Problem { file: self.file.clone(), line, reason }
    }
}

fn line(text: &str, at: usize) -> usize {
    text.bytes().take(at).filter(|byte| *byte == b'\n').count() + 1
}

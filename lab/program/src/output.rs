// SPDX-License-Identifier: Apache-2.0
//! How a result leaves the program: JSON first, and the text is made from what was written.

use crate::{Failure, Result};
use serde::Serialize;
use serde::de::DeserializeOwned;
use std::fmt::Display;
use std::io::{ErrorKind, Write};
use std::path::{Path, PathBuf};

/// What most commands take.
#[derive(Clone, Debug, Default, clap::Args)]
pub struct Output {
    /// Print the result as JSON instead of text
    #[arg(long)]
    pub json: bool,
    /// Also write the JSON to a file
    #[arg(long, value_name = "FILE")]
    pub output: Option<PathBuf>,
}

impl Output {
    /// Prints a report.
    ///
    /// # Errors
    /// A file cannot be written.
    pub(crate) fn publish<T: Serialize + DeserializeOwned>(
        &self,
        report: &T,
        text: impl FnOnce(&T) -> String,
    ) -> Result<()> {
        let json = serde_json::to_string_pretty(report)?;
        if let Some(path) = &self.output {
            std::fs::write(path, &json).map_err(|error| Failure::file(path, &error))?;
        }
        say(&if self.json { json + "\n" } else { text(&serde_json::from_str(&json)?) })
    }
}

/// A report that was written before.
///
/// # Errors
/// The file cannot be read, or is no report of this kind.
pub(crate) fn earlier<T: DeserializeOwned>(path: &Path) -> Result<T> {
    let text = std::fs::read_to_string(path).map_err(|error| Failure::file(path, &error))?;
    serde_json::from_str(&text).map_err(|error| Failure::from(error).context(path.display()))
}

/// Writes to standard output. A reader that has gone has seen enough, as `head` has.
///
/// # Errors
/// The disk is full.
pub fn say(text: &str) -> Result<()> {
    match std::io::stdout().write_all(text.as_bytes()) {
        Err(error) if error.kind() != ErrorKind::BrokenPipe => {
            Err(Failure::from(error).context("cannot write standard output"))
        }
        _ => Ok(()),
    }
}

/// Writes a line to standard error. Nothing can be done when that itself fails, and what is measured goes on.
pub fn tell(line: impl Display) {
    writeln!(std::io::stderr(), "{line}").ok();
}

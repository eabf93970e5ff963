// SPDX-License-Identifier: Apache-2.0
//! `lab local`: the ways from one process to another on the same machine.
//!
//! It needs neither a module nor a token, and no rights. Both ends are threads of this process: for
//! the kernel a pair of ends is the same in one process and in two, and nothing is left behind when
//! the process is killed.

mod eagain;
mod path;

pub use path::LocalPath;

use crate::{Failure, Result};
use serde::Serialize;
use serde::de::DeserializeOwned;
use std::io::{ErrorKind, Write};
use std::path::PathBuf;

/// What to measure, and how.
#[derive(Clone, Debug, clap::Args)]
pub struct Options {
    /// How many writes a path accepts until EAGAIN when nobody reads, and why; two seconds
    #[arg(long)]
    pub eagain: bool,
    /// The paths
    #[arg(
        long, value_name = "PATH,…", value_delimiter = ',', value_enum,
        default_values_t = LocalPath::ALL
    )]
    pub paths: Vec<LocalPath>,
    /// With --eagain: milliseconds after which a path that still accepts is left alone
    #[arg(long, value_name = "MS", default_value_t = 300, requires = "eagain")]
    pub patience: u64,
    /// Print the result as JSON instead of text
    #[arg(long)]
    pub json: bool,
    /// Also write the JSON to a file
    #[arg(long, value_name = "FILE")]
    pub output: Option<PathBuf>,
}

/// Does what the options say.
pub(crate) fn run(options: &Options) -> Result<()> {
    eagain::run(options)
}

/// JSON first: the text is made from what was written.
fn publish<T: Serialize + DeserializeOwned>(
    options: &Options,
    report: &T,
    text: fn(&T) -> String,
) -> Result<()> {
    let json = serde_json::to_string_pretty(report)?;
    if let Some(path) = &options.output {
        std::fs::write(path, &json).map_err(|error| Failure::file(path, &error))?;
    }
    let said = if options.json { json + "\n" } else { text(&serde_json::from_str(&json)?) };
    match std::io::stdout().write_all(said.as_bytes()) {
        // Whoever reads has seen enough, as `head` has.
        Err(error) if error.kind() != ErrorKind::BrokenPipe => Err(error.into()),
        _ => Ok(()),
    }
}

// SPDX-License-Identifier: Apache-2.0
//! `lab local`: the ways from one process to another on the same machine.
//!
//! It needs neither a module nor a token, and no rights. Both ends are threads of this process: for
//! the kernel a pair of ends is the same in one process and in two, and nothing is left behind when
//! the process is killed.

mod eagain;
mod flow;
mod path;

pub(crate) use flow::text;
pub use path::LocalPath;

use crate::scenario::RunOptions;
use crate::{Failure, Result};
use serde::Serialize;
use serde::de::DeserializeOwned;
use std::io::{ErrorKind, Write};

/// Powers of two, and what one segment of the loopback interface holds, with something to spare and
/// exactly.
const SIZES: [usize; 14] =
    [64, 128, 256, 512, 1024, 2048, 4096, 8192, 16_384, 32_768, 61_440, 65_483, 65_536, 131_072];

/// What to measure, and how.
#[derive(Clone, Debug, clap::Args)]
pub struct Options {
    /// How many writes a path accepts until EAGAIN when nobody reads, and why; two seconds. --output
    /// names a file for its JSON
    #[arg(long, conflicts_with_all = ["seconds", "repetitions", "seed"])]
    pub eagain: bool,
    /// The paths
    #[arg(
        long, value_name = "PATH,…", value_delimiter = ',', value_enum,
        default_values_t = LocalPath::ALL
    )]
    pub paths: Vec<LocalPath>,
    /// Sizes of the writes, in bytes
    #[arg(
        long, value_name = "BYTES,…", value_delimiter = ',', conflicts_with = "eagain",
        default_values_t = SIZES
    )]
    pub sizes: Vec<usize>,
    /// Length of one sample in milliseconds
    #[arg(long, value_name = "MS", default_value_t = 25, conflicts_with = "eagain")]
    pub sample: u64,
    /// With --eagain: milliseconds after which a path that still accepts is left alone
    #[arg(long, value_name = "MS", default_value_t = 300, requires = "eagain")]
    pub patience: u64,
    /// How it is run
    #[command(flatten)]
    pub run: RunOptions,
}

/// Does what the options say.
pub(crate) fn run(options: &Options) -> Result<()> {
    if options.eagain { eagain::run(options) } else { flow::run(options) }
}

/// JSON first: the text is made from what was written.
fn publish<T: Serialize + DeserializeOwned>(
    options: &Options,
    report: &T,
    text: fn(&T) -> String,
) -> Result<()> {
    let json = serde_json::to_string_pretty(report)?;
    if let Some(path) = &options.run.output {
        std::fs::write(path, &json).map_err(|error| Failure::file(path, &error))?;
    }
    let said = if options.run.json { json + "\n" } else { text(&serde_json::from_str(&json)?) };
    match std::io::stdout().write_all(said.as_bytes()) {
        // Whoever reads has seen enough, as `head` has.
        Err(error) if error.kind() != ErrorKind::BrokenPipe => Err(error.into()),
        _ => Ok(()),
    }
}

// SPDX-License-Identifier: Apache-2.0
//! What to measure, and how.

use crate::output::Output;
use std::path::PathBuf;

/// What to measure, and how.
#[derive(Clone, Debug, clap::Args)]
pub struct Options {
    /// The module to measure [default: libmetaslot.so beside this program, or installed]
    #[arg(long, value_name = "PATH")]
    pub module: Option<PathBuf>,
    /// The rival module, or `none` [default: Debian's SoftHSM where installed]
    #[arg(long, value_name = "PATH")]
    pub rival: Option<String>,
    /// Measure Sun's table of 2008 instead, on one thread and on several, and explain what several gain
    #[arg(long, conflicts_with_all = ["from", "list", "rounds", "batch"])]
    pub sun: bool,
    /// Measure every mechanism of the module's token instead that digests, signs or encrypts, with lanes and
    /// without, and where it is called directly, the raw library
    #[arg(long, conflicts_with_all = ["sun", "from", "list", "rounds", "batch", "threads"])]
    pub all: bool,
    /// Numbers of threads; more than one only for cells that are meant to scale. With --sun the largest
    /// counts [default: 1,2; with --sun 1 and one for each CPU]
    #[arg(long, value_name = "N,…", value_delimiter = ',')]
    pub threads: Vec<usize>,
    /// Rounds: each measures every provider once, in random order
    #[arg(long, value_name = "N", default_value_t = 41)]
    pub rounds: usize,
    /// CPU seconds for each cell, provider and number of threads; with --sun and --all, seconds for all of
    /// it [default: 0.6; with --sun 60, with --all 90]
    #[arg(long, value_name = "S")]
    pub seconds: Option<f64>,
    /// With --sun and --all: repetitions of every cell, whatever the time
    #[arg(long, value_name = "N")]
    pub repetitions: Option<usize>,
    /// Length of a batch in milliseconds
    #[arg(long, value_name = "MS", default_value_t = 5.0)]
    pub batch: f64,
    /// Only cells whose name contains one of these texts
    #[arg(long, value_name = "TEXT,…", value_delimiter = ',')]
    pub filter: Vec<String>,
    /// Leave out the comparison with `openssl speed`
    #[arg(long)]
    pub no_openssl: bool,
    /// Random seed of the order, to repeat a run
    #[arg(long, value_name = "N")]
    pub seed: Option<u64>,
    /// Where the result goes; with --sun and --all, the file is a directory, NAME.labx
    #[command(flatten)]
    pub output: Output,
    /// Print the table of an earlier run's JSON, and measure nothing
    #[arg(long, value_name = "FILE", conflicts_with_all = ["json", "output"])]
    pub from: Option<PathBuf>,
    /// List the cells and their goals, and measure nothing
    #[arg(long)]
    pub list: bool,
    /// Where the tokens are made for the run [default: the directory for temporary files]
    #[arg(long, value_name = "DIR")]
    pub dir: Option<PathBuf>,
    /// Keep the tokens
    #[arg(long)]
    pub keep: bool,
}

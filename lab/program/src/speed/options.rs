// SPDX-License-Identifier: Apache-2.0
//! What to measure, and how.

use crate::output::Output;
use std::path::PathBuf;

/// What to measure, and how.
#[derive(Clone, Debug, clap::Args)]
#[command(mut_arg("output", |argument| argument.short('o').value_name("NAME.labx").help(
    "The experiment to write, a directory [default: overhead-TIME.labx and the like, here]"
)))]
pub struct Options {
    /// The module to measure [default: libmetaslot.so beside this program, or installed]
    #[arg(long, value_name = "PATH")]
    pub module: Option<PathBuf>,
    /// The rival module, or `none` [default: Debian's SoftHSM where installed]
    #[arg(long, value_name = "PATH")]
    pub rival: Option<String>,
    /// Measure Sun's table of 2008 instead, on one thread and on several, and explain what several gain
    #[arg(long, conflicts_with = "list")]
    pub sun: bool,
    /// Measure every mechanism of the module's token instead that digests, signs or encrypts, with lanes and
    /// without, and where it is called directly, the raw library
    #[arg(long, conflicts_with_all = ["sun", "list", "threads"])]
    pub all: bool,
    /// Numbers of threads; more than one only for cells that are meant to scale. With --sun the largest
    /// counts [default: 1,2; with --sun 1 and one for each CPU]
    #[arg(long, value_name = "N,…", value_delimiter = ',')]
    pub threads: Vec<usize>,
    /// Seconds for all of it [default: 90; with --sun 60]
    #[arg(long, value_name = "S")]
    pub seconds: Option<f64>,
    /// Repetitions of every cell, whatever the time
    #[arg(long, value_name = "N")]
    pub repetitions: Option<usize>,
    /// Only cells whose name contains one of these texts
    #[arg(long, value_name = "TEXT,…", value_delimiter = ',')]
    pub filter: Vec<String>,
    /// Leave out the comparison with `openssl speed`
    #[arg(long)]
    pub no_openssl: bool,
    /// Random seed of the order, to repeat a run
    #[arg(long, value_name = "N")]
    pub seed: Option<u64>,
    /// Where the result goes
    #[command(flatten)]
    pub output: Output,
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

// SPDX-License-Identifier: Apache-2.0
//! How often, and for how long.

use crate::output::Output;
use std::path::PathBuf;

/// How many writers, how many kills.
#[derive(Clone, Debug, clap::Args)]
#[command(mut_arg("output", |argument| argument.short('o').value_name("NAME.labx").help(
    "The experiment to write, a directory [default: kill-TIME.labx, here]"
)))]
pub struct Options {
    /// The module to test [default: libmetaslot.so beside this program, or installed]
    #[arg(long, value_name = "PATH")]
    pub module: Option<PathBuf>,
    /// How many writers are killed
    #[arg(long, value_name = "N", default_value_t = 1000)]
    pub kills: usize,
    /// How many write at the same time
    #[arg(long, value_name = "N", default_value_t = 8)]
    pub writers: usize,
    /// Longest time between two kills, in milliseconds
    #[arg(long, value_name = "MS", default_value_t = 60)]
    pub interval: u64,
    /// One in so many kills may also hit a writer that is still logging in; 0 for none
    #[arg(long, value_name = "N", default_value_t = 20)]
    pub starting: u64,
    /// Random seed, to repeat the order of a run
    #[arg(long, value_name = "N")]
    pub seed: Option<u64>,
    /// Where the result goes
    #[command(flatten)]
    pub output: Output,
    /// Where the token is made for the run [default: the directory for temporary files]
    #[arg(long, value_name = "DIR")]
    pub dir: Option<PathBuf>,
    /// Keep the token and the logs
    #[arg(long)]
    pub keep: bool,
}

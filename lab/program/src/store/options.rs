// SPDX-License-Identifier: Apache-2.0
//! What to measure, and where.

use crate::output::Output;
use std::path::PathBuf;

/// What to measure, and how.
#[derive(Clone, Debug, clap::Args)]
#[command(mut_arg("output", |argument| argument.short('o').value_name("NAME.labx").help(
    "The experiment to write, a directory [default: store-TIME.labx, here]"
)))]
pub struct Options {
    /// The module to measure [default: libmetaslot.so beside this program, or installed]
    #[arg(long, value_name = "PATH")]
    pub module: Option<PathBuf>,
    /// Numbers of token objects, one store each
    #[arg(
        long, value_name = "N,…", value_delimiter = ',', default_values_t = [10, 10_000, 1_000_000]
    )]
    pub objects: Vec<u64>,
    /// Rounds: each asks every store once, in random order
    #[arg(long, value_name = "N", default_value_t = 15)]
    pub rounds: usize,
    /// Length of one sample in milliseconds
    #[arg(long, value_name = "MS", default_value_t = 20)]
    pub sample: u64,
    /// Length of one sample of creates in milliseconds
    #[arg(long, value_name = "MS", default_value_t = 300)]
    pub creates: u64,
    /// Threads that create at the same time, beside one
    #[arg(long, value_name = "N", default_value_t = 8)]
    pub threads: usize,
    /// Cold starts of each store, as many in each round: at least one, or none at all
    #[arg(long, value_name = "N", default_value_t = 11)]
    pub starts: usize,
    /// Random seed of the order, to repeat a run
    #[arg(long, value_name = "N")]
    pub seed: Option<u64>,
    /// Where the result goes
    #[command(flatten)]
    pub output: Output,
    /// Where the stores are made for the run [default: the directory for temporary files]
    #[arg(long, value_name = "DIR")]
    pub dir: Option<PathBuf>,
    /// Keep the stores
    #[arg(long)]
    pub keep: bool,
}

// SPDX-License-Identifier: Apache-2.0
//! What to measure, and how.

use crate::scenario::TokenOptions;
use std::path::PathBuf;

/// What to measure, and how.
#[derive(Clone, Debug, clap::Args)]
pub struct Options {
    /// The program that times the kernels [default: metaslot-kernels beside this program]
    #[arg(long, value_name = "PATH")]
    pub kernels: Option<PathBuf>,
    /// Only rows whose name contains one of these texts
    #[arg(long, value_name = "NAME,…", value_delimiter = ',')]
    pub only: Vec<String>,
    /// Numbers of threads that wait [default: 1,2,8,16,64; quick: 1,16]
    #[arg(long, value_name = "N,…", value_delimiter = ',')]
    pub threads: Vec<usize>,
    /// Numbers of keys that the threads share [default: 1,16; quick: 1]
    #[arg(long, value_name = "N,…", value_delimiter = ',')]
    pub keys: Vec<usize>,
    /// Rounds: each measures everything once [default: 11, quick: 3]
    #[arg(long, value_name = "N")]
    pub rounds: Option<usize>,
    /// Length of a sample of a kernel in milliseconds [default: 5, quick: 0.5]
    #[arg(long, value_name = "MS")]
    pub sample: Option<f64>,
    /// Length of a window of the load in milliseconds [default: 200, quick: 20]
    #[arg(long, value_name = "MS")]
    pub window: Option<f64>,
    /// Seconds that OpenSSL may need to check a window's results; a window ends before there are more of them [default: 1, quick: 0.05]
    #[arg(long, value_name = "S")]
    pub checks: Option<f64>,
    /// A first look in seconds: few rounds, short samples
    #[arg(long)]
    pub quick: bool,
    /// Leave out the kernels by themselves
    #[arg(long)]
    pub no_kernels: bool,
    /// Leave out what goes through the module
    #[arg(long, conflicts_with = "no_kernels")]
    pub no_module: bool,
    /// Instruction sets that kernels do without, as in the setting `lanes_without`
    #[arg(long, value_name = "NAME,…", value_delimiter = ',')]
    pub without: Vec<String>,
    /// List the rows, and measure nothing
    #[arg(long)]
    pub list: bool,
    /// Goals of each row, and whether they were reached
    #[arg(long)]
    pub goals: bool,
    /// The token
    #[command(flatten)]
    pub token: TokenOptions,
}

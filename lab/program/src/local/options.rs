// SPDX-License-Identifier: Apache-2.0
//! What to measure, and how.

use super::path::LocalPath;
use crate::scenario::RunOptions;

/// Powers of two, and what one segment of the loopback interface holds, with something to spare and
/// exactly.
pub(super) const SIZES: [usize; 14] =
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

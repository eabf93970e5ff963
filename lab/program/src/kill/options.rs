// SPDX-License-Identifier: Apache-2.0
//! How often, and for how long.

use crate::scenario::TokenOptions;

/// How many writers, how many kills.
#[derive(Clone, Debug, clap::Args)]
pub struct Options {
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
    /// The token
    #[command(flatten)]
    pub token: TokenOptions,
}

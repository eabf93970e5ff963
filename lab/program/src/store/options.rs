// SPDX-License-Identifier: Apache-2.0
//! What to measure, and where.

use crate::scenario::TokenOptions;

/// What to measure, and how.
#[derive(Clone, Debug, clap::Args)]
pub struct Options {
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
    /// The token
    #[command(flatten)]
    pub token: TokenOptions,
}

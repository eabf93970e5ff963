// SPDX-License-Identifier: Apache-2.0
//! What every scenario takes.

use std::path::PathBuf;

/// How long, in which order, and where to.
#[derive(Clone, Debug, clap::Args)]
#[command(next_help_heading = "Run")]
pub struct RunOptions {
    /// How long to measure, in seconds; at least six repetitions where arms are compared [default: 30,
    /// of aa 10]
    #[arg(long, value_name = "S", value_parser = seconds)]
    pub seconds: Option<f64>,
    /// Repetitions of every cell, whatever the time
    #[arg(long, value_name = "N", value_parser = at_least_one)]
    pub repetitions: Option<usize>,
    /// Random seed of the order, to repeat a run
    #[arg(long, value_name = "N")]
    pub seed: Option<u64>,
    /// The experiment to write, a directory [default: SCENARIO-TIME.labx, here]
    #[arg(long, short, value_name = "NAME.labx")]
    pub output: Option<PathBuf>,
    /// Print the result as JSON instead of text
    #[arg(long)]
    pub json: bool,
}

impl RunOptions {
    /// Where the experiment goes.
    pub(crate) fn directory(&self, name: &str) -> PathBuf {
        let unnamed = || PathBuf::from(format!("{name}-{}.labx", crate::machine::now()));
        self.output.clone().unwrap_or_else(unnamed)
    }
}

fn seconds(text: &str) -> Result<f64, String> {
    let seconds = text.parse::<f64>().ok().filter(|seconds| (0.01..=86_400.0).contains(seconds));
    seconds.ok_or_else(|| "seconds are between 0.01 and 86400".to_owned())
}

fn at_least_one(text: &str) -> Result<usize, String> {
    let count = text.parse::<usize>().ok().filter(|count| (1..=100_000).contains(count));
    count.ok_or_else(|| "repetitions are between 1 and 100000".to_owned())
}

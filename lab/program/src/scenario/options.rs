// SPDX-License-Identifier: Apache-2.0
//! What every scenario takes.

use std::path::PathBuf;

/// How long, in which order, and where to.
#[derive(Clone, Debug, Default, clap::Args)]
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
    /// Whether samples are taken
    #[command(flatten)]
    pub sampling: SamplingOptions,
}

/// Samples of where the time goes, by function.
#[derive(Clone, Debug, clap::Args)]
pub struct SamplingOptions {
    /// Run every cell and arm once more while samples are taken, for so many seconds each [default: 1]
    #[arg(
        long, value_name = "S", num_args = 0..=1, require_equals = true,
        default_missing_value = "1", value_parser = seconds
    )]
    pub profile: Option<f64>,
    /// Samples in a second of CPU time
    #[arg(long, value_name = "N", default_value_t = HZ, value_parser = rate)]
    pub hz: u32,
}

/// A prime number: what beats in round numbers is not always met in the same place.
const HZ: u32 = 1999;

impl Default for SamplingOptions {
    fn default() -> Self {
        Self { profile: None, hz: HZ }
    }
}

/// What a scenario takes that makes its tokens itself.
#[derive(Clone, Debug, clap::Args)]
pub struct TokenOptions {
    /// The module to measure [default: libmetaslot.so beside this program, or installed]
    #[arg(long, value_name = "PATH")]
    pub module: Option<PathBuf>,
    /// Random seed of the order, to repeat a run
    #[arg(long, value_name = "N")]
    pub seed: Option<u64>,
    /// The experiment to write, a directory [default: SCENARIO-TIME.labx, here]
    #[arg(long, short, value_name = "NAME.labx")]
    pub output: Option<PathBuf>,
    /// Print the result as JSON instead of text
    #[arg(long)]
    pub json: bool,
    /// Where tokens are made for the run [default: the directory for temporary files]
    #[arg(long, value_name = "DIR")]
    pub dir: Option<PathBuf>,
    /// Keep what was made there
    #[arg(long)]
    pub keep: bool,
}

impl RunOptions {
    /// Of a command that says itself how much it runs.
    pub(crate) fn of(token: &TokenOptions) -> Self {
        let TokenOptions { seed, output, json, .. } = token.clone();
        Self { seed, output, json, ..Self::default() }
    }

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

pub(crate) fn rate(text: &str) -> Result<u32, String> {
    let rate = text.parse::<u32>().ok().filter(|rate| (1..=20_000).contains(rate));
    rate.ok_or_else(|| "samples in a second are between 1 and 20000".to_owned())
}

fn at_least_one(text: &str) -> Result<usize, String> {
    let count = text.parse::<usize>().ok().filter(|count| (1..=100_000).contains(count));
    count.ok_or_else(|| "repetitions are between 1 and 100000".to_owned())
}

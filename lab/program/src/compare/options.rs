// SPDX-License-Identifier: Apache-2.0
//! What to compare with what.

use crate::experiment::Sample;
use serde::Serialize;
use std::path::PathBuf;

/// What to compare with what.
#[derive(Clone, Debug, clap::Args)]
pub struct Options {
    /// A, which is judged
    #[arg(value_name = "A.labx")]
    pub a: PathBuf,
    /// B, which it is compared with [default: another arm or cell of A]
    #[arg(value_name = "B.labx")]
    pub b: Option<PathBuf>,
    /// A's arm [default: of two experiments every arm of both; of one the first]
    #[arg(long, value_name = "ARM")]
    pub arm: Option<String>,
    /// B's arm [default: the same of two experiments; of one the next]
    #[arg(long, value_name = "ARM")]
    pub against_arm: Option<String>,
    /// A's cell, as 'name=level name=level' [default: every cell]
    #[arg(long, value_name = "CELL")]
    pub cell: Option<String>,
    /// B's cell [default: the same]
    #[arg(long, value_name = "CELL", requires = "cell")]
    pub against_cell: Option<String>,
    /// What is compared
    #[arg(long, value_name = "METRIC", value_enum, default_value_t = Metric::Cpu)]
    pub metric: Metric,
    /// Differences up to so many percent count as none [default: 2, or what two identical arms differed
    /// by if that is more]
    #[arg(long, value_name = "PERCENT", value_parser = percent)]
    pub margin: Option<f64>,
    /// Of profiles, functions by themselves instead of with what they call
    #[arg(long)]
    pub exclusive: bool,
    /// Write the difference of the first cell with profiles as a flame graph, SVG
    #[arg(long, value_name = "FILE.svg")]
    pub flame: Option<PathBuf>,
    /// Compare experiments of different machines, clocks or sources all the same
    #[arg(long)]
    pub anyway: bool,
    /// Print the result as JSON instead of text
    #[arg(long)]
    pub json: bool,
}

/// What a unit of work costs.
#[derive(Clone, Copy, Debug, Eq, PartialEq, Serialize, clap::ValueEnum)]
#[serde(rename_all = "snake_case")]
pub enum Metric {
    /// CPU time of the experiment alone
    Cpu,
    /// Wall time: as busy as the machine was
    Wall,
}

impl Metric {
    pub(crate) fn of(self, sample: &Sample) -> f64 {
        match self {
            Self::Cpu => sample.cpu_each(),
            Self::Wall => sample.wall_each(),
        }
    }
}

pub(super) fn percent(text: &str) -> Result<f64, String> {
    let percent = text.parse::<f64>().ok().filter(|percent| (0.1..=1000.0).contains(percent));
    percent.ok_or_else(|| "a margin is between 0.1 and 1000 percent".to_owned())
}

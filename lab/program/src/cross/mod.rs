// SPDX-License-Identifier: Apache-2.0
//! `lab cross`: where two arms change places along a factor, and where a curve has a cliff.

mod axis;
mod cliff;
mod print;
mod report;

use crate::crossover::crossover;
use crate::experiment::{Experiment, Sample};
use crate::output::say;
use crate::random::Random;
use crate::{Failure, Result};
pub(crate) use axis::{Axis, Series, short};
use cliff::cliffs;
pub(crate) use report::{Crossing, Fall, Report};
use std::path::PathBuf;

/// The interval's draws are the same each time a file is read.
const SEED: u64 = 1;

/// Which curves, along which factor.
#[derive(Clone, Debug, clap::Args)]
pub struct Options {
    /// The experiment
    #[arg(value_name = "NAME.labx")]
    pub experiment: PathBuf,
    /// The factor along the axis [default: the number with most levels]
    #[arg(long, value_name = "FACTOR")]
    pub x: Option<String>,
    /// Compare this arm … [default: every one]
    #[arg(long, value_name = "ARM")]
    pub arm: Option<String>,
    /// … with that one [default: the first]
    #[arg(long, value_name = "ARM")]
    pub against: Option<String>,
    /// Print the result as JSON instead of text
    #[arg(long)]
    pub json: bool,
}

/// Finds and prints.
pub(crate) fn run(options: &Options) -> Result<()> {
    let experiment = Experiment::read(&options.experiment)?;
    let arms = arms(options, &experiment)?;
    let report = report(&experiment, options.x.as_deref(), &arms)?;
    if options.json {
        return say(&(serde_json::to_string_pretty(&report)? + "\n"));
    }
    say(&print::text(&report))
}

/// Each arm that is compared, and with which.
fn arms(options: &Options, experiment: &Experiment) -> Result<Vec<[String; 2]>> {
    let all = &experiment.plan.arms;
    for arm in options.arm.iter().chain(&options.against) {
        if !all.contains(arm) {
            return Err(Failure::new(format!("there is no arm {arm:?}"))
                .hint(format!("there are: {}", all.join(", "))));
        }
    }
    let against = options.against.clone().or_else(|| all.first().cloned()).unwrap_or_default();
    let compared = all.iter().filter(|arm| options.arm.as_ref().is_none_or(|named| named == *arm));
    Ok(compared.filter(|arm| **arm != against).map(|arm| [arm.clone(), against.clone()]).collect())
}

/// All pairs of arms that are compared by default.
pub(crate) fn all_arms(experiment: &Experiment) -> Vec<[String; 2]> {
    let Some((first, others)) = experiment.plan.arms.split_first() else { return Vec::new() };
    others.iter().map(|arm| [arm.clone(), first.clone()]).collect()
}

/// Everything, before it is printed.
pub(crate) fn report(
    experiment: &Experiment,
    x: Option<&str>,
    arms: &[[String; 2]],
) -> Result<Report> {
    let axis = Axis::of(experiment, x)?;
    let series = axis.series(experiment);
    let crossings = |series: &Series| -> Vec<Crossing> {
        arms.iter().filter_map(|arms| crossing(experiment, series, arms)).collect()
    };
    let falls = |series: &Series| -> Vec<Fall> {
        let of_arm = |arm: &String| {
            let costs = series.costs(experiment, arm, Sample::cpu_each);
            cliffs(&series.values(), &costs)
                .into_iter()
                .map(|cliff| Fall { series: series.name.clone(), arm: arm.clone(), cliff })
                .collect::<Vec<_>>()
        };
        experiment.plan.arms.iter().flat_map(of_arm).collect()
    };
    Ok(Report {
        schema: "metaslot-lab-cross/1",
        x: axis.name.clone(),
        crossovers: series.iter().flat_map(crossings).collect(),
        cliffs: series.iter().flat_map(falls).collect(),
        curves: series.len() * experiment.plan.arms.len(),
        axis,
    })
}

fn crossing(experiment: &Experiment, series: &Series, arms: &[String; 2]) -> Option<Crossing> {
    let logs: Vec<Vec<f64>> = series
        .cells
        .iter()
        .map(|(_, cell)| {
            let pairs =
                experiment.pairs_of(cell, [arms[0].as_str(), arms[1].as_str()], Sample::cpu_each);
            pairs.logs().to_vec()
        })
        .collect();
    let crossover = crossover(&series.values(), &logs, &mut Random::new(SEED))?;
    Some(Crossing {
        series: series.name.clone(),
        arm: arms[0].clone(),
        against: arms[1].clone(),
        crossover,
    })
}

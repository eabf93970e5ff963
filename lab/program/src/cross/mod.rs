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
use crate::scenario::margin;
use crate::verdict::{Comparison, Family, Verdict};
use crate::{Failure, Result};
pub(crate) use axis::{Axis, Series, short};
use cliff::{Step, cliffs, steps};
pub(crate) use report::{Crossing, Fall, Report};
use std::collections::BTreeMap;
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
    let crossings = arms.iter().flat_map(|arms| crossings(experiment, &series, arms));
    let mut crossovers: Vec<Crossing> = crossings.collect();
    let falls = experiment.plan.arms.iter().flat_map(|arm| falls(experiment, &series, arm));
    let mut cliffs: Vec<Fall> = falls.collect();
    // Curve by curve, however they were judged.
    let place = |name: &str| series.iter().position(|series| series.name == name);
    crossovers.sort_by_key(|crossing| place(&crossing.series));
    cliffs.sort_by_key(|fall| place(&fall.series));
    Ok(Report {
        schema: "metaslot-lab-cross/1",
        x: axis.name.clone(),
        crossovers,
        cliffs,
        curves: series.len() * experiment.plan.arms.len(),
        axis,
    })
}

/// Where two arms change places on each curve: the verdicts at all places of all curves are one family.
fn crossings(experiment: &Experiment, series: &[Series], arms: &[String; 2]) -> Vec<Crossing> {
    let both = [arms[0].as_str(), arms[1].as_str()];
    let pairs = |cell: &String| experiment.pairs_of(cell, both, Sample::cpu_each);
    let cells = || series.iter().flat_map(|series| series.cells.iter().map(|(_, cell)| cell));
    let compared = |cell: &String| Some((cell.clone(), Comparison::of(&pairs(cell))?));
    let compared: Vec<(String, Comparison)> = cells().filter_map(compared).collect();
    let names: Vec<String> = compared.iter().map(|(cell, _)| cell.clone()).collect();
    let verdicts = Family::new(compared, margin(experiment)).verdicts();
    let judged: BTreeMap<String, Verdict> = names.into_iter().zip(verdicts).collect();
    let crossing = |series: &Series| {
        let logs: Vec<Vec<f64>> =
            series.cells.iter().map(|(_, cell)| pairs(cell).logs().to_vec()).collect();
        let verdict = |(_, cell): &(f64, String)| {
            judged.get(cell).copied().unwrap_or(Verdict::Unresolved { more: None })
        };
        let verdicts: Vec<Verdict> = series.cells.iter().map(verdict).collect();
        let crossover = crossover(&series.values(), &logs, &mut Random::new(SEED))?;
        Some(Crossing {
            series: series.name.clone(),
            arm: arms[0].clone(),
            against: arms[1].clone(),
            crossover: crossover.carried(&series.values(), &verdicts),
        })
    };
    series.iter().filter_map(crossing).collect()
}

/// The cliffs of an arm: the steps of all its curves are one family.
fn falls(experiment: &Experiment, series: &[Series], arm: &str) -> Vec<Fall> {
    let of_curve = |series: &Series| {
        let costs = series.costs(experiment, arm, Sample::cpu_each);
        let name = series.name.clone();
        steps(&series.values(), &costs)
            .into_iter()
            .map(move |step| (name.clone(), step))
            .collect::<Vec<_>>()
    };
    let (names, steps): (Vec<String>, Vec<Step>) = series.iter().flat_map(of_curve).unzip();
    let cliffs = names.into_iter().zip(cliffs(&steps));
    let fall = |(series, cliff): (String, Option<_>)| {
        Some(Fall { series, arm: arm.to_owned(), cliff: cliff? })
    };
    cliffs.filter_map(fall).collect()
}

// SPDX-License-Identifier: Apache-2.0
//! `lab compare`: two experiments, or two arms or cells of one, cell by cell.
//!
//! Within one experiment the runs were interleaved, so they are compared in pairs. Two experiments were
//! not: their samples are two groups, and what the machine was like in one and not in the other is not
//! in the interval. Both say so.

mod functions;
mod kin;
mod print;
mod sides;

use crate::experiment::{Experiment, Sample};
use crate::output::say;
use crate::profile::View;
use crate::scenario::margin;
use crate::verdict::{Comparison, Estimate, Family, Margin, Verdict};
use crate::{Failure, Result};
use functions::Profiles;
pub(crate) use functions::{Function, Functions};
use serde::Serialize;
pub(crate) use sides::{Side, Sides};
use std::path::{Path, PathBuf};

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

/// Functions of more cells than this are no longer read.
const PROFILES: usize = 6;

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

/// Everything that a comparison says.
#[derive(Debug, Serialize)]
pub(crate) struct Report {
    schema: &'static str,
    a: String,
    b: String,
    metric: Metric,
    /// The unit of `a_cost` and `b_cost`.
    cost: String,
    margin_percent: f64,
    /// The runs were interleaved, and are compared in pairs.
    paired: bool,
    /// What both do not have in common.
    differences: Vec<String>,
    pub(crate) cells: Vec<Row>,
    /// Of the family of cells.
    faster: usize,
    slower: usize,
    same: usize,
    /// Of cells with profiles on both sides.
    pub(crate) functions: Vec<Functions>,
    /// Cells that only one side has.
    unmatched: Vec<String>,
}

/// One cell.
#[derive(Debug, Serialize)]
pub(crate) struct Row {
    pub(crate) name: String,
    pub(crate) a_cost: f64,
    pub(crate) b_cost: f64,
    pub(crate) samples: [usize; 2],
    pub(crate) ratio: Estimate,
    pub(crate) verdict: Verdict,
    pub(crate) sentence: String,
}

/// Compares and prints.
pub(crate) fn run(options: &Options) -> Result<()> {
    let a = Experiment::read(&options.a)?;
    let other = options.b.as_deref().map(Experiment::read).transpose()?;
    let report = report(options, &a, other.as_ref())?;
    if let Some(path) = &options.flame {
        let flame = report.functions.first().ok_or_else(|| {
            Failure::new("no cell has profiles on both sides").hint("measure with --profile")
        })?;
        std::fs::write(path, &flame.flame).map_err(|error| Failure::file(path, &error))?;
    }
    if options.json {
        return say(&(serde_json::to_string_pretty(&report)? + "\n"));
    }
    say(&print::text(&report))
}

/// Everything, before it is printed.
pub(crate) fn report(options: &Options, a: &Experiment, b: Option<&Experiment>) -> Result<Report> {
    let differences = b.map_or_else(|| Ok(Vec::new()), |b| kin::check(a, b, options.anyway))?;
    let (sides, unmatched) = sides::choose(options, a, b)?;
    let margin = options.margin.map_or_else(
        || Margin::larger(margin(a), b.map_or_else(|| margin(a), margin)),
        Margin::of_percent,
    );
    let metric = options.metric;
    let view = if options.exclusive { View::Exclusive } else { View::Inclusive };
    let profiles = Profiles::read(&options.a, options.b.as_deref().unwrap_or(&options.a))?;
    let compared = |sides: &Sides<'_>| Some((sides.name(), sides.compare(metric)?));
    let compared: Vec<(String, Comparison)> = sides.iter().filter_map(compared).collect();
    if compared.is_empty() {
        return Err(Failure::new("there are no samples of both sides"));
    }
    let rows = sides.iter().filter_map(|sides| row(sides, metric, margin)).collect();
    let headline = Family::new(compared, margin).headline();
    Ok(Report {
        schema: "metaslot-lab-compare/1",
        a: shown(&options.a),
        b: shown(options.b.as_deref().unwrap_or(&options.a)),
        metric,
        cost: match metric {
            Metric::Cpu => a.manifest.provenance.cost(),
            Metric::Wall => format!("ns for each {}", a.manifest.provenance.unit),
        },
        margin_percent: margin.percent(),
        paired: sides.iter().all(Sides::is_paired),
        differences,
        cells: rows,
        faster: headline.faster,
        slower: headline.slower,
        same: headline.same,
        functions: sides
            .iter()
            .filter_map(|sides| profiles.compare(sides, view))
            .take(PROFILES)
            .collect(),
        unmatched,
    })
}

/// Two experiments cell by cell, as without any options.
pub(crate) fn report_of(
    a_path: &Path,
    b_path: Option<&Path>,
    a: &Experiment,
    b: &Experiment,
    anyway: bool,
) -> Result<Report> {
    let options = Options {
        a: a_path.to_owned(),
        b: b_path.map(Path::to_owned),
        arm: None,
        against_arm: None,
        cell: None,
        against_cell: None,
        metric: Metric::Cpu,
        margin: None,
        exclusive: false,
        flame: None,
        anyway,
        json: false,
    };
    report(&options, a, Some(b))
}

impl Report {
    /// In how many cells what holds.
    pub(crate) fn headline(&self) -> String {
        let decided = self.faster + self.slower + self.same;
        format!(
            "{} cells: A is faster in {}, slower in {}, the same in {}, unresolved in {}; margin {:.1} %, \
             all cells in view",
            self.cells.len(),
            self.faster,
            self.slower,
            self.same,
            self.cells.len() - decided,
            self.margin_percent
        )
    }

    /// How the two were measured, and what they do not have in common.
    pub(crate) fn note(&self) -> String {
        let how = if self.paired {
            "run interleaved, compared in pairs"
        } else {
            "two experiments, compared as two groups: what changed on the machine between them is not \
             in the intervals"
        };
        let differences = self.differences.iter().map(|words| format!("\nnot the same: {words}"));
        how.to_owned() + &differences.collect::<String>()
    }

    /// A row's verdict in words: of two groups there are samples, not pairs.
    pub(crate) fn verdict(&self, row: &Row) -> String {
        let words = row.verdict.to_string();
        if self.paired { words } else { words.replace("pair", "sample") }
    }

    /// The margin on the scale of logarithms.
    pub(crate) fn margin_log(&self) -> f64 {
        (self.margin_percent / 100.0).ln_1p()
    }
}

fn row(sides: &Sides<'_>, metric: Metric, margin: Margin) -> Option<Row> {
    let comparison = sides.compare(metric)?;
    let [a_name, b_name] = sides.names();
    Some(Row {
        name: sides.name(),
        a_cost: sides.a.cost(metric)?,
        b_cost: sides.b.cost(metric)?,
        samples: [sides.a.samples().count(), sides.b.samples().count()],
        ratio: comparison.ratio(),
        verdict: comparison.verdict(margin),
        sentence: comparison.sentence(&a_name, &b_name, margin),
    })
}

fn shown(path: &Path) -> String {
    path.display().to_string()
}

fn percent(text: &str) -> std::result::Result<f64, String> {
    let percent = text.parse::<f64>().ok().filter(|percent| (0.1..=1000.0).contains(percent));
    percent.ok_or_else(|| "a margin is between 0.1 and 1000 percent".to_owned())
}

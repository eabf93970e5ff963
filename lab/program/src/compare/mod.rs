// SPDX-License-Identifier: Apache-2.0
//! `lab compare`: two experiments, or two arms or cells of one, cell by cell.
//!
//! Within one experiment the runs were interleaved, so they are compared in pairs. Two experiments were
//! not: their samples are two groups, and what the machine was like in one and not in the other is not
//! in the interval. Both say so.

mod functions;
mod kin;
mod options;
mod print;
mod report;
mod sides;

use crate::apart::Apart;
use crate::experiment::Experiment;
use crate::output::say;
use crate::profile::{View, alone};
use crate::scenario::{doubtful, margin};
use crate::verdict::{Comparison, Family, Margin, Verdict};
use crate::{Failure, Result};
use functions::Profiles;
pub(crate) use functions::{Function, Functions};
pub use options::{Metric, Options};
pub(crate) use report::{ComparisonRow, Report};
pub(crate) use sides::{Side, Sides};
use std::path::Path;

/// Functions of more cells than this are no longer read.
const PROFILES: usize = 6;

/// Compares and prints.
pub(crate) fn run(options: &Options) -> Result<()> {
    let a = Experiment::read(&options.a)?;
    let other = options.b.as_deref().map(Experiment::read).transpose()?;
    let report = report(options, &a, other.as_ref())?;
    if let Some(path) = &options.flame {
        let flame = report.functions.first().ok_or_else(|| {
            Failure::new("no cell has profiles on both sides").hint("measure with --profile")
        })?;
        std::fs::write(path, alone(&flame.flame)).map_err(|error| Failure::file(path, &error))?;
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
    let other = options.b.as_deref().unwrap_or(&options.a);
    let profiles = Profiles::read((&options.a, &a.plan), (other, &b.unwrap_or(a).plan))?;
    let apart = b.map(|b| {
        Apart::of(a, |sample| metric.of(sample)).and(Apart::of(b, |sample| metric.of(sample)))
    });
    let reach = apart.as_ref().and_then(Apart::reach);
    let compared = |sides: &Sides<'_>| {
        let comparison = sides.compare(metric)?.widened(reach.unwrap_or(0.0));
        Some((sides.name(), comparison))
    };
    let compared = sides.iter().filter_map(|sides| Some((sides, compared(sides)?)));
    let (with_samples, compared): (Vec<&Sides<'_>>, Vec<_>) = compared.unzip();
    if with_samples.is_empty() {
        return Err(Failure::new("there are no samples of both sides"));
    }
    let family = Family::new(compared, margin);
    let (verdicts, headline) = (family.verdicts(), family.headline());
    let judged = family.cells().map(|(_, comparison, _)| comparison).zip(verdicts);
    let rows = with_samples.iter().zip(judged);
    let rows = rows.filter_map(|(sides, judged)| row(sides, metric, margin, judged)).collect();
    Ok(Report {
        schema: "metaslot-lab-compare/2",
        a: shown(&options.a),
        b: shown(options.b.as_deref().unwrap_or(&options.a)),
        metric,
        cost: match metric {
            Metric::Cpu => a.manifest.provenance.cost(),
            Metric::Wall => format!("ns for each {}", a.manifest.provenance.unit),
        },
        margin_percent: margin.percent(),
        paired: sides.iter().all(Sides::is_paired),
        apart_percent: reach.map(|reach| reach.exp_m1() * 100.0),
        doubtful: [doubtful(a), b.map_or_else(|| doubtful(a), doubtful)],
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

fn row(
    sides: &Sides<'_>,
    metric: Metric,
    margin: Margin,
    (comparison, verdict): (&Comparison, Verdict),
) -> Option<ComparisonRow> {
    let [a_name, b_name] = sides.names();
    Some(ComparisonRow {
        name: sides.name(),
        a_cost: sides.a.cost(metric)?,
        b_cost: sides.b.cost(metric)?,
        samples: [sides.a.samples().count(), sides.b.samples().count()],
        ratio: comparison.ratio(),
        verdict,
        sentence: comparison.sentence_of(verdict, &a_name, &b_name, margin),
    })
}

fn shown(path: &Path) -> String {
    path.display().to_string()
}

// SPDX-License-Identifier: Apache-2.0
//! Everything that stands on the page, before it is HTML.

use super::chart::{self, Band, Chart, Curve, Point};
use super::functions::{self, Compared, Flames, Profiled};
use super::matrix::{self, Matrix};
use super::{Options, forest, rug, story};
use crate::Result;
use crate::apart::Apart;
use crate::compare;
use crate::cross::{self, Axis, Crossing, Series};
use crate::crossover::SizePoint;
use crate::experiment::{Experiment, Plan, Sample};
use crate::judged::Judged;
use crate::lines::flowing;
use crate::print;
use crate::profile;
use crate::rerun;
use crate::scenario::{Doubtful, doubtful, lab_share};
use crate::statistics::quantile;
use crate::table::digits;
use serde::Serialize;
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

/// More charts, or tables, than this are a heap and no page.
const MAX_CHARTS: usize = 24;

/// The page.
#[derive(Debug, Serialize)]
pub(super) struct Page {
    title: String,
    subtitle: String,
    /// What headings end with where two are compared: most of the page is about the first one.
    of: &'static str,
    story: Vec<String>,
    /// Short facts beside the title: a name and a value.
    facts: Vec<[String; 2]>,
    unit: String,
    matrices: Vec<Matrix>,
    left_out: usize,
    /// The least width of a table of them, in rem.
    least: f64,
    /// A cell has an asterisk.
    has_doubt: bool,
    /// There is one table, and room beside it.
    is_narrow: bool,
    charts: Vec<Chart>,
    axis: String,
    crossovers: Vec<[String; 5]>,
    /// Pairs of curves that do not cross, or where that cannot be told.
    uncrossed: usize,
    cliffs: Vec<[String; 5]>,
    /// A step has a curve around it, which may explain it.
    has_steps: bool,
    compared: Vec<Line>,
    compared_note: String,
    margin: String,
    /// How far the strips under medians reach; nothing without samples.
    spread: Option<String>,
    functions: Vec<Compared>,
    profiles: Profiled,
    flames: Flames,
    mechanism: Mechanism,
    skipped: Vec<[String; 2]>,
    provenance: Vec<[String; 2]>,
    commands: Vec<String>,
    files: Vec<String>,
    /// What the scenario itself prints.
    words: String,
}

/// A line of the comparison.
#[derive(Debug, Serialize)]
struct Line {
    name: String,
    a: String,
    b: String,
    ratio: String,
    interval: String,
    verdict: String,
    kind: &'static str,
    forest: String,
}

/// What was counted beside the cost.
#[derive(Debug, Default, Serialize)]
struct Mechanism {
    /// Of work.
    unit: String,
    columns: Vec<String>,
    /// What no cell has.
    none: Vec<String>,
    rows: Vec<(String, Vec<String>)>,
}

impl Page {
    pub(super) fn of(options: &Options, a: &Experiment, b: Option<&Experiment>) -> Result<Self> {
        let compared =
            b.map(|b| compare::report_of(&options.a, options.b.as_deref(), a, b, options.anyway));
        let compared = compared.transpose()?;
        let provenance = &a.manifest.provenance;
        let known = profile::profiles(&options.a, &a.plan)?;
        let judged = Judged::of(a);
        let mut matrices = matrix::all(a, &judged);
        let is_narrow = matrices.len() == 1 && matrices[0].is_narrow();
        let left_out = matrices.len().saturating_sub(MAX_CHARTS);
        matrices.truncate(MAX_CHARTS);
        let crossings = cross::report(a, None, &cross::all_arms(a)).ok();
        Ok(Self {
            title: provenance.scenario.clone(),
            subtitle: name(&options.a, options.b.as_deref()),
            of: if b.is_some() { ": A" } else { "" },
            story: story::tell(a, &judged, compared.as_ref(), print::finding(&options.a, a)),
            facts: facts(a, b.is_some()),
            unit: provenance.cost(),
            least: matrices.iter().map(Matrix::width).fold(0.0, f64::max),
            has_doubt: matrices.iter().any(Matrix::has_doubt),
            matrices,
            left_out,
            words: flowing(&print::body(&options.a, a)),
            spread: rug::words(a),
            charts: charts(a, crossings.as_ref()),
            axis: crossings.as_ref().map_or_else(String::new, |found| found.axis.name.clone()),
            uncrossed: crossings.as_ref().map_or(0, cross::Report::uncrossed),
            crossovers: crossings.as_ref().map_or_else(Vec::new, cross::Report::crossed_rows),
            cliffs: crossings.as_ref().map_or_else(Vec::new, cross::Report::cliff_rows),
            has_steps: crossings.as_ref().is_some_and(|found| found.axis.levels.len() > 2),
            compared: compared.as_ref().map_or_else(Vec::new, |report| lines(report, &a.plan)),
            compared_note: compared.as_ref().map_or_else(String::new, compare::Report::note),
            margin: format!("{:.1} %", judged.margin.percent()),
            functions: compared.as_ref().map_or_else(Vec::new, functions::compared),
            profiles: functions::profiled(a, &known),
            flames: functions::flames(a, &known, compared.as_ref()),
            mechanism: mechanism(a),
            is_narrow,
            skipped: a
                .plan
                .skipped
                .iter()
                .map(|cell| [cell.cell.clone(), cell.why.clone()])
                .collect(),
            provenance: facts_of_origin(a),
            commands: std::iter::once(a).chain(b).map(rerun::command).collect(),
            files: options
                .b
                .iter()
                .chain([&options.a])
                .rev()
                .map(|path| path.display().to_string())
                .collect(),
        })
    }
}

fn name(a: &Path, b: Option<&Path>) -> String {
    match b {
        Some(b) => format!("A: {} · B: {}", a.display(), b.display()),
        None => a.display().to_string(),
    }
}

fn facts(experiment: &Experiment, compared: bool) -> Vec<[String; 2]> {
    let manifest = &experiment.manifest;
    let Doubtful { doubtful, samples } = doubtful(experiment);
    let apart = Apart::of(experiment, Sample::cpu_each);
    let apart = apart.largest().map_or_else(
        || "not measured".to_owned(),
        |largest| format!("up to {:.1} % apart", largest.exp_m1() * 100.0),
    );
    let floor = manifest.provenance.floor.as_ref();
    let floor = floor.map_or_else(
        || "not measured that day".to_owned(),
        |floor| format!("up to {:.1} % apart that day", floor.cpu.exp_m1() * 100.0),
    );
    let share = lab_share(experiment);
    let share = share.map_or_else(
        || "unknown".to_owned(),
        |share| format!("{:.2} % of the CPU time", share * 100.0),
    );
    [
        (
            if compared { "samples of A" } else { "samples" },
            format!("{samples}, {doubtful} of them doubtful"),
        ),
        ("state", experiment.state.to_string()),
        ("two identical arms", floor),
        ("run again at the end", apart),
        ("the lab's own work", share),
        ("processor", manifest.machine.processor.clone()),
        ("load at the start", format!("{:.2}", manifest.machine.load)),
    ]
    .map(|(name, value)| [name.to_owned(), value])
    .into()
}

fn facts_of_origin(experiment: &Experiment) -> Vec<[String; 2]> {
    let (manifest, provenance) = (&experiment.manifest, &experiment.manifest.provenance);
    let mut facts = vec![["machine".to_owned(), manifest.machine_line()]];
    let commit = manifest.commit.as_deref().unwrap_or("unknown");
    facts.push(["program".to_owned(), format!("metaslot {} ({commit})", manifest.version)]);
    facts.push(["started".to_owned(), crate::machine::date(manifest.started)]);
    let named = |map: &BTreeMap<String, String>| -> Vec<[String; 2]> {
        map.iter().map(|(name, value)| [name.clone(), value.clone()]).collect()
    };
    facts.extend(named(&provenance.sources).into_iter().map(|[name, value]| {
        let name = match name.as_str() {
            "cpu" => "CPU time".to_owned(),
            "machine" => "the machine's shares".to_owned(),
            _ => name,
        };
        [name, value]
    }));
    let factor = |factor: Option<f64>| factor.map_or_else(|| "unknown".to_owned(), digits);
    let [before, after] = provenance.core_factor.map(factor);
    facts.push(["core cycles in a tick".to_owned(), format!("{before} before, {after} after")]);
    facts.extend(named(&provenance.settings));
    facts.push(["order".to_owned(), format!("random, seed {}", experiment.plan.seed)]);
    facts
}

/// One chart for each curve's arms; of a single arm one chart for all curves.
fn charts(experiment: &Experiment, crossings: Option<&cross::Report>) -> Vec<Chart> {
    let Ok(axis) = Axis::of(experiment, None) else { return Vec::new() };
    let series = axis.series(experiment);
    let arms = &experiment.plan.arms;
    let unit = experiment.manifest.provenance.cost();
    let groups: Vec<(String, Vec<Curve>)> = if arms.len() > 1 {
        let of_series = |series: &Series| {
            let curve = |arm: &String| curve(experiment, series, arm, arm);
            (series.name.clone(), arms.iter().map(curve).collect())
        };
        series.iter().map(of_series).collect()
    } else {
        let curves = series.iter().map(|one| curve(experiment, one, &arms[0], &one.name));
        // Points alone are in the table.
        let curves: Vec<Curve> = curves.filter(|curve| curve.points.len() > 1).collect();
        curves.chunks(chart::MAX_SERIES).map(|some| (String::new(), some.to_vec())).collect()
    };
    let points = || groups.iter().flat_map(|(_, curves)| curves).flat_map(|curve| &curve.points);
    let Some(costs) = chart::costs(points().flat_map(|point| [point.low, point.high])) else {
        return Vec::new();
    };
    let bands = |name: &String| -> Vec<Band> {
        let all = crossings.into_iter().flat_map(|found| &found.crossovers);
        all.filter(|crossing| crossing.series == *name).filter_map(band).take(2).collect()
    };
    let draw = |(name, curves): &(String, Vec<Curve>)| {
        chart::draw(name, &axis, &unit, curves, &bands(name), costs)
    };
    groups.iter().take(MAX_CHARTS).filter_map(draw).collect()
}

fn curve(experiment: &Experiment, series: &Series, arm: &str, name: &str) -> Curve {
    let point = |(x, cell): &(f64, String)| {
        let costs: Vec<f64> =
            experiment.of(cell, arm).map(|sample| experiment.ticks(sample)).collect();
        let [low, middle, high] = [0.25, 0.5, 0.75].map(|share| quantile(&costs, share));
        (low > 0.0 && high.is_finite()).then_some(Point { x: *x, low, middle, high })
    };
    Curve { name: name.to_owned(), points: series.cells.iter().filter_map(point).collect() }
}

/// A crossover whose both ends are in the range.
fn band(crossing: &Crossing) -> Option<Band> {
    let found = &crossing.crossover;
    let (SizePoint::At(at), SizePoint::At(low), SizePoint::At(high)) =
        (found.at, found.low, found.high)
    else {
        return None;
    };
    let short = cross::short;
    let words = format!(
        "{} and {} change places at {} ({} to {})",
        crossing.arm,
        crossing.against,
        short(at),
        short(low),
        short(high)
    );
    Some(Band { at, low, high, words })
}

fn lines(report: &compare::Report, plan: &Plan) -> Vec<Line> {
    let margin = report.margin_log();
    let reach = forest::reach(report.cells.iter().map(|row| row.ratio), margin);
    let line = |row: &compare::ComparisonRow| Line {
        name: plan.short(&row.name),
        a: digits(row.a_cost),
        b: digits(row.b_cost),
        ratio: format!("{:.3}", row.ratio.value),
        interval: format!("{:.3} to {:.3}", row.ratio.low, row.ratio.high),
        verdict: report.verdict(row),
        kind: row.verdict.kind(),
        forest: forest::draw(row.ratio, margin, reach),
    };
    report.cells.iter().map(line).collect()
}

/// Counters for each unit of work; shares of the machine as they are.
fn mechanism(experiment: &Experiment) -> Mechanism {
    let names = experiment.samples.iter().flat_map(|sample| sample.measured.counters.keys());
    let names: BTreeSet<&String> = names.filter(|name| *name != "lab_ns").collect();
    let bytes = experiment.manifest.provenance.unit == "byte";
    let (scale, unit) =
        if bytes { (1024.0, "KB") } else { (1.0, experiment.manifest.provenance.unit.as_str()) };
    let typical = |cell: &str, arm: &str, name: &str| {
        let share = name.starts_with("machine_");
        let figure = |sample: &Sample| {
            if share {
                sample.measured.counters.get(name).map(|value| value * 100.0)
            } else {
                sample.counted_each(name).map(|value| value * scale)
            }
        };
        let value = experiment.typical(cell, arm, figure);
        value.map_or_else(String::new, |value| {
            if share { format!("{value:.0} %") } else { scientific(value) }
        })
    };
    let rows = experiment.plan.cells().into_iter().flat_map(|cell| {
        let of_arm = |arm: &String| {
            let short = experiment.plan.short(&cell);
            let name =
                if experiment.plan.arms.len() > 1 { format!("{short} {arm}") } else { short };
            (name, names.iter().map(|name| typical(&cell, arm, name)).collect())
        };
        experiment.plan.arms.iter().map(of_arm).collect::<Vec<_>>()
    });
    let mut rows: Vec<(String, Vec<String>)> = rows.collect();
    let is_none = |at: usize| rows.iter().all(|(_, texts)| NONE.contains(&&*texts[at]));
    let shown: Vec<bool> = (0..names.len()).map(|at| !is_none(at)).collect();
    for (_, texts) in &mut rows {
        let mut at = shown.iter();
        texts.retain(|_| at.next() == Some(&true));
    }
    let (mut columns, mut none) = (Vec::new(), Vec::new());
    for (name, is_shown) in names.iter().zip(shown) {
        let kind = if is_shown { &mut columns } else { &mut none };
        kind.push(name.replace('_', " "));
    }
    Mechanism { unit: unit.to_owned(), columns, none, rows }
}

/// What a column shows that has nothing.
const NONE: [&str; 3] = ["", "0 %", "0.00"];

fn scientific(value: f64) -> String {
    let small = value != 0.0 && value.abs() < 0.01;
    if small { format!("{value:.1e}") } else { digits(value) }
}

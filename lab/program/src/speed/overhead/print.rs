// SPDX-License-Identifier: Apache-2.0
//! The tables: made from a report, and from nothing else.

use super::cells::{Cell, Goal};
use super::report::{AGAIN, CellResult, Check, MODULE, RAW, RIVAL, Report};
use crate::experiment::Experiment;
use crate::goal::Verdict;
use crate::ranks::CONFIDENCE;
use crate::scenario::heading;
use crate::speed::part::{LANES, RAW as BARE, RIVAL as OTHER};
use crate::statistics::Estimate;
use crate::table::{Table, digits, nanoseconds};
use std::fmt::Write;
use std::path::Path;

/// Foreign CPU use above which a run says so.
const CONTAMINATED: f64 = 0.10;
/// The columns that are shown where goals are asked for.
const GOAL: [&str; 2] = ["goal", ""];

/// Everything that an experiment says.
pub(crate) fn text(directory: &Path, experiment: &Experiment, goals: bool) -> String {
    let settings = &experiment.manifest.provenance.settings;
    let mut text = heading(experiment);
    for (name, shown) in [(BARE, RAW), (LANES, MODULE), (OTHER, RIVAL)] {
        let who = settings.get(name).map_or("unknown", String::as_str);
        writeln!(text, "{shown}: {who}").ok();
    }
    writeln!(text, "seed {}\n", experiment.plan.seed).ok();
    text.push_str(&tables(&Report::of(directory, experiment), goals));
    text
}

pub(super) fn tables(report: &Report, goals: bool) -> String {
    let mut text = one_thread(report, goals);
    if report.cells.iter().any(|cell| cell.most_threads().is_some()) {
        text.push('\n');
        text.push_str(&threads(report, goals));
    }
    text.push_str(&notes(report));
    text
}

/// The cells, and where it is asked for what they have to reach.
pub(crate) fn list(cells: &[Cell], goals: bool) -> Table {
    let mut heading = vec!["cell", "mechanism", "bytes"];
    heading.extend(["goal", "scaling"].into_iter().filter(|_| goals));
    let mut table = Table::new(&heading);
    for cell in cells {
        let goals = [
            cell.goal.map_or_else(String::new, goal),
            cell.scaling.map_or_else(String::new, |goal| format!("≥ {goal} of raw")),
        ]
        .into_iter()
        .filter(|_| goals);
        let (mechanism, bytes) = (cell.mechanism_name().to_owned(), cell.bytes.to_string());
        table.row([cell.name.to_owned(), mechanism, bytes].into_iter().chain(goals).collect());
    }
    table
}

fn goal(goal: Goal) -> String {
    match goal {
        Goal::Ratio(goal) => format!("≥ {goal}"),
        Goal::AddedNs(goal) => format!("≤ +{goal} ns"),
        Goal::CpuGrowth(goal) => format!("CPU ≤ {goal}×"),
    }
}

/// Per operation, CPU time at one thread.
fn one_thread(report: &Report, goals: bool) -> String {
    let mut heading = vec![
        "1 thread, CPU time",
        "raw",
        "module",
        "of raw",
        "interval",
        "added",
        "rival",
        "of raw",
        "raw twice",
    ];
    heading.extend(GOAL.into_iter().filter(|_| goals));
    let mut table = Table::new(&heading);
    for cell in &report.cells {
        let time = |name: &str| cell.cpu_ns(name).map_or_else(|| dash(cell, name), nanoseconds);
        let ratio = cell.ratio(MODULE);
        let mut cells = vec![
            cell.name.clone(),
            time(RAW),
            time(MODULE),
            value(ratio),
            interval(ratio),
            cell.added(MODULE).map_or_else(String::new, |added| nanoseconds(added.value)),
            time(RIVAL),
            value(cell.ratio(RIVAL)),
            value(cell.ratio(AGAIN)),
        ];
        let goal = [
            cell.goal.map_or_else(String::new, goal),
            cell.verdict().map_or("", Verdict::word).to_owned(),
        ];
        cells.extend(goal.into_iter().filter(|_| goals));
        table.row(cells);
    }
    table.render()
}

/// Scaling: the rate at N threads over the rate at one.
fn threads(report: &Report, goals: bool) -> String {
    let most = report.threads.iter().max().copied().unwrap_or(1);
    let first = format!("{most} threads over 1");
    let mut heading = vec![
        first.as_str(),
        "raw",
        "module",
        "of raw",
        "interval",
        "by CPU",
        "rival",
        "of raw",
        "CPU/op",
        "rival CPU/op",
    ];
    heading.extend(GOAL.into_iter().filter(|_| goals));
    let mut table = Table::new(&heading);
    for cell in report.cells.iter().filter(|cell| cell.most_threads().is_some()) {
        let over = cell.scaling_over_raw(MODULE);
        let (goal, verdict) = match (cell.scaling_goal, cell.goal) {
            (Some(goal), _) => (format!("≥ {goal}"), cell.scaling_verdict()),
            (None, Some(wanted @ Goal::CpuGrowth(_))) => (goal(wanted), cell.verdict()),
            (None, _) => (String::new(), None),
        };
        let mut cells = vec![
            cell.name.clone(),
            value(cell.scaling(RAW)),
            value(cell.scaling(MODULE)),
            value(over),
            interval(over),
            value(cell.cpu_scaling_over_raw(MODULE)),
            value(cell.scaling(RIVAL)),
            value(cell.scaling_over_raw(RIVAL)),
            value(cell.cpu_growth(MODULE)),
            value(cell.cpu_growth(RIVAL)),
        ];
        let goal = [goal, verdict.map_or("", Verdict::word).to_owned()];
        cells.extend(goal.into_iter().filter(|_| goals));
        table.row(cells);
    }
    table.render()
}

fn value(estimate: Option<Estimate>) -> String {
    estimate.map_or_else(|| "-".to_owned(), |estimate| format!("{:.3}", estimate.value))
}

fn interval(estimate: Option<Estimate>) -> String {
    estimate.map_or_else(String::new, |e| format!("{:.3}–{:.3}", e.low, e.high))
}

fn dash(cell: &CellResult, name: &str) -> String {
    let cannot = cell.unsupported.iter().any(|(provider, _)| provider == name);
    if cannot { "n/s" } else { "-" }.to_owned()
}

/// The module beside OpenSSL.
fn module(check: &Check) -> String {
    let rate = check.module_per_second;
    rate.map_or_else(String::new, |rate| {
        format!("; module {}/s, ratio {:.3}", digits(rate), rate / check.openssl_per_second)
    })
}

/// How often the interval of the raw library over itself holds 1: about as often as the confidence
/// says, or the run is worth less than it claims.
fn control(report: &Report) -> String {
    let controls: Vec<Estimate> =
        report.cells.iter().filter_map(|cell| cell.ratio(AGAIN)).collect();
    let right = controls.iter().filter(|estimate| estimate.low <= 1.0 && 1.0 <= estimate.high);
    let widest = controls.iter().map(|estimate| (estimate.high / estimate.low).ln() / 2.0);
    format!(
        "control: raw over itself holds 1 in {} of {} intervals; the widest is ±{:.1} %\n",
        right.count(),
        controls.len(),
        widest.fold(0.0, f64::max).exp_m1() * 100.0
    )
}

/// What a reader must know: reasons, comparisons, contamination.
fn notes(report: &Report) -> String {
    let mut text = String::from("\n");
    writeln!(
        text,
        "of raw: speed over the raw library, Hodges-Lehmann estimate of paired rounds, {}% \
         interval of the signed-rank test; not adjusted for the number of cells",
        CONFIDENCE * 100.0
    )
    .ok();
    text.push_str(&control(report));
    for cell in &report.cells {
        for (provider, reason) in &cell.unsupported {
            if provider != RAW && provider != AGAIN {
                writeln!(text, "n/s: {} by {provider}: {reason}", cell.name).ok();
            }
        }
    }
    for check in &report.openssl {
        writeln!(
            text,
            "check: {} by the {} clock: raw {}/s, {} {}/s, ratio {:.3}, {}{}",
            check.cell,
            check.clock,
            digits(check.raw_per_second),
            check.version.split(' ').take(2).collect::<Vec<_>>().join(" "),
            digits(check.openssl_per_second),
            check.ratio(),
            check.verdict(),
            module(check)
        )
        .ok();
    }
    let foreign = report.cells.iter().filter_map(|cell| cell.foreign_cpu);
    let foreign = foreign.fold(0.0, f64::max);
    if foreign > CONTAMINATED {
        writeln!(
            text,
            "contaminated: other processes used up to {foreign:.2} CPUs; believe CPU time and \
             ratios, not scaling by the wall clock"
        )
        .ok();
    }
    text
}

#[cfg(test)]
mod tests {
    use super::super::report::Arm;
    use super::*;

    fn arm(provider: &str, threads: usize, ns: f64) -> Arm {
        let cpu_ns = vec![ns, ns * 1.01, ns * 0.99, ns, ns * 1.02, ns * 0.98];
        let wall_ns = cpu_ns.iter().map(|each| each / threads as f64).collect();
        Arm { provider: provider.to_owned(), threads, cpu_ns, wall_ns }
    }

    fn report() -> Report {
        let cell = CellResult {
            name: "sha256-16".into(),
            mechanism: "CKM_SHA256".into(),
            size: 16,
            goal: Some(Goal::AddedNs(120.0)),
            scaling_goal: Some(0.97),
            arms: vec![
                arm(RAW, 1, 50.0),
                arm(AGAIN, 1, 50.0),
                arm(MODULE, 1, 150.0),
                arm(RAW, 2, 50.0),
                arm(MODULE, 2, 300.0),
            ],
            unsupported: vec![(RIVAL.into(), "C_DigestInit: CKR_MECHANISM_INVALID".into())],
            foreign_cpu: Some(0.5),
        };
        Report { threads: vec![1, 2], cells: vec![cell], openssl: Vec::new() }
    }

    fn row<'a>(text: &'a str, start: &str) -> Vec<&'a str> {
        let line = text.lines().find(|line| line.starts_with(start)).unwrap();
        line.split_whitespace().collect()
    }

    #[test]
    fn a_file_of_an_earlier_version_is_printed() {
        let file = include_str!("../../../../../testdata/lab/speed-1.json");
        let text = tables(&serde_json::from_str(file).unwrap(), true);
        assert_eq!(row(&text, "sha256-16").last(), Some(&"met"));
    }

    #[test]
    fn goals_are_shown_where_they_are_asked_for() {
        let text = tables(&report(), false);
        for word in ["met", "MISSED", "goal", "≤", "≥"] {
            assert!(!text.contains(word), "{word} in\n{text}");
        }
    }

    #[test]
    fn a_row_says_time_ratio_addition_and_verdict() {
        let text = one_thread(&report(), true);
        let cells = row(&text, "sha256-16");
        assert_eq!(cells[1..6], ["50.0", "ns", "150", "ns", "0.333"]);
        assert!(text.contains("100 ns"), "{text}");
        assert!(text.contains("n/s"), "{text}");
        assert_eq!(cells.last(), Some(&"met"));
    }

    #[test]
    fn scaling_that_falls_behind_raw_is_missed() {
        let text = threads(&report(), true);
        let cells = row(&text, "sha256-16");
        assert_eq!(cells[1..4], ["2.000", "1.000", "0.500"]);
        assert_eq!(cells.last(), Some(&"MISSED"));
    }

    #[test]
    fn reasons_and_contamination_are_told() {
        let text = notes(&report());
        assert!(text.contains("n/s: sha256-16 by rival: C_DigestInit: CKR_MECHANISM_INVALID"));
        assert!(text.contains("other processes used up to 0.50 CPUs"));
    }
}

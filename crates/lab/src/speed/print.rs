// SPDX-License-Identifier: Apache-2.0
//! The tables: made from a report, and from nothing else.

use super::cell::{Cell, Goal};
use super::report::{AGAIN, CellResult, MODULE, RAW, RIVAL, Report};
use crate::statistics::{CONFIDENCE, Estimate};
use crate::table::{Table, digits, nanoseconds};
use std::fmt::Write;

/// Foreign CPU use above which a run says so.
const CONTAMINATED: f64 = 0.10;

/// Everything that a run says.
pub(crate) fn table(report: &Report) -> String {
    let mut text = head(report);
    text.push_str(&one_thread(report));
    if report.cells.iter().any(|cell| cell.most_threads().is_some()) {
        text.push('\n');
        text.push_str(&threads(report));
    }
    text.push_str(&notes(report));
    text
}

/// The cells and what they have to reach.
pub(crate) fn list(cells: &[Cell]) -> String {
    let mut table = Table::new(&["cell", "mechanism", "bytes", "goal", "scaling"]);
    for cell in cells {
        table.row(vec![
            cell.name.to_owned(),
            cell.mechanism.to_owned(),
            cell.size.to_string(),
            cell.goal.map_or_else(String::new, goal),
            cell.scaling.map_or_else(String::new, |goal| format!("≥ {goal} of raw")),
        ]);
    }
    table.render()
}

fn goal(goal: Goal) -> String {
    match goal {
        Goal::Ratio(goal) => format!("≥ {goal}"),
        Goal::AddedNs(goal) => format!("≤ +{goal} ns"),
        Goal::CpuGrowth(goal) => format!("CPU ≤ {goal}×"),
    }
}

fn head(report: &Report) -> String {
    let mut text = format!("{}\n", report.machine.line());
    for provider in &report.providers {
        let commit = provider.commit.as_ref().map_or_else(String::new, |c| format!(", commit {c}"));
        let path = provider.path.as_deref().unwrap_or_default();
        writeln!(text, "{:<7} {} {path}{commit}", provider.name, provider.description).ok();
    }
    writeln!(
        text,
        "{} rounds in {:.0} s, batches of {} ms, seed {}\n",
        report.rounds, report.seconds, report.batch_ms, report.seed
    )
    .ok();
    text
}

/// Per operation, CPU time at one thread.
fn one_thread(report: &Report) -> String {
    let mut table = Table::new(&[
        "1 thread, CPU time",
        "raw",
        "module",
        "of raw",
        "interval",
        "added",
        "rival",
        "of raw",
        "raw twice",
        "goal",
        "",
    ]);
    for cell in &report.cells {
        let time = |name: &str| cell.cpu_ns(name).map_or_else(|| dash(cell, name), nanoseconds);
        let ratio = cell.ratio(MODULE);
        table.row(vec![
            cell.name.clone(),
            time(RAW),
            time(MODULE),
            value(ratio),
            interval(ratio),
            cell.added(MODULE).map_or_else(String::new, |added| nanoseconds(added.value)),
            time(RIVAL),
            value(cell.ratio(RIVAL)),
            value(cell.ratio(AGAIN)),
            cell.goal.map_or_else(String::new, goal),
            cell.verdict().map_or("", super::report::Verdict::word).to_owned(),
        ]);
    }
    table.render()
}

/// Scaling: the rate at N threads over the rate at one.
fn threads(report: &Report) -> String {
    let most = report.threads.iter().max().copied().unwrap_or(1);
    let heading = format!("{most} threads over 1");
    let mut table = Table::new(&[
        &heading,
        "raw",
        "module",
        "of raw",
        "interval",
        "by CPU",
        "rival",
        "of raw",
        "CPU/op",
        "rival CPU/op",
        "goal",
        "",
    ]);
    for cell in report.cells.iter().filter(|cell| cell.most_threads().is_some()) {
        let over = cell.scaling_over_raw(MODULE);
        let (goal, verdict) = match (cell.scaling_goal, cell.goal) {
            (Some(goal), _) => (format!("≥ {goal}"), cell.scaling_verdict()),
            (None, Some(wanted @ Goal::CpuGrowth(_))) => (goal(wanted), cell.verdict()),
            (None, _) => (String::new(), None),
        };
        table.row(vec![
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
            goal,
            verdict.map_or("", super::report::Verdict::word).to_owned(),
        ]);
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
            "check: {} by the {} clock: raw {}/s, {} {}/s, ratio {:.3}{}",
            check.cell,
            check.clock,
            digits(check.raw_per_second),
            check.version.split(' ').take(2).collect::<Vec<_>>().join(" "),
            digits(check.openssl_per_second),
            check.ratio(),
            if check.agrees() { ", within 5 %" } else { ", more than 5 % apart" }
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

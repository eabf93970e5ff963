// SPDX-License-Identifier: Apache-2.0
//! The tables: made from a report, and from nothing else.

use super::report::{Arm, Door, KernelResult, Report, RowResult, Window};
use super::rows::{Goal, Operation};
use crate::experiment::Experiment;
use crate::goal::Verdict;
use crate::scenario::heading;
use crate::statistics::{Estimate, median};
use crate::table::{Table, digits, nanoseconds};
use std::collections::BTreeSet;
use std::fmt::Write;
use std::path::Path;

/// Foreign CPU use above which a run says so.
const CONTAMINATED: f64 = 0.10;
/// Share of the limit below which a kernel explains itself.
const ENOUGH: f64 = 0.6;
const NOTHING: &str = "-";
/// The columns that are shown where goals are asked for.
const GOAL: [&str; 2] = ["goal", ""];

/// Everything that an experiment says.
pub(crate) fn text(directory: &Path, experiment: &Experiment, goals: bool) -> String {
    let mut text = heading(experiment);
    let settings = &experiment.manifest.provenance.settings;
    for name in ["module", "openssl", "without", "sample, ms", "window, ms"] {
        if let Some(value) = settings.get(name) {
            writeln!(text, "{name}: {value}").ok();
        }
    }
    writeln!(text, "seed {}\n", experiment.plan.seed).ok();
    text.push_str(&tables(&Report::of(directory, experiment), goals));
    text
}

pub(super) fn tables(report: &Report, goals: bool) -> String {
    let mut text = String::new();
    if report.rows.iter().any(|row| row.kernel.is_some()) {
        text.push_str(&kernels(report, goals));
        text.push('\n');
        text.push_str(&limits(report));
        text.push_str(&notes(report));
        text.push('\n');
    }
    if report.rows.iter().any(|row| row.module.is_some()) {
        text.push_str(&doors(report, goals));
        text.push('\n');
        text.push_str(&latencies(report));
        text.push_str(&unserved(report));
    }
    text.push_str(&contamination(report));
    text
}

/// The rows, and where it is asked for what they have to reach.
pub(crate) fn list(rows: &[Operation], goals: bool) -> Table {
    let mut heading = vec!["row", "mechanism", "policy"];
    if goals {
        heading.extend(["full lanes", "16 threads", "asynchronous"]);
    }
    let mut table = Table::new(&heading);
    for row in rows {
        let policy = if row.legacy { "legacy" } else { "default" };
        let mut cells = vec![row.name.to_owned(), row.mechanism().to_owned(), policy.to_owned()];
        if goals {
            cells.extend([
                row.kernel.map_or_else(String::new, |goal| format!("≥ {goal} × raw")),
                goal(row.blocking),
                goal(row.asynchronous),
            ]);
        }
        table.row(cells);
    }
    table
}

fn goal(goal: Goal) -> String {
    match goal {
        Goal::OverRaw(goal) => format!("≥ {goal} × raw"),
        Goal::OverPlain(goal) => format!("≥ {goal} × plain"),
    }
}

/// Each kernel's speed over the plain library, by filled lanes.
fn kernels(report: &Report, goals: bool) -> String {
    let results: Vec<(&RowResult, &KernelResult)> = with_kernel(report).collect();
    let filled: BTreeSet<usize> =
        results.iter().flat_map(|(_, kernel)| &kernel.lanes).map(|lanes| lanes.filled).collect();
    let numbers: Vec<String> = filled.iter().map(ToString::to_string).collect();
    let mut heading = vec!["kernel, speed over raw by lanes filled", "raw", "full lanes"];
    heading.extend(numbers.iter().map(String::as_str));
    heading.push("interval");
    heading.extend(GOAL.into_iter().filter(|_| goals));
    let mut table = Table::new(&heading);
    for (row, kernel) in results {
        let mut cells = kernel_cells(row, kernel, &filled);
        cells.extend(kernel_goal(row, kernel).into_iter().filter(|_| goals));
        table.row(cells);
    }
    table.render()
}

fn kernel_cells(row: &RowResult, kernel: &KernelResult, filled: &BTreeSet<usize>) -> Vec<String> {
    let time =
        |ns: &[f64]| if ns.is_empty() { NOTHING.to_owned() } else { nanoseconds(median(ns)) };
    let full = kernel.over_raw(kernel.full());
    let mut cells = vec![row.name.clone(), time(&kernel.raw_ns), time(kernel.full())];
    for number in filled {
        let lanes = kernel.lanes.iter().find(|lanes| lanes.filled == *number);
        cells.push(match lanes {
            Some(lanes) => ratio(kernel.over_raw(&lanes.ns).map(|estimate| estimate.value)),
            None => String::new(),
        });
    }
    cells.push(full.map_or_else(String::new, interval));
    cells
}

/// The goal of a kernel, and whether it was reached.
fn kernel_goal(row: &RowResult, kernel: &KernelResult) -> [String; 2] {
    let full = kernel.over_raw(kernel.full());
    let judged = row.kernel_goal.zip(full).map(|(goal, full)| Verdict::at_least(full, goal).word());
    [
        row.kernel_goal.map_or_else(String::new, |goal| format!("≥ {goal}")),
        judged.unwrap_or_default().to_owned(),
    ]
}

fn with_kernel(report: &Report) -> impl Iterator<Item = (&RowResult, &KernelResult)> {
    report.rows.iter().filter_map(|row| Some((row, row.kernel.as_ref()?)))
}

/// What the instructions alone would take.
fn limits(report: &Report) -> String {
    let mut table = Table::new(&[
        "limit, full lanes",
        "instruction",
        "for each",
        "known by",
        "per ns",
        "limit",
        "measured",
        "reached",
    ]);
    for (row, kernel) in with_kernel(report) {
        let Some((limit, port)) = kernel.limit() else {
            let why = if kernel.available { NOTHING } else { "not on this processor" };
            table.row(vec![row.name.clone(), why.to_owned()]);
            continue;
        };
        table.row(vec![
            row.name.clone(),
            port.name.clone(),
            format!("{:.0}", port.instructions),
            kernel.source.clone(),
            format!("{:.2}", 1.0 / median(&port.ns)),
            nanoseconds(limit),
            nanoseconds(median(kernel.full())),
            kernel.reached().map_or_else(String::new, |share| format!("{:.0} %", 100.0 * share)),
        ]);
    }
    table.render()
}

/// Where the rest goes.
fn notes(report: &Report) -> String {
    let mut text = String::new();
    for (row, kernel) in with_kernel(report) {
        if kernel.reached().is_some_and(|share| share < ENOUGH) {
            let note = if row.note.is_empty() { "not explained" } else { &row.note };
            writeln!(text, "{} below {:.0} %: {note}", row.name, 100.0 * ENOUGH).ok();
        }
    }
    text
}

/// Through the C ABI: what an operation costs.
fn doors(report: &Report, goals: bool) -> String {
    let mut heading = vec![
        "C ABI, CPU time of one operation",
        "threads",
        "keys",
        "per second",
        "with lanes",
        "without",
        "faster",
        "interval",
        "over raw",
        "in lanes",
        "batch",
    ];
    heading.extend(GOAL.into_iter().filter(|_| goals));
    let mut table = Table::new(&heading);
    for (row, arm) in arms(report) {
        let raw = row.kernel.as_ref().filter(|kernel| !kernel.raw_ns.is_empty());
        let raw = raw.map(|kernel| median(&kernel.raw_ns));
        let mut cells = door_cells(row, arm, raw);
        cells.extend(door_goal(row, arm, raw).into_iter().filter(|_| goals));
        table.row(cells);
    }
    table.render()
}

fn arms(report: &Report) -> impl Iterator<Item = (&RowResult, &Arm)> {
    let of = |row| RowResult::arms(row).map(move |arm| (row, arm));
    report.rows.iter().flat_map(of)
}

fn door(row: &RowResult, arm: &Arm) -> String {
    match arm.door {
        Door::Blocking => format!("{} waiting", row.name),
        Door::Asynchronous => format!("{} {} in flight", row.name, arm.depth),
    }
}

fn time(value: Option<f64>) -> String {
    value.map_or_else(|| NOTHING.to_owned(), nanoseconds)
}

fn door_cells(row: &RowResult, arm: &Arm, raw: Option<f64>) -> Vec<String> {
    let plain = arm.over_plain();
    vec![
        door(row, arm),
        arm.threads.to_string(),
        arm.keys.to_string(),
        arm.middle(Window::rate).map_or_else(String::new, |rate| format!("{rate:.0}")),
        time(arm.middle(Window::cpu_ns)),
        time(arm.middle_without(Window::cpu_ns)),
        ratio(plain.map(|estimate| estimate.value)),
        plain.map_or_else(String::new, interval),
        ratio(arm.over_raw(raw)),
        format!("{:.0} %", 100.0 * arm.batched_share()),
        arm.fill().map_or_else(|| NOTHING.to_owned(), digits),
    ]
}

/// The goal of threads at a door, and whether it was reached.
fn door_goal(row: &RowResult, arm: &Arm, raw: Option<f64>) -> [String; 2] {
    let goal = arm.goal(row);
    let against = goal.and_then(|goal| arm.against(goal, raw));
    let judged =
        against.map_or("", |(reached, goal)| if reached >= goal { "met" } else { "MISSED" });
    [goal.map_or_else(String::new, self::goal), judged.to_owned()]
}

/// Through the C ABI: how long callers wait.
fn latencies(report: &Report) -> String {
    let mut table = Table::new(&[
        "C ABI, from the call to the result",
        "threads",
        "keys",
        "p50 with lanes",
        "without",
        "p99 with lanes",
        "without",
        "p99 shorter",
        "interval",
    ]);
    for (row, arm) in arms(report) {
        let shorter = arm.shorter();
        table.row(vec![
            door(row, arm),
            arm.threads.to_string(),
            arm.keys.to_string(),
            time(arm.middle(|window| window.p50_ns)),
            time(arm.middle_without(|window| window.p50_ns)),
            time(arm.middle(|window| window.p99_ns)),
            time(arm.middle_without(|window| window.p99_ns)),
            ratio(shorter.map(|estimate| estimate.value)),
            shorter.map_or_else(String::new, interval),
        ]);
    }
    table.render()
}

/// What the module does not do, and what it does not do without lanes.
fn unserved(report: &Report) -> String {
    let mut text = String::new();
    for row in &report.rows {
        let Some(module) = &row.module else { continue };
        if let Some(why) = &module.not_served {
            writeln!(text, "{}: not served by the module ({why})", row.name).ok();
        } else if let Some(why) = &module.not_served_without {
            writeln!(text, "{}: not served without lanes ({why})", row.name).ok();
        }
        let asynchronous = |arm: &&Arm| arm.door == Door::Asynchronous && arm.depth > 1;
        let mut windows =
            module.arms.iter().filter(asynchronous).flat_map(|arm| &arm.with).peekable();
        if windows.peek().is_some() && windows.all(|window| window.pending == 0) {
            writeln!(text, "{}: answered at once in asynchronous sessions", row.name).ok();
        }
    }
    text
}

fn contamination(report: &Report) -> String {
    let foreign = report.rows.iter().flat_map(|row| {
        let kernel = row.kernel.as_ref().and_then(|kernel| kernel.foreign_cpu);
        kernel.into_iter().chain(row.module.as_ref().and_then(|module| module.foreign_cpu))
    });
    let most = foreign.fold(0.0, f64::max);
    if most <= CONTAMINATED {
        return String::new();
    }
    format!("others used up to {most:.2} CPUs meanwhile: believe the ratios only\n")
}

fn ratio(value: Option<f64>) -> String {
    value.map_or_else(|| NOTHING.to_owned(), |value| format!("{} ×", digits(value)))
}

fn interval(estimate: Estimate) -> String {
    format!("{}–{}", digits(estimate.low), digits(estimate.high))
}

#[cfg(test)]
mod tests {
    use super::super::example::{arm, kernel};
    use super::super::report::ModuleResult;
    use super::super::rows::ROWS;
    use super::*;

    fn report() -> Report {
        let module = ModuleResult {
            not_served: None,
            not_served_without: None,
            arms: vec![arm(1, 0.4e-3, 0.4e-3), arm(16, 0.1e-3, 0.4e-3)],
            foreign_cpu: Some(0.5),
        };
        let row = RowResult {
            name: "sha256-8k".to_owned(),
            mechanism: "CKM_SHA256".to_owned(),
            kernel_goal: Some(3.5),
            blocking_goal: Goal::OverRaw(5.0),
            asynchronous_goal: Goal::OverPlain(0.98),
            note: "the reason".to_owned(),
            kernel: Some(kernel()),
            module: Some(module),
        };
        let unserved = ModuleResult {
            not_served: Some("C_GetMechanismInfo: 0x70".to_owned()),
            not_served_without: None,
            arms: Vec::new(),
            foreign_cpu: None,
        };
        let second = RowResult {
            name: "rc4-8k".to_owned(),
            kernel: Some(KernelResult { available: false, ports: Vec::new(), ..kernel() }),
            module: Some(unserved),
            ..row.clone()
        };
        Report { rows: vec![row, second] }
    }

    fn line<'a>(text: &'a str, start: &str) -> Vec<&'a str> {
        let found = text.lines().find(|line| line.starts_with(start));
        found.unwrap_or_else(|| panic!("no line {start} in\n{text}")).split_whitespace().collect()
    }

    #[test]
    fn each_table_says_what_was_reached() {
        let report = report();
        let kernels = kernels(&report, true);
        let cells = line(&kernels, "sha256-8k");
        assert_eq!(cells[..5], ["sha256-8k", "400", "ns", "100", "ns"]);
        assert_eq!(cells.last(), Some(&"met"), "{kernels}");
        let limits = limits(&report);
        assert_eq!(line(&limits, "sha256-8k")[1..3], ["vector", "shift"]);
        assert_eq!(line(&limits, "sha256-8k").last(), Some(&"%"));
        assert!(limits.contains("rc4-8k") && limits.contains("not on this processor"));
        let doors = doors(&report, true);
        assert_eq!(line(&doors, "sha256-8k waiting").last(), Some(&"met"), "{doors}");
        let sixteen = doors.lines().find(|line| line.contains("MISSED")).unwrap();
        assert!(sixteen.contains("16") && sixteen.contains("4.00 ×"), "{sixteen}");
        assert!(unserved(&report).contains("rc4-8k: not served by the module"));
        assert!(contamination(&report).contains("0.50 CPUs"));
    }

    #[test]
    fn goals_are_shown_where_they_are_asked_for() {
        let text = tables(&report(), false);
        for word in ["met", "MISSED", "goal", "≥"] {
            assert!(!text.contains(word), "{word} in\n{text}");
        }
    }

    #[test]
    fn a_file_of_an_earlier_version_is_printed() {
        let file = include_str!("../../../../testdata/lab/lanes-1.json");
        let text = tables(&serde_json::from_str(file).unwrap(), true);
        assert_eq!(line(&text, "md5-8k")[..3], ["md5-8k", "11.2", "µs"]);
        assert!(text.contains("md5-8k 64 in flight"), "{text}");
    }

    #[test]
    fn only_kernels_far_below_the_limit_explain_themselves() {
        let mut report = report();
        report.rows.truncate(1);
        assert_eq!(notes(&report), "");
        for port in &mut report.rows[0].kernel.as_mut().unwrap().ports {
            port.instructions /= 2.0;
        }
        assert_eq!(notes(&report), "sha256-8k below 60 %: the reason\n");
    }

    #[test]
    fn the_list_has_every_row() {
        let text = |goals| list(ROWS, goals).render();
        assert_eq!(text(true).lines().count(), ROWS.len() + 2);
        assert!(text(true).contains('≥') && !text(false).contains('≥'));
    }
}

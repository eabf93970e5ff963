// SPDX-License-Identifier: Apache-2.0
//! The table of a store run, and how it stands to what a store has to reach.

use super::report::{Filled, Level, MODULE, Report};
use crate::experiment::Experiment;
use crate::scenario::heading;
use crate::statistics::{Estimate, median, paired_ratio, quantile};
use crate::table::{Table, digits, nanoseconds};

/// Everything that an experiment says.
pub(super) fn text(experiment: &Experiment, report: &Report) -> String {
    let settings = &experiment.manifest.provenance.settings;
    let module = settings.get(MODULE).map_or("unknown", String::as_str);
    format!(
        "{}\n{module}, seed {}\n\n{}\ndisk: {} syncs/s by one writer\n\n{}",
        heading(experiment).trim_end(),
        experiment.plan.seed,
        figures(report),
        optional(&report.disk_syncs),
        goals(report)
    )
}

/// One column per store.
fn figures(report: &Report) -> String {
    let columns: Vec<String> =
        report.stores.iter().map(|level| level.objects.to_string()).collect();
    let mut heading = vec!["token objects"];
    heading.extend(columns.iter().map(String::as_str));
    let mut table = Table::new(&heading);
    let mut row = |name: &str, cell: &dyn Fn(&Level) -> String| {
        let mut cells = vec![name.to_owned()];
        cells.extend(report.stores.iter().map(cell));
        table.row(cells);
    };
    row("find by label, CPU", &|level| nanoseconds(median(&level.find_cpu_ns)));
    row("find by label, wall", &|level| nanoseconds(median(&level.find_wall_ns)));
    row("P-256 sign, CPU", &|level| nanoseconds(median(&level.sign_cpu_ns)));
    row("cold start", &|level| nanoseconds(median(&starts(level, "total_ms")) * 1e6));
    row("  load", &|level| nanoseconds(median(&starts(level, "load_ms")) * 1e6));
    row("  C_Initialize", &|level| nanoseconds(median(&starts(level, "initialize_ms")) * 1e6));
    row("  open a session", &|level| nanoseconds(median(&starts(level, "open_ms")) * 1e6));
    row("  first find", &|level| nanoseconds(median(&starts(level, "find_ms")) * 1e6));
    row("  slowest of all", &|level| nanoseconds(quantile(&starts(level, "total_ms"), 1.0) * 1e6));
    row("resident, MiB", &|level| digits(resident(level)));
    row("  before the load", &|level| {
        digits(median(&starts(level, "resident_before_kib")) / 1024.0)
    });
    row("creates/s, 1 thread", &|level| digits(median(&level.create)));
    let threads = format!("creates/s, {} threads", report.threads);
    row(&threads, &|level| digits(median(&level.create_threads)));
    row("raw SQLite/s, 1 thread", &|level| optional(&level.raw));
    let threads = format!("raw SQLite/s, {} threads", report.threads);
    row(&threads, &|level| optional(&level.raw_threads));
    row("syncs per create", &|level| filled(level, |filled| filled.syncs_per_create));
    row("filled, objects/s", &|level| filled(level, |filled| Some(filled.populated_per_second)));
    row("database, MiB", &|level| {
        filled(level, |filled| Some(filled.database_bytes as f64 / 1_048_576.0))
    });
    table.render()
}

fn filled(level: &Level, figure: impl Fn(Filled) -> Option<f64>) -> String {
    level.filled.and_then(figure).map_or_else(|| "-".to_owned(), digits)
}

fn optional(samples: &[f64]) -> String {
    if samples.is_empty() { "-".to_owned() } else { digits(median(samples)) }
}

/// A part of every cold start.
fn starts(level: &Level, part: &str) -> Vec<f64> {
    level.starts.iter().filter_map(|start| start.get(part).copied()).collect()
}

fn resident(level: &Level) -> f64 {
    median(&starts(level, "resident_kib")) / 1024.0
}

/// What a store has to reach, and whether this one does.
fn goals(report: &Report) -> String {
    let mut table = Table::new(&["goal", "measured", "interval", ""]);
    let mut judge = |what: &str, measured: String, interval: String, met: bool| {
        let verdict = if met { "met" } else { "MISSED" };
        table.row(vec![what.to_owned(), measured, interval, verdict.to_owned()]);
    };
    let Some(most) = report.stores.iter().max_by_key(|level| level.objects) else {
        return String::new();
    };
    let find = median(&most.find_cpu_ns);
    judge("find by label ≤ 12 µs", nanoseconds(find), String::new(), find <= 12_000.0);
    if let Some(many) = report.stores.iter().find(|level| level.objects == 10_000)
        && many.objects < most.objects
        && let Some(ratio) = paired_ratio(&most.find_cpu_ns, &many.find_cpu_ns)
    {
        let what = format!("find among {} over 10000 ≤ 2", most.objects);
        judge(&what, value(ratio), interval(ratio), ratio.value <= 2.0);
    }
    let cold = median(&starts(most, "total_ms"));
    judge("cold start ≤ 5 ms", format!("{cold:.2} ms"), String::new(), cold <= 5.0);
    let resident = resident(most);
    judge("resident ≤ 16 MiB", format!("{resident:.1} MiB"), String::new(), resident <= 16.0);
    let rate = median(&most.create);
    judge("creates ≥ 2500/s", digits(rate), String::new(), rate >= 2500.0);
    if let Some(ratio) = paired_ratio(&most.create, &most.raw) {
        judge("creates ≥ 0.6 of raw SQLite", value(ratio), interval(ratio), ratio.value >= 0.6);
    }
    if let Some(ratio) = paired_ratio(&most.create_threads, &most.create) {
        let what = format!("{} threads ≥ 1.5 of one", report.threads);
        judge(&what, value(ratio), interval(ratio), ratio.value >= 1.5);
    }
    let few = report.stores.iter().find(|level| level.objects <= 100);
    let many = report.stores.iter().find(|level| level.objects >= 10_000);
    if let (Some(few), Some(many)) = (few, many)
        && let Some(ratio) = paired_ratio(&few.sign_cpu_ns, &many.sign_cpu_ns)
    {
        let what = format!("P-256 sign, {} keys over {} ≥ 0.97", many.objects, few.objects);
        judge(&what, value(ratio), interval(ratio), ratio.value >= 0.97);
    }
    table.render()
}

fn value(estimate: Estimate) -> String {
    format!("{:.3}", estimate.value)
}

fn interval(estimate: Estimate) -> String {
    format!("{:.3}–{:.3}", estimate.low, estimate.high)
}

#[cfg(test)]
mod tests {
    use super::super::cold::{PARTS, Start};
    use super::*;

    fn level(objects: u64, find_ns: f64) -> Level {
        let values = [0.5, 0.1, 1.0, 0.2, 1.8, 10_240.0, 5_120.0];
        let start: Start = PARTS.map(str::to_owned).into_iter().zip(values).collect();
        Level {
            objects,
            filled: None,
            find_cpu_ns: vec![find_ns; 9],
            find_wall_ns: vec![find_ns; 9],
            sign_cpu_ns: vec![15_000.0; 9],
            starts: vec![start; 3],
            create: vec![3000.0; 9],
            create_threads: vec![9000.0; 9],
            raw: vec![4000.0; 9],
            raw_threads: vec![4500.0; 9],
        }
    }

    #[test]
    fn each_goal_is_judged_by_its_own_figures() {
        let report = Report {
            threads: "8".to_owned(),
            disk_syncs: vec![7000.0],
            stores: vec![level(10, 5_000.0), level(10_000, 5_000.0), level(1_000_000, 11_000.0)],
        };
        let text = goals(&report);
        let verdict = |goal: &str| {
            let line = text.lines().find(|line| line.starts_with(goal)).unwrap();
            line.split_whitespace().last().unwrap().to_owned()
        };
        assert_eq!(verdict("find by label"), "met");
        assert_eq!(verdict("find among 1000000 over 10000"), "MISSED");
        assert_eq!(verdict("cold start"), "met");
        assert_eq!(verdict("resident"), "met");
        assert_eq!(verdict("creates ≥ 2500/s"), "met");
        assert_eq!(verdict("creates ≥ 0.6"), "met");
        assert_eq!(verdict("8 threads"), "met");
        assert_eq!(verdict("P-256 sign, 10000 keys over 10"), "met");
    }
}

// SPDX-License-Identifier: Apache-2.0
//! The tables.

use super::view::{OVER, Rates, View};
use super::words::{self, rate};
use crate::experiment::Experiment;
use crate::lines::section;
use crate::scenario;
use crate::table::{Table, digits};
use std::fmt::Write;
use std::path::Path;

/// Everything.
pub(super) fn text(view: &View<'_>) -> String {
    let threads = view.threads();
    let with = if threads > 1 { format!(" and with {threads}") } else { String::new() };
    let mut text = format!(
        "{}\nRates by CPU time and by the wall clock, with 1 thread{with}: thousands of operations in a \
         second, or MB/s\n(Sun, 2008–2009: a Xeon X5560 with 8 cores, 1 thread and 16)\n\n{}",
        scenario::heading(view.experiment),
        rates(view),
    );
    if threads > 1 {
        writeln!(text, "\nWhat {threads} threads gain over one\n\n{}", gains(view)).ok();
    }
    write!(text, "\nCPU time of an operation over another's\n\n{}", verdicts(view)).ok();
    section(&mut text, "Why several threads gain what they gain", &words::gain(view));
    section(&mut text, "The two clocks of openssl speed", &words::clocks(view));
    section(&mut text, "Who did it", &words::who(view));
    let skipped = &view.experiment.plan.skipped;
    let left: Vec<String> = skipped.iter().map(|s| format!("{}: {}", s.cell, s.why)).collect();
    section(&mut text, "Left out", &left);
    text
}

/// Rates by both clocks, of all.
fn rates(view: &View<'_>) -> String {
    let threads = view.threads();
    let several = [format!("CPU, {threads}"), format!("wall, {threads}")];
    let titles =
        ["operation", "unit", "by", "CPU, 1", &several[0], "wall, 1", &several[1], "ratio by wall"];
    let mut table = Table::new(&titles);
    for row in view.rows() {
        let unit = if row.bulk() { "MB/s" } else { "1000/s" };
        let mut name = row.name;
        let mut line = |by: &str, cells: [String; 5]| {
            let mut whole =
                vec![std::mem::take(&mut name).to_owned(), unit.to_owned(), by.to_owned()];
            whole.extend(cells);
            table.row(whole);
        };
        let dash = || "–".to_owned();
        for by in view.doers() {
            let Some(Rates { cpu, wall, .. }) = view.rates(row, by) else {
                line(by, [dash(), dash(), dash(), dash(), dash()]);
                continue;
            };
            let shown = [cpu[0], cpu[1], wall[0], wall[1]].map(|value| rate(row, value));
            let [a, b, c, d] = shown;
            line(by, [a, b, c, d, digits(wall[1] / wall[0])]);
        }
        if let Some([default, elapsed, multi]) = view.openssl(row) {
            let [a, c, d] = [default, elapsed, multi].map(|value| rate(row, value));
            line("openssl", [a, dash(), c, d, digits(multi / elapsed)]);
        }
        let thousands = if row.bulk() { 1.0 } else { 1e3 };
        let [one, sixteen] = row.sun.map(|value| digits(value / thousands));
        line("Sun", [dash(), dash(), one, sixteen, digits(row.sun[1] / row.sun[0])]);
    }
    table.render()
}

/// The gain and its two parts.
fn gains(view: &View<'_>) -> String {
    let titles = [
        "operation",
        "by",
        "by wall",
        "= CPUs used",
        "from",
        "to",
        "/ CPU of a unit",
        "interval",
        "verdict",
    ];
    let mut table = Table::new(&titles);
    for row in view.rows() {
        for by in view.doers() {
            let (Some(rates), Some((growth, verdict))) =
                (view.rates(row, by), view.growth(row, by))
            else {
                continue;
            };
            let ratio = growth.ratio();
            table.row(vec![
                row.name.to_owned(),
                by.to_owned(),
                digits(rates.gain()),
                format!("× {}", digits(rates.more_cpus())),
                digits(rates.cpus[0]),
                digits(rates.cpus[1]),
                format!("× {}", digits(ratio.value)),
                format!("{:.3} to {:.3}", ratio.low, ratio.high),
                words::disturbed(*verdict).to_owned(),
            ]);
        }
    }
    table.render()
}

/// The module over the raw library, lanes over none, the rival over the module.
fn verdicts(view: &View<'_>) -> String {
    let titles = ["operation", "threads", "what", "ratio", "interval", "verdict"];
    let mut table = Table::new(&titles);
    let mut counts = vec![1, view.threads()];
    counts.dedup();
    for row in view.rows() {
        for threads in &counts {
            for by in OVER {
                let Some((compared, verdict)) = view.over(row, by, *threads) else { continue };
                let ratio = compared.ratio();
                table.row(vec![
                    row.name.to_owned(),
                    threads.to_string(),
                    format!("{} / {}", by[0], by[1]),
                    digits(ratio.value),
                    format!("{:.3} to {:.3}", ratio.low, ratio.high),
                    verdict.to_string(),
                ]);
            }
        }
    }
    table.render()
}

/// After the first repetition.
pub(super) fn glance(experiment: &Experiment) -> String {
    rates(&View::of(Path::new(""), experiment))
}

// SPDX-License-Identifier: Apache-2.0
//! The tables of a run: sizes downwards, paths across.

use super::{Cell, Report, words};
use crate::local::lines::wrapped;
use crate::local::path::LocalPath;
use crate::table::{Table, digits, nanoseconds};
use std::fmt::Write;

/// Everything that a run says.
pub(super) fn text(report: &Report) -> String {
    let mut text = format!("{}\n", report.machine.line());
    let congestion = report.congestion.as_deref().unwrap_or("unknown");
    let foreign = report.foreign_cpu.map_or_else(|| "unknown".to_owned(), digits);
    writeln!(
        text,
        "{} rounds, samples of {} ms, {:.0} s, TCP's congestion control {congestion}, others' load \
         {foreign} CPUs, seed {}\n",
        report.rounds, report.sample_ms, report.seconds, report.seed
    )
    .ok();
    text.push_str(&tables(report));
    for sentence in words::sentences(&report.cells).iter().chain(&report.skipped) {
        text.push_str(&wrapped(sentence));
    }
    text
}

/// Cost, throughput, outstanding writes.
pub(super) fn tables(report: &Report) -> String {
    let cost = table(report, "CPU of both ends for each KB", |cell| {
        Cell::typical(&cell.cost()).map(nanoseconds)
    });
    let gbps = table(report, "Gb/s", |cell| Cell::typical(&cell.gbps).map(digits));
    let outstanding = table(report, "outstanding writes: mean, most", |cell| {
        let mean = Cell::typical(&cell.outstanding_mean)?;
        Some(format!("{}, {:.0}", digits(mean), Cell::typical(&cell.outstanding_most)?))
    });
    format!("{cost}\n{gbps}\n{outstanding}\n")
}

fn table(report: &Report, name: &str, figure: impl Fn(&Cell) -> Option<String>) -> String {
    let measured = |path: &LocalPath| report.cells.iter().any(|cell| cell.path == *path);
    let paths: Vec<LocalPath> = LocalPath::ALL.into_iter().filter(measured).collect();
    let mut heading = vec![name];
    heading.extend(paths.iter().map(|path| path.name()));
    let mut table = Table::new(&heading);
    for size in words::sizes(&report.cells) {
        let cell = |path: &LocalPath| {
            let cell = words::find(&report.cells, *path, size);
            cell.and_then(&figure).unwrap_or_else(|| "-".to_owned())
        };
        let mut row = vec![size.to_string()];
        row.extend(paths.iter().map(cell));
        table.row(row);
    }
    table.render()
}

// SPDX-License-Identifier: Apache-2.0
//! A comparison for people.

use super::report::Report;
use crate::table::{Table, digits};
use std::fmt::Write;

/// More rows than this are no longer read as sentences.
const SENTENCES: usize = 4;

pub(super) fn text(report: &Report) -> String {
    let mut text = format!("A  {}\nB  {}\n{}\n\n", report.a, report.b, report.note());
    let (a, b) = (format!("A, {}", report.cost), format!("B, {}", report.cost));
    let mut table = Table::new(&["cell", "samples", &a, &b, "A over B", "interval", "A is"]);
    for row in &report.cells {
        table.row(vec![
            row.name.clone(),
            format!("{}, {}", row.samples[0], row.samples[1]),
            digits(row.a_cost),
            digits(row.b_cost),
            format!("{:.3}", row.ratio.value),
            format!("{:.3} to {:.3}", row.ratio.low, row.ratio.high),
            report.verdict(row),
        ]);
    }
    text.push_str(&table.render());
    text.push('\n');
    if report.cells.len() <= SENTENCES {
        let doubt = report.doubt();
        if !doubt.is_empty() {
            writeln!(text, "{}", doubt.trim_end()).ok();
        }
        for row in &report.cells {
            writeln!(text, "{}: {}", row.name, row.sentence).ok();
        }
    } else {
        writeln!(text, "{}", report.headline()).ok();
    }
    for sentence in report.doubtful() {
        writeln!(text, "{sentence}").ok();
    }
    for functions in &report.functions {
        write!(text, "\n{}", functions.text(&report.cost)).ok();
    }
    for cell in &report.unmatched {
        writeln!(text, "only in one of them: {cell}").ok();
    }
    text
}

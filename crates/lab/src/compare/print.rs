// SPDX-License-Identifier: Apache-2.0
//! A comparison for people.

use super::{Report, Row};
use crate::table::{Table, digits};
use std::fmt::Write;

/// More rows than this are no longer read as sentences.
const SENTENCES: usize = 4;

pub(super) fn text(report: &Report) -> String {
    let mut text = format!("A  {}\nB  {}\n", report.a, report.b);
    for difference in &report.differences {
        writeln!(text, "not the same: {difference}").ok();
    }
    if report.paired {
        text.push_str("run interleaved, compared in pairs\n\n");
    } else {
        text.push_str(
            "two experiments, compared as two groups: what changed on the machine between them is not \
             in the intervals\n\n",
        );
    }
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
            verdict(report, row),
        ]);
    }
    text.push_str(&table.render());
    text.push('\n');
    if report.cells.len() <= SENTENCES {
        for row in &report.cells {
            writeln!(text, "{}: {}", row.name, row.sentence).ok();
        }
    } else {
        let decided = report.faster + report.slower + report.same;
        writeln!(
            text,
            "{} cells: A is faster in {}, slower in {}, the same in {}, unresolved in {}; margin {:.1} %, \
             all cells in view",
            report.cells.len(),
            report.faster,
            report.slower,
            report.same,
            report.cells.len() - decided,
            report.margin_percent
        )
        .ok();
    }
    for cell in &report.unmatched {
        writeln!(text, "only in one of them: {cell}").ok();
    }
    text
}

/// Of two groups there are samples, not pairs.
fn verdict(report: &Report, row: &Row) -> String {
    let words = row.verdict.to_string();
    if report.paired { words } else { words.replace("pair", "sample") }
}

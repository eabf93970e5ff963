// SPDX-License-Identifier: Apache-2.0
//! One screen: what was accepted, then what follows from it.

use super::fill::Pattern;
use super::report::{BUFFERS, Cell, Report, find};
use super::words;
use crate::lines::wrapped;
use crate::local::path::LocalPath;
use crate::table::{Table, digits};
use std::fmt::Write;

/// Everything that a run says.
pub(super) fn text(report: &Report) -> String {
    let mut text = format!("{}\n\n", report.machine.line());
    text.push_str(&table(&report.cells));
    text.push('\n');
    for sentence in words::sentences(&report.cells) {
        text.push_str(&wrapped(&sentence));
    }
    writeln!(
        text,
        "\nEvery accepted byte was read by the peer and compared. {:.1} s.",
        report.seconds
    )
    .ok();
    text
}

/// One line for each path and buffer.
fn table(cells: &[Cell]) -> String {
    let mut table = Table::new(&[
        "until EAGAIN",
        "asked",
        "buffer",
        "12 + 696",
        "bytes",
        "share",
        "1 byte",
        "share",
        "708",
        "writev",
        "8 × 708",
    ]);
    for path in LocalPath::REFUSING {
        for asked in BUFFERS {
            if let Some(row) = row(cells, path, asked) {
                table.row(row);
            }
        }
    }
    table.render()
}

fn row(cells: &[Cell], path: LocalPath, asked: Option<usize>) -> Option<Vec<String>> {
    let cell = |pattern| find(cells, path, asked, pattern);
    let (two, byte) = (cell(Pattern::TwoWrites)?, cell(Pattern::Byte)?);
    Some(vec![
        path.name().to_owned(),
        asked.map_or_else(|| "default".to_owned(), |bytes| bytes.to_string()),
        two.buffer.to_string(),
        writes(two),
        two.payload.to_string(),
        share(two),
        writes(byte),
        share(byte),
        writes(cell(Pattern::OneWrite)?),
        writes(cell(Pattern::Gathered)?),
        writes(cell(Pattern::Batch)?),
    ])
}

/// A path that was left alone accepts more.
fn writes(cell: &Cell) -> String {
    format!("{}{}", if cell.full { "" } else { "> " }, cell.writes)
}

fn share(cell: &Cell) -> String {
    let percent = 100.0 * cell.share();
    format!("{}%", digits(percent))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_that_was_left_alone_is_marked() {
        let mut cell = words::cell_of(LocalPath::Tcp, Pattern::Byte, 1000, 5, 5);
        assert_eq!((writes(&cell).as_str(), share(&cell).as_str()), ("5", "0.50%"));
        cell.full = false;
        assert_eq!(writes(&cell), "> 5");
    }
}

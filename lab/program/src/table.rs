// SPDX-License-Identifier: Apache-2.0
//! A plain text table: the first column to the left, the others to the right.

use crate::Result;
use crate::output::say;
use serde_json::{Value, json};

/// Rows of cells under one heading.
#[derive(Debug)]
pub(crate) struct Table {
    rows: Vec<Vec<String>>,
}

impl Table {
    pub(crate) fn new(heading: &[&str]) -> Self {
        Self { rows: vec![heading.iter().map(|&text| text.to_owned()).collect()] }
    }

    pub(crate) fn row(&mut self, cells: Vec<String>) {
        self.rows.push(cells);
    }

    /// The same as a table in Markdown.
    pub(crate) fn markdown(&self) -> String {
        let mut text = String::new();
        for (number, row) in self.rows.iter().enumerate() {
            let cells: Vec<String> = row.iter().map(|cell| cell.replace('|', "\\|")).collect();
            text.push_str(&format!("| {} |\n", cells.join(" | ")));
            if number == 0 {
                let kinds =
                    row.iter().enumerate().map(|(at, _)| if at == 0 { "---" } else { "---:" });
                text.push_str(&format!("| {} |\n", kinds.collect::<Vec<_>>().join(" | ")));
            }
        }
        text
    }

    /// The text, with a line under the heading.
    pub(crate) fn render(&self) -> String {
        let columns = self.rows.iter().map(Vec::len).max().unwrap_or(0);
        let width = |column: usize| {
            let cells = self.rows.iter().filter_map(|row| row.get(column));
            cells.map(|cell| cell.chars().count()).max().unwrap_or(0)
        };
        let widths: Vec<usize> = (0..columns).map(width).collect();
        let mut text = String::new();
        for (number, row) in self.rows.iter().enumerate() {
            let cells = row.iter().zip(&widths).enumerate().map(|(column, (cell, width))| {
                if column == 0 { format!("{cell:<width$}") } else { format!("{cell:>width$}") }
            });
            text.push_str(cells.collect::<Vec<_>>().join("  ").trim_end());
            text.push('\n');
            if number == 0 {
                let lines: Vec<String> = widths.iter().map(|width| "-".repeat(*width)).collect();
                text.push_str(&lines.join("  "));
                text.push('\n');
            }
        }
        text
    }

    /// An object for each row, by what stands above its cells; a number is one, and nothing null.
    fn objects(&self) -> Value {
        let (heading, rows) = self.rows.split_at(1);
        let text = |cell: &String| if cell.is_empty() { Value::Null } else { json!(cell) };
        let value = |cell: &String| cell.parse().map_or_else(|_| text(cell), |n: u64| json!(n));
        let object = |row: &Vec<String>| -> Value {
            let names = heading.iter().flatten().map(|name| name.replace(' ', "_"));
            Value::Object(names.zip(row.iter().map(value)).collect())
        };
        rows.iter().map(object).collect()
    }

    /// Prints what there is to measure, for people or for programs.
    ///
    /// # Errors
    /// The disk is full.
    pub(crate) fn list(&self, as_json: bool) -> Result<()> {
        say(&if as_json { format!("{:#}\n", self.objects()) } else { self.render() })
    }
}

/// A duration in nanoseconds with three digits and a unit.
pub(crate) fn nanoseconds(value: f64) -> String {
    let magnitude = value.abs();
    let (value, unit) = match magnitude {
        m if m >= 1e9 => (value / 1e9, "s"),
        m if m >= 1e6 => (value / 1e6, "ms"),
        m if m >= 1e3 => (value / 1e3, "µs"),
        _ => (value, "ns"),
    };
    format!("{} {unit}", digits(value))
}

/// Three significant digits.
pub(crate) fn digits(value: f64) -> String {
    match value.abs() {
        m if m >= 99.95 => format!("{value:.0}"),
        m if m >= 9.995 => format!("{value:.1}"),
        _ => format!("{value:.2}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_line_up() {
        let mut table = Table::new(&["what", "ns"]);
        table.row(vec!["a".into(), "1.00".into()]);
        table.row(vec!["longer".into(), "10.00".into()]);
        assert_eq!(table.render(), "what       ns\n------  -----\na        1.00\nlonger  10.00\n");
    }

    #[test]
    fn durations_keep_three_digits() {
        assert_eq!(nanoseconds(7.0), "7.00 ns");
        assert_eq!(nanoseconds(123.4), "123 ns");
        assert_eq!(nanoseconds(99_960.0), "100 µs");
        assert_eq!(nanoseconds(-1_234_567.0), "-1.23 ms");
    }

    #[test]
    fn a_program_reads_numbers_and_null_where_there_is_nothing() {
        let mut table = Table::new(&["cell", "in bytes"]);
        table.row(vec!["a".into(), "32".into()]);
        table.row(vec!["b".into(), String::new()]);
        let objects = json!([{"cell": "a", "in_bytes": 32}, {"cell": "b", "in_bytes": null}]);
        assert_eq!(table.objects(), objects);
    }
}

// SPDX-License-Identifier: Apache-2.0
//! The only place that prints. Results go to standard output; notes, prompts and errors to standard
//! error. Colour only on a terminal, and never where `NO_COLOR` is set.

use crate::encoding::printable;
use crate::failure::{Failure, Result};
use serde_json::Value;
use std::io::{self, IsTerminal, Write};
use std::mem;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};

/// How results are shown.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Output {
    /// One JSON document instead of text.
    pub(crate) json: bool,
    /// The URIs alone.
    pub(crate) quiet: bool,
}

/// One result in its three forms.
#[derive(Debug, Default)]
pub(crate) struct Report {
    /// For people; ends with a newline, or is empty.
    pub(crate) text: String,
    /// For programs.
    pub(crate) json: Value,
    /// For `--quiet`, one per line.
    pub(crate) uris: Vec<String>,
}

impl Output {
    /// Prints a result.
    pub(crate) fn print(self, report: &Report) -> Result<()> {
        self.print_warning(report, &[])
    }

    /// Prints a result and what is dangerous about it: in the document, else on standard error, with
    /// `--quiet` too.
    pub(crate) fn print_warning(self, report: &Report, warnings: &[String]) -> Result<()> {
        warnings.iter().for_each(|warning| warn(warning.clone()));
        if self.json {
            return self.line(&format!("{:#}", with_warnings(report.json.clone())));
        }
        self.result(report)?;
        print_warnings();
        Ok(())
    }

    fn result(self, report: &Report) -> Result<()> {
        if self.quiet {
            report.uris.iter().try_for_each(|uri| self.line(uri))
        } else {
            write_out(harmless(&report.text).as_bytes())
        }
    }

    /// Prints one line as it is.
    pub(crate) fn line(self, text: &str) -> Result<()> {
        write_out(format!("{text}\n").as_bytes())
    }

    /// Something the user should know beside the result; not with `--quiet` or `--json`.
    pub(crate) fn note(self, text: &str) {
        if !self.quiet && !self.json {
            text.lines().for_each(|line| write_error(&format!("{}\n", printable(line))));
        }
    }

    /// How far a long command is, on a terminal.
    pub(crate) fn progress(self, done: u64, total: u64, what: &str) {
        if !self.shows_progress() {
            return;
        }
        match done < total {
            true => self.rewrite(&format!("{done} of {total} {what}")),
            false => self.rewrite(""),
        }
    }

    /// Whether anyone would see it, and nothing reads it.
    pub(crate) fn shows_progress(self) -> bool {
        !self.quiet && !self.json && io::stderr().is_terminal()
    }

    /// The last line of the terminal anew.
    pub(crate) fn rewrite(self, line: &str) {
        write_error(&format!("\r{}\x1b[K", printable(line)));
    }

    /// Part of a line about how far a command is, that was asked for.
    pub(crate) fn mark(self, text: &str) {
        if !self.quiet && !self.json {
            write_error(text);
        }
    }

    /// An error, as JSON when the results are.
    pub(crate) fn failure(self, failure: &Failure) {
        if self.json {
            write_error(&format!("{:#}\n", with_warnings(failure.json())));
        } else {
            print_warnings();
            write_error(&failure.text(colour(&io::stderr())));
        }
    }
}

/// What makes a line bold, and ends that.
const BOLD: &str = "\x1b[1m";
const PLAIN: &str = "\x1b[0m";

/// Text in which only whole lines are bold, and nothing else is what a terminal obeys: labels and comments are other people's
/// words.
fn harmless(text: &str) -> String {
    let escaped = |line: &str| line.split('\t').map(printable).collect::<Vec<_>>().join("\t");
    let lines = text.split('\n').map(|line| {
        match line.strip_prefix(BOLD).and_then(|rest| rest.strip_suffix(PLAIN)) {
            Some(heading) => format!("{BOLD}{}{PLAIN}", escaped(heading)),
            None => escaped(line),
        }
    });
    lines.collect::<Vec<_>>().join("\n")
}

/// What the user should know and was not told yet.
static WARNINGS: Mutex<Vec<String>> = Mutex::new(Vec::new());

/// Has something dangerous said with the result or the error, whichever comes; once.
pub(crate) fn warn(warning: String) {
    let mut warnings = WARNINGS.lock().unwrap_or_else(PoisonError::into_inner);
    if !warnings.contains(&warning) {
        warnings.push(warning);
    }
}

/// What is not so any more.
pub(crate) fn take_back(warning: &str) {
    let mut warnings = WARNINGS.lock().unwrap_or_else(PoisonError::into_inner);
    warnings.retain(|other| other != warning);
}

fn take_warnings() -> Vec<String> {
    mem::take(&mut *WARNINGS.lock().unwrap_or_else(PoisonError::into_inner))
}

fn with_warnings(mut document: Value) -> Value {
    let warnings = take_warnings();
    if !warnings.is_empty() {
        document["warnings"] = warnings.into();
    }
    document
}

/// On standard error: those that no document has taken.
pub(crate) fn print_warnings() {
    for warning in take_warnings() {
        write_error(&format!("warning: {}\n", printable(&warning)));
    }
}

/// Whether who reads has closed the pipe.
static CLOSED: AtomicBool = AtomicBool::new(false);

/// Bytes to standard output. Where the pipe is closed (`metaslot key list | head -1`) nothing more is printed, and the
/// command ends as it would have.
pub(crate) fn write_out(bytes: &[u8]) -> Result<()> {
    if is_closed() {
        return Ok(());
    }
    let mut out = io::stdout().lock();
    match out.write_all(bytes).and_then(|()| out.flush()) {
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => {
            CLOSED.store(true, Ordering::Relaxed);
            Ok(())
        }
        other => other.map_err(|error| Failure::io("cannot write standard output", &error)),
    }
}

/// Whether nothing is printed any more.
pub(crate) fn is_closed() -> bool {
    CLOSED.load(Ordering::Relaxed)
}

/// Nothing can be done when standard error itself fails.
fn write_error(text: &str) {
    io::stderr().lock().write_all(text.as_bytes()).ok();
}

fn colour(stream: &impl IsTerminal) -> bool {
    let refused = std::env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty());
    stream.is_terminal() && !refused
}

/// Columns as wide as their widest cell, two blanks between them, headings in capitals.
#[derive(Debug)]
pub(crate) struct Table {
    rows: Vec<Vec<String>>,
    right: Vec<usize>,
}

impl Table {
    /// A table with these headings; `right` are the columns of numbers.
    pub(crate) fn new(headings: &[&str], right: &[usize]) -> Self {
        let right = right.to_vec();
        Self { rows: vec![headings.iter().map(ToString::to_string).collect()], right }
    }

    /// One row more.
    pub(crate) fn push(&mut self, row: Vec<String>) {
        self.rows.push(row.iter().map(|cell| printable(cell)).collect());
    }

    /// The text; headings in bold on a terminal. Empty without rows.
    pub(crate) fn text(&self) -> String {
        if self.rows.len() < 2 {
            return String::new();
        }
        let columns = self.rows[0].len();
        let width = |column: usize| self.rows.iter().map(|row| row[column].chars().count()).max();
        let widths: Vec<usize> = (0..columns).map(|column| width(column).unwrap_or(0)).collect();
        let bold = colour(&io::stdout());
        let lines = self.rows.iter().enumerate().map(|(number, row)| {
            let line = self.line(row, &widths);
            if number == 0 && bold { format!("{BOLD}{line}{PLAIN}\n") } else { format!("{line}\n") }
        });
        lines.collect()
    }

    fn line(&self, row: &[String], widths: &[usize]) -> String {
        let cells = row.iter().zip(widths).enumerate().map(|(column, (cell, width))| {
            if self.right.contains(&column) {
                format!("{cell:>width$}")
            } else {
                format!("{cell:<width$}")
            }
        });
        cells.collect::<Vec<_>>().join("  ").trim_end().to_owned()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_whole_lines_are_bold_and_nothing_else_is_obeyed() {
        let heading = "\x1b[1mNAME\x1b[0m\n\tx\n";
        assert_eq!(harmless(heading), heading);
        assert_eq!(harmless("key 'a\x1b]0;b\x07'\n"), "key 'a\\u{1b}]0;b\\u{7}'\n");
        assert_eq!(harmless("\x1b[1ma\x1b[8m\x1b[0m"), "\x1b[1ma\\u{1b}[8m\x1b[0m");
        assert_eq!(harmless("a\x1b[1mb\r\u{202e}"), "a\\u{1b}[1mb\\r\\u{202e}");
    }

    #[test]
    fn a_table_is_as_wide_as_its_cells_and_ends_no_line_with_blanks() {
        let mut table = Table::new(&["NAME", "SIZE"], &[1]);
        assert_eq!(table.text(), "");
        table.push(vec!["a long one".into(), "1".into()]);
        table.push(vec!["é".into(), "100".into()]);
        assert_eq!(table.text(), "NAME        SIZE\na long one     1\né            100\n");
    }
}

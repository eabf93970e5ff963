// SPDX-License-Identifier: Apache-2.0
//! The bar of `encrypt -v` and `decrypt -v`, as the original draws it.

use crate::output::Output;

/// So many characters stand before the closing bracket.
const WIDTH: u64 = 78;

/// Where the end is not known, one dot for so many bytes.
const DOT: u64 = 20 * 64 * 1024;

/// How far the command is.
#[derive(Debug)]
pub(super) struct Progress {
    output: Option<Output>,
    total: Option<u64>,
    done: u64,
    shown: u64,
}

impl Progress {
    /// Shown on standard error where `output` is given.
    pub(super) const fn new(output: Option<Output>, total: Option<u64>) -> Self {
        Self { output, total, done: 0, shown: 0 }
    }

    /// So many bytes more were read.
    pub(super) fn advance(&mut self, bytes: usize) {
        self.done = self.done.saturating_add(bytes as u64);
        let due = match self.total {
            Some(total) => WIDTH.min(self.done.saturating_mul(WIDTH) / total.max(1)),
            None => 1 + self.done / DOT,
        };
        self.draw(due);
    }

    /// All was read.
    pub(super) fn finish(mut self) {
        if self.total.is_some() {
            self.draw(WIDTH);
            self.mark("]");
        }
        self.mark("\nDone.\n");
        self.output = None;
    }

    fn draw(&mut self, due: u64) {
        let bar = self.total.is_some();
        let text: String =
            (self.shown..due).map(|at| if bar { element(at) } else { '.' }).collect();
        self.shown = due.max(self.shown);
        self.mark(&text);
    }

    fn mark(&self, text: &str) {
        if let Some(output) = self.output {
            output.mark(text);
        }
    }
}

impl Drop for Progress {
    /// An error begins on a line of its own.
    fn drop(&mut self) {
        if self.shown > 0 {
            self.mark("\n");
        }
    }
}

const fn element(at: u64) -> char {
    match at {
        0 => '[',
        19 | 39 | 59 => '|',
        _ => '.',
    }
}

// SPDX-License-Identifier: Apache-2.0
//! One line on stderr that says how far the experiment is, on a terminal only.

use std::io::{IsTerminal, Write};

/// The line.
#[derive(Debug)]
pub(crate) struct Progress {
    shown: bool,
}

impl Progress {
    pub(crate) fn new() -> Self {
        Self { shown: std::io::stderr().is_terminal() }
    }

    /// Replaces the line.
    pub(crate) fn say(&self, text: impl std::fmt::Display) {
        if self.shown {
            write!(std::io::stderr(), "\r\x1b[K{text}").ok();
        }
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        self.say("");
    }
}

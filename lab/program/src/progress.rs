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

    /// Whether a person looks.
    pub(crate) const fn is_shown(&self) -> bool {
        self.shown
    }

    /// A text above the line, which stays; nothing of an empty one.
    pub(crate) fn interject(&self, text: &str) {
        if self.shown && !text.is_empty() {
            write!(
                std::io::stderr(),
                "\r\x1b[Kafter the first repetition, without intervals:\n\n{text}\n"
            )
            .ok();
        }
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

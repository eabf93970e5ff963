// SPDX-License-Identifier: Apache-2.0
//! What an attempt says when it works, and when it does not.

use rustix::io::Errno;
use std::collections::BTreeMap;
use std::io;

/// It did something.
#[derive(Clone, Debug, Default)]
pub(crate) struct Outcome {
    pub(crate) says: String,
    pub(crate) figures: BTreeMap<String, f64>,
    /// Why it cannot be believed.
    pub(crate) implausible: Option<String>,
}

/// It did not work.
#[derive(Debug)]
pub(crate) enum Trouble {
    /// The kernel refused.
    Kernel(Errno),
    /// It is not there, or does not do what it should: why, and what would be needed.
    Reason(String, &'static str),
}

impl Outcome {
    pub(crate) fn new(says: impl Into<String>) -> Self {
        Self { says: says.into(), ..Self::default() }
    }

    /// The same, with a number for programs.
    pub(crate) fn figure(mut self, name: &str, value: f64) -> Self {
        self.figures.insert(name.to_owned(), value);
        self
    }

    /// The same, with a reason not to believe it, if there is one.
    pub(crate) fn doubted(mut self, reason: Option<String>) -> Self {
        self.implausible = reason;
        self
    }
}

impl Trouble {
    pub(crate) fn reason(why: impl Into<String>, needs: &'static str) -> Self {
        Self::Reason(why.into(), needs)
    }
}

impl From<Errno> for Trouble {
    fn from(error: Errno) -> Self {
        Self::Kernel(error)
    }
}

impl From<io::Error> for Trouble {
    fn from(error: io::Error) -> Self {
        match Errno::from_io_error(&error) {
            Some(number) => Self::Kernel(number),
            None => Self::Reason(error.to_string(), "another try on an idle machine"),
        }
    }
}

// SPDX-License-Identifier: Apache-2.0
//! An ability of a machine, and what was found out about it.

use super::outcome::{Outcome, Trouble};
use super::program::{Program, version};
use super::{errno, files};
use rustix::io::Errno;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// A row of the table: something that a machine may be able to do.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Ability {
    pub(crate) group: &'static str,
    pub(crate) name: &'static str,
    /// How it is tried, in words.
    pub(crate) how: &'static str,
    /// What it is for.
    pub(crate) purpose: &'static str,
    /// What is used in its place.
    pub(crate) fallback: &'static str,
    /// What would be needed, by the kernel's error; other errors explain themselves.
    pub(crate) needs: &'static [(Errno, &'static str)],
    pub(crate) attempt: Attempt,
}

/// How a row is tried.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Attempt {
    /// By a function.
    Call(fn() -> Result<Outcome, Trouble>),
    /// By the processor's list of features, in which the row's name stands.
    Feature,
    /// By asking a program for its version.
    Program(Program),
}

/// The three answers.
#[derive(Clone, Copy, Debug, Deserialize, Eq, PartialEq, Serialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Verdict {
    Works,
    /// It answers, but what it answers cannot be true.
    Implausible,
    Fails,
}

/// What was found out about one ability.
#[derive(Clone, Debug, Deserialize, Serialize)]
pub(crate) struct Finding {
    pub(crate) group: String,
    pub(crate) name: String,
    pub(crate) verdict: Verdict,
    /// What it says, or why it does not work.
    pub(crate) says: String,
    /// Name of the kernel's error, where there was one.
    pub(crate) error: Option<String>,
    /// What would be needed for it to work; empty where it does.
    pub(crate) needs: String,
    pub(crate) figures: BTreeMap<String, f64>,
    pub(crate) how: String,
    pub(crate) purpose: String,
    pub(crate) fallback: String,
}

impl Ability {
    /// Whether one of the texts occurs in its name or its group; without any, it is chosen.
    pub(crate) fn is_chosen(&self, only: &[String]) -> bool {
        let matches =
            |text: &String| self.name.contains(text.as_str()) || self.group.contains(text.as_str());
        only.is_empty() || only.iter().any(matches)
    }

    /// Tries it.
    pub(crate) fn find_out(&self) -> Finding {
        let found = match self.attempt {
            Attempt::Call(call) => call(),
            Attempt::Feature => files::feature(self.name),
            Attempt::Program(program) => version(program),
        };
        match found {
            Ok(outcome) => {
                let (verdict, says) = match outcome.implausible {
                    None => (Verdict::Works, outcome.says),
                    Some(reason) => (Verdict::Implausible, reason),
                };
                Finding { figures: outcome.figures, ..self.finding(verdict, says) }
            }
            Err(Trouble::Reason(says, needs)) => {
                Finding { needs: needs.to_owned(), ..self.finding(Verdict::Fails, says) }
            }
            Err(Trouble::Kernel(error)) => self.refused(error),
        }
    }

    fn refused(&self, error: Errno) -> Finding {
        let (name, meaning, usual) = errno::explain(error);
        let own = self.needs.iter().find(|(number, _)| *number == error);
        Finding {
            needs: own.map_or(usual, |(_, needs)| needs).to_owned(),
            error: Some(name.clone()),
            ..self.finding(Verdict::Fails, format!("{name}: {meaning}"))
        }
    }

    fn finding(&self, verdict: Verdict, says: String) -> Finding {
        Finding {
            group: self.group.to_owned(),
            name: self.name.to_owned(),
            verdict,
            says,
            error: None,
            needs: String::new(),
            figures: BTreeMap::new(),
            how: self.how.to_owned(),
            purpose: self.purpose.to_owned(),
            fallback: self.fallback.to_owned(),
        }
    }
}

impl Finding {
    pub(crate) fn works(&self) -> bool {
        self.verdict == Verdict::Works
    }
}

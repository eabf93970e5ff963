// SPDX-License-Identifier: Apache-2.0
//! What the kills did: counted from the samples, and found out afterwards.

use super::check::Findings;
use crate::experiment::{Experiment, level};
use crate::scenario::heading;
use crate::{Failure, Result};
use serde::{Deserialize, Serialize};
use std::fmt::Write;
use std::path::Path;
use std::time::Duration;

/// The factor.
pub(super) const WRITERS: &str = "writers";
/// The setting that names the module.
pub(super) const MODULE: &str = "module";
/// Kills that fell between a call and its return.
pub(super) const INSIDE_CREATE: &str = "inside_create";
pub(super) const INSIDE_DESTROY: &str = "inside_destroy";
/// Kills that fell between start and login.
pub(super) const WHILE_STARTING: &str = "while_starting";
/// The file with what was found out after the last kill.
pub(super) const END: &str = "kill.json";

/// Everything about the writers that no single kill says.
#[derive(Clone, Debug, Default, Deserialize, Serialize)]
pub(super) struct End {
    pub(super) findings: Findings,
    /// Writers that could not start, or ended by themselves.
    pub(super) failed: Vec<String>,
    /// Times that a writer opened the token, and the longest time that it took, in milliseconds.
    opened: u64,
    slowest_open_ms: u64,
}

impl End {
    /// A writer may have opened the token.
    pub(super) fn opened(&mut self, took: Option<Duration>) {
        let Some(took) = took else { return };
        let took = u64::try_from(took.as_millis()).unwrap_or(u64::MAX);
        self.opened += 1;
        self.slowest_open_ms = self.slowest_open_ms.max(took);
    }

    /// Nothing of an experiment that was interrupted.
    fn read(directory: &Path) -> Option<Self> {
        serde_json::from_slice(&std::fs::read(directory.join(END)).ok()?).ok()
    }

    /// # Errors
    /// Something is lost, or came back, or a writer failed.
    fn check(&self) -> Result<()> {
        let Findings { lost, broken, resurrected, .. } = &self.findings;
        match (lost.len() + broken.len() + resurrected.len(), self.failed.len()) {
            (0, 0) => Ok(()),
            (0, failed) => Err(Failure::new(format!("{failed} writers failed"))),
            (wrong, _) => Err(Failure::new(format!(
                "{wrong} objects are not as they were acknowledged"
            ))
            .hint("--keep keeps the token and the logs, --seed repeats the order of the kills")),
        }
    }
}

/// What an experiment says; everything that is zero in a right token.
#[derive(Debug, Serialize)]
pub(super) struct Report {
    kills: usize,
    inside_create: usize,
    inside_destroy: usize,
    while_starting: usize,
    #[serde(flatten)]
    end: Option<End>,
}

impl Report {
    pub(super) fn of(directory: &Path, experiment: &Experiment) -> Self {
        let fell = |name: &str| {
            let counters = experiment.samples.iter().map(|sample| &sample.measured.counters);
            counters.filter(|counters| counters.get(name).is_some_and(|fell| *fell > 0.0)).count()
        };
        Self {
            kills: experiment.samples.len(),
            inside_create: fell(INSIDE_CREATE),
            inside_destroy: fell(INSIDE_DESTROY),
            while_starting: fell(WHILE_STARTING),
            end: End::read(directory),
        }
    }

    /// # Errors
    /// The token is not as it was acknowledged.
    pub(super) fn check(&self) -> Result<()> {
        self.end.as_ref().map_or(Ok(()), End::check)
    }

    pub(super) fn text(&self, experiment: &Experiment) -> String {
        let mut text = heading(experiment);
        let settings = &experiment.manifest.provenance.settings;
        let module = settings.get(MODULE).map_or("unknown", String::as_str);
        let cells = experiment.plan.cells();
        let writers = cells.first().and_then(|cell| level(cell, WRITERS)).unwrap_or("-");
        let seconds = experiment.samples.last().map_or(0, |last| last.measured.window_ns[1]);
        write!(
            text,
            "{module}, {writers} writers, seed {}\n{} kills in {:.0} s: {} inside a create, {} inside a \
             destroy, {} while starting\n",
            experiment.plan.seed,
            self.kills,
            seconds as f64 / 1e9,
            self.inside_create,
            self.inside_destroy,
            self.while_starting
        )
        .ok();
        text.push_str(&match &self.end {
            Some(end) => end.text(),
            None => "interrupted: the token was not compared with the logs\n".to_owned(),
        });
        text
    }
}

impl End {
    fn text(&self) -> String {
        let findings = &self.findings;
        let failed: String = self.failed.iter().take(5).map(|why| format!("  {why}\n")).collect();
        format!(
            "token opened {} times, slowest {} ms; {} writers failed by themselves\n{failed}\
             {} acknowledged objects: {} lost, {} broken\n\
             {} acknowledged destructions: {} came back\n\
             {} calls cut short by a kill: {} of their objects are there\n",
            self.opened + 1,
            self.slowest_open_ms,
            self.failed.len(),
            findings.acknowledged,
            findings.lost.len(),
            findings.broken.len(),
            findings.destroyed,
            findings.resurrected.len(),
            findings.undecided,
            findings.undecided_present
        )
    }
}

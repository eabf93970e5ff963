// SPDX-License-Identifier: Apache-2.0
//! `lab study NAME`: old optimisations, made again and measured: what they gave in 2008 and 2009, what
//! they give on this machine, and why.
//!
//! The versions are written for this purpose, in the crate `study`, which nothing else uses. Before
//! anything is measured all versions of a study work on the same random data: they must agree.

mod aes;
mod bench;
mod findings;
mod kasumi;
mod page;
mod pin;
mod rc4;
mod rsa;
mod sha1;
mod view;

use crate::Result;
use crate::experiment::Experiment;
use crate::output::say;
use crate::scenario::{Made, RunOptions, make};
use crate::summary::summary;
use bench::{Bench, Subject};
use clap::ValueEnum;
use findings::Findings;
use serde_json::{Value, json};
use view::View;

/// Which study, and how long.
#[derive(Clone, Debug, clap::Args)]
pub struct Options {
    /// The study; without one, they are listed
    #[arg(value_name = "NAME", value_enum)]
    pub study: Option<Study>,
    /// How it is run
    #[command(flatten)]
    pub run: RunOptions,
}

/// The studies.
#[derive(Clone, Copy, Debug, Eq, PartialEq, clap::ValueEnum)]
pub enum Study {
    /// RC4: bytes or words, three orders of loads and stores, several streams in one loop
    Rc4,
    /// RSA's private operation: 32-bit and 64-bit limbs, assembly, lanes; with a profile
    Rsa,
    /// KASUMI: an inner function by small tables, by large ones, and by equations
    Kasumi,
    /// SHA-1: expansion inline, in vectors, in a second thread, and by instructions
    Sha1,
    /// AES in CBC: tables, bit slices, AES-NI, VAES; one stream and sixteen
    Aes,
}

impl Study {
    /// The name of the scenario.
    const fn scenario(self) -> &'static str {
        match self {
            Self::Rc4 => "study-rc4",
            Self::Rsa => "study-rsa",
            Self::Kasumi => "study-kasumi",
            Self::Sha1 => "study-sha1",
            Self::Aes => "study-aes",
        }
    }

    fn subject(self) -> Result<Box<dyn Subject>> {
        Ok(match self {
            Self::Rc4 => Box::new(rc4::Rc4::new()?),
            Self::Rsa => Box::new(rsa::Rsa::new()?),
            Self::Kasumi => Box::new(kasumi::Kasumi::new()?),
            Self::Sha1 => Box::new(sha1::Sha1::new()?),
            Self::Aes => Box::new(aes::Aes::new()?),
        })
    }

    fn findings(self, view: &View<'_>) -> Findings {
        match self {
            Self::Rc4 => rc4::findings(view),
            Self::Rsa => rsa::findings(view),
            Self::Kasumi => kasumi::findings(view),
            Self::Sha1 => sha1::findings(view),
            Self::Aes => aes::findings(view),
        }
    }
}

/// Measures, or lists what there is.
pub(crate) fn run(options: &Options) -> Result<Option<Made>> {
    let Some(study) = options.study else {
        let listed = if options.run.json { names()? } else { list() };
        return say(&listed).map(|()| None);
    };
    make(&mut Bench::new(study.subject()?, &options.run), &options.run).map(Some)
}

/// What a study found in an experiment; nothing of one that is no study.
fn findings(experiment: &Experiment) -> Option<Findings> {
    let scenario = experiment.manifest.provenance.scenario.as_str();
    let study = Study::value_variants().iter().find(|study| study.scenario() == scenario)?;
    Some(study.findings(&View::of(experiment)))
}

/// The text of an experiment that was made earlier.
pub(crate) fn text(experiment: &Experiment) -> String {
    findings(experiment).map_or_else(String::new, |found| page::text(experiment, &found))
}

/// The summary, with the findings.
pub(crate) fn json(experiment: &Experiment) -> Value {
    let mut summary = summary(experiment);
    summary["study"] = json!(findings(experiment).map(|found| json!({
        "sun": found.sun,
        "effects": found.effects,
        "reason": found.reason,
    })));
    summary
}

/// The same for programs.
fn names() -> Result<String> {
    let one = |study: &Study| {
        let value = study.to_possible_value()?;
        Some(json!({"name": value.get_name(), "about": value.get_help()?.to_string()}))
    };
    let all: Vec<Value> = Study::value_variants().iter().filter_map(one).collect();
    Ok(serde_json::to_string_pretty(&json!({"studies": all}))? + "\n")
}

/// Names, and what each is about.
fn list() -> String {
    let line = |study: &Study| {
        let value = study.to_possible_value()?;
        Some(format!("  {:<8}{}\n", value.get_name(), value.get_help()?))
    };
    let lines: String = Study::value_variants().iter().filter_map(line).collect();
    format!("studies, each about half a minute: metaslot lab study NAME\n\n{lines}")
}

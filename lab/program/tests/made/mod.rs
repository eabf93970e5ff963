// SPDX-License-Identifier: Apache-2.0
//! Experiments whose samples are known, for tests of what reads them.
#![allow(dead_code, reason = "no test needs all of it")]

use metaslot_lab::experiment::{Factor, Measured, Plan, Provenance, Recorder, Run};
use serde_json::Value;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

/// A directory that goes away.
pub(crate) struct Sandbox(pub(crate) PathBuf);

impl Sandbox {
    pub(crate) fn new(name: &str) -> Self {
        let path = std::env::temp_dir().join(format!("compare-{name}-{}", std::process::id()));
        std::fs::create_dir_all(&path).unwrap();
        Self(path)
    }

    pub(crate) fn lab(&self, arguments: &[&str]) -> Output {
        let mut lab = Command::new(env!("CARGO_BIN_EXE_metaslot-lab"));
        // What a test measures is not the day's floor.
        lab.args(arguments).current_dir(&self.0).env("XDG_STATE_HOME", &self.0).output().unwrap()
    }

    pub(crate) fn text(&self, arguments: &[&str]) -> String {
        let output = self.lab(arguments);
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8(output.stdout).unwrap()
    }

    pub(crate) fn json(&self, arguments: &[&str]) -> Value {
        serde_json::from_str(&self.text(arguments)).unwrap()
    }

    pub(crate) fn refusal(&self, arguments: &[&str]) -> String {
        let output = self.lab(arguments);
        assert!(!output.status.success());
        String::from_utf8(output.stderr).unwrap()
    }
}

impl Drop for Sandbox {
    fn drop(&mut self) {
        std::fs::remove_dir_all(&self.0).ok();
    }
}

/// What a made experiment is like.
pub(crate) struct Made<'a> {
    pub(crate) factors: &'a [(&'a str, &'a [&'a str])],
    pub(crate) arms: &'a [&'a str],
    pub(crate) repetitions: usize,
    pub(crate) provenance: Provenance,
}

/// By a clock of 2 GHz, in bytes.
pub(crate) fn provenance() -> Provenance {
    Provenance {
        scenario: "made".to_owned(),
        unit: "byte".to_owned(),
        sources: BTreeMap::from([("cpu".to_owned(), "thread".to_owned())]),
        ticks_hz: Some(2e9),
        ..Provenance::default()
    }
}

/// A sample of so much CPU time for each of a thousand units.
pub(crate) fn measured(each: f64) -> Measured {
    Measured {
        window_ns: [0, 1],
        work: 1000.0,
        cpu_ns: each * 1000.0,
        wall_ns: each * 2000.0,
        foreign_cpu: Some(0.0),
        counters: BTreeMap::new(),
        flags: Vec::new(),
    }
}

/// Runs all of it; it is still to be finished.
pub(crate) fn made(path: &Path, made: &Made<'_>, sample: impl Fn(&Run) -> Measured) -> Recorder {
    let factor = |(name, levels): &(&str, &[&str])| Factor {
        name: (*name).to_owned(),
        levels: levels.iter().map(|&level| level.to_owned()).collect(),
    };
    let factors = made.factors.iter().map(factor).collect();
    let plan = Plan::interleaved(factors, made.arms, made.repetitions, 1).unwrap();
    let provenance = made.provenance.clone();
    let mut recorder = Recorder::create(path, provenance, ["cpu", "wall"], plan).unwrap();
    while let Some(run) = recorder.next().cloned() {
        recorder.record(sample(&run)).unwrap();
    }
    recorder
}

/// Arm `new` costs `new` for each byte, `old` 100; a write of 8K a tenth more than one of 64K.
pub(crate) fn experiment(path: &Path, unit: &str, source: &str, new: f64) {
    let sources = BTreeMap::from([("cpu".to_owned(), source.to_owned())]);
    let provenance = Provenance { unit: unit.to_owned(), sources, ..provenance() };
    let factors: &[(&str, &[&str])] = &[("write", &["8K", "64K"])];
    let like = Made { factors, arms: &["new", "old"], repetitions: 10, provenance };
    let sample = |run: &Run| {
        let cost = if run.arm == "new" { new } else { 100.0 };
        let cost = if run.level("write") == Some("8K") { cost * 1.1 } else { cost };
        let measured = measured(cost * (1.0 + run.repetition as f64 * 1e-4));
        Measured { counters: BTreeMap::from([("segments".to_owned(), 50.0)]), ..measured }
    };
    made(path, &like, sample).finish().unwrap();
}

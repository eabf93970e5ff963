// SPDX-License-Identifier: Apache-2.0
//! Experiments on disk: finished, interrupted, changed afterwards, and of a version to come.
#![expect(clippy::unwrap_used, reason = "a test fails where it cannot go on")]

use metaslot_lab::experiment::{Experiment, Factor, Measured, Plan, Provenance, Recorder, State};
use metaslot_lab::verdict::{Comparison, Margin, Verdict};
use std::collections::BTreeMap;
use std::fs;
use std::path::PathBuf;

const CELL: &str = "size=64K";

/// A directory that goes away.
struct Sandbox(PathBuf);

impl Sandbox {
    fn new(name: &str) -> Self {
        let path = std::env::temp_dir().join(format!("labx-{name}-{}", std::process::id()));
        fs::create_dir_all(&path).unwrap();
        Self(path)
    }

    fn experiment(&self) -> PathBuf {
        self.0.join("x.labx")
    }

    fn file(&self, name: &str) -> PathBuf {
        self.experiment().join(name)
    }

    fn change(&self, name: &str, from: &str, to: &str) {
        let text = fs::read_to_string(self.file(name)).unwrap();
        assert!(text.contains(from), "{name} holds no {from}");
        fs::write(self.file(name), text.replacen(from, to, 1)).unwrap();
    }

    fn begin(&self) -> Recorder {
        let factor = Factor { name: "size".into(), levels: vec!["64K".into(), "1M".into()] };
        let plan = Plan::interleaved(vec![factor], &["new", "old"], 8, 5).unwrap();
        Recorder::create(
            &self.experiment(),
            Provenance::default(),
            ["process CPU", "monotonic"],
            plan,
        )
        .unwrap()
    }

    fn finished(&self) {
        let mut recorder = self.begin();
        run(&mut recorder, 32);
        recorder.finish().unwrap();
    }

    fn refusal(&self) -> String {
        Experiment::read(&self.experiment()).unwrap_err().to_string()
    }
}

impl Drop for Sandbox {
    fn drop(&mut self) {
        fs::remove_dir_all(&self.0).ok();
    }
}

/// So many runs: the new arm costs nine tenths.
fn run(recorder: &mut Recorder, count: usize) {
    for number in 0..count {
        let next = recorder.next().unwrap();
        let each = if next.arm == "new" { 90.0 } else { 100.0 };
        let cost = each * 10.0 * (1.0 + number as f64 * 1e-6);
        let start = number as u64 * 1_000;
        let measured = Measured {
            window_ns: [start, start + 900],
            work: 10.0,
            cpu_ns: cost,
            wall_ns: cost * 1.5,
            foreign_cpu: None,
            counters: BTreeMap::new(),
            flags: Vec::new(),
        };
        recorder.record(measured).unwrap();
    }
}

#[test]
fn what_is_written_is_read_and_judged() {
    let place = Sandbox::new("whole");
    place.finished();
    let experiment = Experiment::read(&place.experiment()).unwrap();
    assert_eq!(experiment.state, State::Sealed);
    assert_eq!(experiment.samples.len(), 32);
    assert_eq!(experiment.plan.cells(), ["size=64K", "size=1M"]);
    assert!(experiment.manifest.stopped >= Some(experiment.manifest.started));
    let pairs = experiment.pairs(CELL, |sample| sample.cpu_each());
    assert_eq!(pairs.count(), 8);
    let comparison = Comparison::of(&pairs).unwrap();
    assert_eq!(comparison.verdict(Margin::new(None)), Verdict::Faster);
    assert!((comparison.ratio().value - 0.9).abs() < 1e-3);
    assert_eq!(experiment.pairs("size=2M", |sample| sample.cpu_each()).count(), 0);
}

#[test]
fn an_interrupted_experiment_is_readable_and_says_so() {
    let place = Sandbox::new("interrupted");
    let mut recorder = place.begin();
    run(&mut recorder, 7);
    drop(recorder);
    let experiment = Experiment::read(&place.experiment()).unwrap();
    assert_eq!(experiment.state.to_string(), "interrupted: 7 of 32 runs");
    assert_eq!(experiment.manifest.stopped, None);
    let pairs = |cell| experiment.pairs(cell, |sample| sample.wall_each()).count();
    assert_eq!(pairs("size=64K") + pairs("size=1M"), 3);
}

#[test]
fn a_torn_last_line_is_left_out_wherever_it_was_torn() {
    let place = Sandbox::new("torn");
    let mut recorder = place.begin();
    run(&mut recorder, 3);
    drop(recorder);
    let whole = fs::read(place.file("samples.jsonl")).unwrap();
    let second = whole.iter().enumerate().filter(|(_, byte)| **byte == b'\n').nth(1).unwrap().0 + 1;
    for cut in second + 1..whole.len() {
        fs::write(place.file("samples.jsonl"), &whole[..cut]).unwrap();
        let experiment = Experiment::read(&place.experiment()).unwrap();
        assert_eq!(experiment.state, State::Interrupted { done: 2, planned: 32, torn: true });
    }
}

#[test]
fn a_damaged_line_before_the_last_is_named() {
    let place = Sandbox::new("damaged");
    let mut recorder = place.begin();
    run(&mut recorder, 3);
    drop(recorder);
    place.change("samples.jsonl", "{", "[");
    assert!(place.refusal().contains("samples.jsonl: line 1: "), "{}", place.refusal());
}

#[test]
fn a_run_that_the_plan_does_not_have_is_named() {
    let place = Sandbox::new("astray");
    let mut recorder = place.begin();
    run(&mut recorder, 3);
    drop(recorder);
    place.change("samples.jsonl", "\"order\":1", "\"order\":2");
    assert!(place.refusal().contains("line 2: is not the run"), "{}", place.refusal());
}

#[test]
fn every_changed_file_of_a_sealed_experiment_is_named() {
    let place = Sandbox::new("changed");
    place.finished();
    place.change("samples.jsonl", "\"work\":10.0", "\"work\":11.0");
    fs::remove_file(place.file("log.txt")).unwrap();
    let refusal = place.refusal();
    assert!(refusal.contains("samples.jsonl was changed"), "{refusal}");
    assert!(refusal.contains("log.txt: "), "{refusal}");
    assert!(!refusal.contains("plan.json"), "{refusal}");
}

#[test]
fn a_file_that_was_added_later_does_not_break_the_seal() {
    let place = Sandbox::new("added");
    place.finished();
    fs::write(place.file("analysis.json"), "{}").unwrap();
    assert_eq!(Experiment::read(&place.experiment()).unwrap().state, State::Sealed);
}

#[test]
fn a_plan_that_was_changed_shows_even_without_a_seal() {
    let place = Sandbox::new("plan");
    drop(place.begin());
    place.change("plan.json", "\"seed\": 5", "\"seed\": 6");
    assert!(place.refusal().contains("plan.json was changed"), "{}", place.refusal());
}

#[test]
fn samples_that_were_added_after_the_seal_show() {
    let place = Sandbox::new("added");
    place.finished();
    fs::write(place.file("again.jsonl"), "").unwrap();
    assert!(place.refusal().contains("again.jsonl is not in the seal"), "{}", place.refusal());
}

#[test]
fn a_newer_schema_is_refused_and_left_as_it_is() {
    let place = Sandbox::new("newer");
    place.finished();
    place.change("manifest.json", "metaslot-labx/2", "metaslot-labx/3");
    let before = fs::read(place.file("manifest.json")).unwrap();
    assert!(place.refusal().contains("newer version (schema 3)"), "{}", place.refusal());
    assert_eq!(fs::read(place.file("manifest.json")).unwrap(), before);
    place.change("manifest.json", "metaslot-labx/3", "something");
    assert!(place.refusal().contains("not an experiment's schema"), "{}", place.refusal());
}

#[test]
fn an_experiment_of_version_1_is_read_with_its_clock() {
    let place = Sandbox::new("older");
    let mut recorder = place.begin();
    run(&mut recorder, 32);
    drop(recorder);
    place.change("manifest.json", "metaslot-labx/2", "metaslot-labx/1");
    place.change("manifest.json", "\"ticks_hz\": null", "\"cycles_hz\": 2000000000.0");
    let experiment = Experiment::read(&place.experiment()).unwrap();
    assert_eq!(experiment.manifest.provenance.ticks_hz, Some(2e9));
    assert_eq!(experiment.manifest.provenance.cost(), "ticks each");
}

#[test]
fn no_experiment_is_overwritten_sealed_early_or_given_another_ending() {
    let place = Sandbox::new("refused");
    let mut recorder = place.begin();
    let again = Recorder::create(
        &place.experiment(),
        Provenance::default(),
        ["", ""],
        recorder.plan().clone(),
    );
    assert!(again.is_err());
    let elsewhere = place.0.join("x.dir");
    assert!(
        Recorder::create(&elsewhere, Provenance::default(), ["", ""], recorder.plan().clone())
            .is_err()
    );
    assert!(!elsewhere.exists());
    run(&mut recorder, 31);
    recorder.finish().unwrap_err();
    assert_ne!(Experiment::read(&place.experiment()).unwrap().state, State::Sealed);
}

#[test]
fn what_is_no_number_is_not_recorded() {
    let place = Sandbox::new("nan");
    let mut recorder = place.begin();
    let measured = Measured {
        window_ns: [0, 1],
        work: 1.0,
        cpu_ns: f64::NAN,
        wall_ns: 1.0,
        foreign_cpu: None,
        counters: BTreeMap::new(),
        flags: Vec::new(),
    };
    recorder.record(measured).unwrap_err();
    recorder.log("a line").unwrap();
    assert_eq!(fs::read_to_string(place.file("log.txt")).unwrap(), "a line\n");
    assert!(Experiment::read(&place.experiment()).unwrap().samples.is_empty());
}

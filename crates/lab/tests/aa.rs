// SPDX-License-Identifier: Apache-2.0
//! `lab aa` from end to end. How far the arms lie apart is the machine's business, not this test's.

use metaslot_lab::experiment::{Experiment, State};
use metaslot_lab::{AaOptions, Command, Of, RunOptions};

#[test]
fn two_identical_arms_leave_a_sealed_experiment_with_enough_pairs() {
    let output = std::env::temp_dir().join(format!("aa-{}.labx", std::process::id()));
    let run = RunOptions {
        seconds: 1.0,
        repetitions: None,
        seed: Some(1),
        output: Some(output.clone()),
        json: true,
        ..RunOptions::default()
    };
    let options = AaOptions { of: Of::Work, run };
    metaslot_lab::run(&Command::Aa(options.clone())).unwrap();
    let experiment = Experiment::read(&output).unwrap();
    assert_eq!(experiment.state, State::Sealed);
    assert_eq!(experiment.plan.cells(), ["work=copy-64K", "work=pipe-1B"]);
    for cell in experiment.plan.cells() {
        assert!(experiment.pairs(&cell, |sample| sample.wall_each()).count() >= 6);
    }
    let again = metaslot_lab::run(&Command::Aa(options)).unwrap_err();
    assert!(again.hint.unwrap().contains("no experiment is overwritten"));
    std::fs::remove_dir_all(&output).unwrap();
}

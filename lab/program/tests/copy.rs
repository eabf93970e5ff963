// SPDX-License-Identifier: Apache-2.0
//! `lab copy` from end to end. How fast anything is, is the machine's business.

use metaslot_lab::experiment::{Experiment, State};
use metaslot_lab::{
    Command, CopyConsumer, CopyOptions, CopyPageSize, CopyState, CopyTarget, Failure, RunOptions,
};
use std::path::{Path, PathBuf};

fn output(name: &str) -> PathBuf {
    std::env::temp_dir().join(format!("{name}-{}.labx", std::process::id()))
}

/// A few cells, as often as a comparison needs.
fn options(output: &Path) -> CopyOptions {
    CopyOptions {
        states: vec![CopyState::Fresh, CopyState::Host, CopyState::Memory, CopyState::Cached],
        pages: vec![CopyPageSize::Small],
        sizes: vec![1 << 10, 16 << 10],
        kernels: vec!["libc".to_owned()],
        consumers: vec![CopyConsumer::Nobody, CopyConsumer::Same],
        full: false,
        to: Vec::new(),
        run: RunOptions {
            seconds: Some(0.01),
            repetitions: Some(6),
            seed: Some(1),
            output: Some(output.to_owned()),
            json: true,
            ..RunOptions::default()
        },
    }
}

fn run(options: CopyOptions) -> Result<Experiment, Failure> {
    let output = options.run.output.clone().unwrap_or_default();
    metaslot_lab::run(&Command::Copy(options))?;
    let experiment = Experiment::read(&output)?;
    std::fs::remove_dir_all(&output)?;
    Ok(experiment)
}

#[test]
fn every_cell_is_measured_or_says_why_not() {
    let experiment = run(options(&output("copy"))).unwrap();
    assert_eq!(experiment.state, State::Sealed);
    assert_eq!(experiment.manifest.provenance.scenario, "copy");
    assert!(experiment.manifest.provenance.settings["first touch"].contains("a page of 4K"));
    let cells = experiment.plan.cells();
    assert_eq!((cells.len(), experiment.plan.skipped.len()), (3 * 2 * 2, 2 * 2));
    for skipped in &experiment.plan.skipped {
        assert!(skipped.cell.contains("state=host") && skipped.why.contains("once"), "{skipped:?}");
    }
    for cell in cells {
        assert_eq!(experiment.of(&cell, "libc").count(), 6);
        for sample in experiment.of(&cell, "libc") {
            let measured = &sample.measured;
            assert!(measured.cpu_ns >= 0.0 && measured.work >= 1024.0, "{cell}");
            assert!(measured.counters["latency_ns"] >= 0.0, "{cell}");
        }
    }
}

#[cfg(target_arch = "x86_64")]
#[test]
fn a_copy_past_the_cache_stands_beside_one_into_it() {
    if !is_x86_feature_detected!("avx2") {
        return;
    }
    let asked = options(&output("copy-past"));
    let kernels = ["libc", "nt-avx2"].map(str::to_owned).to_vec();
    let experiment =
        run(CopyOptions { states: vec![CopyState::Cached], kernels, ..asked }).unwrap();
    for cell in experiment.plan.cells() {
        for arm in ["libc", "nt-avx2"] {
            assert_eq!(experiment.of(&cell, arm).count(), 6, "{arm} {cell}");
            assert!(experiment.typical(&cell, arm, |sample| Some(sample.cpu_each())).is_some());
        }
    }
}

#[test]
fn copies_into_the_kernel_stand_beside_one_in_memory() {
    let to = vec![CopyTarget::Pipe, CopyTarget::Memfd, CopyTarget::Socket];
    let sizes = vec![16 << 10];
    let asked = options(&output("copy-to"));
    let states = vec![CopyState::Cached, CopyState::Source];
    let experiment = run(CopyOptions { to, sizes, states, ..asked }).unwrap();
    assert_eq!(experiment.plan.arms, ["memory", "memfd", "pipe", "socket"]);
    assert_eq!(experiment.plan.cells(), ["state=source size=16K", "state=cached size=16K"]);
    for arm in ["memory", "memfd", "pipe", "socket"] {
        let cost = |arm| experiment.typical("state=cached size=16K", arm, |s| Some(s.cpu_each()));
        assert!(cost(arm).is_some(), "{arm}");
    }
}

#[test]
fn what_cannot_be_measured_is_refused_before_anything_is_written() {
    let place = output("copy-bad");
    let refused = |options: CopyOptions| {
        let failure = run(options).unwrap_err();
        assert!(!place.exists());
        failure
    };
    let asked = options(&place);
    let failure = refused(CopyOptions { kernels: vec!["memmove".to_owned()], ..options(&place) });
    assert_eq!(failure.message, "no kernel is called \"memmove\"");
    assert!(failure.hint.unwrap().starts_with("kernels are libc, "));
    let failure = refused(CopyOptions { states: vec![CopyState::Host], ..options(&place) });
    assert!(failure.message.contains("the host supplies a page once"), "{failure}");
    let states = vec![CopyState::Fresh];
    let failure = refused(CopyOptions { states, to: vec![CopyTarget::Pipe], ..asked });
    assert!(failure.hint.unwrap().contains("source, memory, cached"));
}

// SPDX-License-Identifier: Apache-2.0
//! `lab local` from end to end. What is slow or fast decides nothing here.

use clap::Parser;
use metaslot_lab::experiment::Experiment;
use metaslot_lab::{Command, LocalOptions};
use serde_json::Value;

#[derive(Parser)]
struct Line {
    #[command(flatten)]
    options: LocalOptions,
}

/// Runs the experiment and gives its JSON.
fn local(name: &str, arguments: &[&str]) -> Value {
    let file = format!("metaslot-local-{name}-{}.json", std::process::id());
    let file = std::env::temp_dir().join(file);
    let output = file.display().to_string();
    let line = ["local", "--output", &output];
    let options = Line::parse_from(line.iter().chain(arguments)).options;
    metaslot_lab::run(&Command::Local(options)).expect("the experiment runs");
    let text = std::fs::read_to_string(&file).expect("the JSON was written");
    std::fs::remove_file(&file).expect("a file can be removed");
    serde_json::from_str(&text).expect("it is JSON")
}

fn number(value: &Value) -> u64 {
    value.as_u64().expect("it is a number")
}

#[test]
fn every_path_is_filled_and_what_it_accepted_is_read() {
    let report = local("eagain", &["--eagain", "--patience", "50"]);
    assert_eq!(report["schema"], "metaslot-lab-eagain/1");
    let cells = report["cells"].as_array().expect("there are cells");
    assert_eq!(cells.len(), 4 * 3 * 5);
    for cell in cells {
        let (writes, payload) = (number(&cell["writes"]), number(&cell["payload"]));
        assert!(writes > 0 && number(&cell["buffer"]) > 0, "{cell}");
        // A write of a stream may be accepted in part.
        let expected = match cell["pattern"].as_str() {
            Some("byte") => writes..=writes,
            Some("one_write" | "gathered") => writes..=708 * writes,
            Some("batch") => writes..=5664 * writes,
            _ => writes..=354 * (writes + 1),
        };
        assert!(expected.contains(&payload), "{cell}");
    }
}

#[test]
fn every_path_carries_every_size_in_every_repetition() {
    let name = format!("metaslot-local-{}.labx", std::process::id());
    let directory = std::env::temp_dir().join(name);
    let output = directory.display().to_string();
    let line = ["local", "--output", &output, "--repetitions", "2", "--sample", "2"];
    let sizes = ["--paths", "tcp,unix,seqpacket,pipe", "--sizes", "700,131072,64,64,1000000"];
    let options = Line::parse_from(line.iter().chain(&sizes)).options;
    metaslot_lab::run(&Command::Local(options)).expect("the experiment runs");
    let experiment = Experiment::read(&directory).expect("it was written");
    std::fs::remove_dir_all(&directory).expect("a directory can be removed");
    assert_eq!(experiment.plan.cells(), ["write=64", "write=700", "write=131072"]);
    assert_eq!(experiment.samples.len(), 4 * 3 * 2);
    for sample in &experiment.samples {
        let counters = &sample.measured.counters;
        let both = counters["writer_ns"] + counters["reader_ns"];
        assert!(both > 0.0 && (both - sample.measured.cpu_ns).abs() < 1.0, "{sample:?}");
        assert!(counters["outstanding_most"] >= counters["outstanding_mean"], "{sample:?}");
    }
    let [skipped] = experiment.plan.skipped.as_slice() else { panic!("{:?}", experiment.plan) };
    assert!(skipped.why.contains("seqpacket does not carry"), "{skipped:?}");
}

#[test]
fn what_makes_no_sense_is_refused() {
    for arguments in [["--sample", "0"], ["--sizes", "0"]] {
        let options = Line::parse_from(["local"].iter().chain(&arguments)).options;
        assert!(metaslot_lab::run(&Command::Local(options)).is_err(), "{arguments:?}");
    }
    for arguments in [
        ["--eagain", "--repetitions=2"],
        ["--eagain", "--sizes=64"],
        ["--repetitions=0", "--json"],
        ["--patience=5", "--json"],
    ] {
        let line = ["local"].iter().chain(&arguments);
        assert!(Line::try_parse_from(line).is_err(), "{arguments:?}");
    }
}

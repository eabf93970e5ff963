// SPDX-License-Identifier: Apache-2.0
//! `lab tls` from end to end: a short run, whose figures do not count here.
#![expect(clippy::unwrap_used, reason = "a test fails where it cannot go on")]

mod built;

use built::{LAB, module};
use metaslot_lab::experiment::{Experiment, State};
use serde_json::Value;
use std::path::Path;
use std::process::Command;

fn lab(place: &Path, arguments: &[&str]) -> String {
    let mut command = Command::new(LAB);
    command.current_dir(place).env("METASLOT_MODULE", module()).args(arguments);
    let output = command.output().unwrap();
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{errors}");
    String::from_utf8(output.stdout).unwrap()
}

#[test]
fn every_handshake_is_counted_by_the_module_whose_key_the_server_has() {
    let place = std::env::temp_dir().join(format!("lab-tls-{}", std::process::id()));
    std::fs::create_dir_all(&place).unwrap();
    let line = [
        "tls",
        "--servers",
        "loop,haproxy,nginx,threads",
        "--filter",
        "rsa2048",
        "--window",
        "0.2",
    ];
    let more = ["--connections", "1,4", "--repetitions", "1", "--json", "-o", "x.labx"];
    let printed: Value = serde_json::from_str(&lab(&place, &[&line[..], &more].concat())).unwrap();
    let lines = printed["tls"]["lines"].as_array().unwrap();
    let arms = |server: &str, connections: u64| -> Vec<&str> {
        let line = lines.iter().find(|line| {
            line["server"] == server && line["connections"].as_u64() == Some(connections)
        });
        let arms = line.and_then(|line| line["arms"].as_array()).into_iter().flatten();
        arms.filter_map(|arm| arm["arm"].as_str()).collect()
    };
    assert_eq!(arms("haproxy", 1), ["file", "file-jobs", "token", "jobs"]);
    assert_eq!(arms("loop", 4), ["file", "token", "jobs"]);
    // nginx has no jobs, and one connection says nothing of it.
    assert_eq!((arms("nginx", 4), arms("nginx", 1)), (vec!["file", "token", "daemon"], Vec::new()));
    assert_eq!(arms("threads", 4), ["file", "token", "no-lanes"]);
    let gain = &lines.iter().find(|line| line["gain"].is_object()).unwrap()["gain"];
    let share = gain["share_of_signing"].as_f64().unwrap();
    assert!(share > 0.0 && gain["amdahl_limit"].as_f64() > Some(0.0), "{gain}");
    let experiment = Experiment::read(&place.join("x.labx")).unwrap();
    assert_eq!(experiment.state, State::Sealed);
    for sample in experiment.samples.iter().filter(|sample| !sample.run.arm.starts_with("file")) {
        assert!(sample.measured.counters["signatures"] >= sample.measured.work, "{sample:?}");
    }
    let said = lab(&place, &["print", "x.labx"]);
    assert!(said.contains("haproxy, rsa2048, 4 connections: a handshake"), "{said}");
    std::fs::remove_dir_all(&place).unwrap();
}

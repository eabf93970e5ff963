// SPDX-License-Identifier: Apache-2.0
//! `lab study` from end to end: short runs, whose figures do not count here.
#![expect(clippy::unwrap_used, reason = "a test fails where it cannot go on")]

use metaslot_lab::experiment::{Experiment, State};
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

/// A directory that goes away.
struct Sandbox(PathBuf);

impl Sandbox {
    fn new(name: &str) -> Self {
        let path = std::env::temp_dir().join(format!("study-{name}-{}", std::process::id()));
        std::fs::create_dir_all(&path).unwrap();
        Self(path)
    }
}

impl Drop for Sandbox {
    fn drop(&mut self) {
        std::fs::remove_dir_all(&self.0).ok();
    }
}

fn lab(place: &Path, arguments: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_metaslot-lab"));
    command.current_dir(place).args(arguments).output().unwrap()
}

fn text(output: &Output) -> String {
    let (text, errors) =
        (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(output.status.success(), "{text}{errors}");
    text.into_owned()
}

const RUN: [&str; 6] = ["--seconds", "0.05", "--repetitions", "2", "-o", "x.labx"];

/// Runs a study, and gives what it prints and what it left.
fn study(name: &str) -> (String, Experiment) {
    let place = Sandbox::new(name);
    let printed = text(&lab(&place.0, &[&["study", name][..], &RUN].concat()));
    let again = text(&lab(&place.0, &["print", "x.labx"]));
    assert_eq!(printed, again, "printing computes the same from the samples");
    for part in ["Sun, 2008–2009\n", "What it changes here\n", "Why\n", "written: x.labx\n"] {
        assert!(printed.contains(part), "no {part:?} in\n{printed}");
    }
    assert!(!printed.contains("NaN"), "a figure is missing in\n{printed}");
    let experiment = Experiment::read(&place.0.join("x.labx")).unwrap();
    assert_eq!(experiment.state, State::Sealed);
    assert_eq!(experiment.manifest.provenance.scenario, format!("study-{name}"));
    let runs = experiment.plan.cells().len() * experiment.plan.arms.len() * 2;
    assert_eq!(experiment.samples.len(), runs);
    assert!(experiment.samples.iter().all(|sample| sample.measured.work > 0.0));
    (printed, experiment)
}

fn arms(experiment: &Experiment) -> Vec<&str> {
    experiment.plan.arms.iter().map(String::as_str).collect()
}

#[test]
fn studies_are_listed_for_people_and_for_programs() {
    let place = Sandbox::new("names");
    let told = |arguments: &[&str]| String::from_utf8(lab(&place.0, arguments).stdout).unwrap();
    let json: serde_json::Value = serde_json::from_str(&told(&["study", "--json"])).unwrap();
    let studies = json["studies"].as_array().unwrap();
    assert!(!studies.is_empty());
    let text = told(&["study"]);
    for study in studies {
        let [name, about] = ["name", "about"].map(|key| study[key].as_str().unwrap());
        assert!(text.contains(&format!("  {name:<8}{about}\n")), "{study}");
    }
}

#[test]
fn rc4_has_three_versions_and_streams_side_by_side() {
    let (printed, experiment) = study("rc4");
    assert_eq!(arms(&experiment)[0], "1, bytes");
    assert_eq!(arms(&experiment).len(), 9);
    // Every version stands in the table, whatever it costs.
    for arm in arms(&experiment) {
        assert!(printed.lines().any(|line| line.starts_with(arm)), "{arm}");
    }
}

#[test]
fn kasumi_runs_in_blocks_and_in_a_chain() {
    let (printed, experiment) = study("kasumi");
    assert_eq!(arms(&experiment), ["small tables", "large tables", "equations"]);
    assert_eq!(experiment.plan.cells()[0], "feed=blocks threads=1");
    assert!(printed.contains("1152 bytes") && printed.contains("256 KiB"));
}

#[test]
fn sha1_has_both_halves_apart() {
    let (_, experiment) = study("sha1");
    let arms = arms(&experiment);
    assert_eq!(arms[0], "inline");
    for arm in ["second thread", "library", "only expansion", "only rounds"] {
        assert!(arms.contains(&arm), "{arm}");
    }
}

#[test]
fn aes_runs_one_stream_and_sixteen() {
    let (printed, experiment) = study("aes");
    assert_eq!(arms(&experiment)[0], "tables");
    assert!(printed.contains("One stream of 8192 bytes") && printed.contains("Sixteen streams"));
    let several = experiment.plan.cells();
    assert!(several.iter().any(|cell| cell.contains("streams=16")));
}

#[test]
fn rsas_profile_adds_up_to_the_operation() {
    let (printed, experiment) = study("rsa");
    assert_eq!(arms(&experiment)[..4], ["32-bit rows", "64-bit rows", "64-bit fused", "AWS-LC"]);
    assert!(printed.contains("unknown, 32-bit rows"));
    // Shares of every function and of the unknown rest are 100 % together.
    let profile = printed.split("Profile by function, ").nth(1).unwrap();
    let share =
        |line: &str| line.rsplit_once("  ")?.1.strip_suffix(" %")?.trim().parse::<f64>().ok();
    let shares: Vec<f64> = profile.lines().filter_map(share).collect();
    assert_eq!(shares.len(), 8);
    for half in shares.chunks(4) {
        assert_eq!(half[3], 100.0);
        assert!((half[..3].iter().sum::<f64>() - 100.0).abs() < 0.2, "{half:?}");
    }
}

#[test]
fn what_was_interrupted_before_its_first_sample_gives_no_reasons() {
    let place = Sandbox::new("empty");
    text(&lab(&place.0, &[&["study", "kasumi"][..], &RUN].concat()));
    std::fs::remove_file(place.0.join("x.labx/seal.json")).unwrap();
    std::fs::write(place.0.join("x.labx/samples.jsonl"), "").unwrap();
    let printed = text(&lab(&place.0, &["print", "x.labx"]));
    assert!(printed.contains("interrupted: 0 of "), "{printed}");
    assert!(printed.contains("not measured here") && printed.contains("too little was measured"));
}

#[test]
fn json_has_the_reasons_beside_the_cells() {
    let place = Sandbox::new("json");
    let printed = text(&lab(&place.0, &[&["study", "kasumi", "--json"][..], &RUN].concat()));
    let value: serde_json::Value = serde_json::from_str(&printed).unwrap();
    assert_eq!(value["schema"], "metaslot-lab-summary/2");
    assert_eq!(value["study"]["reason"].as_array().unwrap().len(), 2);
    assert!(!value["study"]["sun"].as_array().unwrap().is_empty());
    let cells = value["cells"].as_array().unwrap();
    assert!(cells.iter().all(|cell| cell["cpu_ns_per_unit"].as_f64().unwrap() > 0.0));
}

#[test]
fn without_a_name_they_are_listed_and_a_wrong_name_is_refused() {
    let place = Sandbox::new("list");
    let listed = text(&lab(&place.0, &["study"]));
    for name in ["rc4", "rsa", "kasumi", "sha1", "aes"] {
        assert!(listed.lines().any(|line| line.trim_start().starts_with(name)), "{listed}");
    }
    let refused = lab(&place.0, &["study", "des"]);
    assert!(!refused.status.success());
    assert!(String::from_utf8_lossy(&refused.stderr).contains("'des'"));
    assert_eq!(std::fs::read_dir(&place.0).unwrap().count(), 0, "nothing was left");
}

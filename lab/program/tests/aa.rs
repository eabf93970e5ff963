// SPDX-License-Identifier: Apache-2.0
//! `lab aa` from end to end. How far the arms lie apart is the machine's business, not this test's.
#![expect(clippy::unwrap_used, reason = "a test fails where it cannot go on")]

use metaslot_lab::experiment::{Experiment, State};
use std::path::Path;
use std::process::Command;

/// The lab, which keeps its floor in this directory and not in the user's.
fn lab(home: &Path) -> Command {
    let mut lab = Command::new(env!("CARGO_BIN_EXE_metaslot-lab"));
    lab.env("XDG_STATE_HOME", home).current_dir(home).arg("aa");
    lab
}

fn place(name: &str) -> std::path::PathBuf {
    let place = std::env::temp_dir().join(format!("aa-{name}-{}", std::process::id()));
    std::fs::create_dir_all(&place).unwrap();
    place
}

#[test]
fn two_identical_arms_leave_a_sealed_experiment_with_enough_pairs_and_a_floor() {
    let place = place("one");
    let run =
        || lab(&place).args(["--seconds", "1", "--seed", "1", "-o", "x.labx"]).output().unwrap();
    let output = run();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let experiment = Experiment::read(&place.join("x.labx")).unwrap();
    assert_eq!(experiment.state, State::Sealed);
    assert_eq!(experiment.plan.cells(), ["work=copy-64K", "work=pipe-1B"]);
    for cell in experiment.plan.cells() {
        assert!(experiment.pairs(&cell, |sample| sample.wall_each()).count() >= 6);
    }
    let said = String::from_utf8(run().stderr).unwrap();
    assert!(said.contains("no experiment is overwritten"), "{said}");
    // The next experiment knows what this one has found.
    let text = std::fs::read_to_string(place.join("metaslot/lab-floor.json")).unwrap();
    let kept: serde_json::Value = serde_json::from_str(&text).unwrap();
    let next = lab(&place).args(["--repetitions", "6", "-o", "y.labx"]).output().unwrap();
    assert!(next.status.success());
    let known = Experiment::read(&place.join("y.labx")).unwrap().manifest.provenance.floor.unwrap();
    assert_eq!(kept["floor"]["cpu"].as_f64().unwrap(), known.cpu);
    std::fs::remove_dir_all(&place).unwrap();
}

#[test]
fn many_experiments_are_counted_and_gone_on_with() {
    let place = place("many");
    let lab = |times: &str| {
        let mut lab = lab(&place);
        lab.args(["--of", "copy", "--repetitions", "6", "--seconds", "0.1", "--json"]);
        let output = lab.args(["--times", times, "--output", "many"]).output().unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        serde_json::from_slice::<serde_json::Value>(&output.stdout).unwrap()
    };
    assert_eq!(lab("2")["experiments"], 2);
    let tally = lab("3");
    assert_eq!((&tally["experiments"], &tally["interrupted"]), (&3.into(), &0.into()));
    assert_eq!(
        (&tally["rows"][0]["work"], &tally["rows"][0]["cells"]),
        (&"copy".into(), &6.into())
    );
    std::fs::remove_dir_all(&place).unwrap();
    let mut lab = Command::new(env!("CARGO_BIN_EXE_metaslot-lab"));
    assert!(
        !lab.args(["aa", "--tally"])
            .arg(std::env::temp_dir().join("none"))
            .status()
            .unwrap()
            .success()
    );
}

/// What was measured under load stays readable, and says what the book says of it.
#[test]
fn the_experiments_that_were_kept_say_what_the_book_says() {
    let place = std::env::temp_dir().join(format!("aa-kept-{}", std::process::id()));
    std::fs::create_dir_all(&place).unwrap();
    let archive = concat!(env!("CARGO_MANIFEST_DIR"), "/../../testdata/lab/aa-under-load.tar.xz");
    let mut tar = Command::new("tar");
    assert!(tar.args(["-xJf", archive, "-C"]).arg(&place).status().unwrap().success());
    let mut lab = Command::new(env!("CARGO_BIN_EXE_metaslot-lab"));
    let output =
        lab.args(["aa", "--json", "--tally"]).arg(place.join("aa-under-load")).output().unwrap();
    let tally: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!((&tally["experiments"], &tally["interrupted"]), (&205.into(), &0.into()));
    let rows = tally["rows"].as_array().unwrap();
    let wrong = |clock: &str| -> u64 {
        let rows = rows.iter().filter(|row| row["clock"] == clock);
        rows.map(|row| row["wrong"].as_u64().unwrap()).sum()
    };
    assert_eq!((rows.len(), wrong("cpu"), wrong("wall")), (6, 0, 2));
    std::fs::remove_dir_all(&place).unwrap();
}

// SPDX-License-Identifier: Apache-2.0
//! `lab lanes` from end to end, in a few seconds. What is slow or fast decides nothing here: that everything is measured, checked and
//! written does.

use clap::Parser;
use metaslot_lab::{Command, LanesOptions};
use serde_json::Value;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process;

const KERNELS: &str = env!("CARGO_BIN_EXE_metaslot-kernels");
const LAB: &str = env!("CARGO_BIN_EXE_metaslot-lab");

#[derive(Parser)]
struct Line {
    #[command(flatten)]
    options: LanesOptions,
}

/// Runs the experiment and gives what `print --json` says of it.
fn lanes(name: &str, arguments: &[&str]) -> metaslot_lab::Result<Value> {
    let directory = std::env::temp_dir().join(format!("metaslot-{name}-{}.labx", process::id()));
    let output = directory.display().to_string();
    let line = ["lanes", "--quick", "--kernels", KERNELS, "--output", &output];
    let options = Line::parse_from(line.iter().chain(arguments)).options;
    metaslot_lab::run(&Command::Lanes(options))?;
    let printed = process::Command::new(LAB).args(["print", "--json", &output]).output();
    std::fs::remove_dir_all(&directory).expect("a directory can be removed");
    Ok(serde_json::from_slice(&printed.expect("it was started").stdout).expect("it is JSON"))
}

/// The module that the tests were given, or the one of this build, built now if that did not happen yet.
fn module() -> PathBuf {
    if let Some(module) = std::env::var_os("METASLOT_MODULE") {
        return PathBuf::from(module);
    }
    let directory = Path::new(KERNELS).parent().expect("a program is in a directory");
    let mut cargo = process::Command::new(env!("CARGO"));
    cargo.args(["build", "--quiet", "--package", "metaslot-module"]);
    cargo.current_dir(env!("CARGO_MANIFEST_DIR"));
    if directory.ends_with("release") {
        cargo.arg("--release");
    }
    assert!(cargo.status().expect("cargo runs").success(), "the module does not build");
    directory.join("libmetaslot.so")
}

fn list(value: &Value) -> &[Value] {
    value.as_array().expect("it is a list")
}

#[test]
fn two_rows_are_measured_and_checked() {
    let module = module().display().to_string();
    let report = lanes("two-rows", &["--only", "rsa1024-sign,md5-8k", "--module", &module]);
    let report = report.unwrap_or_else(|failure| panic!("{failure}"));
    assert_eq!(report["state"], "sealed");
    let rows = list(&report["lanes"]["rows"]);
    assert_eq!(rows.len(), 2);
    for row in rows {
        let kernel = &row["kernel"];
        if kernel["available"] == true {
            assert_eq!(list(&kernel["raw_ns"]).len(), 3, "{row}");
            assert!(list(&kernel["lanes"]).iter().all(|lanes| list(&lanes["ns"]).len() == 3));
            let counted = |port: &Value| port["instructions"].as_f64().unwrap() > 0.0;
            assert!(list(&kernel["ports"]).iter().any(counted), "{row}");
        }
        let module = &row["module"];
        assert!(module["not_served"].is_null() && module["not_served_without"].is_null(), "{row}");
        let arms = list(&module["arms"]);
        // One and sixteen threads that wait; one operation in flight, many of one thread, and of one for each processor.
        let processors = std::thread::available_parallelism().map_or(1, usize::from);
        let expected = if processors > 1 { 5 } else { 4 };
        assert_eq!(arms.len(), expected);
        for window in arms.iter().flat_map(|arm| [&arm["with"], &arm["without"]]).flat_map(list) {
            assert!(window["operations"].as_u64().unwrap() > 0, "{window}");
        }
        let alone = |arm: &&Value| list(&arm["without"]).iter().all(|one| one["batches"] == 0);
        assert_eq!(
            arms.iter().filter(alone).count(),
            expected,
            "without lanes there are no batches"
        );
    }
}

#[test]
fn the_kernels_answer_without_their_instructions_too() {
    let without = "avx512,ifma,vaes,vpclmul,avx2,aes";
    let arguments = ["--no-module", "--only", "p256-sign,sha512", "--without", without];
    let failure = lanes("without", &arguments).unwrap_err();
    assert!(failure.message.contains("not on this processor"), "{failure}");
}

/// The kernels' program ends where it is to count its instructions, as it does by ^C.
#[test]
fn what_was_measured_stays_where_nothing_is_counted() {
    let place = std::env::temp_dir().join(format!("metaslot-uncounted-{}", process::id()));
    std::fs::create_dir_all(&place).unwrap();
    let (program, output) = (place.join("kernels"), place.join("out.labx"));
    let script = r#"#!/bin/sh
echo '{"available": true, "lanes": [8], "ports": ["multiply"], "raw": true}'
while read line && [ "$line" = round ]; do echo '{"ports": [1], "raw": 20, "lanes": [10]}'; done
"#;
    std::fs::write(&program, script).unwrap();
    std::fs::set_permissions(&program, PermissionsExt::from_mode(0o755)).unwrap();
    let mut lanes = process::Command::new(LAB);
    lanes.args(["lanes", "--quick", "--no-module", "--only", "sha512", "--kernels"]);
    let said = lanes.arg(&program).arg("--output").arg(&output).output().unwrap();
    let printed = process::Command::new(LAB).arg("print").arg(&output).output().unwrap();
    std::fs::remove_dir_all(&place).unwrap();
    let error = String::from_utf8(said.stderr).unwrap();
    assert!(error.contains("ended early") && error.contains("metaslot lab print"), "{error}");
    assert!(printed.status.success());
}

#[test]
fn the_kernels_and_the_lab_have_the_same_rows() {
    let output = process::Command::new(KERNELS).arg("--list").output().unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    let load = include_str!("../../../examples/lanes_load/work.c");
    let names = load.lines().filter_map(|line| line.strip_prefix("\t{\"")?.split('"').next());
    assert_eq!(text.lines().collect::<Vec<_>>(), names.collect::<Vec<_>>());
}

/// What links the kernels allocates from protected memory: then the bare library is not measured bare.
#[test]
fn the_library_of_the_lab_does_not_bring_the_kernels() {
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    let mut folders = vec![source.clone()];
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(folder).unwrap().map(Result::unwrap) {
            let path = entry.path();
            if path.is_dir() && path != source.join("bin") {
                folders.push(path);
            } else if path.is_file() {
                let text = std::fs::read_to_string(&path).unwrap();
                for name in ["metaslot_lanes::", "metaslot_awslc_wrapper::"] {
                    assert!(!text.contains(name), "{} uses {name}", path.display());
                }
            }
        }
    }
}

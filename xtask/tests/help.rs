// SPDX-License-Identifier: Apache-2.0
//! Who asks what a task does is told, and nothing is done.

use std::process::{Command, Output};

/// With an empty search path there is no program that it could start.
fn asked(words: &[&str]) -> (Output, String) {
    let mut xtask = Command::new(env!("CARGO_BIN_EXE_xtask"));
    let output = xtask.args(words).env("PATH", "").output().expect("it starts");
    let said = String::from_utf8(output.stdout.clone()).expect("it is text");
    (output, said)
}

fn names() -> Vec<String> {
    let (output, list) = asked(&["--help"]);
    assert!(output.status.success());
    let tasks = list.lines().filter(|line| line.starts_with("  ") && !line.starts_with("   "));
    tasks.filter_map(|line| line.split_whitespace().next()).map(str::to_owned).collect()
}

#[test]
fn each_task_says_what_it_does_and_does_nothing() {
    let names = names();
    assert!(names.len() > 15, "{names:?}");
    for name in &names {
        for words in
            [&[name.as_str(), "--help"][..], &[name, "-h"], &["help", name], &[name, "x", "-h"]]
        {
            let (output, said) = asked(words);
            assert!(output.status.success() && output.stderr.is_empty(), "{words:?}: {output:?}");
            assert!(said.contains(&format!("usage: cargo xtask {name}")), "{words:?}: {said}");
            let lines: Vec<&str> = said.trim_end().lines().collect();
            assert!(
                lines.len() >= 5,
                "{name} says neither what it does nor how long it takes: {said}"
            );
            assert!(lines.iter().all(|line| line.len() <= 140), "{name}: a long line: {said}");
        }
    }
}

#[test]
fn what_is_no_task_or_no_argument_is_refused() {
    for words in [&[][..], &["tests"], &["help", "tests"]] {
        assert_eq!(asked(words).0.status.code(), Some(2), "{words:?}");
    }
    // Before anything is done for it.
    for words in
        [["miri", "all"], ["structure", "--fix"], ["codegen", "--chek"], ["histories", "many"]]
    {
        let (output, _) = asked(&words);
        let told = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.code() == Some(1) && told.contains(" takes "), "{words:?}: {told}");
    }
    let (output, _) = asked(&["install", "--all"]);
    let told = String::from_utf8_lossy(&output.stderr);
    assert!(told.contains("unknown argument --all; there are --prefix DIR"), "{told}");
}

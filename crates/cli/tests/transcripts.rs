// SPDX-License-Identifier: Apache-2.0
//! Runs the command as its users do: every transcript in `testdata/cli` and every console block of
//! the pages in `docs/commands`, each file in a directory, with a configuration and a token of its
//! own, against the module that was built with this test.
//!
//! `METASLOT_TRANSCRIPTS=overwrite` writes what happened in place of what was expected.

#[path = "common/sandbox.rs"]
mod sandbox;
#[path = "common/transcript.rs"]
mod transcript;

use sandbox::Sandbox;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};
use std::{env, fs, thread};
use transcript::Transcript;

#[test]
fn the_command_does_what_its_transcripts_and_pages_say() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let root = root.canonicalize().expect("the tree has a root");
    let mut files = found(&root.join("testdata/cli"), "txt");
    files.extend(found(&root.join("docs/commands"), "md"));
    if let Some(only) = env::var_os("METASLOT_TRANSCRIPT") {
        let only = only.to_string_lossy().into_owned();
        files.retain(|file| file.to_string_lossy().contains(&only));
    }
    assert!(!files.is_empty(), "no transcript was found");
    let overwrite = env::var_os("METASLOT_TRANSCRIPTS").is_some_and(|how| how == "overwrite");
    let module = sandbox::module();
    // A page shows what the lab of today prints; `cargo xtask test` has built it with the module.
    if env::var_os("METASLOT_MODULE").is_none() {
        sandbox::build(&["metaslot-lab"]);
    }
    let wrong: Vec<String> = thread::scope(|scope| {
        let module = &module;
        let run = |file| scope.spawn(move || differences(file, module, overwrite));
        let running: Vec<_> = files.iter().map(PathBuf::as_path).map(run).collect();
        running.into_iter().flat_map(|file| file.join().expect("a transcript runs")).collect()
    });
    assert!(wrong.is_empty(), "{} differences:\n{}", wrong.len(), wrong.join("\n"));
}

#[test]
fn a_command_that_waits_without_end_fails_and_all_that_it_started_is_killed() {
    let sandbox = Sandbox::make(Path::new("no module"));
    let command =
        "trap '' TERM; sleep 600 & echo $! > pid; echo waiting; until false; do sleep 0.1; done";
    // A busy machine may take more than a second to begin.
    let told = [1, 10, 100].into_iter().find_map(|limit| {
        let told = sandbox.run_within(Duration::from_secs(limit), command).expect_err("no end");
        told.ends_with("\nwaiting").then_some(told)
    });
    let told = told.expect("it begins");
    assert!(told.starts_with("not ended in ") && told.contains(command), "{told}");
    let pid = fs::read_to_string(sandbox.directory().join("pid")).expect("it began");
    let is_there = || {
        let state = fs::read_to_string(format!("/proc/{}/stat", pid.trim())).unwrap_or_default();
        !state.is_empty() && !state.contains(") Z ")
    };
    // What is killed ends soon, and sleep by itself only after ten minutes.
    let until = Instant::now() + Duration::from_secs(60);
    while is_there() {
        assert!(Instant::now() < until, "{pid} was not killed");
        thread::sleep(Duration::from_millis(10));
    }
}

/// Runs one file.
fn differences(file: &Path, module: &Path, overwrite: bool) -> Vec<String> {
    let text = fs::read_to_string(file).expect("a transcript is text");
    let transcript = Transcript::parse(&text, file.extension().is_some_and(|end| end == "md"));
    assert!(!transcript.is_empty(), "{}: nothing to run", file.display());
    let outcome = transcript.run(&Sandbox::make(module));
    if overwrite && !outcome.differences.is_empty() {
        fs::write(file, outcome.text).expect("a transcript can be written");
    }
    let named = |difference: &String| format!("{}:{difference}", file.display());
    outcome.differences.iter().map(named).collect()
}

fn found(directory: &Path, extension: &str) -> Vec<PathBuf> {
    let entries = fs::read_dir(directory).expect("there are transcripts");
    let files = entries.map(|entry| entry.expect("an entry").path());
    let mut files: Vec<PathBuf> =
        files.filter(|file| file.extension().is_some_and(|end| end == extension)).collect();
    files.sort();
    files
}

// SPDX-License-Identifier: Apache-2.0
//! The tests' own programs. Cargo runs one after the other; most of them wait for others, and here they run side by side.

use std::collections::VecDeque;
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::sync::{Mutex, PoisonError};
use std::thread;
use std::time::Instant;

use anyhow::{Context, Result, ensure};
use serde_json::Value;

use crate::report::{Count, tests_heard};

/// A program with tests.
#[derive(Clone)]
pub(crate) struct Binary {
    /// The package's name, and the target's.
    pub(crate) package: String,
    pub(crate) name: String,
    /// Whether it has the tests that are inside the crate.
    pub(crate) is_inside: bool,
    pub(crate) path: PathBuf,
    /// Where Cargo would start it.
    home: PathBuf,
}

/// Compiles what a `cargo test` would run.
pub(crate) fn compiled(test: &mut Command) -> Result<Vec<Binary>> {
    let built = test.args(["--no-run", "--message-format=json-render-diagnostics"]);
    let built = built.stderr(Stdio::inherit()).output().context("run cargo")?;
    ensure!(built.status.success(), "the tests were not built");
    let messages = built.stdout.split(|byte| *byte == b'\n');
    let messages = messages.filter_map(|line| serde_json::from_slice::<Value>(line).ok());
    Ok(messages.filter_map(|message| binary(&message)).collect())
}

fn binary(artifact: &Value) -> Option<Binary> {
    let path = artifact["executable"].as_str()?;
    let manifest = PathBuf::from(artifact["manifest_path"].as_str()?);
    let home = manifest.parent()?.to_path_buf();
    // "path+file:///home#name@1.0.0", or "…/name#1.0.0" where the directory has that name.
    let (place, version) = artifact["package_id"].as_str()?.rsplit_once('#')?;
    let package = match version.split_once('@') {
        Some((name, _)) => name,
        None => place.rsplit_once('/')?.1,
    };
    artifact["profile"]["test"].as_bool()?.then(|| Binary {
        package: package.to_owned(),
        name: artifact["target"]["name"].as_str().unwrap_or_default().to_owned(),
        is_inside: artifact["target"]["kind"][0] != "test",
        path: path.into(),
        home,
    })
}

impl Binary {
    fn command(&self) -> Command {
        let mut command = Command::new(&self.path);
        command.arg("--quiet").current_dir(&self.home).env("CARGO_MANIFEST_DIR", &self.home);
        command
    }
}

/// Runs so many at a time, in their order, after `prepare`; the output of each is shown when it has ended.
pub(crate) fn run(
    binaries: impl IntoIterator<Item = Binary>,
    streams: usize,
    prepare: impl Fn(&mut Command) + Sync,
) -> Count {
    let left = Mutex::new(binaries.into_iter().collect::<VecDeque<_>>());
    let all = Mutex::new(Count::default());
    let next = || left.lock().unwrap_or_else(PoisonError::into_inner).pop_front();
    thread::scope(|scope| {
        for _ in 0..streams {
            scope.spawn(|| {
                while let Some(binary) = next() {
                    let mut command = binary.command();
                    prepare(&mut command);
                    let (began, mut lines) = (Instant::now(), Vec::new());
                    let count = tests_heard(&mut command, |line| lines.push(line));
                    let took = began.elapsed().as_secs_f64();
                    let mut all = all.lock().unwrap_or_else(PoisonError::into_inner);
                    println!("    {} {}: {took:.1} s", binary.package, binary.name);
                    lines.iter().for_each(|line| println!("      {line}"));
                    all.add(count);
                }
            });
        }
    });
    all.into_inner().unwrap_or_else(PoisonError::into_inner)
}

impl Count {
    /// A program that ended without a result is one failure, and the others count all the same.
    fn add(&mut self, count: Result<Self>) {
        let count = count.unwrap_or_else(|error| {
            println!("      FAILED: {error:#}");
            Self { passed: 0, failed: 1 }
        });
        self.passed += count.passed;
        self.failed += count.failed;
    }
}

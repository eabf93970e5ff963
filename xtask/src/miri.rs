// SPDX-License-Identifier: Apache-2.0
//! Miri over the tests that it can run: those that neither map memory nor call C.

use anyhow::{Context, Result, ensure};

use crate::cargo::cargo;
use crate::report::check;

/// Packages, and the tests in them that Miri leaves out.
const TESTS: &[(&str, &[&str])] = &[
    ("metaslot-ck", &[]),
    ("metaslot-cli", &["encoding", "uri"]),
    ("metaslot-client", &["template"]),
    ("metaslot-module", &["decode"]),
];

/// Runs them with the toolchain that has it: Rust's nightly one.
pub(crate) fn run() -> Result<()> {
    let there = cargo(&["+nightly", "miri", "--version"]).output().context("run cargo")?;
    ensure!(
        there.status.success(),
        "no toolchain here has Miri: rustup component add --toolchain nightly miri rust-src"
    );
    for (package, tests) in TESTS {
        let mut miri = cargo(&["+nightly", "miri", "test", "--locked", "--package", package]);
        // Secrets lie in locked memory, which it does not know.
        check(miri.env("MIRIFLAGS", "-Zmiri-disable-isolation").arg("--").args(*tests))?;
    }
    Ok(())
}

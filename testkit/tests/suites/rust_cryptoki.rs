// SPDX-License-Identifier: Apache-2.0
//! The suite of the Rust crate `cryptoki`, compiled from its package.

use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context, Result};
use metaslot_testkit::{Program, TestToken, check};

use crate::judged::{self, Ran};

/// It compiles itself first.
const LIMIT: Duration = Duration::from_secs(500);
/// It waits until a token is brought, and nothing brings one.
const WAITS: &str = "--skip=wait_for_slot_event";
/// One that fails leaves the module initialised, which some that could come next do not expect.
const IN_ORDER: &str = "--test-threads=1";

/// A `cargo` with what it needs of our environment.
fn cargo(program: Program) -> Program {
    ["CARGO_HOME", "RUSTUP_HOME", "HOME", "RUSTUP_TOOLCHAIN"].into_iter().fold(
        program,
        |program, name| match std::env::var_os(name) {
            Some(value) => program.env(name, value),
            None => program,
        },
    )
}

/// Where cargo keeps the package, which is a dependency of these tests.
fn package() -> Result<PathBuf> {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    let metadata = cargo(Program::new("cargo")).line("metadata --format-version 1 --locked");
    let metadata = metadata.directory(here).run()?;
    let metadata: serde_json::Value = serde_json::from_slice(&metadata.stdout)?;
    let packages = metadata["packages"].as_array().context("packages")?;
    let found = packages.iter().find(|package| package["name"] == "cryptoki");
    let manifest = found.and_then(|package| package["manifest_path"].as_str());
    let directory = Path::new(manifest.context("no package cryptoki")?).parent();
    directory.map(Path::to_path_buf).context("a manifest is in no directory")
}

/// The tests and what became of them, each after the name of its file.
fn outcomes(told: &str) -> Ran {
    let mut file = "";
    let mut ran = Ran::new();
    for line in told.lines() {
        if let Some(rest) = line.trim_start().strip_prefix("Running ") {
            let path = rest.split(" (").next().unwrap_or_default();
            file = path.rsplit('/').next().unwrap_or_default().trim_end_matches(".rs");
        }
        let said = line.strip_prefix("test ").and_then(|line| line.split_once(" ... "));
        let Some((name, word)) = said else { continue };
        if ["ok", "FAILED"].contains(&word) {
            ran.insert(format!("{file}::{name}"), word == "ok");
        }
    }
    ran
}

fn run(token: &mut TestToken) -> Result<()> {
    token.policy("legacy")?;
    // It initialises the token itself, again and again, by PINs of its own.
    let tokens = token.path("tokens");
    std::fs::remove_dir_all(&tokens).and_then(|()| std::fs::create_dir(&tokens))?;
    // A copy: cargo's own must stay as it is, and a package inside of ours would be one of the workspace.
    let copy = token.path("cryptoki");
    Program::new("cp").arg("-r").args([&package()?, &copy]).run()?;
    let manifest = copy.join("Cargo.toml");
    let text = std::fs::read_to_string(&manifest).context("read the manifest")?;
    std::fs::write(&manifest, format!("{text}\n[workspace]\n")).context("write the manifest")?;
    let built = Path::new(env!("CARGO_MANIFEST_DIR")).join("../target/suites/cryptoki");
    // The names of its files go to one output and what became of their tests to the other: to one here, in their order.
    let suite = cargo(token.program("sh")).args(["-c", "exec cargo \"$@\" 2>&1", "sh"]);
    let suite = suite.line("test --locked --no-fail-fast --tests --target-dir").arg(built);
    let suite = suite.args(["--", WAITS, IN_ORDER]).directory(&copy).limit(LIMIT);
    let told = suite.env("TEST_PKCS11_MODULE", token.module()).output()?.text();
    judged::compare("rust-cryptoki", &outcomes(&told), &told)
}

#[test]
fn under_legacy() {
    check("Rust cryptoki crate", "its own suite", &["cargo", "pkcs11-tool"], run);
}

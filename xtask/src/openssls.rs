// SPDX-License-Identifier: Apache-2.0
//! Our provider with newer releases of OpenSSL than Debian's: their programs, built once from the sources that crates.io has. It is not
//! part of `test` because building them takes minutes.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context, Result};
use serde_json::Value;

use crate::cargo::{cargo, root, target};
use crate::packages::{self, FOR_TESTS};
use crate::report::{all_pass, check};

/// Releases, and the package whose sources they are.
const RELEASES: &[(&str, &str)] = &[("3.5", "=300.5.5"), ("4.0", "=400.0.2")];

/// What no test here asks for is not built.
const OPTIONS: &str = "no-shared no-tests no-docs no-fips no-legacy no-quic no-engine no-comp no-gost no-srp no-sm2 no-sm3 no-sm4 no-idea \
    no-camellia no-aria no-seed no-bf no-cast no-rc2 no-rc4 no-whirlpool no-mdc2 no-ec2m no-dtls -O1 -Wl,--export-dynamic";

/// What is kept of a build: the program, whose jobs the provider sees, and what programs of the tests are linked with.
const KEPT: &[&str] = &["libcrypto.a", "include", "apps/openssl"];

/// Builds the programs, the module, the command and the provider, and runs the tests of the provider with each.
pub(crate) fn run() -> Result<()> {
    packages::install(&[FOR_TESTS])?;
    for package in ["metaslot-module", "metaslot-cli", "metaslot-openssl-provider"] {
        check(&mut cargo(&["build", "--locked", "--package", package]))?;
    }
    let built = target().join("debug");
    for (release, package) in RELEASES {
        let program = program(release, package)?;
        println!("==> OpenSSL {release}");
        let mut test = cargo(&["test", "--locked", "--package", "metaslot-testkit"]);
        test.env("METASLOT_MODULE", built.join("libmetaslot.so"));
        test.env("METASLOT_COMMAND", built.join("metaslot"));
        test.env("METASLOT_OPENSSL", program);
        all_pass(test.args(["--test", "clients", "--", "openssl_provider", "async_jobs"]))?;
    }
    Ok(())
}

/// The program of a release; it is built where it is not there yet.
fn program(release: &str, package: &str) -> Result<PathBuf> {
    let home = root().join("target/openssls").join(release);
    let program = home.join("openssl");
    if program.exists() && home.join("libcrypto.a").exists() {
        return Ok(program);
    }
    println!("==> building OpenSSL {release} (some minutes, once)");
    let build = home.join("build");
    drop(fs::remove_dir_all(&build));
    fs::create_dir_all(&home).context("make a directory")?;
    check(Command::new("cp").arg("-r").arg(sources(&home, package)?).arg(&build))?;
    let run = |command: &mut Command| check(command.current_dir(&build).stdout(Stdio::null()));
    run(Command::new("perl").args(["Configure", "linux-x86_64"]).args(OPTIONS.split_whitespace()))?;
    let threads = std::thread::available_parallelism().map_or(1, usize::from);
    run(Command::new("make").arg(format!("-j{threads}")).arg("build_sw"))?;
    for name in KEPT {
        check(Command::new("cp").arg("-r").arg(build.join(name)).arg(&home))?;
    }
    fs::remove_dir_all(&build).context("remove what it was built from")?;
    Ok(program)
}

/// Where Cargo has the sources of a package.
fn sources(home: &Path, package: &str) -> Result<PathBuf> {
    let manifest = format!(
        "[package]\nname = \"sources\"\nversion = \"0.0.0\"\nedition = \"2024\"\n\n[lib]\npath = \"lib.rs\"\n\n\
         [dependencies]\nopenssl-src = \"{package}\"\n\n[workspace]\n"
    );
    fs::write(home.join("Cargo.toml"), manifest).context("write a manifest")?;
    fs::write(home.join("lib.rs"), "").context("write a crate")?;
    let said = Command::new("cargo")
        .args(["metadata", "--format-version", "1"])
        .current_dir(home)
        .output()
        .context("ask cargo for the sources")?;
    let said: Value = serde_json::from_slice(&said.stdout).context("read what cargo says")?;
    let packages = said["packages"].as_array().context("no packages")?;
    let found = packages.iter().find(|package| package["name"] == "openssl-src");
    let manifest = found.and_then(|found| found["manifest_path"].as_str());
    let manifest = Path::new(manifest.context("no openssl-src")?);
    Ok(manifest.with_file_name("openssl"))
}

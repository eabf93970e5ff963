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

/// Releases, the package whose sources they are, and the number in the names of their libraries.
const RELEASES: &[(&str, &str, u32)] = &[("3.5", "=300.5.5", 3), ("4.0", "=400.0.2", 4)];

/// What no test here asks for is not built; all else is what distributions have, whose programs find it in shared libraries.
const OPTIONS: &str = "no-shared no-tests no-docs no-fips no-legacy no-quic enable-ktls -O1";

/// What is kept of a build: the program and its libraries, by both of their names, and what programs of the tests are compiled with.
const KEPT: &[&str] = &["include", "apps/openssl", "libcrypto.so", "libssl.so"];

/// Builds the programs, the module, the command and the provider, and runs the tests of the provider with each.
pub(crate) fn run() -> Result<()> {
    packages::install(&[FOR_TESTS])?;
    for package in ["metaslot-module", "metaslot-cli", "metaslot-openssl-provider"] {
        check(&mut cargo(&["build", "--locked", "--package", package]))?;
    }
    let built = target().join("debug");
    for (release, package, number) in RELEASES {
        let program = program(release, package, *number)?;
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
fn program(release: &str, package: &str, number: u32) -> Result<PathBuf> {
    let home = root().join("target/openssls").join(release);
    let program = home.join("openssl");
    if program.exists() && home.join("libssl.so").exists() {
        return Ok(program);
    }
    println!("==> building OpenSSL {release} (some minutes, once)");
    let build = home.join("build");
    drop(fs::remove_dir_all(&build));
    fs::create_dir_all(&home).context("make a directory")?;
    check(Command::new("cp").arg("-r").arg(sources(&home, package)?).arg(&build))?;
    let run = |command: &mut Command| check(command.current_dir(&build).stdout(Stdio::null()));
    // Programs find the libraries where these are kept.
    let kept = format!("-Wl,-rpath,{}", home.display());
    let options = ["Configure", "linux-x86_64", &kept].into_iter();
    run(Command::new("perl").args(options.chain(OPTIONS.split_whitespace())))?;
    let threads = std::thread::available_parallelism().map_or(1, usize::from);
    let make = |goal| run(Command::new("make").arg(format!("-j{threads}")).arg(goal));
    make("build_generated")?;
    make("apps/openssl")?;
    // The package lacks what shared libraries are made by, and has all that they are made of: with them there, the program is linked again.
    let named = ["libcrypto", "libssl"].map(|library| format!("{library}.so.{number}"));
    run(shared(&named[0], &kept, "libcrypto.a").args(["-ldl", "-pthread"]))?;
    run(Command::new("ln").args(["-s", &named[0], "libcrypto.so"]))?;
    run(shared(&named[1], &kept, "libssl.a").arg("libcrypto.so"))?;
    run(Command::new("ln").args(["-s", &named[1], "libssl.so"]))?;
    fs::remove_file(build.join("apps/openssl")).context("remove the program")?;
    make("apps/openssl")?;
    for name in KEPT.iter().copied().chain(named.iter().map(String::as_str)) {
        check(Command::new("cp").arg("-r").arg(build.join(name)).arg(&home))?;
    }
    fs::remove_dir_all(&build).context("remove what it was built from")?;
    Ok(program)
}

/// A library of this name, of all that is in an archive.
fn shared(name: &str, kept: &str, archive: &str) -> Command {
    let mut gcc = Command::new("gcc");
    gcc.args(["-shared", kept, &format!("-Wl,-soname,{name}"), "-o", name]);
    gcc.args(["-Wl,--whole-archive", archive, "-Wl,--no-whole-archive"]);
    gcc
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

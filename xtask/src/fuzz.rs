// SPDX-License-Identifier: Apache-2.0
//! Fuzz targets under libFuzzer, with the compiler's own instrumentation: a stable toolchain is enough.

use std::fs;

use anyhow::{Context, Result, bail, ensure};

use crate::cargo::{cargo, root, target};
use crate::report::check;

/// What tells libFuzzer which code an input has reached.
const COVERAGE: &[&str] = &[
    "-Cpasses=sancov-module",
    "-Cllvm-args=-sanitizer-coverage-level=4",
    "-Cllvm-args=-sanitizer-coverage-inline-8bit-counters",
    "-Cllvm-args=-sanitizer-coverage-pc-table",
    "-Cllvm-args=-sanitizer-coverage-trace-compares",
    "-Ccodegen-units=1",
    "-Cdebug-assertions",
];

/// No input may take longer, in seconds, or more memory, in MiB.
const LIMITS: [&str; 3] = ["-timeout=60", "-rss_limit_mb=2048", "-max_len=4096"];

/// `[TARGET] [--minutes N]`
pub(crate) fn run(arguments: &[String]) -> Result<()> {
    let mut words = arguments.iter().map(String::as_str);
    let (mut named, mut minutes) = (None, 1);
    while let Some(word) = words.next() {
        match word {
            "--minutes" => {
                let number = words.next().context("--minutes needs a number")?;
                minutes = number.parse().with_context(|| format!("{number} is no number"))?;
            }
            name => named = Some(name),
        }
    }
    let all = targets()?;
    let chosen: Vec<&String> =
        all.iter().filter(|name| named.is_none_or(|named| named == *name)).collect();
    ensure!(!chosen.is_empty(), "there are the targets {}", all.join(", "));
    build()?;
    for name in chosen {
        fuzz(name, minutes)?;
    }
    Ok(())
}

/// The names in the table of `fuzz/src/lib.rs`.
fn targets() -> Result<Vec<String>> {
    let path = root().join("fuzz/src/lib.rs");
    let text = fs::read_to_string(&path).with_context(|| format!("read {}", path.display()))?;
    let names = text.split("Target { name: \"").skip(1);
    Ok(names.filter_map(|rest| rest.split('"').next()).map(str::to_owned).collect())
}

/// Apart from the other builds: every package is instrumented.
fn build() -> Result<()> {
    let arguments = ["build", "--release", "--locked", "--package", "metaslot-fuzz"];
    // With a target named, build scripts and procedural macros stay as they are.
    let host = ["--features", "libfuzzer", "--bin", "fuzz", "--target", HOST];
    let built = check(
        cargo(&arguments)
            .args(host)
            .env("CARGO_TARGET_DIR", folder())
            .env("CARGO_PROFILE_RELEASE_LTO", "false")
            .env("RUSTFLAGS", COVERAGE.join(" ")),
    );
    built.map(drop)
}

const HOST: &str = "x86_64-unknown-linux-gnu";

fn folder() -> std::path::PathBuf {
    target().join("fuzz")
}

/// New inputs stay in the build's folder; those of the repository are read.
fn fuzz(name: &str, minutes: u64) -> Result<()> {
    let (found, harmful) = (folder().join("corpus").join(name), folder().join("harmful"));
    for place in [&found, &harmful] {
        fs::create_dir_all(place).with_context(|| format!("make {}", place.display()))?;
    }
    let kept = root().join("testdata/fuzz").join(name);
    let mut program = std::process::Command::new(folder().join(HOST).join("release/fuzz"));
    program.env("METASLOT_FUZZ_TARGET", name).args(LIMITS).arg(&found);
    program.args(kept.is_dir().then_some(kept));
    program.arg(format!("-max_total_time={}", 60 * minutes));
    program.arg(format!("-artifact_prefix={}/{name}-", harmful.display()));
    println!("==> {name}, {minutes} min");
    if check(&mut program).is_err() {
        bail!("{name}: the input is in {}", harmful.display());
    }
    Ok(())
}

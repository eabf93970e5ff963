// SPDX-License-Identifier: Apache-2.0
//! Everything that decides whether a change may go in, in one order, with one summary.

use std::collections::BTreeMap;
use std::fs;
use std::panic::resume_unwind;
use std::path::PathBuf;
use std::process::Command;
use std::thread;
use std::time::Instant;

use anyhow::{Result, anyhow, bail};

use crate::binaries::{self, Binary};
use crate::cargo::{build, cargo, command, module, stack, target};
use crate::packages::{self, FOR_RUN, FOR_TESTS};
use crate::report::{Count, Report, all_pass, check, tests, tests_heard};
use crate::{codegen, deb, dist, first, install, run, structure, suites};

/// All tests but those of real clients.
const UNIT_TESTS: [&str; 7] = [
    "test",
    "--workspace",
    "--locked",
    "--no-fail-fast",
    "--quiet",
    "--exclude",
    "metaslot-testkit",
];

/// Whose tests take longest and wait most, and so begin first; and whose measure, or compare what goes by a clock, and so run alone.
const LONG: [&str; 2] = ["metaslot-module", "metaslot-cli"];
const MEASURE: [&str; 2] = ["metaslot-lab", "metaslot-fuzz"];

/// Of the tests inside crates, those that compute longest.
const LONGEST_INSIDE: &str = "metaslot-lanes";

/// So many of the tests' programs wait for others at a time.
const STREAMS: usize = 3;

/// And so many run beside the end of the release build.
const STREAMS_BESIDE: usize = 2;

/// Clients wait for servers, so that more of them than there are processors keep these busy.
const THREADS_OF_CLIENTS: &str = "--test-threads=3";

/// Those of real clients, and what else runs through the release build.
const TESTKIT: [&str; 5] = ["test", "--locked", "--package", "metaslot-testkit", "--no-fail-fast"];

/// Runs every step, whatever fails, and prints the summary.
pub(crate) fn run() -> Result<()> {
    let mut report = Report::new();
    drop(fs::remove_file(clients_report()));
    report.step("packages", || {
        packages::install(&[FOR_RUN, FOR_TESTS])?;
        packages::make_users().map(|()| Count::ONE)
    });
    let mut binaries = Vec::new();
    // The release build ends in one long step of one thread, beside which the tests are compiled, and those run that do not need it.
    thread::scope(|scope| {
        let release = scope.spawn(|| {
            build()?;
            check(stack()?.arg("--no-run")).map(|_| ())
        });
        report.step("what suites and clients need", fetched);
        report.step("format", || check(&mut cargo(&["fmt", "--all", "--check"])));
        report.step("structure", || structure::run().map(|()| Count::ONE));
        report.step("generated files are up to date", || codegen::run(true).map(|()| Count::ONE));
        report.step("lints", || {
            check(
                cargo(&["clippy", "--workspace", "--all-targets", "--locked", "--quiet"])
                    .args(["--", "--deny", "warnings"]),
            )
        });
        report.step("the tests are compiled", || {
            // Without those of examples and benchmarks.
            let targets = ["--lib", "--bins", "--test", "*"];
            binaries = binaries::compiled(prepared(&UNIT_TESTS).args(targets))?;
            check(prepared(&TESTKIT).arg("--no-run"))
        });
        report.step("unit tests", || {
            let mut inside: Vec<_> =
                binaries.iter().filter(|binary| binary.is_inside).cloned().collect();
            inside.sort_by_key(|binary| binary.package != LONGEST_INSIDE);
            Ok(binaries::run(inside, STREAMS_BESIDE, prepare))
        });
        report.step("release build of the module and the command", || {
            let built = release.join().map_err(|_| anyhow!("the build panicked"))?;
            built.map(|()| Count::ONE)
        });
    });
    report.step("what the release build leaves in the stack", || tests(&mut stack()?));
    binaries.retain(|binary| !binary.is_inside);
    outside(&mut report, binaries);
    report.step("examples of the documentation", || tests(prepared(&UNIT_TESTS).arg("--doc")));
    report.step("vectors through the C ABI", || {
        // The lines for each file of vectors are worth seeing when they pass, too.
        tests(testkit("vectors").args(["--", "--nocapture"]))
    });
    report.step("attacks through the C ABI", || tests(&mut testkit("attacks")));
    clients(&mut report);
    // Some of their tests are upset where a machine is busy.
    report.step("suites that others wrote", || tests(&mut testkit("suites")));
    for (name, binary) in [
        ("vectors, with another module beside our providers", "vectors"),
        ("attacks, with another module beside our providers", "attacks"),
    ] {
        report.step(name, || tests(testkit(binary).env("METASLOT_TEST_OTHERS", "1")));
    }
    report.finish(print_clients)
}

/// What is released is made and installed, and used as the README says. Part of [`run`], after the release build.
pub(crate) fn packages() -> Result<()> {
    let mut report = Report::new();
    report.step("man pages, completions and the tarball", || {
        dist::run(dist::Library::Tested).map(|()| Count::ONE)
    });
    report.step("installation", install::test);
    report.step("a package, installed", || deb::test(&dist::man()?).map(|()| Count::ONE));
    report.step("the README, from a package to a TLS server", first::test);
    report.step("the demonstration", || run::run().map(|()| Count::ONE));
    report.finish(|| ())
}

/// What comes from others than Debian.
fn fetched() -> Result<Count> {
    packages::python_suite(&packages::python()?)?;
    suites::prepare()?;
    packages::provider()?;
    packages::node().map(|_| Count::ONE)
}

/// Those that wait for other programs, and then those that measure.
fn outside(report: &mut Report, mut binaries: Vec<Binary>) {
    binaries.sort_by_key(|binary| !LONG.contains(&&*binary.package));
    let (alone, beside): (Vec<_>, _) =
        binaries.into_iter().partition(|binary| MEASURE.contains(&&*binary.package));
    report.step("boundary and transcript tests, and those of programs", || {
        Ok(binaries::run(beside, STREAMS, prepare))
    });
    report
        .step("tests of the lab, and of malformed input", || Ok(binaries::run(alone, 1, prepare)));
}

/// Real clients, which wait for servers most of the time, and beside them what has one thread of its own.
fn clients(report: &mut Report) {
    let beside = [
        ("tokens of other modules", testkit("foreign")),
        ("packages, installed and used", cargo(&["xtask", "packages"])),
    ];
    side_by_side(report, beside, "real clients", || {
        let example = ["--package", "metaslot-testkit", "--example", "sign"];
        check(prepared(&["build", "--locked"]).args(example))?;
        tests(testkit("clients").args(["--", THREADS_OF_CLIENTS]))
    });
}

/// Runs a step, and beside it others, one after the other, told after it.
fn side_by_side<const N: usize>(
    report: &mut Report,
    others: [(&'static str, Command); N],
    name: &'static str,
    work: impl FnOnce() -> Result<Count>,
) {
    thread::scope(|scope| {
        let beside = scope.spawn(|| others.map(|(other, command)| (other, heard(command))));
        report.step(name, work);
        let told = beside.join().unwrap_or_else(|panicked| resume_unwind(panicked));
        for (other, (count, lines)) in told {
            report.step(other, || {
                lines.iter().for_each(|line| println!("    {line}"));
                count
            });
        }
    });
}

/// What tests find, and what they say.
fn heard(mut command: Command) -> (Result<Count>, Vec<String>) {
    let (began, mut lines) = (Instant::now(), Vec::new());
    let count = tests_heard(&mut command, |line| lines.push(line));
    lines.push(format!("beside the steps before, in {} s", began.elapsed().as_secs()));
    (count, lines)
}

/// One binary of the test kit.
fn testkit(binary: &str) -> Command {
    let mut cargo = prepared(&TESTKIT);
    cargo.args(["--test", binary]);
    cargo
}

/// The long run of the test of concurrency, with the release build.
pub(crate) fn histories(arguments: &[String]) -> Result<()> {
    let count = match arguments {
        [] => "1000000",
        [count] if count.parse::<u64>().is_ok() => count,
        _ => bail!("histories takes a number, and nothing else"),
    };
    let mut cargo = cargo(&["test", "--release", "--locked", "--package", "metaslot-models"]);
    cargo.args(["--test", "concurrency", "--", "--nocapture"]).env("METASLOT_HISTORIES", count);
    check(&mut cargo).map(|_| ())
}

/// OpenSSL's provider: lints, vectors, and the other providers as judges. It is not part of [`run`] because its library takes a minute
/// or two to build.
pub(crate) fn openssl() -> Result<()> {
    let packages = ["--package=metaslot-openssl-wrapper", "--package=metaslot-openssl"];
    let feature = ["--features", "metaslot-openssl/library", "--locked"];
    let mut lints = cargo(&["clippy", "--all-targets"]);
    check(lints.args(packages).args(feature).args(["--", "--deny", "warnings"]))?;
    all_pass(cargo(&["test", "--no-fail-fast"]).args(packages).args(feature))?;
    let page = ["--package=metaslot-module", "--features=openssl", "--test=mechanisms"];
    all_pass(cargo(&["test", "--locked"]).args(page))
}

/// All of the suite that [`run`] runs in part, with the release build.
pub(crate) fn suites() -> Result<()> {
    packages::install(&[FOR_TESTS])?;
    suites::prepare()?;
    build()?;
    let tests = ["test", "--locked", "--package", "metaslot-testkit", "--test", "suites"];
    let mut cargo = prepared(&tests);
    cargo.args(["pkcs11_check", "--", "--nocapture"]).env("METASLOT_SUITES_WHOLE", "1");
    all_pass(&mut cargo)
}

/// A `cargo` whose tests know where the release build is.
fn prepared(arguments: &[&str]) -> Command {
    let mut cargo = cargo(arguments);
    prepare(&mut cargo);
    cargo
}

/// Tells tests where the release build is.
fn prepare(command: &mut Command) {
    command
        .env("METASLOT_MODULE", module())
        .env("METASLOT_COMMAND", self::command())
        .env("METASLOT_TEST_REPORT", clients_report())
        .env("METASLOT_TEST_PYTHON", target().join("venv/bin/python3"));
}

/// Where the clients' tests write what they did: client, check, outcome, seconds, reason.
fn clients_report() -> PathBuf {
    target().join("clients.tsv")
}

fn print_clients() {
    let Ok(text) = fs::read_to_string(clients_report()) else { return };
    let mut clients: BTreeMap<&str, [usize; 3]> = BTreeMap::new();
    let mut remarks = Vec::new();
    for line in text.lines() {
        let cells: Vec<&str> = line.split('\t').collect();
        let &[client, what, outcome, _, reason] = cells.as_slice() else { continue };
        let at = match outcome {
            "passed" => 0,
            "failed" => 1,
            _ => 2,
        };
        clients.entry(client).or_default()[at] += 1;
        if at > 0 {
            remarks.push(format!("  {client}, {what}: {outcome}: {reason}"));
        }
    }
    println!("\n{:<44} {:>7} {:>7} {:>9}", "client", "passed", "failed", "not run");
    for (client, [passed, failed, not_run]) in clients {
        println!("{client:<44} {passed:>7} {failed:>7} {not_run:>9}");
    }
    for remark in remarks {
        println!("{remark}");
    }
}

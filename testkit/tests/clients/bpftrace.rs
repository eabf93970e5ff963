// SPDX-License-Identifier: Apache-2.0
//! bpftrace with the scripts of `examples/bpftrace`, while a program signs. They see every program with the library, and
//! other tests run meanwhile.

use anyhow::{Context, Result, bail, ensure};
use metaslot_testkit::{TestToken, check, left_out, module_path};
use std::io::{BufRead, BufReader, Read};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdout, Command, Stdio};
use std::time::{Duration, Instant};

const CLIENT: &str = "bpftrace";
/// By then it traces, on any machine.
const PATIENCE: Duration = Duration::from_secs(60);
const NEEDS: &[&str] = &["bpftrace", "pkcs11-tool"];

/// Runs a script while `work` runs; what it printed.
fn traced(script: &str, argument: &str, work: impl FnOnce() -> Result<()>) -> Result<String> {
    let module = module_path().context("no module is built")?.canonicalize()?;
    let mut bpftrace = Command::new("bpftrace")
        .args(["-B", "line"])
        .arg(scripts().join(script))
        .arg(module)
        .arg(argument)
        .stdout(Stdio::piped())
        .spawn()
        .context("run bpftrace")?;
    let output = bpftrace.stdout.take().context("there is a pipe")?;
    let printed = printed(&mut BufReader::new(output), &bpftrace, work);
    drop(bpftrace.kill());
    drop(bpftrace.wait());
    printed
}

fn printed(
    output: &mut BufReader<ChildStdout>,
    bpftrace: &Child,
    work: impl FnOnce() -> Result<()>,
) -> Result<String> {
    let mut line = String::new();
    while !line.starts_with("Tracing.") {
        line.clear();
        if output.read_line(&mut line)? == 0 {
            bail!("bpftrace ended before it traced");
        }
    }
    wait_until_idle(bpftrace)?;
    let worked = work();
    // An interrupt ends it with what it has read, and not with what it has been told.
    wait_until_idle(bpftrace)?;
    let interrupt = Command::new("kill").args(["-INT", &bpftrace.id().to_string()]).status();
    ensure!(interrupt.is_ok_and(|status| status.success()), "bpftrace cannot be interrupted");
    let mut rest = String::new();
    output.read_to_string(&mut rest)?;
    worked.map(|()| rest)
}

/// A script says that it traces before its other probes are there. They are when the program waits for what they tell, and all that
/// they told is read when it waits again: a thread that is to run has no place to wait.
fn wait_until_idle(bpftrace: &Child) -> Result<()> {
    let (file, start) = (format!("/proc/{}/wchan", bpftrace.id()), Instant::now());
    while !std::fs::read_to_string(&file)?.contains("poll") {
        ensure!(start.elapsed() < PATIENCE, "bpftrace does not begin to wait");
        std::thread::sleep(Duration::from_millis(5));
    }
    Ok(())
}

fn scripts() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../examples/bpftrace")
}

/// Whether the kernel and our rights allow any tracing.
fn is_possible() -> bool {
    let mut nothing = Command::new("bpftrace");
    nothing.args(["-e", "BEGIN { exit(); }"]).stdout(Stdio::null()).stderr(Stdio::null());
    nothing.status().is_ok_and(|status| status.success())
}

fn traces(what: &str, work: impl FnOnce(&mut TestToken) -> Result<()>) {
    if metaslot_testkit::find_program("bpftrace").is_some() && !is_possible() {
        return left_out(CLIENT, what, "this kernel or user may not trace");
    }
    check(CLIENT, what, NEEDS, work);
}

/// Three signatures with a key of the token.
fn sign(token: &TestToken) -> Result<()> {
    token.write("message", "what is signed")?;
    for _ in 0..3 {
        token
            .pkcs11_user()
            .line("--sign --id 01 -m SHA256-RSA-PKCS --input-file message")
            .args(["--output-file", "signature"])
            .run()?;
    }
    Ok(())
}

#[test]
fn latencies_are_told_by_mechanism_and_provider() {
    traces("latencies", |token| {
        token.key_pair("rsa:2048", "01", "rsa")?;
        let printed = traced("latency.bt", "", || sign(token))?;
        let rows = "@nanoseconds[CKM_SHA256_RSA_PKCS, ";
        let histograms = printed.split("\n\n").filter(|part| part.trim_start().starts_with(rows));
        let counts = histograms.flat_map(str::lines).filter_map(|line| line.split_once(')'));
        let counts =
            counts.filter_map(|(_, line)| line.split('|').next()?.trim().parse::<u32>().ok());
        let all: u32 = counts.sum();
        ensure!(all >= 3, "{all} signatures:\n{printed}");
        Ok(())
    });
}

#[test]
fn slow_operations_are_told_with_who_waited() {
    traces("slow operations", |token| {
        token.key_pair("rsa:2048", "01", "rsa")?;
        let printed = traced("slow.bt", "0", || sign(token))?;
        let told = |line: &&str| {
            line.starts_with("pkcs11-tool ")
                && line.contains(": CKM_SHA256_RSA_PKCS by ")
                && line.contains(", 14 bytes, ")
        };
        ensure!(printed.lines().filter(told).count() >= 3, "{printed}");
        Ok(())
    });
}

#[test]
fn routes_are_told_where_there_is_a_choice() {
    let cpu = std::fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    if !cpu.contains("avx512ifma") {
        return left_out(CLIENT, "routes", "this processor has one provider for RSA");
    }
    traces("routes", |token| {
        token.key_pair("rsa:2048", "01", "rsa")?;
        let cost = |provider, time| {
            format!("{provider}\tCKM_SHA256_RSA_PKCS\tsign\t2048\t{time}\t0\t{time}\n")
        };
        let costs = [cost("awslc", 1_000), cost("lanes", 1_000_000)].concat();
        token.write("costs.tsv", format!("# metaslot costs 1\n{costs}"))?;
        let printed = traced("routes.bt", "", || sign(token))?;
        ensure!(printed.contains("@bytes[CKM_SHA256_RSA_PKCS, awslc]"), "{printed}");
        let first = "@not_the_first[CKM_SHA256_RSA_PKCS, lanes]: ";
        ensure!(printed.contains(first), "{printed}");
        Ok(())
    });
}

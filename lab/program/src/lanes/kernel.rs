// SPDX-License-Identifier: Apache-2.0
//! A kernel beside the plain library, in turns.

use super::plan::Plan;
use super::report::{FilledResult, KernelResult, PortResult};
use super::rows::Row;
use crate::child::Child;
use crate::clock::Watch;
use crate::kernels::{Claim, End, Ready, Sample};
use crate::{Failure, Result};
use serde::Deserialize;
use std::fmt::Write;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

/// The program that has the kernels.
const PROGRAM: &str = "metaslot-kernels";

/// The program that times the kernels: the one that was named, or the one beside this program.
///
/// # Errors
/// There is none.
pub(crate) fn program(named: Option<&Path>) -> Result<PathBuf> {
    if let Some(path) = named {
        return Ok(path.to_path_buf());
    }
    let beside = std::env::current_exe()
        .ok()
        .and_then(|program| Some(program.parent()?.join(PROGRAM)))
        .filter(|path| path.exists());
    beside.ok_or_else(|| {
        Failure::new(format!("no {PROGRAM} beside this program"))
            .hint("name it with --kernels, or leave the kernels out with --no-kernels")
    })
}

/// OpenSSL in the load, asked for its time and its judgement.
#[derive(Debug)]
pub(crate) struct Judge {
    child: Child,
    pub(crate) version: String,
}

#[derive(Deserialize)]
struct Version {
    openssl: String,
}

#[derive(Deserialize)]
struct Time {
    ns: f64,
}

#[derive(Deserialize)]
struct Verdict {
    good: bool,
}

impl Judge {
    /// Starts the load in that part.
    ///
    /// # Errors
    /// There is no OpenSSL.
    pub(crate) fn start(load: &Path) -> Result<Self> {
        let mut command = Command::new(load);
        command.arg("--openssl");
        let mut child = Child::start(command)?;
        let Version { openssl: version } = child.answer()?;
        Ok(Self { child, version })
    }

    fn time(&mut self, curve: &str, what: &str, plan: &Plan) -> Result<f64> {
        let length = plan.sample.as_micros();
        Ok(self.child.ask::<Time>(format_args!("time {curve} {what} {length}"))?.ns)
    }

    fn verify(&mut self, claim: &Claim) -> Result<()> {
        let Claim { curve, point, digest, signature } = claim;
        let (point, digest, signature) = (hex(point), hex(digest), hex(signature));
        let line = format!("claim {curve} {point} {digest} {signature}");
        if self.child.ask::<Verdict>(line)?.good {
            return Ok(());
        }
        Err(Failure::new("wrong result: a signature of the kernel does not verify with OpenSSL"))
    }
}

/// Measures one row.
///
/// # Errors
/// A result is wrong, or the program fails.
pub(crate) fn measure(
    row: &Row,
    program: &Path,
    mut judge: Option<&mut Judge>,
    plan: &Plan,
    progress: impl Fn(usize),
    counting: impl Fn(),
) -> Result<KernelResult> {
    let watch = Watch::start();
    let judged = judge.as_ref().map_or(Duration::ZERO, |judge| judge.child.cpu());
    let mut command = Command::new(program);
    command.arg(row.name).arg(plan.sample.as_micros().to_string()).args(&plan.without);
    let mut child = Child::start(command)?;
    let ready: Ready = child.answer()?;
    let mut result = empty(&ready, row, judge.as_deref());
    if !ready.available {
        return Ok(result);
    }
    for round in 0..plan.rounds {
        progress(round);
        note(&mut result, child.ask("round")?);
        if let (Some((curve, what)), Some(judge)) = (row.openssl, judge.as_deref_mut()) {
            result.raw_ns.push(judge.time(curve, what, plan)?);
        }
    }
    counting();
    let end: End = child.ask("end")?;
    for (port, instructions) in result.ports.iter_mut().zip(&end.instructions) {
        port.instructions = *instructions;
    }
    result.source = end.source;
    if let Some(judge) = judge.as_deref_mut() {
        end.claims.iter().try_for_each(|claim| judge.verify(claim))?;
    }
    let judging = judge.map_or(judged, |judge| judge.child.cpu());
    result.foreign_cpu = watch.foreign_besides(child.cpu() + judging - judged);
    child.end()?;
    Ok(result)
}

fn empty(ready: &Ready, row: &Row, judge: Option<&Judge>) -> KernelResult {
    let library = match (row.openssl, judge) {
        (None, _) => "AWS-LC",
        (Some(_), Some(judge)) => &judge.version,
        (Some(_), None) => "",
    };
    let port = |name: &String| PortResult { name: name.clone(), instructions: 0.0, ns: Vec::new() };
    let lanes = |filled: &usize| FilledResult { filled: *filled, ns: Vec::new() };
    KernelResult {
        available: ready.available,
        library: library.to_owned(),
        raw_ns: Vec::new(),
        lanes: ready.lanes.iter().map(lanes).collect(),
        ports: ready.ports.iter().map(port).collect(),
        source: String::new(),
        foreign_cpu: None,
    }
}

fn note(result: &mut KernelResult, sample: Sample) {
    result.raw_ns.extend(sample.raw);
    for (lanes, ns) in result.lanes.iter_mut().zip(sample.lanes) {
        lanes.ns.push(ns);
    }
    for (port, ns) in result.ports.iter_mut().zip(sample.ports) {
        port.ns.push(ns);
    }
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().fold(String::new(), |mut text, byte| {
        // Writing to a string does not fail.
        write!(text, "{byte:02x}").ok();
        text
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_become_digits() {
        assert_eq!(hex(&[0, 0x1f, 0xff]), "001fff");
    }

    #[test]
    fn a_program_that_is_missing_is_named_with_a_hint() {
        // The tests' directory holds no such program; named ones are taken as they are.
        assert!(program(None).is_err_and(|failure| failure.hint.is_some()));
        assert_eq!(program(Some(Path::new("/x"))).unwrap(), Path::new("/x"));
    }
}

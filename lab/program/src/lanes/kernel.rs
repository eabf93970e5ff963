// SPDX-License-Identifier: Apache-2.0
//! A kernel beside the plain library, in turns.

use super::plan::Plan;
use super::report::{Counted, FILLED, PORT, RAW};
use super::rows::Operation;
use crate::child::Child;
use crate::experiment::Measured;
use crate::kernels::{Claim, End, Ready, Sample};
use crate::meter::{Window, besides};
use crate::{Failure, Result};
use serde::Deserialize;
use std::fmt::Write;
use std::path::{Path, PathBuf};
use std::process::Command;

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

/// The program at one row.
#[derive(Debug)]
pub(super) struct Timer {
    child: Child,
    ready: Ready,
}

impl Timer {
    /// Starts it; the inner error says why there is nothing to time.
    ///
    /// # Errors
    /// The program fails.
    pub(super) fn start(
        row: &Operation,
        program: &Path,
        plan: &Plan,
    ) -> Result<std::result::Result<Self, String>> {
        let mut command = Command::new(program);
        command.arg(row.name).arg(plan.sample.as_micros().to_string()).args(&plan.without);
        let mut child = Child::start(command)?;
        let ready: Ready = child.answer()?;
        let absent = || "not on this processor".to_owned();
        Ok(if ready.available { Ok(Self { child, ready }) } else { Err(absent()) })
    }

    /// One round: the sample is an operation in full lanes, the others are counters.
    ///
    /// # Errors
    /// The program fails.
    pub(super) fn round(
        &mut self,
        row: &Operation,
        mut judge: Option<&mut Judge>,
        plan: &Plan,
        window: Window<'_>,
    ) -> Result<Measured> {
        let spent = |timer: &Self, judge: &Option<&mut Judge>| {
            let judge = judge.as_ref().map_or(std::time::Duration::ZERO, |judge| judge.child.cpu());
            (timer.child.cpu() + judge).as_secs_f64() * 1e9
        };
        let before = spent(self, &judge);
        let mut sample: Sample = self.child.ask("round")?;
        if let (Some((curve, what)), Some(judge)) = (row.openssl, judge.as_deref_mut()) {
            sample.raw = Some(judge.time(curve, what, plan)?);
        }
        let mut measured = window.close(1.0)?;
        besides(&mut measured, spent(self, &judge) - before);
        let full = sample.lanes.last().copied().unwrap_or_default();
        (measured.cpu_ns, measured.wall_ns) = (full, full);
        let filled = self.ready.lanes.iter().map(|filled| format!("{FILLED}{filled}"));
        let ports = self.ready.ports.iter().map(|port| format!("{PORT}{port}"));
        let figures = filled.zip(sample.lanes).chain(ports.zip(sample.ports));
        measured.counters.extend(figures);
        measured.counters.extend(sample.raw.map(|raw| (RAW.to_owned(), raw)));
        Ok(measured)
    }

    /// What its instructions are; its results were compared.
    ///
    /// # Errors
    /// A result is wrong.
    pub(super) fn end(mut self, row: &Operation, judge: Option<&mut Judge>) -> Result<Counted> {
        let End { instructions, source, claims } = self.child.ask("end")?;
        let library = match (row.openssl, &judge) {
            (None, _) => "AWS-LC".to_owned(),
            (Some(_), Some(judge)) => judge.version.clone(),
            (Some(_), None) => String::new(),
        };
        if let Some(judge) = judge {
            claims.iter().try_for_each(|claim| judge.verify(claim))?;
        }
        self.child.end()?;
        let ports = self.ready.ports.into_iter().zip(instructions).collect();
        Ok(Counted { library, source, ports })
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

// SPDX-License-Identifier: Apache-2.0
//! A program that answers each line with a line of JSON.

use crate::clock::cpu_of;
use crate::{Failure, Result};
use metaslot_ck::{CK_RV, Error};
use serde::Deserialize;
use serde::de::DeserializeOwned;
use std::fmt::Display;
use std::io::{BufRead, BufReader, Write};
use std::process::{Child as Process, ChildStdin, ChildStdout, Command, Stdio};
use std::time::Duration;

/// The running program; ended when this value is dropped.
#[derive(Debug)]
pub(crate) struct Child {
    name: String,
    process: Process,
    input: Option<ChildStdin>,
    output: BufReader<ChildStdout>,
}

/// What the program says instead of an answer.
#[derive(Deserialize)]
struct Complaint {
    error: String,
}

impl Child {
    /// Starts it.
    ///
    /// # Errors
    /// It cannot be started.
    pub(crate) fn start(mut command: Command) -> Result<Self> {
        let name = command.get_program().to_string_lossy().into_owned();
        command.stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut process = command.spawn().map_err(|error| Failure::from(error).context(&name))?;
        let (Some(input), Some(output)) = (process.stdin.take(), process.stdout.take()) else {
            return Err(Failure::new(format!("{name}: no pipes")));
        };
        Ok(Self { name, process, input: Some(input), output: BufReader::new(output) })
    }

    /// Its process, by which its counters are found.
    pub(crate) fn pid(&self) -> u32 {
        self.process.id()
    }

    /// CPU time that it has used so far.
    pub(crate) fn cpu(&self) -> Duration {
        cpu_of(self.pid())
    }

    /// Says a line and takes the answer.
    ///
    /// # Errors
    /// As [`Self::answer`].
    pub(crate) fn ask<T: DeserializeOwned>(&mut self, line: impl Display) -> Result<T> {
        if let Some(input) = &mut self.input {
            // A program that has ended has said why, which is read below.
            writeln!(input, "{line}").and_then(|()| input.flush()).ok();
        }
        self.answer()
    }

    /// Takes a line.
    ///
    /// # Errors
    /// It complains, has ended, or says what cannot be read.
    pub(crate) fn answer<T: DeserializeOwned>(&mut self) -> Result<T> {
        let mut line = String::new();
        self.output.read_line(&mut line)?;
        if line.is_empty() {
            return Err(Failure::new(format!("{} ended early", self.name)));
        }
        if let Ok(Complaint { error }) = serde_json::from_str(&line) {
            return Err(Failure::new(named(&error)));
        }
        serde_json::from_str(&line).map_err(|error| Failure::from(error).context(&self.name))
    }

    /// Lets it end by itself.
    ///
    /// # Errors
    /// It fails in the end.
    pub(crate) fn end(mut self) -> Result<()> {
        self.input = None;
        let status = self.process.wait()?;
        if status.success() {
            return Ok(());
        }
        Err(self.answer::<()>().err().unwrap_or_else(|| Failure::new(format!("{status}"))))
    }
}

/// A message whose last word is a return code in digits, with the code's name.
pub(crate) fn named(message: &str) -> String {
    let found = message.rsplit_once(": 0x").and_then(|(what, digits)| {
        let code = CK_RV::from_str_radix(digits, 16).ok()?;
        Some(format!("{what}: {}", Error::new(code)))
    });
    found.unwrap_or_else(|| message.to_owned())
}

impl Drop for Child {
    fn drop(&mut self) {
        // Anyone who has ended already needs no signal.
        self.process.kill().ok();
        self.process.wait().ok();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shell(script: &str) -> Child {
        let mut command = Command::new("sh");
        command.args(["-c", script]);
        Child::start(command).unwrap()
    }

    #[test]
    fn each_line_is_answered_by_a_line() {
        let mut child = shell("while read a; do echo \"[$a, 1]\"; done");
        assert_eq!(child.ask::<(u32, u32)>(7).unwrap(), (7, 1));
        assert_eq!(child.ask::<(u32, u32)>(8).unwrap(), (8, 1));
        child.end().unwrap();
    }

    #[test]
    fn complaints_and_ends_are_failures() {
        let failure = shell("echo '{\"error\": \"C_Sign: 0x5\"}'").ask::<u32>("x").unwrap_err();
        assert_eq!(failure.message, "C_Sign: CKR_GENERAL_ERROR");
        let failure = shell("exit 3").answer::<u32>().unwrap_err();
        assert_eq!(failure.message, "sh ended early");
        assert!(shell("exit 3").end().is_err());
    }
}

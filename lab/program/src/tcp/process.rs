// SPDX-License-Identifier: Apache-2.0
//! A process of the generator, seen from the lab: it is killed when it is no longer needed, and by the
//! kernel when the lab itself is killed.

use super::control::{Answer, Order};
use super::part::Part;
use crate::role::Role;
use crate::{Failure, Result};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use std::io::{BufRead, BufReader, Write};
use std::os::unix::process::CommandExt;
use std::process::{Child, ChildStdin, ChildStdout, Stdio};

/// An answer that takes longer than this does not come.
const PATIENCE: Timespec = Timespec { tv_sec: 60, tv_nsec: 0 };

/// One process.
#[derive(Debug)]
pub(super) struct Process {
    name: &'static str,
    child: Child,
    input: ChildStdin,
    output: BufReader<ChildStdout>,
}

impl Process {
    /// Starts it, away from the terminal's ^C: that is the lab's to notice.
    pub(super) fn start(name: &'static str, part: Part) -> Result<Self> {
        let mut command = Role::Tcp(part).command()?;
        command.process_group(0).stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut child =
            command.spawn().map_err(|error| Failure::new(format!("{name}: {error}")))?;
        match (child.stdin.take(), child.stdout.take()) {
            (Some(input), Some(output)) => {
                Ok(Self { name, child, input, output: BufReader::new(output) })
            }
            _ => Err(Failure::new(format!("{name}: no pipes"))),
        }
    }

    pub(super) fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Gives an order and waits for its answer.
    pub(super) fn ask(&mut self, order: &Order) -> Result<Answer> {
        let mut line = serde_json::to_vec(order)?;
        line.push(b'\n');
        // A process that has ended has said why, in place of an answer.
        self.input.write_all(&line).ok();
        self.answer()
    }

    /// Waits for an answer.
    pub(super) fn answer(&mut self) -> Result<Answer> {
        let mut line = String::new();
        if self.output.buffer().is_empty() && !self.is_ready()? {
            return Err(self.failure("gave no answer within 60 s"));
        }
        match self.output.read_line(&mut line) {
            Ok(0) | Err(_) => Err(self.failure("ended early")),
            Ok(_) => match serde_json::from_str(&line)? {
                Answer::Failed { message, hint } => Err(Failure { hint, ..self.failure(&message) }),
                answer => Ok(answer),
            },
        }
    }

    /// Gives an order that is only to be done.
    pub(super) fn tell(&mut self, order: &Order) -> Result<()> {
        let answer = self.ask(order)?;
        self.expect_done(&answer)
    }

    pub(super) fn expect_done(&self, answer: &Answer) -> Result<()> {
        match answer {
            Answer::Done => Ok(()),
            other => Err(self.failure(&format!("answered {other:?}"))),
        }
    }

    pub(super) fn failure(&self, what: &str) -> Failure {
        Failure::new(format!("the {}: {what}", self.name))
    }

    fn is_ready(&self) -> Result<bool> {
        let mut waited = [PollFd::new(self.output.get_ref(), PollFlags::IN)];
        loop {
            match poll(&mut waited, Some(&PATIENCE)) {
                Ok(count) => return Ok(count > 0),
                // A signal: an answer that is under way is still wanted.
                Err(rustix::io::Errno::INTR) => {}
                Err(error) => return Err(self.failure(&error.to_string())),
            }
        }
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        self.child.kill().ok();
        self.child.wait().ok();
    }
}

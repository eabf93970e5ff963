// SPDX-License-Identifier: Apache-2.0
//! A command that waits before its first instruction, so that everything of it is seen and counted.

use crate::interrupt::Interrupt;
use crate::role::Role;
use crate::{Failure, Result, probe};
use rustix::process::{Pid, Signal, WaitOptions};
use std::ffi::OsString;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus};
use std::time::{Duration, Instant};

/// Between two looks whether the command has ended.
const SHORTEST: Duration = Duration::from_micros(500);
const LONGEST: Duration = Duration::from_millis(16);
/// How long a command may take to end by itself when the lab is interrupted.
const PATIENCE: Duration = Duration::from_millis(500);

/// A process that has not begun yet. Dropped, it never will.
#[derive(Debug)]
pub(super) struct Waiting(Child);

/// Where the program is.
///
/// # Errors
/// Nowhere.
pub(super) fn program(command: &[OsString]) -> Result<PathBuf> {
    let name = command.first().ok_or_else(|| Failure::new("no command is named"))?;
    let path = Path::new(name);
    let found = if path.components().count() > 1 || path.is_absolute() {
        Some(path.to_owned()).filter(|path| path.is_file())
    } else {
        probe::find(&name.to_string_lossy())
    };
    found.ok_or_else(|| {
        Failure::new(format!("{}: there is no such program", path.display()))
            .hint("a command of the shell needs one: -- sh -c 'COMMANDS'")
    })
}

impl Waiting {
    /// Starts this program once more, which stops itself until [`Waiting::go`].
    ///
    /// # Errors
    /// The kernel's.
    pub(super) fn start(quiet: bool) -> Result<Self> {
        let mut command = Role::Launch.command()?;
        if quiet {
            // The result goes to standard output, and nothing else.
            command.stdout(std::io::stderr());
        }
        let waiting = Self(command.spawn()?);
        match rustix::process::waitpid(waiting.number(), WaitOptions::UNTRACED) {
            Ok(Some((_, status))) if status.stopped() => Ok(waiting),
            Ok(_) => Err(Failure::new("the command ended before it began")),
            Err(error) => Err(Failure::new(format!("the command cannot be started: {error}"))),
        }
    }

    pub(super) fn id(&self) -> u32 {
        self.0.id()
    }

    /// Lets it run, and waits for its end; when the lab is interrupted, that comes soon.
    ///
    /// # Errors
    /// The kernel's.
    pub(super) fn go(mut self, interrupt: &Interrupt) -> Result<ExitStatus> {
        self.tell(Signal::CONT);
        let (mut pause, mut interrupted): (_, Option<Instant>) = (SHORTEST, None);
        loop {
            if let Some(status) = self.0.try_wait()? {
                return Ok(status);
            }
            std::thread::sleep(pause);
            pause = (pause * 2).min(LONGEST);
            if interrupt.came() {
                // A terminal has told the command itself already.
                let since = interrupted.get_or_insert_with(Instant::now).elapsed();
                match since {
                    since if since > 6 * PATIENCE => self.tell(Signal::KILL),
                    since if since > PATIENCE => self.tell(Signal::TERM),
                    _ => {}
                }
            }
        }
    }

    fn tell(&self, signal: Signal) {
        if let Some(number) = self.number() {
            rustix::process::kill_process(number, signal).ok();
        }
    }

    fn number(&self) -> Option<Pid> {
        i32::try_from(self.0.id()).ok().and_then(Pid::from_raw)
    }
}

impl Drop for Waiting {
    fn drop(&mut self) {
        // Nothing to do for one that has ended.
        if matches!(self.0.try_wait(), Ok(None)) {
            self.0.kill().ok();
            self.0.wait().ok();
        }
    }
}

/// What the process that was started does: it ends with the one that has started it, waits, and becomes
/// the command.
///
/// # Errors
/// The command cannot be run.
pub(super) fn become_command(command: &[OsString]) -> Result<()> {
    let program = program(command)?;
    rustix::process::set_parent_process_death_signal(Some(Signal::KILL)).ok();
    rustix::process::kill_process(rustix::process::getpid(), Signal::STOP)
        .map_err(|error| Failure::new(format!("cannot wait: {error}")))?;
    let mut next = Command::new(&program);
    if let Some(name) = command.first() {
        next.arg0(name);
    }
    next.args(&command[1..]).env_remove(crate::role::VARIABLE);
    let error = next.exec();
    Err(Failure::file(&program, &error))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_program_that_is_not_there_is_named() {
        for name in ["no-such-program-here", "/no/such/program"] {
            let failure = program(&[OsString::from(name)]).unwrap_err();
            assert!(failure.message.contains(name) && failure.hint.is_some(), "{failure}");
        }
        assert!(program(&[OsString::from("sh")]).unwrap().is_absolute());
        program(&[]).unwrap_err();
    }
}

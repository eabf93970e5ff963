// SPDX-License-Identifier: Apache-2.0
//! This program, started again with another environment and a part to play.

use crate::{Failure, Result};
use rustix::process::{Signal, set_parent_process_death_signal};
use serde::{Deserialize, Serialize};
use std::path::PathBuf;
use std::process::Command;

/// The variable that names the part; absent in the process that the user started.
pub(crate) const VARIABLE: &str = "METASLOT_LAB_ROLE";

/// Who this process is.
#[derive(Clone, Debug, Deserialize, Serialize)]
pub(crate) enum Role {
    /// One cold start: load, initialise, find, report.
    ColdStart {
        /// The module to load.
        module: PathBuf,
    },
    /// Does what it is told through its standard input, on one token.
    Holder {
        /// The module to load.
        module: PathBuf,
        /// Make the token first.
        make: bool,
    },
    /// Creates and destroys objects until it is killed.
    Writer {
        /// The module to load.
        module: PathBuf,
        /// Names its objects.
        name: String,
        /// Where it says what it is about to do, and what was done.
        log: PathBuf,
    },
    /// Waits, and becomes the command that the arguments name.
    Launch,
    /// A process of the generator of TCP traffic.
    Tcp(crate::tcp::Part),
    /// One way to do the jobs of `lab speed`.
    Speed(crate::speed::Part),
    /// Opens a token after the kills, and compares it with the logs.
    Checker {
        /// The module to load.
        module: PathBuf,
        /// The directory of the writers' logs.
        logs: PathBuf,
    },
}

impl Role {
    /// The part that this process was started for.
    ///
    /// # Errors
    /// The variable was set by another program.
    pub(crate) fn of_this_process() -> Result<Option<Self>> {
        match std::env::var(VARIABLE) {
            Ok(text) => {
                let role = serde_json::from_str(&text).map_err(|error| {
                    Failure::new(format!("{VARIABLE} is not the lab's own: {error}"))
                        .hint(format!("unset {VARIABLE}"))
                })?;
                // Anyone who started this process waits for it, or has been killed.
                set_parent_process_death_signal(Some(Signal::KILL))
                    .map_err(std::io::Error::from)?;
                Ok(Some(role))
            }
            Err(_) => Ok(None),
        }
    }

    /// This program with the same arguments, to be started in that part.
    ///
    /// # Errors
    /// The program's own file is gone.
    pub(crate) fn command(&self) -> Result<Command> {
        let program = std::env::current_exe()?;
        let mut command = Command::new(program);
        command.args(std::env::args_os().skip(1));
        command.env(VARIABLE, serde_json::to_string(self)?);
        Ok(command)
    }
}

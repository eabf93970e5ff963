// SPDX-License-Identifier: Apache-2.0
//! This program, started again with another environment and a part to play.

use crate::{Failure, Result};
use serde::{Deserialize, Serialize};
use std::process::Command;

/// The variable that names the part; absent in the process that the user started.
const VARIABLE: &str = "METASLOT_LAB_ROLE";

/// Who this process is.
#[derive(Clone, Debug, Deserialize, Serialize)]
pub(crate) enum Role {
    /// The experiment itself, with the modules' configuration in its environment. The directory
    /// holds the tokens.
    Experiment(std::path::PathBuf),
    /// One cold start: load, initialise, find, report.
    ColdStart {
        /// The module to load.
        module: std::path::PathBuf,
        /// The label of a public object.
        label: String,
    },
    /// A writer that will be killed.
    Writer {
        /// The module to load.
        module: std::path::PathBuf,
        /// Names its objects.
        name: String,
        /// Where acknowledgements are appended.
        log: std::path::PathBuf,
    },
    /// Opens a token after a kill, and finds what was acknowledged.
    Checker {
        /// The module to load.
        module: std::path::PathBuf,
        /// The logs of the writers.
        logs: Vec<std::path::PathBuf>,
    },
}

impl Role {
    /// The part that this process was started for.
    ///
    /// # Errors
    /// The variable was set by somebody else.
    pub(crate) fn of_this_process() -> Result<Option<Self>> {
        match std::env::var(VARIABLE) {
            Ok(text) => Ok(Some(serde_json::from_str(&text).map_err(|error| {
                Failure::new(format!("{VARIABLE} is not the lab's own: {error}"))
                    .hint(format!("unset {VARIABLE}"))
            })?)),
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

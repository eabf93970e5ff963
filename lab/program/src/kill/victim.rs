// SPDX-License-Identifier: Apache-2.0
//! A writer's process, as the killer sees it. Each start has a name and a log of its own.

use crate::role::Role;
use crate::sandbox::Store;
use crate::{Failure, Result};
use std::io::Read;
use std::path::{Path, PathBuf};
use std::process::{Child, Stdio};
use std::time::{Duration, Instant};

/// How long a writer may need from its start to its first object.
const START: Duration = Duration::from_secs(90);

/// The process; it is killed when this value is dropped.
#[derive(Debug)]
pub(super) struct Victim {
    name: String,
    pub(super) log: PathBuf,
    child: Child,
    started: Instant,
    /// It has logged in.
    pub(super) ready: bool,
}

impl Victim {
    /// Starts a writer of this name.
    ///
    /// # Errors
    /// The process could not be started.
    pub(super) fn start(store: &Store, module: &Path, name: String) -> Result<Self> {
        let log = store.file(&format!("{name}.log"));
        let role =
            Role::Writer { module: module.to_path_buf(), name: name.clone(), log: log.clone() };
        let child = store.command(&role)?.stdin(Stdio::null()).stderr(Stdio::piped()).spawn()?;
        Ok(Self { name, log, child, started: Instant::now(), ready: false })
    }

    /// How long it took to open the token, when that is seen for the first time.
    ///
    /// # Errors
    /// It ended by itself, or does not open the token.
    pub(super) fn look(&mut self) -> Result<Option<Duration>> {
        if let Some(status) = self.child.try_wait()? {
            let mut words = String::new();
            if let Some(mut stderr) = self.child.stderr.take() {
                stderr.read_to_string(&mut words)?;
            }
            let (name, words) = (&self.name, words.trim());
            return Err(Failure::new(format!("{name} ended with {status}: {words}")));
        }
        if self.ready {
            return Ok(None);
        }
        let took = self.started.elapsed();
        // Its first line says that it has logged in.
        self.ready = std::fs::metadata(&self.log).is_ok_and(|data| data.len() > 0);
        if !self.ready && took > START {
            self.end()?;
            let (name, seconds) = (&self.name, START.as_secs());
            return Err(Failure::new(format!("{name} did not open the token in {seconds} s")));
        }
        Ok(self.ready.then_some(took))
    }

    /// Kills it, if it still lives, and waits.
    ///
    /// # Errors
    /// The kernel's.
    pub(super) fn end(&mut self) -> Result<()> {
        self.child.kill()?;
        self.child.wait()?;
        Ok(())
    }
}

impl Drop for Victim {
    fn drop(&mut self) {
        self.end().ok();
    }
}

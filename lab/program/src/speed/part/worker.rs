// SPDX-License-Identifier: Apache-2.0
//! A process that does jobs, as the lab sees it.

use super::job::Work;
use super::request::{Listed, Request};
use super::serving::Part;
use crate::Result;
use crate::child::Child;
use crate::meter::Done;
use crate::role::Role;
use crate::sandbox::Store;

use std::time::Duration;

/// A process that does jobs.
#[derive(Debug)]
pub(crate) struct Worker {
    pub(super) child: Child,
    /// What it says of itself.
    pub(crate) name: String,
}

impl Worker {
    /// Starts it, with the configuration of a store.
    ///
    /// # Errors
    /// It cannot be started, or the module makes no token.
    pub(crate) fn start(part: Part, store: &Store) -> Result<Self> {
        let mut child = Child::start(store.command(&Role::Speed(part))?)?;
        let name = child.answer()?;
        Ok(Self { child, name })
    }

    /// Makes ready for a job, on so many threads. What it gives, where all must get the same.
    ///
    /// # Errors
    /// What the module answers.
    pub(crate) fn prepare(
        &mut self,
        name: &str,
        work: &Work,
        threads: usize,
    ) -> Result<Option<Vec<u8>>> {
        self.ask(&Request::Prepare { name: name.to_owned(), work: work.clone(), threads })
    }

    /// Does a job for so long.
    ///
    /// # Errors
    /// A call failed, or a result is wrong.
    pub(crate) fn run(&mut self, name: &str, length: Duration) -> Result<Done> {
        self.ask(&Request::Run { name: name.to_owned(), seconds: length.as_secs_f64() })
    }

    /// What the token can do.
    ///
    /// # Errors
    /// What the module answers.
    pub(crate) fn mechanisms(&mut self) -> Result<Vec<Listed>> {
        self.ask(&Request::Mechanisms)
    }

    pub(super) fn ask<T: serde::de::DeserializeOwned>(&mut self, request: &Request) -> Result<T> {
        let line = serde_json::to_string(request)?;
        self.child.ask(line)
    }
}

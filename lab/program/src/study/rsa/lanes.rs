// SPDX-License-Identifier: Apache-2.0
//! Eight operations side by side, by the program that has the kernels.

use super::super::bench::Job;
use super::versions::SIZES;
use crate::child::Child;
use crate::kernels::{End, Ready, Sample};
use crate::lanes::program;
use crate::{Failure, Result};
use std::path::PathBuf;
use std::process::Command;

/// How long each number of filled lanes is timed, in microseconds.
const LENGTH: &str = "1000";

/// The program, and that this processor has the instructions.
pub(super) struct Lanes(PathBuf);

impl Lanes {
    /// Looks for both.
    ///
    /// # Errors
    /// One of them is not there.
    pub(super) fn find() -> Result<Self> {
        let lanes = Self(program(None)?);
        lanes.start(SIZES[0]).map(|_| lanes)
    }

    /// Lets the program compare its results with those of AWS-LC.
    ///
    /// # Errors
    /// They differ.
    pub(super) fn check(&self) -> Result<()> {
        for bits in SIZES {
            let mut child = self.start(bits)?;
            child.ask::<Sample>("round")?;
            child.ask::<End>("end")?;
            child.end()?;
        }
        Ok(())
    }

    /// A sample of full lanes.
    ///
    /// # Errors
    /// The program does not start.
    pub(super) fn job(&self, bits: usize) -> Result<Job> {
        let mut child = self.start(bits)?;
        Ok(Job::there(move || {
            let sample: Sample = child.ask("round")?;
            sample.lanes.last().copied().ok_or_else(|| Failure::new("no lanes were timed"))
        }))
    }

    fn start(&self, bits: usize) -> Result<Child> {
        let mut command = Command::new(&self.0);
        command.arg(format!("rsa{bits}-sign")).arg(LENGTH);
        let mut child = Child::start(command)?;
        if child.answer::<Ready>()?.available {
            return Ok(child);
        }
        Err(Failure::new("this processor has no AVX-512 IFMA"))
    }
}

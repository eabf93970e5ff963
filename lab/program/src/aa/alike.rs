// SPDX-License-Identifier: Apache-2.0
//! Any scenario, with two arms that do the same.

use crate::Result;
use crate::experiment::{Factor, Measured, Run};
use crate::meter::Meter;
use crate::scenario::{Head, Scenario};
use metaslot_perf::Target;
use std::time::Duration;

/// The scenario, and which of its arms both arms are.
pub(super) struct Alike {
    inner: Box<dyn Scenario>,
    arm: String,
}

impl Alike {
    pub(super) fn of(inner: Box<dyn Scenario>) -> Self {
        let arm = inner.arms().into_iter().next().unwrap_or_default();
        Self { inner, arm }
    }
}

impl Scenario for Alike {
    fn head(&self) -> Head {
        Head { name: "aa", ..self.inner.head() }
    }

    fn factors(&self) -> Vec<Factor> {
        self.inner.factors()
    }

    fn arms(&self) -> Vec<String> {
        vec!["a".to_owned(), "again".to_owned()]
    }

    fn seconds(&self) -> f64 {
        10.0
    }

    fn skip(&self, cell: &str) -> Option<String> {
        self.inner.skip(cell)
    }

    fn warm(&mut self, cell: &str, _arm: &str) -> Result<Duration> {
        self.inner.warm(cell, &self.arm)
    }

    fn afresh(&mut self) -> Result<()> {
        self.inner.afresh()
    }

    fn account(&self) -> Target {
        self.inner.account()
    }

    fn sample(&mut self, run: &Run, meter: &Meter) -> Result<Measured> {
        self.inner.sample(&Run { arm: self.arm.clone(), ..run.clone() }, meter)
    }
}

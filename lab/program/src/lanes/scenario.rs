// SPDX-License-Identifier: Apache-2.0
//! The kernels and the load as a scenario: a sample is a round of a kernel, or a window of the load.

use super::compile;
use super::door::{Asked, Load, asked};
use super::kernel::{Judge, Timer, program};
use super::options::Options;
use super::plan::Plan;
use super::report::{COUNTED, Counted, KERNEL, OPERATION, WHAT, WITH, WITHOUT};
use super::rows::Operation;
use crate::experiment::{Factor, Measured, Run, level};
use crate::machine::library;
use crate::meter::{Account, Meter};
use crate::progress::Progress;
use crate::sandbox::Sandbox;
use crate::scenario::{Head, Scenario};
use crate::token::own_module;
use crate::{Failure, Result};
use std::collections::BTreeMap;
use std::path::Path;
use std::time::Duration;

/// All processes of a run; each waits for its turn.
pub(super) struct Lanes {
    plan: Plan,
    /// The kernels are measured by themselves, too.
    kernels: bool,
    asked: Vec<Asked>,
    benches: Vec<Bench>,
    judge: Option<Judge>,
    settings: BTreeMap<String, String>,
    /// Goes away after those who work in it.
    _place: Sandbox,
}

/// What there is of one operation; or why not.
struct Bench {
    row: Operation,
    kernel: Part<Timer>,
    with: Part<Load>,
    without: Part<Load>,
}

type Part<T> = std::result::Result<T, String>;

impl Lanes {
    /// Compiles the load, and starts everything.
    ///
    /// # Errors
    /// A program is missing or fails.
    pub(super) fn new(options: &Options, rows: Vec<Operation>, plan: Plan) -> Result<Self> {
        let progress = Progress::new();
        progress.say("compiling the load");
        let kernels = (!options.no_kernels).then(|| program(options.kernels.as_deref()));
        let kernels = kernels.transpose()?;
        let module = (!options.no_module).then(|| own_module(options.token.module.as_deref()));
        let module = module.transpose()?.map(std::path::absolute).transpose()?;
        let place = Sandbox::guarded(options.token.dir.as_deref(), options.token.keep)?;
        let judged = kernels.is_some() && rows.iter().any(|row| row.openssl.is_some());
        let load = match (&module, judged) {
            (Some(_), _) => Some(compile::load(&place)?),
            // Without a compiler there is nothing to compare binary curves with, which the table shows.
            (None, true) => compile::load(&place).ok(),
            (None, false) => None,
        };
        let judge = load.as_deref().map(Judge::start).transpose()?;
        let mut settings = BTreeMap::from([
            ("without".to_owned(), plan.without.join(", ")),
            ("sample, ms".to_owned(), milliseconds(plan.sample)),
            ("window, ms".to_owned(), milliseconds(plan.window)),
        ]);
        settings.retain(|_, value| !value.is_empty());
        settings.extend(judge.as_ref().map(|judge| ("openssl".to_owned(), judge.version.clone())));
        if let Some(module) = &module {
            settings.insert("module".to_owned(), library(module)?);
        }
        let mut benches = Vec::new();
        for row in rows {
            progress.say(format_args!("starting {}", row.name));
            let tools = [load.as_deref(), module.as_deref()];
            let bench = Bench::start(row, kernels.as_deref(), tools, &place, &plan);
            benches.push(bench.map_err(|failure| failure.context(row.name))?);
        }
        let asked = if module.is_some() { asked(&plan) } else { Vec::new() };
        let kernels = kernels.is_some();
        Ok(Self { plan, kernels, asked, benches, judge, settings, _place: place })
    }

    fn at(&self, cell: &str) -> Option<usize> {
        let name = level(cell, OPERATION)?;
        self.benches.iter().position(|bench| bench.row.name == name)
    }
}

fn milliseconds(length: Duration) -> String {
    (length.as_secs_f64() * 1e3).to_string()
}

impl Bench {
    fn start(
        row: Operation,
        kernels: Option<&Path>,
        [load, module]: [Option<&Path>; 2],
        place: &Sandbox,
        plan: &Plan,
    ) -> Result<Self> {
        let left_out = || "left out".to_owned();
        let kernel = kernels.map(|program| Timer::start(&row, program, plan));
        let (mut with, mut without) = (Err(left_out()), Err(left_out()));
        if let (Some(load), Some(module)) = (load, module) {
            with = Load::with(&row, [load, module], place, plan)?;
            // Some operations are the lanes' alone; then the load fails at making a key.
            without = Load::without(&row, [load, module], place)
                .unwrap_or_else(|failure| Err(failure.message));
        }
        Ok(Self {
            kernel: kernel.transpose()?.unwrap_or_else(|| Err(left_out())),
            row,
            with,
            without,
        })
    }
}

impl Scenario for Lanes {
    fn head(&self) -> Head {
        Head {
            name: "lanes",
            unit: "operation",
            cpu: "of the kernel's thread, or of the load's whole process, by their own clocks"
                .to_owned(),
            settings: self.settings.clone(),
        }
    }

    fn factors(&self) -> Vec<Factor> {
        let kernel = self.kernels.then(|| KERNEL.to_owned());
        let what = kernel.into_iter().chain(self.asked.iter().map(Asked::level));
        vec![
            Factor::new(OPERATION, self.benches.iter().map(|bench| bench.row.name)),
            Factor::new(WHAT, what),
        ]
    }

    fn arms(&self) -> Vec<String> {
        vec![WITH.to_owned(), WITHOUT.to_owned()]
    }

    fn skip(&self, cell: &str) -> Option<String> {
        let bench = &self.benches[self.at(cell)?];
        match level(cell, WHAT) {
            Some(KERNEL) => bench.kernel.as_ref().err().cloned(),
            _ => bench.with.as_ref().err().cloned(),
        }
    }

    fn skip_arm(&self, cell: &str, arm: &str) -> Option<String> {
        let bench = &self.benches[self.at(cell)?];
        match (level(cell, WHAT), arm) {
            (Some(KERNEL), WITHOUT) => Some("a round has the plain library, too".to_owned()),
            (_, WITHOUT) => bench.without.as_ref().err().cloned(),
            _ => None,
        }
    }

    /// A window and most of the time that its results may take to be checked; a kernel's round has ten parts.
    fn expected(&self, cell: &str, _arm: &str) -> Duration {
        match level(cell, WHAT) {
            Some(KERNEL) => self.plan.sample * 10,
            _ => self.plan.window + self.plan.checks.mul_f64(0.75),
        }
    }

    fn sample(&mut self, run: &Run, meter: &Meter) -> Result<Measured> {
        let absent = || Failure::new("there is no such cell");
        let at = self.at(&run.cell).ok_or_else(absent)?;
        let (bench, what) = (&mut self.benches[at], run.level(WHAT).unwrap_or_default());
        let window = meter.open(Account::Process)?;
        if what == KERNEL {
            let timer = bench.kernel.as_mut().map_err(|_| absent())?;
            return timer.round(&bench.row, self.judge.as_mut(), &self.plan, window);
        }
        let asked = self.asked.iter().find(|asked| asked.level() == what).ok_or_else(absent)?;
        let load = if run.arm == WITH { &mut bench.with } else { &mut bench.without };
        load.as_mut().map_err(|_| absent())?.window(&bench.row, asked, &self.plan, window)
    }

    fn afterwards(&self) -> String {
        match self.benches.iter().filter(|bench| bench.kernel.is_ok()).count() {
            0 => String::new(),
            1 => "the instructions of a kernel are counted, step by step".to_owned(),
            count => format!("the instructions of {count} kernels are counted, step by step"),
        }
    }

    /// Counts the kernels' instructions, and has their results judged.
    fn files(&mut self) -> Result<Vec<(String, Vec<u8>)>> {
        let progress = Progress::new();
        let mut all: Vec<(String, Counted)> = Vec::new();
        for bench in std::mem::take(&mut self.benches) {
            let name = bench.row.name;
            if let Ok(timer) = bench.kernel {
                progress.say(format_args!("counting instructions: {name}"));
                let counted = timer.end(&bench.row, self.judge.as_mut());
                all.push((name.to_owned(), counted.map_err(|failure| failure.context(name))?));
            }
            for load in bench.with.into_iter().chain(bench.without) {
                load.end().map_err(|failure| failure.context(name))?;
            }
        }
        Ok(vec![(COUNTED.to_owned(), serde_json::to_vec_pretty(&all)?)])
    }
}

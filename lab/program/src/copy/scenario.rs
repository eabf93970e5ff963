// SPDX-License-Identifier: Apache-2.0
//! `lab copy` as a scenario: the kernels are the arms, everything else is a factor.

use super::bench::Bench;
use super::words::{Cell, Consumer, PageSize, State, Word, shown};
use super::{Options, first, other};
use crate::experiment::{Experiment, Factor, Measured, Run};
use crate::meter::{Account, Meter};
use crate::probe;
use crate::scenario::{Head, Scenario};
use crate::{Failure, Result};
use clap::ValueEnum;
use metaslot_studies::copy::Kernel;
use std::collections::BTreeMap;
use std::time::{Duration, Instant};

/// Without options: what a look at a table needs.
const SIZES: [usize; 6] = [1 << 10, 4 << 10, 16 << 10, 128 << 10, 1 << 20, 8 << 20];
/// What `--full` has besides.
const LARGE: usize = 64 << 20;

/// The scenario.
#[derive(Debug)]
pub(super) struct Copies {
    states: Vec<State>,
    pages: Vec<PageSize>,
    consumers: Vec<Consumer>,
    sizes: Vec<usize>,
    kernels: Vec<Kernel>,
    /// Some combinations are left out unless they are asked for.
    brief: bool,
    large_pages: bool,
    bench: Bench,
    /// Copies for a sample, by cell and arm.
    copies: BTreeMap<(String, &'static str), usize>,
    settings: BTreeMap<String, String>,
}

impl Copies {
    /// What the options ask for.
    ///
    /// # Errors
    /// A kernel has no such name, or the processor lacks its instructions.
    pub(super) fn new(options: &Options) -> Result<Self> {
        let all = |given: &[usize]| {
            let mut sizes = if given.is_empty() { SIZES.to_vec() } else { given.to_vec() };
            sizes.extend((given.is_empty() && options.full).then_some(LARGE));
            sizes.sort_unstable();
            sizes.dedup();
            sizes
        };
        let sizes = all(&options.sizes);
        let asked =
            options.states.is_empty() && options.pages.is_empty() && options.consumers.is_empty();
        let copies = Self {
            states: given(&options.states),
            pages: given(&options.pages),
            consumers: given(&options.consumers),
            kernels: kernels(&options.kernels)?,
            brief: asked && !options.full,
            large_pages: probe::figure(probe::large_pages, "kib").is_some(),
            bench: Bench::new(sizes.last().copied().unwrap_or(LARGE)),
            sizes,
            copies: BTreeMap::new(),
            settings: first::settings()?,
        };
        let all = crate::experiment::cells(&copies.factors());
        let skipped: Vec<String> = all.iter().filter_map(|cell| copies.skip(cell)).collect();
        match skipped.first() {
            Some(why) if skipped.len() == all.len() => {
                let first = copies.settings.get("first touch").map_or("", String::as_str);
                Err(Failure::new(format!("nothing of this can be measured here: {why}"))
                    .hint(format!("first touch: {first}")))
            }
            _ => Ok(copies),
        }
    }

    fn kernel(&self, arm: &str) -> Result<Kernel> {
        let kernel = self.kernels.iter().find(|kernel| kernel.name() == arm);
        kernel.copied().ok_or_else(|| Failure::new("the plan has a kernel that is not there"))
    }
}

/// What was asked for, each once; everything there is if nothing was.
fn given<T: ValueEnum + PartialEq>(asked: &[T]) -> Vec<T> {
    let all = T::value_variants().iter();
    all.filter(|value| asked.is_empty() || asked.contains(value)).cloned().collect()
}

fn kernels(names: &[String]) -> Result<Vec<Kernel>> {
    if names.is_empty() {
        return Ok(Kernel::available().collect());
    }
    let all: Vec<&str> = Kernel::names().collect();
    let mut kernels: Vec<Kernel> = Vec::new();
    for name in names {
        if !all.contains(&name.as_str()) {
            return Err(Failure::new(format!("no kernel is called {name:?}"))
                .hint(format!("kernels are {}", all.join(", "))));
        }
        let kernel = Kernel::named(name).ok_or_else(|| {
            Failure::new(format!("this processor lacks the instructions of {name}"))
                .hint("without --kernels those are taken that it has")
        })?;
        if kernels.iter().all(|other| other.name() != kernel.name()) {
            kernels.push(kernel);
        }
    }
    Ok(kernels)
}

impl Scenario for Copies {
    fn head(&self) -> Head {
        let other = "; with another core reading, of both threads while they copy or read";
        Head {
            name: "copy",
            unit: "byte",
            cpu: Account::Thread.source() + other,
            settings: self.settings.clone(),
        }
    }

    fn factors(&self) -> Vec<Factor> {
        vec![
            Factor::new("state", self.states.iter().map(|state| state.word())),
            Factor::new("pages", self.pages.iter().map(|pages| pages.word())),
            Factor::new("consumer", self.consumers.iter().map(|consumer| consumer.word())),
            Factor::new("size", self.sizes.iter().map(|size| shown(*size))),
        ]
    }

    fn arms(&self) -> Vec<String> {
        self.kernels.iter().map(|kernel| kernel.name().to_owned()).collect()
    }

    fn skip(&self, cell: &str) -> Option<String> {
        let Cell { state, pages, consumer, .. } = Cell::parse(cell)?;
        if state == State::Host {
            return Some(
                "the host supplies a page once: there is no second sample (see `first touch`)"
                    .to_owned(),
            );
        }
        if pages == PageSize::Large && !self.large_pages {
            return Some("large pages do not come when asked for: `lab probe` says why".to_owned());
        }
        if consumer == Consumer::Other && other::missing().is_some() {
            return other::missing();
        }
        let touched = matches!(state, State::Memory | State::Cached);
        let usual = consumer == Consumer::Nobody || (touched && pages == PageSize::Large);
        (self.brief && !usual)
            .then(|| "left out to be brief: --full has it, and so has naming it".to_owned())
    }

    fn warm(&mut self, cell: &str, arm: &str) -> Result<Duration> {
        let kernel = self.kernel(arm)?;
        let parsed = parse(cell)?;
        let copies = self.bench.calibrate(&parsed, kernel)?;
        self.copies.insert((cell.to_owned(), kernel.name()), copies);
        let began = Instant::now();
        self.bench.sample(&parsed, kernel, copies, &Meter::start())?;
        Ok(began.elapsed())
    }

    fn sample(&mut self, run: &Run, meter: &Meter) -> Result<Measured> {
        let kernel = self.kernel(&run.arm)?;
        let copies = self.copies.get(&(run.cell.clone(), kernel.name())).copied().unwrap_or(1);
        self.bench.sample(&parse(&run.cell)?, kernel, copies, meter)
    }

    fn afresh(&mut self) -> Result<()> {
        self.bench.afresh();
        Ok(())
    }

    fn glance(&self, experiment: &Experiment) -> String {
        super::print::tables(experiment)
    }
}

fn parse(cell: &str) -> Result<Cell> {
    Cell::parse(cell).ok_or_else(|| Failure::new("the plan has a cell that is none of copies"))
}

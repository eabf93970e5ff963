// SPDX-License-Identifier: Apache-2.0
//! `lab aa`: how small a difference can this machine see today?
//!
//! Two identical arms, in pairs as in any other experiment. Whatever they seem to differ by is the
//! machine's doing, and no verdict of today should be made of less: the floor is kept for the commands
//! after this one.

mod alike;
mod floors;
mod print;
mod tally;
mod work;

use crate::experiment::{Experiment, Floor};
use crate::machine::now;
use crate::ranks::CONFIDENCE;
use crate::scenario::{RunOptions, Scenario, keep_floor, measure};
use crate::{Failure, Result, copy, tcp};
use alike::Alike;
use floors::{floors, largest};
use std::path::{Path, PathBuf};

/// What is run, and how long.
#[derive(Clone, Debug, clap::Args)]
pub struct Options {
    /// What both arms do
    #[arg(long, value_name = "WHAT", value_enum, default_value_t = Of::Work)]
    pub of: Of,
    /// Run so many experiments, one after the other; --output is the directory that holds them
    #[arg(long, value_name = "N", requires = "output", conflicts_with = "tally")]
    pub times: Option<usize>,
    /// Count the verdicts of all experiments in a directory, and measure nothing
    #[arg(long, value_name = "DIR")]
    pub tally: Option<PathBuf>,
    /// How it is run
    #[command(flatten)]
    pub run: RunOptions,
}

/// What both arms do.
#[derive(Clone, Copy, Debug, Eq, PartialEq, clap::ValueEnum)]
pub enum Of {
    /// Memory copies of 64 KiB, and round trips of a byte through a pipe
    Work,
    /// Copies of 64 KiB by the C library, cached and streaming
    Copy,
    /// TCP traffic of two small cells of `lab tcp`
    Tcp,
}

impl Of {
    /// What the experiments of a directory are called by.
    const fn word(self) -> &'static str {
        match self {
            Self::Work => "work",
            Self::Copy => "copy",
            Self::Tcp => "tcp",
        }
    }

    fn scenario(self) -> Result<Box<dyn Scenario>> {
        match self {
            Self::Work => Ok(Box::new(work::Works::new()?)),
            Self::Copy => copy::small(),
            Self::Tcp => tcp::alike(),
        }
    }
}

/// Measures and prints.
pub(crate) fn run(options: &Options) -> Result<()> {
    match (&options.tally, options.times, &options.run.output) {
        (Some(directory), _, _) => tally::print(directory, options.run.json),
        (None, Some(times), Some(directory)) => {
            many(options, times, directory)?;
            tally::print(directory, options.run.json)
        }
        _ => once(options),
    }
}

/// So many experiments in a directory, which may hold some already.
fn many(options: &Options, times: usize, directory: &Path) -> Result<()> {
    std::fs::create_dir_all(directory).map_err(|error| Failure::file(directory, &error))?;
    for number in 0..times {
        let name = format!("{}-{:03}.labx", options.of.word(), number);
        let output = Some(directory.join(name));
        if output.as_deref().is_some_and(Path::exists) {
            continue;
        }
        let run = RunOptions { output, seed: None, ..options.run.clone() };
        measure(&mut Alike::of(options.of.scenario()?), &run)?;
    }
    Ok(())
}

fn once(options: &Options) -> Result<()> {
    let mut alike = Alike::of(options.of.scenario()?);
    let directory = options.run.directory("aa");
    let run = RunOptions { output: Some(directory.clone()), ..options.run.clone() };
    let experiment = measure(&mut alike, &run)?;
    let floors = floors(&experiment);
    // Of fewer pairs the interval says how few they are, and nothing of the machine.
    let sure = floors.iter().all(|floor| floor.comparison.log().confidence >= CONFIDENCE);
    if options.of == Of::Work && sure {
        let (cpu, wall) = (largest(&floors, "cpu"), largest(&floors, "wall"));
        keep_floor(Floor { cpu, wall, measured: now() });
    }
    print::print(&directory, &experiment, &floors, options.run.json)
}

/// The text of an experiment that was made earlier.
pub(crate) fn text(directory: &Path, experiment: &Experiment) -> String {
    print::of(directory, experiment, &floors(experiment))
}

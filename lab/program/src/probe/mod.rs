// SPDX-License-Identifier: Apache-2.0
//! `lab probe`: what this machine can tell, found out by trying.
//!
//! What a kernel announces and what a user may do differ, and so do a counter that opens and one
//! that counts. So each ability is tried in full, within a second and without privileges that are
//! not there anyway, and everything that was made for it is taken away again.

mod ability;
mod clocks;
mod counters;
mod errno;
mod files;
mod groups;
mod kernel;
mod memory;
mod network;
mod outcome;
mod print;
mod program;
mod report;
mod sources;
mod table;

use crate::machine::{Machine, command_line, now};
use crate::output::{Output, say};
use crate::progress::Progress;
use crate::{Failure, Result};
use ability::{Ability, Finding};
pub(crate) use clocks::{core_factor, time_stamp_rate};
pub(crate) use counters::{cycle_samples, cycles};
pub(crate) use memory::{large_kib, large_pages};
use outcome::{Outcome, Trouble};
pub(crate) use program::find;
use report::Report;
use std::thread;
use std::time::Instant;
use table::{ABILITIES, PROGRAMS};

const SCHEMA: &str = "metaslot-lab-probe/1";

/// What to try, and how to print it.
#[derive(Clone, Debug, clap::Args)]
pub struct Options {
    /// Only abilities whose name or group contains one of these texts
    #[arg(long, value_name = "NAME,…", value_delimiter = ',')]
    pub only: Vec<String>,
    /// Where the result goes
    #[command(flatten)]
    pub output: Output,
    /// List the abilities, how each is tried and what is used in its place; try nothing
    #[arg(long, conflicts_with_all = ["json", "output"])]
    pub list: bool,
}

/// A figure of an attempt, if it worked and can be believed.
pub(crate) fn figure(
    attempt: fn() -> std::result::Result<Outcome, Trouble>,
    name: &str,
) -> Option<f64> {
    let outcome = attempt().ok().filter(|outcome| outcome.implausible.is_none())?;
    outcome.figures.get(name).copied()
}

/// Tries the abilities and prints what was found.
pub(crate) fn run(options: &Options) -> Result<()> {
    let chosen: Vec<&Ability> =
        ABILITIES.iter().filter(|ability| ability.is_chosen(&options.only)).collect();
    if chosen.is_empty() {
        return Err(Failure::new(format!("no ability is called {}", options.only.join(" or ")))
            .hint("'metaslot lab probe --list' names them"));
    }
    if options.list {
        return say(&print::list(&chosen));
    }
    options.output.publish(&report(&chosen), print::table)
}

fn report(chosen: &[&Ability]) -> Report {
    let (started, clock, machine) = (now(), Instant::now(), Machine::this());
    let progress = Progress::new();
    let (programs, others): (Vec<&Ability>, Vec<&Ability>) =
        chosen.iter().copied().partition(|ability| ability.group == PROGRAMS);
    let mut abilities = Vec::new();
    for ability in others {
        progress.say(format_args!("trying {}", ability.name));
        abilities.push(ability.find_out());
    }
    abilities.extend(ask(&programs));
    let complete = abilities.len() == ABILITIES.len();
    Report {
        schema: SCHEMA.to_owned(),
        command: command_line(),
        started,
        seconds: clock.elapsed().as_secs_f64(),
        machine,
        sources: if complete { sources::choose(&abilities) } else { Vec::new() },
        abilities,
    }
}

/// All programs at the same time: some of them take a while to start.
fn ask(programs: &[&Ability]) -> Vec<Finding> {
    thread::scope(|scope| {
        let asked = programs.iter().map(|ability| scope.spawn(|| ability.find_out()));
        let asked: Vec<_> = asked.collect();
        asked.into_iter().filter_map(|answer| answer.join().ok()).collect()
    })
}

#[cfg(test)]
mod tests;

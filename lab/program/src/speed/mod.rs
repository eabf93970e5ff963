// SPDX-License-Identifier: Apache-2.0
//! `lab speed`: the raw library, this module and a rival, interleaved in one run.

mod all;
mod cell;
mod measure;
mod openssl;
mod openssl_checks;
mod options;
mod part;
mod print;
mod raw;
mod report;
mod subject;
mod sun;
mod tokens;

pub(crate) use all::text as all_text;
pub use options::Options;
pub(crate) use part::Part;
pub(crate) use sun::{json as sun_json, text as sun_text};

use crate::machine::{Machine, command_line, commit_around, now};
use crate::output::{earlier, say};
use crate::place::Place;
use crate::progress::Progress;
use crate::random::Random;
use crate::role::Role;
use crate::scenario::Made;
use crate::token::{own_module, rival_module};
use crate::{Failure, Result};
use cell::{CELLS, Cell};
use measure::Plan;
use raw::Raw;
use report::{AGAIN, MODULE, Provider, RAW, RIVAL, Report, SCHEMA};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};
use subject::Subject;
use tokens::Tokens;

/// CPU seconds for a cell when nobody says.
const SECONDS: f64 = 0.6;

/// Lists, prints an earlier run, or measures.
pub(crate) fn run(options: &Options) -> Result<Option<Made>> {
    check(options)?;
    if options.sun {
        return sun::run(options).map(Some);
    }
    if options.all {
        return all::run(options).map(Some);
    }
    goals(options).map(|()| None)
}

/// The cells that have goals.
fn goals(options: &Options) -> Result<()> {
    let cells = select(options)?;
    if options.list {
        return say(&print::list(&cells));
    }
    if let Some(path) = &options.from {
        return say(&print::table(&earlier(path)?));
    }
    if let Some(Role::Experiment) = Role::of_this_process()? {
        return experiment(options, &cells);
    }
    Place::guarded(options.dir.as_deref(), options.keep)?.experiment()
}

fn check(options: &Options) -> Result<()> {
    if options.threads.contains(&0) {
        return Err(
            Failure::new("--threads wants numbers from 1").hint("for example --threads 1,2")
        );
    }
    if options.repetitions.is_some() && !options.sun && !options.all {
        return Err(Failure::new("--repetitions is for --sun and --all").hint("--rounds is here"));
    }
    let seconds = options.seconds.unwrap_or(SECONDS);
    if options.rounds == 0 || options.repetitions == Some(0) || seconds.is_nan() || seconds <= 0.0 {
        return Err(Failure::new("--rounds, --repetitions and --seconds must be above zero"));
    }
    Ok(())
}

fn select(options: &Options) -> Result<Vec<Cell>> {
    let wanted = |cell: &&Cell| {
        options.filter.is_empty() || options.filter.iter().any(|text| cell.name.contains(text))
    };
    let cells: Vec<Cell> = CELLS.iter().filter(wanted).copied().collect();
    if cells.is_empty() {
        let filter = options.filter.join(",");
        return Err(Failure::new(format!("no cell matches {filter}")).hint("--list shows them"));
    }
    Ok(cells)
}

/// The measurement itself, in a process whose environment holds the modules' configuration.
fn experiment(options: &Options, cells: &[Cell]) -> Result<()> {
    let started = Instant::now();
    let machine = Machine::this();
    let seed = options.seed.unwrap_or_else(Random::seed_from_clock);
    let mut random = Random::new(seed);
    let plan = plan(options);
    let progress = Progress::new();
    progress.say("making tokens and keys");
    let raw = Raw::new()?;
    let module = Tokens::new(&own_module(options.module.as_deref())?)?;
    let rival = rival_module(options.rival.as_deref(), module.token.module.path());
    let rival = rival.map(|path| Tokens::new(&path)).transpose()?;
    let mut subjects: Vec<(&str, &dyn Subject)> =
        vec![(RAW, &raw), (AGAIN, &raw), (MODULE, &module)];
    if let Some(rival) = &rival {
        subjects.push((RIVAL, rival));
    }
    let mut report = Report {
        schema: SCHEMA.to_owned(),
        command: command_line(),
        started: now(),
        seconds: 0.0,
        machine,
        clocks: ["CLOCK_THREAD_CPUTIME_ID".to_owned(), "CLOCK_MONOTONIC".to_owned()],
        seed,
        rounds: plan.rounds,
        batch_ms: options.batch,
        threads: plan.threads.clone(),
        providers: providers(&module, rival.as_ref())?,
        cells: Vec::new(),
        openssl: Vec::new(),
    };
    for (number, cell) in cells.iter().enumerate() {
        progress.say(format_args!("{}/{} {}", number + 1, cells.len(), cell.name));
        let result = measure::cell(cell, &subjects, &plan, &mut random);
        report.cells.push(result.map_err(|failure| failure.context(cell.name))?);
    }
    if !options.no_openssl {
        progress.say("openssl speed");
        report.openssl = openssl_checks::checks(&raw, &plan, &mut random)?;
    }
    report.seconds = started.elapsed().as_secs_f64();
    drop(progress);
    options.output.publish(&report, print::table)
}

fn plan(options: &Options) -> Plan {
    let mut threads = options.threads.clone();
    if threads.is_empty() {
        threads.push(2);
    }
    // Everything is compared with one thread.
    threads.push(1);
    threads.sort_unstable();
    threads.dedup();
    let sample =
        Duration::from_secs_f64(options.seconds.unwrap_or(SECONDS) / options.rounds as f64);
    let batch = Duration::from_secs_f64(options.batch / 1e3).min(sample);
    Plan { rounds: options.rounds, sample, batch, threads }
}

fn providers(module: &Tokens, rival: Option<&Tokens>) -> Result<Vec<Provider>> {
    let raw = Provider {
        name: RAW.to_owned(),
        description: "AWS-LC, called directly".to_owned(),
        path: None,
        commit: None,
    };
    let mut providers = vec![raw, provider(MODULE, module)?];
    if let Some(rival) = rival {
        providers.push(provider(RIVAL, rival)?);
    }
    Ok(providers)
}

fn provider(name: &str, tokens: &Tokens) -> Result<Provider> {
    let module = &tokens.token.module;
    let info = module.info()?;
    let (major, minor) = info.library_version;
    let path = module.path();
    Ok(Provider {
        name: name.to_owned(),
        description: format!("{}, {} {major}.{minor}", info.manufacturer, info.description),
        path: Some(path.display().to_string()),
        commit: if name == MODULE { commit_around(&absolute(path)) } else { None },
    })
}

fn absolute(path: &Path) -> PathBuf {
    std::path::absolute(path).unwrap_or_else(|_| path.to_path_buf())
}

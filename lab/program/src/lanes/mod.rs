// SPDX-License-Identifier: Apache-2.0
//! `lab lanes`: what the kernels reach, by themselves and through the C ABI.
//!
//! The kernels run in a program of their own (`metaslot-kernels`), the load through the C ABI is a program in C that is
//! compiled for the run. Both take turns with what they are compared with; both compare their results. Nothing here needs to be
//! trusted to be quiet: a ratio is made of neighbours.

mod compile;
mod door;
#[cfg(test)]
mod example;
mod kernel;
mod plan;
mod print;
mod report;
mod rows;

pub(crate) use kernel::program;

use crate::machine::{Machine, command_line, commit_around, now};
use crate::output::{Output, earlier, say};
use crate::place::Place;
use crate::progress::Progress;
use crate::random::Random;
use crate::token::own_module;
use crate::{Failure, Result};
use kernel::Judge;
use plan::Plan;
use report::{Report, RowResult, SCHEMA};
use rows::{ROWS, Row};
use std::path::PathBuf;
use std::time::{Duration, Instant};

/// What to measure, and how.
#[derive(Clone, Debug, clap::Args)]
pub struct Options {
    /// The module to measure [default: libmetaslot.so beside this program, or installed]
    #[arg(long, value_name = "PATH")]
    pub module: Option<PathBuf>,
    /// The program that times the kernels [default: metaslot-kernels beside this program]
    #[arg(long, value_name = "PATH")]
    pub kernels: Option<PathBuf>,
    /// Only rows whose name contains one of these texts
    #[arg(long, value_name = "NAME,…", value_delimiter = ',')]
    pub only: Vec<String>,
    /// Numbers of threads that wait [default: 1,2,8,16,64; quick: 1,16]
    #[arg(long, value_name = "N,…", value_delimiter = ',')]
    pub threads: Vec<usize>,
    /// Numbers of keys that the threads share [default: 1,16; quick: 1]
    #[arg(long, value_name = "N,…", value_delimiter = ',')]
    pub keys: Vec<usize>,
    /// Rounds: each measures everything once [default: 11, quick: 3]
    #[arg(long, value_name = "N")]
    pub rounds: Option<usize>,
    /// Length of a sample of a kernel in milliseconds [default: 5, quick: 0.5]
    #[arg(long, value_name = "MS")]
    pub sample: Option<f64>,
    /// Length of a window of the load in milliseconds [default: 200, quick: 20]
    #[arg(long, value_name = "MS")]
    pub window: Option<f64>,
    /// Seconds that OpenSSL may need to check a window's results; a window ends before there are more of them [default: 1, quick: 0.05]
    #[arg(long, value_name = "S")]
    pub checks: Option<f64>,
    /// A first look in seconds: few rounds, short samples
    #[arg(long)]
    pub quick: bool,
    /// Leave out the kernels by themselves
    #[arg(long)]
    pub no_kernels: bool,
    /// Leave out what goes through the module
    #[arg(long, conflicts_with = "no_kernels")]
    pub no_module: bool,
    /// Instruction sets that kernels do without, as in the setting `lanes_without`
    #[arg(long, value_name = "NAME,…", value_delimiter = ',')]
    pub without: Vec<String>,
    /// Random seed of the order, to repeat a run
    #[arg(long, value_name = "N")]
    pub seed: Option<u64>,
    /// Where the result goes
    #[command(flatten)]
    pub output: Output,
    /// Print the tables of an earlier run's JSON, and measure nothing
    #[arg(long, value_name = "FILE", conflicts_with_all = ["json", "output"])]
    pub from: Option<PathBuf>,
    /// List the rows and their goals, and measure nothing
    #[arg(long)]
    pub list: bool,
    /// Where the tokens and the load are made for the run [default: the directory for temporary files]
    #[arg(long, value_name = "DIR")]
    pub dir: Option<PathBuf>,
    /// Keep them
    #[arg(long)]
    pub keep: bool,
}

/// Lists, prints an earlier run, or measures.
pub(crate) fn run(options: &Options) -> Result<()> {
    let rows = select(options)?;
    if options.list {
        return say(&print::list(&rows));
    }
    if let Some(path) = &options.from {
        return say(&print::tables(&earlier(path)?));
    }
    let plan = plan(options)?;
    let report = measure(options, &rows, &plan)?;
    options.output.publish(&report, print::tables)
}

fn select(options: &Options) -> Result<Vec<Row>> {
    let wanted = |row: &&Row| {
        options.only.is_empty() || options.only.iter().any(|text| row.name.contains(text))
    };
    let rows: Vec<Row> = ROWS.iter().filter(wanted).copied().collect();
    if rows.is_empty() {
        let only = options.only.join(",");
        return Err(Failure::new(format!("no row matches {only}")).hint("--list shows them"));
    }
    Ok(rows)
}

fn plan(options: &Options) -> Result<Plan> {
    let or = |value: Option<f64>, usual, quick| {
        value.unwrap_or(if options.quick { quick } else { usual })
    };
    let list = |given: &[usize], usual: &[usize], quick: &[usize]| match (given, options.quick) {
        ([], true) => quick.to_vec(),
        ([], false) => usual.to_vec(),
        (given, _) => given.to_vec(),
    };
    let threads = list(&options.threads, &[1, 2, 8, 16, 64], &[1, 16]);
    let keys = list(&options.keys, &[1, 16], &[1]);
    if threads.iter().any(|threads| !(1..=256).contains(threads)) {
        return Err(Failure::new("--threads wants numbers from 1 to 256")
            .hint("for example --threads 1,2,16"));
    }
    if keys.iter().any(|keys| !(1..=16).contains(keys)) {
        return Err(
            Failure::new("--keys wants numbers from 1 to 16").hint("for example --keys 1,16")
        );
    }
    let times = [
        or(options.sample, 5.0, 0.5) / 1e3,
        or(options.window, 200.0, 20.0) / 1e3,
        or(options.checks, 1.0, 0.05),
    ];
    let rounds = options.rounds.unwrap_or(if options.quick { 3 } else { 11 });
    if rounds == 0 || times.iter().any(|time| !(1e-6..=3600.0).contains(time)) {
        return Err(Failure::new("--rounds, --sample, --window and --checks must be above zero")
            .hint("--quick has small values for all of them"));
    }
    let [sample, window, checks] = times.map(Duration::from_secs_f64);
    let processors = std::thread::available_parallelism().map_or(1, Into::into);
    let without = options.without.clone();
    Ok(Plan { rounds, sample, window, checks, threads, keys, processors, without })
}

/// The programs and files of a run, as far as it needs them.
struct Tools {
    place: Place,
    kernels: Option<PathBuf>,
    module: Option<PathBuf>,
    load: Option<PathBuf>,
    judge: Option<Judge>,
}

impl Tools {
    fn find(options: &Options, rows: &[Row]) -> Result<Self> {
        let kernels =
            (!options.no_kernels).then(|| program(options.kernels.as_deref())).transpose()?;
        let module = (!options.no_module)
            .then(|| own_module(options.module.as_deref()))
            .transpose()?
            .map(|path| std::path::absolute(&path).unwrap_or(path));
        let place = Place::guarded(options.dir.as_deref(), options.keep)?;
        let judged = kernels.is_some() && rows.iter().any(|row| row.openssl.is_some());
        let load = if module.is_some() {
            Some(compile::load(&place)?)
        } else if judged {
            // Without a compiler there is nothing to compare binary curves with, which the table shows.
            compile::load(&place).ok()
        } else {
            None
        };
        let judge = load.as_deref().map(Judge::start).transpose()?;
        Ok(Self { place, kernels, module, load, judge })
    }
}

fn measure(options: &Options, rows: &[Row], plan: &Plan) -> Result<Report> {
    let started = Instant::now();
    let machine = Machine::this();
    let seed = options.seed.unwrap_or_else(Random::seed_from_clock);
    let mut random = Random::new(seed);
    let progress = Progress::new();
    progress.say("compiling the load");
    let mut tools = Tools::find(options, rows)?;
    let mut report = Report {
        schema: SCHEMA.to_owned(),
        command: command_line(),
        started: now(),
        seconds: 0.0,
        machine,
        seed,
        rounds: plan.rounds,
        sample_ms: plan.sample.as_secs_f64() * 1e3,
        window_ms: plan.window.as_secs_f64() * 1e3,
        without: plan.without.clone(),
        commit: tools.module.as_deref().and_then(commit_around),
        module: tools.module.as_ref().map(|path| path.display().to_string()),
        openssl: tools.judge.as_ref().map(|judge| judge.version.clone()),
        rows: Vec::new(),
    };
    for (number, row) in rows.iter().enumerate() {
        let say = |what: &str| {
            progress.say(format_args!("{}/{} {}, {what}", number + 1, rows.len(), row.name));
        };
        let result = one(row, &mut tools, plan, &mut random, say);
        report.rows.push(result.map_err(|failure| failure.context(row.name))?);
    }
    report.seconds = started.elapsed().as_secs_f64();
    Ok(report)
}

fn one(
    row: &Row,
    tools: &mut Tools,
    plan: &Plan,
    random: &mut Random,
    say: impl Fn(&str),
) -> Result<RowResult> {
    let Tools { place, kernels, module, load, judge } = tools;
    let kernel = match kernels {
        Some(program) => {
            let round = |round| say(&format!("kernel, {}/{}", round + 1, plan.rounds));
            let counting = || say("counting instructions");
            Some(kernel::measure(row, program, judge.as_mut(), plan, round, counting)?)
        }
        None => None,
    };
    let module = match (module, load) {
        (Some(module), Some(load)) => {
            let round = |round| say(&format!("module, {}/{}", round + 1, plan.rounds));
            Some(door::measure(row, load, module, place, plan, random, round)?)
        }
        _ => None,
    };
    Ok(RowResult {
        name: row.name.to_owned(),
        mechanism: row.mechanism.to_owned(),
        kernel_goal: row.kernel,
        blocking_goal: row.blocking,
        asynchronous_goal: row.asynchronous,
        note: row.note.to_owned(),
        kernel,
        module,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::Parser;

    #[derive(Parser)]
    struct Line {
        #[command(flatten)]
        options: Options,
    }

    fn options(line: &str) -> Options {
        Line::parse_from(std::iter::once("lanes").chain(line.split_whitespace())).options
    }

    #[test]
    fn quick_is_short_and_what_is_said_counts() {
        let usual = plan(&options("")).unwrap();
        assert_eq!((usual.rounds, usual.threads.len(), usual.keys.len()), (11, 5, 2));
        let quick = plan(&options("--quick --threads 4 --sample 2")).unwrap();
        assert_eq!((quick.rounds, &quick.threads[..], &quick.keys[..]), (3, &[4][..], &[1][..]));
        assert_eq!(quick.sample, Duration::from_millis(2));
        assert_eq!(quick.window, Duration::from_millis(20));
    }

    #[test]
    fn numbers_that_make_no_sense_are_refused_with_a_hint() {
        for line in ["--threads 0", "--threads 257", "--keys 17", "--rounds 0", "--window 0"] {
            assert!(plan(&options(line)).unwrap_err().hint.is_some(), "{line}");
        }
    }

    #[test]
    fn rows_are_chosen_by_parts_of_their_names() {
        let names = |line| select(&options(line)).map(|rows| rows.len());
        assert_eq!(names("").unwrap(), ROWS.len());
        assert_eq!(names("--only p256").unwrap(), 3);
        assert_eq!(names("--only md5,rc4").unwrap(), 2);
        assert!(names("--only nothing").unwrap_err().message.contains("nothing"));
    }
}

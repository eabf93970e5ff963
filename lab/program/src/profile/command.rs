// SPDX-License-Identifier: Apache-2.0
//! `lab profile -- COMMAND`: any program, with all that it starts.

use super::launch::{Waiting, become_command, program};
use super::print::{self, Functions, SAMPLED, TOP};
use super::{Sampled, Sampler, Sort};
use crate::experiment::{Experiment, Factor, Measured, Plan, Recorder};
use crate::interrupt::Interrupt;
use crate::machine::now;
use crate::meter::{Account, Group, Meter};
use crate::output::say;
use crate::output::tell;
use crate::progress::Progress;
use crate::role::Role;
use crate::scenario::{self, Head};
use crate::{Failure, Result};
use metaslot_perf::Target;
use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::ExitStatus;

/// What to run, and how to look at it.
#[derive(Clone, Debug, clap::Args)]
pub struct Options {
    /// Samples in a second of CPU time
    #[arg(long, value_name = "N", default_value_t = 1999, value_parser = scenario::rate)]
    pub hz: u32,
    /// Run the command so often without samples first, to see what taking them costs
    #[arg(long, value_name = "N", default_value_t = 0)]
    pub runs: usize,
    /// The experiment to write, a directory [default: profile-TIME.labx, here]
    #[arg(long, short, value_name = "NAME.labx")]
    pub output: Option<PathBuf>,
    /// By which column functions are sorted
    #[arg(long, value_enum, default_value_t = Sort::Excl)]
    pub sort: Sort,
    /// So many functions
    #[arg(long, value_name = "N", default_value_t = TOP)]
    pub top: usize,
    /// Print the result as JSON instead of text; what the command prints goes to standard error
    #[arg(long)]
    pub json: bool,
    /// The program and its arguments
    #[arg(last = true, required = true, value_name = "COMMAND")]
    pub command: Vec<OsString>,
}

/// Measures and prints.
pub(crate) fn run(options: &Options) -> Result<()> {
    if let Some(Role::Launch) = Role::of_this_process()? {
        return become_command(&options.command);
    }
    let program = program(&options.command)?;
    let unnamed = || PathBuf::from(format!("profile-{}.labx", now()));
    let directory = options.output.clone().unwrap_or_else(unnamed);
    measure(options, &program, &directory)?;
    let experiment = Experiment::read(&directory)?;
    let functions = Functions::table(options.sort, options.top);
    if options.json {
        let value = print::json(&directory, &experiment, &functions)?;
        return say(&(serde_json::to_string_pretty(&value)? + "\n"));
    }
    say(&said(&directory, &experiment, &functions)?)
}

/// The text of an experiment that was made earlier.
pub(crate) fn text(directory: &Path, experiment: &Experiment) -> String {
    let functions = Functions::table(Sort::Excl, TOP);
    said(directory, experiment, &functions)
        .unwrap_or_else(|failure| format!("{}\n{failure}\n", scenario::heading(experiment)))
}

fn said(directory: &Path, experiment: &Experiment, functions: &Functions) -> Result<String> {
    let shown = directory.display();
    Ok(format!(
        "{}\n{}\na flame graph: metaslot lab print {shown} --flame > flame.svg\nwritten: {shown}\n",
        scenario::heading(experiment),
        print::text(directory, experiment, functions)?
    ))
}

fn measure(options: &Options, program: &Path, directory: &Path) -> Result<()> {
    let interrupt = Interrupt::new()?;
    let name = program.file_name().unwrap_or_default().to_string_lossy();
    let cell_name = name.replace([' ', '='], "_");
    let factor = Factor { name: "command".to_owned(), levels: vec![cell_name.clone()] };
    let cell = format!("command={cell_name}");
    let plan = Plan::interleaved(vec![factor], &[ARM], options.runs.max(1), 1)?;
    // A group that cannot be made is no failure: then there is the account of children.
    let group = Group::make().ok();
    let account = group.as_ref().map_or(Account::Children, Account::Group);
    let words: Vec<_> = options.command.iter().map(|word| word.to_string_lossy()).collect();
    let head = Head {
        name: "profile",
        unit: "operation",
        cpu: account.source(),
        settings: BTreeMap::from([("command".to_owned(), words.join(" "))]),
    };
    let clocks = [head.cpu.clone(), "monotonic".to_owned()];
    let mut provenance = scenario::provenance(head);
    let sampler = Sampler::new(options.hz);
    provenance.sources.insert("profile".to_owned(), sampler.source());
    let mut recorder = Recorder::create(directory, provenance, [&clocks[0], &clocks[1]], plan)?;
    let (meter, progress) = (Meter::start(), Progress::new());
    let once = Once { options, group: group.as_ref(), meter, account, interrupt };
    for number in 0..options.runs {
        once.interrupt.failure().map_or(Ok(()), Err)?;
        progress.say(format_args!("run {} of {}, without samples", number + 1, options.runs));
        let (measured, status) = once.plain()?;
        note(&mut recorder, status)?;
        recorder.record(measured)?;
    }
    once.interrupt.failure().map_or(Ok(()), Err)?;
    progress.say("");
    let (mut measured, status, sampling) = once.sampled(&sampler)?;
    note(&mut recorder, status)?;
    let runs = std::slice::from_ref(&measured);
    let sampled = Sampled { cell: &cell, arm: ARM, runs, windows: &[] };
    progress.say("looking up names");
    let profile = sampling.stop(&sampled)?;
    if profile.details.samples == 0 {
        return Err(Failure::new("the command ended before a sample was taken").hint(format!(
            "at {} Hz one comes about every {:.1} ms of CPU time: use a higher --hz, or more work",
            options.hz,
            1e3 / f64::from(options.hz)
        )));
    }
    for (name, bytes) in profile.files()? {
        recorder.attach(&name, &bytes)?;
    }
    if options.runs == 0 {
        measured.flags.push(SAMPLED.to_owned());
        measured.flags.extend(once.interrupt.came().then(|| "interrupted".to_owned()));
        recorder.record(measured)?;
    }
    recorder.core_factor_after(scenario::core_factor());
    recorder.finish()
}

/// The only arm.
const ARM: &str = "run";

/// How the command ended, for people.
fn note(recorder: &mut Recorder, status: ExitStatus) -> Result<()> {
    if !status.success() {
        tell(format_args!("the command ended with {status}"));
    }
    recorder.log(&format!("the command ended with {status}"))
}

/// One run of the command.
struct Once<'a> {
    options: &'a Options,
    group: Option<&'a Group>,
    meter: Meter,
    account: Account<'a>,
    interrupt: Interrupt,
}

impl Once<'_> {
    fn start(&self) -> Result<Waiting> {
        let waiting = Waiting::start(self.options.json)?;
        self.group.map_or(Ok(()), |group| group.take(waiting.id()))?;
        Ok(waiting)
    }

    fn plain(&self) -> Result<(Measured, ExitStatus)> {
        let waiting = self.start()?;
        let window = self.meter.open(self.account)?;
        let status = waiting.go(&self.interrupt)?;
        Ok((window.close(1.0)?, status))
    }

    fn sampled(&self, sampler: &Sampler) -> Result<(Measured, ExitStatus, super::Sampling)> {
        let waiting = self.start()?;
        let sampling = sampler.start(&Target::FromExec(waiting.id()))?;
        let window = self.meter.open(self.account)?;
        let status = waiting.go(&self.interrupt)?;
        Ok((window.close(1.0)?, status, sampling))
    }
}

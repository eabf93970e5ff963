// SPDX-License-Identifier: Apache-2.0
//! `lab print`: an experiment that was made before, as text, JSON, CSV or Markdown. All four are made
//! from the samples, so they cannot disagree.

use crate::experiment::Experiment;
use crate::machine::Machine;
use crate::output::{self, say};
use crate::scenario::Made;
use crate::summary::{cells, summary};
use crate::{
    Failure, Result, aa, copy, kill, lanes, local, profile, scenario, speed, store, study, tcp, tls,
};
use serde::Deserialize;
use serde_json::Value;
use std::fmt::Write;
use std::path::{Path, PathBuf};

/// What to print, and how.
#[derive(Clone, Debug, clap::Args)]
pub struct Options {
    /// The experiment, a directory, or a file of JSON that `lab speed` or `lab lanes` wrote before
    #[arg(value_name = "NAME.labx")]
    pub experiment: PathBuf,
    /// In which form
    #[arg(long, value_name = "FORM", value_enum, default_value_t = Form::Text)]
    pub form: Form,
    /// The same as --form json
    #[arg(long, conflicts_with = "form")]
    pub json: bool,
    /// Beside its results, goals and whether they were reached, where the scenario has some
    #[arg(long)]
    pub goals: bool,
    /// Of its profiles
    #[command(flatten)]
    pub profiles: profile::Functions,
}

/// The forms.
#[derive(Clone, Copy, Debug, Eq, PartialEq, clap::ValueEnum)]
pub enum Form {
    /// What the scenario itself prints
    Text,
    /// Medians and verdicts of every cell
    Json,
    /// One line for every sample
    Csv,
    /// Medians and verdicts as a table
    Markdown,
}

/// Prints.
pub(crate) fn run(options: &Options) -> Result<()> {
    if options.experiment.is_file() {
        return say(&earlier(&options.experiment, options.goals)?);
    }
    let experiment = Experiment::read(&options.experiment)?;
    let form = if options.json { Form::Json } else { options.form };
    if options.profiles.wanted() {
        return say(&functions(options, &experiment, form)?);
    }
    say(&match form {
        Form::Text => text(&options.experiment, &experiment, options.goals),
        Form::Json => serde_json::to_string_pretty(&json(&options.experiment, &experiment))? + "\n",
        Form::Csv => csv(&experiment),
        Form::Markdown => markdown(&experiment),
    })
}

/// What an earlier version wrote of a run as one file of JSON, beside its results.
#[derive(Deserialize)]
struct Earlier {
    schema: String,
    command: Vec<String>,
    machine: Machine,
    seed: u64,
    rounds: usize,
    seconds: f64,
}

/// The tables of such a run.
fn earlier(path: &Path, goals: bool) -> Result<String> {
    let file: Value = output::earlier(path)?;
    let no_run =
        |_| Failure::new("is no run of the lab").hint("an experiment is a directory NAME.labx");
    let run: Earlier = serde_json::from_value(file.clone())
        .map_err(|error| no_run(error).context(path.display()))?;
    let tables = match run.schema.as_str() {
        "metaslot-lab-lanes/1" => lanes::earlier(file, goals),
        "metaslot-lab-speed/1" => speed::earlier_overhead(file, goals),
        schema => Err(Failure::new(format!("{}: {schema} is not printed", path.display()))),
    };
    let Earlier { command, machine, seed, rounds, seconds, .. } = run;
    let (command, machine) = (command.join(" "), machine.line());
    let head = format!("{machine}\n{command}\n{rounds} rounds in {seconds:.0} s, seed {seed}\n\n");
    tables.map(|tables| head + &tables)
}

/// Prints an experiment that was made just now.
pub(crate) fn show(made: &Made) -> Result<()> {
    let Made { directory, experiment, json: is_json, goals } = made;
    say(&if *is_json {
        serde_json::to_string_pretty(&json(directory, experiment))? + "\n"
    } else {
        text(directory, experiment, *goals)
    })
}

/// What its profiles say.
fn functions(options: &Options, experiment: &Experiment, form: Form) -> Result<String> {
    let (directory, wanted) = (&options.experiment, &options.profiles);
    match form {
        Form::Json => {
            let value = profile::json(directory, experiment, wanted)?;
            Ok(serde_json::to_string_pretty(&value)? + "\n")
        }
        Form::Text => profile::functions(directory, experiment, wanted),
        Form::Csv | Form::Markdown => {
            Err(Failure::new("profiles are printed as text or as JSON")
                .hint("'jq' makes CSV of JSON"))
        }
    }
}

/// What the scenario concludes, in one sentence, where it does.
pub(crate) fn finding(directory: &Path, experiment: &Experiment) -> Option<String> {
    match experiment.manifest.provenance.scenario.as_str() {
        "copy" => copy::finding(experiment),
        "lanes" => lanes::finding(directory, experiment),
        "mechanisms" | "mix" | "speed" => speed::finding(experiment),
        "overhead" => speed::overhead_finding(directory, experiment),
        _ => None,
    }
}

/// What the scenario has to say of an experiment, and where it is; a table of cells of one that this
/// program does not know.
pub(crate) fn text(directory: &Path, experiment: &Experiment, goals: bool) -> String {
    let text = match experiment.manifest.provenance.scenario.as_str() {
        "aa" => return aa::text(directory, experiment),
        "copy" => copy::text(experiment),
        name if name.starts_with("study-") => study::text(experiment),
        "profile" => return profile::text(directory, experiment),
        "kill" => kill::text(directory, experiment),
        "lanes" => lanes::text(directory, experiment, goals),
        "local" => local::text(experiment),
        "mechanisms" => speed::all_text(experiment),
        "mix" => speed::mix_text(experiment),
        "overhead" => speed::overhead_text(directory, experiment, goals),
        "speed" => speed::sun_text(directory, experiment),
        "store" => store::text(directory, experiment),
        "tcp" => tcp::text(experiment),
        "through-openssl" => speed::through_text(experiment),
        "tls" => tls::text(experiment),
        "transfer" => tcp::transfer_text(experiment),
        _ => return format!("{}\n{}", scenario::heading(experiment), cells(experiment).render()),
    };
    let finding = finding(directory, experiment)
        .map(|finding| format!("\n{}.\n", scenario::doubtful(experiment).headline(finding)));
    format!("{text}\nwritten: {}\n{}", directory.display(), finding.unwrap_or_default())
}

/// The same without what a page has elsewhere: where the numbers come from, and what it comes to.
pub(crate) fn body(directory: &Path, experiment: &Experiment) -> String {
    let text = text(directory, experiment, false);
    let body = text.strip_prefix(&scenario::heading(experiment)).unwrap_or(&text);
    let end = format!("\nwritten: {}\n", directory.display());
    body.rsplit_once(&end).map_or(body, |(body, _)| body).trim_matches('\n').to_owned() + "\n"
}

/// The summary, with what the scenario finds besides.
fn json(directory: &Path, experiment: &Experiment) -> Value {
    match experiment.manifest.provenance.scenario.as_str() {
        "copy" => copy::json(experiment),
        name if name.starts_with("study-") => study::json(experiment),
        "kill" => kill::json(directory, experiment),
        "lanes" => lanes::json(directory, experiment),
        "local" => local::json(experiment),
        "overhead" => speed::overhead_json(directory, experiment),
        "speed" => speed::sun_json(directory, experiment),
        "store" => store::json(directory, experiment),
        "through-openssl" => speed::through_json(experiment),
        "tls" => tls::json(experiment),
        "tcp" | "transfer" => tcp::json(experiment),
        _ => summary(experiment),
    }
}

fn csv(experiment: &Experiment) -> String {
    let mut counters: Vec<&String> =
        experiment.samples.iter().flat_map(|sample| sample.measured.counters.keys()).collect();
    counters.sort();
    counters.dedup();
    let mut text = "order,repetition,cell,arm,work,cpu_ns,wall_ns,foreign_cpu,flags".to_owned();
    for name in &counters {
        write!(text, ",{name}").ok();
    }
    for sample in &experiment.samples {
        let (run, measured) = (&sample.run, &sample.measured);
        let foreign = measured.foreign_cpu.map_or_else(String::new, |cpus| cpus.to_string());
        write!(
            text,
            "\n{},{},{},{},{},{},{},{foreign},{}",
            sample.order,
            run.repetition,
            run.cell,
            run.arm,
            measured.work,
            measured.cpu_ns,
            measured.wall_ns,
            measured.flags.join(" ")
        )
        .ok();
        for name in &counters {
            let value = measured.counters.get(*name).map_or_else(String::new, f64::to_string);
            write!(text, ",{value}").ok();
        }
    }
    text + "\n"
}

fn markdown(experiment: &Experiment) -> String {
    format!(
        "{}\n{}",
        scenario::heading(experiment).replace('\n', "  \n"),
        cells(experiment).markdown()
    )
}

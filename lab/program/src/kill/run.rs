// SPDX-License-Identifier: Apache-2.0
//! The killer.

use super::check::Findings;
use super::log::{self, Event};
use super::options::Options;
use crate::machine::{Machine, command_line, commit_around, now};
use crate::place::{Place, Store};
use crate::progress::Progress;
use crate::random::Random;
use crate::role::Role;
use crate::{Failure, Result};
use serde::{Deserialize, Serialize};
use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Stdio};
use std::time::{Duration, Instant};

/// How long a writer may need from its start to its first object.
const START: Duration = Duration::from_secs(90);

/// Writers that may fail by themselves before the run is given up.
const TOO_MANY: usize = 50;

/// What happened; everything that is zero in a right token comes first.
#[derive(Clone, Debug, Deserialize, Serialize)]
struct Report {
    schema: String,
    command: Vec<String>,
    started: u64,
    seconds: f64,
    machine: Machine,
    module: String,
    commit: Option<String>,
    seed: u64,
    writers: usize,
    findings: Findings,
    /// Writers that could not start, or ended by themselves.
    failed: Vec<String>,
    kills: u64,
    /// Kills that fell between a call and its return.
    inside_create: u64,
    inside_destroy: u64,
    /// Kills that fell between start and login.
    while_starting: u64,
    /// Times the token was opened, and the longest time that it took, in milliseconds.
    opened: u64,
    slowest_open_ms: u64,
}

/// A writer's process. Each start has a name and a log of its own.
struct Writer {
    name: String,
    log: PathBuf,
    child: Child,
    started: Instant,
    ready: bool,
}

pub(super) fn run(options: &Options, module: &Path, place: &Place) -> Result<()> {
    let started = Instant::now();
    let progress = Progress::new();
    let seed = options.seed.unwrap_or_else(Random::seed_from_clock);
    let mut report = Report {
        schema: "metaslot-lab-kill/1".to_owned(),
        command: command_line(),
        started: now(),
        seconds: 0.0,
        machine: Machine::this(),
        module: module.display().to_string(),
        commit: commit_around(&std::path::absolute(module)?),
        seed,
        writers: options.writers,
        findings: Findings::default(),
        failed: Vec::new(),
        kills: 0,
        inside_create: 0,
        inside_destroy: 0,
        while_starting: 0,
        opened: 0,
        slowest_open_ms: 0,
    };
    let store = place.store("kill")?;
    let role = Role::Holder { module: module.to_path_buf(), make: true };
    if !store.command(&role)?.status()?.success() {
        return Err(Failure::new("the token could not be made"));
    }
    let mut writers = Vec::new();
    for number in 0..options.writers {
        writers.push(Writer::start(&store, module, format!("start{number}"))?);
    }
    let killed = kill(options, &store, module, &mut writers, &mut report, &progress);
    for writer in &mut writers {
        writer.end()?;
    }
    killed?;
    progress.say("comparing the token with the logs");
    report.findings = check(&store, module)?;
    report.seconds = started.elapsed().as_secs_f64();
    drop(progress);
    publish(options, &report)
}

/// The kills, each followed by a new start.
fn kill(
    options: &Options,
    store: &Store,
    module: &Path,
    writers: &mut [Writer],
    report: &mut Report,
    progress: &Progress,
) -> Result<()> {
    let mut random = Random::new(report.seed);
    while report.kills < options.kills {
        let any = options.starting != 0 && random.below(options.starting) == 0;
        let candidates = loop {
            std::thread::sleep(Duration::from_micros(random.below(options.interval * 1000)));
            attend(store, module, writers, report)?;
            let candidate = |at: &usize| any || writers[*at].ready;
            let candidates: Vec<usize> = (0..writers.len()).filter(candidate).collect();
            if !candidates.is_empty() {
                break candidates;
            }
        };
        let which = random.below(candidates.len() as u64);
        let victim = &mut writers[candidates[usize::try_from(which).unwrap_or(0)]];
        victim.end()?;
        match log::read(&victim.log)?.last() {
            None => report.while_starting += 1,
            Some((Event::Creating, _)) => report.inside_create += 1,
            Some((Event::Destroying, _)) => report.inside_destroy += 1,
            Some(_) => {}
        }
        report.kills += 1;
        *victim = Writer::start(store, module, format!("kill{}", report.kills))?;
        progress.say(format_args!(
            "{}/{} kills, {} inside a call",
            report.kills,
            options.kills,
            report.inside_create + report.inside_destroy
        ));
    }
    // Those that were killed last must open the token as well.
    while writers.iter().any(|writer| !writer.ready) {
        std::thread::sleep(Duration::from_millis(20));
        attend(store, module, writers, report)?;
    }
    Ok(())
}

/// Looks after all writers: one that failed is noted and replaced.
fn attend(store: &Store, module: &Path, writers: &mut [Writer], report: &mut Report) -> Result<()> {
    for writer in writers {
        let Err(failure) = writer.look(report) else { continue };
        report.failed.push(failure.message);
        if report.failed.len() >= TOO_MANY {
            let first = &report.failed[0];
            return Err(Failure::new(format!("{TOO_MANY} writers failed; the first: {first}")));
        }
        *writer = Writer::start(store, module, format!("again{}", report.failed.len()))?;
    }
    Ok(())
}

impl Writer {
    fn start(store: &Store, module: &Path, name: String) -> Result<Self> {
        let log = store.file(&format!("{name}.log"));
        let role =
            Role::Writer { module: module.to_path_buf(), name: name.clone(), log: log.clone() };
        let child = store.command(&role)?.stdin(Stdio::null()).stderr(Stdio::piped()).spawn()?;
        Ok(Self { name, log, child, started: Instant::now(), ready: false })
    }

    /// Notices that it has logged in, and that it ended by itself.
    fn look(&mut self, report: &mut Report) -> Result<()> {
        if let Some(status) = self.child.try_wait()? {
            let mut words = String::new();
            if let Some(mut stderr) = self.child.stderr.take() {
                std::io::Read::read_to_string(&mut stderr, &mut words)?;
            }
            return Err(Failure::new(format!(
                "{} ended with {status}: {}",
                self.name,
                words.trim()
            )));
        }
        if self.ready {
            return Ok(());
        }
        // Its first line says that it has logged in.
        if std::fs::metadata(&self.log).is_ok_and(|data| data.len() > 0) {
            self.ready = true;
            report.opened += 1;
            let took = self.started.elapsed().as_millis();
            report.slowest_open_ms =
                report.slowest_open_ms.max(u64::try_from(took).unwrap_or(u64::MAX));
        } else if self.started.elapsed() > START {
            self.end()?;
            return Err(Failure::new(format!(
                "{} did not open the token in {} s",
                self.name,
                START.as_secs()
            )));
        }
        Ok(())
    }

    /// Kills it, if it still lives, and waits.
    fn end(&mut self) -> Result<()> {
        self.child.kill()?;
        self.child.wait()?;
        Ok(())
    }
}

/// A fresh process compares the token with the logs.
fn check(store: &Store, module: &Path) -> Result<Findings> {
    let role = Role::Checker { module: module.to_path_buf(), logs: store.file("") };
    let output = store.command(&role)?.stderr(Stdio::inherit()).output()?;
    if !output.status.success() {
        return Err(Failure::new("the token does not open after the kills"));
    }
    Ok(serde_json::from_slice(&output.stdout)?)
}

fn publish(options: &Options, report: &Report) -> Result<()> {
    options.output.publish(report, text)?;
    let findings = &report.findings;
    let wrong = findings.lost.len() + findings.broken.len() + findings.resurrected.len();
    if wrong == 0 && report.failed.is_empty() {
        return Ok(());
    }
    if wrong == 0 {
        return Err(Failure::new(format!("{} writers failed", report.failed.len())));
    }
    Err(Failure::new(format!("{wrong} objects are not as they were acknowledged"))
        .hint("--keep keeps the token and the logs, --seed repeats the order of the kills"))
}

fn text(report: &Report) -> String {
    let Report { findings, kills, .. } = report;
    let commit = report.commit.as_ref().map_or_else(String::new, |commit| format!(" ({commit})"));
    let mut text = format!(
        "{}\n{}{commit}, {} writers, seed {}\n",
        report.machine.line(),
        report.module,
        report.writers,
        report.seed
    );
    writeln!(
        text,
        "{kills} kills in {:.0} s: {} inside a create, {} inside a destroy, {} while starting",
        report.seconds, report.inside_create, report.inside_destroy, report.while_starting
    )
    .ok();
    writeln!(
        text,
        "token opened {} times, slowest {} ms; {} writers failed by themselves",
        report.opened + 1,
        report.slowest_open_ms,
        report.failed.len()
    )
    .ok();
    for failure in report.failed.iter().take(5) {
        writeln!(text, "  {failure}").ok();
    }
    writeln!(
        text,
        "{} acknowledged objects: {} lost, {} broken",
        findings.acknowledged,
        findings.lost.len(),
        findings.broken.len()
    )
    .ok();
    writeln!(
        text,
        "{} acknowledged destructions: {} came back",
        findings.destroyed,
        findings.resurrected.len()
    )
    .ok();
    writeln!(
        text,
        "{} calls cut short by a kill: {} of their objects are there",
        findings.undecided, findings.undecided_present
    )
    .ok();
    text
}

// SPDX-License-Identifier: Apache-2.0
//! A run of `openssl speed`, or of its loop.

use super::rows::ThroughRow;
use crate::meter::Account;
use crate::{Failure, Result};
use rustix::process::{Pid, Signal, kill_process_group};
use serde::Deserialize;
use std::fs;
use std::io::{BufRead, BufReader};
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::time::{Duration, Instant};

/// What a run came to.
#[derive(Clone, Copy, Debug, Default, Deserialize)]
pub(crate) struct Ran {
    pub(crate) operations: f64,
    /// Of all processes.
    pub(crate) cpu_ns: f64,
    /// As long as it would have taken at the processes' rates together.
    pub(crate) wall_ns: f64,
}

/// How many processes, and how many jobs each; none without jobs.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Shape {
    pub(crate) processes: usize,
    pub(crate) jobs: usize,
}

/// How long `openssl speed` works for a figure: its shortest time.
const SECONDS: u64 = 1;
/// After so long it is ended: a machine on which others work needs more than its second.
const PATIENCE: Duration = Duration::from_secs(60);
/// How long the loop works.
const LOOP: &str = "0.5";

/// Runs `openssl speed` until the operation's figure is there, and no longer.
///
/// # Errors
/// It says something else, or nothing in time.
pub(super) fn speed(mut command: Command, row: &ThroughRow, shape: Shape) -> Result<Ran> {
    command.args(["-mr", "-elapsed", "-seconds", &SECONDS.to_string()]);
    if shape.processes > 1 {
        command.args(["-multi", &shape.processes.to_string()]);
    }
    if shape.jobs > 0 {
        command.args(["-async_jobs", &shape.jobs.to_string()]);
    }
    command.args(row.algorithm.split(' ')).process_group(0);
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped());
    let mut child = command.spawn().map_err(|error| Failure::from(error).context("openssl"))?;
    let lines = lines(child.stderr.take());
    let ran = figure(&lines, child.id(), shape.processes);
    // Its other figures are of no use here. Where it has ended, there is nothing to end.
    let group = i32::try_from(child.id()).ok().and_then(Pid::from_raw);
    group.map(|group| kill_process_group(group, Signal::KILL).ok());
    child.wait()?;
    ran
}

/// What it says on its standard error, line by line.
fn lines(errors: Option<impl std::io::Read + Send + 'static>) -> Receiver<String> {
    let (sender, receiver) = channel();
    std::thread::spawn(move || {
        let lines = errors.into_iter().flat_map(|errors| BufReader::new(errors).lines());
        for line in lines.map_while(std::result::Result::ok) {
            if sender.send(line).is_err() {
                return;
            }
        }
    });
    receiver
}

/// The first figure of every process: `+DTP:…` when it begins, `+R1:count:…:seconds` when it is there.
fn figure(lines: &Receiver<String>, group: u32, processes: usize) -> Result<Ran> {
    let deadline = Instant::now() + PATIENCE;
    let (mut cpu, mut ran, mut rate, mut told) = (None, Ran::default(), 0.0, Vec::new());
    for _ in 0..processes {
        let (count, seconds) = loop {
            let left = deadline.saturating_duration_since(Instant::now());
            let line = match lines.recv_timeout(left) {
                Ok(line) => line,
                Err(RecvTimeoutError::Timeout) => {
                    return Err(Failure::new(format!("no figure in {} s", PATIENCE.as_secs())));
                }
                Err(RecvTimeoutError::Disconnected) => return Err(Failure::new(last_words(&told))),
            };
            if line.starts_with("+DTP") && cpu.is_none() {
                cpu = Some(cpu_of(group)?);
            }
            match counted(&line) {
                Some(counted) => break counted,
                None => told.push(line),
            }
        };
        if count < 1.0 || seconds <= 0.0 {
            return Err(Failure::new(last_words(&told)));
        }
        ran.operations += count;
        rate += count / seconds;
    }
    ran.cpu_ns = cpu_of(group)? - cpu.unwrap_or_default();
    ran.wall_ns = 1e9 * ran.operations / rate;
    Ok(ran)
}

/// How many in how many seconds.
fn counted(line: &str) -> Option<(f64, f64)> {
    let fields: Vec<&str> = line.strip_prefix("+R")?.split(':').collect();
    Some((fields.get(1)?.parse().ok()?, fields.last()?.parse().ok()?))
}

/// Its error, as one line.
fn last_words(told: &[String]) -> String {
    let plain = |line: &&String| !line.starts_with('+') && !line.trim().is_empty();
    let last = told.iter().rev().find(plain);
    format!("it made no figure: {}", last.map_or("it said nothing", |line| line.trim()))
}

/// CPU time of all processes of a group so far.
fn cpu_of(group: u32) -> Result<f64> {
    let member = |entry: fs::DirEntry| {
        let pid = entry.file_name().to_str()?.parse::<u32>().ok()?;
        let stat = fs::read_to_string(entry.path().join("stat")).ok()?;
        let of = stat.rsplit_once(')')?.1.split_ascii_whitespace().nth(2)?.parse::<u32>().ok()?;
        (of == group).then_some(pid)
    };
    let members: Vec<u32> = fs::read_dir("/proc")?.flatten().filter_map(member).collect();
    Ok(Account::Processes(&members).read()?.cpu)
}

/// Runs the loop.
///
/// # Errors
/// It says why.
pub(crate) fn loops(
    mut command: Command,
    key: &Path,
    group: Option<&str>,
    shape: Shape,
) -> Result<Ran> {
    command.arg(key).arg(group.unwrap_or("sign"));
    command.args([shape.processes.to_string(), shape.jobs.to_string(), LOOP.to_owned()]);
    let output = command.stdin(Stdio::null()).output()?;
    let text = String::from_utf8_lossy(&output.stdout);
    let answer: Answer = serde_json::from_str(text.trim()).map_err(|_| {
        let errors = String::from_utf8_lossy(&output.stderr);
        Failure::new(format!("it says nothing: {} {}", output.status, errors.trim()))
    })?;
    match answer {
        Answer::Ran(ran) if ran.operations > 0.0 => Ok(ran),
        Answer::Ran(_) => Err(Failure::new("it did nothing")),
        Answer::Failed { error } => Err(Failure::new(error)),
    }
}

#[derive(Deserialize)]
#[serde(untagged)]
enum Answer {
    Failed { error: String },
    Ran(Ran),
}

#[cfg(test)]
mod tests {
    use super::*;

    fn said(text: &str, processes: usize) -> Result<Ran> {
        let (sender, receiver) = channel();
        for line in text.lines() {
            sender.send(line.to_owned()).unwrap();
        }
        drop(sender);
        // No process has that group.
        figure(&receiver, u32::MAX, processes)
    }

    #[test]
    fn the_first_figure_of_every_process_counts() {
        let text = "Forked child 0\n+DTP:256:sign:ecdsa:1\n+R5:1000:256:1.00\n+DTP:256:verify:ecdsa:1\n\
                    +R5:3000:256:2.00\n+R6:5:256:1.00\n";
        let ran = said(text, 2).unwrap();
        assert_eq!((ran.operations, ran.wall_ns), (4000.0, 1e9 * 4000.0 / 2500.0));
        assert_eq!(
            said("+DTP:253:sign:Ed25519:1\n+R8:28053:253:Ed25519:1.00\n", 1).unwrap().operations,
            28053.0
        );
        assert!(said(text, 4).unwrap_err().message.contains("no figure: Forked child 0"));
    }

    #[test]
    fn a_failure_is_no_figure() {
        let failure = said("RSA sign failure\n+R1:-1:2048:1.00\n", 1).unwrap_err();
        assert_eq!(failure.message, "it made no figure: RSA sign failure");
    }
}

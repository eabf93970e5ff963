// SPDX-License-Identifier: Apache-2.0
//! `metaslot stat`: what the counter pages of all processes say, once or at every interval.

mod difference;
mod prometheus;
mod show;

use crate::app::App;
use crate::failure::{Failure, Result};
use crate::output::Report;
use metaslot_counters::read::{self, Process};
use std::thread;
use std::time::{Duration, Instant};

const EXAMPLES: &str = "\
Examples:
  metaslot stat                 what was done since the processes started
  metaslot stat 1               what is done, each second
  metaslot stat 10 6 --json     six reports of ten seconds, one line of JSON each";

/// Arguments of `stat`.
#[derive(clap::Args, Debug)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Args {
    /// Seconds between reports [default: one report of everything so far]
    #[arg(value_name = "SECONDS", value_parser = interval)]
    interval: Option<Duration>,
    /// How many reports [default: until interrupted]
    count: Option<u64>,
    /// Each process by itself
    #[arg(long, short = 'p')]
    by_process: bool,
    /// Only this process; also one that has just ended
    #[arg(long, value_name = "PID")]
    pid: Option<u32>,
    /// Print the totals in the text format of Prometheus
    #[arg(long, conflicts_with_all = ["json", "interval"])]
    prometheus: bool,
}

fn interval(text: &str) -> std::result::Result<Duration, String> {
    let seconds = text.parse::<f64>().map_err(|_| "a number of seconds".to_owned())?;
    let duration = Duration::try_from_secs_f64(seconds).ok();
    duration.filter(|time| !time.is_zero()).ok_or_else(|| "more than zero seconds".to_owned())
}

pub(crate) fn run(app: &App, args: &Args) -> Result<()> {
    let Some(interval) = args.interval else { return once(app, args) };
    if !metaslot_counters::directories().any(|directory| directory.is_dir()) {
        tell_none(app);
    }
    let mut before = processes(args);
    let mut reported = Instant::now();
    let mut left = args.count;
    while left != Some(0) {
        thread::sleep((reported + interval).saturating_duration_since(Instant::now()));
        let now = processes(args);
        let seconds = reported.elapsed().as_secs_f64();
        reported = Instant::now();
        let changes = difference::since(&now, &before);
        if app.output.json {
            app.output.line(&show::json(&changes, Some(seconds)).to_string())?;
        } else {
            let text = show::rates(&show::shown(&changes, args.by_process), seconds);
            app.output.print(&Report { text, ..Report::default() })?;
        }
        before = now;
        left = left.map(|left| left - 1);
    }
    Ok(())
}

fn once(app: &App, args: &Args) -> Result<()> {
    let processes = processes(args);
    if args.prometheus {
        return crate::output::write_out(prometheus::text(&processes).as_bytes());
    }
    if let (Some(pid), true) = (args.pid, processes.is_empty()) {
        return Err(Failure::not_found(format!("process {pid} has no counters")).hint(NONE));
    }
    if processes.is_empty() {
        tell_none(app);
    }
    let summary = show::summary(&processes);
    let tables = show::totals(&show::shown(&processes, args.by_process));
    app.output.print(&Report {
        text: if processes.is_empty() { String::new() } else { format!("{summary}{tables}") },
        json: show::json(&processes, None),
        uris: Vec::new(),
    })
}

fn tell_none(app: &App) {
    app.output.note(&format!("no process has counters\nhint: {NONE}"));
}

const NONE: &str = "a process counts from its start, where $XDG_RUNTIME_DIR/metaslot or \
/run/metaslot exists: make the directory, then start the program";

fn processes(args: &Args) -> Vec<Process> {
    args.pid.map_or_else(read::processes, read::of)
}

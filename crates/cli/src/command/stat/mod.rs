// SPDX-License-Identifier: Apache-2.0
//! `metaslot stat`: what the counter pages of all processes say, once or at every interval.

pub(super) mod clients;
pub(super) mod difference;
pub(super) mod group;
mod json;
pub(super) mod name;
pub(super) mod number;
mod prometheus;
mod show;

use crate::app::App;
use crate::failure::{Failure, Result};
use crate::output::{Report, is_closed, write_out};
use crate::places;
use clients::Users;
use group::By;
use metaslot_counters::clients::{Server, served};
use metaslot_counters::read::{self, Process};
use std::fs::{self, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::thread;
use std::time::{Duration, Instant};

const EXAMPLES: &str = "\
Examples:
  metaslot stat                 what was done so far
  metaslot stat 1               what is done, a line each second
  metaslot stat 1 --by size     a table each second, with a row for each size
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
    /// A row for each provider, mechanism, size or process; several, separated by commas, for each
    /// combination
    #[arg(long, value_name = "WHAT", value_delimiter = ',', conflicts_with = "prometheus")]
    by: Vec<By>,
    /// Only this process; also one that has just ended
    #[arg(long, value_name = "PID")]
    pid: Option<u32>,
    /// Print the totals in the text format of Prometheus
    #[arg(long, conflicts_with_all = ["json", "interval"])]
    prometheus: bool,
    /// Write them into a file, in place of the one before; with SECONDS again and again
    #[arg(long, value_name = "PATH", conflicts_with_all = ["json", "prometheus", "by"])]
    textfile: Option<PathBuf>,
}

/// The longest interval.
const DAY: Duration = Duration::from_secs(24 * 60 * 60);

pub(super) fn interval(text: &str) -> std::result::Result<Duration, String> {
    let seconds = text.parse::<f64>().map_err(|_| "a number of seconds".to_owned())?;
    let duration = Duration::try_from_secs_f64(seconds).ok();
    let possible = duration.filter(|time| !time.is_zero() && *time <= DAY);
    possible.ok_or_else(|| "more than zero seconds, and a day at most".to_owned())
}

pub(crate) fn run(app: &App, args: &Args) -> Result<()> {
    if args.by.contains(&By::Key) {
        return Err(Failure::usage("operations are not counted by key")
            .hint("a page has room for a process's providers and mechanisms, not for its keys"));
    }
    match check_directory() {
        // A collector gets what there is.
        Err(_) if args.prometheus || args.textfile.is_some() => tell_none(app),
        checked => checked?,
    }
    if let Some(path) = &args.textfile {
        return textfile(path, args);
    }
    let Some(interval) = args.interval else { return once(app, args) };
    let mut before = processes(args);
    let mut reported = Instant::now();
    for number in 0..args.count.unwrap_or(u64::MAX) {
        thread::sleep((reported + interval).saturating_duration_since(Instant::now()));
        let now = processes(args);
        let seconds = reported.elapsed().as_secs_f64();
        reported = Instant::now();
        report(app, args, number, &difference::since(&now, &before), seconds)?;
        if is_closed() {
            break;
        }
        before = now;
    }
    Ok(())
}

/// Refuses to wait for counters where no process can have any that others see.
pub(super) fn check_directory() -> Result<()> {
    let directories = places::counters();
    match (directories.iter().find(|place| is_open(place)), closed(&directories)) {
        (Some(_), _) => Ok(()),
        (None, Some(_)) => Err(Failure::failed("the counters cannot be read").hint(none())),
        (None, None) => Err(Failure::not_found("there is no directory for counters").hint(none())),
    }
}

/// Whether a directory is there and its pages can be seen.
fn is_open(directory: &Path) -> bool {
    fs::read_dir(directory).is_ok()
}

/// The first that this user may not enter.
fn closed(directories: &[PathBuf]) -> Option<&PathBuf> {
    let is_closed = |directory: &&PathBuf| {
        let read = fs::read_dir(directory);
        read.is_err_and(|error| error.kind() == io::ErrorKind::PermissionDenied)
    };
    directories.iter().find(is_closed)
}

/// For node_exporter's collector, which reads at any time.
fn textfile(path: &Path, args: &Args) -> Result<()> {
    let times = args.interval.map_or(1, |_| args.count.unwrap_or(u64::MAX));
    for number in 0..times {
        if number > 0 {
            thread::sleep(args.interval.unwrap_or_default());
        }
        replace(path, collected(args).as_bytes())
            .map_err(|error| Failure::io(format!("cannot write {}", path.display()), &error))?;
    }
    Ok(())
}

/// Writes a file beside it, whose name no collector takes, and renames that: a reader finds the old
/// text or the new one, whole.
fn replace(path: &Path, text: &[u8]) -> io::Result<()> {
    let name = path.file_name().ok_or(io::ErrorKind::InvalidInput)?;
    let beside = path.with_file_name(format!(".{}.{}.new", name.display(), std::process::id()));
    let mut file = OpenOptions::new().write(true).create_new(true).mode(0o644).open(&beside)?;
    let written = file.write_all(text).and_then(|()| fs::rename(&beside, path));
    if written.is_err() {
        fs::remove_file(&beside).ok();
    }
    written
}

/// How many lines stand under one heading: both fit a small terminal.
const LINES: u64 = 20;

fn report(app: &App, args: &Args, number: u64, changes: &[Process], seconds: f64) -> Result<()> {
    if app.output.json {
        return app.output.line(&json::document(changes, &args.by, Some(seconds)).to_string());
    }
    if !args.by.is_empty() {
        let between = if number == 0 { "" } else { "\n" };
        let table = show::rates(changes, &args.by, seconds);
        return write_out(format!("{between}{table}").as_bytes());
    }
    tell_waiting(app, changes);
    if number.is_multiple_of(LINES) {
        app.output.line(show::LINE)?;
    }
    write_out(show::line(changes, seconds).as_bytes())
}

fn once(app: &App, args: &Args) -> Result<()> {
    if args.prometheus {
        return write_out(collected(args).as_bytes());
    }
    let processes = processes(args);
    if let (Some(pid), true) = (args.pid, processes.is_empty()) {
        return Err(Failure::not_found(format!("process {pid} has no counters")).hint(
            "one that has ended is in the numbers of all; one that runs began before there was a directory",
        ));
    }
    if processes.is_empty() {
        tell_none(app);
    }
    tell_waiting(app, &processes);
    let mut text = if processes.is_empty() { String::new() } else { totals(&processes, &args.by) };
    let mut json = json::document(&processes, &args.by, None);
    if args.by.is_empty() {
        let servers = servers(args);
        let users = Users::read();
        text += &clients::text(&servers, &users);
        json["servers"] = clients::json(&servers, &users);
    }
    app.output.print(&Report { text, json, uris: Vec::new() })
}

/// Everything, or only the rows that were asked for.
fn totals(processes: &[Process], by: &[By]) -> String {
    if !by.is_empty() {
        return show::operations(processes, by);
    }
    let mut tables = vec![show::operations(processes, &[By::Provider, By::Mechanism, By::Size])];
    tables.extend(show::calls(processes));
    tables.retain(|table| !table.is_empty());
    [show::summary(processes)].into_iter().chain(tables).collect::<Vec<_>>().join("\n")
}

fn tell_none(app: &App) {
    app.output.note(&format!("no process has counters\nhint: {}", none()));
}

/// Another module that has not answered for so long may never do.
const LONG: Duration = Duration::from_secs(1);

/// Who waits for other modules: an operation is counted when it ends, and not before.
fn tell_waiting(app: &App, processes: &[Process]) {
    for Process { pid, program, outside, .. } in processes {
        let Some(longest) = outside.iter().max().filter(|time| **time >= LONG) else { continue };
        let threads = if outside.len() == 1 { "thread is" } else { "threads are" };
        app.output.note(&format!(
            "{program} ({pid}): {} {threads} in calls of another module, the longest for {} s",
            outside.len(),
            longest.as_secs(),
        ));
    }
}

/// Why none may have them.
fn none() -> String {
    let directories = places::counters();
    let name = |directory: &PathBuf| directory.display().to_string();
    match (directories.iter().find(|place| is_open(place)), closed(&directories)) {
        (Some(there), _) => format!(
            "a process counts in {} from its start: none runs that began when it was there",
            name(there)
        ),
        (None, Some(closed)) => format!(
            "this user may not enter {}: ask as its owner, or as root; one for every user has mode 1777",
            name(closed)
        ),
        (None, None) => {
            let names: Vec<_> = directories.iter().map(name).collect();
            let make = directories.first().map(|first| places::how_to_make(first));
            let make = make.unwrap_or_default();
            let none = match names.len() {
                1 => format!("{} is not there", names[0]),
                _ => format!("neither {} is there", names.join(" nor ")),
            };
            format!("{none}; a process counts from its start: {make}, then start the program")
        }
    }
}

/// For a collector.
fn collected(args: &Args) -> String {
    prometheus::text(&processes(args)) + &clients::prometheus(&servers(args), &Users::read())
}

/// Those that serve others.
fn servers(args: &Args) -> Vec<Server> {
    let mut all = served(&places::counters());
    all.retain(|server| args.pid.is_none_or(|pid| pid == server.pid));
    all
}

fn processes(args: &Args) -> Vec<Process> {
    let directories = places::counters();
    match args.pid {
        None => read::processes(&directories),
        Some(pid) => read::of(pid, &directories),
    }
}

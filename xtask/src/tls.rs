// SPDX-License-Identifier: Apache-2.0
//! Full TLS 1.3 handshakes of real servers with a key in a file and the same kind of key in a token: threads in C and in Java, and
//! nginx with two workers. The same client asks all, in turn, and the last rounds count.

mod listening;
mod server;

use std::fs::{self, File};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use serde_json::Value;

use crate::cargo::{build, target};
use crate::packages::{self, FOR_RUN, FOR_TESTS};
use listening::listens;
use server::{KINDS, Place, SERVERS, Server};

/// Threads of each threaded server, and of the client.
const THREADS: &str = "64";
/// Rounds that count, and seconds of each.
const ROUNDS: usize = 5;
const SECONDS: &str = "4";
/// Rounds until Java has compiled what it runs.
const WARM_UP: usize = 2;

/// A server with its key in one place.
struct Arm {
    server: &'static Server,
    kind: &'static str,
    place: Place,
    port: u16,
    process: Child,
    rounds: Vec<Round>,
}

/// What one round of the client found.
struct Round {
    /// Handshakes per second.
    rate: f64,
    /// The server's processor time for each, in microseconds.
    cpu: f64,
    /// In milliseconds.
    p99: f64,
}

/// What the command line says: which server, and how many rounds.
fn said(arguments: &[String]) -> Result<(Option<&str>, usize)> {
    let (mut name, mut rounds) = (None, ROUNDS);
    let mut words = arguments.iter();
    while let Some(word) = words.next() {
        let is_known = |server: &Server| server.name.eq_ignore_ascii_case(word);
        if word == "--rounds" {
            let number = words.next().context("--rounds needs a number")?;
            rounds = number.parse().with_context(|| format!("{number} is no number of rounds"))?;
            ensure!(rounds > 0, "at least one round counts");
        } else {
            let server = SERVERS.iter().find(|server| is_known(server));
            name = Some(server.with_context(|| format!("no server {word} is measured"))?.name);
        }
    }
    Ok((name, rounds))
}

/// Measures and prints.
pub(crate) fn run(arguments: &[String]) -> Result<()> {
    let (name, rounds) = said(arguments)?;
    packages::install(&[FOR_RUN, FOR_TESTS])?;
    packages::provider()?;
    build()?;
    let home = target().join("tls");
    drop(fs::remove_dir_all(&home));
    fs::create_dir_all(&home).context("make the directory")?;
    let home = fs::canonicalize(&home).context("find the directory")?;
    server::prepare(&home)?;
    let mut arms = Vec::new();
    for kind in KINDS {
        for server in SERVERS.iter().filter(|server| name.is_none_or(|name| server.name == name)) {
            for place in Place::ALL {
                if server.runs(kind, place) {
                    let port = 24_431 + u16::try_from(arms.len())?;
                    arms.push(Arm::start(server, kind, place, port, &home)?);
                }
            }
        }
    }
    for round in 0..WARM_UP + rounds {
        for arm in &mut arms {
            let result = arm.round(&home)?;
            if round >= WARM_UP {
                arm.rounds.push(result);
            }
        }
        eprintln!("round {} of {}", round + 1, WARM_UP + rounds);
    }
    print(&arms, rounds);
    Ok(())
}

/// A table; each server beside the same one with its key in a file, by the ratios within each round.
fn print(arms: &[Arm], rounds: usize) {
    println!("{THREADS} threads each side, {rounds} rounds of {SECONDS} s in turn, medians");
    println!(
        "{:<38} {:>12} {:>22} {:>14} {:>22} {:>10}",
        "", "handshakes/s", "of file", "server's CPU", "by CPU, of file", "p99"
    );
    for arm in arms {
        let of = |value: fn(&Round) -> f64| median(arm.rounds.iter().map(value).collect());
        let (rate, cpu, p99) = (of(|r| r.rate), of(|r| r.cpu), of(|r| r.p99));
        let beside = arms.iter().find(|other| {
            (other.place, other.kind, other.server.name) == (Place::File, arm.kind, arm.server.name)
        });
        let ratios = |value: fn(&Round) -> f64| {
            let rounds = beside.into_iter().flat_map(|file| arm.rounds.iter().zip(&file.rounds));
            of_file(arm.place, rounds.map(|(own, file)| value(own) / value(file)).collect())
        };
        let (all, by_cpu) = (ratios(|round| round.rate), ratios(|round| 1.0 / round.cpu));
        println!(
            "{:<38} {rate:>12.0} {all:>22} {cpu:>11.0} µs {by_cpu:>22} {p99:>7.1} ms",
            arm.name()
        );
    }
}

/// Ratios of rounds: the median and the extremes.
fn of_file(place: Place, mut ratios: Vec<f64>) -> String {
    ratios.sort_by(f64::total_cmp);
    match (place, ratios.first(), ratios.last()) {
        (Place::File, ..) | (_, None, _) | (_, _, None) => String::from("1"),
        (_, Some(least), Some(most)) => {
            format!("{:.2} ({least:.2} to {most:.2})", median(ratios.clone()))
        }
    }
}

impl Arm {
    fn start(
        server: &'static Server,
        kind: &'static str,
        place: Place,
        port: u16,
        home: &Path,
    ) -> Result<Self> {
        let log = File::create(home.join(format!("{port}.log"))).context("make a log")?;
        let errors = log.try_clone().context("share the log")?;
        let mut program = server.program(home, kind, place, port, THREADS)?;
        let process = program
            .current_dir(home)
            .stdin(Stdio::piped())
            .stdout(log)
            .stderr(errors)
            .spawn()
            .with_context(|| format!("start the server: {}", server.name))?;
        let mut arm = Self { server, kind, place, port, process, rounds: Vec::new() };
        arm.wait_until_it_listens(home)?;
        Ok(arm)
    }

    fn name(&self) -> String {
        let place = match self.place {
            Place::File => "key in a file",
            Place::Token => "token",
            Place::TokenWithoutLanes => "token without lanes",
            Place::TokenByProvider => "token by pkcs11-provider",
            Place::TokenByEngine => "token by the engine",
        };
        format!("{}, {}, {place}", self.server.name, self.kind)
    }

    /// It, and nobody else on its port.
    fn wait_until_it_listens(&mut self, home: &Path) -> Result<()> {
        for _ in 0..600 {
            if listens(self.process.id(), self.port) {
                return Ok(());
            }
            if self.process.try_wait().context("look after the server")?.is_some() {
                break;
            }
            std::thread::sleep(Duration::from_millis(50));
        }
        let (log, port) = (home.join(format!("{}.log", self.port)), self.port);
        anyhow::bail!(
            "{} does not listen on port {port} of 127.0.0.1, which must be free:\n{}",
            self.name(),
            fs::read_to_string(&log)?
        )
    }

    /// One round of the client.
    fn round(&self, home: &Path) -> Result<Round> {
        let before = self.cpu()?;
        let output = Command::new(home.join("tls_load"))
            .arg(self.port.to_string())
            .arg(server::certificate(self.kind, self.place))
            .args([THREADS, SECONDS])
            .args(self.server.asked.then_some("page"))
            .current_dir(home)
            .output()
            .context("run the client")?;
        let result: Value =
            serde_json::from_slice(&output.stdout).context("read what the client says")?;
        ensure!(result["failures"] == 0, "{}: handshakes failed: {result}", self.name());
        let number = |key: &str| result[key].as_f64().unwrap_or_default();
        let handshakes = number("handshakes");
        Ok(Round {
            rate: handshakes / number("seconds"),
            cpu: 1e6 * (self.cpu()? - before) / handshakes,
            p99: number("p99_ms"),
        })
    }

    /// The processor time of the server and its workers so far, in seconds.
    fn cpu(&self) -> Result<f64> {
        let own = self.process.id().to_string();
        let mut ticks = 0.0;
        for entry in fs::read_dir("/proc").context("read /proc")?.flatten() {
            // Others come and go.
            let Ok(stat) = fs::read_to_string(entry.path().join("stat")) else { continue };
            let fields = stat.rsplit_once(')').map_or("", |(_, fields)| fields);
            let fields: Vec<&str> = fields.split_whitespace().collect();
            if entry.file_name() == own.as_str() || fields.get(1) == Some(&own.as_str()) {
                let times = fields.iter().skip(11).take(2);
                ticks += times.filter_map(|field| field.parse::<f64>().ok()).sum::<f64>();
            }
        }
        Ok(ticks / TICKS)
    }
}

/// Clock ticks in a second, as /proc counts them on every Linux (proc(5)).
const TICKS: f64 = 100.0;

impl Drop for Arm {
    fn drop(&mut self) {
        // nginx ends its workers where it is asked to end.
        drop(Command::new("kill").arg(self.process.id().to_string()).status());
        drop(self.process.wait());
    }
}

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values.get(values.len() / 2).copied().unwrap_or_default()
}

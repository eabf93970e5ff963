// SPDX-License-Identifier: Apache-2.0
//! A server that runs in a control group of its own, and the clients, which are outside.

use super::counted::Counted;
use crate::clock::children_cpu;
use crate::experiment::Measured;
use crate::meter::{Account, Group, Meter, besides};
use crate::{Failure, Result};
use serde::Deserialize;
use std::io::Write;
use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::time::{Duration, Instant};

/// How long a server may take until it listens.
const UNTIL_LISTENING: Duration = Duration::from_secs(30);
/// How long it may take to end.
const UNTIL_ENDED: Duration = Duration::from_secs(5);

/// A running server; ended when this value is dropped.
#[derive(Debug)]
pub(super) struct Running {
    process: Child,
    daemon: Option<Child>,
    /// Some end when this does.
    input: Option<ChildStdin>,
    /// It says nothing before it is asked for a page.
    asked: bool,
    group: Option<Group>,
    port: u16,
    certificate: PathBuf,
    counters: PathBuf,
}

/// A daemon that has the token of a server, to be started before it.
#[derive(Debug)]
pub(super) struct Held {
    pub(super) command: Command,
    /// There once it serves.
    pub(super) socket: PathBuf,
}

/// What the clients say.
#[derive(Debug, Deserialize)]
struct Load {
    handshakes: f64,
    failures: f64,
    seconds: f64,
    p99_ms: f64,
}

/// A port that is free now.
pub(super) fn free_port() -> Result<u16> {
    Ok(TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?.local_addr()?.port())
}

impl Running {
    /// Starts the command, in the group from its first instruction on.
    ///
    /// # Errors
    /// It ends, or does not listen.
    pub(super) fn start(
        (command, held): (&Command, Option<Held>),
        asked: bool,
        port: u16,
        log: &Path,
        certificate: PathBuf,
        counters: PathBuf,
    ) -> Result<Self> {
        let file = std::fs::File::create(log).map_err(|error| Failure::file(log, &error))?;
        // It waits until it is in its group, and ends with the lab whatever becomes of that.
        let mut waiting = Command::new("setpriv");
        waiting.args(["--pdeathsig", "TERM", "sh", "-c", "read -r go && exec \"$@\"", "sh"]);
        waiting.arg(command.get_program()).args(command.get_args());
        for (name, value) in command.get_envs() {
            waiting.env(name, value.unwrap_or_default());
        }
        waiting.stdin(Stdio::piped()).stdout(file.try_clone()?).stderr(file);
        let group = Group::make().ok();
        let mut process =
            waiting.spawn().map_err(|error| Failure::from(error).context("setpriv"))?;
        let input = process.stdin.take();
        let daemon = None;
        let mut running =
            Self { process, daemon, input, asked, group, port, certificate, counters };
        if let Some(group) = &running.group {
            group.take(running.process.id())?;
        }
        if let Some(held) = held {
            running.hold(held)?;
        }
        if let Some(input) = &mut running.input {
            input.write_all(b"go\n")?;
        }
        let deadline = Instant::now() + UNTIL_LISTENING;
        while TcpStream::connect((Ipv4Addr::LOCALHOST, port)).is_err() {
            let ended = running.process.try_wait()?;
            if ended.is_some() || Instant::now() > deadline {
                let said = std::fs::read_to_string(log).unwrap_or_default();
                let errors = std::fs::read_to_string(log.with_file_name("error.log"));
                let said = format!("{said}{}", errors.unwrap_or_default());
                let said = said.trim().lines().last().unwrap_or("it does not listen").to_owned();
                return Err(Failure::new(said));
            }
            std::thread::sleep(Duration::from_millis(10));
        }
        Ok(running)
    }

    /// Starts the daemon, in the same group.
    fn hold(&mut self, Held { mut command, socket }: Held) -> Result<()> {
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::inherit());
        std::fs::remove_file(&socket).ok();
        let daemon = self.daemon.insert(command.spawn()?);
        if let Some(group) = &self.group {
            group.take(daemon.id())?;
        }
        let deadline = Instant::now() + UNTIL_LISTENING;
        while !socket.exists() {
            if daemon.try_wait()?.is_some() || Instant::now() > deadline {
                return Err(Failure::new("metaslotd does not serve"));
            }
            std::thread::sleep(Duration::from_millis(10));
        }
        Ok(())
    }

    /// What it has: a process, those that it started, and the daemon.
    fn processes(&self) -> Vec<u32> {
        let own = self.process.id();
        let daemon = self.daemon.as_ref().map(Child::id);
        let entries = std::fs::read_dir("/proc").into_iter().flatten().flatten();
        let children = entries.filter_map(|entry| {
            let pid = entry.file_name().to_str()?.parse::<u32>().ok()?;
            let stat = std::fs::read_to_string(entry.path().join("stat")).ok()?;
            let parent = stat.rsplit_once(')')?.1.split_ascii_whitespace().nth(1)?;
            (parent.parse() == Ok(own)).then_some(pid)
        });
        std::iter::once(own).chain(daemon).chain(children).collect()
    }

    /// One run of the clients.
    ///
    /// # Errors
    /// A handshake failed.
    pub(super) fn sample(
        &self,
        client: &Path,
        connections: usize,
        seconds: f64,
        meter: &Meter,
    ) -> Result<(Measured, Counted)> {
        let before = Counted::of(&self.counters);
        let processes = self.processes();
        let account = self.group.as_ref().map_or(Account::Processes(&processes), Account::Group);
        let mut clients = Command::new(client);
        clients.arg(self.port.to_string()).arg(&self.certificate);
        clients.args([connections.to_string(), seconds.to_string()]);
        clients.args(self.asked.then_some("page"));
        // The clients know nothing of the token.
        clients.env("OPENSSL_CONF", "/dev/null").stdin(Stdio::null());
        let own = children_cpu();
        let window = meter.open(account)?;
        let output = clients.output()?;
        let mut measured = window.close(1.0)?;
        let load: Load = serde_json::from_slice(&output.stdout).map_err(|error| {
            let errors = String::from_utf8_lossy(&output.stderr);
            Failure::new(format!("the clients: {error} {}", errors.trim()))
        })?;
        if load.failures > 0.0 || load.handshakes < 1.0 {
            let (failed, good) = (load.failures, load.handshakes);
            return Err(Failure::new(format!("{failed} handshakes failed, {good} did not")));
        }
        let clients = children_cpu().saturating_sub(own).as_secs_f64() * 1e9;
        besides(&mut measured, clients);
        measured.work = load.handshakes;
        measured.wall_ns = load.seconds * 1e9;
        measured.counters.insert("clients_ns".to_owned(), clients);
        measured.counters.insert(super::rows::P99.to_owned(), load.p99_ms);
        Ok((measured, Counted::of(&self.counters).since(before)))
    }

    /// Where its CPU time is read.
    pub(super) fn source() -> String {
        let group = Group::make();
        let processes = || Account::Processes(&[]).source();
        group.map_or_else(|_| processes(), |group| Account::Group(&group).source())
    }
}

/// Servers end their workers where they are asked to end.
fn end(process: &mut Child) {
    if !matches!(process.try_wait(), Ok(None)) {
        return;
    }
    let pid = i32::try_from(process.id()).ok().and_then(rustix::process::Pid::from_raw);
    pid.map(|pid| rustix::process::kill_process(pid, rustix::process::Signal::TERM).ok());
    let deadline = Instant::now() + UNTIL_ENDED;
    while Instant::now() < deadline {
        if !matches!(process.try_wait(), Ok(None)) {
            return;
        }
        std::thread::sleep(Duration::from_millis(10));
    }
    process.kill().ok();
    process.wait().ok();
}

impl Drop for Running {
    fn drop(&mut self) {
        end(&mut self.process);
        self.daemon.as_mut().map(end);
    }
}

// SPDX-License-Identifier: Apache-2.0
//! Another generator beside the own one, iperf3 or uperf: the same writes, buffers, congestion control and
//! CPUs, in a control group of its own, measured from outside in the same kind of window. What it prints
//! itself is kept.

use super::cpus::Cpus;
use super::load::Load;
use super::pair::Ledger;
use super::part::Part;
use super::window::{self, Timing};
use crate::experiment::Measured;
use crate::meter::{Group, Meter};
use crate::role::Role;
use crate::{Failure, Result};
use rustix::process::{Pid, Signal, kill_process};
use std::io::Read;
use std::net::{Ipv4Addr, TcpListener};
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::rc::Rc;
use std::thread::sleep;
use std::time::{Duration, Instant};

/// It starts within this, or not at all.
const PATIENCE: Duration = Duration::from_secs(5);

/// Other generators of TCP traffic.
#[derive(Clone, Copy, Debug, Eq, PartialEq, clap::ValueEnum)]
pub enum Beside {
    /// iperf3, which must be installed; its own output is kept in the experiment
    Iperf3,
    /// uperf, which must be installed; its profile and its output are kept in the experiment. It cannot choose
    /// the congestion control, so both take the system's
    Uperf,
}

impl Beside {
    /// Its arm, and the program.
    const fn name(self) -> &'static str {
        match self {
            Self::Iperf3 => "iperf3",
            Self::Uperf => "uperf",
        }
    }

    /// More streams it does not have.
    pub(super) const fn streams(self) -> usize {
        match self {
            Self::Iperf3 => 128,
            Self::Uperf => 512,
        }
    }

    /// Whether it can be told which congestion control to use.
    pub(super) const fn chooses_congestion(self) -> bool {
        matches!(self, Self::Iperf3)
    }

    const fn version_flag(self) -> &'static str {
        match self {
            Self::Iperf3 => "--version",
            Self::Uperf => "-V",
        }
    }

    const fn hint(self) -> &'static str {
        match self {
            Self::Iperf3 => "install it (Debian: apt-get install iperf3), or leave out --beside",
            Self::Uperf => "put it on the PATH (https://uperf.org), or leave out --beside",
        }
    }

    const fn ending(self) -> &'static str {
        match self {
            Self::Iperf3 => "json",
            Self::Uperf => "txt",
        }
    }

    fn server(self, port: u16) -> Vec<String> {
        let port = port.to_string();
        let arguments: &[&str] = match self {
            Self::Iperf3 => &["-s", "-1", "-B", "127.0.0.1", "-p", &port],
            Self::Uperf => &["-s", "-P", &port],
        };
        arguments.iter().map(|&argument| argument.to_owned()).collect()
    }
}

/// The program as it was found, and everything that it has printed.
#[derive(Debug)]
pub(super) struct Other {
    pub(super) kind: Beside,
    pub(super) version: String,
    runs: usize,
    raw: Vec<(String, Vec<u8>)>,
}

/// A process that is killed when it is no longer needed.
struct Running(Child);

impl Drop for Running {
    fn drop(&mut self) {
        self.0.kill().ok();
        self.0.wait().ok();
    }
}

/// The profile of a run of uperf, a file that goes away.
struct Profile(PathBuf);

impl Drop for Profile {
    fn drop(&mut self) {
        std::fs::remove_file(&self.0).ok();
    }
}

impl Other {
    /// Looks for it.
    pub(super) fn find(kind: Beside) -> Result<Self> {
        let output = Command::new(kind.name()).arg(kind.version_flag()).output();
        let output = output
            .map_err(|error| Failure::new(format!("{}: {error}", kind.name())).hint(kind.hint()))?;
        let text = String::from_utf8_lossy(&output.stdout);
        let version = text.lines().find(|line| !line.trim().is_empty()).unwrap_or("unknown");
        Ok(Self { kind, version: version.trim().to_owned(), runs: 0, raw: Vec::new() })
    }

    pub(super) const fn name(&self) -> &'static str {
        self.kind.name()
    }

    /// One run, of which the window counts.
    pub(super) fn sample(
        &mut self,
        load: &Load,
        cpus: Cpus,
        timing: Timing,
        meter: &Meter,
    ) -> Result<Measured> {
        let (kind, group, port) = (self.kind, Group::make().ok().map(Rc::new), free_port()?);
        let server = start(kind.name(), kind.server(port), group.as_deref())?;
        await_listener(kind.name(), port)?;
        // What it starts runs where it runs.
        cpus.place([server.0.id(); 2])?;
        let number = self.runs;
        self.runs += 1;
        let (arguments, profile) = match kind {
            Beside::Iperf3 => (client(load, port), None),
            Beside::Uperf => {
                let profile = self.profile(load, number)?;
                let path = profile.0.display().to_string();
                (vec!["-m".to_owned(), path, "-P".to_owned(), port.to_string()], Some(profile))
            }
        };
        let mut client = start(kind.name(), arguments, group.as_deref())?;
        cpus.place([client.0.id(), server.0.id()])?;
        let receiver = match kind {
            Beside::Iperf3 => server.0.id(),
            Beside::Uperf => child_of(server.0.id())?,
        };
        let pids = [client.0.id(), receiver];
        let ledger = Ledger::new(pids, group);
        // It needs a moment of its own before it sends.
        let timing = Timing { steps: 80, ..timing };
        let measured = window::sample(meter, ledger.account(), pids, timing);
        let printed = end(&mut client);
        kill(receiver, Signal::KILL);
        // The group can go when all of them have.
        drop((client, server, profile));
        drop(ledger);
        self.raw.push((format!("adapters/{}-{number:03}.{}", kind.name(), kind.ending()), printed));
        measured
    }

    /// Writes the profile of a run, and keeps it.
    fn profile(&mut self, load: &Load, number: usize) -> Result<Profile> {
        let text = profile(load);
        let name = format!("metaslot-lab-{}-{number}.xml", std::process::id());
        let profile = Profile(std::env::temp_dir().join(name));
        std::fs::write(&profile.0, &text).map_err(|error| Failure::file(&profile.0, &error))?;
        self.raw.push((format!("adapters/uperf-{number:03}.xml"), text.into_bytes()));
        Ok(profile)
    }

    /// What it printed, run by run.
    pub(super) fn printed(&mut self) -> Vec<(String, Vec<u8>)> {
        std::mem::take(&mut self.raw)
    }
}

/// iperf3's client.
fn client(load: &Load, port: u16) -> Vec<String> {
    let mut arguments: Vec<String> =
        ["-c", "127.0.0.1", "-J", "-i", "0", "-t", "3600"].map(str::to_owned).into();
    let mut with = |name: &str, value: String| arguments.extend([name.to_owned(), value]);
    with("-p", port.to_string());
    with("-l", load.write.to_string());
    with("-P", load.connections.to_string());
    if let Some(bytes) = load.buffer {
        with("-w", bytes.to_string());
    }
    if let Some(congestion) = &load.congestion {
        with("-C", congestion.clone());
    }
    arguments
}

/// uperf's profile; its reader takes one tag a line.
fn profile(load: &Load) -> String {
    let buffer = load.buffer.map_or_else(String::new, |bytes| format!(" wndsz={bytes}"));
    format!(
        "<?xml version=\"1.0\"?>\n<profile name=\"metaslot\">\n<group nthreads=\"{}\">\n\
         <transaction iterations=\"1\">\n\
         <flowop type=\"connect\" options=\"remotehost=127.0.0.1 protocol=tcp{buffer}\"/>\n</transaction>\n\
         <transaction duration=\"3600s\">\n<flowop type=\"write\" options=\"size={}\"/>\n</transaction>\n\
         </group>\n</profile>\n",
        load.connections, load.write
    )
}

/// The process that a server has started for this run.
fn child_of(server: u32) -> Result<u32> {
    let began = Instant::now();
    while began.elapsed() < PATIENCE {
        let path = format!("/proc/{server}/task/{server}/children");
        let text = std::fs::read_to_string(path).unwrap_or_default();
        if let Some(child) = text.split_whitespace().next().and_then(|pid| pid.parse().ok()) {
            return Ok(child);
        }
        sleep(Duration::from_millis(2));
    }
    Err(Failure::new("the server has started no process for its client"))
}

fn kill(pid: u32, signal: Signal) {
    if let Some(pid) = i32::try_from(pid).ok().and_then(Pid::from_raw) {
        kill_process(pid, signal).ok();
    }
}

/// Starts it as a process that ends with the lab, away from the terminal's ^C.
fn start(name: &str, arguments: Vec<String>, group: Option<&Group>) -> Result<Running> {
    let mut command = Role::Tcp(Part::Becomes { program: name.to_owned(), arguments }).command()?;
    command.process_group(0).stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::null());
    let running = Running(command.spawn()?);
    if let Some(group) = group {
        group.take(running.0.id())?;
    }
    Ok(running)
}

/// Asks it to end, and reads what it has to say then.
fn end(client: &mut Running) -> Vec<u8> {
    kill(client.0.id(), Signal::TERM);
    let mut printed = Vec::new();
    if let Some(mut output) = client.0.stdout.take() {
        output.read_to_end(&mut printed).ok();
    }
    printed
}

/// A port that is free now.
fn free_port() -> Result<u16> {
    Ok(TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?.local_addr()?.port())
}

/// Waits until a process listens there: a try to connect would be taken for the test.
fn await_listener(name: &str, port: u16) -> Result<()> {
    let (began, end) = (Instant::now(), format!(":{port:04X}"));
    let listens = |line: &str| {
        let fields: Vec<&str> = line.split_ascii_whitespace().take(4).collect();
        matches!(fields[..], [_, local, _, "0A"] if local.ends_with(&end))
    };
    while began.elapsed() < PATIENCE {
        let tables = ["/proc/net/tcp", "/proc/net/tcp6"].map(std::fs::read_to_string);
        if tables.iter().flatten().any(|table| table.lines().any(listens)) {
            return Ok(());
        }
        sleep(Duration::from_millis(2));
    }
    Err(Failure::new(format!("{name} does not listen after {} s", PATIENCE.as_secs())))
}

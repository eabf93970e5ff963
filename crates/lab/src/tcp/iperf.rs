// SPDX-License-Identifier: Apache-2.0
//! iperf3 as a second generator beside the own one: the same writes, buffers, congestion control and
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
use std::process::{Child, Command, Stdio};
use std::rc::Rc;
use std::thread::sleep;
use std::time::{Duration, Instant};

/// Its arm, and the program.
pub(super) const NAME: &str = "iperf3";
/// More streams it does not have.
pub(super) const STREAMS: usize = 128;
/// It starts within this, or not at all.
const PATIENCE: Duration = Duration::from_secs(5);

/// The program as it was found, and everything that it has printed.
#[derive(Debug)]
pub(super) struct Iperf {
    pub(super) version: String,
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

impl Iperf {
    /// Looks for it.
    pub(super) fn find() -> Result<Self> {
        let output = Command::new(NAME).arg("--version").output().map_err(|error| {
            Failure::new(format!("{NAME}: {error}"))
                .hint("install it (Debian: apt-get install iperf3), or leave out --beside")
        })?;
        let text = String::from_utf8_lossy(&output.stdout);
        let version = text.lines().next().unwrap_or("unknown").trim().to_owned();
        Ok(Self { version, raw: Vec::new() })
    }

    /// One run, of which the window counts.
    pub(super) fn sample(
        &mut self,
        load: &Load,
        cpus: Cpus,
        timing: Timing,
        meter: &Meter,
    ) -> Result<Measured> {
        let group = Group::make().ok().map(Rc::new);
        let port = free_port()?;
        let server = ["-s", "-1", "-B", "127.0.0.1", "-p", &port.to_string()].map(str::to_owned);
        let server = start(server.to_vec(), group.as_deref())?;
        await_listener(port)?;
        let mut client = start(arguments(load, port), group.as_deref())?;
        let pids = [client.0.id(), server.0.id()];
        cpus.place(pids)?;
        let ledger = Ledger::new(pids, group);
        // It needs a moment of its own before it sends.
        let timing = Timing { steps: 80, ..timing };
        let measured = window::sample(meter, ledger.account(), pids, timing);
        let printed = end(&mut client);
        let number = self.raw.len();
        self.raw.push((format!("adapters/{NAME}-{number:03}.json"), printed));
        measured
    }

    /// What it printed, run by run.
    pub(super) fn printed(&mut self) -> Vec<(String, Vec<u8>)> {
        std::mem::take(&mut self.raw)
    }
}

fn arguments(load: &Load, port: u16) -> Vec<String> {
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

/// Starts it as a process that ends with the lab, away from the terminal's ^C.
fn start(arguments: Vec<String>, group: Option<&Group>) -> Result<Running> {
    let mut command = Role::Tcp(Part::Becomes { program: NAME.to_owned(), arguments }).command()?;
    command.process_group(0).stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::null());
    let running = Running(command.spawn()?);
    if let Some(group) = group {
        group.take(running.0.id())?;
    }
    Ok(running)
}

/// Asks it to end, and reads what it has to say then.
fn end(client: &mut Running) -> Vec<u8> {
    if let Some(pid) = i32::try_from(client.0.id()).ok().and_then(Pid::from_raw) {
        kill_process(pid, Signal::TERM).ok();
    }
    let mut printed = Vec::new();
    if let Some(mut output) = client.0.stdout.take() {
        output.read_to_end(&mut printed).ok();
    }
    printed
}

/// A port that nobody has now.
fn free_port() -> Result<u16> {
    Ok(TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?.local_addr()?.port())
}

/// Waits until somebody listens there: a try to connect would be taken for the test.
fn await_listener(port: u16) -> Result<()> {
    let (began, wanted) = (Instant::now(), format!(":{port:04X} 00000000:0000 0A "));
    while began.elapsed() < PATIENCE {
        if std::fs::read_to_string("/proc/net/tcp").unwrap_or_default().contains(&wanted) {
            return Ok(());
        }
        sleep(Duration::from_millis(2));
    }
    Err(Failure::new(format!("{NAME} does not listen after {} s", PATIENCE.as_secs())))
}

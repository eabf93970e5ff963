// SPDX-License-Identifier: Apache-2.0
//! Programs of the demonstration: timed, their output kept, and shown when they fail.

use std::ffi::OsStr;
use std::fs::File;
use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};

/// How long a server may take until it listens.
const UNTIL_LISTENING: Duration = Duration::from_secs(30);

/// A program about to run.
pub(crate) struct Program(Command);

/// What a program that succeeded wrote, which process it was, and how long it took.
pub(crate) struct Timed {
    pub(crate) text: String,
    pub(crate) pid: u32,
    pub(crate) took: Duration,
}

impl Program {
    pub(crate) fn new(program: impl AsRef<OsStr>, home: &Path) -> Self {
        let mut command = Command::new(program);
        command.current_dir(home).stdin(Stdio::null());
        Self(command)
    }

    pub(crate) fn arg(mut self, argument: impl AsRef<OsStr>) -> Self {
        self.0.arg(argument);
        self
    }

    pub(crate) fn args<A: AsRef<OsStr>>(mut self, arguments: impl IntoIterator<Item = A>) -> Self {
        self.0.args(arguments);
        self
    }

    /// Arguments parted at blanks.
    pub(crate) fn line(self, line: &str) -> Self {
        self.args(line.split_whitespace())
    }

    pub(crate) fn env(mut self, name: &str, value: impl AsRef<OsStr>) -> Self {
        self.0.env(name, value);
        self
    }

    /// Runs it to its end, which has to be success.
    pub(crate) fn run(mut self) -> Result<Timed> {
        let started = Instant::now();
        self.0.stdout(Stdio::piped()).stderr(Stdio::piped());
        let child = self.0.spawn().with_context(|| format!("run {:?}", self.0))?;
        let pid = child.id();
        let output = child.wait_with_output().with_context(|| format!("run {:?}", self.0))?;
        let took = started.elapsed();
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        if !output.status.success() {
            let errors = String::from_utf8_lossy(&output.stderr);
            bail!("{:?} ended with {}\n{text}{errors}", self.0, output.status);
        }
        Ok(Timed { text, pid, took })
    }

    /// Starts a server and waits until it listens on a loopback port.
    pub(crate) fn serve(mut self, port: u16, log: &Path) -> Result<Server> {
        let file = File::create(log).with_context(|| format!("make {}", log.display()))?;
        let errors = file.try_clone().context("share the log")?;
        // s_server reads commands from standard input, and ends when that does.
        let child = self
            .0
            .stdin(Stdio::piped())
            .stdout(file)
            .stderr(errors)
            .spawn()
            .with_context(|| format!("start {:?}", self.0))?;
        let mut server = Server(child);
        let deadline = Instant::now() + UNTIL_LISTENING;
        while TcpStream::connect((Ipv4Addr::LOCALHOST, port)).is_err() {
            if let Some(status) = server.0.try_wait().context("wait")? {
                let told = std::fs::read_to_string(log).unwrap_or_default();
                bail!("{:?} ended with {status}\n{told}", self.0);
            }
            ensure!(Instant::now() < deadline, "{:?} does not listen", self.0);
            sleep(Duration::from_millis(5));
        }
        Ok(server)
    }
}

/// A server that ends with this value.
pub(crate) struct Server(Child);

impl Server {
    pub(crate) fn id(&self) -> u32 {
        self.0.id()
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        drop(self.0.kill());
        drop(self.0.wait());
    }
}

/// A loopback port that is free.
pub(crate) fn free_port() -> Result<u16> {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).context("bind a loopback port")?;
    Ok(listener.local_addr().context("read the port")?.port())
}

// SPDX-License-Identifier: Apache-2.0
//! Programs run with a time limit and with their output kept, and servers that end with the test.

use std::ffi::{OsStr, OsString};
use std::io::{Read, Write as _};
use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::os::unix::process::{CommandExt as _, ExitStatusExt as _};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};

/// How long a program may take unless a test says otherwise.
const LIMIT: Duration = Duration::from_secs(120);
/// How long a server may take until it listens.
const UNTIL_LISTENING: Duration = Duration::from_secs(60);
/// How long a server may take to end when it is asked to.
const UNTIL_ENDED: Duration = Duration::from_secs(5);
/// How often a running program is looked at.
const PAUSE: Duration = Duration::from_millis(5);

/// A program about to be run.
#[derive(Debug)]
pub struct Program {
    command: Command,
    input: Vec<u8>,
    limit: Duration,
}

/// What a program wrote and how it ended.
#[derive(Debug)]
pub struct Output {
    /// Standard output.
    pub stdout: Vec<u8>,
    /// Standard error.
    pub stderr: Vec<u8>,
    /// The exit status; 128 and the signal's number, when a signal ended it.
    pub status: i32,
    shown: String,
}

impl Program {
    /// `name` from the search path, with nothing in its environment but what every program needs.
    pub fn new(name: impl AsRef<OsStr>) -> Self {
        let path = find_program(name.as_ref()).unwrap_or_else(|| PathBuf::from(name.as_ref()));
        let mut command = Command::new(path);
        command.env_clear().env("LC_ALL", "C.UTF-8");
        for kept in ["PATH", "JAVA_HOME"] {
            if let Some(value) = std::env::var_os(kept) {
                command.env(kept, value);
            }
        }
        Self { command, input: Vec::new(), limit: LIMIT }
    }

    /// One more argument.
    #[must_use]
    pub fn arg(mut self, argument: impl AsRef<OsStr>) -> Self {
        self.command.arg(argument);
        self
    }

    /// More arguments.
    #[must_use]
    pub fn args<A: AsRef<OsStr>>(mut self, arguments: impl IntoIterator<Item = A>) -> Self {
        self.command.args(arguments);
        self
    }

    /// More arguments, parted at blanks: for lines without any value that contains one.
    #[must_use]
    pub fn line(self, line: &str) -> Self {
        self.args(line.split_whitespace())
    }

    /// One variable of the environment.
    #[must_use]
    pub fn env(mut self, name: &str, value: impl AsRef<OsStr>) -> Self {
        self.command.env(name, value);
        self
    }

    /// What it reads from standard input.
    #[must_use]
    pub fn input(mut self, input: impl Into<Vec<u8>>) -> Self {
        self.input = input.into();
        self
    }

    /// Where it runs.
    #[must_use]
    pub fn directory(mut self, directory: &Path) -> Self {
        self.command.current_dir(directory);
        self
    }

    /// How long it may take.
    #[must_use]
    pub fn limit(mut self, limit: Duration) -> Self {
        self.limit = limit;
        self
    }

    /// Runs it to its end.
    ///
    /// # Errors
    ///
    /// When it cannot be started or takes too long. Its exit status is not looked at.
    pub fn output(mut self) -> Result<Output> {
        let shown = shown(&self.command);
        let mut child = self
            .command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .with_context(|| format!("start {shown}"))?;
        let stdout = reader(child.stdout.take());
        let stderr = reader(child.stderr.take());
        if let Some(mut stdin) = child.stdin.take() {
            // A program that does not want its input closes the pipe: that is its right.
            drop(stdin.write_all(&self.input));
        }
        let deadline = Instant::now() + self.limit;
        let status = loop {
            if let Some(status) = child.try_wait().context("wait")? {
                break status;
            }
            if Instant::now() > deadline {
                drop(child.kill());
                drop(child.wait());
                bail!(
                    "{shown} took longer than {:?}\n{}{}",
                    self.limit,
                    lossy(&stdout.map_or_else(Vec::new, joined)),
                    lossy(&stderr.map_or_else(Vec::new, joined))
                );
            }
            std::thread::sleep(PAUSE);
        };
        let status = status.code().unwrap_or_else(|| 128 + status.signal().unwrap_or_default());
        let (stdout, stderr) =
            (stdout.map_or_else(Vec::new, joined), stderr.map_or_else(Vec::new, joined));
        Ok(Output { stdout, stderr, status, shown })
    }

    /// Runs it to its end, which has to be success.
    ///
    /// # Errors
    ///
    /// As [`Program::output`], and when its exit status is not 0: then with all it wrote.
    pub fn run(self) -> Result<Output> {
        let output = self.output()?;
        ensure!(output.status == 0, "{}", output.told());
        Ok(output)
    }

    /// Starts it as a server on a loopback port, and waits until it listens.
    ///
    /// # Errors
    ///
    /// When it cannot be started or ends before it listens: then with what it wrote.
    pub fn serve(self, port: u16, home: &Path) -> Result<Server> {
        let listens = || TcpStream::connect((Ipv4Addr::LOCALHOST, port)).is_ok();
        self.serve_when(listens, home.join(format!("server-{port}.log")))
    }

    /// The same on a Unix socket.
    ///
    /// # Errors
    ///
    /// As [`Program::serve`].
    pub fn serve_socket(self, socket: &Path, home: &Path) -> Result<Server> {
        self.serve_when(|| socket.exists(), home.join("server.log"))
    }

    fn serve_when(mut self, listens: impl Fn() -> bool, log: PathBuf) -> Result<Server> {
        let shown = shown(&self.command);
        let file = std::fs::File::create(&log).context("make the server's log")?;
        let child = self
            .command
            .stdin(Stdio::piped())
            .stdout(file.try_clone().context("share the server's log")?)
            .stderr(file)
            // Some servers end their whole group.
            .process_group(0)
            .spawn()
            .with_context(|| format!("start {shown}"))?;
        let mut server = Server { child, log };
        let deadline = Instant::now() + UNTIL_LISTENING;
        loop {
            if listens() {
                return Ok(server);
            }
            if let Some(status) = server.child.try_wait().context("wait")? {
                bail!("{shown} ended with {status}\n{}", server.log());
            }
            ensure!(Instant::now() < deadline, "{shown} does not listen\n{}", server.log());
            std::thread::sleep(PAUSE);
        }
    }
}

impl Output {
    /// Standard output as text.
    #[must_use]
    pub fn text(&self) -> String {
        lossy(&self.stdout)
    }

    /// Both outputs as text.
    #[must_use]
    pub fn all(&self) -> String {
        format!("{}{}", lossy(&self.stdout), lossy(&self.stderr))
    }

    /// The command, its status and all it wrote.
    #[must_use]
    pub fn told(&self) -> String {
        format!("{} ended with {}\n{}", self.shown, self.status, self.all())
    }

    /// Itself, when the output has every one of `words`.
    ///
    /// # Errors
    ///
    /// When one of them is missing: then with all it wrote.
    pub fn with(self, words: &[&str]) -> Result<Self> {
        let all = self.all();
        if let Some(missing) = words.iter().find(|word| !all.contains(**word)) {
            bail!("no {missing:?} in the output of {}", self.told());
        }
        Ok(self)
    }
}

/// A server that the test started; it ends with this value.
#[derive(Debug)]
pub struct Server {
    child: Child,
    log: PathBuf,
}

impl Server {
    /// What it has written so far.
    #[must_use]
    pub fn log(&self) -> String {
        std::fs::read(&self.log).map(|bytes| lossy(&bytes)).unwrap_or_default()
    }
}

impl Server {
    /// Its process.
    #[must_use]
    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Sends it a signal, such as `HUP`.
    ///
    /// # Errors
    ///
    /// When it has ended.
    pub fn signal(&self, name: &str) -> Result<()> {
        let pid = self.pid().to_string();
        Program::new("kill").args(["-s", name, &pid]).run().map(drop)
    }

    /// Whether it ended before the deadline.
    fn ends(&mut self, within: Duration) -> bool {
        let deadline = Instant::now() + within;
        while Instant::now() < deadline {
            if !matches!(self.child.try_wait(), Ok(None)) {
                return true;
            }
            std::thread::sleep(PAUSE);
        }
        false
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // One that has children ends them.
        if self.signal("TERM").is_ok() && self.ends(UNTIL_ENDED) {
            return;
        }
        drop(self.child.kill());
        drop(self.child.wait());
    }
}

/// Where a program is: a path as it stands, a name in the search path and the system's directories.
pub fn find_program(name: impl AsRef<OsStr>) -> Option<PathBuf> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&path)
        .chain(["/usr/sbin".into(), "/sbin".into()])
        .map(|directory| directory.join(name.as_ref()))
        .find(|file| file.is_file())
}

/// A loopback port that is free.
///
/// # Errors
///
/// When there is none.
pub fn free_port() -> Result<u16> {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).context("bind a loopback port")?;
    Ok(listener.local_addr().context("read the port")?.port())
}

fn reader(source: Option<impl Read + Send + 'static>) -> Option<JoinHandle<Vec<u8>>> {
    let mut source = source?;
    Some(std::thread::spawn(move || {
        let mut bytes = Vec::new();
        // What was read before an error is still worth showing.
        drop(source.read_to_end(&mut bytes));
        bytes
    }))
}

fn joined(handle: JoinHandle<Vec<u8>>) -> Vec<u8> {
    handle.join().unwrap_or_default()
}

fn shown(command: &Command) -> String {
    let words: Vec<OsString> = std::iter::once(command.get_program())
        .chain(command.get_args())
        .map(OsStr::to_os_string)
        .collect();
    words.join(OsStr::new(" ")).to_string_lossy().into_owned()
}

fn lossy(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

// SPDX-License-Identifier: Apache-2.0
//! A module in a process of its own: `p11-kit remote`, and a socket to it.
//!
//! One call is in it at a time. Where it dies or does not answer it is killed, and the next call finds that nothing runs.

use metaslot_ck::Error;
use metaslot_client::{Carrier, Message};
use metaslot_memory::PerProcess;
use std::io::{ErrorKind, Read, Write};
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::os::unix::process::CommandExt as _;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// Set in the process, in which no module is isolated again.
const INSIDE: &str = "METASLOT_ISOLATED";
/// The newest version of the protocol that is known here.
const VERSION: u8 = 2;
/// The longest answer, in bytes.
const LONGEST: usize = 1 << 26;
/// How long a process has to end by itself.
const PATIENCE: Duration = Duration::from_secs(2);

/// How a module is isolated.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Isolation {
    /// p11-kit's program.
    pub program: PathBuf,
    /// How long a call may take.
    pub limit: Duration,
}

/// What is known of the process of one module.
#[derive(Debug)]
pub(crate) struct Isolated {
    isolation: Isolation,
    module: PathBuf,
    /// A forked child has none.
    process: PerProcess<Mutex<Option<Process>>>,
}

#[derive(Debug)]
struct Process {
    child: Child,
    socket: UnixStream,
    /// Of requests.
    number: u32,
}

/// Why there is no answer.
enum Failure {
    /// The process has gone.
    Gone,
    /// It says nothing.
    Silent,
    /// What it says is too long.
    Wrong,
}

impl From<std::io::Error> for Failure {
    fn from(error: std::io::Error) -> Self {
        match error.kind() {
            ErrorKind::WouldBlock | ErrorKind::TimedOut => Self::Silent,
            _ => Self::Gone,
        }
    }
}

impl Isolated {
    pub(crate) fn new(isolation: &Isolation, module: PathBuf) -> Result<Self, String> {
        let program = &isolation.program;
        if std::env::var_os(INSIDE).is_some() {
            return Err(String::from("is isolated in a process that is for another module"));
        }
        if !program.is_file() {
            return Err(format!("is to be isolated, and there is no {}", program.display()));
        }
        if !module.is_file() {
            return Err(format!("there is no {}", module.display()));
        }
        let isolation = isolation.clone();
        Ok(Self { isolation, module, process: PerProcess::new(|_| Mutex::default()) })
    }

    fn process(&self) -> MutexGuard<'static, Option<Process>> {
        self.process.get().lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn started(&self, until: Instant) -> Result<(Process, u8), Failure> {
        let (mut socket, theirs) = UnixStream::pair()?;
        let theirs = OwnedFd::from(theirs);
        let mut command = Command::new(&self.isolation.program);
        command.arg("remote").arg(&self.module).env(INSIDE, "1");
        // A signal from the terminal is for the host.
        command.process_group(0).stdin(theirs.try_clone()?).stdout(theirs).stderr(Stdio::null());
        let child = command.spawn()?;
        // The other end is the child's alone: when it has gone, reading ends.
        drop(command);
        let mut version = [0];
        let greeted = put(&mut socket, &[VERSION], until)
            .and_then(|()| get(&mut socket, &mut version, until));
        let process = Process { child, socket, number: 0 };
        match greeted {
            Ok(()) => Ok((process, version[0])),
            Err(failure) => {
                process.kill();
                Err(failure)
            }
        }
    }

    fn until(&self) -> Instant {
        Instant::now() + self.isolation.limit
    }
}

impl Carrier for Isolated {
    fn start(&self) -> Result<u8, Error> {
        let mut process = self.process();
        if process.is_some() {
            return Err(Error::CRYPTOKI_ALREADY_INITIALIZED);
        }
        let (new, version) = self.started(self.until()).map_err(|_| Error::DEVICE_REMOVED)?;
        *process = Some(new);
        Ok(version)
    }

    fn end(&self) {
        if let Some(process) = self.process().take() {
            process.end();
        }
    }

    fn exchange(&self, request: &[u8]) -> Result<Message, Error> {
        let mut process = self.process();
        let running = process.as_mut().ok_or(Error::CRYPTOKI_NOT_INITIALIZED)?;
        running.exchange(request, self.until()).map_err(|failure| {
            process.take().into_iter().for_each(Process::kill);
            match failure {
                Failure::Gone => Error::CRYPTOKI_NOT_INITIALIZED,
                Failure::Silent => Error::FUNCTION_CANCELED,
                Failure::Wrong => Error::DEVICE_ERROR,
            }
        })
    }
}

impl Process {
    fn exchange(&mut self, request: &[u8], until: Instant) -> Result<Message, Failure> {
        self.number = self.number.wrapping_add(1);
        let length = u32::try_from(request.len()).map_err(|_| Failure::Wrong)?;
        let header = [self.number, 0, length].map(u32::to_be_bytes);
        put(&mut self.socket, header.as_flattened(), until)?;
        put(&mut self.socket, request, until)?;
        let mut header = [0; 12];
        get(&mut self.socket, &mut header, until)?;
        let [number, options, length] = *header.as_chunks().0 else { return Err(Failure::Wrong) };
        if u32::from_be_bytes(number) != self.number {
            return Err(Failure::Wrong);
        }
        self.part(options, until)?;
        self.part(length, until)
    }

    /// One part of an answer, of the length that its header says.
    fn part(&mut self, length: [u8; 4], until: Instant) -> Result<Message, Failure> {
        let length = usize::try_from(u32::from_be_bytes(length)).ok();
        let length = length.filter(|length| *length <= LONGEST).ok_or(Failure::Wrong)?;
        let mut part = Message::zeroed(length).ok_or(Failure::Wrong)?;
        get(&mut self.socket, part.as_mut(), until).map(|()| part)
    }

    /// It ends when nothing more comes, and if not it is killed.
    fn end(mut self) {
        let end = Instant::now() + PATIENCE;
        self.socket.shutdown(std::net::Shutdown::Both).ok();
        while Instant::now() < end {
            if !matches!(self.child.try_wait(), Ok(None)) {
                return;
            }
            std::thread::sleep(Duration::from_millis(1));
        }
        self.kill();
    }

    fn kill(mut self) {
        self.child.kill().ok();
        self.child.wait().ok();
    }
}

/// What is left until then.
fn left(until: Instant) -> Result<Option<Duration>, Failure> {
    let left = until.saturating_duration_since(Instant::now());
    if left.is_zero() { Err(Failure::Silent) } else { Ok(Some(left)) }
}

fn put(socket: &mut UnixStream, mut bytes: &[u8], until: Instant) -> Result<(), Failure> {
    while !bytes.is_empty() {
        socket.set_write_timeout(left(until)?)?;
        match socket.write(bytes) {
            Ok(0) => return Err(Failure::Gone),
            Ok(written) => bytes = &bytes[written..],
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            Err(error) => return Err(error.into()),
        }
    }
    Ok(())
}

fn get(socket: &mut UnixStream, mut room: &mut [u8], until: Instant) -> Result<(), Failure> {
    while !room.is_empty() {
        socket.set_read_timeout(left(until)?)?;
        match socket.read(room) {
            Ok(0) => return Err(Failure::Gone),
            Ok(read) => room = &mut room[read..],
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            Err(error) => return Err(error.into()),
        }
    }
    Ok(())
}

// SPDX-License-Identifier: Apache-2.0
//! A module that is not in this process: `p11-kit remote` and a socket to it, or a server that was there before.
//!
//! One call is in it at a time. Where it dies or does not answer it is killed, and the next call finds that nothing runs.

mod child;
mod failure;
mod server;
mod waiting;

use child::Child;
use failure::Failure;
use metaslot_ck::Error;
use metaslot_client::protocol::{OWN, VERSION};
use metaslot_client::{Carrier, Found, Lane, Lanes, Message, Patience};
use metaslot_memory::PerProcess;
use rustix::event::{PollFd, PollFlags};
use rustix::fs::fstat;
use rustix::io::Errno;
use rustix::net::{RecvFlags, SendFlags, Shutdown, recv, send, shutdown};
use rustix::process::{Pid, PidfdFlags, pidfd_open};
use rustix::thread::sched_getaffinity;
use std::cell::{Cell, RefCell};
use std::iter::successors;
use std::ops::Range;
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};
use waiting::{left, wait};

/// Set in the process, in which no module is isolated again.
const INSIDE: &str = "METASLOT_ISOLATED";
/// The longest answer, in bytes.
const LONGEST: usize = 1 << 26;
/// Answers are usually shorter, all that are waited for together.
const USUAL: usize = 1 << 12;
/// How long a server that has gone is waited for, from the call on that found it gone.
pub(crate) const ABSENCE: Duration = Duration::from_secs(5);
/// Between two looks for it.
const PAUSE: Duration = Duration::from_millis(2);

/// How a module is isolated.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Isolation {
    /// p11-kit's program, which runs it; `None` where a server listens at the module's path, as `metaslotd`.
    pub program: Option<PathBuf>,
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
    /// Since when a server is looked for that was there.
    away: PerProcess<Mutex<Option<Instant>>>,
    /// Whether it was ever there, in this process or one that it was forked from.
    was_there: AtomicBool,
}

thread_local! {
    /// The connection that this thread's sessions are of.
    static LINK: Cell<Option<u64>> = const { Cell::new(None) };
}

/// While it lives, this thread's requests go over that connection or nowhere: by another one their numbers say something else.
#[derive(Debug)]
pub(crate) struct Bound(Option<u64>);

impl Bound {
    pub(crate) fn to(link: Option<u64>) -> Self {
        Self(LINK.replace(link))
    }
}

impl Drop for Bound {
    fn drop(&mut self) {
        LINK.set(self.0);
    }
}

#[derive(Debug)]
struct Process {
    /// No other connection of this program has this number.
    link: u64,
    /// None of a server that was there before.
    child: Option<Child>,
    socket: OwnedFd,
    /// Which file the socket is: a host that closes what it does not know may have another one by this number.
    file: (u64, u64),
    /// Of requests.
    number: u32,
    patience: RefCell<Patience>,
    /// Beside the socket; a server that knows of none never looks there.
    lanes: Option<Lanes>,
}

impl Isolated {
    pub(crate) fn new(isolation: &Isolation, module: PathBuf) -> Result<Self, String> {
        if std::env::var_os(INSIDE).is_some() {
            return Err(String::from("is isolated in a process that is for another module"));
        }
        match &isolation.program {
            Some(program) if !program.is_file() => {
                return Err(format!("is to be isolated, and there is no {}", program.display()));
            }
            Some(_) if !module.is_file() => {
                return Err(format!("there is no {}", module.display()));
            }
            // A server may come later.
            _ => {}
        }
        let isolation = isolation.clone();
        Ok(Self {
            isolation,
            module,
            process: PerProcess::new(|_| Mutex::default()),
            away: PerProcess::new(|_| Mutex::default()),
            was_there: AtomicBool::new(false),
        })
    }

    fn process(&self) -> MutexGuard<'static, Option<Process>> {
        self.process.get().lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// One without its socket is none: a request must not go to another file.
    fn process_with_its_socket(&self) -> MutexGuard<'static, Option<Process>> {
        let mut process = self.process();
        let lost = |process: &mut Process| file(&process.socket) != Ok(process.file);
        if let Some(mut lost) = process.take_if(lost) {
            lost.lanes = None;
            // The descriptors are the host's by now.
            std::mem::forget(lost);
        }
        process
    }

    /// A connection, and the version of the protocol.
    fn started(&self, until: Instant) -> Result<(Process, u8), Failure> {
        let (socket, child) = match &self.isolation.program {
            Some(program) => self.spawned(program)?,
            None => (server::connected(&self.module)?, None),
        };
        let file = file(&socket)?;
        static NEXT: AtomicU64 = AtomicU64::new(1);
        let link = NEXT.fetch_add(1, Ordering::Relaxed);
        let (number, patience) = (0, RefCell::default());
        let mut process = Process { link, child, socket, file, number, patience, lanes: None };
        match process.greet(until) {
            Ok(version) => Ok((process, version)),
            Err(failure) => {
                process.kill();
                Err(failure)
            }
        }
    }

    fn spawned(&self, program: &Path) -> Result<(OwnedFd, Option<Child>), Failure> {
        let (socket, theirs) = UnixStream::pair()?;
        let (socket, theirs) = (OwnedFd::from(socket), OwnedFd::from(theirs));
        let mut command = Command::new(program);
        command.arg("remote").arg(&self.module).env(INSIDE, "1");
        // A signal from the terminal is for the host.
        command.process_group(0).stdin(theirs.try_clone()?).stdout(theirs).stderr(Stdio::null());
        let mut child = command.spawn()?;
        // The other end is the child's alone: when it has gone, reading ends.
        drop(command);
        let id = Pid::from_child(&child);
        let pidfd = pidfd_open(id, PidfdFlags::empty()).inspect_err(|_| {
            child.kill().ok();
            child.wait().ok();
        })?;
        Ok((socket, Some(Child { id, pidfd })))
    }

    /// The connection that there is.
    pub(crate) fn link(&self) -> Option<u64> {
        self.process().as_ref().map(|process| process.link)
    }

    fn until(&self) -> Instant {
        Instant::now() + self.isolation.limit
    }

    /// [`Self::started`], once it is there: one that serves clients dies and is upgraded under them. What was never there is
    /// looked for once, and so is what has been away for too long.
    fn awaited(&self) -> Result<(Process, u8), Failure> {
        let waits = self.isolation.program.is_none() && self.was_there.load(Ordering::Relaxed);
        let mut away = self.away.get().lock().unwrap_or_else(PoisonError::into_inner);
        loop {
            let started = self.started(self.until());
            if started.is_ok() {
                self.was_there.store(true, Ordering::Relaxed);
                *away = None;
            }
            let looks = waits && started.as_ref().err() == Some(&Failure::Gone);
            let patience = ABSENCE.min(self.isolation.limit);
            if !looks || away.get_or_insert_with(Instant::now).elapsed() >= patience {
                return started;
            }
            std::thread::sleep(PAUSE);
        }
    }
}

impl Carrier for Isolated {
    fn start(&self) -> Result<u8, Error> {
        let mut process = self.process();
        if process.is_some() {
            return Err(Error::CRYPTOKI_ALREADY_INITIALIZED);
        }
        let (new, version) = self.awaited().map_err(|_| Error::DEVICE_REMOVED)?;
        *process = Some(new);
        Ok(version)
    }

    /// What is started for its module is p11-kit's.
    fn offers(&self) -> u8 {
        if self.isolation.program.is_none() { OWN } else { VERSION }
    }

    fn end(&self) {
        if let Some(process) = self.process_with_its_socket().take() {
            process.end();
        }
    }

    fn exchange(&self, request: &[u8]) -> Result<Message, Error> {
        let mut answers = self.answers(&[request])?;
        answers.pop().ok_or(Error::DEVICE_ERROR)
    }

    fn exchange_all(&self, requests: &[Message]) -> Result<Vec<Message>, Error> {
        self.answers(&requests.iter().map(AsRef::as_ref).collect::<Vec<_>>())
    }
}

impl Isolated {
    /// Requests of this thread's connection, and their answers.
    fn answers(&self, requests: &[&[u8]]) -> Result<Vec<Message>, Error> {
        let mut process = self.process_with_its_socket();
        let running = process.as_mut().ok_or(Error::CRYPTOKI_NOT_INITIALIZED)?;
        if LINK.get().is_some_and(|link| link != running.link) {
            return Err(Error::SESSION_HANDLE_INVALID);
        }
        running.exchange(requests, self.until()).map_err(|failure| {
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
    /// The version of the protocol that both speak.
    fn greet(&mut self, until: Instant) -> Result<u8, Failure> {
        let mut version = [0];
        // What is started for its module is p11-kit's.
        let server = self.child.is_none().then_some(&self.socket);
        let offered = server.and_then(|socket| server::offer(socket, VERSION));
        if offered.is_none() {
            self.put(&[VERSION], until)?;
        }
        self.get(&mut version, until)?;
        self.lanes = offered.and_then(|offered| Lanes::keep(offered).ok());
        Ok(version[0])
    }

    /// All requests are sent before the first answer is read. They are answered one after the other, so one that is too long to be on
    /// its way is taken before answers to it are.
    fn exchange(&mut self, requests: &[&[u8]], until: Instant) -> Result<Vec<Message>, Failure> {
        let first = self.number;
        let mut frames = Message::default();
        for request in requests {
            self.number = after(self.number);
            let length = u32::try_from(request.len()).map_err(|_| Failure::Wrong)?;
            let header = [self.number, 0, length].map(u32::to_be_bytes);
            frames.add(header.as_flattened()).ok_or(Failure::Wrong)?;
            frames.add(request).ok_or(Failure::Wrong)?;
        }
        self.ask(frames.as_ref(), requests.len() > 1, until)?;
        drop(frames);
        let mut arrived = Arrived::new(self, until)?;
        let numbers = successors(Some(after(first)), |number| Some(after(*number)));
        let answers = numbers.take(requests.len()).map(|number| arrived.answer(number));
        let answers = answers.collect::<Result<_, _>>()?;
        arrived.end().map(|()| answers)
    }

    /// Sends what is asked: through the memory, where that is several at once, none of which has a secret, and the server looks. Another may have a PIN or
    /// the value of a key, which shall be in no memory that could be swapped.
    fn ask(&self, frames: &[u8], is_several: bool, until: Instant) -> Result<(), Failure> {
        if let Some(lanes) = &self.lanes {
            if is_several {
                lanes.answers().open();
                if lanes.requests().put(frames) {
                    return Ok(());
                }
            }
            lanes.requests().divert();
        }
        self.put(frames, until)
    }

    fn put(&self, mut bytes: &[u8], until: Instant) -> Result<(), Failure> {
        while !bytes.is_empty() {
            left(until)?;
            match send(&self.socket, bytes, SendFlags::NOSIGNAL | SendFlags::DONTWAIT) {
                Ok(sent) => bytes = bytes.get(sent..).ok_or(Failure::Wrong)?,
                Err(Errno::AGAIN) => self.wait(PollFlags::OUT, until)?,
                Err(Errno::INTR) => {}
                Err(error) => return Err(error.into()),
            }
        }
        Ok(())
    }

    /// Something, as soon as it is there. It is looked for where there is a core for the other process.
    fn some(&self, room: &mut [u8], until: Instant) -> Result<usize, Failure> {
        left(until)?;
        let room = RefCell::new(room);
        let arrived = || match recv(&self.socket, &mut **room.borrow_mut(), RecvFlags::DONTWAIT) {
            Ok((0, _)) => Some(Err(Failure::Gone)),
            Ok((read, _)) => Some(Ok(read)),
            Err(Errno::AGAIN | Errno::INTR) => None,
            Err(error) => Some(Err(error.into())),
        };
        let shared = |find: fn(Lane<'_>, &mut [u8]) -> Found| {
            let lanes = self.lanes.as_ref();
            let found = lanes.map(|lanes| find(lanes.answers(), &mut room.borrow_mut()));
            found.unwrap_or(Found::Socket)
        };
        let look = || match shared(|lane, room| lane.look(room)) {
            Found::Nothing => None,
            Found::Bytes(read) => Some(Ok(read)),
            Found::Nonsense => Some(Err(Failure::Wrong)),
            Found::Socket => arrived(),
        };
        let sleep = || {
            match shared(|lane, room| lane.leave(room)) {
                Found::Bytes(read) => return Ok(read),
                Found::Nonsense => return Err(Failure::Wrong),
                Found::Nothing | Found::Socket => {}
            }
            // Not in a receive that waits, though that is one system call: the kernel wakes that also when the server takes the request,
            // to say that there is room again.
            loop {
                self.wait(PollFlags::IN, until)?;
                left(until)?;
                if let Some(found) = arrived() {
                    return found;
                }
            }
        };
        self.patience.borrow_mut().wait(has_cores(), look, sleep)
    }

    fn get(&self, mut room: &mut [u8], until: Instant) -> Result<(), Failure> {
        while !room.is_empty() {
            let read = self.some(room, until)?;
            room = room.get_mut(read..).ok_or(Failure::Wrong)?;
        }
        Ok(())
    }

    /// Waits until the socket is ready, or the process has gone. What it has begun itself may keep its end of the socket open.
    fn wait(&self, ready: PollFlags, until: Instant) -> Result<(), Failure> {
        let socket = PollFd::new(&self.socket, ready);
        let Some(child) = &self.child else { return wait(&mut [socket], until) };
        // In this order: what it said before its end is seen.
        let mut both = [PollFd::new(&child.pidfd, PollFlags::IN), socket];
        wait(&mut both, until)?;
        if both[1].revents().is_empty() { Err(Failure::Gone) } else { Ok(()) }
    }

    /// One that was started ends when nothing more comes, and if not it is killed.
    fn end(self) {
        shutdown(&self.socket, Shutdown::Both).ok();
        if let Some(child) = self.child.filter(|child| !child.has_ended(child::PATIENCE)) {
            child.kill();
        }
    }

    /// Nothing of it is waited for.
    fn kill(self) {
        shutdown(&self.socket, Shutdown::Both).ok();
        self.child.into_iter().for_each(Child::kill);
    }
}

/// Answers as they arrive: one read takes as many as there are.
struct Arrived<'a> {
    process: &'a Process,
    until: Instant,
    room: Message,
    /// What is in the room and was not taken yet.
    there: Range<usize>,
}

impl<'a> Arrived<'a> {
    fn new(process: &'a Process, until: Instant) -> Result<Self, Failure> {
        let room = Message::zeroed(USUAL).ok_or(Failure::Wrong)?;
        Ok(Self { process, until, room, there: 0..0 })
    }

    /// The next one, which has to be the one with this number.
    fn answer(&mut self, expected: u32) -> Result<Message, Failure> {
        let mut header = [0; 12];
        self.take(&mut header)?;
        let [number, options, length] = *header.as_chunks().0 else { return Err(Failure::Wrong) };
        if u32::from_be_bytes(number) != expected {
            return Err(Failure::Wrong);
        }
        self.part(options)?;
        self.part(length)
    }

    /// One part of an answer, of the length that its header says.
    fn part(&mut self, length: [u8; 4]) -> Result<Message, Failure> {
        let length = usize::try_from(u32::from_be_bytes(length)).ok();
        let length = length.filter(|length| *length <= LONGEST).ok_or(Failure::Wrong)?;
        let mut part = Message::zeroed(length).ok_or(Failure::Wrong)?;
        self.take(part.as_mut()).map(|()| part)
    }

    fn take(&mut self, mut wanted: &mut [u8]) -> Result<(), Failure> {
        while !wanted.is_empty() {
            if self.there.is_empty() {
                if wanted.len() >= USUAL {
                    return self.process.get(wanted, self.until);
                }
                self.there = 0..self.process.some(self.room.as_mut(), self.until)?;
            }
            let there = self.room.as_ref().get(self.there.clone()).ok_or(Failure::Wrong)?;
            let length = there.len().min(wanted.len());
            let (now, later) = wanted.split_at_mut(length);
            now.copy_from_slice(&there[..length]);
            self.there.start += length;
            wanted = later;
        }
        Ok(())
    }

    /// More than the answers is none.
    fn end(self) -> Result<(), Failure> {
        if self.there.is_empty() { Ok(()) } else { Err(Failure::Wrong) }
    }
}

/// The number of the next request. A server takes 0 for none.
fn after(number: u32) -> u32 {
    number.wrapping_add(1).max(1)
}

/// Whether this thread and another process can run at the same time.
fn has_cores() -> bool {
    /// How many there are, once it was asked.
    static CORES: AtomicU32 = AtomicU32::new(0);
    let mut cores = CORES.load(Ordering::Relaxed);
    if cores == 0 {
        cores = sched_getaffinity(None).map_or(1, |set| set.count());
        CORES.store(cores, Ordering::Relaxed);
    }
    cores > 1
}

/// Which file a descriptor is.
fn file(descriptor: &OwnedFd) -> rustix::io::Result<(u64, u64)> {
    fstat(descriptor).map(|file| (file.st_dev, file.st_ino))
}

#[cfg(test)]
mod tests {
    use super::*;
    use rustix::process::{Signal, WaitId, WaitIdOptions, kill_process_group, waitid};
    use rustix::thread::set_thread_res_uid;
    use std::io::{Read as _, Write as _};

    /// What greets, and then does what a script says.
    fn program(name: &str, script: &str, limit: Duration) -> Isolated {
        let file = format!("metaslot-isolated-{}-{name}", std::process::id());
        let file = std::env::temp_dir().join(file);
        // Written by another process: none that this one forks meanwhile has it open, and it can be run.
        let write = "printf '#!/bin/sh\nhead -c 1 >/dev/null; printf \"\\\\2\"; %s' \"$1\" >\"$0\" && chmod 700 \"$0\"";
        let status = Command::new("/bin/sh").arg("-c").arg(write).arg(&file).arg(script).status();
        assert!(status.is_ok_and(|status| status.success()));
        let isolation = Isolation { program: Some(file.clone()), limit };
        Isolated::new(&isolation, file).expect("there is this program")
    }

    fn started(name: &str, script: &str, limit: Duration) -> (Isolated, Pid) {
        let isolated = program(name, script, limit);
        assert_eq!(isolated.start(), Ok(2), "{name}");
        std::fs::remove_file(&isolated.module).expect("it was there");
        let id = isolated
            .process()
            .as_ref()
            .and_then(|it| it.child.as_ref())
            .expect("it was started")
            .id;
        (isolated, id)
    }

    fn is_there(id: Pid) -> bool {
        Path::new("/proc").join(id.to_string()).exists()
    }

    const LONG: Duration = Duration::from_secs(20);
    const SHORT: Duration = Duration::from_millis(500);

    #[test]
    fn wrong_answers_end_the_process_and_nothing_else() {
        let long = vec![0; 1 << 23];
        let short = &b"request"[..];
        let cases = [
            (
                "another-request",
                r"printf '\0\0\0\2\0\0\0\0\0\0\0\0'; sleep 30",
                LONG,
                short,
                Error::DEVICE_ERROR,
            ),
            (
                "too-long",
                r"printf '\0\0\0\1\0\0\0\0\377\377\377\377'; sleep 30",
                LONG,
                short,
                Error::DEVICE_ERROR,
            ),
            (
                "long-options",
                r"printf '\0\0\0\1\177\377\377\377\0\0\0\0'; sleep 30",
                LONG,
                short,
                Error::DEVICE_ERROR,
            ),
            ("floods", "yes", LONG, short, Error::DEVICE_ERROR),
            ("ends", "exit", LONG, short, Error::CRYPTOKI_NOT_INITIALIZED),
            (
                "cut-header",
                r"printf '\0\0\0\1\0'; exit",
                LONG,
                short,
                Error::CRYPTOKI_NOT_INITIALIZED,
            ),
            (
                "cut-answer",
                r"printf '\0\0\0\1\0\0\0\0\0\0\0\2x'",
                LONG,
                short,
                Error::CRYPTOKI_NOT_INITIALIZED,
            ),
            ("closes", "exec <&- >&-; sleep 30", LONG, short, Error::CRYPTOKI_NOT_INITIALIZED),
            ("silent", "sleep 30", SHORT, short, Error::FUNCTION_CANCELED),
            ("does-not-read", "sleep 30", SHORT, &long, Error::FUNCTION_CANCELED),
            (
                "drips-fast",
                r"printf '\0\0\0\1\0\0\0\0\3\0\0\0'; while :; do printf x; done",
                SHORT,
                short,
                Error::FUNCTION_CANCELED,
            ),
            (
                "drips",
                r"printf '\0\0\0\1\0\0\0\0\0\0\1\0'; while :; do printf x; sleep 0.1; done",
                SHORT,
                short,
                Error::FUNCTION_CANCELED,
            ),
        ];
        for (name, script, limit, request, code) in cases {
            let (isolated, id) = started(name, script, limit);
            assert_eq!(isolated.exchange(request).err(), Some(code), "{name}");
            assert!(!is_there(id), "{name} is left");
            let again = isolated.exchange(request).err();
            assert_eq!(again, Some(Error::CRYPTOKI_NOT_INITIALIZED), "{name}");
        }
    }

    /// A server that greets so many clients, and ends with the last.
    fn server(path: &Path, clients: usize) -> std::thread::JoinHandle<()> {
        std::fs::remove_file(path).ok();
        let listener = std::os::unix::net::UnixListener::bind(path).expect("a socket is made");
        std::thread::spawn(move || {
            for stream in listener.incoming().take(clients) {
                let mut greeting = [0];
                let mut stream = stream.expect("a client");
                stream.read_exact(&mut greeting).expect("it greets");
                stream.write_all(&greeting).expect("it reads");
            }
        })
    }

    #[test]
    fn a_server_that_was_there_is_waited_for_and_one_that_stays_away_is_not() {
        let name = format!("metaslot-server-{}", std::process::id());
        let path = std::env::temp_dir().join(name);
        let isolation = Isolation { program: None, limit: SHORT };
        let isolated = Isolated::new(&isolation, path.clone()).expect("it may come later");
        let begin = Instant::now();
        assert_eq!(isolated.start(), Err(Error::DEVICE_REMOVED), "it was never there");
        assert!(begin.elapsed() < SHORT);
        server_comes_back(&isolated, &path);
        let begin = Instant::now();
        assert_eq!(isolated.start(), Err(Error::DEVICE_REMOVED));
        assert!(begin.elapsed() >= SHORT, "it may come back");
        let begin = Instant::now();
        assert_eq!(isolated.start(), Err(Error::DEVICE_REMOVED));
        assert!(begin.elapsed() < SHORT, "it stays away");
        server_comes_back(&isolated, &path);
        std::fs::remove_file(path).expect("it was there");
    }

    /// For two clients, the second one a moment after it has gone.
    fn server_comes_back(isolated: &Isolated, path: &Path) {
        let first = server(path, 1);
        assert!(isolated.start().is_ok());
        first.join().expect("no panic");
        assert_eq!(isolated.exchange(b"x").err(), Some(Error::CRYPTOKI_NOT_INITIALIZED));
        let second = std::thread::scope(|scope| {
            let second = scope.spawn(|| {
                std::thread::sleep(SHORT / 5);
                server(path, 1)
            });
            assert!(isolated.start().is_ok(), "it is back");
            second.join().expect("no panic")
        });
        second.join().expect("no panic");
        assert_eq!(isolated.exchange(b"x").err(), Some(Error::CRYPTOKI_NOT_INITIALIZED));
    }

    #[test]
    fn its_end_is_noticed_though_another_process_has_its_socket() {
        let (isolated, _) = started("leaves", "sleep 30 & exit", Duration::from_secs(10));
        assert_eq!(isolated.exchange(b"x").err(), Some(Error::CRYPTOKI_NOT_INITIALIZED));
    }

    #[test]
    fn what_it_has_begun_is_killed_with_it() {
        let (isolated, id) = started("begins", "sleep 30; exit", SHORT);
        let children = format!("/proc/{0}/task/{0}/children", id.as_raw_nonzero());
        let begun = loop {
            let text = std::fs::read_to_string(&children).expect("it is there");
            // The shell may still wait for what greets.
            let one = text.trim().parse().ok().and_then(Pid::from_raw);
            let comm =
                one.and_then(|one| std::fs::read_to_string(format!("/proc/{one}/comm")).ok());
            match one.filter(|_| comm.is_some_and(|comm| comm.trim() == "sleep")) {
                Some(one) => break one,
                None => std::thread::yield_now(),
            }
        };
        assert_eq!(isolated.exchange(b"x").err(), Some(Error::FUNCTION_CANCELED));
        let state = || std::fs::read_to_string(format!("/proc/{begun}/stat"));
        while state().is_ok_and(|state| !state.contains(") Z ")) {
            std::thread::yield_now();
        }
    }

    #[test]
    fn one_that_its_host_has_waited_for_is_gone() {
        let (isolated, id) = started("waited", "exit", LONG);
        waitid(WaitId::Pid(id), WaitIdOptions::EXITED).expect("it ends");
        assert_eq!(isolated.exchange(b"x").err(), Some(Error::CRYPTOKI_NOT_INITIALIZED));
        isolated.end();
    }

    #[test]
    fn a_request_does_not_go_to_another_file_of_its_sockets_number() {
        let (isolated, _) = started("overwritten", "cat", LONG);
        let (hosts, peer) = UnixStream::pair().expect("two descriptors");
        {
            let mut process = isolated.process();
            let socket = &mut process.as_mut().expect("it was started").socket;
            rustix::io::dup2(&hosts, socket).expect("both are open");
        }
        drop(hosts);
        assert_eq!(isolated.exchange(b"1234").err(), Some(Error::CRYPTOKI_NOT_INITIALIZED));
        // Nothing came, and the host's file is open.
        let nothing = recv(&peer, &mut [0; 8], RecvFlags::DONTWAIT);
        assert_eq!(nothing.err(), Some(Errno::AGAIN));
    }

    #[test]
    fn a_request_for_another_connection_is_not_sent() {
        let (isolated, _) = started("another", "cat", SHORT);
        let link = isolated.link().expect("it is connected");
        let other = Bound::to(Some(link + 1));
        assert_eq!(isolated.exchange(b"x").err(), Some(Error::SESSION_HANDLE_INVALID));
        drop(other);
        let _bound = Bound::to(Some(link));
        // It gives back what it gets.
        assert!(isolated.exchange(b"x").is_ok_and(|answer| answer.as_ref() == b"x"));
    }

    #[test]
    fn requests_that_go_together_have_their_answers_in_this_order_and_nothing_more() {
        let (isolated, _) = started("together", "cat", LONG);
        let long = vec![7; 3 * USUAL];
        let bodies = [&b"one"[..], &long, b"", b"two", &long[..USUAL - 20]];
        let requests = bodies.map(Message::copy_of);
        // It gives back what it gets.
        let answers = isolated.exchange_all(&requests).expect("it answers");
        assert!(answers.iter().map(AsRef::as_ref).eq(bodies));
        let more = r"printf '\0\0\0\1\0\0\0\0\0\0\0\0\0\0\0\2\0\0\0\0\0\0\0\0x'; sleep 30";
        let (isolated, id) = started("more", more, LONG);
        let answers = isolated.exchange_all(&requests[..2]);
        assert_eq!(answers.err(), Some(Error::DEVICE_ERROR));
        assert!(!is_there(id));
    }

    #[test]
    fn the_number_after_the_last_is_one_that_servers_take() {
        let path = std::env::temp_dir().join(format!("metaslot-numbers-{}", std::process::id()));
        let listener = std::os::unix::net::UnixListener::bind(&path).expect("a socket is made");
        let server = std::thread::spawn(move || {
            let (mut stream, _) = listener.accept().expect("a client");
            let mut greeting = [0];
            stream.read_exact(&mut greeting).expect("it greets");
            stream.write_all(&greeting).expect("it reads");
            let answered = |_| {
                let mut empty = [0; 12];
                stream.read_exact(&mut empty).expect("a request");
                stream.write_all(&empty).expect("it reads");
                u32::from_be_bytes(*empty.first_chunk().expect("it is longer"))
            };
            [(); 3].map(answered)
        });
        let isolation = Isolation { program: None, limit: LONG };
        let isolated = Isolated::new(&isolation, path.clone()).expect("it is there");
        isolated.start().expect("it greets");
        isolated.process().as_mut().expect("it was started").number = u32::MAX - 1;
        let requests = [(); 3].map(|()| Message::default());
        assert_eq!(isolated.exchange_all(&requests).map(|answers| answers.len()), Ok(3));
        assert_eq!(server.join().expect("no panic"), [u32::MAX, 1, 2]);
        std::fs::remove_file(path).expect("it was there");
    }

    #[test]
    fn one_that_its_host_may_not_kill_any_more_is_left() {
        if !rustix::process::geteuid().is_root() {
            return;
        }
        let (isolated, id) = started("stays", "sleep 30; exit", SHORT);
        std::thread::scope(|scope| {
            let host = scope.spawn(|| {
                // Of this thread only.
                let nobody = rustix::process::Uid::from_raw(65534);
                set_thread_res_uid(nobody, nobody, nobody).expect("root may");
                isolated.exchange(b"x").err()
            });
            assert_eq!(host.join().expect("no panic"), Some(Error::FUNCTION_CANCELED));
        });
        kill_process_group(id, Signal::KILL).expect("it was left");
        waitid(WaitId::Pid(id), WaitIdOptions::EXITED).expect("it ends");
    }
}

// SPDX-License-Identifier: Apache-2.0
//! A client's socket. Requests that arrive together are read together, and their answers are sent together: before more is waited for, or
//! one of them takes long.

use metaslot_client::{Message, Patience};
use rustix::io::Errno;
use rustix::net::{RecvFlags, recv};
use std::cell::RefCell;
use std::io::{self, ErrorKind, Read, Write};
use std::ops::Range;
use std::os::unix::net::UnixStream;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

/// What one read takes at most.
const ROOM: usize = 1 << 13;
/// More of answers is sent at once.
const MUCH: usize = 1 << 16;

/// Threads that serve and do not sleep.
static AWAKE: AtomicUsize = AtomicUsize::new(0);

/// A client's socket.
#[derive(Debug)]
pub(super) struct Door {
    stream: UnixStream,
    room: Message,
    /// What is in the room and was not taken yet.
    there: Range<usize>,
    /// What is to be sent.
    answers: Message,
    patience: Patience,
}

impl Door {
    pub(super) fn new(stream: UnixStream) -> io::Result<Self> {
        let room = Message::zeroed(ROOM).ok_or(ErrorKind::OutOfMemory)?;
        AWAKE.fetch_add(1, Ordering::Relaxed);
        Ok(Self {
            stream,
            room,
            there: 0..0,
            answers: Message::default(),
            patience: Patience::default(),
        })
    }

    /// Answers a request; sent before the next one that is not here yet is waited for.
    pub(super) fn answer(&mut self, answer: &Message) -> io::Result<()> {
        let much = self.answers.as_ref().len() + answer.as_ref().len() > MUCH;
        if much {
            self.flush()?;
            return self.stream.write_all(answer.as_ref());
        }
        self.answers.add(answer.as_ref()).ok_or_else(|| ErrorKind::OutOfMemory.into())
    }

    /// Something, as soon as it is there. It is looked for where there are cores for every thread that serves and for its client.
    fn arrives(&mut self) -> io::Result<usize> {
        self.flush()?;
        let (stream, room) = (&self.stream, RefCell::new(self.room.as_mut()));
        let look = || match recv(stream, &mut **room.borrow_mut(), RecvFlags::DONTWAIT) {
            Err(Errno::AGAIN) => None,
            arrived => Some(arrived.map(|(read, _)| read).map_err(io::Error::from)),
        };
        let sleep = || {
            AWAKE.fetch_sub(1, Ordering::Relaxed);
            let arrived = (&mut &*stream).read(&mut room.borrow_mut());
            AWAKE.fetch_add(1, Ordering::Relaxed);
            arrived
        };
        self.patience.wait(has_cores(), look, sleep)
    }
}

impl Read for Door {
    /// What was taken is wiped: it may be a PIN.
    fn read(&mut self, room: &mut [u8]) -> io::Result<usize> {
        if self.there.is_empty() {
            if room.len() >= ROOM {
                self.flush()?;
                return self.stream.read(room);
            }
            self.there = 0..self.arrives()?;
        }
        let there = &mut self.room.as_mut()[self.there.clone()];
        let length = there.len().min(room.len());
        room[..length].copy_from_slice(&there[..length]);
        there[..length].fill(0);
        self.there.start += length;
        Ok(length)
    }
}

impl Write for Door {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.stream.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        if self.answers.as_ref().is_empty() {
            return Ok(());
        }
        let answers = std::mem::take(&mut self.answers);
        self.stream.write_all(answers.as_ref())
    }
}

/// What was answered before the connection ends is said.
impl Drop for Door {
    fn drop(&mut self) {
        self.flush().ok();
        AWAKE.fetch_sub(1, Ordering::Relaxed);
    }
}

fn has_cores() -> bool {
    static CORES: OnceLock<usize> = OnceLock::new();
    let cores = *CORES.get_or_init(|| thread::available_parallelism().map_or(1, usize::from));
    2 * AWAKE.load(Ordering::Relaxed) <= cores
}

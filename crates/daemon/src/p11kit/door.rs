// SPDX-License-Identifier: Apache-2.0
//! A client's socket, and the memory beside it, if the client sent some with its greeting. Requests that arrive together are read together, and their answers are sent together: before more is waited for, or
//! one of them takes long.

use crate::stream::malformed;
use metaslot_client::{Found, Lanes, Message, Patience};
use rustix::io::Errno;
use rustix::net::{
    RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SendFlags, recv, recvmsg, send,
};
use std::cell::RefCell;
use std::io::{self, ErrorKind, IoSliceMut, Read, Write};
use std::mem::MaybeUninit;
use std::ops::Range;
use std::os::unix::net::UnixStream;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock};
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
    stream: Arc<UnixStream>,
    room: Message,
    /// What is in the room and was not taken yet.
    there: Range<usize>,
    /// What is to be sent.
    answers: Message,
    patience: Patience,
    lanes: Option<Lanes>,
    /// Whether anything has arrived.
    begun: bool,
}

impl Door {
    pub(super) fn new(stream: Arc<UnixStream>) -> io::Result<Self> {
        let room = Message::zeroed(ROOM).ok_or(ErrorKind::OutOfMemory)?;
        AWAKE.fetch_add(1, Ordering::Relaxed);
        Ok(Self {
            stream,
            room,
            there: 0..0,
            answers: Message::default(),
            patience: Patience::default(),
            lanes: None,
            begun: false,
        })
    }

    /// Answers a request; sent before the next one that is not here yet is waited for.
    pub(super) fn answer(&mut self, answer: &Message) -> io::Result<()> {
        let much = self.answers.as_ref().len() + answer.as_ref().len() > MUCH;
        if much {
            self.flush()?;
            return self.send(answer.as_ref());
        }
        self.answers.add(answer.as_ref()).ok_or_else(|| ErrorKind::OutOfMemory.into())
    }

    /// Through the socket, to which a client that looks elsewhere is led.
    fn send(&self, bytes: &[u8]) -> io::Result<()> {
        if let Some(lanes) = &self.lanes {
            lanes.answers().divert();
        }
        let sent = match send(&self.stream, bytes, SendFlags::DONTWAIT | SendFlags::NOSIGNAL) {
            Err(Errno::AGAIN | Errno::INTR) => 0,
            sent => sent?,
        };
        match &bytes[sent..] {
            [] => Ok(()),
            // Until the client reads.
            rest => asleep(|| (&mut &*self.stream).write_all(rest)),
        }
    }

    /// What arrives first may bring memory. Any that is not as ours makes it is left alone.
    fn begins(&mut self) -> io::Result<usize> {
        let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
        let mut control = RecvAncillaryBuffer::new(&mut space);
        let mut room = [IoSliceMut::new(self.room.as_mut())];
        let flags = RecvFlags::CMSG_CLOEXEC;
        let arrived = asleep(|| recvmsg(&self.stream, &mut room, &mut control, flags))?;
        self.begun = true;
        let mut files = control.drain().filter_map(|message| match message {
            RecvAncillaryMessage::ScmRights(mut files) => files.next(),
            _ => None,
        });
        let offered = files.next().and_then(|file| Lanes::offered(file.into()).ok());
        self.lanes = offered.and_then(|offered| Lanes::keep(offered).ok());
        Ok(arrived.bytes)
    }

    /// Something, as soon as it is there. It is looked for where there are cores for every thread that serves and for its client.
    fn arrives(&mut self) -> io::Result<usize> {
        if !self.begun {
            return self.begins();
        }
        // Who has the answers may ask at once.
        if let Some(lanes) = &self.lanes {
            lanes.requests().open();
        }
        self.flush()?;
        let (stream, room) = (&*self.stream, RefCell::new(self.room.as_mut()));
        let requests = self.lanes.as_ref().map(Lanes::requests);
        let look = || {
            let requests = requests.as_ref();
            match requests.map_or(Found::Socket, |lane| lane.look(&mut room.borrow_mut())) {
                Found::Nothing => return None,
                Found::Bytes(read) => return Some(Ok(read)),
                Found::Nonsense => return Some(Err(malformed())),
                Found::Socket => {}
            }
            match recv(stream, &mut **room.borrow_mut(), RecvFlags::DONTWAIT) {
                Err(Errno::AGAIN) => None,
                arrived => Some(arrived.map(|(read, _)| read).map_err(io::Error::from)),
            }
        };
        let sleep = || {
            let requests = requests.as_ref();
            match requests.map_or(Found::Socket, |lane| lane.leave(&mut room.borrow_mut())) {
                Found::Bytes(read) => return Ok(read),
                Found::Nonsense => return Err(malformed()),
                Found::Nothing | Found::Socket => {}
            }
            asleep(|| (&mut &*stream).read(&mut room.borrow_mut()))
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
                return asleep(|| (&mut &*self.stream).read(room));
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
        (&*self.stream).write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        if self.answers.as_ref().is_empty() {
            return Ok(());
        }
        let answers = std::mem::take(&mut self.answers);
        let lanes = self.lanes.as_ref();
        match lanes.is_some_and(|lanes| lanes.answers().put(answers.as_ref())) {
            true => Ok(()),
            false => self.send(answers.as_ref()),
        }
    }
}

/// What was answered before the connection ends is said.
impl Drop for Door {
    fn drop(&mut self) {
        self.flush().ok();
        AWAKE.fetch_sub(1, Ordering::Relaxed);
    }
}

/// Waits for a client or for its turn, which takes no core from the others however long it lasts.
pub(super) fn asleep<T>(wait: impl FnOnce() -> T) -> T {
    AWAKE.fetch_sub(1, Ordering::Relaxed);
    let done = wait();
    AWAKE.fetch_add(1, Ordering::Relaxed);
    done
}

fn has_cores() -> bool {
    static CORES: OnceLock<usize> = OnceLock::new();
    let cores = *CORES.get_or_init(|| thread::available_parallelism().map_or(1, usize::from));
    2 * AWAKE.load(Ordering::Relaxed) <= cores
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::allowance::Allowances;
    use crate::p11kit::sessions::try_pin;
    use metaslot_ck::Error;
    use std::sync::atomic::AtomicBool;
    use std::time::{Duration, Instant};

    /// Until as many threads are awake as were before.
    fn none_is_awake() {
        let begun = Instant::now();
        while AWAKE.load(Ordering::Relaxed) > 0 {
            assert!(begun.elapsed() < Duration::from_secs(10), "it takes the others' cores");
            thread::sleep(Duration::from_millis(1));
        }
    }

    #[test]
    fn who_stops_within_a_long_message_takes_no_core_from_others() {
        let (mut near, far) = UnixStream::pair().expect("a pair of sockets");
        let mut door = Door::new(far.into()).expect("there is memory");
        let served = thread::spawn(move || {
            door.read_exact(&mut vec![0; 2 * ROOM])?;
            let mut answer = Message::default();
            answer.grow(1 << 23).expect("there is memory");
            door.answer(&answer)
        });
        near.write_all(&[1]).expect("it reads");
        none_is_awake();
        near.write_all(&[1; 2 * ROOM - 1]).expect("it reads");
        near.read_exact(&mut [0; 1]).expect("it answers");
        none_is_awake();
        near.read_exact(&mut vec![0; (1 << 23) - 1]).expect("it answers");
        served.join().expect("it ends").expect("all was sent");
    }

    #[test]
    fn who_waits_to_try_a_pin_takes_no_core_from_others() {
        let wrong = || Err::<(), _>(Error::PIN_INCORRECT);
        let allowance = Allowances::new(1, 0).admit(0).expect("it is the first");
        (0..3).for_each(|_| assert!(allowance.turn().attempt(wrong).is_err()));
        let (_near, far) = UnixStream::pair().expect("a pair of sockets");
        let door = Door::new(far.into()).expect("there is memory");
        let has_tried = AtomicBool::new(false);
        thread::scope(|scope| {
            scope.spawn(|| {
                let _serves = door;
                try_pin(&allowance, || {
                    has_tried.store(true, Ordering::Relaxed);
                    wrong()
                })
            });
            none_is_awake();
            assert!(!has_tried.load(Ordering::Relaxed), "it is awake while it waits");
        });
    }
}

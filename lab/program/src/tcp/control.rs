// SPDX-License-Identifier: Apache-2.0
//! How the lab and the generator's processes talk: a line of JSON for an order through the process's
//! standard input, and a line for the answer through its standard output. A process whose input ends
//! ends too.

use crate::{Failure, Result};
use rustix::event::epoll::{self, EventData, EventFlags};
use rustix::io::Errno;
use serde::{Deserialize, Serialize};
use std::io::Write;
use std::net::SocketAddrV4;
use std::os::fd::{AsFd, OwnedFd};

/// What a process of the generator is told.
#[derive(Clone, Debug, Deserialize, Serialize)]
pub(super) enum Order {
    /// The sender's first: reach the receiver's process, by its namespace or by a veth pair.
    Reach { receiver: u32 },
    /// The receiver's first: take addresses and listen.
    Listen,
    /// To the sender: make so many more connections.
    Connect { to: SocketAddrV4, count: usize },
    /// To the receiver: answer when there are so many connections in all.
    Accept { all: usize },
    /// To the sender: write until told otherwise.
    Go,
    /// To the sender: stop writing.
    Pause,
    /// To the sender: so many bytes through the first connection, that way.
    Transfer { way: Way, bytes: u64 },
    /// To the receiver: answer when so many bytes were received in all.
    Until { bytes: u64 },
}

/// How bytes of a file get into a connection.
#[derive(Clone, Copy, Debug, Deserialize, Eq, PartialEq, Serialize)]
pub(super) enum Way {
    /// `read` and `write`, through a buffer of the process.
    Write,
    /// `sendfile`.
    Sendfile,
    /// `splice`, through a pipe.
    Splice,
}

impl Way {
    /// All of them: the arms, in the order of the tables.
    pub(super) const ALL: [Self; 3] = [Self::Write, Self::Sendfile, Self::Splice];

    /// The arm's name.
    pub(super) const fn name(self) -> &'static str {
        match self {
            Self::Write => "write",
            Self::Sendfile => "sendfile",
            Self::Splice => "splice",
        }
    }
}

/// What a process answers.
#[derive(Clone, Debug, Deserialize, Serialize)]
pub(super) enum Answer {
    Done,
    Listening(SocketAddrV4),
    /// The buffer that the first socket got, of the size asked for.
    Connected {
        buffer: usize,
    },
    Totals(Totals),
    Failed {
        message: String,
        hint: Option<String>,
    },
}

/// What one end has done since its start.
#[derive(Clone, Copy, Debug, Default, Deserialize, Eq, PartialEq, Serialize)]
pub(super) struct Totals {
    pub(super) bytes: u64,
    /// Calls that moved bytes.
    pub(super) calls: u64,
    /// Calls that could not.
    pub(super) again: u64,
}

/// The process's end of the line.
#[derive(Debug, Default)]
pub(super) struct Control {
    pending: Vec<u8>,
}

impl Control {
    /// The next order, waited for; `None`: the lab has gone.
    pub(super) fn wait(&mut self) -> Result<Option<Order>> {
        loop {
            if let Some(end) = self.pending.iter().position(|byte| *byte == b'\n') {
                let line: Vec<u8> = self.pending.drain(..=end).collect();
                return Ok(Some(serde_json::from_slice(&line)?));
            }
            let mut buffer = [0; 512];
            match rustix::io::read(std::io::stdin(), &mut buffer) {
                Ok(0) => return Ok(None),
                Ok(count) => self.pending.extend(&buffer[..count]),
                Err(Errno::INTR) => {}
                Err(error) => return Err(Failure::new(format!("orders: {error}"))),
            }
        }
    }

    pub(super) fn answer(&self, answer: &Answer) -> Result<()> {
        let mut line = serde_json::to_vec(answer)?;
        line.push(b'\n');
        let mut output = std::io::stdout().lock();
        output.write_all(&line)?;
        Ok(output.flush()?)
    }
}

/// The event of an order.
pub(super) const ORDER: u64 = u64::MAX;

/// What a process waits for: its connections, and orders.
pub(super) struct Events {
    epoll: OwnedFd,
    list: Vec<epoll::Event>,
}

impl Events {
    pub(super) fn new() -> Result<Self> {
        let epoll = epoll::create(epoll::CreateFlags::CLOEXEC).map_err(failed)?;
        let events = Self { epoll, list: Vec::with_capacity(512) };
        events.add(std::io::stdin(), ORDER, EventFlags::IN)?;
        Ok(events)
    }

    pub(super) fn add(&self, source: impl AsFd, number: u64, flags: EventFlags) -> Result<()> {
        epoll::add(&self.epoll, source, EventData::new_u64(number), flags).map_err(failed)
    }

    /// Waits, and gives the numbers of what is ready.
    pub(super) fn wait(&mut self) -> Result<impl Iterator<Item = u64> + use<'_>> {
        self.list.clear();
        match epoll::wait(&self.epoll, rustix::buffer::spare_capacity(&mut self.list), None) {
            Ok(_) | Err(Errno::INTR) => {}
            Err(error) => return Err(failed(error)),
        }
        Ok(self.list.iter().map(|event| event.data.u64()))
    }
}

fn failed(error: Errno) -> Failure {
    Failure::new(format!("epoll: {error}"))
}

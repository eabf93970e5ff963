// SPDX-License-Identifier: Apache-2.0
//! A sender and a receiver, connected: they live as long as their cell is measured, and cost nothing
//! while they are not asked to send.

use super::control::{Answer, Order, Totals, Way};
use super::counts;
use super::cpus::Cpus;
use super::load::Load;
use super::part::{Part, ReceiverOf, SenderOf};
use super::path::Path;
use super::process::Process;
use crate::meter::{Account, Group};
use crate::{Failure, Result};
use std::net::SocketAddrV4;
use std::rc::Rc;

/// What a pair's CPU time is counted by, to be held while the pair works.
#[derive(Debug)]
pub(super) struct Ledger {
    pids: [u32; 2],
    group: Option<Rc<Group>>,
}

impl Ledger {
    pub(super) const fn new(pids: [u32; 2], group: Option<Rc<Group>>) -> Self {
        Self { pids, group }
    }

    pub(super) fn account(&self) -> Account<'_> {
        self.group.as_deref().map_or(Account::Processes(&self.pids), Account::Group)
    }
}

/// Connections that are made at once: fewer than may wait for being accepted.
const BATCH: usize = 256;

/// Both processes. The group goes last: it must be empty.
#[derive(Debug)]
pub(super) struct Pair {
    sender: Process,
    receiver: Process,
    pids: [u32; 2],
    group: Option<Rc<Group>>,
    clamped: bool,
    before: [Totals; 2],
}

impl Pair {
    /// Starts them, in a control group of their own where there may be one, and connects them.
    pub(super) fn start(load: &Load, cpus: Cpus) -> Result<Self> {
        let group = Group::make().ok().map(Rc::new);
        let receiver = Process::start("receiver", Part::Receiver(ReceiverOf(load.clone())))?;
        let sender = Process::start("sender", Part::Sender(SenderOf(load.clone())))?;
        let pids = [sender.pid(), receiver.pid()];
        if let Some(group) = &group {
            pids.iter().try_for_each(|pid| group.take(*pid))?;
        }
        cpus.place(pids)?;
        let mut pair =
            Self { sender, receiver, pids, group, clamped: false, before: Default::default() };
        for process in [&mut pair.receiver, &mut pair.sender] {
            let answer = process.answer()?;
            process.expect_done(&answer)?;
        }
        pair.connect(load)?;
        Ok(pair)
    }

    fn connect(&mut self, load: &Load) -> Result<()> {
        if load.path != Path::Loopback {
            self.sender.tell(&Order::Reach { receiver: self.receiver.pid() })?;
        }
        let to = match self.receiver.ask(&Order::Listen)? {
            Answer::Listening(address) => address,
            other => return Err(self.receiver.failure(&format!("answered {other:?}"))),
        };
        let mut all = 0;
        while all < load.connections {
            let count = BATCH.min(load.connections - all);
            let buffer = self.more(to, count)?;
            all += count;
            self.receiver.tell(&Order::Accept { all })?;
            // The system doubles what is asked for, to have room for its own structures.
            self.clamped = load.buffer.is_some_and(|asked| buffer < 2 * asked);
        }
        Ok(())
    }

    fn more(&mut self, to: SocketAddrV4, count: usize) -> Result<usize> {
        match self.sender.ask(&Order::Connect { to, count })? {
            Answer::Connected { buffer } => Ok(buffer),
            other => Err(self.sender.failure(&format!("answered {other:?}"))),
        }
    }

    /// Where their CPU time is counted.
    pub(super) fn ledger(&self) -> Ledger {
        Ledger { pids: self.pids, group: self.group.clone() }
    }

    /// The sender's number and the receiver's.
    pub(super) const fn pids(&self) -> [u32; 2] {
        self.pids
    }

    /// Whether the system gave smaller buffers than it was asked for.
    pub(super) const fn clamped(&self) -> bool {
        self.clamped
    }

    /// The sender begins to write.
    pub(super) fn go(&mut self) -> Result<()> {
        self.sender.tell(&Order::Go)
    }

    /// The sender stops, and everything that it has sent is received: what both did since the last
    /// time.
    pub(super) fn pause(&mut self) -> Result<[Totals; 2]> {
        let answer = self.sender.ask(&Order::Pause)?;
        self.settle(answer)
    }

    /// User and system time of the sender and of the receiver.
    pub(super) fn ticks(&self) -> [[f64; 2]; 2] {
        self.pids.map(counts::ticks)
    }

    /// Sends so many bytes through the first connection and waits for their arrival.
    pub(super) fn transfer(&mut self, way: Way, bytes: u64) -> Result<[Totals; 2]> {
        let answer = self.sender.ask(&Order::Transfer { way, bytes })?;
        self.settle(answer)
    }

    fn settle(&mut self, answer: Answer) -> Result<[Totals; 2]> {
        let sent = totals(&self.sender, answer)?;
        let answer = self.receiver.ask(&Order::Until { bytes: sent.bytes })?;
        let received = totals(&self.receiver, answer)?;
        if sent.bytes != received.bytes {
            return Err(Failure::new(format!(
                "{} bytes were sent and {} received",
                sent.bytes, received.bytes
            )));
        }
        let before = std::mem::replace(&mut self.before, [sent, received]);
        Ok([sent.since(before[0]), received.since(before[1])])
    }
}

fn totals(process: &Process, answer: Answer) -> Result<Totals> {
    match answer {
        Answer::Totals(totals) => Ok(totals),
        other => Err(process.failure(&format!("answered {other:?}"))),
    }
}

impl Totals {
    const fn since(self, earlier: Self) -> Self {
        Self {
            bytes: self.bytes - earlier.bytes,
            calls: self.calls - earlier.calls,
            again: self.again - earlier.again,
        }
    }
}

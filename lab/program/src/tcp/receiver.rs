// SPDX-License-Identifier: Apache-2.0
//! The receiver: one thread, all connections, reads of whatever is there.

use super::control::{Answer, Control, Events, ORDER, Order, Totals};
use super::load::Load;
use super::{link, sender, socket};
use crate::{Failure, Result};
use rustix::event::epoll::EventFlags;
use rustix::io::{Errno, ioctl_fionbio, read};
use rustix::net::{accept, bind, getsockname, listen};
use std::net::SocketAddrV4;
use std::os::fd::OwnedFd;

/// What one read takes at most.
const READ: usize = 1 << 17;
/// Connections that may wait for being accepted; the system may allow less.
const BACKLOG: i32 = 4096;
/// The event of a connection that wants to be accepted.
const LISTENER: u64 = ORDER - 1;

struct Receiver {
    listener: OwnedFd,
    connections: Vec<OwnedFd>,
    buffer: Vec<u8>,
    totals: Totals,
}

/// Does what it is told until the lab goes.
pub(super) fn play(load: &Load, control: &mut Control) -> Result<()> {
    socket::raise_limit(load.connections)?;
    link::enter(load.path, false)?;
    control.answer(&Answer::Done)?;
    let mut events = Events::new()?;
    let Some(mut receiver) = listen_when_told(load, control, &events)? else { return Ok(()) };
    // What the lab waits for: it asks for one thing at a time.
    let mut asked = None;
    let mut fresh = Vec::new();
    loop {
        for number in events.wait()? {
            match number {
                ORDER => match control.wait()? {
                    Some(order) => asked = Some(order),
                    None => return Ok(()),
                },
                LISTENER => fresh.push(receiver.accept()?),
                number => receiver.empty(number)?,
            }
        }
        for connection in fresh.drain(..) {
            events.add(&connection, receiver.connections.len() as u64, EventFlags::IN)?;
            receiver.connections.push(connection);
        }
        if let Some(answer) = asked.as_ref().and_then(|order| receiver.answer(order)) {
            control.answer(&answer)?;
            asked = None;
        }
    }
}

fn listen_when_told(
    load: &Load,
    control: &mut Control,
    events: &Events,
) -> Result<Option<Receiver>> {
    match control.wait()? {
        None => return Ok(None),
        Some(Order::Listen) => link::take(load.path)?,
        Some(other) => return Err(Failure::new(format!("a receiver was told {other:?} first"))),
    }
    let listener = socket::make(load)?;
    let begun = bind(&listener, &SocketAddrV4::new(load.path.address(std::process::id()), 0))
        .and_then(|()| listen(&listener, BACKLOG))
        .and_then(|()| getsockname(&listener));
    let address = begun.map_err(|error| socket::failed("listen", error))?;
    let address = SocketAddrV4::try_from(address)
        .map_err(|error| socket::failed("the listener's address", error))?;
    events.add(&listener, LISTENER, EventFlags::IN)?;
    control.answer(&Answer::Listening(address))?;
    Ok(Some(Receiver {
        listener,
        connections: Vec::with_capacity(load.connections),
        buffer: vec![0; READ],
        totals: Totals::default(),
    }))
}

impl Receiver {
    fn accept(&self) -> Result<OwnedFd> {
        let connection = accept(&self.listener).map_err(|error| socket::failed("accept", error))?;
        ioctl_fionbio(&connection, true).map_err(|error| socket::failed("a connection", error))?;
        Ok(connection)
    }

    /// One read of one connection: what is left makes another event.
    fn empty(&mut self, number: u64) -> Result<()> {
        let Some(connection) = sender::at(&self.connections, number) else { return Ok(()) };
        match read(connection, &mut *self.buffer) {
            Ok(0) => Err(Failure::new("the sender ended early")),
            Ok(count) => {
                self.totals.bytes += count as u64;
                self.totals.calls += 1;
                Ok(())
            }
            Err(Errno::AGAIN) => {
                self.totals.again += 1;
                Ok(())
            }
            Err(Errno::INTR) => Ok(()),
            Err(error) => Err(socket::failed("read", error)),
        }
    }

    /// The answer, when it can be given.
    fn answer(&self, order: &Order) -> Option<Answer> {
        match order {
            Order::Accept { all } => (self.connections.len() >= *all).then_some(Answer::Done),
            Order::Until { bytes } => {
                (self.totals.bytes >= *bytes).then_some(Answer::Totals(self.totals))
            }
            other => Some(Answer::Failed {
                message: format!("a receiver was told {other:?}"),
                hint: None,
            }),
        }
    }
}

// SPDX-License-Identifier: Apache-2.0
//! The sender: one thread, all connections, writes of one size without waiting.

use super::control::{Answer, Control, Events, ORDER, Order, Totals, Way};
use super::load::Load;
use super::{link, socket, transfer};
use crate::{Failure, Result};
use rustix::event::epoll::EventFlags;
use rustix::io::{Errno, ioctl_fionbio, write};
use rustix::net::connect;
use std::os::fd::OwnedFd;

/// Writes of one connection before the next one's turn: so many bytes, and so many calls.
const TURN: [usize; 2] = [1 << 20, 64];

struct Sender {
    connections: Vec<OwnedFd>,
    events: Events,
    block: Vec<u8>,
    turn: usize,
    totals: Totals,
    /// What is transferred, made when it is asked for.
    file: Option<OwnedFd>,
}

/// Does what it is told until the lab goes.
pub(super) fn play(load: &Load, control: &mut Control) -> Result<()> {
    socket::raise_limit(load.connections)?;
    link::enter(load.path, true)?;
    let mut sender = Sender {
        connections: Vec::with_capacity(load.connections),
        events: Events::new()?,
        block: vec![0x5A; load.write],
        turn: (TURN[0] / load.write).clamp(1, TURN[1]),
        totals: Totals::default(),
        file: None,
    };
    control.answer(&Answer::Done)?;
    while let Some(order) = control.wait()? {
        let answer = match order {
            Order::Reach { receiver } => link::reach(load.path, receiver).map(|()| Answer::Done)?,
            Order::Connect { to, count } => {
                for _ in 0..count {
                    let socket = socket::make(load)?;
                    connect(&socket, &to).map_err(|error| socket::failed("connect", error))?;
                    sender.take(socket)?;
                }
                Answer::Connected { buffer: socket::buffer(&sender.connections[0])? }
            }
            Order::Go => {
                control.answer(&Answer::Done)?;
                sender.write_until_told()?;
                continue;
            }
            Order::Pause => Answer::Totals(sender.totals),
            Order::Transfer { way, bytes } => sender.transfer(way, bytes)?,
            other => return Err(Failure::new(format!("a sender was told {other:?}"))),
        };
        control.answer(&answer)?;
    }
    Ok(())
}

impl Sender {
    fn transfer(&mut self, way: Way, bytes: u64) -> Result<Answer> {
        let file = match self.file.take() {
            Some(file) => file,
            None => transfer::file()?,
        };
        transfer::send(self.file.insert(file), &self.connections[0], way, bytes)?;
        self.totals.bytes += bytes;
        Ok(Answer::Totals(self.totals))
    }

    fn take(&mut self, socket: OwnedFd) -> Result<()> {
        ioctl_fionbio(&socket, true).map_err(|error| socket::failed("a connection", error))?;
        self.events.add(&socket, self.connections.len() as u64, EventFlags::OUT)?;
        self.connections.push(socket);
        Ok(())
    }

    /// Writes to whatever has room, until there is an order. Nothing else is in between: the order is
    /// read by the caller.
    fn write_until_told(&mut self) -> Result<()> {
        let mut told = false;
        while !told {
            for number in self.events.wait()? {
                if number == ORDER {
                    told = true;
                } else if let Some(connection) = at(&self.connections, number) {
                    fill(connection, &self.block, self.turn, &mut self.totals)?;
                }
            }
        }
        Ok(())
    }
}

pub(super) fn at(connections: &[OwnedFd], number: u64) -> Option<&OwnedFd> {
    connections.get(usize::try_from(number).ok()?)
}

/// One connection's turn.
fn fill(connection: &OwnedFd, block: &[u8], turn: usize, totals: &mut Totals) -> Result<()> {
    for _ in 0..turn {
        match write(connection, block) {
            Ok(count) => {
                totals.bytes += count as u64;
                totals.calls += 1;
            }
            Err(Errno::AGAIN) => {
                totals.again += 1;
                break;
            }
            Err(Errno::INTR) => {}
            Err(error) => return Err(socket::failed("write", error)),
        }
    }
    Ok(())
}

// SPDX-License-Identifier: Apache-2.0
//! What the kernel lets this user put into it or have of it: programs, rings, namespaces.

use super::files::text;
use super::outcome::{Outcome, Trouble};
use metaslot_perf::{Counter, Event, Scope};
use metaslot_system::bpf::{self, Kind, Program};
use metaslot_system::namespace::{self, Namespaces};
use metaslot_system::ring;
use std::io;

type Attempt = Result<Outcome, Trouble>;

/// A program for a socket.
pub(crate) fn bpf_program() -> Attempt {
    Program::load(Kind::SocketFilter)?;
    Ok(Outcome::new("a socket filter was taken"))
}

/// A program at the tracepoint of soft interrupts, for a moment.
pub(crate) fn bpf_tracepoint() -> Attempt {
    let number = tracepoint("irq/softirq_entry")?;
    let program = Program::load(Kind::Tracepoint)?;
    let counter = Counter::open(Event::Tracepoint(number), Scope::Cpu(0))?;
    counter.attach(&program)?;
    Ok(Outcome::new("a program ran at irq:softirq_entry of CPU 0"))
}

fn tracepoint(name: &str) -> Result<u64, Trouble> {
    let places = ["/sys/kernel/tracing", "/sys/kernel/debug/tracing"];
    let numbers = places
        .iter()
        .filter_map(|place| text(format!("{place}/events/{name}/id")).ok()?.parse::<u64>().ok());
    numbers.into_iter().next().ok_or_else(|| {
        let needs = "root: mount -t tracefs tracefs /sys/kernel/tracing";
        Trouble::reason("no tracepoints can be read", needs)
    })
}

/// A map of sockets and a program that sends messages through it.
pub(crate) fn sockmap() -> Attempt {
    bpf::sockmap()?;
    Program::load(Kind::Message)?;
    Ok(Outcome::new("a map of sockets and a program for messages were taken"))
}

/// A ring.
pub(crate) fn io_uring() -> Attempt {
    ring::setup()?;
    Ok(Outcome::new("a ring was set up"))
}

/// Users of one's own.
pub(crate) fn user_namespace() -> Attempt {
    namespace::unshare(Namespaces::User)?;
    Ok(Outcome::new("a child had one"))
}

/// A network of one's own.
pub(crate) fn network_namespace() -> Attempt {
    with_or_without_users(namespace::unshare, "a child had one")
}

/// Two devices in a network of one's own.
pub(crate) fn veth() -> Attempt {
    with_or_without_users(namespace::veth, "a child made a pair in its own network")
}

/// A user without privileges gets a network in a namespace of users only.
fn with_or_without_users(attempt: fn(Namespaces) -> io::Result<()>, says: &str) -> Attempt {
    match attempt(Namespaces::Network) {
        Err(error) if error.kind() == io::ErrorKind::PermissionDenied => {
            attempt(Namespaces::Both)?;
            Ok(Outcome::new(format!("{says}, with users of its own")))
        }
        other => Ok(other.map(|()| Outcome::new(says))?),
    }
}

// SPDX-License-Identifier: Apache-2.0
//! Sockets of the generator: buffers and congestion control are set before there is a connection,
//! because both count in its first segments.

use super::load::Load;
use crate::{Failure, Result};
use rustix::io::Errno;
use rustix::net::{AddressFamily, SocketFlags, SocketType, socket_with, sockopt};
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use std::os::fd::{AsFd, OwnedFd};

/// A TCP socket with the load's buffers and congestion control, blocking.
pub(super) fn make(load: &Load) -> Result<OwnedFd> {
    let socket = plain().map_err(|error| failed("a socket", error))?;
    if let Some(bytes) = load.buffer {
        let set = sockopt::set_socket_send_buffer_size(&socket, bytes)
            .and_then(|()| sockopt::set_socket_recv_buffer_size(&socket, bytes));
        set.map_err(|error| failed("a socket's buffer", error))?;
    }
    if let Some(congestion) = &load.congestion {
        let set = sockopt::set_tcp_congestion(&socket, congestion);
        set.map_err(|error| {
            let hint = match error {
                Errno::PERM => format!("this user may have: {}", file("tcp_allowed")),
                _ => format!("this system has: {}", available()),
            };
            failed(&format!("congestion control {congestion}"), error).hint(hint)
        })?;
    }
    Ok(socket)
}

fn plain() -> rustix::io::Result<OwnedFd> {
    socket_with(AddressFamily::INET, SocketType::STREAM, SocketFlags::CLOEXEC, None)
}

/// The smaller of its two buffers.
pub(super) fn buffer(socket: impl AsFd) -> Result<usize> {
    let socket = socket.as_fd();
    let sizes = sockopt::socket_send_buffer_size(socket)
        .and_then(|send| Ok(send.min(sockopt::socket_recv_buffer_size(socket)?)));
    sizes.map_err(|error| failed("a socket's buffer", error))
}

pub(super) fn failed(what: &str, error: Errno) -> Failure {
    Failure::new(format!("{what}: {error}"))
}

/// The kinds of congestion control that this system has.
pub(super) fn available() -> String {
    file("tcp_available")
}

/// What the system uses by itself.
pub(super) fn default_congestion() -> String {
    Some(file("tcp")).filter(|name| !name.is_empty()).unwrap_or_else(|| "unknown".to_owned())
}

fn file(which: &str) -> String {
    let text = std::fs::read_to_string(format!("/proc/sys/net/ipv4/{which}_congestion_control"));
    text.unwrap_or_default().trim().to_owned()
}

/// The kind that is used unless another one is asked for: the same everywhere, where it is there and this
/// user may have it, since it changes the cost.
pub(super) fn usual_congestion() -> Option<String> {
    const USUAL: &str = "cubic";
    let allowed = plain().and_then(|socket| sockopt::set_tcp_congestion(&socket, USUAL));
    allowed.is_ok().then(|| USUAL.to_owned())
}

/// As many descriptors as the system allows, or why they are too few.
pub(super) fn raise_limit(connections: usize) -> Result<()> {
    let limit = getrlimit(Resource::Nofile);
    setrlimit(Resource::Nofile, Rlimit { current: limit.maximum, ..limit }).ok();
    let most = limit.maximum.unwrap_or(u64::MAX);
    let needed = connections as u64 + 16;
    if needed <= most {
        return Ok(());
    }
    Err(Failure::new(format!(
        "{connections} connections need {needed} descriptors, and a process may have {most}"
    ))
    .hint("raise the hard limit (ulimit -Hn, as root), or fewer --connections"))
}

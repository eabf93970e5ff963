// SPDX-License-Identifier: Apache-2.0
//! Sockets of the generator: buffers and congestion control are set before there is a connection,
//! because both count in its first segments.

use super::load::Load;
use crate::{Failure, Result};
use rustix::io::Errno;
use rustix::net::{AddressFamily, SocketFlags, SocketType, socket_with, sockopt};
use std::os::fd::{AsFd, OwnedFd};

/// A TCP socket with the load's buffers and congestion control, blocking.
pub(super) fn make(load: &Load) -> Result<OwnedFd> {
    let (family, kind) = (AddressFamily::INET, SocketType::STREAM);
    let socket = socket_with(family, kind, SocketFlags::CLOEXEC, None);
    let socket = socket.map_err(|error| failed("a socket", error))?;
    if let Some(bytes) = load.buffer {
        let set = sockopt::set_socket_send_buffer_size(&socket, bytes)
            .and_then(|()| sockopt::set_socket_recv_buffer_size(&socket, bytes));
        set.map_err(|error| failed("a socket's buffer", error))?;
    }
    if let Some(congestion) = &load.congestion {
        let set = sockopt::set_tcp_congestion(&socket, congestion);
        set.map_err(|error| {
            failed(&format!("congestion control {congestion}"), error)
                .hint(format!("this system has: {}", available()))
        })?;
    }
    Ok(socket)
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
    let text = std::fs::read_to_string("/proc/sys/net/ipv4/tcp_available_congestion_control");
    text.unwrap_or_default().trim().to_owned()
}

/// What the system uses by itself.
pub(super) fn default_congestion() -> String {
    let text = std::fs::read_to_string("/proc/sys/net/ipv4/tcp_congestion_control");
    text.map_or_else(|_| "unknown".to_owned(), |text| text.trim().to_owned())
}

/// The kind that is used unless another one is asked for: the same everywhere, where it is there, since
/// it changes the cost.
pub(super) fn usual_congestion() -> Option<String> {
    available().split(' ').any(|name| name == "cubic").then(|| "cubic".to_owned())
}

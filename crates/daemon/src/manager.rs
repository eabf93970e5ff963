// SPDX-License-Identifier: Apache-2.0
//! What a service manager is told: systemd's `Type=notify`, a datagram to the socket that `NOTIFY_SOCKET` names.

use std::env;
use std::ffi::OsStr;
use std::io;
use std::os::linux::net::SocketAddrExt as _;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::net::{SocketAddr, UnixDatagram};

/// Tells it a state, such as `READY=1`. Where there is none, or it does not listen, nothing is told.
pub(crate) fn tell(state: &str) {
    if let Some(name) = env::var_os("NOTIFY_SOCKET") {
        send(&name, state).ok();
    }
}

fn send(name: &OsStr, state: &str) -> io::Result<usize> {
    let address = match name.as_bytes().strip_prefix(b"@") {
        Some(name) => SocketAddr::from_abstract_name(name)?,
        None => SocketAddr::from_pathname(name)?,
    };
    UnixDatagram::unbound()?.send_to_addr(state.as_bytes(), &address)
}

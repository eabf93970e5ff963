// SPDX-License-Identifier: Apache-2.0
//! What the log says, and what a service manager is told: systemd's `Type=notify`, a datagram to the socket that `NOTIFY_SOCKET` names.

use rustix::time::{ClockId, clock_gettime};
use std::env;
use std::ffi::OsStr;
use std::io::{self, Write as _};
use std::os::linux::net::SocketAddrExt as _;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::net::{SocketAddr, UnixDatagram};
use std::time::Duration;

/// It serves, too, where nothing can be said.
pub(crate) fn say(what: &str) {
    writeln!(io::stderr(), "metaslotd: {what}").ok();
}

/// Tells it a state, such as `READY=1`. Where there is none, or it does not listen, nothing is told.
pub(crate) fn tell(state: &str) {
    if let Some(name) = env::var_os("NOTIFY_SOCKET") {
        send(&name, state).ok();
    }
}

/// Tells it that the configuration is read again, until `READY=1`; since when is what it knows this message by.
pub(crate) fn tell_reloading() {
    let now = clock_gettime(ClockId::Monotonic);
    let micros = Duration::try_from(now).map_or(0, |now| now.as_micros());
    tell(&format!("RELOADING=1\nMONOTONIC_USEC={micros}"));
}

fn send(name: &OsStr, state: &str) -> io::Result<usize> {
    let address = match name.as_bytes().strip_prefix(b"@") {
        Some(name) => SocketAddr::from_abstract_name(name)?,
        None => SocketAddr::from_pathname(name)?,
    };
    UnixDatagram::unbound()?.send_to_addr(state.as_bytes(), &address)
}

// SPDX-License-Identifier: Apache-2.0
//! Sockets that a service manager has made and passes: systemd's protocol (`sd_listen_fds(3)`). Who connects before the daemon is
//! there, or while it is replaced, waits.

use crate::failure::Failure;
use listenfd::ListenFd;
use metaslot_wiring::text::words;
use rustix::net::sockopt::socket_acceptconn;
use std::os::unix::fs::MetadataExt as _;
use std::os::unix::net::UnixListener;
use std::path::{Path, PathBuf};
use std::{env, fs};

/// Those that are not in use yet.
#[derive(Debug, Default)]
pub(crate) struct Passed(Vec<(PathBuf, UnixListener)>);

impl Passed {
    /// Those that are meant for this process: it is called once, before a program is started that would have them, too.
    ///
    /// # Errors
    /// Where one is no Unix socket that listens at a path.
    pub(crate) fn take() -> Result<Self, Failure> {
        let own = std::process::id().to_string();
        if env::var_os("LISTEN_PID").is_none_or(|meant| *meant != *own) {
            return Ok(Self::default());
        }
        let mut all = ListenFd::from_env();
        let taken = (0..all.len()).map(|at| {
            let unfit = |reason: String| {
                let reason = format!("socket {at} of the service manager: {reason}");
                Failure::configuration(reason)
            };
            let socket = all.take_unix_listener(at).map_err(|error| unfit(words(&error)))?;
            let socket = socket.ok_or_else(|| unfit(String::from("is taken")))?;
            // One that does not wait would be asked again and again.
            socket.set_nonblocking(false).map_err(|error| unfit(words(&error)))?;
            let address = socket.local_addr().map_err(|error| unfit(words(&error)))?;
            let path = address.as_pathname().ok_or_else(|| unfit(String::from("has no path")))?;
            match socket_acceptconn(&socket) {
                Ok(true) => Ok((path.to_owned(), socket)),
                _ => Err(unfit(format!("{}: does not listen", path.display()))),
            }
        });
        taken.collect::<Result<_, _>>().map(Self)
    }

    /// The one at a path, to which links may lead.
    pub(crate) fn at(&mut self, path: &Path) -> Option<UnixListener> {
        let file = |path: &Path| fs::metadata(path).ok().map(|found| (found.dev(), found.ino()));
        let there = file(path);
        let is_it = |one: &Path| one == path || there.is_some() && file(one) == there;
        let place = self.0.iter().position(|(one, _)| is_it(one))?;
        Some(self.0.swap_remove(place).1)
    }

    /// # Errors
    /// Where one is left: who connects there would wait for ever.
    pub(crate) fn end(self) -> Result<(), Failure> {
        let Some((path, _)) = self.0.first() else { return Ok(()) };
        let path = path.display();
        let reason =
            format!("{path}: the service manager listens there, and [daemon] does not name it");
        Err(Failure::configuration(reason))
    }
}

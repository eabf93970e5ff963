// SPDX-License-Identifier: Apache-2.0
//! The ways from one process to another on the same machine: how a pair of ends is made, and how
//! large the buffer between them is.

use crate::{Failure, Result};
use metaslot_system::bpf::Redirect;
use rustix::io::Errno;
use rustix::net::{AddressFamily, SocketFlags, SocketType, socketpair, sockopt};
use rustix::pipe::{PipeFlags, fcntl_getpipe_size, fcntl_setpipe_size, pipe_with};
use serde::{Deserialize, Serialize};
use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::os::fd::{AsFd, OwnedFd};

/// A local path.
#[derive(Clone, Copy, Debug, Deserialize, Eq, PartialEq, Serialize, clap::ValueEnum)]
#[serde(rename_all = "snake_case")]
pub enum LocalPath {
    /// TCP over the loopback interface
    Tcp,
    /// A pair of connected AF_UNIX stream sockets
    Unix,
    /// A pair of connected AF_UNIX seqpacket sockets
    Seqpacket,
    /// TCP whose bytes BPF puts into the reader's queue, past the stack (sockmap)
    Sockmap,
    /// A pipe
    Pipe,
}

/// Both ends of a path; closed when dropped.
#[derive(Debug)]
pub(super) struct Ends {
    /// What leads past TCP: it must go when everything was read and before an end is closed.
    pub(super) redirect: Option<Redirect>,
    pub(super) writer: OwnedFd,
    pub(super) reader: OwnedFd,
}

impl LocalPath {
    /// Every path, in the order of the tables.
    pub(super) const ALL: [Self; 5] =
        [Self::Tcp, Self::Unix, Self::Seqpacket, Self::Sockmap, Self::Pipe];
    /// Those that refuse writes when no process reads: a redirected connection takes what memory there is.
    pub(super) const REFUSING: [Self; 4] = [Self::Tcp, Self::Unix, Self::Seqpacket, Self::Pipe];

    /// As the tables say it.
    pub(super) const fn name(self) -> &'static str {
        match self {
            Self::Tcp => "TCP loopback",
            Self::Unix => "AF_UNIX stream",
            Self::Seqpacket => "AF_UNIX seqpacket",
            Self::Sockmap => "TCP + sockmap",
            Self::Pipe => "pipe",
        }
    }

    /// The name of its arm.
    pub(super) const fn word(self) -> &'static str {
        match self {
            Self::Tcp => "tcp",
            Self::Unix => "unix",
            Self::Seqpacket => "seqpacket",
            Self::Sockmap => "sockmap",
            Self::Pipe => "pipe",
        }
    }

    /// The path whose arm has that name.
    pub(super) fn of_word(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|path| path.word() == word)
    }

    /// Two connected ends, both blocking.
    ///
    /// # Errors
    /// The system refused.
    pub(super) fn ends(self) -> Result<Ends> {
        let made = match self {
            Self::Tcp => tcp(),
            Self::Unix => unix(SocketType::STREAM),
            Self::Seqpacket => unix(SocketType::SEQPACKET),
            Self::Sockmap => redirected(),
            Self::Pipe => pipe(),
        };
        made.map_err(|failure| failure.context(self.name()).hint("--paths names the other ones"))
    }

    /// Asks for a buffer of the writer's end. The system doubles what a socket asks for, to have
    /// room for its own structures; a pipe is asked for the double, to be comparable.
    ///
    /// A size above what this user may have is no error: [`Self::buffer`] says what there is.
    ///
    /// # Errors
    /// The system refused otherwise.
    pub(super) fn ask_buffer(self, writer: impl AsFd, bytes: usize) -> Result<()> {
        let asked = match self {
            Self::Pipe => fcntl_setpipe_size(writer, 2 * bytes).map(drop),
            _ => sockopt::set_socket_send_buffer_size(writer, bytes),
        };
        match asked {
            Ok(()) | Err(Errno::PERM) => Ok(()),
            Err(error) => {
                let what = format!("{}, a buffer of {bytes} bytes", self.name());
                Err(Failure::new(error.to_string()).context(what))
            }
        }
    }

    /// The buffer that the writer's end has now. TCP's grows by itself while it has not been set.
    ///
    /// # Errors
    /// The system does not say.
    pub(super) fn buffer(self, writer: impl AsFd) -> Result<usize> {
        let effective = match self {
            Self::Pipe => fcntl_getpipe_size(writer),
            _ => sockopt::socket_send_buffer_size(writer),
        };
        effective.map_err(|error| Failure::new(error.to_string()).context(self.name()))
    }
}

fn tcp() -> Result<Ends> {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?;
    let writer = TcpStream::connect(listener.local_addr()?)?;
    let (reader, from) = listener.accept()?;
    // Any process of the machine may connect to the port.
    if from != writer.local_addr()? {
        return Err(Failure::new("another process connected first"));
    }
    Ok(Ends { writer: writer.into(), reader: reader.into(), redirect: None })
}

fn redirected() -> Result<Ends> {
    let mut ends = tcp()?;
    let redirect = Redirect::new(ends.writer.as_fd(), ends.reader.as_fd());
    ends.redirect =
        Some(redirect.map_err(|error| Failure::new(format!("a BPF redirect: {error}")))?);
    Ok(ends)
}

fn unix(kind: SocketType) -> Result<Ends> {
    let pair = socketpair(AddressFamily::UNIX, kind, SocketFlags::CLOEXEC, None);
    let (writer, reader) = pair.map_err(|error| Failure::new(error.to_string()))?;
    Ok(Ends { writer, reader, redirect: None })
}

fn pipe() -> Result<Ends> {
    let pair = pipe_with(PipeFlags::CLOEXEC);
    let (reader, writer) = pair.map_err(|error| Failure::new(error.to_string()))?;
    Ok(Ends { writer, reader, redirect: None })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_at_one_end_is_read_at_the_other() {
        for path in LocalPath::ALL {
            // A user without rights has no redirect.
            let Some(ends) = path.ends().ok() else {
                assert_eq!(path, LocalPath::Sockmap);
                continue;
            };
            assert_eq!(rustix::io::write(&ends.writer, b"a message"), Ok(9), "{path:?}");
            let mut read = [0; 32];
            assert_eq!(rustix::io::read(&ends.reader, &mut read), Ok(9), "{path:?}");
            assert_eq!(&read[..9], b"a message", "{path:?}");
        }
    }

    #[test]
    fn a_buffer_that_is_asked_for_is_given_twice() {
        for path in LocalPath::REFUSING {
            let ends = path.ends().unwrap();
            path.ask_buffer(&ends.writer, 32_768).unwrap();
            assert_eq!(path.buffer(&ends.writer).unwrap(), 65_536, "{path:?}");
        }
    }
}

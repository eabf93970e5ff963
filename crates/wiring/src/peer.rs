// SPDX-License-Identifier: Apache-2.0
//! Who is at the other end of a connection.

use crate::config::{Handle, Process};
use libc::{ENOPROTOOPT, SO_PEERCRED, c_int, socklen_t};
use std::io;
use std::os::fd::{AsRawFd as _, OwnedFd};
use std::os::unix::net::UnixStream;
use std::sync::Arc;

/// A descriptor of the process that connected (Linux 6.5), by the number that all architectures have which this library is built for.
const SO_PEERPIDFD: c_int = 77;

/// The process there, as it was when the connection was made. Its number is 0, and of no process, where it is in no namespace that
/// this one sees.
///
/// # Errors
/// Where the kernel does not say.
pub fn peer(stream: &UnixStream) -> io::Result<Process> {
    let mut credentials = [0; 3];
    ask(stream, Answer::Credentials(&mut credentials))?;
    let [id, user, _group] = credentials;
    Ok(Process { handle: handle(stream)?, ..Process::new(user, Some(id)) })
}

/// # Errors
/// Where there is no descriptor to spare: then it is not known whether the process has ended.
fn handle(stream: &UnixStream) -> io::Result<Handle> {
    let mut descriptor = None;
    match ask(stream, Answer::Descriptor(&mut descriptor)) {
        Ok(()) => Ok(descriptor.map_or(Handle::Absent, |held| Handle::Held(Arc::new(held)))),
        Err(error) => match error.raw_os_error() {
            Some(libc::ESRCH | libc::EINVAL) => Ok(Handle::Gone),
            // Some sandboxes have no answer of their own, either.
            Some(ENOPROTOOPT | libc::EOPNOTSUPP | libc::ENOSYS) => Ok(Handle::Absent),
            _ => Err(error),
        },
    }
}

/// What is asked, by where its answer goes.
enum Answer<'a> {
    /// A process, its user and its group.
    Credentials(&'a mut [u32; 3]),
    /// A new descriptor; nothing is -1.
    Descriptor(&'a mut Option<OwnedFd>),
}

fn ask(stream: &UnixStream, answer: Answer<'_>) -> io::Result<()> {
    const CREDENTIALS: socklen_t = 12;
    const DESCRIPTOR: socklen_t = 4;
    const { assert!(size_of::<libc::ucred>() == CREDENTIALS as usize) };
    const { assert!(size_of::<Option<OwnedFd>>() == DESCRIPTOR as usize) };
    let (option, to, expected) = match answer {
        Answer::Credentials(to) => (SO_PEERCRED, (&raw mut *to).cast(), CREDENTIALS),
        Answer::Descriptor(to) => (SO_PEERPIDFD, (&raw mut *to).cast(), DESCRIPTOR),
    };
    let (socket, mut length) = (stream.as_raw_fd(), expected);
    // SAFETY: the kernel writes at most `length` bytes, which is how long `to` is: either three numbers, and any bytes are some,
    // or the number of a descriptor that it has made for who asks and that has no other owner.
    let said = unsafe { libc::getsockopt(socket, libc::SOL_SOCKET, option, to, &raw mut length) };
    if said != 0 {
        return Err(io::Error::last_os_error());
    }
    if length == expected { Ok(()) } else { Err(io::ErrorKind::InvalidData.into()) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rustix::process::geteuid;
    use std::os::unix::net::UnixListener;
    use std::process::{Command, id};
    use std::{env, fs};

    const TO_CONNECT: &str = "METASLOT_TO_CONNECT";

    #[test]
    fn the_other_end_of_a_connection_is_known() {
        let (near, _far) = UnixStream::pair().expect("a pair of sockets");
        let peer = peer(&near).expect("the kernel says who it is");
        assert_eq!((peer.user, peer.id), (geteuid().as_raw(), Some(id())));
        assert!(!matches!(peer.handle, Handle::Gone) && !peer.has_ended());
    }

    #[test]
    fn one_that_has_ended_since_it_connected_is_known_to_have_ended() {
        if let Some(path) = env::var_os(TO_CONNECT) {
            UnixStream::connect(path).expect("it listens");
            return;
        }
        let path = env::temp_dir().join(format!("metaslot-peer-{}", id()));
        let listener = UnixListener::bind(&path).expect("a socket is made");
        let mut other = Command::new(env::current_exe().expect("the test has a file"));
        other.args([
            "--exact",
            "peer::tests::one_that_has_ended_since_it_connected_is_known_to_have_ended",
        ]);
        let ended = other.env(TO_CONNECT, &path).output().expect("it runs");
        assert!(ended.status.success());
        fs::remove_file(&path).expect("it was there");
        let (stream, _) = listener.accept().expect("it has connected");
        let peer = peer(&stream).expect("the kernel says who it was");
        assert!(peer.has_ended() || matches!(peer.handle, Handle::Absent), "{peer:?}");
    }
}

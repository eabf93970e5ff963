// SPDX-License-Identifier: Apache-2.0
//! Who is at the other end of a connection.

use crate::config::Process;
use std::io;
use std::os::fd::AsRawFd as _;
use std::os::unix::net::UnixStream;

/// The process there, as it was when the connection was made. Its number is 0, and of no process, where it is in no namespace that
/// this one sees.
///
/// # Errors
/// Where the kernel does not say.
pub fn peer(stream: &UnixStream) -> io::Result<Process> {
    const SIZE: libc::socklen_t = 12;
    const { assert!(size_of::<libc::ucred>() == SIZE as usize) };
    let mut peer = libc::ucred { pid: 0, uid: 0, gid: 0 };
    let (fd, mut length) = (stream.as_raw_fd(), SIZE);
    let to = (&raw mut peer).cast();
    // SAFETY: the kernel writes at most `length` bytes, which are three numbers: any bytes are some.
    let said =
        unsafe { libc::getsockopt(fd, libc::SOL_SOCKET, libc::SO_PEERCRED, to, &raw mut length) };
    if said != 0 || length != SIZE {
        return Err(io::Error::last_os_error());
    }
    Ok(Process { user: peer.uid, id: Some(peer.pid.unsigned_abs()) })
}

#[cfg(test)]
mod tests {
    use super::*;
    use rustix::process::geteuid;

    #[test]
    fn the_other_end_of_a_connection_is_known() {
        let (near, _far) = UnixStream::pair().expect("a pair of sockets");
        let peer = peer(&near).expect("the kernel says who it is");
        assert_eq!((peer.user, peer.id), (geteuid().as_raw(), Some(std::process::id())));
    }
}

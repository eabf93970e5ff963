// SPDX-License-Identifier: Apache-2.0
//! Ways of bytes between processes and sockets, each with a few bytes over the loopback device.

use super::files::text;
use super::outcome::{Outcome, Trouble};
use metaslot_system::{pipe as memory_to_pipe, socket};
use rustix::fs::{MemfdFlags, memfd_create, sendfile};
use rustix::io::Errno;
use rustix::pipe::{SpliceFlags, pipe, splice};
use std::fs::File;
use std::io::{Read, Write};
use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::time::{Duration, Instant};

type Attempt = Result<Outcome, Trouble>;

static BYTES: [u8; 4096] = [7; 4096];
/// How long an answer may take.
const LIMIT: Duration = Duration::from_millis(300);

/// Both ends of a connection over the loopback device.
fn connection() -> std::io::Result<(TcpStream, TcpStream)> {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?;
    let near = TcpStream::connect(listener.local_addr()?)?;
    let (far, _) = listener.accept()?;
    far.set_read_timeout(Some(LIMIT))?;
    Ok((near, far))
}

/// The kernel's TLS on a connection.
pub(crate) fn kernel_tls() -> Attempt {
    let (near, _far) = connection()?;
    socket::use_kernel_tls(near.as_fd())?;
    Ok(Outcome::new("a connection was handed over"))
}

/// The kernel's ciphers.
pub(crate) fn kernel_ciphers() -> Attempt {
    socket::algorithm("cbc(aes)")?;
    Ok(Outcome::new("cbc(aes) is there"))
}

/// A send without a copy, and whether there was one after all.
pub(crate) fn zerocopy() -> Attempt {
    let (near, mut far) = connection()?;
    socket::allow_zerocopy(near.as_fd())?;
    let sent = socket::send_zerocopy(near.as_fd(), &BYTES)?;
    far.read_exact(&mut vec![0; sent])?;
    let copied = notification(&near)?;
    let what = if copied { "the kernel copied all the same" } else { "nothing was copied" };
    Ok(Outcome::new(format!("sent over loopback; {what}"))
        .figure("copied", f64::from(u8::from(copied))))
}

fn notification(near: &TcpStream) -> Result<bool, Trouble> {
    let started = Instant::now();
    loop {
        match socket::zerocopy_copied(near.as_fd()) {
            Err(error) if error.kind() == std::io::ErrorKind::WouldBlock => {
                if started.elapsed() > LIMIT {
                    return Err(Errno::AGAIN.into());
                }
                std::thread::sleep(Duration::from_micros(200));
            }
            other => return Ok(other?),
        }
    }
}

/// A file in memory with some bytes.
fn file() -> Result<File, Trouble> {
    let mut file = File::from(memfd_create("probe", MemfdFlags::CLOEXEC)?);
    file.write_all(&BYTES)?;
    Ok(file)
}

/// From a file into a socket.
pub(crate) fn send_file() -> Attempt {
    let (near, far) = UnixStream::pair()?;
    let mut offset = 0;
    let sent = sendfile(&near, file()?, Some(&mut offset), BYTES.len())?;
    arrived(far.into(), sent)
}

/// From a file into a pipe, and from there into a socket.
pub(crate) fn splice_file() -> Attempt {
    let (near, far) = UnixStream::pair()?;
    let (output, input) = pipe()?;
    let (mut offset, flags) = (0, SpliceFlags::empty());
    let moved = splice(file()?, Some(&mut offset), &input, None, BYTES.len(), flags)?;
    let moved = splice(&output, None, &near, None, moved, flags)?;
    arrived(far.into(), moved)
}

/// From memory into a pipe.
pub(crate) fn splice_memory() -> Attempt {
    let (output, input) = pipe()?;
    let moved = memory_to_pipe::vmsplice(input.as_fd(), &BYTES)?;
    arrived(output, moved)
}

fn arrived(end: OwnedFd, moved: usize) -> Attempt {
    let mut bytes = vec![0; moved];
    File::from(end).read_exact(&mut bytes)?;
    let doubt = (moved == 0 || bytes != BYTES[..moved]).then(|| "other bytes arrived".to_owned());
    Ok(Outcome::new(format!("{moved} bytes arrived")).doubted(doubt))
}

/// A socket of a kind that a kernel may lack.
pub(crate) fn socket_of(kind: socket::Kind) -> Attempt {
    socket::open(kind)?;
    Ok(Outcome::new("a socket was opened"))
}

/// Who decides how fast TCP sends.
pub(crate) fn congestion_control() -> Attempt {
    let current = text("/proc/sys/net/ipv4/tcp_congestion_control")?;
    let all = text("/proc/sys/net/ipv4/tcp_available_congestion_control")?;
    Ok(Outcome::new(format!("{current} of: {all}")))
}

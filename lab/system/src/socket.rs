// SPDX-License-Identifier: Apache-2.0
//! Options and kinds of sockets that have no safe function elsewhere.

use crate::{done, opened};
use std::io;
use std::mem::size_of;
use std::os::fd::{AsRawFd, BorrowedFd};

/// A kind of socket.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Kind {
    /// TCP over several paths.
    Mptcp,
    /// Between virtual machines and their host.
    Vsock,
    /// Packets past the kernel's stack.
    Xdp,
    /// Raw packets.
    Packet,
}

/// Opens a socket and closes it.
///
/// # Errors
/// The kernel's: EAFNOSUPPORT or EPROTONOSUPPORT for a kind that it does not have.
pub fn open(kind: Kind) -> io::Result<()> {
    let (family, kind, protocol) = match kind {
        Kind::Mptcp => (libc::AF_INET, libc::SOCK_STREAM, libc::IPPROTO_MPTCP),
        Kind::Vsock => (libc::AF_VSOCK, libc::SOCK_STREAM, 0),
        Kind::Xdp => (libc::AF_XDP, libc::SOCK_RAW, 0),
        Kind::Packet => (libc::AF_PACKET, libc::SOCK_RAW, 0),
    };
    // SAFETY: takes numbers only.
    let socket = unsafe { libc::socket(family, kind | libc::SOCK_CLOEXEC, protocol) };
    // SAFETY: this call opens a descriptor.
    unsafe { opened(socket.into()) }.map(drop)
}

/// Opens a socket of the kernel's own cryptography for a cipher (`cbc(aes)`) and closes it.
///
/// # Errors
/// The kernel's: EAFNOSUPPORT where it has no such sockets, ENOENT where it has no such cipher.
pub fn algorithm(cipher: &str) -> io::Result<()> {
    let kind = libc::SOCK_SEQPACKET | libc::SOCK_CLOEXEC;
    // SAFETY: takes numbers only.
    let socket = unsafe { libc::socket(libc::AF_ALG, kind, 0) };
    // SAFETY: this call opens a descriptor.
    let socket = unsafe { opened(socket.into()) }?;
    let mut address = libc::sockaddr_alg {
        salg_family: u16::try_from(libc::AF_ALG).unwrap_or(0),
        salg_type: [0; 14],
        salg_feat: 0,
        salg_mask: 0,
        salg_name: [0; 64],
    };
    // One zero byte stays behind each name.
    address.salg_type.iter_mut().zip(b"skcipher").for_each(|(to, from)| *to = *from);
    address.salg_name.iter_mut().take(63).zip(cipher.bytes()).for_each(|(to, from)| *to = from);
    let length = libc::socklen_t::try_from(size_of::<libc::sockaddr_alg>()).unwrap_or(0);
    let address = (&raw const address).cast();
    // SAFETY: the address lives during the call and has the length given.
    done(unsafe { libc::bind(socket.as_raw_fd(), address, length) })
}

/// Hands a TCP connection to the kernel's TLS.
///
/// # Errors
/// The kernel's: ENOENT where it has no TLS.
pub fn use_kernel_tls(socket: BorrowedFd<'_>) -> io::Result<()> {
    set(socket, libc::IPPROTO_TCP, libc::TCP_ULP, b"tls")
}

/// Allows sends without a copy.
///
/// # Errors
/// The kernel's.
pub fn allow_zerocopy(socket: BorrowedFd<'_>) -> io::Result<()> {
    set(socket, libc::SOL_SOCKET, libc::SO_ZEROCOPY, &1_i32.to_ne_bytes())
}

/// Only for options that hold no pointers.
fn set(socket: BorrowedFd<'_>, level: i32, name: i32, value: &[u8]) -> io::Result<()> {
    let length = libc::socklen_t::try_from(value.len()).unwrap_or(0);
    let (number, value) = (socket.as_raw_fd(), value.as_ptr().cast());
    // SAFETY: the kernel reads so many bytes of the value.
    done(unsafe { libc::setsockopt(number, level, name, value, length) })
}

/// Sends bytes without a copy, if the kernel can.
///
/// # Errors
/// The kernel's.
pub fn send_zerocopy(socket: BorrowedFd<'_>, bytes: &'static [u8]) -> io::Result<usize> {
    let (number, start, flags) = (socket.as_raw_fd(), bytes.as_ptr().cast(), libc::MSG_ZEROCOPY);
    // SAFETY: the kernel may read the bytes until the receiver has them: they live forever.
    let sent = unsafe { libc::send(number, start, bytes.len(), flags) };
    usize::try_from(sent).map_err(|_| io::Error::last_os_error())
}

/// Whether the kernel copied after all, from the oldest notification of [`send_zerocopy`].
///
/// # Errors
/// The kernel's: EAGAIN while there is no notification.
pub fn zerocopy_copied(socket: BorrowedFd<'_>) -> io::Result<bool> {
    let mut control = [0_u64; 16];
    // SAFETY: a message header of zeros has no addresses and no buffers.
    let mut message: libc::msghdr = unsafe { std::mem::zeroed() };
    message.msg_control = control.as_mut_ptr().cast();
    message.msg_controllen = size_of::<[u64; 16]>();
    let (number, message) = (socket.as_raw_fd(), &raw mut message);
    let flags = libc::MSG_ERRQUEUE | libc::MSG_DONTWAIT;
    // SAFETY: the header names one buffer, which lives during the call and has the length given.
    let length = unsafe { libc::recvmsg(number, message, flags) };
    if length < 0 {
        return Err(io::Error::last_os_error());
    }
    copied(&control).ok_or_else(|| io::ErrorKind::InvalidData.into())
}

/// The control message: a header of 16 bytes, then the error's number (4 bytes), its origin, type
/// and code.
fn copied(control: &[u64]) -> Option<bool> {
    const ORIGIN_ZEROCOPY: u8 = 5;
    const CODE_COPIED: u8 = 1;
    let bytes = control.get(2)?.to_ne_bytes();
    (bytes[4] == ORIGIN_ZEROCOPY).then_some(bytes[6] == CODE_COPIED)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_notification_says_whether_there_was_a_copy() {
        let notification =
            |origin, code| [0, 0, u64::from_ne_bytes([0, 0, 0, 0, origin, 0, code, 0])];
        assert_eq!(copied(&notification(5, 1)), Some(true));
        assert_eq!(copied(&notification(5, 0)), Some(false));
        assert_eq!(copied(&notification(2, 0)), None);
    }
}

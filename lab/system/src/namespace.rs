// SPDX-License-Identifier: Apache-2.0
//! Namespaces of a process: they end with it.

use crate::child::in_child;
use crate::{done, opened};
use std::fs::File;
use std::io::{self, Read, Write};

/// Which namespaces a child gets of its own.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Namespaces {
    /// One of users.
    User,
    /// One of networks.
    Network,
    /// Both, as a user without privileges has to.
    Both,
}

/// Whether a child can have them.
///
/// # Errors
/// The kernel's: EPERM for a user who may not, ENOSPC where there may be none.
pub fn unshare(namespaces: Namespaces) -> io::Result<()> {
    in_child(|| leave(namespaces))
}

/// Whether a child can make a pair of virtual Ethernet devices in them.
///
/// # Errors
/// The kernel's: EOPNOTSUPP where it has no such devices.
pub fn veth(namespaces: Namespaces) -> io::Result<()> {
    let request = request();
    in_child(move || {
        leave(namespaces)?;
        ask(&request)
    })
}

/// Moves this process, which has a single thread, into a network namespace of its own, with a namespace
/// of users around it for a user who may not have one otherwise.
///
/// # Errors
/// The kernel's.
pub fn enter_network() -> io::Result<()> {
    leave(Namespaces::Network).or_else(|_| leave(Namespaces::Both))
}

fn leave(namespaces: Namespaces) -> io::Result<()> {
    let flags = match namespaces {
        Namespaces::User => libc::CLONE_NEWUSER,
        Namespaces::Network => libc::CLONE_NEWNET,
        Namespaces::Both => libc::CLONE_NEWUSER | libc::CLONE_NEWNET,
    };
    // SAFETY: takes numbers only, and changes what the process sees of the system, not its memory.
    done(unsafe { libc::unshare(flags) })
}

/// Sends a request to the kernel's table of devices (`man 7 rtnetlink`) and reads its answer.
///
/// # Errors
/// The kernel's.
pub fn ask(request: &[u8]) -> io::Result<()> {
    let kind = libc::SOCK_RAW | libc::SOCK_CLOEXEC;
    // SAFETY: takes numbers only.
    let socket = unsafe { libc::socket(libc::AF_NETLINK, kind, libc::NETLINK_ROUTE) };
    // SAFETY: this call opens a descriptor.
    let mut socket = File::from(unsafe { opened(socket.into()) }?);
    socket.write_all(request)?;
    let mut answer = [0; 256];
    let length = socket.read(&mut answer)?;
    // A header of 16 bytes, then the error's number below zero, or zero.
    let error = answer[..length].get(16..20).and_then(|bytes| bytes.try_into().ok());
    match error.map(i32::from_ne_bytes) {
        Some(0) => Ok(()),
        Some(error) => Err(io::Error::from_raw_os_error(error.wrapping_neg())),
        None => Err(io::ErrorKind::UnexpectedEof.into()),
    }
}

/// A message that makes a device of the kind `veth`, and so its other end.
fn request() -> Vec<u8> {
    const NEW_LINK: u16 = 16;
    /// Request, acknowledge, create, exclusively.
    const FLAGS: u16 = 0x1 | 0x4 | 0x400 | 0x200;
    const LINK_INFO: u16 = 18;
    const INFO_KIND: u16 = 1;
    let kind = attribute(INFO_KIND, b"veth");
    let body = [&[0; 16][..], &attribute(LINK_INFO, &kind)].concat();
    let length = u32::try_from(16 + body.len()).unwrap_or(0);
    let mut message = length.to_ne_bytes().to_vec();
    message.extend(NEW_LINK.to_ne_bytes());
    message.extend(FLAGS.to_ne_bytes());
    // Sequence and port: there is one request, and one who asks.
    message.extend([0; 8]);
    message.extend(body);
    message
}

/// An attribute; both of ours have a length that is a multiple of four.
fn attribute(kind: u16, value: &[u8]) -> Vec<u8> {
    let length = u16::try_from(4 + value.len()).unwrap_or(0);
    [&length.to_ne_bytes(), &kind.to_ne_bytes(), value].concat()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_request_says_its_length() {
        let request = request();
        assert_eq!(request.len(), 44);
        assert_eq!(request[..4], 44_u32.to_ne_bytes());
    }
}

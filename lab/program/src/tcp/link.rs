// SPDX-License-Identifier: Apache-2.0
//! Network namespaces and the pair of devices between them, made by the generator's processes for
//! themselves: messages to the kernel's table of devices, as rtnetlink(7) describes them.

use super::path::{Path, addresses};
use crate::{Failure, Result};
use metaslot_system::namespace;
use rustix::net::netdevice::name_to_index;
use rustix::net::{AddressFamily, SocketFlags, SocketType, socket_with};
use rustix::thread::{LinkNameSpaceType, move_into_link_name_space};
use std::fs::File;
use std::io;
use std::net::Ipv4Addr;
use std::os::fd::AsFd;

const NEW_LINK: u16 = 16;
const NEW_ADDRESS: u16 = 20;
/// Create, and fail if it is there.
const CREATE: u16 = 0x400 | 0x200;

const LINK_NAME: u16 = 3;
const LINK_INFO: u16 = 18;
const LINK_NAMESPACE_OF: u16 = 19;
const INFO_KIND: u16 = 1;
const INFO_DATA: u16 = 2;
const VETH_PEER: u16 = 1;
const ADDRESS: u16 = 1;
const ADDRESS_LOCAL: u16 = 2;
const UP: u32 = 1;

/// The receiver's device.
const PEER: &str = "lab0";

/// Leaves the machine's network where the path says so.
pub(super) fn enter(path: Path, sender: bool) -> Result<()> {
    let own = match path {
        Path::Loopback => false,
        Path::Shared | Path::Mixed => !sender,
        Path::Exclusive => true,
    };
    if own {
        namespace::enter_network().map_err(|error| failed("a network namespace", &error))?;
        up("lo").map_err(|error| failed("the loopback interface", &error))?;
    }
    Ok(())
}

/// Makes a way from the sender, which this process is, to a receiver that has entered its own network.
pub(super) fn reach(path: Path, receiver: u32) -> Result<()> {
    match path {
        Path::Loopback => Ok(()),
        Path::Shared => {
            join(receiver).map_err(|error| failed("the receiver's network namespace", &error))
        }
        Path::Mixed | Path::Exclusive => {
            let name = format!("lab{}", std::process::id());
            let made = ask(NEW_LINK, CREATE, &pair(&name, receiver));
            made.map_err(|error| failed("a pair of virtual Ethernet devices", &error))?;
            take_device(&name, addresses(receiver)[0])
        }
    }
}

/// Enters the network of another process; before that its users, where it has its own.
fn join(process: u32) -> io::Result<()> {
    let network = File::open(format!("/proc/{process}/ns/net"))?;
    let enter = || move_into_link_name_space(network.as_fd(), Some(LinkNameSpaceType::Network));
    if enter().is_err() {
        let users = File::open(format!("/proc/{process}/ns/user"))?;
        move_into_link_name_space(users.as_fd(), Some(LinkNameSpaceType::User))?;
        enter()?;
    }
    Ok(())
}

/// Takes this end of a pair that was made for this process.
pub(super) fn take(path: Path) -> Result<()> {
    match path {
        Path::Loopback | Path::Shared => Ok(()),
        Path::Mixed | Path::Exclusive => take_device(PEER, addresses(std::process::id())[1]),
    }
}

fn take_device(name: &str, address: Ipv4Addr) -> Result<()> {
    let taken = index(name).and_then(|index| {
        ask(NEW_ADDRESS, CREATE, &address_of(index, address))?;
        up(name)
    });
    taken.map_err(|error| failed(&format!("the device {name}"), &error))
}

fn failed(what: &str, error: &io::Error) -> Failure {
    let failure = Failure::new(format!("{what}: {error}"));
    match error.raw_os_error() {
        // EPERM
        Some(1) => failure.hint(
            "be root, or the root of a namespace: unshare -Urn metaslot lab tcp …; --path loopback \
             needs neither",
        ),
        _ => failure,
    }
}

fn index(name: &str) -> io::Result<u32> {
    let (family, kind) = (AddressFamily::INET, SocketType::DGRAM);
    let socket = socket_with(family, kind, SocketFlags::CLOEXEC, None)?;
    Ok(name_to_index(&socket, name)?)
}

fn up(name: &str) -> io::Result<()> {
    ask(NEW_LINK, 0, &header_of_link(index(name)?, UP))
}

fn ask(kind: u16, flags: u16, body: &[u8]) -> io::Result<()> {
    /// Request, acknowledge.
    const FLAGS: u16 = 0x1 | 0x4;
    let length = u32::try_from(16 + body.len()).unwrap_or(0);
    let mut message = length.to_ne_bytes().to_vec();
    message.extend(kind.to_ne_bytes());
    message.extend((FLAGS | flags).to_ne_bytes());
    // Sequence and port: there is one request at a time, and one who asks.
    message.extend([0; 8]);
    message.extend(body);
    namespace::ask(&message)
}

/// `struct ifinfomsg`: family and type 0, then index, flags, and which flags are meant.
fn header_of_link(index: u32, flags: u32) -> Vec<u8> {
    [[0; 4], index.to_ne_bytes(), flags.to_ne_bytes(), flags.to_ne_bytes()].concat()
}

/// A veth device of that name here, and its peer in the namespace of a process.
fn pair(name: &str, peer: u32) -> Vec<u8> {
    let other = [
        header_of_link(0, 0),
        attribute(LINK_NAME, PEER.as_bytes()),
        attribute(LINK_NAMESPACE_OF, &peer.to_ne_bytes()),
    ];
    let data = attribute(VETH_PEER, &other.concat());
    let info = [attribute(INFO_KIND, b"veth"), attribute(INFO_DATA, &data)].concat();
    [header_of_link(0, 0), attribute(LINK_NAME, name.as_bytes()), attribute(LINK_INFO, &info)]
        .concat()
}

/// `struct ifaddrmsg`: IPv4, a network of four addresses, no flags, all the world; then the address.
fn address_of(index: u32, address: Ipv4Addr) -> Vec<u8> {
    let octets = address.octets();
    let header = [&[2, 30, 0, 0][..], &index.to_ne_bytes()].concat();
    [header, attribute(ADDRESS_LOCAL, &octets), attribute(ADDRESS, &octets)].concat()
}

/// An attribute, filled up to a multiple of four.
fn attribute(kind: u16, value: &[u8]) -> Vec<u8> {
    let length = u16::try_from(4 + value.len()).unwrap_or(0);
    let mut bytes = [&length.to_ne_bytes(), &kind.to_ne_bytes(), value].concat();
    bytes.resize(bytes.len().next_multiple_of(4), 0);
    bytes
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn attributes_say_their_length_without_what_fills_them() {
        assert_eq!(attribute(3, b"lab0").len(), 8);
        let odd = attribute(3, b"lab12");
        assert_eq!((odd.len(), u16::from_ne_bytes([odd[0], odd[1]])), (12, 9));
        assert_eq!(header_of_link(1, UP).len(), 16);
        assert_eq!(address_of(1, Ipv4Addr::LOCALHOST).len(), 24);
    }
}

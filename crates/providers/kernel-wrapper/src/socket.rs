// SPDX-License-Identifier: Apache-2.0
//! Sockets of the family `AF_ALG`.

use rustix::fs::fstat;
use rustix::io::{Errno, Result, retry_on_intr};
use rustix::net::{
    AddressFamily, RecvFlags, SendFlags, SocketFlags, SocketType, accept_with, recv, send,
    socket_with,
};
use std::mem::{ManuallyDrop, size_of};
use std::os::fd::{AsRawFd, OwnedFd};
use std::{io, ptr};

/// What an algorithm does, which is a part of its address.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Kind {
    /// A hash function, with a key or without.
    Hash,
    /// A block cipher in one of its modes.
    Cipher,
    /// A cipher that authenticates.
    Aead,
}

/// Whether the kernel has an algorithm. It loads the module that has it, where it may.
///
/// # Errors
/// Why not: `ENOENT` where there is none of that name.
pub fn has(kind: Kind, name: &str) -> Result<()> {
    Socket::bound(kind, name).map(drop)
}

/// A socket that is closed by a system call of its own: the C library's is a point at which a thread is cancelled.
#[derive(Debug)]
pub(crate) struct Socket(ManuallyDrop<OwnedFd>);

/// Which file it is.
pub(crate) type Identity = (u64, u64);

/// `AF_ALG`, as it stands in an address.
const FAMILY: u16 = 38;
const _: () = assert!(FAMILY as i32 == libc::AF_ALG);
const FLAGS: SocketFlags = SocketFlags::CLOEXEC.union(SocketFlags::NONBLOCK);

/// A socket without an address.
pub(crate) fn open() -> Result<Socket> {
    let family = AddressFamily::from_raw(FAMILY);
    socket_with(family, SocketType::SEQPACKET, FLAGS, None).map(Socket::of)
}

impl Socket {
    const fn of(file: OwnedFd) -> Self {
        Self(ManuallyDrop::new(file))
    }

    /// A socket of an algorithm.
    pub(crate) fn bound(kind: Kind, name: &str) -> Result<Self> {
        let socket = open()?;
        let kind: &[u8] = match kind {
            Kind::Hash => b"hash",
            Kind::Cipher => b"skcipher",
            Kind::Aead => b"aead",
        };
        let mut address = libc::sockaddr_alg {
            salg_family: FAMILY,
            salg_type: [0; 14],
            salg_feat: 0,
            salg_mask: 0,
            salg_name: [0; 64],
        };
        address.salg_type[..kind.len()].copy_from_slice(kind);
        // A zero stays behind each.
        let place = address.salg_name[..63].get_mut(..name.len()).ok_or(Errno::NAMETOOLONG)?;
        place.copy_from_slice(name.as_bytes());
        let length = length_of::<libc::sockaddr_alg>();
        retry_on_intr(|| {
            // SAFETY: the address is ours, and so long.
            result(unsafe { libc::bind(socket.0.as_raw_fd(), (&raw const address).cast(), length) })
        })?;
        Ok(socket)
    }

    /// Gives the algorithm its key.
    pub(crate) fn set_key(&self, key: &[u8]) -> Result<()> {
        self.set(libc::ALG_SET_KEY, key.as_ptr(), key.len())
    }

    /// Gives the algorithm the length of its tags, in bytes.
    pub(crate) fn set_tag(&self, length: usize) -> Result<()> {
        // The length of the value is the value.
        self.set(libc::ALG_SET_AEAD_AUTHSIZE, ptr::null(), length)
    }

    /// `value` is so many bytes, or null where the option looks at the length only.
    fn set(&self, option: i32, value: *const u8, length: usize) -> Result<()> {
        let length = libc::socklen_t::try_from(length).map_err(|_| Errno::INVAL)?;
        // SAFETY: so many bytes can be read, or none is.
        result(unsafe {
            libc::setsockopt(self.0.as_raw_fd(), libc::SOL_ALG, option, value.cast(), length)
        })
    }

    /// A socket for something to do.
    pub(crate) fn accepted(&self) -> Result<Self> {
        retry_on_intr(|| accept_with(&*self.0, FLAGS)).map(Self::of)
    }

    /// Data of a hash, all of it; `more` is to follow.
    pub(crate) fn send(&self, mut data: &[u8], more: bool) -> Result<()> {
        let flags = SendFlags::NOSIGNAL | if more { SendFlags::MORE } else { SendFlags::empty() };
        while !data.is_empty() {
            let sent = retry_on_intr(|| send(&*self.0, data, flags))?;
            data = data.get(sent..).filter(|_| sent > 0).ok_or(Errno::IO)?;
        }
        Ok(())
    }

    /// A request to a cipher, all at once: what is done how, and to which bytes.
    pub(crate) fn request(&self, control: &Control, data: [&[u8]; 2]) -> Result<()> {
        let part = |data: &[u8]| libc::iovec {
            iov_base: data.as_ptr().cast_mut().cast(),
            iov_len: data.len(),
        };
        let mut parts = data.map(part);
        let message = libc::msghdr {
            msg_name: ptr::null_mut(),
            msg_namelen: 0,
            msg_iov: parts.as_mut_ptr(),
            msg_iovlen: parts.len(),
            msg_control: control.bytes.as_ptr().cast_mut().cast(),
            msg_controllen: control.length,
            msg_flags: 0,
        };
        let length = data.iter().map(|part| part.len()).sum::<usize>();
        let sent = retry_on_intr(|| {
            // SAFETY: the message, its parts and its control messages are alive, and are only read.
            let sent = unsafe {
                libc::syscall(
                    libc::SYS_sendmsg,
                    self.0.as_raw_fd(),
                    &raw const message,
                    libc::MSG_NOSIGNAL,
                )
            };
            usize::try_from(sent).map_err(|_| last())
        })?;
        if sent == length { Ok(()) } else { Err(Errno::NOBUFS) }
    }

    /// The result, which is exactly so long.
    pub(crate) fn receive(&self, out: &mut [u8]) -> Result<()> {
        let wanted = out.len();
        let (_, got) = retry_on_intr(|| recv(&*self.0, &mut *out, RecvFlags::empty()))?;
        if got == wanted { Ok(()) } else { Err(Errno::IO) }
    }

    pub(crate) fn identity(&self) -> Result<Identity> {
        let stat = fstat(&*self.0)?;
        Ok((stat.st_dev, stat.st_ino))
    }
}

impl Drop for Socket {
    fn drop(&mut self) {
        // SAFETY: it is owned, and not used from here on.
        unsafe { rustix::io::close(self.0.as_raw_fd()) };
    }
}

fn result(done: i32) -> Result<()> {
    if done == 0 { Ok(()) } else { Err(last()) }
}

fn last() -> Errno {
    Errno::from_io_error(&io::Error::last_os_error()).unwrap_or(Errno::IO)
}

fn length_of<T>() -> libc::socklen_t {
    // A structure of some bytes.
    libc::socklen_t::try_from(size_of::<T>()).unwrap_or(0)
}

/// Control messages, one behind the other (`struct cmsghdr`), each of which takes whole words.
#[derive(Debug)]
pub(crate) struct Control {
    bytes: [u8; 128],
    length: usize,
}

impl Control {
    /// What to do, with which IV, and how many bytes of the data are only authenticated.
    pub(crate) fn new(encrypt: bool, iv: &[u8], authenticated: Option<u32>) -> Result<Self> {
        let mut made = Self { bytes: [0; 128], length: 0 };
        let operation = if encrypt { libc::ALG_OP_ENCRYPT } else { libc::ALG_OP_DECRYPT };
        made.push(libc::ALG_SET_OP, &[&operation.to_ne_bytes()])?;
        if !iv.is_empty() {
            let length = u32::try_from(iv.len()).map_err(|_| Errno::INVAL)?;
            made.push(libc::ALG_SET_IV, &[&length.to_ne_bytes(), iv])?;
        }
        if let Some(length) = authenticated {
            made.push(libc::ALG_SET_AEAD_ASSOCLEN, &[&length.to_ne_bytes()])?;
        }
        Ok(made)
    }

    fn push(&mut self, option: i32, value: &[&[u8]]) -> Result<()> {
        let (value, place) = (value.concat(), &mut self.bytes[self.length..]);
        let length = size_of::<libc::cmsghdr>() + value.len();
        let (level, option) = (libc::SOL_ALG.to_ne_bytes(), option.to_ne_bytes());
        let message = [&length.to_ne_bytes()[..], &level, &option, &value].concat();
        place.get_mut(..length).ok_or(Errno::INVAL)?.copy_from_slice(&message);
        self.length += length.next_multiple_of(size_of::<usize>());
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn control_messages_stand_one_behind_the_other_at_whole_words() {
        let control = Control::new(true, &[9; 12], Some(5)).unwrap();
        let word = size_of::<usize>();
        let mut at = 0;
        for (option, value) in [(3, 1), (2, 12), (4, 5)] {
            let message = &control.bytes[at..control.length];
            let length = usize::from_ne_bytes(message[..word].try_into().unwrap());
            let number = |at: usize| u32::from_ne_bytes(message[at..at + 4].try_into().unwrap());
            assert_eq!((number(word), number(word + 4), number(word + 8)), (279, option, value));
            at += length.next_multiple_of(word);
        }
        assert_eq!(at, control.length);
        assert!(Control::new(true, &[9; 128], None).is_err(), "there is no room");
    }
}

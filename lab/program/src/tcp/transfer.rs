// SPDX-License-Identifier: Apache-2.0
//! A file through one connection, three ways. The file lies in memory, as a disk would only add its own
//! time, and is sent again from its begin until there were enough bytes.

use super::control::Way;
use super::socket::failed;
use crate::Result;
use rustix::fs::{MemfdFlags, SeekFrom, memfd_create, seek, sendfile};
use rustix::io::{Errno, ioctl_fionbio, read, write};
use rustix::pipe::{PipeFlags, SpliceFlags, fcntl_setpipe_size, pipe_with, splice};
use std::os::fd::OwnedFd;

/// Bytes of the file.
const FILE: u64 = 64 << 20;
/// Bytes that are moved at once.
const BLOCK: usize = 128 << 10;

/// Sends so many bytes of a file, and returns when the system has taken all of them.
pub(super) fn send(file: &OwnedFd, connection: &OwnedFd, way: Way, bytes: u64) -> Result<()> {
    ioctl_fionbio(connection, false).map_err(|error| failed("a connection", error))?;
    let mut mover = Mover::new(way)?;
    let mut left = bytes;
    while left > 0 {
        seek(file, SeekFrom::Start(0)).map_err(|error| failed("a file in memory", error))?;
        let mut of_file = FILE.min(left);
        left -= of_file;
        while of_file > 0 {
            let most = usize::try_from(of_file).unwrap_or(BLOCK).min(BLOCK);
            match mover.some(file, connection, most) {
                Ok(count) => of_file = of_file.saturating_sub(count as u64),
                Err(Errno::INTR) => {}
                Err(error) => return Err(failed(way.name(), error)),
            }
        }
    }
    Ok(())
}

/// The file.
pub(super) fn file() -> Result<OwnedFd> {
    filled().map_err(|error| failed("a file in memory", error))
}

fn filled() -> rustix::io::Result<OwnedFd> {
    let file = memfd_create("metaslot-lab", MemfdFlags::CLOEXEC)?;
    let block = vec![0x5A; BLOCK];
    let mut there = 0;
    while there < FILE {
        there += write(&file, &block)? as u64;
    }
    Ok(file)
}

enum Mover {
    Write(Vec<u8>),
    Sendfile,
    Splice { into: OwnedFd, out: OwnedFd },
}

impl Mover {
    fn new(way: Way) -> Result<Self> {
        Ok(match way {
            Way::Write => Self::Write(vec![0; BLOCK]),
            Way::Sendfile => Self::Sendfile,
            Way::Splice => {
                let pair = pipe_with(PipeFlags::CLOEXEC);
                let (out, into) = pair.map_err(|error| failed("a pipe", error))?;
                fcntl_setpipe_size(&into, BLOCK).map_err(|error| failed("a pipe", error))?;
                Self::Splice { into, out }
            }
        })
    }

    /// Moves some bytes, at most so many; all that it took from the file are on their way.
    fn some(&mut self, file: &OwnedFd, to: &OwnedFd, most: usize) -> rustix::io::Result<usize> {
        match self {
            Self::Write(buffer) => {
                let count = read(file, &mut buffer[..most])?;
                let mut rest = &buffer[..count];
                while !rest.is_empty() {
                    rest = &rest[again(|| write(to, rest))?..];
                }
                Ok(count)
            }
            Self::Sendfile => sendfile(to, file, None, most),
            Self::Splice { into, out } => {
                let count = splice(file, None, &*into, None, most, SpliceFlags::MOVE)?;
                let mut rest = count;
                while rest > 0 {
                    rest -= again(|| splice(&*out, None, to, None, rest, SpliceFlags::MOVE))?;
                }
                Ok(count)
            }
        }
    }
}

/// A call that a signal cut short is made again.
fn again(call: impl Fn() -> rustix::io::Result<usize>) -> rustix::io::Result<usize> {
    loop {
        match call() {
            Err(Errno::INTR) => {}
            other => return other,
        }
    }
}

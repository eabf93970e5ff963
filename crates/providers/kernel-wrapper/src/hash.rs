// SPDX-License-Identifier: Apache-2.0
//! Hash functions, with a key (HMAC, CMAC) and without.

use crate::socket::{Identity, Kind, Socket};
use rustix::io::{Errno, Result};
use std::mem::ManuallyDrop;
use std::process;

/// What the kernel takes in one go without being told that more follows, in bytes.
const MOST: usize = 1 << 30;

/// Hashes `data` into `out`, which may be shorter than the hash.
///
/// # Errors
/// What the kernel says.
pub fn hash(name: &str, key: Option<&[u8]>, data: &[u8], out: &mut [u8]) -> Result<()> {
    let socket = begin(name, key)?;
    socket.send(data, data.len() > MOST)?;
    socket.receive(out)
}

fn begin(name: &str, key: Option<&[u8]>) -> Result<Socket> {
    let algorithm = Socket::bound(Kind::Hash, name)?;
    key.map_or(Ok(()), |key| algorithm.set_key(key))?;
    algorithm.accepted()
}

/// A hash in the middle: the one thing that has a socket between two calls.
///
/// The host may close that meanwhile (`closefrom`), and open a file of its own that gets its number; a forked child
/// has it too, and would hash its data into its parent's. So it is looked at before each use, and is closed only while it is ours.
#[derive(Debug)]
pub struct Stream {
    socket: ManuallyDrop<Socket>,
    identity: Identity,
    process: u32,
}

impl Stream {
    /// Begins.
    ///
    /// # Errors
    /// What the kernel says.
    pub fn new(name: &str, key: Option<&[u8]>) -> Result<Self> {
        let socket = begin(name, key)?;
        let identity = socket.identity()?;
        Ok(Self { socket: ManuallyDrop::new(socket), identity, process: process::id() })
    }

    /// Takes more data.
    ///
    /// # Errors
    /// What the kernel says; `EBADF` where the socket is not there any more, or is another process's.
    pub fn update(&mut self, data: &[u8]) -> Result<()> {
        self.socket()?.send(data, true)
    }

    /// Writes the hash into `out`, which may be shorter.
    ///
    /// # Errors
    /// As [`Self::update`].
    pub fn finish(&mut self, out: &mut [u8]) -> Result<()> {
        self.socket()?.receive(out)
    }

    fn socket(&self) -> Result<&Socket> {
        match self.is_there() && self.process == process::id() {
            true => Ok(&self.socket),
            false => Err(Errno::BADF),
        }
    }

    fn is_there(&self) -> bool {
        self.socket.identity() == Ok(self.identity)
    }
}

impl Drop for Stream {
    fn drop(&mut self) {
        if self.is_there() {
            // SAFETY: it is not used from here on.
            unsafe { ManuallyDrop::drop(&mut self.socket) };
        }
    }
}

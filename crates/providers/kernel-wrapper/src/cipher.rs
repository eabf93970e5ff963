// SPDX-License-Identifier: Apache-2.0
//! Ciphers, a piece at a time.
//!
//! The kernel writes its result into pages that it looked up before. Where another thread forks meanwhile, the next write to such a page
//! gives this process another copy of it, and the result is the child's. Pages of the arena are not shared with children,
//! so results come there first.

use crate::socket::{Control, Kind, Socket};
use metaslot_memory::Secret;
use rustix::io::{Errno, Result};

/// Length of a block of AES, in bytes.
pub const BLOCK: usize = 16;

/// The longest piece, in bytes: what a socket takes at once however it is set up, but for room of less than a few pages.
pub const MOST: usize = 1 << 16;

/// A cipher with its key.
#[derive(Debug)]
pub struct Cipher(Socket);

impl Cipher {
    /// A cipher by its name (`"cbc(aes)"`).
    ///
    /// # Errors
    /// What the kernel says.
    pub fn new(name: &str, key: &[u8]) -> Result<Self> {
        let algorithm = Socket::bound(Kind::Cipher, name)?;
        algorithm.set_key(key)?;
        Ok(Self(algorithm.accepted()?))
    }

    /// Encrypts or decrypts at most [`MOST`] bytes into as many.
    ///
    /// # Errors
    /// What the kernel says.
    pub fn run(&self, encrypt: bool, iv: &[u8], input: &[u8], out: &mut [u8]) -> Result<()> {
        if input.is_empty() {
            return Ok(());
        }
        let control = Control::new(encrypt, iv, None)?;
        let result = answer(&self.0, &control, [input, &[]], input.len())?;
        out.copy_from_slice(result.expose());
        Ok(())
    }
}

/// A message for an AEAD.
#[derive(Clone, Copy, Debug)]
pub struct Message<'a> {
    /// 12 bytes for those that there are.
    pub iv: &'a [u8],
    /// What is authenticated only.
    pub aad: &'a [u8],
    /// Length of the tag, in bytes.
    pub tag: usize,
}

impl Message<'_> {
    /// Encrypts (`plain` becomes ciphertext and tag) or decrypts. With the additional data and the tag that is at most [`MOST`] bytes.
    ///
    /// # Errors
    /// `EBADMSG` where the tag is not that of the message; `EINVAL` where no byte would come back, because then the kernel looks
    /// at no tag; what the kernel says.
    pub fn run(
        &self,
        (name, key): (&str, &[u8]),
        encrypt: bool,
        input: &[u8],
        out: &mut [u8],
    ) -> Result<()> {
        let length = self.aad.len() + out.len();
        if length == 0 {
            return Err(Errno::INVAL);
        }
        let algorithm = Socket::bound(Kind::Aead, name)?;
        algorithm.set_key(key)?;
        algorithm.set_tag(self.tag)?;
        let authenticated = u32::try_from(self.aad.len()).map_err(|_| Errno::INVAL)?;
        let control = Control::new(encrypt, self.iv, Some(authenticated))?;
        let result = answer(&algorithm.accepted()?, &control, [self.aad, input], length)?;
        // What was authenticated only comes back first.
        out.copy_from_slice(&result.expose()[self.aad.len()..]);
        Ok(())
    }
}

fn answer(socket: &Socket, control: &Control, data: [&[u8]; 2], length: usize) -> Result<Secret> {
    let mut result = Secret::try_zeroed(length).ok_or(Errno::NOMEM)?;
    socket.request(control, data)?;
    socket.receive(result.expose_mut())?;
    Ok(result)
}

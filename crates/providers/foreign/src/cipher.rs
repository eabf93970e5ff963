// SPDX-License-Identifier: Apache-2.0
//! Encryption and decryption by keys of a token.

use crate::mechanism::{Mechanism, Mode};
use crate::params;
use crate::pin::unlock;
use crate::token::{Taken, Token};
use crate::value::wipe;
use metaslot_ck::*;
use metaslot_client::{Once, Session};
use metaslot_memory::Secret;
use metaslot_spi::provider::{Cipher, CipherStream, Direction};
use metaslot_spi::{Key, Params};
use std::sync::Arc;

/// Of the block ciphers that are known here.
const LARGEST_BLOCK: usize = 16;
/// Of the tags.
const LARGEST_TAG: usize = 16;
/// Of AES key wrap.
pub(crate) const SEMIBLOCK: usize = 8;

fn tag(params: &Params) -> usize {
    let length = match params {
        Params::Gcm { tag_bits, .. } => tag_bits.div_ceil(8),
        Params::Ccm { mac_length, .. } => *mac_length,
        _ => LARGEST_TAG as u64,
    };
    usize::try_from(length).unwrap_or(LARGEST_TAG).min(LARGEST_TAG)
}

impl Cipher for Mechanism {
    /// As for signatures: the module's own checks come with the first data.
    fn check(&self, _: Direction, key: &Key, params: &Params) -> Result<()> {
        self.may_use(key)?;
        params::mechanism(self.number, params)?;
        if self.mode == Mode::Rsa && key.attributes().bytes(CKA_MODULUS).is_none() {
            return Err(Error::KEY_TYPE_INCONSISTENT);
        }
        Ok(())
    }

    fn length(
        &self,
        direction: Direction,
        key: &Key,
        params: &Params,
        input: usize,
    ) -> Result<usize> {
        Ok(match (self.mode, direction) {
            (Mode::Rsa, _) => key.bytes(CKA_MODULUS)?.len(),
            (Mode::Padded(block), Direction::Forward) => (input / block + 1) * block,
            (Mode::Wrapped(filling), Direction::Forward) => {
                (input + filling).next_multiple_of(SEMIBLOCK) + SEMIBLOCK
            }
            (Mode::Wrapped(_), Direction::Backward) => input.saturating_sub(SEMIBLOCK),
            (Mode::Tagged, Direction::Forward) => input + tag(params),
            (Mode::Tagged, Direction::Backward) => input.saturating_sub(tag(params)),
            _ => input,
        })
    }

    fn run(
        &self,
        direction: Direction,
        key: &Key,
        params: &Params,
        input: &[u8],
        out: &mut [u8],
    ) -> Result<usize> {
        if self.mode == Mode::Tagged && direction == Direction::Backward && out.len() < input.len()
        {
            // Some modules want room for the tag, which they do not write.
            let mut room = Secret::try_zeroed(input.len()).ok_or(Error::DEVICE_MEMORY)?;
            let written = self.run(direction, key, params, input, room.expose_mut())?;
            let data = room.expose().get(..written.min(out.len())).unwrap_or_default();
            out[..data.len()].copy_from_slice(data);
            return self.within(written, out.len());
        }
        let (row, mechanism) = (Self::row(key)?, params::mechanism(self.number, params)?);
        let pin = self.token.pin_for(key)?;
        let calls = match direction {
            Direction::Forward => [Function::EncryptInit, Function::Encrypt],
            Direction::Backward => [Function::DecryptInit, Function::Decrypt],
        };
        let written = self.token.with(|session| {
            let once = Once { calls, slot: None, mechanism: &mechanism, key: None, data: &[input] };
            let at_once = || self.token.at_once(session, Some(row), once, &mut *out);
            if let Some(written) = pin.is_none().then(at_once).flatten() {
                return written;
            }
            let handle = self.token.handle(session, row)?;
            match direction {
                Direction::Forward => {
                    session.encrypt_init(&mechanism, handle)?;
                    session.encrypt_into(input, out)
                }
                Direction::Backward => {
                    session.decrypt_init(&mechanism, handle)?;
                    unlock(session, pin.as_ref())?;
                    session.decrypt_into(input, out)
                }
            }
        })?;
        self.within(written, out.len())
    }

    fn start(
        &self,
        direction: Direction,
        key: &Arc<Key>,
        params: &Params,
    ) -> Result<Box<dyn CipherStream>> {
        if self.mode == Mode::Rsa {
            return Err(Error::FUNCTION_NOT_SUPPORTED);
        }
        let (row, mechanism) = (Self::row(key)?, params::mechanism(self.number, params)?);
        let pin = self.token.pin_for(key)?;
        let taken = self.token.begin(|session| {
            let handle = self.token.handle(session, row)?;
            match direction {
                Direction::Forward => session.encrypt_init(&mechanism, handle)?,
                Direction::Backward => session.decrypt_init(&mechanism, handle)?,
            }
            unlock(session, pin.as_ref())
        })?;
        let (token, mode) = (self.token, self.mode);
        let taken = Some(taken);
        Ok(Box::new(Run {
            token,
            taken,
            direction,
            mode,
            partial: 0,
            waiting: Vec::new(),
            held: 0,
        }))
    }
}

/// Encryption or decryption in the middle.
///
/// The engine has to know how much an update gives. Where that follows from the mode the module must
/// give so much; where modules differ (padding, tags, stolen ciphertext) its results wait here for the next call.
#[derive(Debug)]
struct Run {
    token: &'static Token,
    taken: Option<Taken>,
    direction: Direction,
    mode: Mode,
    /// Bytes of a block that is not whole yet.
    partial: usize,
    /// What the module gave and the caller is still to get.
    waiting: Vec<u8>,
    /// Bytes that the module has taken and not given back.
    held: usize,
}

impl Run {
    const fn waits(&self) -> bool {
        matches!(self.mode, Mode::Padded(_) | Mode::Tagged | Mode::Whole | Mode::Wrapped(_))
    }
}

impl CipherStream for Run {
    fn update_length(&self, input: usize) -> usize {
        match self.mode {
            Mode::Blocks(block) => (self.partial + input) / block * block,
            Mode::Stream => input,
            _ => self.waiting.len(),
        }
    }

    fn update(&mut self, input: &[u8], out: &mut [u8]) -> Result<()> {
        let direction = self.direction;
        let mut given = self.token.go_on(&mut self.taken, |session| match direction {
            Direction::Forward => session.encrypt_update(input),
            Direction::Backward => session.decrypt_update(input),
        })?;
        if self.waits() {
            self.held = (self.held + input.len()).saturating_sub(given.len());
            std::mem::swap(&mut self.waiting, &mut given);
        }
        if given.len() != out.len() {
            wipe(&mut given);
            return Err(self.token.lied("another number of bytes than these make"));
        }
        out.copy_from_slice(&given);
        wipe(&mut given);
        if let Mode::Blocks(block) = self.mode {
            self.partial = (self.partial + input.len()) % block;
        }
        Ok(())
    }

    fn finish_length(&self) -> usize {
        let rest = if self.waits() { self.held + LARGEST_BLOCK + LARGEST_TAG } else { 0 };
        self.waiting.len() + rest
    }

    fn finish(&mut self, out: &mut [u8]) -> Result<usize> {
        let direction = self.direction;
        let mut last = self.token.finish(&mut self.taken, |session: &Session| match direction {
            Direction::Forward => session.encrypt_final(),
            Direction::Backward => session.decrypt_final(),
        })?;
        let length = self.waiting.len() + last.len();
        let Some(room) = out.get_mut(..length) else {
            wipe(&mut last);
            return Err(self.token.lied("more bytes than there can be"));
        };
        let (first, second) = room.split_at_mut(self.waiting.len());
        first.copy_from_slice(&self.waiting);
        second.copy_from_slice(&last);
        wipe(&mut last);
        Ok(length)
    }
}

impl Drop for Run {
    fn drop(&mut self) {
        wipe(&mut self.waiting);
        self.token.abandon(&mut self.taken);
    }
}

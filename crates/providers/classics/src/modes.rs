// SPDX-License-Identifier: Apache-2.0
//! Modes that encrypt (SP 800-38A; PKCS#7 padding), for every cipher: what is done in one call is one part of what is done in several.

use crate::blocks::{Blocks, LONGEST};
use crate::mechanism::{Feedback, Mode, Use};
use metaslot_awslc_wrapper::aes::Way;
use metaslot_awslc_wrapper::{cleanse, constant_time};
use metaslot_ck::*;
use metaslot_memory::wipe_shallow_stack;
use metaslot_spi::provider::{Cipher, CipherStream, Direction};
use metaslot_spi::{Key, Params};
use std::fmt;
use std::sync::Arc;

/// Encrypts whole blocks in their place, each with the one before, the first with `iv`, which is left as the next call needs it.
pub(crate) fn chain(key: &dyn Blocks, iv: &mut [u8], blocks: &mut [u8]) -> Result<()> {
    for block in blocks.chunks_exact_mut(key.length()) {
        block.iter_mut().zip(&*iv).for_each(|(byte, other)| *byte ^= other);
        key.run(Way::Encrypt, block)?;
        iv.copy_from_slice(block);
    }
    Ok(())
}

/// The other way.
fn unchain(key: &dyn Blocks, iv: &mut [u8], blocks: &mut [u8]) -> Result<()> {
    let mut sealed = [0; LONGEST];
    for block in blocks.chunks_exact_mut(key.length()) {
        let sealed = &mut sealed[..block.len()];
        sealed.copy_from_slice(block);
        key.run(Way::Decrypt, block)?;
        block.iter_mut().zip(&*iv).for_each(|(byte, other)| *byte ^= other);
        iv.copy_from_slice(sealed);
    }
    Ok(())
}

/// Takes the blocks that mask `input` bytes where `at` of a mask were used, or none where there are fewer than so many left.
pub(crate) fn take(left: &mut u128, block: usize, at: usize, input: usize) -> Result<()> {
    let rest = if at == 0 { 0 } else { block - at };
    let blocks = input.saturating_sub(rest).div_ceil(block) as u128;
    *left = left.checked_sub(blocks).ok_or(Error::DATA_LEN_RANGE)?;
    Ok(())
}

impl Use {
    /// The first chaining value or counter; and how many blocks there are until the counter has come round.
    fn begin(&self, params: &Params) -> Result<([u8; LONGEST], u128)> {
        let mut first = [0; LONGEST];
        let iv = match (params, self.cipher.is_tuned()) {
            (Params::Ctr { bits: bits @ 1..=128, block }, _) if self.mode == Mode::Ctr => {
                let mask = u128::MAX >> (128 - bits);
                let left = (mask - (u128::from_be_bytes(*block) & mask)).saturating_add(1);
                return Ok((*block, left));
            }
            (Params::None, false) => &[],
            (Params::Iv(iv), false) | (Params::Tuned { iv, .. }, true) => &iv[..],
            _ => return Err(Error::MECHANISM_PARAM_INVALID),
        };
        let wanted = match self.mode {
            Mode::Ecb => 0,
            Mode::Cbc | Mode::CbcPad | Mode::Stream(..) => self.cipher.block(params),
            _ => return Err(Error::MECHANISM_PARAM_INVALID),
        };
        if iv.len() != wanted {
            return Err(Error::MECHANISM_PARAM_INVALID);
        }
        first[..wanted].copy_from_slice(iv);
        Ok((first, u128::MAX))
    }

    fn running(&self, direction: Direction, key: &Key, params: &Params) -> Result<Running> {
        let (chained, left) = self.begin(params)?;
        Ok(Running {
            key: self.cipher.schedule(key, params)?,
            mode: self.mode,
            direction,
            chained,
            waiting: [0; LONGEST],
            at: 0,
            left,
        })
    }
}

impl Cipher for Use {
    fn check(&self, _: Direction, key: &Key, params: &Params) -> Result<()> {
        self.begin(params)?;
        self.cipher.schedule(key, params).map(drop)
    }

    fn length(
        &self,
        direction: Direction,
        _: &Key,
        params: &Params,
        input: usize,
    ) -> Result<usize> {
        // Of parameters that are refused there is no block.
        let block = self.cipher.block(params).max(1);
        let whole = input.is_multiple_of(block);
        match (self.mode, direction) {
            (Mode::Ctr | Mode::Stream(..), _) => Ok(input),
            (Mode::CbcPad, Direction::Forward) => {
                input.checked_add(block - input % block).ok_or(Error::DATA_LEN_RANGE)
            }
            (Mode::CbcPad, Direction::Backward) if input == 0 => {
                Err(Error::ENCRYPTED_DATA_LEN_RANGE)
            }
            _ if whole => Ok(input),
            _ => Err(direction.length_error()),
        }
    }

    fn whole_blocks(&self, params: &Params) -> Option<usize> {
        matches!(self.mode, Mode::Ecb | Mode::Cbc).then(|| self.cipher.block(params).max(1))
    }

    fn run(
        &self,
        direction: Direction,
        key: &Key,
        params: &Params,
        input: &[u8],
        out: &mut [u8],
    ) -> Result<usize> {
        self.length(direction, key, params, input.len())?;
        let mut running = self.running(direction, key, params)?;
        let first = running.update_length(input.len());
        let last = first + running.finish_length();
        let done = running
            .update(input, &mut out[..first])
            .and_then(|()| running.finish(&mut out[first..last]));
        // Nothing else fails after something was written.
        if done.is_err() && self.mode == Mode::CbcPad {
            cleanse(out);
        }
        Ok(first + done?)
    }

    fn start(
        &self,
        direction: Direction,
        key: &Arc<Key>,
        params: &Params,
    ) -> Result<Box<dyn CipherStream>> {
        Ok(Box::new(self.running(direction, key, params)?))
    }
}

/// A mode in the middle.
struct Running {
    key: Arc<dyn Blocks>,
    mode: Mode,
    direction: Direction,
    /// The chaining value, the counter, or what is encrypted next.
    chained: [u8; LONGEST],
    /// Bytes that wait for their block to be full, or the cipher's output, which masks them.
    waiting: [u8; LONGEST],
    /// Bytes that wait, or masks that were used.
    at: usize,
    /// Blocks until the counter has come round.
    left: u128,
}

impl fmt::Debug for Running {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Running").field("mode", &self.mode).finish_non_exhaustive()
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        cleanse(&mut self.chained);
        cleanse(&mut self.waiting);
    }
}

impl Running {
    const fn makes_a_stream(&self) -> bool {
        matches!(self.mode, Mode::Ctr | Mode::Stream(..))
    }

    /// Works on whole blocks in their place.
    fn blocks(&mut self, blocks: &mut [u8]) -> Result<()> {
        let iv = &mut self.chained[..self.key.length()];
        match (self.mode, self.direction) {
            (Mode::Ecb, Direction::Forward) => self.key.run(Way::Encrypt, blocks),
            (Mode::Ecb, Direction::Backward) => self.key.run(Way::Decrypt, blocks),
            (_, Direction::Forward) => chain(&*self.key, iv, blocks),
            (_, Direction::Backward) => unchain(&*self.key, iv, blocks),
        }
    }

    /// Encrypts the next block that masks.
    fn mask(&mut self) -> Result<()> {
        let block = self.key.length();
        self.waiting = self.chained;
        self.key.run(Way::Encrypt, &mut self.waiting[..block])?;
        if self.mode == Mode::Ctr {
            let next = u128::from_be_bytes(self.chained).wrapping_add(1);
            self.chained = next.to_be_bytes();
        }
        Ok(())
    }

    fn stream(&mut self, input: &[u8], out: &mut [u8]) -> Result<()> {
        let block = self.key.length();
        let (feedback, unit) = match self.mode {
            Mode::Stream(feedback, unit) => (Some(feedback), unit),
            _ => {
                take(&mut self.left, block, self.at, input.len())?;
                (None, block)
            }
        };
        for (byte, out) in input.iter().zip(out) {
            if self.at == 0 {
                self.mask()?;
                if feedback.is_some() {
                    self.chained.copy_within(unit..block, 0);
                }
            }
            let mask = self.waiting[self.at];
            *out = byte ^ mask;
            let fed = &mut self.chained[block - unit + self.at];
            match (feedback, self.direction) {
                (None, _) => {}
                (Some(Feedback::Output), _) => *fed = mask,
                (Some(Feedback::Cipher), Direction::Forward) => *fed = *out,
                (Some(Feedback::Cipher), Direction::Backward) => *fed = *byte,
            }
            self.at = (self.at + 1) % unit;
        }
        Ok(())
    }

    /// The last block: what waits, then the padding.
    fn pad(&mut self, out: &mut [u8]) -> Result<()> {
        // Less than a block waits, so this fits.
        let padding = u8::try_from(out.len() - self.at).unwrap_or(0);
        out.fill(padding);
        out[..self.at].copy_from_slice(&self.waiting[..self.at]);
        self.blocks(out)
    }

    /// The last block, which waits, without its padding; how long that is.
    fn unpad(&mut self, out: &mut [u8]) -> Result<usize> {
        let block = self.key.length();
        if self.at != block {
            return Err(Error::ENCRYPTED_DATA_LEN_RANGE);
        }
        out[..block].copy_from_slice(&self.waiting[..block]);
        self.blocks(&mut out[..block])?;
        let plain = constant_time::unpad(&mut out[..block], block);
        plain.map_err(|_| Error::ENCRYPTED_DATA_INVALID)
    }
}

impl CipherStream for Running {
    fn update_length(&self, input: usize) -> usize {
        if self.makes_a_stream() {
            return input;
        }
        let (block, total) = (self.key.length(), self.at + input);
        let rest = total % block;
        // The last block is kept back: its padding must be looked at.
        let held = self.mode == Mode::CbcPad && self.direction == Direction::Backward;
        if held && rest == 0 && total > 0 { total - block } else { total - rest }
    }

    fn update(&mut self, mut input: &[u8], out: &mut [u8]) -> Result<()> {
        if self.makes_a_stream() {
            let done = self.stream(input, out);
            wipe_shallow_stack();
            return done;
        }
        if !out.is_empty() {
            let (waited, rest) = out.split_at_mut(self.at);
            waited.copy_from_slice(&self.waiting[..self.at]);
            self.at = 0;
            let (whole, waits) = input.split_at(rest.len());
            rest.copy_from_slice(whole);
            input = waits;
            self.blocks(out)?;
            wipe_shallow_stack();
        }
        self.waiting[self.at..self.at + input.len()].copy_from_slice(input);
        self.at += input.len();
        Ok(())
    }

    fn finish_length(&self) -> usize {
        if self.mode == Mode::CbcPad { self.key.length() } else { 0 }
    }

    fn finish(&mut self, out: &mut [u8]) -> Result<usize> {
        let block = self.key.length();
        let done = match (self.mode, self.direction) {
            (Mode::CbcPad, Direction::Forward) => self.pad(&mut out[..block]).map(|()| block),
            (Mode::CbcPad, Direction::Backward) => self.unpad(out),
            _ if self.makes_a_stream() || self.at == 0 => Ok(0),
            (_, direction) => Err(direction.length_error()),
        };
        wipe_shallow_stack();
        done
    }
}

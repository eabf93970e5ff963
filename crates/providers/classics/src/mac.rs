// SPDX-License-Identifier: Apache-2.0
//! MACs that are the end of a chain of blocks: CBC-MAC (FIPS 113), whose messages must all be of one length, and CMAC (SP 800-38B),
//! which tells them apart.

use crate::blocks::{Blocks, LONGEST};
use crate::mechanism::{Mode, Use};
use metaslot_awslc_wrapper::aes::Way;
use metaslot_awslc_wrapper::{cleanse, constant_time};
use metaslot_ck::*;
use metaslot_memory::wipe_shallow_stack;
use metaslot_spi::provider::{Direction, Signature, SignatureStream};
use metaslot_spi::{Key, Params};
use std::fmt;
use std::sync::Arc;

impl Use {
    /// How long the MAC is, in bytes.
    fn mac_length(&self, params: &Params) -> Result<usize> {
        let block = self.cipher.block(params);
        let said = match (params, self.cipher.is_tuned()) {
            (Params::None, false) => 0,
            (Params::Ulong(length), false) | (Params::Tuned { mac: length, .. }, true) => *length,
            _ => return Err(Error::MECHANISM_PARAM_INVALID),
        };
        match (self.mode, usize::try_from(said)) {
            // Half a block, as the standard has it.
            (Mode::Mac, Ok(0)) => Ok(block / 2),
            (Mode::Cmac, Ok(0)) => Ok(block),
            (Mode::MacGeneral | Mode::CmacGeneral, Ok(length)) if (1..=block).contains(&length) => {
                Ok(length)
            }
            _ => Err(Error::MECHANISM_PARAM_INVALID),
        }
    }

    fn chain(&self, key: &Key, params: &Params) -> Result<Chain> {
        Ok(Chain {
            length: self.mac_length(params)?,
            key: self.cipher.schedule(key, params)?,
            told: matches!(self.mode, Mode::Cmac | Mode::CmacGeneral),
            state: [0; LONGEST],
            at: 0,
        })
    }
}

impl Signature for Use {
    fn check(&self, _: Direction, key: &Key, params: &Params) -> Result<()> {
        self.mac_length(params)?;
        self.cipher.schedule(key, params).map(drop)
    }

    fn length(&self, _: &Key, params: &Params) -> usize {
        self.mac_length(params).unwrap_or(0)
    }

    fn sign(&self, key: &Key, params: &Params, data: &[u8], out: &mut [u8]) -> Result<usize> {
        let mut chain = self.chain(key, params)?;
        chain.update(data)?;
        chain.sign(out)
    }

    fn verify(&self, key: &Key, params: &Params, data: &[u8], signature: &[u8]) -> Result<()> {
        let mut chain = self.chain(key, params)?;
        chain.update(data)?;
        chain.verify(signature)
    }

    fn start(
        &self,
        _: Direction,
        key: &Arc<Key>,
        params: &Params,
    ) -> Result<Box<dyn SignatureStream>> {
        Ok(Box::new(self.chain(key, params)?))
    }
}

/// A MAC in the middle. A block is kept until more comes: the last one is another.
struct Chain {
    key: Arc<dyn Blocks>,
    /// Of the MAC, in bytes.
    length: usize,
    /// Whether messages of several lengths are told apart: CMAC.
    told: bool,
    state: [u8; LONGEST],
    /// Bytes that were added to the state since it was encrypted.
    at: usize,
}

impl fmt::Debug for Chain {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Chain").field("at", &self.at).finish_non_exhaustive()
    }
}

impl Drop for Chain {
    fn drop(&mut self) {
        cleanse(&mut self.state);
    }
}

impl Chain {
    fn add(&mut self, data: &[u8]) {
        self.state[self.at..].iter_mut().zip(data).for_each(|(byte, other)| *byte ^= other);
        self.at += data.len();
    }

    fn finish(&mut self) -> Result<()> {
        let block = self.key.length();
        if self.told {
            let whole = self.at == block;
            if !whole {
                self.state[self.at] ^= 0x80;
            }
            let mut end = [0; LONGEST];
            let end = &mut end[..block];
            self.key.run(Way::Encrypt, end)?;
            double(end);
            if !whole {
                double(end);
            }
            self.at = 0;
            self.add(end);
            cleanse(end);
        }
        self.key.run(Way::Encrypt, &mut self.state[..block])?;
        wipe_shallow_stack();
        Ok(())
    }
}

/// Times x in the field of blocks, in the same time for each (SP 800-38B §5.3).
fn double(block: &mut [u8]) {
    let last = if block.len() == 8 { 0x1b } else { 0x87 };
    let mut carry = 0;
    for byte in block.iter_mut().rev() {
        let next = *byte >> 7;
        *byte = (*byte << 1) | carry;
        carry = next;
    }
    if let Some(byte) = block.last_mut() {
        *byte ^= last & 0_u8.wrapping_sub(carry);
    }
}

impl SignatureStream for Chain {
    fn update(&mut self, mut data: &[u8]) -> Result<()> {
        let block = self.key.length();
        while !data.is_empty() {
            if self.at == block {
                self.key.run(Way::Encrypt, &mut self.state[..block])?;
                self.at = 0;
            }
            let (now, later) = data.split_at(data.len().min(block - self.at));
            self.add(now);
            data = later;
        }
        wipe_shallow_stack();
        Ok(())
    }

    fn sign(&mut self, out: &mut [u8]) -> Result<usize> {
        self.finish()?;
        out[..self.length].copy_from_slice(&self.state[..self.length]);
        Ok(self.length)
    }

    fn verify(&mut self, signature: &[u8]) -> Result<()> {
        if signature.len() != self.length {
            return Err(Error::SIGNATURE_LEN_RANGE);
        }
        self.finish()?;
        let equal = constant_time::equal(&self.state[..self.length], signature);
        if equal { Ok(()) } else { Err(Error::SIGNATURE_INVALID) }
    }
}

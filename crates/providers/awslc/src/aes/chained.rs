// SPDX-License-Identifier: Apache-2.0
//! MACs that are the end of a chain of blocks (PKCS#11 3.2 §6.10): CBC-MAC, whose messages must all be of one length, and XCBC
//! (RFC 3566), which tells them apart.

use super::keys::KEYS;
use crate::mac::{Mac, Prepared, Stream, row, running};
use metaslot_awslc_wrapper::Failed;
use metaslot_awslc_wrapper::aes::{BLOCK, Keys, Way};
use metaslot_ck::*;
use metaslot_memory::Secret;
use metaslot_spi::Key;
use metaslot_spi::provider::{Algorithm, SignatureStream};
use std::fmt;
use std::sync::Arc;

pub(super) const CBC_ROW: Algorithm = row(CKM_AES_MAC, KEYS, &CBC);
pub(super) const CBC_GENERAL_ROW: Algorithm =
    row(CKM_AES_MAC_GENERAL, KEYS, &Mac { general: true, length: BLOCK, ..CBC });
pub(super) const XCBC_ROW: Algorithm = row(CKM_AES_XCBC_MAC, (16, 16), &XCBC);
pub(super) const XCBC_96_ROW: Algorithm =
    row(CKM_AES_XCBC_MAC_96, (16, 16), &Mac { length: 12, ..XCBC });

const CBC: Mac = Mac {
    general: false,
    // Half a block, as the standard has it.
    length: BLOCK / 2,
    prepared: |key| Ok(key.prepared(ChainKey::<false>::new)?),
    anew: |key| Ok(Box::new(ChainKey::<false>::new(key)?)),
};

const XCBC: Mac = Mac {
    general: false,
    length: BLOCK,
    prepared: |key| Ok(key.prepared(ChainKey::<true>::new)?),
    anew: |key| Ok(Box::new(ChainKey::<true>::new(key)?)),
};

/// A key of a chain.
struct Chaining {
    keys: Keys,
    /// What is added to a last block that is whole, and to one that is not; none for CBC-MAC.
    ends: Option<Secret>,
}

/// One type per function.
pub(crate) struct ChainKey<const EXTENDED: bool>(Arc<Chaining>);

pub(crate) type XcbcKey = ChainKey<true>;

fn extended(value: &[u8]) -> Result<Chaining> {
    let size = |_: Failed| Error::KEY_SIZE_RANGE;
    if value.len() != BLOCK {
        return Err(Error::KEY_SIZE_RANGE);
    }
    let keys = Keys::new(value).map_err(size)?;
    let mut derived = Secret::zeroed(3 * BLOCK);
    for (number, block) in (1..).zip(derived.expose_mut().as_chunks_mut::<BLOCK>().0) {
        block.fill(number);
        keys.block(Way::Encrypt, block);
    }
    let (first, ends) = derived.expose().split_at(BLOCK);
    Ok(Chaining { keys: Keys::new(first).map_err(size)?, ends: Some(Secret::copy_of(ends)) })
}

/// A MAC in the middle. A block is kept until more comes: the last one is another.
struct Chain {
    key: Arc<Chaining>,
    state: [u8; BLOCK],
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
        metaslot_awslc_wrapper::cleanse(&mut self.state);
    }
}

impl Chain {
    fn new(key: &Arc<Chaining>) -> Self {
        Self { key: Arc::clone(key), state: [0; BLOCK], at: 0 }
    }

    fn add(&mut self, data: &[u8]) {
        for (place, byte) in self.state[self.at..].iter_mut().zip(data) {
            *place ^= byte;
        }
        self.at += data.len();
    }

    fn update(&mut self, mut data: &[u8]) {
        while !data.is_empty() {
            if self.at == BLOCK {
                self.key.keys.block(Way::Encrypt, &mut self.state);
                self.at = 0;
            }
            let (now, later) = data.split_at(data.len().min(BLOCK - self.at));
            self.add(now);
            data = later;
        }
    }

    fn finish(&mut self, out: &mut [u8]) {
        let key = Arc::clone(&self.key);
        if let Some(ends) = &key.ends {
            let whole = self.at == BLOCK;
            if !whole {
                self.state[self.at] ^= 0x80;
            }
            let (first, second) = ends.expose().split_at(BLOCK);
            self.at = 0;
            self.add(if whole { first } else { second });
        }
        key.keys.block(Way::Encrypt, &mut self.state);
        out.copy_from_slice(&self.state[..out.len()]);
    }
}

impl<const EXTENDED: bool> ChainKey<EXTENDED> {
    fn new(key: &Key) -> Result<Self> {
        Self::of(key.secret(CKA_VALUE)?)
    }

    pub(crate) fn of(value: &[u8]) -> Result<Self> {
        let key = if EXTENDED {
            extended(value)?
        } else {
            Chaining { keys: Keys::new(value).map_err(|_| Error::KEY_SIZE_RANGE)?, ends: None }
        };
        Ok(Self(Arc::new(key)))
    }

    /// The MAC of the parts, one after the other, truncated to `out`.
    pub(crate) fn parts(&self, parts: &[&[u8]], out: &mut [u8]) {
        let mut chain = Chain::new(&self.0);
        parts.iter().for_each(|part| chain.update(part));
        chain.finish(out);
    }
}

impl<const EXTENDED: bool> Prepared for ChainKey<EXTENDED> {
    fn mac(&self, data: &[u8], out: &mut [u8]) -> std::result::Result<(), Failed> {
        self.parts(&[data], out);
        Ok(())
    }

    fn start(&self, length: usize) -> std::result::Result<Box<dyn SignatureStream>, Failed> {
        Ok(running(Chain::new(&self.0), length))
    }
}

impl Stream for Chain {
    fn update(&mut self, data: &[u8]) -> std::result::Result<(), Failed> {
        self.update(data);
        Ok(())
    }

    fn finish(&mut self, out: &mut [u8]) -> std::result::Result<(), Failed> {
        self.finish(out);
        Ok(())
    }
}

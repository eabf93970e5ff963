// SPDX-License-Identifier: Apache-2.0
//! AES in the modes that give back as much as they get, and CBC with padding (PKCS#11 3.2 §6.10, §6.11).
//!
//! What one call leaves for the next stays here, and not in the kernel: each piece is a request of its own, with the IV that
//! follows from the one before.

use crate::failure::device_error;
use crate::offer::Offer;
use crate::pending::Pending;
use metaslot_awslc_wrapper::{cleanse, constant_time};
use metaslot_ck::*;
use metaslot_kernel_wrapper::Kind;
use metaslot_kernel_wrapper::cipher::{self, BLOCK, MOST};
use metaslot_spi::provider::{Algorithm, Cipher, CipherStream, Direction};
use metaslot_spi::{Key, Params};
use std::sync::Arc;

/// Sizes of AES keys, in bytes.
pub(crate) const KEYS: (u64, u64) = (16, 32);

/// One row per mode. None wraps: what is encrypted lies in pages of the kernel that are not wiped.
pub(crate) const OFFERS: [Offer; 4] = [
    offer(CKM_AES_ECB, &Aes { mode: Mode::Ecb, pads: false }),
    offer(CKM_AES_CBC, &Aes { mode: Mode::Cbc, pads: false }),
    offer(CKM_AES_CBC_PAD, &Aes { mode: Mode::Cbc, pads: true }),
    offer(CKM_AES_CTR, &Aes { mode: Mode::Ctr, pads: false }),
];

const fn offer(mechanism: CK_MECHANISM_TYPE, cipher: &'static Aes) -> Offer {
    let row = Algorithm {
        mechanism,
        key_sizes: KEYS,
        encrypt: Some(cipher),
        decrypt: Some(cipher),
        ..Algorithm::NONE
    };
    Offer { row, kind: Kind::Cipher, name: cipher.mode.name() }
}

/// The value of an AES key.
pub(crate) fn aes_value(key: &Key) -> Result<&[u8]> {
    let value = key.secret(CKA_VALUE)?;
    if matches!(value.len(), 16 | 24 | 32) { Ok(value) } else { Err(Error::KEY_SIZE_RANGE) }
}

#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Mode {
    Ecb,
    Cbc,
    Ctr,
}

impl Mode {
    /// The kernel's.
    const fn name(self) -> &'static str {
        match self {
            Self::Ecb => "ecb(aes)",
            Self::Cbc => "cbc(aes)",
            Self::Ctr => "ctr(aes)",
        }
    }
}

/// A message in the middle.
#[derive(Debug)]
struct Chain {
    mode: Mode,
    encrypt: bool,
    /// Of the next block.
    iv: [u8; BLOCK],
    /// How many bytes of the next block's key stream are used.
    used: usize,
    /// How many bytes there are until a counter has come round.
    room: u128,
}

impl Chain {
    fn new(mode: Mode, direction: Direction, params: &Params) -> Result<Self> {
        let (iv, room) = match (mode, params) {
            (Mode::Ecb, Params::None) => ([0; BLOCK], u128::MAX),
            (Mode::Cbc, Params::Iv(iv)) => {
                let iv = iv.as_slice().try_into();
                (iv.map_err(|_| Error::MECHANISM_PARAM_INVALID)?, u128::MAX)
            }
            (Mode::Ctr, Params::Ctr { bits: bits @ 1..=128, block }) => {
                let mask = u128::MAX >> (128 - bits);
                let blocks = (mask - (u128::from_be_bytes(*block) & mask)).saturating_add(1);
                (*block, blocks.saturating_mul(BLOCK as u128))
            }
            _ => return Err(Error::MECHANISM_PARAM_INVALID),
        };
        Ok(Self { mode, encrypt: direction == Direction::Forward, iv, used: 0, room })
    }

    fn cipher(&self, key: &Key) -> Result<cipher::Cipher> {
        cipher::Cipher::new(self.mode.name(), aes_value(key)?).map_err(device_error)
    }

    /// The next whole blocks.
    fn blocks(&mut self, cipher: &cipher::Cipher, input: &[u8], out: &mut [u8]) -> Result<()> {
        for (input, out) in input.chunks(MOST).zip(out.chunks_mut(MOST)) {
            let iv: &[u8] = if self.mode == Mode::Ecb { &[] } else { &self.iv };
            cipher.run(self.encrypt, iv, input, out).map_err(device_error)?;
            let sealed = if self.encrypt { &*out } else { input };
            match (self.mode, sealed.last_chunk()) {
                (Mode::Cbc, Some(last)) => self.iv = *last,
                (Mode::Ctr, _) => self.count(input.len() / BLOCK),
                _ => {}
            }
        }
        Ok(())
    }

    fn count(&mut self, blocks: usize) {
        self.iv = u128::from_be_bytes(self.iv).wrapping_add(blocks as u128).to_be_bytes();
    }

    /// The next bytes by a counter, however many.
    fn bytes(&mut self, cipher: &cipher::Cipher, input: &[u8], out: &mut [u8]) -> Result<()> {
        let left = self.room.checked_sub(input.len() as u128);
        self.room = left.ok_or(Error::DATA_LEN_RANGE)?;
        let first = if self.used > 0 { input.len().min(BLOCK - self.used) } else { 0 };
        let whole = (input.len() - first) / BLOCK * BLOCK;
        let (start, input) = input.split_at(first);
        let (start_out, out) = out.split_at_mut(first);
        self.part(cipher, start, start_out)?;
        self.blocks(cipher, &input[..whole], &mut out[..whole])?;
        self.part(cipher, &input[whole..], &mut out[whole..])
    }

    /// Some bytes within a block.
    fn part(&mut self, cipher: &cipher::Cipher, input: &[u8], out: &mut [u8]) -> Result<()> {
        if input.is_empty() {
            return Ok(());
        }
        let mut stream = [0; BLOCK];
        let made = cipher.run(true, &self.iv, &[0; BLOCK], &mut stream).map_err(device_error);
        for ((out, byte), key) in out.iter_mut().zip(input).zip(&stream[self.used..]) {
            *out = byte ^ key;
        }
        cleanse(&mut stream);
        self.used += input.len();
        if self.used == BLOCK {
            self.used = 0;
            self.count(1);
        }
        made
    }
}

/// AES in a mode.
#[derive(Debug)]
struct Aes {
    mode: Mode,
    pads: bool,
}

impl Cipher for Aes {
    fn check(&self, direction: Direction, key: &Key, params: &Params) -> Result<()> {
        Chain::new(self.mode, direction, params)?;
        aes_value(key).map(|_| ())
    }

    fn length(&self, direction: Direction, _: &Key, _: &Params, input: usize) -> Result<usize> {
        match direction {
            _ if self.mode == Mode::Ctr => Ok(input),
            Direction::Forward if self.pads => {
                input.checked_add(BLOCK - input % BLOCK).ok_or(Error::DATA_LEN_RANGE)
            }
            _ if input.is_multiple_of(BLOCK) && (input > 0 || !self.pads) => Ok(input),
            _ => Err(direction.length_error()),
        }
    }

    fn run(
        &self,
        direction: Direction,
        key: &Key,
        params: &Params,
        input: &[u8],
        out: &mut [u8],
    ) -> Result<usize> {
        let length = self.length(direction, key, params, input.len())?;
        let (mut chain, out) = (Chain::new(self.mode, direction, params)?, &mut out[..length]);
        let cipher = chain.cipher(key)?;
        if self.mode == Mode::Ctr {
            return chain.bytes(&cipher, input, out).map(|()| length);
        }
        let (whole, rest) = input.split_at(input.len() / BLOCK * BLOCK);
        chain.blocks(&cipher, whole, &mut out[..whole.len()])?;
        match direction {
            _ if !self.pads => Ok(length),
            Direction::Forward => {
                pad(&mut chain, &cipher, rest, &mut out[whole.len()..]).map(|()| length)
            }
            Direction::Backward => unpad(out),
        }
    }

    fn start(
        &self,
        direction: Direction,
        key: &Arc<Key>,
        params: &Params,
    ) -> Result<Box<dyn CipherStream>> {
        let chain = Chain::new(self.mode, direction, params)?;
        let key = Arc::clone(key);
        Ok(match self.mode {
            Mode::Ctr => Box::new(Counting { key, chain }),
            _ => {
                let pending = Pending::new(self.pads && direction == Direction::Backward);
                Box::new(Blocks { key, chain, direction, pads: self.pads, pending })
            }
        })
    }
}

/// The last block: what is left, then the padding.
fn pad(chain: &mut Chain, cipher: &cipher::Cipher, rest: &[u8], out: &mut [u8]) -> Result<()> {
    // Less than a block, so this fits.
    let mut block = [u8::try_from(BLOCK - rest.len()).unwrap_or(0); BLOCK];
    block[..rest.len()].copy_from_slice(rest);
    let done = chain.blocks(cipher, &block, out);
    cleanse(&mut block);
    done
}

fn unpad(plain: &mut [u8]) -> Result<usize> {
    constant_time::unpad(plain, BLOCK).map_err(|_| Error::ENCRYPTED_DATA_INVALID)
}

/// CTR in the middle.
#[derive(Debug)]
struct Counting {
    key: Arc<Key>,
    chain: Chain,
}

impl CipherStream for Counting {
    fn update_length(&self, input: usize) -> usize {
        input
    }

    fn update(&mut self, input: &[u8], out: &mut [u8]) -> Result<()> {
        let cipher = self.chain.cipher(&self.key)?;
        self.chain.bytes(&cipher, input, out)
    }

    fn finish_length(&self) -> usize {
        0
    }

    fn finish(&mut self, _: &mut [u8]) -> Result<usize> {
        Ok(0)
    }
}

/// A mode of whole blocks in the middle.
#[derive(Debug)]
struct Blocks {
    key: Arc<Key>,
    chain: Chain,
    direction: Direction,
    pads: bool,
    pending: Pending,
}

impl CipherStream for Blocks {
    fn update_length(&self, input: usize) -> usize {
        self.pending.ready(input)
    }

    fn update(&mut self, input: &[u8], out: &mut [u8]) -> Result<()> {
        let cipher = self.chain.cipher(&self.key)?;
        let chain = &mut self.chain;
        self.pending.update(input, out, |input, out| chain.blocks(&cipher, input, out))
    }

    fn finish_length(&self) -> usize {
        if self.pads { BLOCK } else { 0 }
    }

    fn finish(&mut self, out: &mut [u8]) -> Result<usize> {
        let rest = self.pending.bytes();
        if !self.pads {
            return if rest.is_empty() { Ok(0) } else { Err(self.direction.length_error()) };
        }
        let (cipher, out) = (self.chain.cipher(&self.key)?, &mut out[..BLOCK]);
        match self.direction {
            Direction::Forward => pad(&mut self.chain, &cipher, rest, out).map(|()| BLOCK),
            Direction::Backward if rest.len() == BLOCK => {
                self.chain.blocks(&cipher, rest, out)?;
                unpad(out)
            }
            Direction::Backward => Err(Error::ENCRYPTED_DATA_LEN_RANGE),
        }
    }
}

// SPDX-License-Identifier: Apache-2.0
//! AES-CBC, with and without PKCS#7 padding (PKCS#11 3.2 §6.13.4 and §6.13.5).

use super::blocks::Pending;
use super::{KEYS, keys, length_error, way};
use crate::wrapping::ByCipher;
use metaslot_awslc::aes::{BLOCK, Way};
use metaslot_ck::*;
use metaslot_engine::provider::{Algorithm, Cipher, CipherStream, Direction};
use metaslot_engine::{Key, Params};
use std::sync::Arc;

pub(super) const ROW: Algorithm = Algorithm {
    mechanism: CKM_AES_CBC,
    key_sizes: KEYS,
    encrypt: Some(&Cbc),
    decrypt: Some(&Cbc),
    wrap: Some(&ByCipher(Cbc)),
    unwrap: Some(&ByCipher(Cbc)),
    ..Algorithm::NONE
};

pub(super) const PAD_ROW: Algorithm = Algorithm {
    mechanism: CKM_AES_CBC_PAD,
    key_sizes: KEYS,
    encrypt: Some(&CbcPad),
    decrypt: Some(&CbcPad),
    wrap: Some(&ByCipher(CbcPad)),
    unwrap: Some(&ByCipher(CbcPad)),
    ..Algorithm::NONE
};

#[derive(Debug)]
struct Cbc;

#[derive(Debug)]
struct CbcPad;

fn iv(params: &Params) -> Result<[u8; BLOCK]> {
    let Params::Iv(iv) = params else { return Err(Error::MECHANISM_PARAM_INVALID) };
    iv.as_slice().try_into().map_err(|_| Error::MECHANISM_PARAM_INVALID)
}

impl Cipher for Cbc {
    fn check(&self, _: Direction, key: &Key, params: &Params) -> Result<()> {
        iv(params)?;
        keys(key).map(|_| ())
    }

    fn length(&self, direction: Direction, _: &Key, _: &Params, input: usize) -> Result<usize> {
        if input.is_multiple_of(BLOCK) { Ok(input) } else { Err(length_error(direction)) }
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
        keys(key)?.cbc(way(direction), &mut iv(params)?, input, &mut out[..length]);
        Ok(length)
    }

    fn start(
        &self,
        direction: Direction,
        key: &Arc<Key>,
        params: &Params,
    ) -> Result<Box<dyn CipherStream>> {
        Ok(Box::new(Running::new(direction, key, params, false)?))
    }
}

impl Cipher for CbcPad {
    fn check(&self, direction: Direction, key: &Key, params: &Params) -> Result<()> {
        Cbc.check(direction, key, params)
    }

    fn length(&self, direction: Direction, _: &Key, _: &Params, input: usize) -> Result<usize> {
        match direction {
            Direction::Forward => {
                input.checked_add(BLOCK - input % BLOCK).ok_or(Error::DATA_LEN_RANGE)
            }
            Direction::Backward if input > 0 && input.is_multiple_of(BLOCK) => Ok(input),
            Direction::Backward => Err(Error::ENCRYPTED_DATA_LEN_RANGE),
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
        let (keys, mut iv) = (keys(key)?, iv(params)?);
        let (whole, rest) = input.split_at(input.len() / BLOCK * BLOCK);
        keys.cbc(way(direction), &mut iv, whole, &mut out[..whole.len()]);
        match direction {
            Direction::Forward => {
                let mut last = padded(rest);
                keys.cbc(Way::Encrypt, &mut iv, &last, &mut out[whole.len()..length]);
                metaslot_awslc::cleanse(&mut last);
                Ok(length)
            }
            Direction::Backward => match padding(&out[..length]) {
                Some(padding) => {
                    out[length - padding..].fill(0);
                    Ok(length - padding)
                }
                None => {
                    metaslot_awslc::cleanse(out);
                    Err(Error::ENCRYPTED_DATA_INVALID)
                }
            },
        }
    }

    fn start(
        &self,
        direction: Direction,
        key: &Arc<Key>,
        params: &Params,
    ) -> Result<Box<dyn CipherStream>> {
        Ok(Box::new(Running::new(direction, key, params, true)?))
    }
}

/// The last block: what is left, then the padding.
fn padded(rest: &[u8]) -> [u8; BLOCK] {
    // Less than a block, so this fits.
    let padding = u8::try_from(BLOCK - rest.len()).unwrap_or(0);
    let mut block = [padding; BLOCK];
    block[..rest.len()].copy_from_slice(rest);
    block
}

/// The length of the padding at the end of `plain`, found in the same time whatever it is. What
/// happens then still tells the caller whether it was right: policy decides who may ask.
fn padding(plain: &[u8]) -> Option<usize> {
    let block = plain.last_chunk::<BLOCK>()?;
    let length = usize::from(block[BLOCK - 1]);
    let mut wrong = u32::from(length == 0) | u32::from(length > BLOCK);
    for (from_end, byte) in (1..).zip(block.iter().rev()) {
        let inside = u32::from(from_end <= length);
        wrong |= inside & u32::from(usize::from(*byte) != length);
    }
    if wrong == 0 { Some(length) } else { None }
}

#[derive(Debug)]
struct Running {
    key: Arc<Key>,
    direction: Direction,
    pad: bool,
    iv: [u8; BLOCK],
    pending: Pending,
}

impl Running {
    fn new(direction: Direction, key: &Arc<Key>, params: &Params, pad: bool) -> Result<Self> {
        let hold_last = pad && direction == Direction::Backward;
        let (key, iv) = (Arc::clone(key), iv(params)?);
        Ok(Self { key, direction, pad, iv, pending: Pending::new(hold_last) })
    }
}

impl CipherStream for Running {
    fn update_length(&self, input: usize) -> usize {
        self.pending.ready(input)
    }

    fn update(&mut self, input: &[u8], out: &mut [u8]) -> Result<()> {
        let keys = keys(&self.key)?;
        let iv = &mut self.iv;
        let way = way(self.direction);
        self.pending.update(input, out, |input, out| keys.cbc(way, iv, input, out));
        Ok(())
    }

    fn finish_length(&self) -> usize {
        if self.pad { BLOCK } else { 0 }
    }

    fn finish(&mut self, out: &mut [u8]) -> Result<usize> {
        let keys = keys(&self.key)?;
        let rest = self.pending.bytes();
        match self.direction {
            direction if !self.pad => {
                if rest.is_empty() {
                    Ok(0)
                } else {
                    Err(length_error(direction))
                }
            }
            Direction::Forward => {
                let mut last = padded(rest);
                keys.cbc(Way::Encrypt, &mut self.iv, &last, &mut out[..BLOCK]);
                metaslot_awslc::cleanse(&mut last);
                Ok(BLOCK)
            }
            Direction::Backward => {
                if rest.len() != BLOCK {
                    return Err(Error::ENCRYPTED_DATA_LEN_RANGE);
                }
                keys.cbc(Way::Decrypt, &mut self.iv, rest, &mut out[..BLOCK]);
                let Some(padding) = padding(&out[..BLOCK]) else {
                    metaslot_awslc::cleanse(out);
                    return Err(Error::ENCRYPTED_DATA_INVALID);
                };
                out[BLOCK - padding..].fill(0);
                Ok(BLOCK - padding)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_right_padding_is_taken() {
        for length in 1..=16_u8 {
            let mut block = [0xee; 16];
            block[16 - usize::from(length)..].fill(length);
            assert_eq!(padding(&block), Some(usize::from(length)));
            if length > 1 {
                block[16 - usize::from(length)] ^= 1;
                assert_eq!(padding(&block), None);
            }
        }
        assert_eq!(padding(&[0; 16]), None);
        assert_eq!(padding(&[17; 16]), None);
        assert_eq!(padding(&[]), None);
    }
}

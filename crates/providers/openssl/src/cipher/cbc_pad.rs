// SPDX-License-Identifier: Apache-2.0
//! CBC with PKCS#7 padding (PKCS#11 3.2 §6.10.6).

use super::keys::{KEYS, Of, encrypts, iv, with};
use crate::failure::device_error;
use metaslot_ck::*;
use metaslot_openssl_wrapper::cipher::{self, BLOCK};
use metaslot_openssl_wrapper::{Mode, constant_time};
use metaslot_spi::provider::{Algorithm, Cipher, CipherStream, Direction};
use metaslot_spi::wrapping::{self, ByCipher};
use metaslot_spi::{Key, Params};
use std::sync::Arc;

pub(super) const ROW: Algorithm = wrapping::row(CKM_AES_CBC_PAD, KEYS, &ByCipher(CbcPad));

#[derive(Debug)]
struct CbcPad;

impl Of for CbcPad {
    const MODE: Mode = Mode::Cbc;
}

fn begin(direction: Direction, key: &Key, params: &Params) -> Result<cipher::Stream> {
    let iv = iv(params)?;
    with::<CbcPad, _>(key, |key| key.start(encrypts(direction), iv).map_err(device_error))
}

impl Cipher for CbcPad {
    fn check(&self, _: Direction, key: &Key, params: &Params) -> Result<()> {
        iv(params)?;
        with::<Self, _>(key, |_| Ok(()))
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
        let mut stream = begin(direction, key, params)?;
        let ready = stream.ready(input.len());
        stream.update(input, &mut out[..ready]).map_err(device_error)?;
        match direction {
            Direction::Forward => {
                pad(&mut stream, &mut out[ready..length])?;
                Ok(length)
            }
            Direction::Backward => unpad(&mut out[..length]),
        }
    }

    fn start(
        &self,
        direction: Direction,
        key: &Arc<Key>,
        params: &Params,
    ) -> Result<Box<dyn CipherStream>> {
        let stream = begin(direction, key, params)?;
        Ok(match direction {
            Direction::Forward => Box::new(Padding(stream)),
            Direction::Backward => Box::new(Unpadding { stream, held: [0; BLOCK], length: 0 }),
        })
    }
}

/// Fills the last block.
fn pad(stream: &mut cipher::Stream, out: &mut [u8]) -> Result<()> {
    let padding = BLOCK - stream.pending();
    // At most a block, so this fits.
    let block = [u8::try_from(padding).unwrap_or(0); BLOCK];
    stream.update(&block[..padding], out).map_err(device_error)
}

fn unpad(plain: &mut [u8]) -> Result<usize> {
    constant_time::unpad(plain, BLOCK).map_err(|_| Error::ENCRYPTED_DATA_INVALID)
}

/// Encryption in the middle.
#[derive(Debug)]
struct Padding(cipher::Stream);

impl CipherStream for Padding {
    fn update_length(&self, input: usize) -> usize {
        self.0.ready(input)
    }

    fn update(&mut self, input: &[u8], out: &mut [u8]) -> Result<()> {
        self.0.update(input, out).map_err(device_error)
    }

    fn finish_length(&self) -> usize {
        BLOCK
    }

    fn finish(&mut self, out: &mut [u8]) -> Result<usize> {
        pad(&mut self.0, &mut out[..BLOCK])?;
        Ok(BLOCK)
    }
}

/// Decryption in the middle: the last block of ciphertext waits, for its padding must be looked at.
#[derive(Debug)]
struct Unpadding {
    stream: cipher::Stream,
    held: [u8; BLOCK],
    length: usize,
}

impl CipherStream for Unpadding {
    fn update_length(&self, input: usize) -> usize {
        (self.length + input).saturating_sub(1) / BLOCK * BLOCK
    }

    fn update(&mut self, input: &[u8], out: &mut [u8]) -> Result<()> {
        let ready = self.update_length(input.len());
        let rest = match ready.checked_sub(self.length) {
            Some(taken) if ready > 0 => {
                let (now, rest) = input.split_at(taken);
                let first = self.stream.ready(self.length);
                let (head, tail) = out.split_at_mut(first);
                let held = &self.held[..self.length];
                self.stream.update(held, head).map_err(device_error)?;
                self.stream.update(now, tail).map_err(device_error)?;
                self.length = 0;
                rest
            }
            _ => input,
        };
        self.held[self.length..self.length + rest.len()].copy_from_slice(rest);
        self.length += rest.len();
        Ok(())
    }

    fn finish_length(&self) -> usize {
        BLOCK
    }

    fn finish(&mut self, out: &mut [u8]) -> Result<usize> {
        if self.length != BLOCK {
            return Err(Error::ENCRYPTED_DATA_LEN_RANGE);
        }
        let out = &mut out[..BLOCK];
        self.stream.update(&self.held, out).map_err(device_error)?;
        unpad(out)
    }
}

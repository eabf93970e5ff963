// SPDX-License-Identifier: Apache-2.0
//! AES-XTS (PKCS#11 3.2 §6.15): OpenSSL wants a data unit at once, so one in parts is kept until it is whole.

use super::keys::{Of, encrypts, iv, with};
use crate::failure::device_error;
use metaslot_ck::*;
use metaslot_openssl_wrapper::cipher::BLOCK;
use metaslot_openssl_wrapper::{Mode, constant_time};
use metaslot_spi::buffer::Buffer;
use metaslot_spi::provider::{Algorithm, Cipher, CipherStream, Direction};
use metaslot_spi::{Bytes, Key, Params};
use std::sync::Arc;

pub(super) const ROW: Algorithm = Algorithm {
    mechanism: CKM_AES_XTS,
    key_sizes: (32, 64),
    encrypt: Some(&Xts),
    decrypt: Some(&Xts),
    ..Algorithm::NONE
};

/// The longest data unit, in bytes (SP 800-38E §4).
const LONGEST: usize = BLOCK << 20;

#[derive(Debug)]
struct Xts;

impl Of for Xts {
    const MODE: Mode = Mode::Xts;
}

fn run(key: &Key, direction: Direction, iv: &[u8], input: &[u8], out: &mut [u8]) -> Result<usize> {
    if !(BLOCK..=LONGEST).contains(&input.len()) {
        return Err(direction.length_error());
    }
    with::<Xts, _>(key, |key| {
        let mut stream = key.start(encrypts(direction), iv).map_err(device_error)?;
        stream.unit(input, &mut out[..input.len()]).map_err(|_| direction.length_error())
    })?;
    Ok(input.len())
}

impl Cipher for Xts {
    fn check(&self, _: Direction, key: &Key, params: &Params) -> Result<()> {
        iv(params)?;
        // IEEE 1619 and SP 800-38E want two different halves.
        let value = key.secret(CKA_VALUE)?;
        let (first, second) = value.split_at(value.len() / 2);
        if constant_time::equal(first, second) {
            return Err(Error::KEY_SIZE_RANGE);
        }
        with::<Self, _>(key, |_| Ok(()))
    }

    fn length(&self, direction: Direction, _: &Key, _: &Params, input: usize) -> Result<usize> {
        if (BLOCK..=LONGEST).contains(&input) { Ok(input) } else { Err(direction.length_error()) }
    }

    fn run(
        &self,
        direction: Direction,
        key: &Key,
        params: &Params,
        input: &[u8],
        out: &mut [u8],
    ) -> Result<usize> {
        run(key, direction, iv(params)?, input, out)
    }

    fn start(
        &self,
        direction: Direction,
        key: &Arc<Key>,
        params: &Params,
    ) -> Result<Box<dyn CipherStream>> {
        let iv = Bytes::from_slice(iv(params)?);
        Ok(Box::new(Gathering { key: Arc::clone(key), direction, iv, unit: Buffer::default() }))
    }
}

#[derive(Debug)]
struct Gathering {
    key: Arc<Key>,
    direction: Direction,
    iv: Bytes,
    unit: Buffer,
}

impl CipherStream for Gathering {
    fn update_length(&self, _: usize) -> usize {
        0
    }

    fn update(&mut self, input: &[u8], _: &mut [u8]) -> Result<()> {
        if input.len() > LONGEST - self.unit.bytes().len() {
            return Err(self.direction.length_error());
        }
        self.unit.push(input)
    }

    fn finish_length(&self) -> usize {
        self.unit.bytes().len()
    }

    fn finish(&mut self, out: &mut [u8]) -> Result<usize> {
        run(&self.key, self.direction, &self.iv, self.unit.bytes(), out)
    }
}

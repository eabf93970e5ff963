// SPDX-License-Identifier: Apache-2.0
//! AES-ECB (PKCS#11 3.2 §6.13.3).

use super::blocks::Pending;
use super::{KEYS, keys, length_error, way};
use crate::device_error;
use metaslot_awslc::aes::{self, BLOCK};
use metaslot_ck::*;
use metaslot_engine::provider::{Algorithm, Cipher, CipherStream, Direction};
use metaslot_engine::{Key, Params};
use std::sync::Arc;

pub(super) const ROW: Algorithm = Algorithm {
    mechanism: CKM_AES_ECB,
    key_sizes: KEYS,
    encrypt: Some(&Ecb),
    decrypt: Some(&Ecb),
    ..Algorithm::NONE
};

/// Up to here the prepared schedule is faster than a context that works on several blocks at once,
/// in bytes.
const FEW: usize = 8 * BLOCK;

#[derive(Debug)]
struct Ecb;

fn run(key: &Key, direction: Direction, input: &[u8], out: &mut [u8]) -> Result<()> {
    if input.len() <= FEW {
        keys(key)?.ecb(way(direction), input, out);
        return Ok(());
    }
    aes::ecb(key.secret(CKA_VALUE)?, way(direction), input, out).map_err(device_error)
}

impl Cipher for Ecb {
    fn check(&self, _: Direction, key: &Key, params: &Params) -> Result<()> {
        let Params::None = params else { return Err(Error::MECHANISM_PARAM_INVALID) };
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
        run(key, direction, input, &mut out[..length])?;
        Ok(length)
    }

    fn start(
        &self,
        direction: Direction,
        key: &Arc<Key>,
        _: &Params,
    ) -> Result<Box<dyn CipherStream>> {
        Ok(Box::new(Running { key: Arc::clone(key), direction, pending: Pending::new(false) }))
    }
}

#[derive(Debug)]
struct Running {
    key: Arc<Key>,
    direction: Direction,
    pending: Pending,
}

impl CipherStream for Running {
    fn update_length(&self, input: usize) -> usize {
        self.pending.ready(input)
    }

    fn update(&mut self, input: &[u8], out: &mut [u8]) -> Result<()> {
        let mut done = Ok(());
        self.pending.update(input, out, |input, out| {
            if done.is_ok() {
                done = run(&self.key, self.direction, input, out);
            }
        });
        done
    }

    fn finish_length(&self) -> usize {
        0
    }

    fn finish(&mut self, _: &mut [u8]) -> Result<usize> {
        if self.pending.bytes().is_empty() { Ok(0) } else { Err(length_error(self.direction)) }
    }
}

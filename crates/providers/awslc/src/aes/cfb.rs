// SPDX-License-Identifier: Apache-2.0
//! AES-CFB128 (PKCS#11 3.2 §6.13; SP 800-38A §6.3): the cipher's last block is the next one's key
//! stream, so any length is served, byte by byte.

use super::keys::{KEYS, keys};
use crate::block::iv;
use metaslot_awslc_wrapper::aes::{BLOCK, Keys, Way};
use metaslot_ck::*;
use metaslot_spi::provider::{Algorithm, Cipher, CipherStream, Direction};
use metaslot_spi::wrapping::ByCipher;
use metaslot_spi::{Key, Params};
use std::fmt;
use std::sync::Arc;

pub(super) const ROW: Algorithm = Algorithm {
    mechanism: CKM_AES_CFB128,
    key_sizes: KEYS,
    encrypt: Some(&Cfb),
    decrypt: Some(&Cfb),
    wrap: Some(&ByCipher(Cfb)),
    unwrap: Some(&ByCipher(Cfb)),
    ..Algorithm::NONE
};

#[derive(Debug)]
struct Cfb;

impl Cipher for Cfb {
    fn check(&self, _: Direction, key: &Key, params: &Params) -> Result<()> {
        iv::<BLOCK>(params)?;
        keys(key).map(|_| ())
    }

    fn length(&self, _: Direction, _: &Key, _: &Params, input: usize) -> Result<usize> {
        Ok(input)
    }

    fn run(
        &self,
        direction: Direction,
        key: &Key,
        params: &Params,
        input: &[u8],
        out: &mut [u8],
    ) -> Result<usize> {
        Register::new(iv(params)?).turn(keys(key)?, direction, input, out);
        Ok(input.len())
    }

    fn start(
        &self,
        direction: Direction,
        key: &Arc<Key>,
        params: &Params,
    ) -> Result<Box<dyn CipherStream>> {
        let register = Register::new(iv(params)?);
        Ok(Box::new(Running { key: Arc::clone(key), direction, register }))
    }
}

/// What is encrypted next: of the block begun, the encrypted bytes, then the rest of its key stream.
struct Register {
    block: [u8; BLOCK],
    used: usize,
}

impl fmt::Debug for Register {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Register").field("used", &self.used).finish_non_exhaustive()
    }
}

impl Drop for Register {
    fn drop(&mut self) {
        metaslot_awslc_wrapper::cleanse(&mut self.block);
    }
}

impl Register {
    const fn new(iv: [u8; BLOCK]) -> Self {
        Self { block: iv, used: BLOCK }
    }

    fn turn(&mut self, keys: &Keys, direction: Direction, mut input: &[u8], out: &mut [u8]) {
        let mut out = out.iter_mut();
        while !input.is_empty() {
            if self.used == BLOCK {
                keys.block(Way::Encrypt, &mut self.block);
                self.used = 0;
            }
            let (now, later) = input.split_at(input.len().min(BLOCK - self.used));
            for ((place, byte), out) in self.block[self.used..].iter_mut().zip(now).zip(&mut out) {
                *out = *place ^ byte;
                *place = if direction == Direction::Forward { *out } else { *byte };
            }
            self.used += now.len();
            input = later;
        }
    }
}

#[derive(Debug)]
struct Running {
    key: Arc<Key>,
    direction: Direction,
    register: Register,
}

impl CipherStream for Running {
    fn update_length(&self, input: usize) -> usize {
        input
    }

    fn update(&mut self, input: &[u8], out: &mut [u8]) -> Result<()> {
        self.register.turn(keys(&self.key)?, self.direction, input, out);
        Ok(())
    }

    fn finish_length(&self) -> usize {
        0
    }

    fn finish(&mut self, _: &mut [u8]) -> Result<usize> {
        Ok(0)
    }
}

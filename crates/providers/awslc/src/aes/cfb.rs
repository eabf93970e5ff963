// SPDX-License-Identifier: Apache-2.0
//! AES as a key stream that depends on what came before (PKCS#11 3.2 §6.10; SP 800-38A §6.3, §6.4): cipher feedback in pieces of
//! 128, 64, 8 and 1 bit, and output feedback. Any length is served, byte by byte.

use super::keys::{KEYS, keys};
use crate::block::iv;
use metaslot_awslc_wrapper::aes::{BLOCK, Keys, Way};
use metaslot_ck::*;
use metaslot_spi::provider::{Algorithm, Cipher, CipherStream, Direction};
use metaslot_spi::wrapping::{self, ByCipher};
use metaslot_spi::{Key, Params};
use std::fmt;
use std::sync::Arc;

pub(super) const ROW: Algorithm =
    wrapping::row(CKM_AES_CFB128, KEYS, &ByCipher(Feedback::Cipher(16)));
pub(super) const CFB64_ROW: Algorithm =
    wrapping::row(CKM_AES_CFB64, KEYS, &ByCipher(Feedback::Cipher(8)));
pub(super) const CFB8_ROW: Algorithm =
    wrapping::row(CKM_AES_CFB8, KEYS, &ByCipher(Feedback::Cipher(1)));
pub(super) const CFB1_ROW: Algorithm = wrapping::row(CKM_AES_CFB1, KEYS, &ByCipher(Feedback::Bit));
pub(super) const OFB_ROW: Algorithm = wrapping::row(CKM_AES_OFB, KEYS, &ByCipher(Feedback::Output));

/// What goes into the next block.
#[derive(Clone, Copy, Debug)]
enum Feedback {
    /// So many bytes of ciphertext.
    Cipher(usize),
    /// One bit of it.
    Bit,
    /// The key stream.
    Output,
}

impl Cipher for Feedback {
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
        Register::new(*self, iv(params)?).turn(keys(key)?, direction, input, out);
        Ok(input.len())
    }

    fn start(
        &self,
        direction: Direction,
        key: &Arc<Key>,
        params: &Params,
    ) -> Result<Box<dyn CipherStream>> {
        let register = Register::new(*self, iv(params)?);
        Ok(Box::new(Running { key: Arc::clone(key), direction, register }))
    }
}

/// What is encrypted next, and the key stream of the piece begun.
struct Register {
    mode: Feedback,
    /// Its last bytes wait for those of the piece begun.
    block: [u8; BLOCK],
    stream: [u8; BLOCK],
    /// Of the piece.
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
        metaslot_awslc_wrapper::cleanse(&mut self.stream);
    }
}

impl Register {
    const fn new(mode: Feedback, iv: [u8; BLOCK]) -> Self {
        Self { mode, block: iv, stream: [0; BLOCK], used: BLOCK }
    }

    fn turn(&mut self, keys: &Keys, direction: Direction, mut input: &[u8], out: &mut [u8]) {
        let forward = direction == Direction::Forward;
        let width = match self.mode {
            Feedback::Cipher(width) => width,
            Feedback::Output => BLOCK,
            Feedback::Bit => {
                for (out, byte) in out.iter_mut().zip(input) {
                    *out = self.bits(keys, forward, *byte);
                }
                return;
            }
        };
        let output = matches!(self.mode, Feedback::Output);
        let mut out = out.iter_mut();
        while !input.is_empty() {
            if self.used >= width {
                self.stream = self.block;
                keys.block(Way::Encrypt, &mut self.stream);
                self.block.copy_within(width.., 0);
                self.used = 0;
            }
            let (now, later) = input.split_at(input.len().min(width - self.used));
            let places = self.block[BLOCK - width + self.used..].iter_mut();
            let stream = &self.stream[self.used..];
            for (((place, mask), byte), out) in places.zip(stream).zip(now).zip(&mut out) {
                *out = mask ^ byte;
                *place = if output {
                    *mask
                } else if forward {
                    *out
                } else {
                    *byte
                };
            }
            self.used += now.len();
            input = later;
        }
    }

    /// One byte, bit by bit, the most significant one first.
    fn bits(&mut self, keys: &Keys, forward: bool, byte: u8) -> u8 {
        (0..8).rev().fold(0, |made, bit| {
            self.stream = self.block;
            keys.block(Way::Encrypt, &mut self.stream);
            let (given, mask) = (byte >> bit & 1, self.stream[0] >> 7);
            let fed = if forward { given ^ mask } else { given };
            let shifted = u128::from_be_bytes(self.block) << 1 | u128::from(fed);
            self.block = shifted.to_be_bytes();
            made << 1 | (given ^ mask)
        })
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

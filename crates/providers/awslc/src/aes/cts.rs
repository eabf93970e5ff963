// SPDX-License-Identifier: Apache-2.0
//! CBC with ciphertext stealing (PKCS#11 3.2 §6.12): the order of SP 800-38A's addendum, CS1, in which whole blocks are plain CBC.
//! In parts, the data are kept until all are there.

use super::keys::{KEYS, keys};
use crate::block::iv;
use metaslot_awslc_wrapper::aes::{BLOCK, Keys, Way};
use metaslot_ck::*;
use metaslot_spi::buffer::Buffer;
use metaslot_spi::provider::{Algorithm, Cipher, CipherStream, Direction};
use metaslot_spi::wrapping::{self, ByCipher};
use metaslot_spi::{Key, Params};
use std::sync::Arc;

pub(super) const ROW: Algorithm = wrapping::row(CKM_AES_CTS, KEYS, &ByCipher(Stealing));

#[derive(Debug)]
struct Stealing;

impl Cipher for Stealing {
    fn check(&self, _: Direction, key: &Key, params: &Params) -> Result<()> {
        iv::<BLOCK>(params)?;
        keys(key).map(|_| ())
    }

    fn length(&self, direction: Direction, _: &Key, _: &Params, input: usize) -> Result<usize> {
        if input < BLOCK { Err(direction.length_error()) } else { Ok(input) }
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
        steal(keys(key)?, direction, iv(params)?, input, &mut out[..length]);
        Ok(length)
    }

    fn start(
        &self,
        direction: Direction,
        key: &Arc<Key>,
        params: &Params,
    ) -> Result<Box<dyn CipherStream>> {
        let (key, iv) = (Arc::clone(key), iv(params)?);
        Ok(Box::new(Running { key, direction, iv, held: Buffer::default() }))
    }
}

/// At least a block.
fn steal(keys: &Keys, direction: Direction, mut iv: [u8; BLOCK], input: &[u8], out: &mut [u8]) {
    let rest = input.len() % BLOCK;
    // What is chained as it is: all, or all but the last block and the piece.
    let plain = if rest == 0 { input.len() } else { input.len() - rest - BLOCK };
    let (head, tail) = input.split_at(plain);
    let (head_out, tail_out) = out.split_at_mut(plain);
    let way = crate::block::way(direction);
    keys.cbc(way, &mut iv, head, head_out);
    if rest == 0 {
        return;
    }
    let (mut last, mut before) = ([0; BLOCK], [0; BLOCK]);
    match direction {
        Direction::Forward => {
            keys.cbc(way, &mut iv, &tail[..BLOCK], &mut before);
            last[..rest].copy_from_slice(&tail[BLOCK..]);
            last.iter_mut().zip(&before).for_each(|(byte, chained)| *byte ^= chained);
            keys.block(Way::Encrypt, &mut last);
            tail_out[..rest].copy_from_slice(&before[..rest]);
            tail_out[rest..].copy_from_slice(&last);
        }
        Direction::Backward => {
            last.copy_from_slice(&tail[rest..]);
            keys.block(Way::Decrypt, &mut last);
            // Behind the piece stand zeros, so that the rest of the block before shows.
            before.copy_from_slice(&last);
            before[..rest].copy_from_slice(&tail[..rest]);
            for ((out, one), other) in tail_out[BLOCK..].iter_mut().zip(&last).zip(&before) {
                *out = one ^ other;
            }
            keys.cbc(way, &mut iv, &before, &mut tail_out[..BLOCK]);
        }
    }
    metaslot_awslc_wrapper::cleanse(&mut last);
    metaslot_awslc_wrapper::cleanse(&mut before);
}

#[derive(Debug)]
struct Running {
    key: Arc<Key>,
    direction: Direction,
    iv: [u8; BLOCK],
    held: Buffer,
}

impl CipherStream for Running {
    fn update_length(&self, _: usize) -> usize {
        0
    }

    fn update(&mut self, input: &[u8], _: &mut [u8]) -> Result<()> {
        self.held.push(input)
    }

    fn finish_length(&self) -> usize {
        self.held.bytes().len()
    }

    fn finish(&mut self, out: &mut [u8]) -> Result<usize> {
        let input = self.held.bytes();
        if input.len() < BLOCK {
            return Err(self.direction.length_error());
        }
        steal(keys(&self.key)?, self.direction, self.iv, input, &mut out[..input.len()]);
        Ok(input.len())
    }
}

// SPDX-License-Identifier: Apache-2.0
//! AES-XTS (PKCS#11 3.2 §6.15): keys of 32 or 64 bytes, data units of 16 bytes and more.

use crate::block::way;
use crate::failure::device_error;
use metaslot_awslc_wrapper::aes::{self, BLOCK, Xts};
use metaslot_awslc_wrapper::constant_time;
use metaslot_ck::*;
use metaslot_spi::provider::{Algorithm, Cipher, CipherStream, Direction};
use metaslot_spi::wrapping::{self, ByCipher};
use metaslot_spi::{Key, Params};
use std::sync::Arc;

pub(super) const ROW: Algorithm = wrapping::row(CKM_AES_XTS, (32, 64), &ByCipher(AesXts));

/// The longest data unit, in bytes (SP 800-38E §4).
const LONGEST: usize = BLOCK << 20;

#[derive(Debug)]
struct AesXts;

fn tweak(params: &Params) -> Result<[u8; BLOCK]> {
    let Params::Iv(iv) = params else { return Err(Error::MECHANISM_PARAM_INVALID) };
    iv.as_slice().try_into().map_err(|_| Error::MECHANISM_PARAM_INVALID)
}

/// The key, if XTS can use it: IEEE 1619 and SP 800-38E want two different halves.
fn value(key: &Key) -> Result<&[u8]> {
    let value = key.secret(CKA_VALUE)?;
    let (first, second) = value.split_at(value.len() / 2);
    if !matches!(value.len(), 32 | 64) || constant_time::equal(first, second) {
        return Err(Error::KEY_SIZE_RANGE);
    }
    Ok(value)
}

impl Cipher for AesXts {
    fn check(&self, _: Direction, key: &Key, params: &Params) -> Result<()> {
        tweak(params)?;
        value(key).map(|_| ())
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
        let length = self.length(direction, key, params, input.len())?;
        let (value, tweak, way) = (value(key)?, tweak(params)?, way(direction));
        let out = &mut out[..length];
        match value.len() {
            64 => aes::xts_256(value, way, &tweak, input, out),
            _ => Xts::new(value, way, &tweak).and_then(|mut unit| unit.finish(input, out)),
        }
        .map_err(|_| direction.length_error())?;
        Ok(length)
    }

    fn start(
        &self,
        direction: Direction,
        key: &Arc<Key>,
        params: &Params,
    ) -> Result<Box<dyn CipherStream>> {
        let unit = Xts::new(value(key)?, way(direction), &tweak(params)?).map_err(device_error)?;
        Ok(Box::new(Running { unit, direction, held: [0; HELD], length: 0, room: LONGEST }))
    }
}

/// The end of a unit takes one block and a part: so much is held back, in bytes.
const HELD: usize = 2 * BLOCK - 1;

#[derive(Debug)]
struct Running {
    unit: Xts,
    direction: Direction,
    held: [u8; HELD],
    length: usize,
    /// How much longer the data unit may become, in bytes.
    room: usize,
}

impl Drop for Running {
    fn drop(&mut self) {
        metaslot_awslc_wrapper::cleanse(&mut self.held);
    }
}

impl CipherStream for Running {
    fn update_length(&self, input: usize) -> usize {
        (self.length + input).saturating_sub(BLOCK) / BLOCK * BLOCK
    }

    fn update(&mut self, input: &[u8], out: &mut [u8]) -> Result<()> {
        let room = self.room.checked_sub(input.len());
        self.room = room.ok_or_else(|| self.direction.length_error())?;
        let ready = self.update_length(input.len());
        if ready == 0 {
            self.hold(input);
            return Ok(());
        }
        // The blocks that begin in what was held back, then those of the input alone.
        let mixed = self.length.next_multiple_of(BLOCK).min(ready);
        let mut first = [0; 2 * BLOCK];
        let taken = mixed.saturating_sub(self.length);
        let kept = mixed.min(self.length);
        first[..kept].copy_from_slice(&self.held[..kept]);
        first[kept..kept + taken].copy_from_slice(&input[..taken]);
        let (mixed_out, out) = out.split_at_mut(mixed);
        let done = self.unit.update(&first[..mixed], mixed_out);
        metaslot_awslc_wrapper::cleanse(&mut first);
        done.map_err(device_error)?;
        self.held.copy_within(kept..self.length, 0);
        self.length -= kept;
        let (whole, rest) = input[taken..].split_at(ready - mixed);
        self.unit.update(whole, &mut out[..whole.len()]).map_err(device_error)?;
        self.hold(rest);
        Ok(())
    }

    fn finish_length(&self) -> usize {
        self.length
    }

    fn finish(&mut self, out: &mut [u8]) -> Result<usize> {
        let length = self.length;
        if length < BLOCK {
            // A data unit has one block at least (SP 800-38E).
            return Err(self.direction.length_error());
        }
        self.unit
            .finish(&self.held[..length], &mut out[..length])
            .map_err(|_| self.direction.length_error())?;
        Ok(length)
    }
}

impl Running {
    fn hold(&mut self, rest: &[u8]) {
        self.held[self.length..self.length + rest.len()].copy_from_slice(rest);
        self.length += rest.len();
    }
}

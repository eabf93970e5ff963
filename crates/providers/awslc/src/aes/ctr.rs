// SPDX-License-Identifier: Apache-2.0
//! AES-CTR (PKCS#11 3.2 §6.11): a counter of 1 to 128 bits, which may not come round.

use super::keys::{KEYS, keys};
use metaslot_awslc_wrapper::aes::{BLOCK, Counter};
use metaslot_ck::*;
use metaslot_spi::provider::{Algorithm, Cipher, CipherStream, Direction};
use metaslot_spi::wrapping::{self, ByCipher};
use metaslot_spi::{Key, Params};
use std::sync::Arc;

pub(super) const ROW: Algorithm = wrapping::row(CKM_AES_CTR, KEYS, &ByCipher(Ctr));

#[derive(Debug)]
struct Ctr;

/// The first counter block, and how many bytes there are until the counter has come round.
fn begin(params: &Params) -> Result<([u8; BLOCK], u128)> {
    let Params::Ctr { bits: bits @ 1..=128, block } = params else {
        return Err(Error::MECHANISM_PARAM_INVALID);
    };
    let first = u128::from_be_bytes(*block);
    let mask = u128::MAX >> (128 - bits);
    let blocks = (mask - (first & mask)).saturating_add(1);
    Ok((*block, blocks.saturating_mul(BLOCK as u128)))
}

impl Cipher for Ctr {
    fn check(&self, _: Direction, key: &Key, params: &Params) -> Result<()> {
        begin(params)?;
        keys(key).map(|_| ())
    }

    fn length(&self, _: Direction, _: &Key, _: &Params, input: usize) -> Result<usize> {
        Ok(input)
    }

    fn run(
        &self,
        _: Direction,
        key: &Key,
        params: &Params,
        input: &[u8],
        out: &mut [u8],
    ) -> Result<usize> {
        let (block, room) = begin(params)?;
        if input.len() as u128 > room {
            return Err(Error::DATA_LEN_RANGE);
        }
        keys(key)?.ctr(&mut Counter::new(block), input, &mut out[..input.len()]);
        Ok(input.len())
    }

    fn start(
        &self,
        _: Direction,
        key: &Arc<Key>,
        params: &Params,
    ) -> Result<Box<dyn CipherStream>> {
        let (block, room) = begin(params)?;
        Ok(Box::new(Running { key: Arc::clone(key), counter: Counter::new(block), room }))
    }
}

#[derive(Debug)]
struct Running {
    key: Arc<Key>,
    counter: Counter,
    /// How many bytes there are until the counter has come round.
    room: u128,
}

impl CipherStream for Running {
    fn update_length(&self, input: usize) -> usize {
        input
    }

    fn update(&mut self, input: &[u8], out: &mut [u8]) -> Result<()> {
        let left = self.room.checked_sub(input.len() as u128);
        self.room = left.ok_or(Error::DATA_LEN_RANGE)?;
        keys(&self.key)?.ctr(&mut self.counter, input, out);
        Ok(())
    }

    fn finish_length(&self) -> usize {
        0
    }

    fn finish(&mut self, _: &mut [u8]) -> Result<usize> {
        Ok(0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn room(bits: u64, block: u128) -> Result<u128> {
        begin(&Params::Ctr { bits, block: block.to_be_bytes() }).map(|(_, room)| room)
    }

    #[test]
    fn the_counter_may_use_every_value_once() {
        assert_eq!(room(1, 0), Ok(32));
        assert_eq!(room(1, 1), Ok(16));
        assert_eq!(room(8, 0xff00), Ok(256 * 16));
        assert_eq!(room(32, 0xffff_ffff), Ok(16));
        assert_eq!(room(128, u128::MAX), Ok(16));
        assert_eq!(room(128, 0), Ok(u128::MAX), "more than there can be");
        assert_eq!(room(0, 0), Err(Error::MECHANISM_PARAM_INVALID));
        assert_eq!(room(129, 0), Err(Error::MECHANISM_PARAM_INVALID));
    }
}

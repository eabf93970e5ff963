// SPDX-License-Identifier: Apache-2.0
//! Modes that give back as much as they get: ECB, CBC, CTR, CFB. The counter of CTR has 1 to 128 bits and may not come round.

use super::keys::{KEYS, Of, encrypts, iv, with};
use crate::failure::device_error;
use metaslot_ck::*;
use metaslot_openssl_wrapper::Mode;
use metaslot_openssl_wrapper::cipher::{self, BLOCK};
use metaslot_spi::provider::{Algorithm, Cipher, CipherStream, Direction};
use metaslot_spi::wrapping::{self, ByCipher};
use metaslot_spi::{Key, Params};
use std::marker::PhantomData;
use std::sync::Arc;

pub(super) const ECB: Algorithm =
    wrapping::row(CKM_AES_ECB, KEYS, &ByCipher(Streaming::<Ecb>::NEW));
pub(super) const CBC: Algorithm =
    wrapping::row(CKM_AES_CBC, KEYS, &ByCipher(Streaming::<Cbc>::NEW));
pub(super) const CTR: Algorithm =
    wrapping::row(CKM_AES_CTR, KEYS, &ByCipher(Streaming::<Ctr>::NEW));
pub(super) const CFB: Algorithm =
    wrapping::row(CKM_AES_CFB128, KEYS, &ByCipher(Streaming::<Cfb>::NEW));

/// What such a mode begins with.
trait Turn: Of {
    /// The IV, and how many bytes may follow.
    fn begin(params: &Params) -> Result<(&[u8], u128)>;
}

#[derive(Debug)]
struct Ecb;
#[derive(Debug)]
struct Cbc;
#[derive(Debug)]
struct Ctr;
#[derive(Debug)]
struct Cfb;

impl Of for Ecb {
    const MODE: Mode = Mode::Ecb;
}

impl Of for Cbc {
    const MODE: Mode = Mode::Cbc;
}

impl Of for Ctr {
    const MODE: Mode = Mode::Ctr;
}

impl Of for Cfb {
    const MODE: Mode = Mode::Cfb;
}

impl Turn for Ecb {
    fn begin(params: &Params) -> Result<(&[u8], u128)> {
        match params {
            Params::None => Ok((&[], u128::MAX)),
            _ => Err(Error::MECHANISM_PARAM_INVALID),
        }
    }
}

impl Turn for Cbc {
    fn begin(params: &Params) -> Result<(&[u8], u128)> {
        Ok((iv(params)?, u128::MAX))
    }
}

impl Turn for Cfb {
    fn begin(params: &Params) -> Result<(&[u8], u128)> {
        Ok((iv(params)?, u128::MAX))
    }
}

impl Turn for Ctr {
    fn begin(params: &Params) -> Result<(&[u8], u128)> {
        let Params::Ctr { bits: bits @ 1..=128, block } = params else {
            return Err(Error::MECHANISM_PARAM_INVALID);
        };
        let mask = u128::MAX >> (128 - bits);
        let blocks = (mask - (u128::from_be_bytes(*block) & mask)).saturating_add(1);
        Ok((block, blocks.saturating_mul(BLOCK as u128)))
    }
}

/// The mode as an operation.
#[derive(Debug)]
struct Streaming<M>(PhantomData<M>);

impl<M: Turn> Streaming<M> {
    const NEW: Self = Self(PhantomData);

    fn running(direction: Direction, key: &Key, params: &Params) -> Result<Running> {
        let (iv, room) = M::begin(params)?;
        let start = |key: &cipher::Key| key.start(encrypts(direction), iv).map_err(device_error);
        Ok(Running { stream: with::<M, _>(key, start)?, direction, room })
    }
}

impl<M: Turn> Cipher for Streaming<M> {
    fn check(&self, _: Direction, key: &Key, params: &Params) -> Result<()> {
        M::begin(params)?;
        with::<M, _>(key, |_| Ok(()))
    }

    fn length(
        &self,
        direction: Direction,
        _: &Key,
        params: &Params,
        input: usize,
    ) -> Result<usize> {
        let block = self.whole_blocks(params).unwrap_or(1);
        if input.is_multiple_of(block) { Ok(input) } else { Err(direction.length_error()) }
    }

    fn whole_blocks(&self, _: &Params) -> Option<usize> {
        matches!(M::MODE, Mode::Ecb | Mode::Cbc).then_some(BLOCK)
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
        Self::running(direction, key, params)?.update(input, &mut out[..length])?;
        Ok(length)
    }

    fn start(
        &self,
        direction: Direction,
        key: &Arc<Key>,
        params: &Params,
    ) -> Result<Box<dyn CipherStream>> {
        Ok(Box::new(Self::running(direction, key, params)?))
    }
}

#[derive(Debug)]
struct Running {
    stream: cipher::Stream,
    direction: Direction,
    /// How many bytes there are until a counter has come round.
    room: u128,
}

impl CipherStream for Running {
    fn update_length(&self, input: usize) -> usize {
        self.stream.ready(input)
    }

    fn update(&mut self, input: &[u8], out: &mut [u8]) -> Result<()> {
        let left = self.room.checked_sub(input.len() as u128);
        self.room = left.ok_or(Error::DATA_LEN_RANGE)?;
        self.stream.update(input, out).map_err(device_error)
    }

    fn finish_length(&self) -> usize {
        0
    }

    fn finish(&mut self, _: &mut [u8]) -> Result<usize> {
        if self.stream.pending() == 0 { Ok(0) } else { Err(self.direction.length_error()) }
    }
}

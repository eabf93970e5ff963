// SPDX-License-Identifier: Apache-2.0
//! Blocks chained, with and without PKCS#7 padding (PKCS#11 3.2 §6.10.5 and §6.10.6 for AES).

use super::pending::Pending;
use super::{BlockCipher, iv, way};
use metaslot_awslc_wrapper::aes::Way;
use metaslot_awslc_wrapper::constant_time;
use metaslot_ck::*;
use metaslot_spi::provider::{Cipher, CipherStream, Direction};
use metaslot_spi::{Key, Params};
use std::marker::PhantomData;
use std::sync::Arc;

/// The mode of one cipher.
#[derive(Debug)]
pub(crate) struct Cbc<C, const N: usize>(PhantomData<C>);

impl<C: BlockCipher<N>, const N: usize> Cbc<C, N> {
    /// It has no state.
    pub(crate) const NEW: Self = Self(PhantomData);
}

/// The mode of one cipher, with padding.
#[derive(Debug)]
pub(crate) struct CbcPad<C, const N: usize>(PhantomData<C>);

impl<C: BlockCipher<N>, const N: usize> CbcPad<C, N> {
    /// It has no state.
    pub(crate) const NEW: Self = Self(PhantomData);
}

impl<C: BlockCipher<N>, const N: usize> Cipher for Cbc<C, N> {
    fn check(&self, _: Direction, key: &Key, params: &Params) -> Result<()> {
        iv::<N>(params)?;
        C::keys(key).map(|_| ())
    }

    fn length(&self, direction: Direction, _: &Key, _: &Params, input: usize) -> Result<usize> {
        if input.is_multiple_of(N) { Ok(input) } else { Err(direction.length_error()) }
    }

    fn whole_blocks(&self, _: &Params) -> Option<usize> {
        Some(N)
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
        C::cbc(C::keys(key)?, way(direction), &mut iv(params)?, input, &mut out[..length]);
        Ok(length)
    }

    fn start(
        &self,
        direction: Direction,
        key: &Arc<Key>,
        params: &Params,
    ) -> Result<Box<dyn CipherStream>> {
        Ok(Box::new(Running::<C, N>::new(direction, key, params, false)?))
    }
}

impl<C: BlockCipher<N>, const N: usize> Cipher for CbcPad<C, N> {
    fn check(&self, direction: Direction, key: &Key, params: &Params) -> Result<()> {
        Cbc::<C, N>::NEW.check(direction, key, params)
    }

    fn length(&self, direction: Direction, _: &Key, _: &Params, input: usize) -> Result<usize> {
        match direction {
            Direction::Forward => input.checked_add(N - input % N).ok_or(Error::DATA_LEN_RANGE),
            Direction::Backward if input > 0 && input.is_multiple_of(N) => Ok(input),
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
        let (keys, mut iv) = (C::keys(key)?, iv(params)?);
        let (whole, rest) = input.split_at(input.len() / N * N);
        C::cbc(keys, way(direction), &mut iv, whole, &mut out[..whole.len()]);
        match direction {
            Direction::Forward => {
                let mut last = padded::<N>(rest);
                C::cbc(keys, Way::Encrypt, &mut iv, &last, &mut out[whole.len()..length]);
                metaslot_awslc_wrapper::cleanse(&mut last);
                Ok(length)
            }
            Direction::Backward => unpad::<N>(&mut out[..length]),
        }
    }

    fn start(
        &self,
        direction: Direction,
        key: &Arc<Key>,
        params: &Params,
    ) -> Result<Box<dyn CipherStream>> {
        Ok(Box::new(Running::<C, N>::new(direction, key, params, true)?))
    }
}

/// The last block: what is left, then the padding.
fn padded<const N: usize>(rest: &[u8]) -> [u8; N] {
    // Less than a block, so this fits.
    let padding = u8::try_from(N - rest.len()).unwrap_or(0);
    let mut block = [padding; N];
    block[..rest.len()].copy_from_slice(rest);
    block
}

fn unpad<const N: usize>(plain: &mut [u8]) -> Result<usize> {
    constant_time::unpad(plain, N).map_err(|_| Error::ENCRYPTED_DATA_INVALID)
}

#[derive(Debug)]
struct Running<C, const N: usize> {
    cipher: PhantomData<C>,
    key: Arc<Key>,
    direction: Direction,
    pad: bool,
    iv: [u8; N],
    pending: Pending<N>,
}

impl<C: BlockCipher<N>, const N: usize> Running<C, N> {
    fn new(direction: Direction, key: &Arc<Key>, params: &Params, pad: bool) -> Result<Self> {
        let hold_last = pad && direction == Direction::Backward;
        let (key, iv) = (Arc::clone(key), iv(params)?);
        let pending = Pending::new(hold_last);
        Ok(Self { cipher: PhantomData, key, direction, pad, iv, pending })
    }
}

impl<C: BlockCipher<N>, const N: usize> CipherStream for Running<C, N> {
    fn update_length(&self, input: usize) -> usize {
        self.pending.ready(input)
    }

    fn update(&mut self, input: &[u8], out: &mut [u8]) -> Result<()> {
        let keys = C::keys(&self.key)?;
        let iv = &mut self.iv;
        let way = way(self.direction);
        self.pending.update(input, out, |input, out| C::cbc(keys, way, iv, input, out));
        Ok(())
    }

    fn finish_length(&self) -> usize {
        if self.pad { N } else { 0 }
    }

    fn finish(&mut self, out: &mut [u8]) -> Result<usize> {
        let keys = C::keys(&self.key)?;
        let rest = self.pending.bytes();
        match self.direction {
            direction if !self.pad => {
                if rest.is_empty() {
                    Ok(0)
                } else {
                    Err(direction.length_error())
                }
            }
            Direction::Forward => {
                let mut last = padded::<N>(rest);
                C::cbc(keys, Way::Encrypt, &mut self.iv, &last, &mut out[..N]);
                metaslot_awslc_wrapper::cleanse(&mut last);
                Ok(N)
            }
            Direction::Backward => {
                if rest.len() != N {
                    return Err(Error::ENCRYPTED_DATA_LEN_RANGE);
                }
                C::cbc(keys, Way::Decrypt, &mut self.iv, rest, &mut out[..N]);
                unpad::<N>(&mut out[..N])
            }
        }
    }
}

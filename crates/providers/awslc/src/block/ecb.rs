// SPDX-License-Identifier: Apache-2.0
//! Each block on its own (PKCS#11 3.2 §6.10.4 for AES).

use super::pending::Pending;
use super::{BlockCipher, way};
use metaslot_ck::*;
use metaslot_spi::provider::{Cipher, CipherStream, Direction};
use metaslot_spi::{Key, Params};
use std::marker::PhantomData;
use std::sync::Arc;

/// The mode of one cipher.
#[derive(Debug)]
pub(crate) struct Ecb<C, const N: usize>(PhantomData<C>);

impl<C: BlockCipher<N>, const N: usize> Ecb<C, N> {
    /// It has no state.
    pub(crate) const NEW: Self = Self(PhantomData);
}

impl<C: BlockCipher<N>, const N: usize> Cipher for Ecb<C, N> {
    fn check(&self, _: Direction, key: &Key, params: &Params) -> Result<()> {
        let Params::None = params else { return Err(Error::MECHANISM_PARAM_INVALID) };
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
        C::ecb(key, way(direction), input, &mut out[..length])?;
        Ok(length)
    }

    fn start(
        &self,
        direction: Direction,
        key: &Arc<Key>,
        _: &Params,
    ) -> Result<Box<dyn CipherStream>> {
        let (key, pending) = (Arc::clone(key), Pending::new(false));
        Ok(Box::new(Running::<C, N> { cipher: PhantomData, key, direction, pending }))
    }
}

#[derive(Debug)]
struct Running<C, const N: usize> {
    cipher: PhantomData<C>,
    key: Arc<Key>,
    direction: Direction,
    pending: Pending<N>,
}

impl<C: BlockCipher<N>, const N: usize> CipherStream for Running<C, N> {
    fn update_length(&self, input: usize) -> usize {
        self.pending.ready(input)
    }

    fn update(&mut self, input: &[u8], out: &mut [u8]) -> Result<()> {
        let mut done = Ok(());
        self.pending.update(input, out, |input, out| {
            if done.is_ok() {
                done = C::ecb(&self.key, way(self.direction), input, out);
            }
        });
        done
    }

    fn finish_length(&self) -> usize {
        0
    }

    fn finish(&mut self, _: &mut [u8]) -> Result<usize> {
        if self.pending.bytes().is_empty() { Ok(0) } else { Err(self.direction.length_error()) }
    }
}

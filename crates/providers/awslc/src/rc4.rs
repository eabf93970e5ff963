// SPDX-License-Identifier: Apache-2.0
//! RC4 (PKCS#11 Historical Mechanisms 3.0 §2.4): for old data.

use metaslot_awslc_wrapper::rc4::{LONGEST_KEY, Rc4};
use metaslot_ck::*;
use metaslot_spi::provider::{Algorithm, Cipher, CipherStream, Direction};
use metaslot_spi::{Key, Params};
use std::sync::Arc;

/// One row; its key sizes are in bits.
pub(crate) const ROWS: [Algorithm; 1] = [Algorithm {
    mechanism: CKM_RC4,
    key_sizes: SIZES,
    encrypt: Some(&Stream),
    decrypt: Some(&Stream),
    ..Algorithm::NONE
}];

/// Sizes of keys, in bits.
pub(crate) const SIZES: (u64, u64) = (8, 8 * LONGEST_KEY as u64);

#[derive(Debug)]
struct Stream;

/// The key stream from its beginning.
fn state(key: &Key) -> Result<Rc4> {
    Rc4::new(key.secret(CKA_VALUE)?).map_err(|_| Error::KEY_SIZE_RANGE)
}

impl Cipher for Stream {
    fn check(&self, _: Direction, key: &Key, params: &Params) -> Result<()> {
        let Params::None = params else { return Err(Error::MECHANISM_PARAM_INVALID) };
        let fits = (1..=LONGEST_KEY).contains(&key.secret(CKA_VALUE)?.len());
        if fits { Ok(()) } else { Err(Error::KEY_SIZE_RANGE) }
    }

    fn length(&self, _: Direction, _: &Key, _: &Params, input: usize) -> Result<usize> {
        Ok(input)
    }

    fn run(
        &self,
        _: Direction,
        key: &Key,
        _: &Params,
        input: &[u8],
        out: &mut [u8],
    ) -> Result<usize> {
        state(key)?.apply(input, &mut out[..input.len()]);
        Ok(input.len())
    }

    fn start(&self, _: Direction, key: &Arc<Key>, _: &Params) -> Result<Box<dyn CipherStream>> {
        Ok(Box::new(Running(state(key)?)))
    }
}

/// In the middle of the key stream.
#[derive(Debug)]
struct Running(Rc4);

impl CipherStream for Running {
    fn update_length(&self, input: usize) -> usize {
        input
    }

    fn update(&mut self, input: &[u8], out: &mut [u8]) -> Result<()> {
        self.0.apply(input, out);
        Ok(())
    }

    fn finish_length(&self) -> usize {
        0
    }

    fn finish(&mut self, _: &mut [u8]) -> Result<usize> {
        Ok(0)
    }
}

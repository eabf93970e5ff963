// SPDX-License-Identifier: Apache-2.0
//! Modes of any block cipher, of blocks of `N` bytes: ECB, CBC, CBC with padding.

pub(crate) mod cbc;
pub(crate) mod ecb;
mod pending;

use metaslot_awslc_wrapper::aes::Way;
use metaslot_ck::{Error, Result};
use metaslot_spi::provider::Direction;
use metaslot_spi::{Key, Params};
use std::any::Any;
use std::fmt::Debug;

/// A block cipher.
pub(crate) trait BlockCipher<const N: usize>: Debug + Send + Sync + 'static {
    /// The key schedules.
    type Keys: Any + Send + Sync;

    /// The key schedules, made at first use.
    fn keys(key: &Key) -> Result<&Self::Keys>;

    /// Whole blocks, each on its own.
    fn ecb(key: &Key, way: Way, input: &[u8], out: &mut [u8]) -> Result<()>;

    /// CBC over whole blocks; `iv` is left as the next call needs it.
    fn cbc(keys: &Self::Keys, way: Way, iv: &mut [u8; N], input: &[u8], out: &mut [u8]);
}

/// The parameter of a mode that wants an IV of a block.
pub(crate) fn iv<const N: usize>(params: &Params) -> Result<[u8; N]> {
    let Params::Iv(iv) = params else { return Err(Error::MECHANISM_PARAM_INVALID) };
    iv.as_slice().try_into().map_err(|_| Error::MECHANISM_PARAM_INVALID)
}

pub(crate) const fn way(direction: Direction) -> Way {
    match direction {
        Direction::Forward => Way::Encrypt,
        Direction::Backward => Way::Decrypt,
    }
}

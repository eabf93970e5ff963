// SPDX-License-Identifier: Apache-2.0
//! Wrapping a key is encrypting its bytes: the rows of `C_WrapKey` that say just that.

use crate::provider::{Algorithm, Cipher, Direction, Place, Wrap};
use crate::{Key, Params};
use metaslot_ck::{CK_MECHANISM_TYPE, Error, Result};
use metaslot_memory::Secret;

/// Wraps with a cipher.
#[derive(Debug)]
pub struct ByCipher<C>(pub C);

/// The row of a cipher that wraps, too.
#[must_use]
pub const fn row<C: Cipher>(
    mechanism: CK_MECHANISM_TYPE,
    key_sizes: (u64, u64),
    with: &'static ByCipher<C>,
) -> Algorithm {
    let (cipher, wrap): (&dyn Cipher, &dyn Wrap) = (&with.0, with);
    Algorithm {
        mechanism,
        key_sizes,
        encrypt: Some(cipher),
        decrypt: Some(cipher),
        wrap: Some(wrap),
        unwrap: Some(wrap),
        ..Algorithm::NONE
    }
}

impl<C: Cipher> Wrap for ByCipher<C> {
    fn check(&self, direction: Direction, key: &Key, params: &Params) -> Result<()> {
        self.0.check(direction, key, params)
    }

    fn length(&self, key: &Key, params: &Params, plain: usize) -> Result<usize> {
        let length = self.0.length(Direction::Forward, key, params, self.padded(params, plain));
        length.map_err(|_| Error::KEY_SIZE_RANGE)
    }

    fn wrap(&self, key: &Key, params: &Params, plain: &[u8], out: &mut [u8]) -> Result<usize> {
        let padded = self.padded(params, plain.len());
        let mut filled = Secret::try_zeroed(padded).ok_or(Error::DEVICE_MEMORY)?;
        filled.expose_mut()[..plain.len()].copy_from_slice(plain);
        let wrapped = self.0.run(Direction::Forward, key, params, filled.expose(), out);
        wrapped.map_err(|error| match error {
            Error::DATA_LEN_RANGE => Error::KEY_SIZE_RANGE,
            other => other,
        })
    }

    fn unwrap(&self, key: &Key, params: &Params, wrapped: &[u8]) -> Result<Secret> {
        let length = self.0.length(Direction::Backward, key, params, wrapped.len());
        let length = length.map_err(|_| Error::WRAPPED_KEY_LEN_RANGE)?;
        let mut plain = Secret::try_zeroed(length).ok_or(Error::DEVICE_MEMORY)?;
        let opened = self.0.run(Direction::Backward, key, params, wrapped, plain.expose_mut());
        match opened {
            Ok(length) => Ok(plain.truncated(length)),
            Err(Error::ENCRYPTED_DATA_LEN_RANGE | Error::DATA_LEN_RANGE) => {
                Err(Error::WRAPPED_KEY_LEN_RANGE)
            }
            Err(Error::ENCRYPTED_DATA_INVALID) => Err(Error::WRAPPED_KEY_INVALID),
            Err(other) => Err(other),
        }
    }

    fn place(&self, params: &Params) -> Place {
        match (self.0.whole_blocks(params), self.0.fills_to()) {
            (Some(_), _) => Place::First,
            (None, 1) => Place::Told,
            (None, unit) => Place::Filled(unit),
        }
    }
}

impl<C: Cipher> ByCipher<C> {
    /// The length with the zeros that fill the last block, where the cipher wants it full (PKCS#11 3.2 §6.10.4, §6.16.3).
    fn padded(&self, params: &Params, plain: usize) -> usize {
        plain.next_multiple_of(self.0.whole_blocks(params).unwrap_or_else(|| self.0.fills_to()))
    }
}

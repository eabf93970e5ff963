// SPDX-License-Identifier: Apache-2.0
//! AES key wrap (RFC 3394) and key wrap with padding (RFC 5649), PKCS#11 3.2 §6.19: to wrap keys, and
//! as single-part encryption.

use super::keys::{KEYS, keys};
use crate::block::length_error;
use metaslot_awslc_wrapper::aes;
use metaslot_ck::*;
use metaslot_spi::provider::{Algorithm, Cipher, CipherStream, Direction};
use metaslot_spi::wrapping::ByCipher;
use metaslot_spi::{Key, Params};
use std::sync::Arc;

pub(super) const ROW: Algorithm = Algorithm {
    mechanism: CKM_AES_KEY_WRAP,
    key_sizes: KEYS,
    encrypt: Some(&KeyWrap),
    decrypt: Some(&KeyWrap),
    wrap: Some(&ByCipher(KeyWrap)),
    unwrap: Some(&ByCipher(KeyWrap)),
    ..Algorithm::NONE
};

pub(super) const PADDED_ROW: Algorithm = Algorithm {
    mechanism: CKM_AES_KEY_WRAP_KWP,
    key_sizes: KEYS,
    encrypt: Some(&Padded),
    decrypt: Some(&Padded),
    wrap: Some(&ByCipher(Padded)),
    unwrap: Some(&ByCipher(Padded)),
    ..Algorithm::NONE
};

/// What wrapping adds, in bytes.
const SEMIBLOCK: usize = 8;

#[derive(Debug)]
struct KeyWrap;

#[derive(Debug)]
struct Padded;

/// The initial value, where the caller gave its own.
fn iv<const N: usize>(params: &Params) -> Result<Option<&[u8; N]>> {
    match params {
        Params::None => Ok(None),
        Params::Iv(iv) if iv.is_empty() => Ok(None),
        Params::Iv(iv) => match iv.as_slice().try_into() {
            Ok(iv) => Ok(Some(iv)),
            Err(_) => Err(Error::MECHANISM_PARAM_INVALID),
        },
        _ => Err(Error::MECHANISM_PARAM_INVALID),
    }
}

impl Cipher for KeyWrap {
    fn check(&self, _: Direction, key: &Key, params: &Params) -> Result<()> {
        iv::<8>(params)?;
        keys(key).map(|_| ())
    }

    fn length(&self, direction: Direction, _: &Key, _: &Params, input: usize) -> Result<usize> {
        let plain = match direction {
            Direction::Forward => Some(input),
            Direction::Backward => input.checked_sub(SEMIBLOCK),
        };
        match (plain, direction) {
            (Some(plain), _) if plain < 16 || !plain.is_multiple_of(SEMIBLOCK) => {
                Err(length_error(direction))
            }
            (Some(plain), Direction::Forward) => {
                plain.checked_add(SEMIBLOCK).ok_or(Error::DATA_LEN_RANGE)
            }
            (Some(plain), Direction::Backward) => Ok(plain),
            (None, _) => Err(length_error(direction)),
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
        let (keys, iv, out) = (keys(key)?, iv(params)?, &mut out[..length]);
        match direction {
            Direction::Forward => {
                keys.wrap(iv, input, out).map_err(|_| Error::DATA_LEN_RANGE)?;
            }
            Direction::Backward => {
                keys.unwrap(iv, input, out).map_err(|_| Error::ENCRYPTED_DATA_INVALID)?;
            }
        }
        Ok(length)
    }

    fn start(&self, _: Direction, _: &Arc<Key>, _: &Params) -> Result<Box<dyn CipherStream>> {
        Err(Error::FUNCTION_NOT_SUPPORTED)
    }
}

impl Cipher for Padded {
    fn check(&self, _: Direction, key: &Key, params: &Params) -> Result<()> {
        iv::<4>(params)?;
        keys(key).map(|_| ())
    }

    fn length(&self, direction: Direction, _: &Key, _: &Params, input: usize) -> Result<usize> {
        match direction {
            Direction::Forward if input == 0 || u32::try_from(input).is_err() => {
                Err(Error::DATA_LEN_RANGE)
            }
            Direction::Forward => Ok(aes::Keys::padded_length(input)),
            Direction::Backward if input < 16 || !input.is_multiple_of(SEMIBLOCK) => {
                Err(Error::ENCRYPTED_DATA_LEN_RANGE)
            }
            Direction::Backward => Ok(input - SEMIBLOCK),
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
        let (keys, iv, out) = (keys(key)?, iv(params)?, &mut out[..length]);
        match direction {
            Direction::Forward => {
                keys.wrap_padded(iv, input, out).map_err(|_| Error::DATA_LEN_RANGE)?;
                Ok(length)
            }
            Direction::Backward => {
                keys.unwrap_padded(iv, input, out).map_err(|_| Error::ENCRYPTED_DATA_INVALID)
            }
        }
    }

    fn start(&self, _: Direction, _: &Arc<Key>, _: &Params) -> Result<Box<dyn CipherStream>> {
        Err(Error::FUNCTION_NOT_SUPPORTED)
    }
}

// SPDX-License-Identifier: Apache-2.0
//! AES key wrap (RFC 3394) and key wrap with padding (RFC 5649; or PKCS #7's, before RFC 3394's), PKCS#11 3.2 §6.16: to
//! wrap keys, and as single-part encryption.

use super::keys::{KEYS, keys};
use metaslot_awslc_wrapper::aes;
use metaslot_ck::*;
use metaslot_memory::Secret;
use metaslot_spi::provider::{Algorithm, Cipher, Direction};
use metaslot_spi::wrapping::{self, ByCipher};
use metaslot_spi::{Key, Params};

pub(super) const ROW: Algorithm = wrapping::row(CKM_AES_KEY_WRAP, KEYS, &ByCipher(KeyWrap));
pub(super) const PADDED_ROW: Algorithm =
    wrapping::row(CKM_AES_KEY_WRAP_KWP, KEYS, &ByCipher(Padded));
pub(super) const PKCS7_ROW: Algorithm =
    wrapping::row(CKM_AES_KEY_WRAP_PKCS7, KEYS, &ByCipher(Pkcs7::ONLY));
// It has been two things: RFC 5649 since 2.20's errata in many tokens, PKCS #7 by 2.40 and since. Their integrity
// values tell them apart.
pub(super) const PAD_ROW: Algorithm =
    wrapping::row(CKM_AES_KEY_WRAP_PAD, KEYS, &ByCipher(Pkcs7::EITHER));

/// What wrapping adds, in bytes.
const SEMIBLOCK: usize = 8;

#[derive(Debug)]
struct KeyWrap;

#[derive(Debug)]
struct Padded;

#[derive(Debug)]
struct Pkcs7 {
    /// Whether what [`Padded`] sealed is opened too.
    either: bool,
}

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
                Err(direction.length_error())
            }
            (Some(plain), Direction::Forward) => {
                plain.checked_add(SEMIBLOCK).ok_or(Error::DATA_LEN_RANGE)
            }
            (Some(plain), Direction::Backward) => Ok(plain),
            (None, _) => Err(direction.length_error()),
        }
    }

    fn fills_to(&self) -> usize {
        SEMIBLOCK
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
}

impl Pkcs7 {
    const ONLY: Self = Self { either: false };
    const EITHER: Self = Self { either: true };

    fn open(&self, key: &Key, params: &Params, input: &[u8], out: &mut [u8]) -> Result<usize> {
        let keys = keys(key)?;
        if self.either
            && let Params::None = params
            && let Ok(length) = keys.unwrap_padded(None, input, out)
        {
            return Ok(length);
        }
        keys.unwrap(iv(params)?, input, out).map_err(|_| Error::ENCRYPTED_DATA_INVALID)?;
        // What it holds was authenticated, so that it tells nothing.
        let padding = usize::from(out.last().copied().unwrap_or(0));
        let start = out.len().checked_sub(padding).filter(|_| (1..=SEMIBLOCK).contains(&padding));
        match start.filter(|start| out[*start..].iter().all(|byte| usize::from(*byte) == padding)) {
            Some(length) => Ok(length),
            None => {
                metaslot_awslc_wrapper::cleanse(out);
                Err(Error::ENCRYPTED_DATA_INVALID)
            }
        }
    }
}

impl Cipher for Pkcs7 {
    fn check(&self, direction: Direction, key: &Key, params: &Params) -> Result<()> {
        KeyWrap.check(direction, key, params)
    }

    fn length(
        &self,
        direction: Direction,
        key: &Key,
        params: &Params,
        input: usize,
    ) -> Result<usize> {
        match direction {
            Direction::Forward => {
                let padding = SEMIBLOCK - input % SEMIBLOCK;
                let plain = input.checked_add(padding).ok_or(Error::DATA_LEN_RANGE)?;
                KeyWrap.length(direction, key, params, plain)
            }
            // RFC 5649 has one block more, which is opened here too.
            Direction::Backward if self.either => Padded.length(direction, key, params, input),
            Direction::Backward => KeyWrap.length(direction, key, params, input),
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
        if direction == Direction::Backward {
            return self.open(key, params, input, &mut out[..length]);
        }
        let padding = SEMIBLOCK - input.len() % SEMIBLOCK;
        let plain = Secret::try_zeroed(input.len() + padding);
        let mut plain = plain.ok_or(Error::DEVICE_MEMORY)?;
        let (head, tail) = plain.expose_mut().split_at_mut(input.len());
        head.copy_from_slice(input);
        tail.fill(u8::try_from(padding).unwrap_or(0));
        KeyWrap.run(direction, key, params, plain.expose(), out)
    }
}

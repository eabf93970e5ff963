// SPDX-License-Identifier: Apache-2.0
//! AES key wrap, without and with padding (PKCS#11 3.2 §6.16; RFC 3394, RFC 5649).

use super::keys::{KEYS, Of, encrypts, with};
use metaslot_ck::*;
use metaslot_memory::Secret;
use metaslot_openssl_wrapper::Mode;
use metaslot_openssl_wrapper::cipher::BLOCK;
use metaslot_spi::provider::{Algorithm, Cipher, Direction};
use metaslot_spi::wrapping::{self, ByCipher};
use metaslot_spi::{Key, Params};

pub(super) const ROW: Algorithm = wrapping::row(CKM_AES_KEY_WRAP, KEYS, &ByCipher(KeyWrap));

pub(super) const PADDED_ROW: Algorithm =
    wrapping::row(CKM_AES_KEY_WRAP_KWP, KEYS, &ByCipher(Padded));

/// What wrapping adds, in bytes.
const SEMIBLOCK: usize = 8;

#[derive(Debug)]
struct KeyWrap;

#[derive(Debug)]
struct Padded;

impl Of for KeyWrap {
    const MODE: Mode = Mode::Wrap;
}

impl Of for Padded {
    const MODE: Mode = Mode::WrapPad;
}

/// The initial value; empty where the caller did not give its own.
fn iv<const N: usize>(params: &Params) -> Result<&[u8]> {
    match params {
        Params::None => Ok(&[]),
        Params::Iv(iv) if iv.is_empty() || iv.len() == N => Ok(iv),
        _ => Err(Error::MECHANISM_PARAM_INVALID),
    }
}

fn run<M: Of>(
    key: &Key,
    direction: Direction,
    iv: &[u8],
    input: &[u8],
    out: &mut [u8],
) -> Result<usize> {
    // The library uses more than the result takes.
    let room = input.len().checked_add(BLOCK).ok_or_else(|| direction.length_error())?;
    let mut place = Secret::try_zeroed(room).ok_or(Error::DEVICE_MEMORY)?;
    let error = match direction {
        Direction::Forward => Error::DATA_LEN_RANGE,
        Direction::Backward => Error::ENCRYPTED_DATA_INVALID,
    };
    let length = with::<M, _>(key, |key| {
        key.wrap(encrypts(direction), iv, input, place.expose_mut()).map_err(|_| error)
    })?;
    out[..length].copy_from_slice(&place.expose()[..length]);
    Ok(length)
}

impl Cipher for KeyWrap {
    fn check(&self, _: Direction, key: &Key, params: &Params) -> Result<()> {
        iv::<8>(params)?;
        with::<Self, _>(key, |_| Ok(()))
    }

    fn length(&self, direction: Direction, _: &Key, _: &Params, input: usize) -> Result<usize> {
        let (least, length) = match direction {
            Direction::Forward => (2 * SEMIBLOCK, input.checked_add(SEMIBLOCK)),
            Direction::Backward => (3 * SEMIBLOCK, input.checked_sub(SEMIBLOCK)),
        };
        let fits = input >= least && input.is_multiple_of(SEMIBLOCK);
        length.filter(|_| fits).ok_or_else(|| direction.length_error())
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
        self.length(direction, key, params, input.len())?;
        run::<Self>(key, direction, iv::<8>(params)?, input, out)
    }
}

impl Cipher for Padded {
    fn check(&self, _: Direction, key: &Key, params: &Params) -> Result<()> {
        iv::<4>(params)?;
        with::<Self, _>(key, |_| Ok(()))
    }

    fn length(&self, direction: Direction, _: &Key, _: &Params, input: usize) -> Result<usize> {
        match direction {
            Direction::Forward if input == 0 || u32::try_from(input).is_err() => {
                Err(Error::DATA_LEN_RANGE)
            }
            Direction::Forward => Ok(input.next_multiple_of(SEMIBLOCK) + SEMIBLOCK),
            Direction::Backward if input < 2 * SEMIBLOCK || !input.is_multiple_of(SEMIBLOCK) => {
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
        self.length(direction, key, params, input.len())?;
        run::<Self>(key, direction, iv::<4>(params)?, input, out)
    }
}

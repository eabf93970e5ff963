// SPDX-License-Identifier: Apache-2.0
//! Encryption, and key wrapping with it: PKCS #1 v1.5 (PKCS#11 3.2 §6.1.6) and OAEP (§6.1.8). A wrong padding of v1.5 decrypts to a
//! message that depends on key and ciphertext alone, the same as AWS-LC's provider has.

use super::key::{PKCS1_OVERHEAD, SIZES, prepared, serves};
use super::signature::Raw;
use crate::digest::hash;
use metaslot_ck::*;
use metaslot_memory::Secret;
use metaslot_openssl_wrapper::rsa::Padding;
use metaslot_spi::provider::{Algorithm, Cipher, Direction};
use metaslot_spi::wrapping::{self, ByCipher};
use metaslot_spi::{Bytes, Key, Params, hashes};

pub(super) const ROWS: [Algorithm; 2] = [
    Algorithm {
        mechanism: CKM_RSA_PKCS,
        key_sizes: SIZES,
        encrypt: Some(&RsaCipher::Pkcs1),
        decrypt: Some(&RsaCipher::Pkcs1),
        wrap: Some(&ByCipher(RsaCipher::Pkcs1)),
        unwrap: Some(&ByCipher(RsaCipher::Pkcs1)),
        sign: Some(&Raw),
        verify: Some(&Raw),
        ..Algorithm::NONE
    },
    wrapping::row(CKM_RSA_PKCS_OAEP, SIZES, &ByCipher(RsaCipher::Oaep)),
];

/// One way to make a block of a message.
#[derive(Debug)]
enum RsaCipher {
    Pkcs1,
    Oaep,
}

impl RsaCipher {
    fn padding<'a>(&self, params: &'a Params) -> Result<Padding<'a>> {
        match (self, params) {
            (Self::Pkcs1, _) => Ok(Padding::Pkcs1),
            (Self::Oaep, Params::Oaep { hash: number, mgf, label }) => {
                let mgf = hashes::of_mgf(*mgf).and_then(hash);
                match (hash(*number), mgf) {
                    (Some(hash), Some(mgf)) => Ok(Padding::Oaep(hash, mgf, label)),
                    _ => Err(Error::MECHANISM_PARAM_INVALID),
                }
            }
            _ => Err(Error::MECHANISM_PARAM_INVALID),
        }
    }

    /// The longest message, in bytes.
    fn room(&self, key: &Key, params: &Params) -> Result<usize> {
        let overhead = match self.padding(params)? {
            Padding::Pkcs1 => PKCS1_OVERHEAD,
            Padding::None => 0,
            Padding::Oaep(hash, _, _) => 2 * hash.length() + 2,
        };
        prepared(key)?.size().checked_sub(overhead).ok_or(Error::KEY_SIZE_RANGE)
    }
}

impl Cipher for RsaCipher {
    fn serves(&self, key: &Key) -> bool {
        serves(key)
    }

    fn check(&self, direction: Direction, key: &Key, params: &Params) -> Result<()> {
        key.check_class(direction.cipher_class())?;
        self.room(key, params).map(|_| ())
    }

    fn length(
        &self,
        direction: Direction,
        key: &Key,
        params: &Params,
        input: usize,
    ) -> Result<usize> {
        let (size, room) = (prepared(key)?.size(), self.room(key, params)?);
        match direction {
            Direction::Forward if input <= room => Ok(size),
            Direction::Forward => Err(Error::DATA_LEN_RANGE),
            Direction::Backward if input == size => Ok(room),
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
        let (rsa, padding) = (prepared(key)?, self.padding(params)?);
        if direction == Direction::Forward {
            rsa.encrypt(padding, input, &mut out[..length]).map_err(|_| Error::DATA_INVALID)?;
            return Ok(length);
        }
        // It is read again where its padding is bad. What another thread makes of it meanwhile would tell that.
        let input = &Bytes::from_slice(input);
        let mut message = Secret::try_zeroed(rsa.size()).ok_or(Error::DEVICE_MEMORY)?;
        let length = rsa
            .decrypt(padding, input, message.expose_mut())
            .map_err(|_| Error::ENCRYPTED_DATA_INVALID)?;
        out[..length].copy_from_slice(&message.expose()[..length]);
        Ok(length)
    }
}

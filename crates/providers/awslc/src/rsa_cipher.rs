// SPDX-License-Identifier: Apache-2.0
//! RSA encryption, and key wrapping with it: PKCS #1 v1.5 (PKCS#11 3.2 §6.1.6), OAEP (§6.1.8) and
//! the bare operation (§6.1.12).

use crate::rsa_key::{is_trivial, prepared};
use crate::{digest, hashes, rsa_rejection};
use metaslot_awslc_wrapper::rsa::PKCS1_OVERHEAD;
use metaslot_awslc_wrapper::rsa::{self, Rsa, RsaNumber, RsaPadding};
use metaslot_ck::*;
use metaslot_memory::Secret;
use metaslot_spi::provider::{Cipher, Direction, Place, Wrap};
use metaslot_spi::{Bytes, Key, Params};

/// One way to make a block of a message.
#[derive(Clone, Copy, Debug)]
pub(crate) enum RsaCipher {
    /// `CKM_RSA_PKCS`
    Pkcs1,
    /// `CKM_RSA_PKCS_OAEP`
    Oaep,
    /// `CKM_RSA_X_509`
    X509,
}

impl RsaCipher {
    /// The longest message, in bytes.
    pub(crate) fn room(self, rsa: &Rsa, params: &Params) -> Result<usize> {
        let overhead = match self {
            Self::Pkcs1 => PKCS1_OVERHEAD,
            Self::Oaep => 2 * oaep(params)?.hash.length() + 2,
            Self::X509 => 0,
        };
        rsa.size().checked_sub(overhead).ok_or(Error::KEY_SIZE_RANGE)
    }

    pub(crate) fn seal(
        self,
        key: &Key,
        params: &Params,
        message: &[u8],
        out: &mut [u8],
    ) -> Result<usize> {
        let rsa = prepared(key)?;
        let size = rsa.size();
        let out = &mut out[..size];
        match self {
            Self::Pkcs1 => rsa.encrypt(RsaPadding::Pkcs1, message, out),
            Self::Oaep => rsa.encrypt_oaep(oaep(params)?, message, out),
            Self::X509 => {
                let mut block = Secret::zeroed(size);
                let zeros = size.checked_sub(message.len()).ok_or(Error::DATA_LEN_RANGE)?;
                block.expose_mut()[zeros..].copy_from_slice(message);
                rsa.encrypt(RsaPadding::None, block.expose(), out)
            }
        }
        .map_err(|_| Error::DATA_INVALID)?;
        Ok(size)
    }

    /// Opens `ciphertext`, as long as the modulus, into `out`, as long as [`Self::room`].
    fn open(self, key: &Key, params: &Params, ciphertext: &[u8], out: &mut [u8]) -> Result<usize> {
        let rsa = prepared(key)?;
        // It is read again where its padding is bad. What another thread makes of it meanwhile would tell that.
        let ciphertext = &Bytes::from_slice(ciphertext);
        match self {
            Self::Pkcs1 => open_pkcs1(rsa, key, ciphertext, out),
            Self::Oaep => {
                let mut message = Secret::zeroed(rsa.size());
                let length = rsa
                    .decrypt_oaep(oaep(params)?, ciphertext, message.expose_mut())
                    .map_err(|_| Error::ENCRYPTED_DATA_INVALID)?;
                out[..length].copy_from_slice(&message.expose()[..length]);
                Ok(length)
            }
            Self::X509 => {
                let size = rsa.size();
                open_raw(rsa, ciphertext, &mut out[..size])?;
                Ok(size)
            }
        }
    }
}

fn oaep(params: &Params) -> Result<rsa::Oaep<'_>> {
    let Params::Oaep { hash, mgf, label } = params else {
        return Err(Error::MECHANISM_PARAM_INVALID);
    };
    Ok(rsa::Oaep {
        hash: digest::hash(*hash).ok_or(Error::MECHANISM_PARAM_INVALID)?,
        mgf: hashes::by_mgf(*mgf).ok_or(Error::MECHANISM_PARAM_INVALID)?,
        label,
    })
}

fn open_pkcs1(rsa: &Rsa, key: &Key, ciphertext: &[u8], out: &mut [u8]) -> Result<usize> {
    let mut block = Secret::zeroed(rsa.size());
    if rsa.decrypt_raw(ciphertext, block.expose_mut()).is_err() {
        // What is its own power is no padding, and gets the message of a bad one. Everything else
        // that the library refuses is seen without the key.
        if !is_trivial(rsa, ciphertext)? {
            return Err(not_below(rsa, ciphertext));
        }
        block.expose_mut().fill(0);
    }
    rsa_rejection::unpad(key, ciphertext, &block, out)
}

/// The private operation alone (PKCS#11 3.2 §6.1.12).
fn open_raw(rsa: &Rsa, ciphertext: &[u8], out: &mut [u8]) -> Result<()> {
    if rsa.decrypt_raw(ciphertext, out).is_ok() {
        return Ok(());
    }
    if !is_trivial(rsa, ciphertext)? {
        return Err(not_below(rsa, ciphertext));
    }
    out.copy_from_slice(ciphertext);
    Ok(())
}

/// Why the library refused a number that has a power of its own.
fn not_below(rsa: &Rsa, ciphertext: &[u8]) -> Error {
    let mut modulus = vec![0; rsa.size()];
    match rsa.write_number(RsaNumber::Modulus, &mut modulus) {
        Ok(()) if ciphertext >= modulus.as_slice() => Error::ENCRYPTED_DATA_INVALID,
        _ => Error::DEVICE_ERROR,
    }
}

impl Cipher for RsaCipher {
    fn check(&self, direction: Direction, key: &Key, params: &Params) -> Result<()> {
        key.check_class(direction.cipher_class())?;
        self.room(prepared(key)?, params).map(|_| ())
    }

    fn length(
        &self,
        direction: Direction,
        key: &Key,
        params: &Params,
        input: usize,
    ) -> Result<usize> {
        let rsa = prepared(key)?;
        let room = self.room(rsa, params)?;
        match direction {
            Direction::Forward if input <= room => Ok(rsa.size()),
            Direction::Forward => Err(Error::DATA_LEN_RANGE),
            Direction::Backward if input == rsa.size() => Ok(room),
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
        let length = Cipher::length(self, direction, key, params, input.len())?;
        match direction {
            Direction::Forward => self.seal(key, params, input, out),
            Direction::Backward => self.open(key, params, input, &mut out[..length]),
        }
    }
}

impl Wrap for RsaCipher {
    fn check(&self, direction: Direction, key: &Key, params: &Params) -> Result<()> {
        Cipher::check(self, direction, key, params)
    }

    fn length(&self, key: &Key, params: &Params, plain: usize) -> Result<usize> {
        Cipher::length(self, Direction::Forward, key, params, plain)
            .map_err(|_| Error::KEY_SIZE_RANGE)
    }

    fn wrap(&self, key: &Key, params: &Params, plain: &[u8], out: &mut [u8]) -> Result<usize> {
        Wrap::length(self, key, params, plain.len())?;
        self.seal(key, params, plain, out)
    }

    fn unwrap(&self, key: &Key, params: &Params, wrapped: &[u8]) -> Result<Secret> {
        let length = Cipher::length(self, Direction::Backward, key, params, wrapped.len())
            .map_err(|_| Error::WRAPPED_KEY_LEN_RANGE)?;
        let mut plain = Secret::zeroed(length);
        let length = self.open(key, params, wrapped, plain.expose_mut()).map_err(wrapped_key)?;
        Ok(plain.truncated(length))
    }

    fn place(&self, _: &Params) -> Place {
        if matches!(self, Self::X509) { Place::Last } else { Place::Told }
    }
}

fn wrapped_key(error: Error) -> Error {
    match error {
        Error::ENCRYPTED_DATA_INVALID => Error::WRAPPED_KEY_INVALID,
        other => other,
    }
}

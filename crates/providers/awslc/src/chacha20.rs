// SPDX-License-Identifier: Apache-2.0
//! ChaCha20-Poly1305 (PKCS#11 3.2 §6.61) with nonces of 12 bytes, and of 24 (`XChaCha20`). A multi-part decryption keeps the
//! ciphertext and releases nothing before the tag is verified. `ChaCha20` (§6.58) and Poly1305 (§6.60) alone.

use crate::failure::device_error;
use crate::mac::{self, Mac, running};
use metaslot_awslc_wrapper::Failed;
use metaslot_awslc_wrapper::aead::{self, TAG};
use metaslot_awslc_wrapper::chacha20::{Plain, Poly1305, Stream, extended};
use metaslot_ck::*;
use metaslot_memory::Secret;
use metaslot_spi::buffer::hold;
use metaslot_spi::provider::{Algorithm, Cipher, CipherStream, Direction, SignatureStream};
use metaslot_spi::wrapping::{self, ByCipher};
use metaslot_spi::{Bytes, Key, Params};
use std::sync::Arc;

/// The two together and each alone.
pub(crate) const ROWS: [Algorithm; 3] = [
    wrapping::row(CKM_CHACHA20, (256, 256), &ByCipher(ChaCha20)),
    Algorithm::signature(CKM_POLY1305, SIZES, &POLY1305),
    Algorithm {
        mechanism: CKM_CHACHA20_POLY1305,
        key_sizes: SIZES,
        encrypt: Some(&ChaCha20Poly1305),
        decrypt: Some(&ChaCha20Poly1305),
        ..Algorithm::NONE
    },
];

/// In bytes; those of `CKM_CHACHA20` are in bits.
const SIZES: (u64, u64) = (32, 32);

#[derive(Debug)]
struct ChaCha20Poly1305;

fn fields(params: &Params) -> Result<(&[u8], &[u8])> {
    match params {
        Params::ChaCha20Poly1305 { nonce, aad } if matches!(nonce.len(), 12 | 24) => {
            Ok((nonce, aad))
        }
        _ => Err(Error::MECHANISM_PARAM_INVALID),
    }
}

#[derive(Debug)]
struct Prepared(aead::Key);

fn prepared(key: &Key) -> Result<&aead::Key> {
    let form = key.prepared(|key| {
        let value = key.secret(CKA_VALUE)?;
        Ok(Prepared(aead::Key::chacha20_poly1305(value).map_err(|_| Error::KEY_SIZE_RANGE)?))
    })?;
    Ok(&form.0)
}

fn length(direction: Direction, input: usize) -> Result<usize> {
    match direction {
        Direction::Forward => input.checked_add(TAG).ok_or(Error::DATA_LEN_RANGE),
        Direction::Backward => input.checked_sub(TAG).ok_or(Error::ENCRYPTED_DATA_LEN_RANGE),
    }
}

fn run(
    key: &Key,
    direction: Direction,
    (nonce, aad): (&[u8], &[u8]),
    input: &[u8],
    out: &mut [u8],
) -> Result<usize> {
    let length = length(direction, input.len())?;
    let out = &mut out[..length];
    let mut by = |key: &aead::Key, nonce: &[u8]| match direction {
        Direction::Forward => key.seal(nonce, aad, input, out).map_err(|_| Error::DATA_LEN_RANGE),
        Direction::Backward => {
            key.open(nonce, aad, input, out).map_err(|_| Error::ENCRYPTED_DATA_INVALID)
        }
    };
    match nonce.try_into() {
        Ok(nonce) => {
            let value = key.secret(CKA_VALUE)?.try_into().map_err(|_| Error::KEY_SIZE_RANGE)?;
            let (value, nonce) = extended(value, nonce).map_err(device_error)?;
            by(&aead::Key::chacha20_poly1305(value.expose()).map_err(device_error)?, &nonce)?;
        }
        Err(_) => by(prepared(key)?, nonce)?,
    }
    Ok(length)
}

impl Cipher for ChaCha20Poly1305 {
    fn check(&self, _: Direction, key: &Key, params: &Params) -> Result<()> {
        fields(params)?;
        prepared(key).map(|_| ())
    }

    fn length(&self, direction: Direction, _: &Key, _: &Params, input: usize) -> Result<usize> {
        length(direction, input)
    }

    fn run(
        &self,
        direction: Direction,
        key: &Key,
        params: &Params,
        input: &[u8],
        out: &mut [u8],
    ) -> Result<usize> {
        run(key, direction, fields(params)?, input, out)
    }

    fn start(
        &self,
        direction: Direction,
        key: &Arc<Key>,
        params: &Params,
    ) -> Result<Box<dyn CipherStream>> {
        let (nonce, aad) = fields(params)?;
        Ok(match direction {
            Direction::Forward => {
                let stream = Stream::encrypt(key.secret(CKA_VALUE)?, nonce, aad);
                Box::new(Sealing(stream.map_err(|_| Error::KEY_SIZE_RANGE)?))
            }
            Direction::Backward => Box::new(Opening {
                key: Arc::clone(key),
                nonce: Bytes::from_slice(nonce),
                aad: Bytes::from_slice(aad),
                sealed: Vec::new(),
            }),
        })
    }
}

/// Encryption in the middle.
#[derive(Debug)]
struct Sealing(Stream);

impl CipherStream for Sealing {
    fn update_length(&self, input: usize) -> usize {
        input
    }

    fn update(&mut self, input: &[u8], out: &mut [u8]) -> Result<()> {
        self.0.update(input, out).map_err(|_| Error::DATA_LEN_RANGE)
    }

    fn finish_length(&self) -> usize {
        TAG
    }

    fn finish(&mut self, out: &mut [u8]) -> Result<usize> {
        let mut tag = [0; TAG];
        self.0.finish(&mut tag);
        out[..TAG].copy_from_slice(&tag);
        Ok(TAG)
    }
}

/// Decryption in the middle: the ciphertext waits for its tag.
#[derive(Debug)]
struct Opening {
    key: Arc<Key>,
    nonce: Bytes,
    aad: Bytes,
    sealed: Vec<u8>,
}

impl CipherStream for Opening {
    fn update_length(&self, _: usize) -> usize {
        0
    }

    fn update(&mut self, input: &[u8], _: &mut [u8]) -> Result<()> {
        hold(&mut self.sealed, input, Error::ENCRYPTED_DATA_LEN_RANGE)
    }

    fn finish_length(&self) -> usize {
        self.sealed.len().saturating_sub(TAG)
    }

    fn finish(&mut self, out: &mut [u8]) -> Result<usize> {
        let fields = (self.nonce.as_slice(), self.aad.as_slice());
        run(&self.key, Direction::Backward, fields, &self.sealed, out)
    }
}

/// The key stream alone.
#[derive(Debug)]
struct ChaCha20;

impl Cipher for ChaCha20 {
    fn check(&self, _: Direction, key: &Key, params: &Params) -> Result<()> {
        plain(key, params).map(drop)
    }

    fn length(&self, _: Direction, _: &Key, _: &Params, input: usize) -> Result<usize> {
        Ok(input)
    }

    fn run(
        &self,
        _: Direction,
        key: &Key,
        params: &Params,
        input: &[u8],
        out: &mut [u8],
    ) -> Result<usize> {
        let out = &mut out[..input.len()];
        plain(key, params)?.update(input, out).map_err(|_| Error::DATA_LEN_RANGE)?;
        Ok(input.len())
    }

    fn start(
        &self,
        _: Direction,
        key: &Arc<Key>,
        params: &Params,
    ) -> Result<Box<dyn CipherStream>> {
        Ok(Box::new(KeyStream(plain(key, params)?)))
    }
}

fn plain(key: &Key, params: &Params) -> Result<Plain> {
    let Params::ChaCha20 { counter, nonce } = params else {
        return Err(Error::MECHANISM_PARAM_INVALID);
    };
    let value = key.secret(CKA_VALUE)?.try_into().map_err(|_| Error::KEY_SIZE_RANGE)?;
    Plain::at(value, *counter, nonce).map_err(|_| Error::MECHANISM_PARAM_INVALID)
}

#[derive(Debug)]
struct KeyStream(Plain);

impl CipherStream for KeyStream {
    fn update_length(&self, input: usize) -> usize {
        input
    }

    fn update(&mut self, input: &[u8], out: &mut [u8]) -> Result<()> {
        self.0.update(input, out).map_err(|_| Error::DATA_LEN_RANGE)
    }

    fn finish_length(&self) -> usize {
        0
    }

    fn finish(&mut self, _: &mut [u8]) -> Result<usize> {
        Ok(0)
    }
}

/// Poly1305, whose keys make one MAC each.
const POLY1305: Mac = Mac {
    general: false,
    length: TAG,
    prepared: |key| Ok(key.prepared(TagKey::new)?),
    anew: |key| Ok(Box::new(TagKey::new(key)?)),
};

/// The key as it is: one type per function.
#[derive(Debug)]
struct TagKey(Secret);

impl TagKey {
    fn new(key: &Key) -> Result<Self> {
        match key.secret(CKA_VALUE)? {
            value if value.len() == 32 => Ok(Self(Secret::copy_of(value))),
            _ => Err(Error::KEY_SIZE_RANGE),
        }
    }

    fn poly1305(&self) -> std::result::Result<Poly1305, Failed> {
        self.0.expose().try_into().map(Poly1305::new).map_err(|_| Failed)
    }
}

impl mac::Prepared for TagKey {
    fn mac(&self, data: &[u8], out: &mut [u8]) -> std::result::Result<(), Failed> {
        let mut stream = self.poly1305()?;
        stream.update(data);
        mac::Stream::finish(&mut stream, out)
    }

    fn start(&self, length: usize) -> std::result::Result<Box<dyn SignatureStream>, Failed> {
        Ok(running(self.poly1305()?, length))
    }
}

impl mac::Stream for Poly1305 {
    fn update(&mut self, data: &[u8]) -> std::result::Result<(), Failed> {
        self.update(data);
        Ok(())
    }

    fn finish(&mut self, out: &mut [u8]) -> std::result::Result<(), Failed> {
        self.finish(out.try_into().map_err(|_| Failed)?);
        Ok(())
    }
}

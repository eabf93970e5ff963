// SPDX-License-Identifier: Apache-2.0
//! AES-GCM (PKCS#11 3.2 §6.13.2) and ChaCha20-Poly1305 (§6.61). A multi-part decryption keeps the ciphertext and releases nothing
//! before the tag is verified.

use super::keys::{KEYS, Of, with};
use crate::failure::device_error;
use metaslot_ck::*;
use metaslot_openssl_wrapper::cipher::{self, TAG};
use metaslot_openssl_wrapper::{Mode, cleanse};
use metaslot_spi::buffer::hold;
use metaslot_spi::provider::{Algorithm, Cipher, CipherStream, Direction};
use metaslot_spi::wrapping::{self, ByCipher};
use metaslot_spi::{Bytes, Key, Params};
use std::marker::PhantomData;
use std::sync::Arc;

pub(super) const GCM: Algorithm = wrapping::row(CKM_AES_GCM, KEYS, &ByCipher(Aead::<Gcm>::NEW));

pub(super) const CHACHA20_POLY1305: Algorithm = Algorithm {
    mechanism: CKM_CHACHA20_POLY1305,
    key_sizes: (32, 32),
    encrypt: Some(&Aead::<ChaCha20Poly1305>::NEW),
    decrypt: Some(&Aead::<ChaCha20Poly1305>::NEW),
    ..Algorithm::NONE
};

/// The longest nonce that OpenSSL takes for GCM, in bytes; the standard has no limit.
pub(super) const LONGEST_IV: usize = 128;

/// What a message begins with, and the length of its tag in bytes.
#[derive(Clone, Copy)]
pub(super) struct Fields<'a> {
    pub(super) iv: &'a [u8],
    pub(super) aad: &'a [u8],
    pub(super) tag: usize,
}

/// An AEAD.
trait Function: Of {
    fn fields(params: &Params) -> Result<Fields<'_>>;
}

#[derive(Debug)]
pub(super) struct Gcm;
#[derive(Debug)]
struct ChaCha20Poly1305;

impl Of for Gcm {
    const MODE: Mode = Mode::Gcm;
}

impl Of for ChaCha20Poly1305 {
    const MODE: Mode = Mode::ChaCha20Poly1305;
}

impl Function for Gcm {
    fn fields(params: &Params) -> Result<Fields<'_>> {
        let Params::Gcm { iv, aad, tag_bits } = params else {
            return Err(Error::MECHANISM_PARAM_INVALID);
        };
        let is_tag = (32..=128).contains(tag_bits) && tag_bits.is_multiple_of(8);
        if !(1..=LONGEST_IV).contains(&iv.len()) || !is_tag {
            return Err(Error::MECHANISM_PARAM_INVALID);
        }
        let tag = usize::try_from(tag_bits / 8).map_err(|_| Error::MECHANISM_PARAM_INVALID)?;
        Ok(Fields { iv, aad, tag })
    }
}

/// The same for GMAC.
pub(super) fn gcm_fields(params: &Params) -> Result<Fields<'_>> {
    Gcm::fields(params)
}

impl Function for ChaCha20Poly1305 {
    fn fields(params: &Params) -> Result<Fields<'_>> {
        match params {
            Params::ChaCha20Poly1305 { nonce, aad } if nonce.len() == 12 => {
                Ok(Fields { iv: nonce, aad, tag: TAG })
            }
            _ => Err(Error::MECHANISM_PARAM_INVALID),
        }
    }
}

/// The function as an operation.
#[derive(Debug)]
struct Aead<F>(PhantomData<F>);

impl<F: Function> Aead<F> {
    const NEW: Self = Self(PhantomData);
}

fn begin<M: Of>(key: &Key, encrypt: bool, fields: Fields<'_>) -> Result<cipher::Stream> {
    with::<M, _>(key, |key| {
        let mut stream = key.start(encrypt, fields.iv).map_err(device_error)?;
        stream.aad(fields.aad).map_err(device_error)?;
        Ok(stream)
    })
}

fn length(direction: Direction, tag: usize, input: usize) -> Result<usize> {
    match direction {
        Direction::Forward => input.checked_add(tag).ok_or(Error::DATA_LEN_RANGE),
        Direction::Backward => input.checked_sub(tag).ok_or(Error::ENCRYPTED_DATA_LEN_RANGE),
    }
}

fn open<M: Of>(key: &Key, fields: Fields<'_>, sealed: &[u8], out: &mut [u8]) -> Result<usize> {
    let length = length(Direction::Backward, fields.tag, sealed.len())?;
    let (body, tag) = sealed.split_at(length);
    let (mut stream, out) = (begin::<M>(key, false, fields)?, &mut out[..length]);
    let opened = stream.update(body, out).and_then(|()| stream.open(tag));
    if opened.is_err() {
        cleanse(out);
    }
    opened.map_err(|_| Error::ENCRYPTED_DATA_INVALID)?;
    Ok(length)
}

impl<F: Function> Cipher for Aead<F> {
    fn check(&self, _: Direction, key: &Key, params: &Params) -> Result<()> {
        F::fields(params)?;
        with::<F, _>(key, |_| Ok(()))
    }

    fn length(
        &self,
        direction: Direction,
        _: &Key,
        params: &Params,
        input: usize,
    ) -> Result<usize> {
        length(direction, F::fields(params)?.tag, input)
    }

    fn run(
        &self,
        direction: Direction,
        key: &Key,
        params: &Params,
        input: &[u8],
        out: &mut [u8],
    ) -> Result<usize> {
        let fields = F::fields(params)?;
        if direction == Direction::Backward {
            return open::<F>(key, fields, input, out);
        }
        let mut sealing = Sealing { stream: begin::<F>(key, true, fields)?, tag: fields.tag };
        let (sealed, tag) = out.split_at_mut(input.len());
        sealing.update(input, sealed)?;
        Ok(input.len() + sealing.finish(tag)?)
    }

    fn start(
        &self,
        direction: Direction,
        key: &Arc<Key>,
        params: &Params,
    ) -> Result<Box<dyn CipherStream>> {
        let fields = F::fields(params)?;
        Ok(match direction {
            Direction::Forward => {
                Box::new(Sealing { stream: begin::<F>(key, true, fields)?, tag: fields.tag })
            }
            Direction::Backward => Box::new(Opening::<F> {
                function: PhantomData,
                key: Arc::clone(key),
                iv: Bytes::from_slice(fields.iv),
                aad: Bytes::from_slice(fields.aad),
                tag: fields.tag,
                sealed: Vec::new(),
            }),
        })
    }
}

/// Encryption in the middle.
#[derive(Debug)]
struct Sealing {
    stream: cipher::Stream,
    tag: usize,
}

impl CipherStream for Sealing {
    fn update_length(&self, input: usize) -> usize {
        input
    }

    fn update(&mut self, input: &[u8], out: &mut [u8]) -> Result<()> {
        self.stream.update(input, out).map_err(|_| Error::DATA_LEN_RANGE)
    }

    fn finish_length(&self) -> usize {
        self.tag
    }

    fn finish(&mut self, out: &mut [u8]) -> Result<usize> {
        self.stream.seal(&mut out[..self.tag]).map_err(device_error)?;
        Ok(self.tag)
    }
}

/// Decryption in the middle: the ciphertext waits for its tag.
#[derive(Debug)]
struct Opening<F> {
    function: PhantomData<F>,
    key: Arc<Key>,
    iv: Bytes,
    aad: Bytes,
    tag: usize,
    sealed: Vec<u8>,
}

impl<F: Function> CipherStream for Opening<F> {
    fn update_length(&self, _: usize) -> usize {
        0
    }

    fn update(&mut self, input: &[u8], _: &mut [u8]) -> Result<()> {
        hold(&mut self.sealed, input, Error::ENCRYPTED_DATA_LEN_RANGE)
    }

    fn finish_length(&self) -> usize {
        self.sealed.len().saturating_sub(self.tag)
    }

    fn finish(&mut self, out: &mut [u8]) -> Result<usize> {
        let fields = Fields { iv: &self.iv, aad: &self.aad, tag: self.tag };
        open::<F>(&self.key, fields, &self.sealed, out)
    }
}

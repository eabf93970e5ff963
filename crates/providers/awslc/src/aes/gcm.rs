// SPDX-License-Identifier: Apache-2.0
//! AES-GCM (PKCS#11 3.2 §6.13.2): nonces of any length from 1 byte, tags of 32 to 128 bits.
//!
//! A multi-part decryption keeps the ciphertext and releases nothing before the tag is verified.

use super::keys::KEYS;
use crate::failure::device_error;
use metaslot_awslc_wrapper::aead::{self, TAG};
use metaslot_awslc_wrapper::aes::GcmStream;
use metaslot_ck::*;
use metaslot_spi::buffer::hold;
use metaslot_spi::provider::{Algorithm, Cipher, CipherStream, Direction};
use metaslot_spi::wrapping::{self, ByCipher};
use metaslot_spi::{Bytes, Key, Params};
use std::sync::Arc;

pub(super) const ROW: Algorithm = wrapping::row(CKM_AES_GCM, KEYS, &ByCipher(Gcm));

#[derive(Debug)]
struct Gcm;

/// The decoded parameter, with the tag in bytes.
pub(super) struct Fields<'a> {
    pub(super) iv: &'a [u8],
    aad: &'a [u8],
    pub(super) tag: usize,
}

pub(super) fn fields(params: &Params) -> Result<Fields<'_>> {
    let Params::Gcm { iv, aad, tag_bits } = params else {
        return Err(Error::MECHANISM_PARAM_INVALID);
    };
    if iv.is_empty() || !(32..=128).contains(tag_bits) || !tag_bits.is_multiple_of(8) {
        return Err(Error::MECHANISM_PARAM_INVALID);
    }
    let tag = usize::try_from(tag_bits / 8).map_err(|_| Error::MECHANISM_PARAM_INVALID)?;
    Ok(Fields { iv, aad, tag })
}

/// The prepared form: one key, tags of 16 bytes.
pub(super) fn prepared(key: &Key) -> Result<&aead::Key> {
    let form = key.prepared(|key| {
        let value = key.secret(CKA_VALUE)?;
        Ok(Prepared(aead::Key::aes_gcm(value).map_err(|_| Error::KEY_SIZE_RANGE)?))
    })?;
    Ok(&form.0)
}

#[derive(Debug)]
struct Prepared(aead::Key);

impl Cipher for Gcm {
    fn check(&self, _: Direction, key: &Key, params: &Params) -> Result<()> {
        fields(params)?;
        // The form is made when it is needed; nothing but the length could hinder that.
        match key.secret(CKA_VALUE)?.len() {
            16 | 24 | 32 => Ok(()),
            _ => Err(Error::KEY_SIZE_RANGE),
        }
    }

    fn length(
        &self,
        direction: Direction,
        _: &Key,
        params: &Params,
        input: usize,
    ) -> Result<usize> {
        let tag = fields(params)?.tag;
        match direction {
            Direction::Forward => input.checked_add(tag).ok_or(Error::DATA_LEN_RANGE),
            Direction::Backward => input.checked_sub(tag).ok_or(Error::ENCRYPTED_DATA_LEN_RANGE),
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
        let fields = fields(params)?;
        match direction {
            Direction::Forward => seal(key, &fields, input, out),
            Direction::Backward => open(key, &fields, input, out),
        }
    }

    fn start(
        &self,
        direction: Direction,
        key: &Arc<Key>,
        params: &Params,
    ) -> Result<Box<dyn CipherStream>> {
        let fields = fields(params)?;
        Ok(match direction {
            Direction::Forward => {
                let value = key.secret(CKA_VALUE)?;
                let stream =
                    GcmStream::encrypt(value, fields.iv, fields.aad).map_err(device_error)?;
                Box::new(Sealing { stream, tag: fields.tag })
            }
            Direction::Backward => Box::new(Opening {
                key: Arc::clone(key),
                iv: Bytes::from_slice(fields.iv),
                aad: Bytes::from_slice(fields.aad),
                tag: fields.tag,
                sealed: Vec::new(),
            }),
        })
    }
}

fn seal(key: &Key, fields: &Fields<'_>, plain: &[u8], out: &mut [u8]) -> Result<usize> {
    let (sealed, tag) = out.split_at_mut(plain.len());
    prepared(key)?
        .seal_scatter(fields.iv, fields.aad, plain, sealed, &mut tag[..fields.tag])
        .map_err(|_| Error::DATA_LEN_RANGE)?;
    Ok(plain.len() + fields.tag)
}

fn open(key: &Key, fields: &Fields<'_>, sealed: &[u8], out: &mut [u8]) -> Result<usize> {
    let length = sealed.len().checked_sub(fields.tag).ok_or(Error::ENCRYPTED_DATA_LEN_RANGE)?;
    let (body, tag) = sealed.split_at(length);
    let out = &mut out[..length];
    let opened = if fields.tag == TAG {
        prepared(key)?.open_gather(fields.iv, fields.aad, body, tag, out)
    } else {
        let value = key.secret(CKA_VALUE)?;
        let short = aead::Key::aes_gcm_with_tag(value, fields.tag).map_err(device_error)?;
        short.open_gather(fields.iv, fields.aad, body, tag, out)
    };
    opened.map_err(|_| Error::ENCRYPTED_DATA_INVALID)?;
    Ok(length)
}

/// Encryption in the middle.
#[derive(Debug)]
struct Sealing {
    stream: GcmStream,
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
        self.stream.finish(&mut out[..self.tag]).map_err(device_error)?;
        Ok(self.tag)
    }
}

/// Decryption in the middle: the ciphertext waits for its tag.
#[derive(Debug)]
struct Opening {
    key: Arc<Key>,
    iv: Bytes,
    aad: Bytes,
    tag: usize,
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
        self.sealed.len().saturating_sub(self.tag)
    }

    fn finish(&mut self, out: &mut [u8]) -> Result<usize> {
        let fields = Fields { iv: &self.iv, aad: &self.aad, tag: self.tag };
        open(&self.key, &fields, &self.sealed, out)
    }
}

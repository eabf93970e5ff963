// SPDX-License-Identifier: Apache-2.0
//! AES-CCM (PKCS#11 3.2 §6.13.4): the message's length is declared beforehand, and a message in parts is kept until it is whole.

use super::keys::KEYS;
use metaslot_ck::*;
use metaslot_openssl_wrapper::cipher;
use metaslot_spi::buffer::{Buffer, MOST_HELD};
use metaslot_spi::provider::{Algorithm, Cipher, CipherStream, Direction};
use metaslot_spi::wrapping::{self, ByCipher};
use metaslot_spi::{Bytes, Key, Params};
use std::sync::Arc;

pub(super) const ROW: Algorithm = wrapping::row(CKM_AES_CCM, KEYS, &ByCipher(Ccm));

#[derive(Debug)]
struct Ccm;

#[derive(Clone, Copy)]
struct Fields<'a> {
    data_length: u64,
    nonce: &'a [u8],
    aad: &'a [u8],
    mac: usize,
}

fn fields(params: &Params) -> Result<Fields<'_>> {
    let Params::Ccm { data_length, nonce, aad, mac_length } = params else {
        return Err(Error::MECHANISM_PARAM_INVALID);
    };
    if !(7..=13).contains(&nonce.len()) || !matches!(mac_length, 4 | 6 | 8 | 10 | 12 | 14 | 16) {
        return Err(Error::MECHANISM_PARAM_INVALID);
    }
    // The length must fit what the nonce leaves of a block: 15 - n bytes.
    let width = 8 * (15 - nonce.len());
    if width < 64 && *data_length >> width != 0 {
        return Err(Error::MECHANISM_PARAM_INVALID);
    }
    let mac = usize::try_from(*mac_length).map_err(|_| Error::MECHANISM_PARAM_INVALID)?;
    Ok(Fields { data_length: *data_length, nonce, aad, mac })
}

fn value(key: &Key) -> Result<&[u8]> {
    let value = key.secret(CKA_VALUE)?;
    if matches!(value.len(), 16 | 24 | 32) { Ok(value) } else { Err(Error::KEY_SIZE_RANGE) }
}

fn length(direction: Direction, mac: usize, input: usize) -> Result<usize> {
    match direction {
        Direction::Forward => input.checked_add(mac),
        Direction::Backward => input.checked_sub(mac),
    }
    .ok_or_else(|| direction.length_error())
}

fn run(
    key: &Key,
    direction: Direction,
    fields: Fields<'_>,
    input: &[u8],
    out: &mut [u8],
) -> Result<usize> {
    let (length, mac) = (length(direction, fields.mac, input.len())?, fields.mac);
    let message = cipher::Ccm { key: value(key)?, nonce: fields.nonce, aad: fields.aad };
    let data = input.len().min(length);
    if data as u64 != fields.data_length {
        return Err(direction.length_error());
    }
    match direction {
        Direction::Forward => {
            let (sealed, tag) = out.split_at_mut(data);
            message.seal(input, sealed, &mut tag[..mac]).map_err(|_| Error::DATA_LEN_RANGE)?;
        }
        Direction::Backward => {
            let (sealed, tag) = input.split_at(data);
            let opened = message.open(sealed, tag, &mut out[..data]);
            opened.map_err(|_| Error::ENCRYPTED_DATA_INVALID)?;
        }
    }
    Ok(length)
}

impl Cipher for Ccm {
    fn check(&self, _: Direction, key: &Key, params: &Params) -> Result<()> {
        fields(params)?;
        value(key).map(|_| ())
    }

    fn length(
        &self,
        direction: Direction,
        _: &Key,
        params: &Params,
        input: usize,
    ) -> Result<usize> {
        length(direction, fields(params)?.mac, input)
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
        let Fields { data_length, nonce, aad, mac } = fields(params)?;
        Ok(Box::new(Gathering {
            key: Arc::clone(key),
            direction,
            data_length,
            nonce: Bytes::from_slice(nonce),
            aad: Bytes::from_slice(aad),
            mac,
            message: Buffer::default(),
        }))
    }
}

#[derive(Debug)]
struct Gathering {
    key: Arc<Key>,
    direction: Direction,
    data_length: u64,
    nonce: Bytes,
    aad: Bytes,
    mac: usize,
    message: Buffer,
}

impl CipherStream for Gathering {
    fn update_length(&self, _: usize) -> usize {
        0
    }

    fn update(&mut self, input: &[u8], _: &mut [u8]) -> Result<()> {
        let tag = if self.direction == Direction::Forward { 0 } else { self.mac as u64 };
        let most = self.data_length.saturating_add(tag).min(MOST_HELD as u64);
        let length = (self.message.bytes().len() as u64).saturating_add(input.len() as u64);
        if length > most {
            return Err(self.direction.length_error());
        }
        self.message.push(input)
    }

    fn finish_length(&self) -> usize {
        length(self.direction, self.mac, self.message.bytes().len()).unwrap_or(0)
    }

    fn finish(&mut self, out: &mut [u8]) -> Result<usize> {
        let (data_length, mac) = (self.data_length, self.mac);
        let fields = Fields { data_length, nonce: &self.nonce, aad: &self.aad, mac };
        run(&self.key, self.direction, fields, self.message.bytes(), out)
    }
}

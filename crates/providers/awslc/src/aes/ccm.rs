// SPDX-License-Identifier: Apache-2.0
//! AES-CCM (PKCS#11 3.2 §6.13.4). The mode needs the whole message, so several parts are gathered
//! first; a decryption releases nothing before the MAC is verified.

use super::keys::{KEYS, keys};
use metaslot_awslc_wrapper::aes;
use metaslot_ck::*;
use metaslot_spi::buffer::{Buffer, MOST_HELD};
use metaslot_spi::provider::{Algorithm, Cipher, CipherStream, Direction};
use metaslot_spi::wrapping::{self, ByCipher};
use metaslot_spi::{Bytes, Key, Params};
use std::sync::Arc;

pub(super) const ROW: Algorithm = wrapping::row(CKM_AES_CCM, KEYS, &ByCipher(Ccm));

#[derive(Debug)]
struct Ccm;

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

fn run(
    key: &Key,
    direction: Direction,
    fields: &Fields<'_>,
    input: &[u8],
    out: &mut [u8],
) -> Result<usize> {
    let value = key.secret(CKA_VALUE)?;
    let data = match direction {
        Direction::Forward => input.len(),
        Direction::Backward => {
            input.len().checked_sub(fields.mac).ok_or(Error::ENCRYPTED_DATA_LEN_RANGE)?
        }
    };
    if data as u64 != fields.data_length {
        return Err(direction.length_error());
    }
    match direction {
        Direction::Forward => {
            let (sealed, mac) = out.split_at_mut(data);
            let mac = &mut mac[..fields.mac];
            aes::ccm_seal(value, fields.nonce, fields.aad, input, sealed, mac)
                .map_err(|_| Error::DATA_LEN_RANGE)?;
            Ok(data + fields.mac)
        }
        Direction::Backward => {
            let (sealed, mac) = input.split_at(data);
            aes::ccm_open(value, fields.nonce, fields.aad, sealed, mac, &mut out[..data])
                .map_err(|_| Error::ENCRYPTED_DATA_INVALID)?;
            Ok(data)
        }
    }
}

fn length(direction: Direction, mac: usize, input: usize) -> Result<usize> {
    match direction {
        Direction::Forward => input.checked_add(mac),
        Direction::Backward => input.checked_sub(mac),
    }
    .ok_or_else(|| direction.length_error())
}

impl Cipher for Ccm {
    fn check(&self, _: Direction, key: &Key, params: &Params) -> Result<()> {
        fields(params)?;
        keys(key).map(|_| ())
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
        run(key, direction, &fields(params)?, input, out)
    }

    fn start(
        &self,
        direction: Direction,
        key: &Arc<Key>,
        params: &Params,
    ) -> Result<Box<dyn CipherStream>> {
        let fields = fields(params)?;
        Ok(Box::new(Gathering {
            key: Arc::clone(key),
            direction,
            data_length: fields.data_length,
            nonce: Bytes::from_slice(fields.nonce),
            aad: Bytes::from_slice(fields.aad),
            mac: fields.mac,
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
        let most = match self.direction {
            Direction::Forward => self.data_length,
            Direction::Backward => self.data_length.saturating_add(self.mac as u64),
        };
        if (self.message.bytes().len() as u64).saturating_add(input.len() as u64)
            > most.min(MOST_HELD as u64)
        {
            return Err(self.direction.length_error());
        }
        self.message.push(input)
    }

    fn finish_length(&self) -> usize {
        length(self.direction, self.mac, self.message.bytes().len()).unwrap_or(0)
    }

    fn finish(&mut self, out: &mut [u8]) -> Result<usize> {
        let fields = Fields {
            data_length: self.data_length,
            nonce: &self.nonce,
            aad: &self.aad,
            mac: self.mac,
        };
        run(&self.key, self.direction, &fields, self.message.bytes(), out)
    }
}

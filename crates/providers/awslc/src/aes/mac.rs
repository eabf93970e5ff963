// SPDX-License-Identifier: Apache-2.0
//! MACs by AES: CMAC (PKCS#11 3.2 §6.14) and GMAC (§6.13.6).

use super::gcm;
use super::keys::KEYS;
use crate::failure::device_error;
use crate::mac::{Mac, Prepared, Stream, compare, row, running};
use metaslot_awslc_wrapper::aead::TAG;
use metaslot_awslc_wrapper::aes::GcmStream;
use metaslot_awslc_wrapper::{Failed, cmac};
use metaslot_ck::*;
use metaslot_spi::provider::{Algorithm, Direction, Signature, SignatureStream};
use metaslot_spi::{Key, Params};
use std::sync::Arc;

pub(super) const CMAC_ROW: Algorithm = row(CKM_AES_CMAC, KEYS, &CMAC);
pub(super) const CMAC_GENERAL_ROW: Algorithm =
    row(CKM_AES_CMAC_GENERAL, KEYS, &Mac { general: true, ..CMAC });
pub(super) const GMAC_ROW: Algorithm = row(CKM_AES_GMAC, KEYS, &Gmac);

const CMAC: Mac = Mac {
    general: false,
    length: cmac::LENGTH,
    prepared: |key| Ok(key.prepared(cmac_key)?),
    anew: |key| Ok(Box::new(cmac_key(key)?)),
};

fn cmac_key(key: &Key) -> Result<cmac::Key> {
    cmac::Key::new(key.secret(CKA_VALUE)?).map_err(|_| Error::KEY_SIZE_RANGE)
}

impl Prepared for cmac::Key {
    fn mac(&self, data: &[u8], out: &mut [u8]) -> std::result::Result<(), Failed> {
        self.mac(&[data], out)
    }

    fn start(&self, length: usize) -> std::result::Result<Box<dyn SignatureStream>, Failed> {
        Ok(running(self.start()?, length))
    }
}

impl Stream for cmac::Stream {
    fn update(&mut self, data: &[u8]) -> std::result::Result<(), Failed> {
        self.update(data)
    }

    fn finish(&mut self, out: &mut [u8]) -> std::result::Result<(), Failed> {
        self.finish(out)
    }
}

/// The tag of GCM over data that are not encrypted.
#[derive(Debug)]
struct Gmac;

/// The IV, and the length of the tag in bytes.
fn fields(params: &Params) -> Result<(&[u8], usize)> {
    match params {
        Params::Iv(iv) if !iv.is_empty() => Ok((iv, TAG)),
        Params::Gcm { aad, .. } if aad.is_empty() => {
            let fields = gcm::fields(params)?;
            Ok((fields.iv, fields.tag))
        }
        _ => Err(Error::MECHANISM_PARAM_INVALID),
    }
}

impl Signature for Gmac {
    fn check(&self, _: Direction, key: &Key, params: &Params) -> Result<()> {
        fields(params)?;
        gcm::prepared(key).map(|_| ())
    }

    fn length(&self, _: &Key, params: &Params) -> usize {
        fields(params).map_or(TAG, |(_, tag)| tag)
    }

    fn sign(&self, key: &Key, params: &Params, data: &[u8], out: &mut [u8]) -> Result<usize> {
        let (iv, tag) = fields(params)?;
        gcm::prepared(key)?
            .seal_scatter(iv, data, &[], &mut [], &mut out[..tag])
            .map_err(|_| Error::DATA_LEN_RANGE)?;
        Ok(tag)
    }

    fn verify(&self, key: &Key, params: &Params, data: &[u8], signature: &[u8]) -> Result<()> {
        let (iv, tag) = fields(params)?;
        compare(tag, signature, |own| {
            let sealed = gcm::prepared(key)?.seal_scatter(iv, data, &[], &mut [], own);
            sealed.map_err(|_| Error::DATA_LEN_RANGE)
        })
    }

    fn start(
        &self,
        _: Direction,
        key: &Arc<Key>,
        params: &Params,
    ) -> Result<Box<dyn SignatureStream>> {
        let (iv, tag) = fields(params)?;
        let stream = GcmStream::encrypt(key.secret(CKA_VALUE)?, iv, &[]).map_err(device_error)?;
        Ok(Box::new(Running { stream, tag }))
    }
}

#[derive(Debug)]
struct Running {
    stream: GcmStream,
    tag: usize,
}

impl SignatureStream for Running {
    fn update(&mut self, data: &[u8]) -> Result<()> {
        self.stream.aad(data).map_err(|_| Error::DATA_LEN_RANGE)
    }

    fn sign(&mut self, out: &mut [u8]) -> Result<usize> {
        self.stream.finish(&mut out[..self.tag]).map_err(device_error)?;
        Ok(self.tag)
    }

    fn verify(&mut self, signature: &[u8]) -> Result<()> {
        compare(self.tag, signature, |own| self.stream.finish(own).map_err(device_error))
    }
}

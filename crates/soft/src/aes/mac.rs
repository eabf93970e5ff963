// SPDX-License-Identifier: Apache-2.0
//! MACs by AES: CMAC (PKCS#11 3.2 §6.16) and GMAC (§6.13.6).

use super::{KEYS, gcm};
use crate::device_error;
use crate::mac::{Function, Mac, row};
use metaslot_awslc::aead::TAG;
use metaslot_awslc::aes::GcmStream;
use metaslot_awslc::{Failed, cmac, constant_time};
use metaslot_ck::*;
use metaslot_engine::provider::{Algorithm, Direction, Signature, SignatureStream};
use metaslot_engine::{Key, Params};
use std::sync::Arc;

pub(super) const CMAC_ROW: Algorithm = row(CKM_AES_CMAC, KEYS, &Mac::<Cmac>::WHOLE);
pub(super) const CMAC_GENERAL_ROW: Algorithm =
    row(CKM_AES_CMAC_GENERAL, KEYS, &Mac::<Cmac>::GENERAL);
pub(super) const GMAC_ROW: Algorithm = row(CKM_AES_GMAC, KEYS, &Gmac);

#[derive(Debug)]
struct Cmac;

impl Function for Cmac {
    const LENGTH: usize = cmac::LENGTH;

    type Prepared = cmac::Key;
    type Stream = cmac::Stream;

    fn prepare(value: &[u8]) -> Result<cmac::Key> {
        cmac::Key::new(value).map_err(|_| Error::KEY_SIZE_RANGE)
    }

    fn mac(key: &cmac::Key, data: &[u8], out: &mut [u8]) -> std::result::Result<(), Failed> {
        key.mac(&[data], out)
    }

    fn start(key: &cmac::Key) -> std::result::Result<cmac::Stream, Failed> {
        key.start()
    }

    fn update(stream: &mut cmac::Stream, data: &[u8]) -> std::result::Result<(), Failed> {
        stream.update(data)
    }

    fn finish(stream: &mut cmac::Stream, out: &mut [u8]) -> std::result::Result<(), Failed> {
        stream.finish(out)
    }
}

/// The tag of GCM over data that are not encrypted.
#[derive(Debug)]
struct Gmac;

fn iv(params: &Params) -> Result<&[u8]> {
    match params {
        Params::Iv(iv) if !iv.is_empty() => Ok(iv),
        _ => Err(Error::MECHANISM_PARAM_INVALID),
    }
}

impl Signature for Gmac {
    fn check(&self, _: Direction, key: &Key, params: &Params) -> Result<()> {
        iv(params)?;
        gcm::prepared(key).map(|_| ())
    }

    fn length(&self, _: &Key, _: &Params) -> usize {
        TAG
    }

    fn sign(&self, key: &Key, params: &Params, data: &[u8], out: &mut [u8]) -> Result<usize> {
        let tag = &mut out[..TAG];
        gcm::prepared(key)?
            .seal_scatter(iv(params)?, data, &[], &mut [], tag)
            .map_err(|_| Error::DATA_LEN_RANGE)?;
        Ok(TAG)
    }

    fn verify(&self, key: &Key, params: &Params, data: &[u8], signature: &[u8]) -> Result<()> {
        if signature.len() != TAG {
            return Err(Error::SIGNATURE_LEN_RANGE);
        }
        let right = gcm::prepared(key)?.verify(iv(params)?, data, signature);
        if right.map_err(|_| Error::DATA_LEN_RANGE)? {
            Ok(())
        } else {
            Err(Error::SIGNATURE_INVALID)
        }
    }

    fn start(
        &self,
        _: Direction,
        key: &Arc<Key>,
        params: &Params,
    ) -> Result<Box<dyn SignatureStream>> {
        let value = key.secret(CKA_VALUE)?;
        Ok(Box::new(Running(GcmStream::encrypt(value, iv(params)?, &[]).map_err(device_error)?)))
    }
}

#[derive(Debug)]
struct Running(GcmStream);

impl SignatureStream for Running {
    fn update(&mut self, data: &[u8]) -> Result<()> {
        self.0.aad(data).map_err(|_| Error::DATA_LEN_RANGE)
    }

    fn sign(&mut self, out: &mut [u8]) -> Result<usize> {
        self.0.finish(&mut out[..TAG]).map_err(device_error)?;
        Ok(TAG)
    }

    fn verify(&mut self, signature: &[u8]) -> Result<()> {
        if signature.len() != TAG {
            return Err(Error::SIGNATURE_LEN_RANGE);
        }
        let mut own = [0; TAG];
        self.0.finish(&mut own).map_err(device_error)?;
        let equal = constant_time::equal(&own, signature);
        metaslot_awslc::cleanse(&mut own);
        if equal { Ok(()) } else { Err(Error::SIGNATURE_INVALID) }
    }
}

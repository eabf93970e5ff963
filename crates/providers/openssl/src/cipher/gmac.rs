// SPDX-License-Identifier: Apache-2.0
//! GMAC (PKCS#11 3.2 §6.13.6): the tag of GCM over data that are not encrypted.

use super::aead::{Fields, Gcm, LONGEST_IV, gcm_fields};
use super::keys::{KEYS, with};
use crate::failure::device_error;
use crate::mac::compare;
use metaslot_ck::*;
use metaslot_openssl_wrapper::cipher::{Stream, TAG};
use metaslot_spi::provider::{Algorithm, Direction, Signature, SignatureStream};
use metaslot_spi::{Key, Params};
use std::sync::Arc;

pub(super) const ROW: Algorithm = Algorithm::signature(CKM_AES_GMAC, KEYS, &Gmac);

#[derive(Debug)]
struct Gmac;

fn fields(params: &Params) -> Result<Fields<'_>> {
    match params {
        Params::Iv(iv) if (1..=LONGEST_IV).contains(&iv.len()) => {
            Ok(Fields { iv, aad: &[], tag: TAG })
        }
        Params::Gcm { aad, .. } if aad.is_empty() => gcm_fields(params),
        _ => Err(Error::MECHANISM_PARAM_INVALID),
    }
}

fn begin(key: &Key, params: &Params) -> Result<Running> {
    let Fields { iv, tag, .. } = fields(params)?;
    let stream = with::<Gcm, _>(key, |key| key.start(true, iv).map_err(device_error))?;
    Ok(Running { stream, tag })
}

impl Signature for Gmac {
    fn check(&self, _: Direction, key: &Key, params: &Params) -> Result<()> {
        fields(params)?;
        with::<Gcm, _>(key, |_| Ok(()))
    }

    fn length(&self, _: &Key, params: &Params) -> usize {
        fields(params).map_or(TAG, |fields| fields.tag)
    }

    fn sign(&self, key: &Key, params: &Params, data: &[u8], out: &mut [u8]) -> Result<usize> {
        let mut running = begin(key, params)?;
        running.update(data)?;
        running.sign(out)
    }

    fn verify(&self, key: &Key, params: &Params, data: &[u8], signature: &[u8]) -> Result<()> {
        let mut running = begin(key, params)?;
        running.update(data)?;
        running.verify(signature)
    }

    fn start(
        &self,
        _: Direction,
        key: &Arc<Key>,
        params: &Params,
    ) -> Result<Box<dyn SignatureStream>> {
        Ok(Box::new(begin(key, params)?))
    }
}

#[derive(Debug)]
struct Running {
    stream: Stream,
    tag: usize,
}

impl SignatureStream for Running {
    fn update(&mut self, data: &[u8]) -> Result<()> {
        self.stream.aad(data).map_err(|_| Error::DATA_LEN_RANGE)
    }

    fn sign(&mut self, out: &mut [u8]) -> Result<usize> {
        self.stream.seal(&mut out[..self.tag]).map_err(device_error)?;
        Ok(self.tag)
    }

    fn verify(&mut self, signature: &[u8]) -> Result<()> {
        compare(self.tag, signature, |own| self.stream.seal(own).map_err(device_error))
    }
}

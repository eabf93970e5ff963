// SPDX-License-Identifier: Apache-2.0
//! Signatures without a hash: `CKM_RSA_PKCS` (PKCS#11 3.2 §6.1.6) and `CKM_RSA_X_509` (§6.1.12),
//! with recovery. Their encryption is in `rsa_cipher`.

use crate::rsa_key::{MAX_BLOCK, is_trivial, prepared};
use crate::rsa_pkcs1::{sign_message, verify_message};
use metaslot_awslc_wrapper::rsa::PKCS1_OVERHEAD;
use metaslot_awslc_wrapper::rsa::{Rsa, RsaPadding};
use metaslot_ck::*;
use metaslot_spi::provider::{Direction, Recover, Signature};
use metaslot_spi::{Key, Params};

/// `CKM_RSA_PKCS`: the caller brings the `DigestInfo`, or anything else that fits.
#[derive(Debug)]
pub(crate) struct Pkcs1;

impl Signature for Pkcs1 {
    fn check(&self, direction: Direction, key: &Key, _: &Params) -> Result<()> {
        key.check_class(direction.signature_class())?;
        prepared(key).map(|_| ())
    }

    fn length(&self, key: &Key, _: &Params) -> usize {
        prepared(key).map_or(0, Rsa::size)
    }

    fn sign(&self, key: &Key, _: &Params, data: &[u8], out: &mut [u8]) -> Result<usize> {
        sign_message(key, data, out)
    }

    fn verify(&self, key: &Key, _: &Params, data: &[u8], signature: &[u8]) -> Result<()> {
        verify_message(key, data, signature)
    }
}

impl Recover for Pkcs1 {
    fn check(&self, key: &Key, _: &Params) -> Result<()> {
        key.check_class(CKO_PUBLIC_KEY)?;
        prepared(key).map(|_| ())
    }

    fn length(&self, key: &Key, _: &Params) -> usize {
        prepared(key).map_or(0, |rsa| rsa.size() - PKCS1_OVERHEAD)
    }

    fn recover(&self, key: &Key, _: &Params, signature: &[u8], out: &mut [u8]) -> Result<usize> {
        let mut opened = [0; MAX_BLOCK];
        let length = open(prepared(key)?, RsaPadding::Pkcs1, signature, &mut opened)?;
        out[..length].copy_from_slice(&opened[..length]);
        Ok(length)
    }
}

/// `CKM_RSA_X_509`: the private operation on a number that the caller brings.
#[derive(Debug)]
pub(crate) struct X509;

impl Signature for X509 {
    fn check(&self, direction: Direction, key: &Key, _: &Params) -> Result<()> {
        key.check_class(direction.signature_class())?;
        prepared(key).map(|_| ())
    }

    fn length(&self, key: &Key, _: &Params) -> usize {
        prepared(key).map_or(0, Rsa::size)
    }

    fn sign(&self, key: &Key, _: &Params, data: &[u8], out: &mut [u8]) -> Result<usize> {
        let rsa = prepared(key)?;
        let size = rsa.size();
        let block = padded(data, size)?;
        if rsa.sign_raw(RsaPadding::None, &block[..size], &mut out[..size]).is_err() {
            if !is_trivial(rsa, &block[..size])? {
                return Err(Error::DATA_INVALID);
            }
            out[..size].copy_from_slice(&block[..size]);
        }
        Ok(size)
    }

    fn verify(&self, key: &Key, _: &Params, data: &[u8], signature: &[u8]) -> Result<()> {
        let rsa = prepared(key)?;
        let size = rsa.size();
        let block = padded(data, size)?;
        let mut opened = [0; MAX_BLOCK];
        open(rsa, RsaPadding::None, signature, &mut opened)?;
        if opened[..size] == block[..size] { Ok(()) } else { Err(Error::SIGNATURE_INVALID) }
    }
}

impl Recover for X509 {
    fn check(&self, key: &Key, _: &Params) -> Result<()> {
        key.check_class(CKO_PUBLIC_KEY)?;
        prepared(key).map(|_| ())
    }

    fn length(&self, key: &Key, _: &Params) -> usize {
        prepared(key).map_or(0, Rsa::size)
    }

    fn recover(&self, key: &Key, _: &Params, signature: &[u8], out: &mut [u8]) -> Result<usize> {
        let rsa = prepared(key)?;
        let mut opened = [0; MAX_BLOCK];
        let length = open(rsa, RsaPadding::None, signature, &mut opened)?;
        out[..length].copy_from_slice(&opened[..length]);
        Ok(length)
    }
}

fn open(
    rsa: &Rsa,
    padding: RsaPadding,
    signature: &[u8],
    opened: &mut [u8; MAX_BLOCK],
) -> Result<usize> {
    if signature.len() != rsa.size() {
        return Err(Error::SIGNATURE_LEN_RANGE);
    }
    rsa.verify_raw(padding, signature, &mut opened[..rsa.size()])
        .map_err(|_| Error::SIGNATURE_INVALID)
}

/// `data` with zeros before it up to the length of the modulus (§6.1.12).
fn padded(data: &[u8], size: usize) -> Result<[u8; MAX_BLOCK]> {
    let zeros = size.checked_sub(data.len()).ok_or(Error::DATA_LEN_RANGE)?;
    let mut block = [0; MAX_BLOCK];
    block[zeros..size].copy_from_slice(data);
    Ok(block)
}

// SPDX-License-Identifier: Apache-2.0
//! HMAC with every hash function, whole and truncated (PKCS#11 3.2 §6.20–§6.26, `_HMAC` and
//! `_HMAC_GENERAL`).

use crate::device_error;
use metaslot_awslc::digest::Hash;
use metaslot_awslc::hmac::{self, Stream};
use metaslot_ck::*;
use metaslot_engine::provider::{Algorithm, Direction, Signature, SignatureStream};
use metaslot_engine::{Key, Params};
use std::sync::Arc;

/// Two rows per function.
pub(crate) const ROWS: [Algorithm; 24] = [
    row(CKM_MD5_HMAC, &Mac::<{ Hash::Md5 as u8 }>::WHOLE),
    row(CKM_MD5_HMAC_GENERAL, &Mac::<{ Hash::Md5 as u8 }>::GENERAL),
    row(CKM_SHA_1_HMAC, &Mac::<{ Hash::Sha1 as u8 }>::WHOLE),
    row(CKM_SHA_1_HMAC_GENERAL, &Mac::<{ Hash::Sha1 as u8 }>::GENERAL),
    row(CKM_SHA224_HMAC, &Mac::<{ Hash::Sha224 as u8 }>::WHOLE),
    row(CKM_SHA224_HMAC_GENERAL, &Mac::<{ Hash::Sha224 as u8 }>::GENERAL),
    row(CKM_SHA256_HMAC, &Mac::<{ Hash::Sha256 as u8 }>::WHOLE),
    row(CKM_SHA256_HMAC_GENERAL, &Mac::<{ Hash::Sha256 as u8 }>::GENERAL),
    row(CKM_SHA384_HMAC, &Mac::<{ Hash::Sha384 as u8 }>::WHOLE),
    row(CKM_SHA384_HMAC_GENERAL, &Mac::<{ Hash::Sha384 as u8 }>::GENERAL),
    row(CKM_SHA512_HMAC, &Mac::<{ Hash::Sha512 as u8 }>::WHOLE),
    row(CKM_SHA512_HMAC_GENERAL, &Mac::<{ Hash::Sha512 as u8 }>::GENERAL),
    row(CKM_SHA512_224_HMAC, &Mac::<{ Hash::Sha512_224 as u8 }>::WHOLE),
    row(CKM_SHA512_224_HMAC_GENERAL, &Mac::<{ Hash::Sha512_224 as u8 }>::GENERAL),
    row(CKM_SHA512_256_HMAC, &Mac::<{ Hash::Sha512_256 as u8 }>::WHOLE),
    row(CKM_SHA512_256_HMAC_GENERAL, &Mac::<{ Hash::Sha512_256 as u8 }>::GENERAL),
    row(CKM_SHA3_224_HMAC, &Mac::<{ Hash::Sha3_224 as u8 }>::WHOLE),
    row(CKM_SHA3_224_HMAC_GENERAL, &Mac::<{ Hash::Sha3_224 as u8 }>::GENERAL),
    row(CKM_SHA3_256_HMAC, &Mac::<{ Hash::Sha3_256 as u8 }>::WHOLE),
    row(CKM_SHA3_256_HMAC_GENERAL, &Mac::<{ Hash::Sha3_256 as u8 }>::GENERAL),
    row(CKM_SHA3_384_HMAC, &Mac::<{ Hash::Sha3_384 as u8 }>::WHOLE),
    row(CKM_SHA3_384_HMAC_GENERAL, &Mac::<{ Hash::Sha3_384 as u8 }>::GENERAL),
    row(CKM_SHA3_512_HMAC, &Mac::<{ Hash::Sha3_512 as u8 }>::WHOLE),
    row(CKM_SHA3_512_HMAC_GENERAL, &Mac::<{ Hash::Sha3_512 as u8 }>::GENERAL),
];

const fn row(mechanism: CK_MECHANISM_TYPE, mac: &'static dyn Signature) -> Algorithm {
    // The standard leaves the key's length open; this is the range that is tested.
    Algorithm {
        mechanism,
        key_sizes: (1, 512),
        sign: Some(mac),
        verify: Some(mac),
        ..Algorithm::NONE
    }
}

/// HMAC with the function whose number (in [`Hash::ALL`]) is `HASH`.
#[derive(Debug)]
struct Mac<const HASH: u8> {
    general: bool,
}

/// The prepared form of a key: one type per function, because a key may serve several.
#[derive(Debug)]
struct Prepared<const HASH: u8>(hmac::Key);

impl<const HASH: u8> Mac<HASH> {
    const WHOLE: Self = Self { general: false };
    const GENERAL: Self = Self { general: true };
    const HASH: Hash = Hash::ALL[HASH as usize];

    fn prepared<'a>(&self, key: &'a Key) -> Result<&'a hmac::Key> {
        let form = key.prepared(|key| {
            let mac = hmac::Key::new(Self::HASH, key.secret(CKA_VALUE)?).map_err(device_error)?;
            Ok(Prepared::<HASH>(mac))
        })?;
        Ok(&form.0)
    }
}

impl<const HASH: u8> Signature for Mac<HASH> {
    fn check(&self, _: Direction, key: &Key, params: &Params) -> Result<()> {
        match params {
            Params::None if !self.general => {}
            Params::Ulong(length) if self.general && *length <= Self::HASH.length() as u64 => {}
            _ => return Err(Error::MECHANISM_PARAM_INVALID),
        }
        self.prepared(key).map(|_| ())
    }

    fn length(&self, _: &Key, params: &Params) -> usize {
        length(params, Self::HASH)
    }

    fn sign(&self, key: &Key, params: &Params, data: &[u8], out: &mut [u8]) -> Result<usize> {
        let length = length(params, Self::HASH);
        self.prepared(key)?.mac(&[data], &mut out[..length]).map_err(device_error)?;
        Ok(length)
    }

    fn verify(&self, key: &Key, params: &Params, data: &[u8], signature: &[u8]) -> Result<()> {
        if signature.len() != length(params, Self::HASH) {
            return Err(Error::SIGNATURE_LEN_RANGE);
        }
        match self.prepared(key)?.verify(data, signature).map_err(device_error)? {
            true => Ok(()),
            false => Err(Error::SIGNATURE_INVALID),
        }
    }

    fn start(
        &self,
        _: Direction,
        key: &Arc<Key>,
        params: &Params,
    ) -> Result<Box<dyn SignatureStream>> {
        let stream = self.prepared(key)?.start().map_err(device_error)?;
        Ok(Box::new(Running { stream, length: length(params, Self::HASH) }))
    }
}

/// How long the MAC is to be, in bytes.
fn length(params: &Params, hash: Hash) -> usize {
    match params {
        Params::Ulong(length) => usize::try_from(*length).unwrap_or(0).min(hash.length()),
        _ => hash.length(),
    }
}

#[derive(Debug)]
struct Running {
    stream: Stream,
    length: usize,
}

impl SignatureStream for Running {
    fn update(&mut self, data: &[u8]) -> Result<()> {
        self.stream.update(data).map_err(device_error)
    }

    fn sign(&mut self, out: &mut [u8]) -> Result<usize> {
        self.stream.finish(&mut out[..self.length]).map_err(device_error)?;
        Ok(self.length)
    }

    fn verify(&mut self, signature: &[u8]) -> Result<()> {
        if signature.len() != self.length {
            return Err(Error::SIGNATURE_LEN_RANGE);
        }
        match self.stream.verify(signature).map_err(device_error)? {
            true => Ok(()),
            false => Err(Error::SIGNATURE_INVALID),
        }
    }
}

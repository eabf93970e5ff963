// SPDX-License-Identifier: Apache-2.0
//! RSASSA-PSS (PKCS#11 3.2 §6.1.10 and §6.1.15): over a digest, and with a hash.

use crate::digest;
use crate::hashes::{self, DigestScheme};
use crate::rsa_key::{SIZES, prepared};
use metaslot_awslc_wrapper::digest::Hash;
use metaslot_awslc_wrapper::rsa::{self, Rsa};
use metaslot_ck::*;
use metaslot_spi::provider::{Algorithm, Direction, Signature, SignatureStream, checked};
use metaslot_spi::{Key, Params};
use std::sync::Arc;

const fn row(mechanism: CK_MECHANISM_TYPE, signature: &'static dyn Signature) -> Algorithm {
    Algorithm {
        mechanism,
        key_sizes: SIZES,
        sign: Some(signature),
        verify: Some(signature),
        ..Algorithm::NONE
    }
}

pub(crate) const ROWS: [Algorithm; 10] = checked([
    row(CKM_RSA_PKCS_PSS, &Raw),
    row(CKM_SHA1_RSA_PKCS_PSS, &Hashed(Hash::Sha1)),
    row(CKM_SHA256_RSA_PKCS_PSS, &Hashed(Hash::Sha256)),
    row(CKM_SHA384_RSA_PKCS_PSS, &Hashed(Hash::Sha384)),
    row(CKM_SHA512_RSA_PKCS_PSS, &Hashed(Hash::Sha512)),
    row(CKM_SHA224_RSA_PKCS_PSS, &Hashed(Hash::Sha224)),
    row(CKM_SHA3_256_RSA_PKCS_PSS, &Hashed(Hash::Sha3_256)),
    row(CKM_SHA3_384_RSA_PKCS_PSS, &Hashed(Hash::Sha3_384)),
    row(CKM_SHA3_512_RSA_PKCS_PSS, &Hashed(Hash::Sha3_512)),
    row(CKM_SHA3_224_RSA_PKCS_PSS, &Hashed(Hash::Sha3_224)),
]);

/// The parameters, with everything known about them checked but for the key.
#[derive(Clone, Copy, Debug)]
struct Pss(rsa::Pss);

impl Pss {
    fn new(params: &Params) -> Result<Self> {
        let Params::Pss { hash, mgf, salt_length } = params else {
            return Err(Error::MECHANISM_PARAM_INVALID);
        };
        Ok(Self(rsa::Pss {
            hash: digest::hash(*hash).ok_or(Error::MECHANISM_PARAM_INVALID)?,
            mgf: hashes::by_mgf(*mgf).ok_or(Error::MECHANISM_PARAM_INVALID)?,
            salt_length: usize::try_from(*salt_length)
                .map_err(|_| Error::MECHANISM_PARAM_INVALID)?,
        }))
    }

    /// RFC 8017 §9.1.1: digest, salt and two bytes fit into one bit less than the modulus has.
    fn fits(self, rsa: &Rsa) -> Result<()> {
        let block = (rsa.bits() - 1).div_ceil(8);
        let room = block.checked_sub(self.0.hash.length() + 2).ok_or(Error::KEY_SIZE_RANGE)?;
        if self.0.salt_length <= room { Ok(()) } else { Err(Error::MECHANISM_PARAM_INVALID) }
    }
}

impl DigestScheme for Pss {
    fn hash(&self) -> Option<Hash> {
        Some(self.0.hash)
    }

    fn sign_digest(&self, key: &Key, digest: &[u8], out: &mut [u8]) -> Result<usize> {
        if digest.len() != self.0.hash.length() {
            return Err(Error::DATA_LEN_RANGE);
        }
        let rsa = prepared(key)?;
        let size = rsa.size();
        rsa.sign_pss(self.0, digest, &mut out[..size]).map_err(|_| Error::DEVICE_ERROR)?;
        Ok(size)
    }

    fn verify_digest(&self, key: &Key, digest: &[u8], signature: &[u8]) -> Result<()> {
        if digest.len() != self.0.hash.length() {
            return Err(Error::DATA_LEN_RANGE);
        }
        let rsa = prepared(key)?;
        if signature.len() != rsa.size() {
            return Err(Error::SIGNATURE_LEN_RANGE);
        }
        rsa.verify_pss(self.0, digest, signature).map_err(|_| Error::SIGNATURE_INVALID)
    }
}

/// `CKM_RSA_PKCS_PSS`: the data is the digest.
#[derive(Debug)]
struct Raw;

impl Signature for Raw {
    fn check(&self, direction: Direction, key: &Key, params: &Params) -> Result<()> {
        key.check_class(direction.signature_class())?;
        Pss::new(params)?.fits(prepared(key)?)
    }

    fn length(&self, key: &Key, _: &Params) -> usize {
        prepared(key).map_or(0, Rsa::size)
    }

    fn sign(&self, key: &Key, params: &Params, data: &[u8], out: &mut [u8]) -> Result<usize> {
        Pss::new(params)?.sign_digest(key, data, out)
    }

    fn verify(&self, key: &Key, params: &Params, data: &[u8], signature: &[u8]) -> Result<()> {
        Pss::new(params)?.verify_digest(key, data, signature)
    }
}

/// With a hash, which the parameters must name too.
#[derive(Debug)]
struct Hashed(Hash);

impl Hashed {
    fn pss(&self, params: &Params) -> Result<Pss> {
        let pss = Pss::new(params)?;
        if pss.0.hash == self.0 { Ok(pss) } else { Err(Error::MECHANISM_PARAM_INVALID) }
    }
}

impl Signature for Hashed {
    fn check(&self, direction: Direction, key: &Key, params: &Params) -> Result<()> {
        key.check_class(direction.signature_class())?;
        self.pss(params)?.fits(prepared(key)?)
    }

    fn length(&self, key: &Key, _: &Params) -> usize {
        prepared(key).map_or(0, Rsa::size)
    }

    fn sign(&self, key: &Key, params: &Params, data: &[u8], out: &mut [u8]) -> Result<usize> {
        hashes::sign(&self.pss(params)?, key, data, out)
    }

    fn verify(&self, key: &Key, params: &Params, data: &[u8], signature: &[u8]) -> Result<()> {
        hashes::verify(&self.pss(params)?, key, data, signature)
    }

    fn start(
        &self,
        _: Direction,
        key: &Arc<Key>,
        params: &Params,
    ) -> Result<Box<dyn SignatureStream>> {
        hashes::start(self.pss(params)?, key)
    }
}

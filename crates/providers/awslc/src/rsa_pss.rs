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

const fn row(mechanism: CK_MECHANISM_TYPE, signature: &'static RsaPss) -> Algorithm {
    Algorithm::signature(mechanism, SIZES, signature)
}

pub(crate) const ROWS: [Algorithm; 10] = checked([
    row(CKM_RSA_PKCS_PSS, &RsaPss(None)),
    row(CKM_SHA1_RSA_PKCS_PSS, &RsaPss(Some(Hash::Sha1))),
    row(CKM_SHA256_RSA_PKCS_PSS, &RsaPss(Some(Hash::Sha256))),
    row(CKM_SHA384_RSA_PKCS_PSS, &RsaPss(Some(Hash::Sha384))),
    row(CKM_SHA512_RSA_PKCS_PSS, &RsaPss(Some(Hash::Sha512))),
    row(CKM_SHA224_RSA_PKCS_PSS, &RsaPss(Some(Hash::Sha224))),
    row(CKM_SHA3_256_RSA_PKCS_PSS, &RsaPss(Some(Hash::Sha3_256))),
    row(CKM_SHA3_384_RSA_PKCS_PSS, &RsaPss(Some(Hash::Sha3_384))),
    row(CKM_SHA3_512_RSA_PKCS_PSS, &RsaPss(Some(Hash::Sha3_512))),
    row(CKM_SHA3_224_RSA_PKCS_PSS, &RsaPss(Some(Hash::Sha3_224))),
]);

/// With the hash function that comes first, which the parameters must name too, or of a digest.
#[derive(Debug)]
struct RsaPss(Option<Hash>);

impl RsaPss {
    /// The parameters, with everything known about them checked but for the key.
    fn scheme(&self, params: &Params) -> Result<Pss> {
        let Params::Pss { hash, mgf, salt_length } = params else {
            return Err(Error::MECHANISM_PARAM_INVALID);
        };
        let hash = digest::hash(*hash).ok_or(Error::MECHANISM_PARAM_INVALID)?;
        if self.0.is_some_and(|own| own != hash) {
            return Err(Error::MECHANISM_PARAM_INVALID);
        }
        let mgf = hashes::by_mgf(*mgf).ok_or(Error::MECHANISM_PARAM_INVALID)?;
        let salt_length =
            usize::try_from(*salt_length).map_err(|_| Error::MECHANISM_PARAM_INVALID)?;
        Ok(Pss { hash: self.0, padding: rsa::Pss { hash, mgf, salt_length } })
    }
}

/// A row with its parameters.
#[derive(Clone, Copy, Debug)]
struct Pss {
    hash: Option<Hash>,
    padding: rsa::Pss,
}

impl Pss {
    /// RFC 8017 §9.1.1: digest, salt and two bytes fit into one bit less than the modulus has.
    fn fits(self, rsa: &Rsa) -> Result<()> {
        let block = (rsa.bits() - 1).div_ceil(8);
        let room =
            block.checked_sub(self.padding.hash.length() + 2).ok_or(Error::KEY_SIZE_RANGE)?;
        if self.padding.salt_length <= room { Ok(()) } else { Err(Error::MECHANISM_PARAM_INVALID) }
    }
}

impl DigestScheme for Pss {
    fn hash(&self) -> Option<Hash> {
        self.hash
    }

    fn sign_digest(&self, key: &Key, digest: &[u8], out: &mut [u8]) -> Result<usize> {
        if digest.len() != self.padding.hash.length() {
            return Err(Error::DATA_LEN_RANGE);
        }
        let rsa = prepared(key)?;
        let size = rsa.size();
        rsa.sign_pss(self.padding, digest, &mut out[..size]).map_err(|_| Error::DEVICE_ERROR)?;
        Ok(size)
    }

    fn verify_digest(&self, key: &Key, digest: &[u8], signature: &[u8]) -> Result<()> {
        if digest.len() != self.padding.hash.length() {
            return Err(Error::DATA_LEN_RANGE);
        }
        let rsa = prepared(key)?;
        if signature.len() != rsa.size() {
            return Err(Error::SIGNATURE_LEN_RANGE);
        }
        rsa.verify_pss(self.padding, digest, signature).map_err(|_| Error::SIGNATURE_INVALID)
    }
}

impl Signature for RsaPss {
    fn check(&self, direction: Direction, key: &Key, params: &Params) -> Result<()> {
        key.check_class(direction.signature_class())?;
        self.scheme(params)?.fits(prepared(key)?)
    }

    fn length(&self, key: &Key, _: &Params) -> usize {
        prepared(key).map_or(0, Rsa::size)
    }

    fn sign(&self, key: &Key, params: &Params, data: &[u8], out: &mut [u8]) -> Result<usize> {
        hashes::sign(&self.scheme(params)?, key, data, out)
    }

    fn verify(&self, key: &Key, params: &Params, data: &[u8], signature: &[u8]) -> Result<()> {
        hashes::verify(&self.scheme(params)?, key, data, signature)
    }

    fn start(
        &self,
        _: Direction,
        key: &Arc<Key>,
        params: &Params,
    ) -> Result<Box<dyn SignatureStream>> {
        hashes::start(self.scheme(params)?, key)
    }
}

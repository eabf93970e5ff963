// SPDX-License-Identifier: Apache-2.0
//! Signatures: PKCS #1 v1.5 (PKCS#11 3.2 §6.1.6, §6.1.14) and PSS (§6.1.10, §6.1.15), over what the caller brings and with a hash.

use super::key::{MAX_BLOCK, PKCS1_OVERHEAD, SIZES, prepared, serves};
use crate::digest::hash;
use crate::hashed::{self, DigestScheme};
use metaslot_ck::*;
use metaslot_openssl_wrapper::digest::Hash;
use metaslot_openssl_wrapper::rsa::{Padding, Rsa, Scheme};
use metaslot_spi::provider::{Algorithm, Direction, Signature, SignatureStream};
use metaslot_spi::{Key, Params, hashes};
use std::sync::Arc;

pub(super) const ROWS: [Algorithm; 20] = [
    row(CKM_RSA_PKCS_PSS, &Pss(None)),
    row(CKM_MD5_RSA_PKCS, &Pkcs1(Hash::Md5)),
    row(CKM_SHA1_RSA_PKCS, &Pkcs1(Hash::Sha1)),
    row(CKM_SHA224_RSA_PKCS, &Pkcs1(Hash::Sha224)),
    row(CKM_SHA256_RSA_PKCS, &Pkcs1(Hash::Sha256)),
    row(CKM_SHA384_RSA_PKCS, &Pkcs1(Hash::Sha384)),
    row(CKM_SHA512_RSA_PKCS, &Pkcs1(Hash::Sha512)),
    row(CKM_SHA3_224_RSA_PKCS, &Pkcs1(Hash::Sha3_224)),
    row(CKM_SHA3_256_RSA_PKCS, &Pkcs1(Hash::Sha3_256)),
    row(CKM_SHA3_384_RSA_PKCS, &Pkcs1(Hash::Sha3_384)),
    row(CKM_SHA3_512_RSA_PKCS, &Pkcs1(Hash::Sha3_512)),
    row(CKM_SHA1_RSA_PKCS_PSS, &Pss(Some(Hash::Sha1))),
    row(CKM_SHA224_RSA_PKCS_PSS, &Pss(Some(Hash::Sha224))),
    row(CKM_SHA256_RSA_PKCS_PSS, &Pss(Some(Hash::Sha256))),
    row(CKM_SHA384_RSA_PKCS_PSS, &Pss(Some(Hash::Sha384))),
    row(CKM_SHA512_RSA_PKCS_PSS, &Pss(Some(Hash::Sha512))),
    row(CKM_SHA3_224_RSA_PKCS_PSS, &Pss(Some(Hash::Sha3_224))),
    row(CKM_SHA3_256_RSA_PKCS_PSS, &Pss(Some(Hash::Sha3_256))),
    row(CKM_SHA3_384_RSA_PKCS_PSS, &Pss(Some(Hash::Sha3_384))),
    row(CKM_SHA3_512_RSA_PKCS_PSS, &Pss(Some(Hash::Sha3_512))),
];

const fn row(mechanism: CK_MECHANISM_TYPE, signature: &'static dyn Signature) -> Algorithm {
    Algorithm::signature(mechanism, SIZES, signature)
}

fn sign(key: &Key, scheme: Scheme, digest: &[u8], out: &mut [u8]) -> Result<usize> {
    let rsa = prepared(key)?;
    let size = rsa.size();
    rsa.sign(scheme, digest, &mut out[..size]).map_err(|_| Error::DEVICE_ERROR)?;
    Ok(size)
}

fn verify(key: &Key, scheme: Scheme, digest: &[u8], signature: &[u8]) -> Result<()> {
    let rsa = prepared(key)?;
    if signature.len() != rsa.size() {
        return Err(Error::SIGNATURE_LEN_RANGE);
    }
    rsa.verify(scheme, digest, signature).map_err(|_| Error::SIGNATURE_INVALID)
}

/// `CKM_RSA_PKCS`: the caller brings the `DigestInfo`, or anything else that fits.
#[derive(Debug)]
pub(super) struct Raw;

impl Raw {
    fn fits(key: &Key, data: &[u8]) -> Result<()> {
        let fits = data.len() + PKCS1_OVERHEAD <= prepared(key)?.size();
        if fits { Ok(()) } else { Err(Error::DATA_LEN_RANGE) }
    }
}

impl Signature for Raw {
    fn serves(&self, key: &Key) -> bool {
        serves(key)
    }

    fn check(&self, direction: Direction, key: &Key, _: &Params) -> Result<()> {
        key.check_class(direction.signature_class())?;
        prepared(key).map(|_| ())
    }

    fn length(&self, key: &Key, _: &Params) -> usize {
        prepared(key).map_or(0, Rsa::size)
    }

    fn sign(&self, key: &Key, _: &Params, data: &[u8], out: &mut [u8]) -> Result<usize> {
        Self::fits(key, data)?;
        sign(key, Scheme::Pkcs1(None), data, out)
    }

    fn verify(&self, key: &Key, _: &Params, data: &[u8], signature: &[u8]) -> Result<()> {
        Self::fits(key, data)?;
        let (rsa, mut block) = (prepared(key)?, [0; MAX_BLOCK]);
        let block = &mut block[..rsa.size()];
        if signature.len() != block.len() {
            return Err(Error::SIGNATURE_LEN_RANGE);
        }
        // The whole block is compared (RFC 8017 §8.2.2): OpenSSL's own way takes no signature of an empty message.
        rsa.encrypt(Padding::None, signature, block).map_err(|_| Error::SIGNATURE_INVALID)?;
        let (head, tail) = block.split_at(block.len() - data.len());
        let good = head.starts_with(&[0, 1])
            && head.ends_with(&[0])
            && head[2..head.len() - 1].iter().all(|byte| *byte == 0xff)
            && tail == data;
        if good { Ok(()) } else { Err(Error::SIGNATURE_INVALID) }
    }
}

/// PKCS #1 v1.5 with a hash.
#[derive(Debug)]
struct Pkcs1(Hash);

/// A scheme with the function that makes its digest.
#[derive(Clone, Copy, Debug)]
struct Hashed(Hash, Scheme);

impl DigestScheme for Hashed {
    fn hash(&self) -> Option<Hash> {
        Some(self.0)
    }

    fn sign_digest(&self, key: &Key, digest: &[u8], out: &mut [u8]) -> Result<usize> {
        sign(key, self.1, digest, out)
    }

    fn verify_digest(&self, key: &Key, digest: &[u8], signature: &[u8]) -> Result<()> {
        verify(key, self.1, digest, signature)
    }
}

impl Pkcs1 {
    fn scheme(&self) -> Hashed {
        Hashed(self.0, Scheme::Pkcs1(Some(self.0)))
    }

    /// What stands before a digest in its `DigestInfo`, in bytes (RFC 8017 §9.2).
    const fn prefix(&self) -> usize {
        match self.0 {
            Hash::Md5 => 18,
            Hash::Sha1 => 15,
            _ => 19,
        }
    }
}

impl Signature for Pkcs1 {
    fn serves(&self, key: &Key) -> bool {
        serves(key)
    }

    fn check(&self, direction: Direction, key: &Key, _: &Params) -> Result<()> {
        key.check_class(direction.signature_class())?;
        let least = self.prefix() + self.0.length() + PKCS1_OVERHEAD;
        if prepared(key)?.size() < least { Err(Error::KEY_SIZE_RANGE) } else { Ok(()) }
    }

    fn length(&self, key: &Key, _: &Params) -> usize {
        prepared(key).map_or(0, Rsa::size)
    }

    fn sign(&self, key: &Key, _: &Params, data: &[u8], out: &mut [u8]) -> Result<usize> {
        hashed::sign(&self.scheme(), key, data, out)
    }

    fn verify(&self, key: &Key, _: &Params, data: &[u8], signature: &[u8]) -> Result<()> {
        hashed::verify(&self.scheme(), key, data, signature)
    }

    fn start(&self, _: Direction, key: &Arc<Key>, _: &Params) -> Result<Box<dyn SignatureStream>> {
        hashed::start(self.scheme(), key)
    }
}

/// PSS, over a digest that the caller brings or with a hash, which the parameters must name too.
#[derive(Debug)]
struct Pss(Option<Hash>);

impl Pss {
    fn scheme(&self, params: &Params) -> Result<(Hashed, usize)> {
        let Params::Pss { hash: number, mgf, salt_length } = params else {
            return Err(Error::MECHANISM_PARAM_INVALID);
        };
        let mgf = hashes::of_mgf(*mgf).and_then(hash).ok_or(Error::MECHANISM_PARAM_INVALID)?;
        let salt = usize::try_from(*salt_length).map_err(|_| Error::MECHANISM_PARAM_INVALID)?;
        match (hash(*number), self.0) {
            (Some(said), own) if own.is_none_or(|own| own == said) => {
                Ok((Hashed(said, Scheme::Pss(said, mgf, salt)), salt))
            }
            _ => Err(Error::MECHANISM_PARAM_INVALID),
        }
    }

    /// The scheme, where the data is its digest.
    fn of_digest(&self, params: &Params, digest: &[u8]) -> Result<Hashed> {
        let (scheme, _) = self.scheme(params)?;
        if digest.len() == scheme.0.length() { Ok(scheme) } else { Err(Error::DATA_LEN_RANGE) }
    }
}

impl Signature for Pss {
    fn serves(&self, key: &Key) -> bool {
        serves(key)
    }

    fn check(&self, direction: Direction, key: &Key, params: &Params) -> Result<()> {
        key.check_class(direction.signature_class())?;
        let (scheme, salt) = self.scheme(params)?;
        // RFC 8017 §9.1.1: digest, salt and two bytes fit into one bit less than the modulus has.
        let block = (prepared(key)?.bits() - 1).div_ceil(8);
        let room = block.checked_sub(scheme.0.length() + 2).ok_or(Error::KEY_SIZE_RANGE)?;
        if salt <= room { Ok(()) } else { Err(Error::MECHANISM_PARAM_INVALID) }
    }

    fn length(&self, key: &Key, _: &Params) -> usize {
        prepared(key).map_or(0, Rsa::size)
    }

    fn sign(&self, key: &Key, params: &Params, data: &[u8], out: &mut [u8]) -> Result<usize> {
        match self.0 {
            None => self.of_digest(params, data)?.sign_digest(key, data, out),
            Some(_) => hashed::sign(&self.scheme(params)?.0, key, data, out),
        }
    }

    fn verify(&self, key: &Key, params: &Params, data: &[u8], signature: &[u8]) -> Result<()> {
        match self.0 {
            None => self.of_digest(params, data)?.verify_digest(key, data, signature),
            Some(_) => hashed::verify(&self.scheme(params)?.0, key, data, signature),
        }
    }

    fn start(
        &self,
        _: Direction,
        key: &Arc<Key>,
        params: &Params,
    ) -> Result<Box<dyn SignatureStream>> {
        match self.0 {
            None => Err(Error::FUNCTION_NOT_SUPPORTED),
            Some(_) => hashed::start(self.scheme(params)?.0, key),
        }
    }
}

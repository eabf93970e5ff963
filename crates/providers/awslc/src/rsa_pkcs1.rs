// SPDX-License-Identifier: Apache-2.0
//! RSASSA-PKCS1-v1_5 with a hash (PKCS#11 3.2 §6.1.14).

use crate::hashes::{self, DigestScheme};
use crate::rsa_key::{MAX_BLOCK, SIZES, prepared};
use metaslot_awslc_wrapper::digest::Hash;
use metaslot_awslc_wrapper::rsa::{PKCS1_OVERHEAD, RsaPadding, digest_info, digest_info_length};
use metaslot_ck::*;
use metaslot_spi::provider::{Algorithm, Direction, Signature, SignatureStream, checked};
use metaslot_spi::{Key, Params};
use std::sync::Arc;

const fn row(mechanism: CK_MECHANISM_TYPE, signature: &'static Hashed) -> Algorithm {
    Algorithm::signature(mechanism, SIZES, signature)
}

pub(crate) const ROWS: [Algorithm; 10] = checked([
    row(CKM_MD5_RSA_PKCS, &Hashed(Hash::Md5)),
    row(CKM_SHA1_RSA_PKCS, &Hashed(Hash::Sha1)),
    row(CKM_SHA256_RSA_PKCS, &Hashed(Hash::Sha256)),
    row(CKM_SHA384_RSA_PKCS, &Hashed(Hash::Sha384)),
    row(CKM_SHA512_RSA_PKCS, &Hashed(Hash::Sha512)),
    row(CKM_SHA224_RSA_PKCS, &Hashed(Hash::Sha224)),
    row(CKM_SHA3_256_RSA_PKCS, &Hashed(Hash::Sha3_256)),
    row(CKM_SHA3_384_RSA_PKCS, &Hashed(Hash::Sha3_384)),
    row(CKM_SHA3_512_RSA_PKCS, &Hashed(Hash::Sha3_512)),
    row(CKM_SHA3_224_RSA_PKCS, &Hashed(Hash::Sha3_224)),
]);

#[derive(Clone, Copy, Debug)]
struct Hashed(Hash);

impl Signature for Hashed {
    fn check(&self, direction: Direction, key: &Key, _: &Params) -> Result<()> {
        key.check_class(direction.signature_class())?;
        let size = prepared(key)?.size();
        let info = digest_info_length(self.0);
        if size < info + PKCS1_OVERHEAD { Err(Error::KEY_SIZE_RANGE) } else { Ok(()) }
    }

    fn length(&self, key: &Key, _: &Params) -> usize {
        prepared(key).map_or(0, |rsa| rsa.size())
    }

    fn sign(&self, key: &Key, _: &Params, data: &[u8], out: &mut [u8]) -> Result<usize> {
        hashes::sign(self, key, data, out)
    }

    fn verify(&self, key: &Key, _: &Params, data: &[u8], signature: &[u8]) -> Result<()> {
        hashes::verify(self, key, data, signature)
    }

    fn start(&self, _: Direction, key: &Arc<Key>, _: &Params) -> Result<Box<dyn SignatureStream>> {
        hashes::start(*self, key)
    }
}

impl DigestScheme for Hashed {
    fn hash(&self) -> Option<Hash> {
        Some(self.0)
    }

    fn sign_digest(&self, key: &Key, digest: &[u8], out: &mut [u8]) -> Result<usize> {
        let (info, length) = digest_info(self.0, digest);
        sign_message(key, &info[..length], out)
    }

    fn verify_digest(&self, key: &Key, digest: &[u8], signature: &[u8]) -> Result<()> {
        let (info, length) = digest_info(self.0, digest);
        verify_message(key, &info[..length], signature)
    }
}

/// Signs `message` as it is: usually a `DigestInfo`.
pub(crate) fn sign_message(key: &Key, message: &[u8], out: &mut [u8]) -> Result<usize> {
    let rsa = prepared(key)?;
    let size = rsa.size();
    if message.len() + PKCS1_OVERHEAD > size {
        return Err(Error::DATA_LEN_RANGE);
    }
    rsa.sign_raw(RsaPadding::Pkcs1, message, &mut out[..size]).map_err(|_| Error::DEVICE_ERROR)?;
    Ok(size)
}

/// Opens `signature` and compares the whole block with the one that `message` must give (RFC 8017
/// §8.2.2): nothing is parsed, so nothing can be parsed wrongly.
pub(crate) fn verify_message(key: &Key, message: &[u8], signature: &[u8]) -> Result<()> {
    let rsa = prepared(key)?;
    let size = rsa.size();
    if message.len() + PKCS1_OVERHEAD > size {
        return Err(Error::DATA_LEN_RANGE);
    }
    if signature.len() != size {
        return Err(Error::SIGNATURE_LEN_RANGE);
    }
    let mut opened = [0; MAX_BLOCK];
    let block = &mut opened[..size];
    rsa.verify_raw(RsaPadding::None, signature, block).map_err(|_| Error::SIGNATURE_INVALID)?;
    let (head, tail) = block.split_at(size - message.len());
    let good = head.starts_with(&[0, 1])
        && head.ends_with(&[0])
        && head[2..head.len() - 1].iter().all(|byte| *byte == 0xff)
        && tail == message;
    if good { Ok(()) } else { Err(Error::SIGNATURE_INVALID) }
}

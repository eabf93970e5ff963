// SPDX-License-Identifier: Apache-2.0
//! RSASSA-PKCS1-v1_5 with a hash (PKCS#11 3.2 §6.1.9).

use crate::hashes::{self, DigestScheme};
use crate::rsa::{MAX_BLOCK, PKCS1_OVERHEAD, SIZES, prepared};
use metaslot_awslc::digest::{Hash, MAX_LENGTH};
use metaslot_awslc::rsa::RsaPadding;
use metaslot_ck::*;
use metaslot_engine::provider::{Algorithm, Direction, Signature, SignatureStream, checked};
use metaslot_engine::{Key, Params};
use std::sync::Arc;

const fn row(mechanism: CK_MECHANISM_TYPE, signature: &'static Hashed) -> Algorithm {
    Algorithm {
        mechanism,
        key_sizes: SIZES,
        sign: Some(signature),
        verify: Some(signature),
        ..Algorithm::NONE
    }
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
        hashes::class_fits(direction, key)?;
        let size = prepared(key)?.size();
        let info = prefix(self.0).1 + self.0.length();
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
    fn hash(&self) -> Hash {
        self.0
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

/// The longest `DigestInfo` up to its digest, in bytes.
const MAX_PREFIX: usize = 19;

/// The DER of a `DigestInfo` up to its digest (RFC 8017 §9.2, note 1), and its length.
fn prefix(hash: Hash) -> ([u8; MAX_PREFIX], usize) {
    let nist: [u8; 9] = [0x60, 0x86, 0x48, 0x01, 0x65, 0x03, 0x04, 0x02, last_arc(hash)];
    let oid: &[u8] = match hash {
        Hash::Md5 => &[0x2a, 0x86, 0x48, 0x86, 0xf7, 0x0d, 0x02, 0x05],
        Hash::Sha1 => &[0x2b, 0x0e, 0x03, 0x02, 0x1a],
        _ => &nist,
    };
    let (arcs, digest) = (short(oid.len()), short(hash.length()));
    let mut bytes = [0; MAX_PREFIX];
    bytes[..6].copy_from_slice(&[0x30, arcs + digest + 8, 0x30, arcs + 4, 0x06, arcs]);
    let end = 6 + oid.len();
    bytes[6..end].copy_from_slice(oid);
    bytes[end..end + 4].copy_from_slice(&[0x05, 0x00, 0x04, digest]);
    (bytes, end + 4)
}

/// The last arc of the object identifiers under 2.16.840.1.101.3.4.2.
const fn last_arc(hash: Hash) -> u8 {
    match hash {
        Hash::Md5 | Hash::Sha1 => 0,
        Hash::Sha256 => 1,
        Hash::Sha384 => 2,
        Hash::Sha512 => 3,
        Hash::Sha224 => 4,
        Hash::Sha512_224 => 5,
        Hash::Sha512_256 => 6,
        Hash::Sha3_224 => 7,
        Hash::Sha3_256 => 8,
        Hash::Sha3_384 => 9,
        Hash::Sha3_512 => 10,
    }
}

/// A length that is known to be below 128.
const fn short(length: usize) -> u8 {
    length.to_le_bytes()[0]
}

fn digest_info(hash: Hash, digest: &[u8]) -> ([u8; MAX_PREFIX + MAX_LENGTH], usize) {
    let (head, length) = prefix(hash);
    let mut info = [0; MAX_PREFIX + MAX_LENGTH];
    info[..length].copy_from_slice(&head[..length]);
    let end = length + digest.len();
    info[length..end].copy_from_slice(digest);
    (info, end)
}

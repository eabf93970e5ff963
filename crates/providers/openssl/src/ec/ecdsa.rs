// SPDX-License-Identifier: Apache-2.0
//! ECDSA (PKCS#11 3.2 §6.3.12 and §6.3.13): the signature is r and s, each as long as the order. OpenSSL has it in DER.

use super::prime::{FLAGS, SIZES, prepared};
use crate::hashed::{self, DigestScheme};
use metaslot_ck::*;
use metaslot_openssl_wrapper::digest::Hash;
use metaslot_openssl_wrapper::ec::MAX_SIGNATURE;
use metaslot_spi::der::{Malformed, Node, Reader};
use metaslot_spi::provider::{Algorithm, Direction, Signature, SignatureStream, checked};
use metaslot_spi::{Key, Params};
use std::sync::Arc;

const fn row(mechanism: CK_MECHANISM_TYPE, signature: &'static Ecdsa) -> Algorithm {
    Algorithm { extra_flags: FLAGS, ..Algorithm::signature(mechanism, SIZES, signature) }
}

pub(super) const ROWS: [Algorithm; 10] = checked([
    row(CKM_ECDSA, &Ecdsa(None)),
    row(CKM_ECDSA_SHA1, &Ecdsa(Some(Hash::Sha1))),
    row(CKM_ECDSA_SHA224, &Ecdsa(Some(Hash::Sha224))),
    row(CKM_ECDSA_SHA256, &Ecdsa(Some(Hash::Sha256))),
    row(CKM_ECDSA_SHA384, &Ecdsa(Some(Hash::Sha384))),
    row(CKM_ECDSA_SHA512, &Ecdsa(Some(Hash::Sha512))),
    row(CKM_ECDSA_SHA3_224, &Ecdsa(Some(Hash::Sha3_224))),
    row(CKM_ECDSA_SHA3_256, &Ecdsa(Some(Hash::Sha3_256))),
    row(CKM_ECDSA_SHA3_384, &Ecdsa(Some(Hash::Sha3_384))),
    row(CKM_ECDSA_SHA3_512, &Ecdsa(Some(Hash::Sha3_512))),
]);

fn check(direction: Direction, key: &Key) -> Result<()> {
    key.check_class(direction.signature_class())?;
    prepared(key).map(|_| ())
}

fn length(key: &Key) -> usize {
    prepared(key).map_or(0, |(curve, _)| 2 * curve.order_length())
}

fn sign(key: &Key, digest: &[u8], out: &mut [u8]) -> Result<usize> {
    let ((curve, key), mut der) = (prepared(key)?, [0; MAX_SIGNATURE]);
    let length = key.sign(digest, &mut der).map_err(|_| Error::DEVICE_ERROR)?;
    let out = &mut out[..2 * curve.order_length()];
    split(&der[..length], out).map_err(|Malformed| Error::DEVICE_ERROR)?;
    Ok(out.len())
}

/// Writes the two numbers of a DER signature (RFC 3279 §2.2.3), each as long as half of `out`.
fn split(der: &[u8], out: &mut [u8]) -> std::result::Result<(), Malformed> {
    let mut whole = Reader::new(der);
    let mut numbers = whole.sequence()?;
    whole.end()?;
    let width = out.len() / 2;
    for half in out.chunks_mut(width) {
        let number = numbers.integer()?;
        let zeros = width.checked_sub(number.len()).ok_or(Malformed)?;
        half[..zeros].fill(0);
        half[zeros..].copy_from_slice(number);
    }
    numbers.end()
}

fn verify(key: &Key, digest: &[u8], signature: &[u8]) -> Result<()> {
    let (curve, key) = prepared(key)?;
    // A signature may come shorter, both numbers without the same number of zero bytes in front
    // (PKCS#11 3.2 §6.3.1). Java makes such ones from DER.
    let longest = 2 * curve.order_length();
    if signature.is_empty() || signature.len() > longest || !signature.len().is_multiple_of(2) {
        return Err(Error::SIGNATURE_LEN_RANGE);
    }
    let (r, s) = signature.split_at(signature.len() / 2);
    let der = Node::Sequence(&[Node::Integer(r), Node::Integer(s)]).to_vec();
    key.verify(digest, &der).map_err(|_| Error::SIGNATURE_INVALID)
}

/// With the hash function that comes first, or of a digest of any length, which is cut to the length of the order.
#[derive(Clone, Copy, Debug)]
struct Ecdsa(Option<Hash>);

impl Signature for Ecdsa {
    fn check(&self, direction: Direction, key: &Key, _: &Params) -> Result<()> {
        check(direction, key)
    }

    fn length(&self, key: &Key, _: &Params) -> usize {
        length(key)
    }

    fn sign(&self, key: &Key, _: &Params, data: &[u8], out: &mut [u8]) -> Result<usize> {
        hashed::sign(self, key, data, out)
    }

    fn verify(&self, key: &Key, _: &Params, data: &[u8], signature: &[u8]) -> Result<()> {
        hashed::verify(self, key, data, signature)
    }

    fn start(&self, _: Direction, key: &Arc<Key>, _: &Params) -> Result<Box<dyn SignatureStream>> {
        hashed::start(*self, key)
    }
}

impl DigestScheme for Ecdsa {
    fn hash(&self) -> Option<Hash> {
        self.0
    }

    fn sign_digest(&self, key: &Key, digest: &[u8], out: &mut [u8]) -> Result<usize> {
        sign(key, digest, out)
    }

    fn verify_digest(&self, key: &Key, digest: &[u8], signature: &[u8]) -> Result<()> {
        verify(key, digest, signature)
    }
}

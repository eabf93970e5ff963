// SPDX-License-Identifier: Apache-2.0
//! DSA (PKCS#11 3.2 §6.2): the signature is r and s, each as long as the order.

use crate::failure::device_error;
use crate::field::{Pairs, group, pair_row};
use crate::hashes::{self, DigestScheme};
use metaslot_awslc_wrapper::Failed;
use metaslot_awslc_wrapper::digest::Hash;
use metaslot_awslc_wrapper::dsa;
use metaslot_awslc_wrapper::field::Group;
use metaslot_ck::*;
use metaslot_spi::der::Node;
use metaslot_spi::field_key::{FieldKind, signature_from_der};
use metaslot_spi::provider::{Algorithm, Direction, Signature, SignatureStream, checked};
use metaslot_spi::{Key, Params};
use std::sync::Arc;

/// What the library has, in bits.
const SIZES: (u64, u64) = (512, 8192);

const fn row(mechanism: CK_MECHANISM_TYPE, signature: &'static Dsa) -> Algorithm {
    Algorithm::signature(mechanism, SIZES, signature)
}

pub(crate) const ROWS: [Algorithm; 11] = checked([
    pair_row(CKM_DSA_KEY_PAIR_GEN, &Pairs(CKK_DSA)),
    row(CKM_DSA, &Dsa(None)),
    row(CKM_DSA_SHA1, &Dsa(Some(Hash::Sha1))),
    row(CKM_DSA_SHA224, &Dsa(Some(Hash::Sha224))),
    row(CKM_DSA_SHA256, &Dsa(Some(Hash::Sha256))),
    row(CKM_DSA_SHA384, &Dsa(Some(Hash::Sha384))),
    row(CKM_DSA_SHA512, &Dsa(Some(Hash::Sha512))),
    row(CKM_DSA_SHA3_224, &Dsa(Some(Hash::Sha3_224))),
    row(CKM_DSA_SHA3_256, &Dsa(Some(Hash::Sha3_256))),
    row(CKM_DSA_SHA3_384, &Dsa(Some(Hash::Sha3_384))),
    row(CKM_DSA_SHA3_512, &Dsa(Some(Hash::Sha3_512))),
]);

/// With the hash function that comes first, or of a digest.
#[derive(Clone, Copy, Debug)]
struct Dsa(Option<Hash>);

fn of(key: &Key) -> Result<Group> {
    let kind = FieldKind::of(CKK_DSA).ok_or(Error::KEY_TYPE_INCONSISTENT)?;
    let (_, group) = group(kind, key.attributes()).map_err(|_| Error::KEY_TYPE_INCONSISTENT)?;
    match group.order_bits() {
        // FIPS 186-4 §4.2; the library has no other.
        Some(160 | 224 | 256) => Ok(group),
        _ => Err(Error::KEY_SIZE_RANGE),
    }
}

fn length(key: &Key) -> usize {
    key.bytes(CKA_SUBPRIME).map_or(0, |order| 2 * order.len())
}

fn sign(key: &Key, digest: &[u8], out: &mut [u8]) -> Result<usize> {
    let number = |attribute| key.bytes(attribute).map(Node::Integer);
    let [p, q, g] = [number(CKA_PRIME)?, number(CKA_SUBPRIME)?, number(CKA_BASE)?];
    let private = key.secret(CKA_VALUE)?;
    let public = of(key)?.public(private).map_err(device_error)?;
    let parts = [Node::Integer(&[]), p, q, g, Node::Integer(&public), Node::Integer(private)];
    let parts = Node::Sequence(&parts).to_secret();
    let der = dsa::sign(parts.expose(), digest).map_err(device_error)?;
    let length = length(key);
    signature_from_der(&der, &mut out[..length]).map_err(|_| Error::DEVICE_ERROR)?;
    Ok(length)
}

fn verify(key: &Key, digest: &[u8], signature: &[u8]) -> Result<()> {
    if signature.len() != length(key) {
        return Err(Error::SIGNATURE_LEN_RANGE);
    }
    let verified = of(key)?.verify(key.bytes(CKA_VALUE)?, digest, signature);
    verified.map_err(|Failed| Error::SIGNATURE_INVALID)
}

impl Signature for Dsa {
    fn check(&self, direction: Direction, key: &Key, _: &Params) -> Result<()> {
        key.check_class(direction.signature_class())?;
        of(key).map(drop)
    }

    fn length(&self, key: &Key, _: &Params) -> usize {
        length(key)
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

impl DigestScheme for Dsa {
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

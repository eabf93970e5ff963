// SPDX-License-Identifier: Apache-2.0
//! ECDSA with a hash by the keys of tokens that sign hashes only: the module does both, one after the other.

use crate::keyless::Hash;
use crate::mechanism::Mechanism;
use crate::token::Token;
use metaslot_ck::*;
use metaslot_memory::Secret;
use metaslot_spi::provider::{
    Algorithm, Digest, DigestStream, Direction, Signature, SignatureStream,
};
use metaslot_spi::{Key, Params};
use std::sync::Arc;

/// Signatures, and the hash of each.
const HASHES: [(CK_MECHANISM_TYPE, CK_MECHANISM_TYPE); 9] = [
    (CKM_ECDSA_SHA1, CKM_SHA_1),
    (CKM_ECDSA_SHA224, CKM_SHA224),
    (CKM_ECDSA_SHA256, CKM_SHA256),
    (CKM_ECDSA_SHA384, CKM_SHA384),
    (CKM_ECDSA_SHA512, CKM_SHA512),
    (CKM_ECDSA_SHA3_224, CKM_SHA3_224),
    (CKM_ECDSA_SHA3_256, CKM_SHA3_256),
    (CKM_ECDSA_SHA3_384, CKM_SHA3_384),
    (CKM_ECDSA_SHA3_512, CKM_SHA3_512),
];

/// A signature of what is hashed first.
#[derive(Clone, Copy, Debug)]
struct Hashed {
    hash: Hash,
    ecdsa: Mechanism,
}

/// The rows that a token with these has not, and whose parts it has.
pub(crate) fn rows(
    token: &'static Token,
    mechanisms: &[CK_MECHANISM_TYPE],
    rows: &[Algorithm],
) -> Vec<Algorithm> {
    let Some(ecdsa) = rows.iter().find(|row| row.mechanism == CKM_ECDSA) else { return Vec::new() };
    let is_there = |number| rows.iter().any(|row| row.mechanism == number);
    let row = |(number, hash)| {
        if is_there(number) || token.without.contains(&number) || !mechanisms.contains(&hash) {
            return None;
        }
        let (hash, alone) = (Hash::of(token, hash)?, Mechanism::new(token, CKM_ECDSA));
        let hashed: &'static Hashed = Box::leak(Box::new(Hashed { hash, ecdsa: alone }));
        Some(Algorithm {
            mechanism: number,
            key_sizes: ecdsa.key_sizes,
            sign: ecdsa.sign.map(|_| hashed as _),
            verify: ecdsa.verify.map(|_| hashed as _),
            ..Algorithm::NONE
        })
    };
    HASHES.into_iter().filter_map(row).filter(|row| row.flags() != 0).collect()
}

impl Hashed {
    /// What is signed: of a hash longer than the order of the curve its first bytes (PKCS#11 3.2 §6.3.12).
    fn signed<'a>(&self, key: &Key, digest: &'a [u8]) -> &'a [u8] {
        &digest[..digest.len().min(self.length(key, &Params::None) / 2)]
    }

    fn digest(&self, data: &[u8]) -> Result<Vec<u8>> {
        let mut digest = vec![0; self.hash.length()];
        self.hash.digest(data, &mut digest)?;
        Ok(digest)
    }
}

impl Signature for Hashed {
    fn check(&self, direction: Direction, key: &Key, params: &Params) -> Result<()> {
        self.ecdsa.check(direction, key, params)
    }

    fn length(&self, key: &Key, params: &Params) -> usize {
        Signature::length(&self.ecdsa, key, params)
    }

    fn sign(&self, key: &Key, params: &Params, data: &[u8], out: &mut [u8]) -> Result<usize> {
        self.ecdsa.sign(key, params, self.signed(key, &self.digest(data)?), out)
    }

    fn verify(&self, key: &Key, params: &Params, data: &[u8], signature: &[u8]) -> Result<()> {
        self.ecdsa.verify(key, params, self.signed(key, &self.digest(data)?), signature)
    }

    fn start(&self, _: Direction, key: &Arc<Key>, _: &Params) -> Result<Box<dyn SignatureStream>> {
        let pin = self.ecdsa.token.pin_for(key)?;
        let digest = self.hash.start()?;
        Ok(Box::new(Run { hashed: *self, digest, pin, key: Arc::clone(key) }))
    }
}

/// One in the middle.
#[derive(Debug)]
struct Run {
    hashed: Hashed,
    digest: Box<dyn DigestStream>,
    pin: Option<Secret>,
    key: Arc<Key>,
}

impl Run {
    fn finished(&mut self) -> Result<Vec<u8>> {
        let mut digest = vec![0; self.hashed.hash.length()];
        self.digest.finish(&mut digest)?;
        Ok(digest)
    }
}

impl SignatureStream for Run {
    fn update(&mut self, data: &[u8]) -> Result<()> {
        self.digest.update(data)
    }

    fn sign(&mut self, out: &mut [u8]) -> Result<usize> {
        let digest = self.finished()?;
        let signed = self.hashed.signed(&self.key, &digest);
        self.hashed.ecdsa.sign_by(self.pin.as_ref(), &self.key, &Params::None, signed, out)
    }

    fn verify(&mut self, signature: &[u8]) -> Result<()> {
        let digest = self.finished()?;
        let signed = self.hashed.signed(&self.key, &digest);
        self.hashed.ecdsa.verify(&self.key, &Params::None, signed, signature)
    }
}

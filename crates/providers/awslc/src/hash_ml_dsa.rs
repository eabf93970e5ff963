// SPDX-License-Identifier: Apache-2.0
//! HashML-DSA (FIPS 204 §5.4; PKCS#11 3.2 §6.67.6 and §6.67.7): what is signed is a digest and the name of its hash function.
//!
//! Functions weaker than a parameter set are taken with it: that is policy.

use crate::failure::device_error;
use crate::ml_dsa::{self, Begun, SIZES, length};
use metaslot_awslc_wrapper::Failed;
use metaslot_awslc_wrapper::digest::Hash;
use metaslot_awslc_wrapper::prehash::{Function, Hashing, LONGEST};
use metaslot_awslc_wrapper::shake;
use metaslot_ck::*;
use metaslot_spi::parts::{self, Begun as _};
use metaslot_spi::provider::{Algorithm, Direction, Signature, SignatureStream, checked};
use metaslot_spi::{Key, Params};
use std::sync::Arc;

const fn row(mechanism: CK_MECHANISM_TYPE, signature: &'static dyn Signature) -> Algorithm {
    Algorithm::signature(mechanism, SIZES, signature)
}

pub(crate) const ROWS: [Algorithm; 11] = checked([
    row(CKM_HASH_ML_DSA, &Digested),
    row(CKM_HASH_ML_DSA_SHA224, &Hashed(Function::Hash(Hash::Sha224))),
    row(CKM_HASH_ML_DSA_SHA256, &Hashed(Function::Hash(Hash::Sha256))),
    row(CKM_HASH_ML_DSA_SHA384, &Hashed(Function::Hash(Hash::Sha384))),
    row(CKM_HASH_ML_DSA_SHA512, &Hashed(Function::Hash(Hash::Sha512))),
    row(CKM_HASH_ML_DSA_SHA3_224, &Hashed(Function::Hash(Hash::Sha3_224))),
    row(CKM_HASH_ML_DSA_SHA3_256, &Hashed(Function::Hash(Hash::Sha3_256))),
    row(CKM_HASH_ML_DSA_SHA3_384, &Hashed(Function::Hash(Hash::Sha3_384))),
    row(CKM_HASH_ML_DSA_SHA3_512, &Hashed(Function::Hash(Hash::Sha3_512))),
    row(CKM_HASH_ML_DSA_SHAKE128, &Hashed(Function::Shake(shake::Function::Shake128))),
    row(CKM_HASH_ML_DSA_SHAKE256, &Hashed(Function::Shake(shake::Function::Shake256))),
]);

/// Adds a digest and its function's name to µ.
fn add(function: Function, mu: &mut Begun, digest: &[u8]) -> Result<()> {
    mu.update(&function.identifier().ok_or(Error::MECHANISM_PARAM_INVALID)?)?;
    mu.update(digest)
}

/// `CKM_HASH_ML_DSA`: the data is a digest, and the parameter says of which function.
#[derive(Debug)]
struct Digested;

impl Digested {
    fn function(params: &Params) -> Result<Function> {
        let Params::HashSignContext { hash, .. } = params else {
            return Err(Error::MECHANISM_PARAM_INVALID);
        };
        let function = crate::digest::hash(*hash).map(Function::Hash);
        function.filter(|it| it.identifier().is_some()).ok_or(Error::MECHANISM_PARAM_INVALID)
    }

    fn mu(direction: Direction, key: &Key, params: &Params, digest: &[u8]) -> Result<Begun> {
        let function = Self::function(params)?;
        if digest.len() != function.length() {
            return Err(Error::DATA_LEN_RANGE);
        }
        let mut mu = Begun::new(key, params.signing(direction)?, true)?;
        add(function, &mut mu, digest)?;
        Ok(mu)
    }
}

impl Signature for Digested {
    fn check(&self, direction: Direction, key: &Key, params: &Params) -> Result<()> {
        Self::function(params)?;
        ml_dsa::check(direction, key, params)
    }

    fn length(&self, key: &Key, _: &Params) -> usize {
        length(key)
    }

    fn sign(&self, key: &Key, params: &Params, data: &[u8], out: &mut [u8]) -> Result<usize> {
        Self::mu(Direction::Forward, key, params, data)?.sign(key, out)
    }

    fn verify(&self, key: &Key, params: &Params, data: &[u8], signature: &[u8]) -> Result<()> {
        Self::mu(Direction::Backward, key, params, data)?.verify(key, signature)
    }
}

/// `CKM_HASH_ML_DSA_…`: the data is a message.
#[derive(Debug)]
struct Hashed(Function);

impl Signature for Hashed {
    fn check(&self, direction: Direction, key: &Key, params: &Params) -> Result<()> {
        ml_dsa::check(direction, key, params)
    }

    fn length(&self, key: &Key, _: &Params) -> usize {
        length(key)
    }

    fn sign(&self, key: &Key, params: &Params, data: &[u8], out: &mut [u8]) -> Result<usize> {
        Message::new(self.0, Direction::Forward, key, params)?.sign_all(key, data, out)
    }

    fn verify(&self, key: &Key, params: &Params, data: &[u8], signature: &[u8]) -> Result<()> {
        Message::new(self.0, Direction::Backward, key, params)?.verify_all(key, data, signature)
    }

    fn start(
        &self,
        direction: Direction,
        key: &Arc<Key>,
        params: &Params,
    ) -> Result<Box<dyn SignatureStream>> {
        Ok(parts::stream(key, Message::new(self.0, direction, key, params)?))
    }
}

/// µ and the digest that it ends with, in the middle.
#[derive(Debug)]
struct Message {
    function: Function,
    hashing: Hashing,
    mu: Begun,
}

impl Message {
    fn new(function: Function, direction: Direction, key: &Key, params: &Params) -> Result<Self> {
        let mu = Begun::new(key, params.signing(direction)?, true)?;
        let hashing = Hashing::new(function).map_err(|Failed| Error::DEVICE_MEMORY)?;
        Ok(Self { function, hashing, mu })
    }

    fn finish(self) -> Result<Begun> {
        let Self { function, hashing, mut mu } = self;
        let mut digest = [0; LONGEST];
        let digest = &mut digest[..function.length()];
        hashing.finish(digest).map_err(device_error)?;
        add(function, &mut mu, digest)?;
        Ok(mu)
    }
}

impl parts::Begun for Message {
    fn update(&mut self, data: &[u8]) -> Result<()> {
        self.hashing.update(data).map_err(device_error)
    }

    fn sign(self, key: &Key, out: &mut [u8]) -> Result<usize> {
        self.finish()?.sign(key, out)
    }

    fn verify(self, key: &Key, signature: &[u8]) -> Result<()> {
        self.finish()?.verify(key, signature)
    }
}

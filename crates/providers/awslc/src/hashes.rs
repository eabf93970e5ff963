// SPDX-License-Identifier: Apache-2.0
//! The hash functions by the standard's numbers, and signatures over a digest as streams.

use metaslot_awslc_wrapper::digest::{self, Hash, MAX_LENGTH};
use metaslot_ck::*;
use metaslot_spi::provider::SignatureStream;
use metaslot_spi::{Key, hashes};
use std::fmt::Debug;
use std::sync::Arc;

/// The function under a mask generation function (PKCS#11 3.2 §6.1.7).
pub(crate) fn by_mgf(mgf: u64) -> Option<Hash> {
    hashes::of_mgf(mgf).and_then(crate::digest::hash)
}

/// A signature over a digest, with all its parameters.
pub(crate) trait DigestScheme: Debug + Send + 'static {
    /// What makes the digest.
    fn hash(&self) -> Hash;

    /// Signs a digest of [`Self::hash`].
    fn sign_digest(&self, key: &Key, digest: &[u8], out: &mut [u8]) -> Result<usize>;

    /// Checks the signature of a digest of [`Self::hash`].
    fn verify_digest(&self, key: &Key, digest: &[u8], signature: &[u8]) -> Result<()>;
}

/// Hashes and signs in one call.
pub(crate) fn sign(
    scheme: &impl DigestScheme,
    key: &Key,
    data: &[u8],
    out: &mut [u8],
) -> Result<usize> {
    let (digest, length) = digest_of(scheme.hash(), data)?;
    scheme.sign_digest(key, &digest[..length], out)
}

/// Hashes and verifies in one call.
pub(crate) fn verify(
    scheme: &impl DigestScheme,
    key: &Key,
    data: &[u8],
    signature: &[u8],
) -> Result<()> {
    let (digest, length) = digest_of(scheme.hash(), data)?;
    scheme.verify_digest(key, &digest[..length], signature)
}

fn digest_of(hash: Hash, data: &[u8]) -> Result<([u8; MAX_LENGTH], usize)> {
    let mut digest = [0; MAX_LENGTH];
    let length = hash.length();
    hash.digest(data, &mut digest[..length]).map_err(|_| Error::DEVICE_ERROR)?;
    Ok((digest, length))
}

/// A signature in the middle: a hash, and the key for the end.
#[derive(Debug)]
struct Stream<S> {
    scheme: S,
    key: Arc<Key>,
    hash: digest::Stream,
}

/// Begins a multi-part signature or verification.
pub(crate) fn start(scheme: impl DigestScheme, key: &Arc<Key>) -> Result<Box<dyn SignatureStream>> {
    let hash = digest::Stream::new(scheme.hash()).map_err(|_| Error::DEVICE_MEMORY)?;
    Ok(Box::new(Stream { scheme, key: Arc::clone(key), hash }))
}

impl<S: DigestScheme> Stream<S> {
    fn digest(&mut self) -> Result<([u8; MAX_LENGTH], usize)> {
        let mut digest = [0; MAX_LENGTH];
        let length = self.scheme.hash().length();
        self.hash.finish(&mut digest[..length]).map_err(|_| Error::DEVICE_ERROR)?;
        Ok((digest, length))
    }
}

impl<S: DigestScheme> SignatureStream for Stream<S> {
    fn update(&mut self, data: &[u8]) -> Result<()> {
        self.hash.update(data).map_err(|_| Error::DEVICE_ERROR)
    }

    fn sign(&mut self, out: &mut [u8]) -> Result<usize> {
        let (digest, length) = self.digest()?;
        self.scheme.sign_digest(&self.key, &digest[..length], out)
    }

    fn verify(&mut self, signature: &[u8]) -> Result<()> {
        let (digest, length) = self.digest()?;
        self.scheme.verify_digest(&self.key, &digest[..length], signature)
    }
}

// SPDX-License-Identifier: Apache-2.0
//! Signatures over a digest, in one call and as streams.

use crate::failure::device_error;
use metaslot_ck::*;
use metaslot_openssl_wrapper::digest::{self, Hash, MAX_LENGTH};
use metaslot_spi::Key;
use metaslot_spi::provider::SignatureStream;
use std::fmt::Debug;
use std::sync::Arc;

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
    hash.digest(data, &mut digest[..length]).map_err(device_error)?;
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
    let hash = digest::Stream::new(scheme.hash()).map_err(device_error)?;
    Ok(Box::new(Stream { scheme, key: Arc::clone(key), hash }))
}

impl<S: DigestScheme> Stream<S> {
    fn digest(&mut self) -> Result<([u8; MAX_LENGTH], usize)> {
        let mut digest = [0; MAX_LENGTH];
        let length = self.scheme.hash().length();
        self.hash.finish(&mut digest[..length]).map_err(device_error)?;
        Ok((digest, length))
    }
}

impl<S: DigestScheme> SignatureStream for Stream<S> {
    fn update(&mut self, data: &[u8]) -> Result<()> {
        self.hash.update(data).map_err(device_error)
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

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
    /// What makes the digest, unless it is the data.
    fn hash(&self) -> Option<Hash>;

    /// Signs a digest.
    fn sign_digest(&self, key: &Key, digest: &[u8], out: &mut [u8]) -> Result<usize>;

    /// Checks the signature of a digest.
    fn verify_digest(&self, key: &Key, digest: &[u8], signature: &[u8]) -> Result<()>;
}

/// Signs in one call.
pub(crate) fn sign(
    scheme: &impl DigestScheme,
    key: &Key,
    data: &[u8],
    out: &mut [u8],
) -> Result<usize> {
    let mut room = [0; MAX_LENGTH];
    scheme.sign_digest(key, digest_of(scheme.hash(), data, &mut room)?, out)
}

/// Verifies in one call.
pub(crate) fn verify(
    scheme: &impl DigestScheme,
    key: &Key,
    data: &[u8],
    signature: &[u8],
) -> Result<()> {
    let mut room = [0; MAX_LENGTH];
    scheme.verify_digest(key, digest_of(scheme.hash(), data, &mut room)?, signature)
}

fn digest_of<'a>(
    hash: Option<Hash>,
    data: &'a [u8],
    room: &'a mut [u8; MAX_LENGTH],
) -> Result<&'a [u8]> {
    let Some(hash) = hash else {
        return if data.is_empty() { Err(Error::DATA_LEN_RANGE) } else { Ok(data) };
    };
    let digest = &mut room[..hash.length()];
    hash.digest(data, digest).map_err(device_error)?;
    Ok(digest)
}

/// A signature in the middle: a hash, and the key for the end.
#[derive(Debug)]
struct Stream<S> {
    scheme: S,
    key: Arc<Key>,
    length: usize,
    hash: digest::Stream,
}

/// Begins a multi-part signature or verification.
pub(crate) fn start(scheme: impl DigestScheme, key: &Arc<Key>) -> Result<Box<dyn SignatureStream>> {
    let function = scheme.hash().ok_or(Error::FUNCTION_NOT_SUPPORTED)?;
    let hash = digest::Stream::new(function).map_err(device_error)?;
    Ok(Box::new(Stream { scheme, key: Arc::clone(key), length: function.length(), hash }))
}

impl<S: DigestScheme> Stream<S> {
    fn digest<'a>(&mut self, room: &'a mut [u8; MAX_LENGTH]) -> Result<&'a [u8]> {
        let digest = &mut room[..self.length];
        self.hash.finish(digest).map_err(device_error)?;
        Ok(digest)
    }
}

impl<S: DigestScheme> SignatureStream for Stream<S> {
    fn update(&mut self, data: &[u8]) -> Result<()> {
        self.hash.update(data).map_err(device_error)
    }

    fn sign(&mut self, out: &mut [u8]) -> Result<usize> {
        let mut room = [0; MAX_LENGTH];
        let digest = self.digest(&mut room)?;
        self.scheme.sign_digest(&self.key, digest, out)
    }

    fn verify(&mut self, signature: &[u8]) -> Result<()> {
        let mut room = [0; MAX_LENGTH];
        let digest = self.digest(&mut room)?;
        self.scheme.verify_digest(&self.key, digest, signature)
    }
}

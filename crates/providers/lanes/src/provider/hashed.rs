// SPDX-License-Identifier: Apache-2.0
//! Signatures over a digest of the message: the digest, in one call or in parts.

use super::device_error;
use metaslot_awslc_wrapper::digest::{self, Hash, MAX_LENGTH};
use metaslot_ck::{Error, Result};
use metaslot_spi::Key;
use metaslot_spi::provider::SignatureStream;
use smallvec::SmallVec;
use std::fmt::Debug;
use std::sync::Arc;

pub(super) type Digest = SmallVec<[u8; MAX_LENGTH]>;

pub(super) fn digest_of(hash: Hash, data: &[u8]) -> Result<Digest> {
    let mut digest = Digest::from_elem(0, hash.length());
    hash.digest(data, &mut digest).map_err(device_error)?;
    Ok(digest)
}

/// A signature over a digest, with all its parameters.
pub(super) trait DigestScheme: Debug + Send + 'static {
    /// Signs it.
    fn sign_digest(&self, key: &Key, digest: Digest, out: &mut [u8]) -> Result<usize>;

    /// Checks its signature.
    fn verify_digest(&self, _: &Key, _: Digest, _: &[u8]) -> Result<()> {
        Err(Error::GENERAL_ERROR)
    }
}

/// Begins with a multi-part message.
pub(super) fn start(
    scheme: impl DigestScheme,
    hash: Hash,
    key: &Arc<Key>,
) -> Result<Box<dyn SignatureStream>> {
    let stream = digest::Stream::new(hash).map_err(|_| Error::DEVICE_MEMORY)?;
    Ok(Box::new(Stream { scheme, key: Arc::clone(key), length: hash.length(), hash: stream }))
}

/// A multi-part message.
#[derive(Debug)]
struct Stream<S> {
    scheme: S,
    key: Arc<Key>,
    length: usize,
    hash: digest::Stream,
}

impl<S> Stream<S> {
    fn digest(&mut self) -> Result<Digest> {
        let mut digest = Digest::from_elem(0, self.length);
        self.hash.finish(&mut digest).map_err(device_error)?;
        Ok(digest)
    }
}

impl<S: DigestScheme> SignatureStream for Stream<S> {
    fn update(&mut self, data: &[u8]) -> Result<()> {
        self.hash.update(data).map_err(device_error)
    }

    fn sign(&mut self, out: &mut [u8]) -> Result<usize> {
        let digest = self.digest()?;
        self.scheme.sign_digest(&self.key, digest, out)
    }

    fn verify(&mut self, signature: &[u8]) -> Result<()> {
        let digest = self.digest()?;
        self.scheme.verify_digest(&self.key, digest, signature)
    }
}

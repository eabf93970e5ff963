// SPDX-License-Identifier: Apache-2.0
//! Signatures in parts whose end uses up what was begun.

use crate::Key;
use crate::provider::SignatureStream;
use metaslot_ck::{Error, Result};
use std::sync::Arc;

/// A signature or a verification in the middle.
pub trait Begun: Send + 'static {
    /// As [`SignatureStream::update`].
    ///
    /// # Errors
    /// As there.
    fn update(&mut self, data: &[u8]) -> Result<()>;

    /// As [`SignatureStream::sign`], with the key that it was begun with.
    ///
    /// # Errors
    /// As there.
    fn sign(self, key: &Key, out: &mut [u8]) -> Result<usize>;

    /// As [`SignatureStream::verify`], with the key that it was begun with.
    ///
    /// # Errors
    /// As there.
    fn verify(self, key: &Key, signature: &[u8]) -> Result<()>;

    /// Signs where all data comes at once.
    ///
    /// # Errors
    /// As [`Self::update`] and [`Self::sign`].
    fn sign_all(mut self, key: &Key, data: &[u8], out: &mut [u8]) -> Result<usize>
    where
        Self: Sized,
    {
        self.update(data)?;
        self.sign(key, out)
    }

    /// Verifies where all data comes at once.
    ///
    /// # Errors
    /// As [`Self::update`] and [`Self::verify`].
    fn verify_all(mut self, key: &Key, data: &[u8], signature: &[u8]) -> Result<()>
    where
        Self: Sized,
    {
        self.update(data)?;
        self.verify(key, signature)
    }
}

/// What was begun with a key, for its parts.
pub fn stream(key: &Arc<Key>, begun: impl Begun) -> Box<dyn SignatureStream> {
    Box::new(Parts { key: Arc::clone(key), begun: Some(begun) })
}

struct Parts<B> {
    key: Arc<Key>,
    /// Until it is used up.
    begun: Option<B>,
}

impl<B> Parts<B> {
    fn take(&mut self) -> Result<B> {
        self.begun.take().ok_or(Error::OPERATION_NOT_INITIALIZED)
    }
}

impl<B: Begun> SignatureStream for Parts<B> {
    fn update(&mut self, data: &[u8]) -> Result<()> {
        self.begun.as_mut().ok_or(Error::OPERATION_NOT_INITIALIZED)?.update(data)
    }

    fn sign(&mut self, out: &mut [u8]) -> Result<usize> {
        self.take()?.sign(&self.key, out)
    }

    fn verify(&mut self, signature: &[u8]) -> Result<()> {
        self.take()?.verify(&self.key, signature)
    }
}

// SPDX-License-Identifier: Apache-2.0
//! Key encapsulation: ML-KEM.

use crate::failure::{Failure, Result};
use crate::key::Key;
use crate::kind::Does;
use crate::operation::{Operation, key_of, passing_by, taken};
use crate::provider::Provider;
use metaslot_ck::*;
use metaslot_client::Mechanism;
use std::sync::Arc;

/// Length of the secret of every ML-KEM (FIPS 203).
pub(crate) const SECRET: usize = 32;

/// What encapsulates and decapsulates.
pub(crate) trait Encapsulates: Operation {
    /// Of a ciphertext and of a secret.
    fn lengths(&self) -> Result<(usize, usize)>;
    /// A ciphertext and its secret.
    fn encapsulate(&self) -> Result<(Vec<u8>, Vec<u8>)>;
    /// The secret of a ciphertext.
    fn decapsulate(&self, ciphertext: &[u8]) -> Result<Vec<u8>>;
}

/// One that is being used.
#[derive(Clone, Debug)]
pub(crate) struct Kem {
    provider: Arc<Provider>,
    key: Option<Arc<Key>>,
}

impl Operation for Kem {
    fn new(provider: Arc<Provider>) -> Self {
        Self { provider, key: None }
    }

    fn provider(&self) -> &Arc<Provider> {
        &self.provider
    }

    fn copy(&self) -> Result<Self> {
        Ok(self.clone())
    }
}

impl Kem {
    pub(crate) fn begin(&mut self, key: Option<Arc<Key>>) -> Result<()> {
        let does = |key: &Arc<Key>| {
            key.kind.number().is_some_and(|number| number.does == Does::Encapsulate)
        };
        let key =
            key.filter(does).ok_or_else(|| Failure::unsupported("only ML-KEM encapsulates"))?;
        self.key = Some(key);
        Ok(())
    }

    fn key(&self) -> Result<&Arc<Key>> {
        key_of(self.key.as_ref())
    }
}

impl Encapsulates for Kem {
    fn lengths(&self) -> Result<(usize, usize)> {
        self.key().map(|key| (key.answer_length(), SECRET))
    }

    fn encapsulate(&self) -> Result<(Vec<u8>, Vec<u8>)> {
        let key = self.key()?;
        key.with_public("encapsulate", |lease, handle| {
            let template = passing_by(key, SECRET);
            let made = lease.encapsulate(&Mechanism::new(CKM_ML_KEM), handle, &template);
            let (ciphertext, secret) = made?;
            Ok((ciphertext, taken(lease, secret)?))
        })
    }

    fn decapsulate(&self, ciphertext: &[u8]) -> Result<Vec<u8>> {
        let key = self.key()?;
        key.with_private("decapsulate", |lease, handle| {
            let mechanism = Mechanism::new(CKM_ML_KEM);
            let template = passing_by(key, SECRET);
            taken(lease, lease.decapsulate(&mechanism, handle, ciphertext, &template)?)
        })
    }
}

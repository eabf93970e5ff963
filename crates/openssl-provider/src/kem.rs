// SPDX-License-Identifier: Apache-2.0
//! Key encapsulation: ML-KEM.

use crate::failure::{Failure, Result};
use crate::host::Lease;
use crate::key::Key;
use crate::kind::Does;
use crate::provider::Provider;
use metaslot_ck::*;
use metaslot_client::{Mechanism, Template};
use std::sync::Arc;

/// Length of the secret of every ML-KEM (FIPS 203).
pub(crate) const SECRET: usize = 32;

/// One that is being used.
#[derive(Clone, Debug)]
pub(crate) struct Kem {
    pub(crate) provider: Arc<Provider>,
    key: Option<Arc<Key>>,
}

impl Kem {
    pub(crate) const fn new(provider: Arc<Provider>) -> Self {
        Self { provider, key: None }
    }

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
        self.key.as_ref().ok_or_else(|| Failure::input("there is no key"))
    }

    /// Length of the ciphertext.
    pub(crate) fn length(&self) -> Result<usize> {
        self.key().map(|key| key.answer_length())
    }

    /// A ciphertext and its secret.
    pub(crate) fn encapsulate(&self) -> Result<(Vec<u8>, Vec<u8>)> {
        self.key()?.with_public("encapsulate", |lease, handle| {
            let made = lease.encapsulate(&Mechanism::new(CKM_ML_KEM), handle, &template());
            let (ciphertext, secret) = made?;
            Ok((ciphertext, value(lease, secret)?))
        })
    }

    /// The secret of a ciphertext.
    pub(crate) fn decapsulate(&self, ciphertext: &[u8]) -> Result<Vec<u8>> {
        let key = self.key()?;
        key.with_private("decapsulate", |lease, handle| {
            let mechanism = Mechanism::new(CKM_ML_KEM);
            value(lease, lease.decapsulate(&mechanism, handle, ciphertext, &template())?)
        })
    }
}

/// What the secret is, in the token: there for a moment, and readable.
fn template() -> Template {
    Template::new()
        .class(CKO_SECRET_KEY)
        .key_type(CKK_GENERIC_SECRET)
        .token(false)
        .bool(CKA_SENSITIVE, false)
        .bool(CKA_EXTRACTABLE, true)
        .ulong(CKA_VALUE_LEN, SECRET as CK_ULONG)
}

/// Takes a secret out of the token.
fn value(lease: &Lease, secret: ObjectHandle) -> metaslot_client::Result<Vec<u8>> {
    let value = lease.attribute(secret, CKA_VALUE);
    lease.destroy(secret).ok();
    value
}

// SPDX-License-Identifier: Apache-2.0
//! Key agreement: ECDH, X25519 and X448.

use crate::abi::{Given, Params};
use crate::failure::{Failure, Result};
use crate::key::Key;
use crate::operation::{Operation, key_of, passing, taken};
use crate::provider::Provider;
use crate::public::Public;
use metaslot_ck::*;
use metaslot_client::{Mechanism, Params as Parameter};
use std::sync::Arc;

/// One that is being used.
#[derive(Clone, Debug)]
pub(crate) struct Exchange {
    provider: Arc<Provider>,
    key: Option<Arc<Key>>,
    peer: Option<Arc<Key>>,
}

impl Operation for Exchange {
    fn new(provider: Arc<Provider>) -> Self {
        Self { provider, key: None, peer: None }
    }

    fn provider(&self) -> &Arc<Provider> {
        &self.provider
    }

    fn copy(&self) -> Result<Self> {
        Ok(self.clone())
    }

    /// Whether it is what is offered here: the secret itself, by no key derivation function.
    fn set(&mut self, params: &Params) -> Result<()> {
        let kdf = params.find(c"kdf-type").and_then(Given::text).unwrap_or_default();
        let cofactor = params.find(c"ecdh-cofactor-mode").and_then(Given::number).unwrap_or(-1);
        if kdf.is_empty() && cofactor < 1 {
            return Ok(());
        }
        Err(Failure::unsupported("key derivation functions and cofactors are not supported"))
    }
}

impl Exchange {
    pub(crate) fn begin(&mut self, key: Option<Arc<Key>>) -> Result<()> {
        self.key = Some(Arc::clone(key_of(key.as_ref())?));
        Ok(())
    }

    pub(crate) fn with(&mut self, peer: Option<Arc<Key>>) -> Result<()> {
        let same = |peer: &Arc<Key>| {
            self.key.as_ref().is_some_and(|key| match (&key.public, &peer.public) {
                (Public::Ec { curve, .. }, Public::Ec { curve: other, .. }) => curve == other,
                _ => key.kind.name == peer.kind.name,
            })
        };
        let peer = peer.filter(same);
        self.peer = Some(peer.ok_or_else(|| Failure::input("the peer's key is of another curve"))?);
        Ok(())
    }

    /// Length of the secret.
    pub(crate) fn length(&self) -> Result<usize> {
        let key = key_of(self.key.as_ref())?;
        Ok(match &key.public {
            Public::Ec { curve, .. } => curve.length(),
            _ => key.answer_length(),
        })
    }

    /// The secret.
    pub(crate) fn derive(&self) -> Result<Vec<u8>> {
        let (Some(key), Some(peer)) = (&self.key, &self.peer) else {
            return Err(Failure::input("a key or the peer's key is missing"));
        };
        let (Public::Ec { point: public, .. } | Public::Number(public)) = &peer.public else {
            return Err(Failure::unsupported("such keys do not agree"));
        };
        let length = self.length()?;
        let params = Parameter::Ecdh1 { kdf: CKD_NULL, shared: &[], public };
        let template = passing(length);
        key.with_private("agree", |lease, handle| {
            let mechanism = Mechanism::with(CKM_ECDH1_DERIVE, params);
            taken(lease, lease.derive(&mechanism, handle, &template)?)
        })
    }
}

// SPDX-License-Identifier: Apache-2.0
//! What the contexts of all operations have in common.

use crate::abi::{Answer, Params};
use crate::failure::{Failure, Result};
use crate::host::Lease;
use crate::key::Key;
use crate::provider::Provider;
use metaslot_ck::*;
use metaslot_client::Template;
use std::sync::Arc;

/// One that is being used.
pub(crate) trait Operation: Sized {
    fn new(provider: Arc<Provider>) -> Self;
    fn provider(&self) -> &Arc<Provider>;
    /// Another one, which goes on for itself.
    fn copy(&self) -> Result<Self>;

    /// Takes parameters by libcrypto's names.
    fn set(&mut self, _params: &Params) -> Result<()> {
        Ok(())
    }

    /// What it says of itself by libcrypto's name.
    fn answer(&self, _name: &[u8], _wants_text: bool) -> Option<Answer<'_>> {
        None
    }
}

/// The key that an operation has.
pub(crate) fn key_of(key: Option<&Arc<Key>>) -> Result<&Arc<Key>> {
    key.ok_or_else(|| Failure::input("there is no key"))
}

/// A secret in the token, there for a moment and readable.
pub(crate) fn passing(length: usize) -> Template {
    Template::new()
        .class(CKO_SECRET_KEY)
        .key_type(CKK_GENERIC_SECRET)
        .token(false)
        .bool(CKA_SENSITIVE, false)
        .bool(CKA_EXTRACTABLE, true)
        .ulong(CKA_VALUE_LEN, length as CK_ULONG)
}

/// Such a secret that comes of a key; of one that wants no login, it wants none either.
pub(crate) fn passing_by(key: &Key, length: usize) -> Template {
    let template = passing(length);
    if key.uri().is_some() { template } else { template.bool(CKA_PRIVATE, false) }
}

/// Takes such a secret out of the token.
pub(crate) fn taken(lease: &Lease, secret: ObjectHandle) -> metaslot_client::Result<Vec<u8>> {
    let value = lease.attribute(secret, CKA_VALUE);
    lease.destroy(secret).ok();
    value
}

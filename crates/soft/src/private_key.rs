// SPDX-License-Identifier: Apache-2.0
//! Keys that come from outside, by class and key type.

use crate::{ec, rsa, secret_key};
use metaslot_ck::*;
use metaslot_engine::{Key, NewObject};
use metaslot_memory::Secret;

/// As `Provider::complete`.
pub(crate) fn complete(object: &mut NewObject) -> Result<()> {
    let class = object.attributes.ulong(CKA_CLASS).ok_or(Error::TEMPLATE_INCOMPLETE)?;
    let key_type = object.attributes.ulong(CKA_KEY_TYPE).ok_or(Error::TEMPLATE_INCOMPLETE)?;
    match (class, key_type) {
        (CKO_SECRET_KEY, _) => secret_key::complete(object),
        (CKO_PUBLIC_KEY, CKK_RSA) => rsa::complete_public(object),
        (CKO_PRIVATE_KEY, CKK_RSA) => rsa::complete_private(object),
        (CKO_PUBLIC_KEY, CKK_EC) => ec::complete_public(object),
        (CKO_PRIVATE_KEY, CKK_EC) => ec::complete_private(object),
        _ => Err(Error::TEMPLATE_INCONSISTENT),
    }
}

/// As `Provider::encode_private_key`.
pub(crate) fn encode(_key: &Key) -> Result<Secret> {
    Err(Error::KEY_NOT_WRAPPABLE)
}

/// As `Provider::decode_private_key`.
pub(crate) fn decode(_der: &[u8]) -> Result<NewObject> {
    Err(Error::WRAPPED_KEY_INVALID)
}

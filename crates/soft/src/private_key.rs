// SPDX-License-Identifier: Apache-2.0
//! Keys that come from outside: completed, and as PKCS#8 (PKCS#11 3.2 §6.7).

use metaslot_ck::{Error, Result};
use metaslot_engine::{Key, NewObject};
use metaslot_memory::Secret;

/// As `Provider::complete`.
pub(crate) fn complete(_key: &mut NewObject) -> Result<()> {
    Ok(())
}

/// As `Provider::encode_private_key`.
pub(crate) fn encode(_key: &Key) -> Result<Secret> {
    Err(Error::KEY_NOT_WRAPPABLE)
}

/// As `Provider::decode_private_key`.
pub(crate) fn decode(_der: &[u8]) -> Result<NewObject> {
    Err(Error::WRAPPED_KEY_INVALID)
}

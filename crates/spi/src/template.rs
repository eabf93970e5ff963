// SPDX-License-Identifier: Apache-2.0
//! Templates as the caller wrote them.

use metaslot_ck::{CK_ATTRIBUTE_TYPE, Error, Result};
use metaslot_memory::Secret;

/// What a caller gave, in its order: owned, untyped.
pub type Template = Vec<(CK_ATTRIBUTE_TYPE, RawValue)>;

/// One value before its type is known.
#[derive(Debug)]
pub enum RawValue {
    /// Plain bytes.
    Bytes(Vec<u8>),
    /// Bytes of an attribute that can hold a secret (`CKA_VALUE`, `CKA_PRIVATE_EXPONENT`, …).
    Secret(Secret),
    /// An array of attributes.
    Template(Template),
}

impl RawValue {
    /// The bytes of a value that is no template.
    ///
    /// # Errors
    /// `CKR_ATTRIBUTE_VALUE_INVALID`
    pub fn bytes(&self) -> Result<&[u8]> {
        match self {
            Self::Bytes(bytes) => Ok(bytes),
            Self::Secret(secret) => Ok(secret.expose()),
            Self::Template(_) => Err(Error::ATTRIBUTE_VALUE_INVALID),
        }
    }
}

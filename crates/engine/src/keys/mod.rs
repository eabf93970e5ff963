// SPDX-License-Identifier: Apache-2.0
//! Key management functions (PKCS#11 3.2 §5.18).

mod derive;
mod encapsulate;
mod generate;
mod home;
mod public;
mod unwrap;
mod wrap;

pub use wrap::Apart;

use crate::engine::Engine;
use metaslot_ck::*;
use metaslot_memory::Secret;
use metaslot_spi::{Attributes, NewObject, Value};

impl Engine {
    /// A secret key of these bytes, checked by the provider.
    fn secret_key(&self, all: &Attributes, value: Secret) -> Result<NewObject> {
        let mut made = NewObject::default();
        made.attributes.set(CKA_CLASS, Value::Ulong(CKO_SECRET_KEY));
        let kind = all.get(CKA_KEY_TYPE).cloned().ok_or(Error::TEMPLATE_INCOMPLETE)?;
        made.attributes.set(CKA_KEY_TYPE, kind);
        made.secrets.set(CKA_VALUE, value);
        self.complete(&mut made)?;
        Ok(made)
    }
}

/// DES keys that are made here have odd parity in every byte (PKCS#11 3.2 §6.18.2).
fn set_parity(key_type: Option<u64>, value: &mut [u8]) {
    if let Some(CKK_DES | CKK_DES2 | CKK_DES3) = key_type {
        for byte in value {
            *byte ^= u8::from(byte.count_ones().is_multiple_of(2));
        }
    }
}

/// What is wrong with the key that unwraps or decapsulates, where something is (PKCS#11 3.2 §5.18.4, §5.18.9).
const UNWRAPPING: [Error; 3] = [
    Error::UNWRAPPING_KEY_HANDLE_INVALID,
    Error::UNWRAPPING_KEY_TYPE_INCONSISTENT,
    Error::UNWRAPPING_KEY_SIZE_RANGE,
];

/// The same failure of the key that wraps or unwraps: of its handle, its type, or its size (PKCS#11 3.2 §5.18.3).
fn told_of([handle, key_type, size]: [Error; 3]) -> impl Fn(Error) -> Error {
    move |error| match error {
        Error::KEY_HANDLE_INVALID => handle,
        Error::KEY_TYPE_INCONSISTENT => key_type,
        Error::KEY_SIZE_RANGE => size,
        other => other,
    }
}

// SPDX-License-Identifier: Apache-2.0
//! Secret keys that come from outside: lengths that their types allow.

use metaslot_awslc_wrapper::rc4::LONGEST_KEY;
use metaslot_ck::*;
use metaslot_spi::{NewObject, Value};

/// Types that only public and private keys have.
const OF_PAIRS: &[CK_KEY_TYPE] = &[
    CKK_RSA,
    CKK_DSA,
    CKK_DH,
    CKK_EC,
    CKK_X9_42_DH,
    CKK_KEA,
    CKK_GOSTR3410,
    CKK_EC_EDWARDS,
    CKK_EC_MONTGOMERY,
    CKK_HSS,
    CKK_XMSS,
    CKK_XMSSMT,
    CKK_ML_KEM,
    CKK_ML_DSA,
    CKK_SLH_DSA,
];

/// Checks the length of `CKA_VALUE` and sets `CKA_VALUE_LEN`.
pub(crate) fn complete(object: &mut NewObject) -> Result<()> {
    let value = object.secrets.get(CKA_VALUE).ok_or(Error::TEMPLATE_INCOMPLETE)?;
    if object.attributes.ulong(CKA_KEY_TYPE).is_some_and(|kind| OF_PAIRS.contains(&kind)) {
        return Err(Error::TEMPLATE_INCONSISTENT);
    }
    let (key_type, length) = (object.attributes.ulong(CKA_KEY_TYPE), value.len());
    if !fits(key_type, length) {
        return Err(Error::ATTRIBUTE_VALUE_INVALID);
    }
    let length = length as u64;
    if object.attributes.ulong(CKA_VALUE_LEN).is_some_and(|said| said != length) {
        return Err(Error::TEMPLATE_INCONSISTENT);
    }
    object.attributes.set(CKA_VALUE_LEN, Value::Ulong(length));
    Ok(())
}

/// Whether a key of this type can be `length` bytes long. Types that no mechanism here uses are
/// kept as they are.
fn fits(key_type: Option<u64>, length: usize) -> bool {
    match key_type {
        Some(CKK_AES) => matches!(length, 16 | 24 | 32),
        Some(CKK_AES_XTS) => matches!(length, 32 | 64),
        Some(CKK_CHACHA20 | CKK_POLY1305) => length == 32,
        Some(CKK_RC4) => (1..=LONGEST_KEY).contains(&length),
        Some(CKK_DES2) => length == 16,
        Some(CKK_DES3) => length == 24,
        _ => length > 0,
    }
}

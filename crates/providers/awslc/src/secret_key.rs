// SPDX-License-Identifier: Apache-2.0
//! Secret keys that come from outside: lengths that their types allow.

use metaslot_ck::*;
use metaslot_spi::lengths::Lengths;
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
    let length = value.len() as u64;
    let lengths = object.attributes.ulong(CKA_KEY_TYPE).and_then(Lengths::of);
    // Types that no mechanism here uses are kept as they are.
    if length == 0 || lengths.is_some_and(|lengths| !lengths.fits(length)) {
        return Err(Error::ATTRIBUTE_VALUE_INVALID);
    }
    if object.attributes.ulong(CKA_VALUE_LEN).is_some_and(|said| said != length) {
        return Err(Error::TEMPLATE_INCONSISTENT);
    }
    object.attributes.set(CKA_VALUE_LEN, Value::Ulong(length));
    Ok(())
}

// SPDX-License-Identifier: Apache-2.0
//! How large a key is, as far as costs depend on it.

use metaslot_ck::{
    CKA_EC_POINT, CKA_MODULUS, CKA_VALUE, CKK_EC, CKK_EC_EDWARDS, CKK_EC_MONTGOMERY, CKK_RSA,
};
use metaslot_spi::Key;

/// Bits of an asymmetric key, nearly: of its modulus or scalar, or of half a point. 0 for others.
#[must_use]
pub fn key_bits(key: &Key) -> u32 {
    let scalar = || key.secret(CKA_VALUE).ok().map(<[u8]>::len);
    let point = || key.bytes(CKA_EC_POINT).map_or(0, <[u8]>::len);
    let bytes = match key.key_type() {
        CKK_RSA => key.bytes(CKA_MODULUS).map_or(0, <[u8]>::len),
        // A DER OCTET STRING of 4, x and y.
        CKK_EC => scalar().unwrap_or_else(|| point().saturating_sub(3) / 2),
        CKK_EC_EDWARDS | CKK_EC_MONTGOMERY => scalar().unwrap_or_else(|| point().saturating_sub(2)),
        _ => 0,
    };
    u32::try_from(8 * bytes).unwrap_or(u32::MAX)
}

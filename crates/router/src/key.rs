// SPDX-License-Identifier: Apache-2.0
//! How large a key is, as far as costs depend on it.

use metaslot_ck::{
    CK_ML_DSA_PARAMETER_SET_TYPE, CKA_EC_POINT, CKA_MODULUS, CKA_PARAMETER_SET, CKA_VALUE, CKK_EC,
    CKK_EC_EDWARDS, CKK_EC_MONTGOMERY, CKK_ML_DSA, CKK_RSA, CKP_ML_DSA_44, CKP_ML_DSA_65,
    CKP_ML_DSA_87,
};
use metaslot_spi::Key;

/// ML-DSA's parameter sets, with the bits of their public keys (FIPS 204, table 2).
pub(crate) const ML_DSA: [(CK_ML_DSA_PARAMETER_SET_TYPE, u32); 3] =
    [(CKP_ML_DSA_44, 8 * 1312), (CKP_ML_DSA_65, 8 * 1952), (CKP_ML_DSA_87, 8 * 2592)];

/// Bits of an asymmetric key, nearly: of its modulus or scalar, of half a point, or of the public half. 0 for others.
#[must_use]
pub fn key_bits(key: &Key) -> u32 {
    let scalar = || key.secret(CKA_VALUE).ok().map(<[u8]>::len);
    let point = || key.bytes(CKA_EC_POINT).map_or(0, <[u8]>::len);
    let bytes = match key.key_type() {
        CKK_RSA => key.bytes(CKA_MODULUS).map_or(0, <[u8]>::len),
        // A DER OCTET STRING of 4, x and y.
        CKK_EC => scalar().unwrap_or_else(|| point().saturating_sub(3) / 2),
        CKK_ML_DSA => {
            let set = key.attributes().ulong(CKA_PARAMETER_SET);
            return ML_DSA.iter().find(|row| Some(row.0) == set).map_or(0, |row| row.1);
        }
        CKK_EC_EDWARDS | CKK_EC_MONTGOMERY => scalar().unwrap_or_else(|| point().saturating_sub(2)),
        _ => 0,
    };
    u32::try_from(8 * bytes).unwrap_or(u32::MAX)
}

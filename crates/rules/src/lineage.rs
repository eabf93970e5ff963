// SPDX-License-Identifier: Apache-2.0
//! What a derivation says of the key that it makes, by its mechanism alone.

use metaslot_ck::mechanism::{MechanismRow, Shape};
use metaslot_ck::*;
use metaslot_spi::Params;

/// Whether a mechanism makes keys of passwords, which the caller knows.
pub(crate) fn of_password(mechanism: CK_MECHANISM_TYPE) -> bool {
    let shape = MechanismRow::find(mechanism).map(|row| row.shape);
    matches!(shape, Some(Shape::Pbkd2 | Shape::Pbe { .. }))
}

/// Of these the standard says that the result is as secret as all that it is made of (PKCS#11 3.2 §6.43, and of TLS §6.39), whatever
/// the policy is: it holds the value of the key, or a part of it, or protects a connection.
#[must_use]
pub fn keeps_secrecy(mechanism: CK_MECHANISM_TYPE, params: &Params) -> bool {
    match (mechanism, params) {
        // What is extended by nothing is cut.
        (CKM_IKE1_EXTENDED_DERIVE, Params::Ike { data, before, .. }) => {
            data.is_empty() && before.is_empty()
        }
        _ => matches!(
            mechanism,
            CKM_CONCATENATE_BASE_AND_KEY
                | CKM_CONCATENATE_BASE_AND_DATA
                | CKM_CONCATENATE_DATA_AND_BASE
                | CKM_XOR_BASE_AND_DATA
                | CKM_EXTRACT_KEY_FROM_KEY
                | CKM_SSL3_KEY_AND_MAC_DERIVE
                | CKM_TLS_KEY_AND_MAC_DERIVE
                | CKM_TLS12_KEY_AND_MAC_DERIVE
                | CKM_TLS12_KEY_SAFE_DERIVE
        ),
    }
}

/// Derivations of one step, where a key type that has several lengths wants one to be said (PKCS#11 3.2 §6.15, §6.20, §6.43);
/// agreements, HKDF and IKE give it what comes out.
#[must_use]
pub const fn of_one_step(params: &Params) -> bool {
    matches!(params, Params::None | Params::Data { .. } | Params::Key(_) | Params::Ulong(_))
}

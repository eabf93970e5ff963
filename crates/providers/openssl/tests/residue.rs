// SPDX-License-Identifier: Apache-2.0
//! The tests of the provider over AWS-LC, for this one; what this one does not have is done by that one. And keys on curves that only
//! this one has.
#![cfg(feature = "library")]

#[path = "../../awslc/tests/residue.rs"]
mod tests;

use metaslot_ck::*;
use metaslot_openssl::OPENSSL as PROVIDER;
use tests::{agrees, leaves_nothing, on, signs};

#[test]
fn a_dropped_key_on_a_curve_of_old_or_of_a_country_leaves_nothing() {
    for params in [
        // brainpoolP256r1, brainpoolP512t1, prime192v2, c2tnb191v1
        &[6, 9, 0x2b, 0x24, 3, 3, 2, 8, 1, 1, 7][..],
        &[6, 9, 0x2b, 0x24, 3, 3, 2, 8, 1, 1, 14],
        &[6, 8, 0x2a, 0x86, 0x48, 0xce, 0x3d, 3, 1, 2],
        &[6, 8, 0x2a, 0x86, 0x48, 0xce, 0x3d, 3, 0, 5],
    ] {
        leaves_nothing(
            CKK_EC,
            || on(CKM_EC_KEY_PAIR_GEN, CKK_EC, params),
            &[&|keys| signs(keys, CKM_ECDSA_SHA256), &agrees],
        );
    }
}

#[test]
fn a_dropped_ed448_key_leaves_nothing() {
    leaves_nothing(
        CKK_EC_EDWARDS,
        || on(CKM_EC_EDWARDS_KEY_PAIR_GEN, CKK_EC_EDWARDS, &[6, 3, 0x2b, 0x65, 0x71]),
        &[&|keys| signs(keys, CKM_EDDSA)],
    );
}

#[test]
fn a_dropped_x448_key_leaves_nothing() {
    leaves_nothing(
        CKK_EC_MONTGOMERY,
        || on(CKM_EC_MONTGOMERY_KEY_PAIR_GEN, CKK_EC_MONTGOMERY, &[6, 3, 0x2b, 0x65, 0x6f]),
        &[&agrees],
    );
}

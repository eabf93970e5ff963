// SPDX-License-Identifier: Apache-2.0
//! The hash functions by the standard's numbers.

use metaslot_awslc::digest::Hash;
use metaslot_ck::*;

/// One function by its two numbers: as a digest, and under a mask generation function.
const FUNCTIONS: [(Hash, CK_MECHANISM_TYPE, u64); 9] = [
    (Hash::Sha1, CKM_SHA_1, CKG_MGF1_SHA1),
    (Hash::Sha224, CKM_SHA224, CKG_MGF1_SHA224),
    (Hash::Sha256, CKM_SHA256, CKG_MGF1_SHA256),
    (Hash::Sha384, CKM_SHA384, CKG_MGF1_SHA384),
    (Hash::Sha512, CKM_SHA512, CKG_MGF1_SHA512),
    (Hash::Sha3_224, CKM_SHA3_224, CKG_MGF1_SHA3_224),
    (Hash::Sha3_256, CKM_SHA3_256, CKG_MGF1_SHA3_256),
    (Hash::Sha3_384, CKM_SHA3_384, CKG_MGF1_SHA3_384),
    (Hash::Sha3_512, CKM_SHA3_512, CKG_MGF1_SHA3_512),
];

/// The function of a digest mechanism.
pub(super) fn by_mechanism(number: CK_MECHANISM_TYPE) -> Option<Hash> {
    FUNCTIONS.iter().find(|row| row.1 == number).map(|row| row.0)
}

/// The function under a mask generation function (PKCS#11 3.2 §6.1.7).
pub(super) fn by_mgf(number: u64) -> Option<Hash> {
    FUNCTIONS.iter().find(|row| row.2 == number).map(|row| row.0)
}

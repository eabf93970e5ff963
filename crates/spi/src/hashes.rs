// SPDX-License-Identifier: Apache-2.0
//! Which hash function the standard's other numbers name, as the mechanism of its digest.

use metaslot_ck::*;

/// The digests, in the order in which the libraries' wrappers count their functions, and how long they are in bytes.
pub const DIGESTS: [(CK_MECHANISM_TYPE, usize); 12] = [
    (CKM_MD5, 16),
    (CKM_SHA_1, 20),
    (CKM_SHA224, 28),
    (CKM_SHA256, 32),
    (CKM_SHA384, 48),
    (CKM_SHA512, 64),
    (CKM_SHA512_224, 28),
    (CKM_SHA512_256, 32),
    (CKM_SHA3_224, 28),
    (CKM_SHA3_256, 32),
    (CKM_SHA3_384, 48),
    (CKM_SHA3_512, 64),
];

/// Where in a wrapper's `Hash::ALL` the function stands that a `CKM_…` of a digest (or of the PRF of a KDF) names.
#[must_use]
pub fn place(mechanism: CK_MECHANISM_TYPE) -> Option<usize> {
    DIGESTS.iter().position(|(digest, _)| *digest == mechanism)
}

/// How long a digest is, of the functions above.
#[must_use]
pub fn length(mechanism: CK_MECHANISM_TYPE) -> Option<usize> {
    place(mechanism).map(|at| DIGESTS[at].1)
}

/// One function: its digest, its mask generation function, its derivations by ANSI X9.63 and by SP 800-56A.
type HashRow = (CK_MECHANISM_TYPE, u64, u64, u64);

const ROWS: [HashRow; 9] = [
    (CKM_SHA_1, CKG_MGF1_SHA1, CKD_SHA1_KDF, CKD_SHA1_KDF_SP800),
    (CKM_SHA224, CKG_MGF1_SHA224, CKD_SHA224_KDF, CKD_SHA224_KDF_SP800),
    (CKM_SHA256, CKG_MGF1_SHA256, CKD_SHA256_KDF, CKD_SHA256_KDF_SP800),
    (CKM_SHA384, CKG_MGF1_SHA384, CKD_SHA384_KDF, CKD_SHA384_KDF_SP800),
    (CKM_SHA512, CKG_MGF1_SHA512, CKD_SHA512_KDF, CKD_SHA512_KDF_SP800),
    (CKM_SHA3_224, CKG_MGF1_SHA3_224, CKD_SHA3_224_KDF, CKD_SHA3_224_KDF_SP800),
    (CKM_SHA3_256, CKG_MGF1_SHA3_256, CKD_SHA3_256_KDF, CKD_SHA3_256_KDF_SP800),
    (CKM_SHA3_384, CKG_MGF1_SHA3_384, CKD_SHA3_384_KDF, CKD_SHA3_384_KDF_SP800),
    (CKM_SHA3_512, CKG_MGF1_SHA3_512, CKD_SHA3_512_KDF, CKD_SHA3_512_KDF_SP800),
];

/// The function under a mask generation function (PKCS#11 3.2 §6.1.7).
#[must_use]
pub fn of_mgf(number: u64) -> Option<CK_MECHANISM_TYPE> {
    find(|row| row.1 == number)
}

/// The function under the derivation of ANSI X9.63 (PKCS#11 3.2 §6.3.16).
#[must_use]
pub fn of_x963(number: u64) -> Option<CK_MECHANISM_TYPE> {
    find(|row| row.2 == number)
}

/// The function under the derivation of SP 800-56A (PKCS#11 3.2 §6.3.16).
#[must_use]
pub fn of_sp800(number: u64) -> Option<CK_MECHANISM_TYPE> {
    find(|row| row.3 == number)
}

fn find(is: impl Fn(&HashRow) -> bool) -> Option<CK_MECHANISM_TYPE> {
    ROWS.iter().find(|row| is(row)).map(|row| row.0)
}

// SPDX-License-Identifier: Apache-2.0
//! The hash functions by the standard's numbers.

use metaslot_awslc::digest::Hash;
use metaslot_ck::*;

/// One function by its numbers.
struct Function {
    hash: Hash,
    /// As a digest.
    mechanism: CK_MECHANISM_TYPE,
    /// Under a mask generation function.
    mgf: u64,
    /// Under the derivation of ANSI X9.63.
    x963: u64,
    /// Under that of SP 800-56A.
    sp800: u64,
}

const FUNCTIONS: [Function; 9] = [
    Function {
        hash: Hash::Sha1,
        mechanism: CKM_SHA_1,
        mgf: CKG_MGF1_SHA1,
        x963: CKD_SHA1_KDF,
        sp800: CKD_SHA1_KDF_SP800,
    },
    Function {
        hash: Hash::Sha224,
        mechanism: CKM_SHA224,
        mgf: CKG_MGF1_SHA224,
        x963: CKD_SHA224_KDF,
        sp800: CKD_SHA224_KDF_SP800,
    },
    Function {
        hash: Hash::Sha256,
        mechanism: CKM_SHA256,
        mgf: CKG_MGF1_SHA256,
        x963: CKD_SHA256_KDF,
        sp800: CKD_SHA256_KDF_SP800,
    },
    Function {
        hash: Hash::Sha384,
        mechanism: CKM_SHA384,
        mgf: CKG_MGF1_SHA384,
        x963: CKD_SHA384_KDF,
        sp800: CKD_SHA384_KDF_SP800,
    },
    Function {
        hash: Hash::Sha512,
        mechanism: CKM_SHA512,
        mgf: CKG_MGF1_SHA512,
        x963: CKD_SHA512_KDF,
        sp800: CKD_SHA512_KDF_SP800,
    },
    Function {
        hash: Hash::Sha3_224,
        mechanism: CKM_SHA3_224,
        mgf: CKG_MGF1_SHA3_224,
        x963: CKD_SHA3_224_KDF,
        sp800: CKD_SHA3_224_KDF_SP800,
    },
    Function {
        hash: Hash::Sha3_256,
        mechanism: CKM_SHA3_256,
        mgf: CKG_MGF1_SHA3_256,
        x963: CKD_SHA3_256_KDF,
        sp800: CKD_SHA3_256_KDF_SP800,
    },
    Function {
        hash: Hash::Sha3_384,
        mechanism: CKM_SHA3_384,
        mgf: CKG_MGF1_SHA3_384,
        x963: CKD_SHA3_384_KDF,
        sp800: CKD_SHA3_384_KDF_SP800,
    },
    Function {
        hash: Hash::Sha3_512,
        mechanism: CKM_SHA3_512,
        mgf: CKG_MGF1_SHA3_512,
        x963: CKD_SHA3_512_KDF,
        sp800: CKD_SHA3_512_KDF_SP800,
    },
];

/// The function of a digest mechanism.
pub(super) fn by_mechanism(number: CK_MECHANISM_TYPE) -> Option<Hash> {
    by(|row| row.mechanism == number)
}

/// The function under a mask generation function (PKCS#11 3.2 §6.1.7).
pub(super) fn by_mgf(number: u64) -> Option<Hash> {
    by(|row| row.mgf == number)
}

/// The function under the derivation of ANSI X9.63 (§6.3.18).
pub(super) fn by_x963(number: u64) -> Option<Hash> {
    by(|row| row.x963 == number)
}

/// The function under the derivation of SP 800-56A (§6.3.18).
pub(super) fn by_sp800(number: u64) -> Option<Hash> {
    by(|row| row.sp800 == number)
}

fn by(is: impl Fn(&Function) -> bool) -> Option<Hash> {
    FUNCTIONS.iter().find(|row| is(row)).map(|row| row.hash)
}

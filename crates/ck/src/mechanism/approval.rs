// SPDX-License-Identifier: Apache-2.0
//! What FIPS 140-3 approves of (SP 800-140C, SP 800-131A rev. 2): mechanisms, not their parameters, and no module.

use super::MechanismRow;
use crate::*;

/// What is already sealed or signed may be opened and verified.
const OPENS: CK_FLAGS = CKF_DECRYPT | CKF_VERIFY | CKF_UNWRAP;

/// Mechanisms that are approved for some operations only (`CKF_…`), and how that is called; every other is for all.
#[rustfmt::skip]
pub const APPROVED: &[(CK_MECHANISM_TYPE, CK_FLAGS, &str)] = &[
    (CKM_RSA_PKCS, CKF_SIGN | CKF_VERIFY, "signatures"),
    (CKM_RSA_X_509, 0, "nothing"),
    (CKM_MD5_RSA_PKCS, 0, "nothing"),
    (CKM_SHA1_RSA_PKCS, CKF_VERIFY, "verification"),
    (CKM_SHA1_RSA_PKCS_PSS, CKF_VERIFY, "verification"),
    (CKM_ECDSA_SHA1, CKF_VERIFY, "verification"),
    (CKM_RSA_X9_31, CKF_VERIFY, "verification"),
    (CKM_SHA1_RSA_X9_31, CKF_VERIFY, "verification"),
    (CKM_DSA_KEY_PAIR_GEN, 0, "nothing"),
    (CKM_DSA, CKF_VERIFY, "verification"),
    (CKM_DSA_SHA1, CKF_VERIFY, "verification"),
    (CKM_DSA_SHA224, CKF_VERIFY, "verification"),
    (CKM_DSA_SHA256, CKF_VERIFY, "verification"),
    (CKM_DSA_SHA384, CKF_VERIFY, "verification"),
    (CKM_DSA_SHA512, CKF_VERIFY, "verification"),
    (CKM_DSA_SHA3_224, CKF_VERIFY, "verification"),
    (CKM_DSA_SHA3_256, CKF_VERIFY, "verification"),
    (CKM_DSA_SHA3_384, CKF_VERIFY, "verification"),
    (CKM_DSA_SHA3_512, CKF_VERIFY, "verification"),
    // Without the hash of the handshake (FIPS 140-3 IG D.Q).
    (CKM_TLS12_MASTER_KEY_DERIVE, 0, "nothing"),
    (CKM_TLS12_MASTER_KEY_DERIVE_DH, 0, "nothing"),
    (CKM_SSL3_PRE_MASTER_KEY_GEN, 0, "nothing"),
    (CKM_SSL3_MASTER_KEY_DERIVE, 0, "nothing"),
    (CKM_SSL3_KEY_AND_MAC_DERIVE, 0, "nothing"),
    (CKM_SSL3_MASTER_KEY_DERIVE_DH, 0, "nothing"),
    (CKM_SSL3_MD5_MAC, 0, "nothing"),
    (CKM_SSL3_SHA1_MAC, 0, "nothing"),
    (CKM_TLS_MASTER_KEY_DERIVE, 0, "nothing"),
    (CKM_TLS_KEY_AND_MAC_DERIVE, 0, "nothing"),
    (CKM_TLS_MASTER_KEY_DERIVE_DH, 0, "nothing"),
    (CKM_TLS10_MAC_SERVER, 0, "nothing"),
    (CKM_TLS10_MAC_CLIENT, 0, "nothing"),
    (CKM_ECDH_X_AES_KEY_WRAP, 0, "nothing"),
    (CKM_MD5_KEY_DERIVATION, 0, "nothing"),
    (CKM_SHA1_KEY_DERIVATION, 0, "nothing"),
    (CKM_SHA224_KEY_DERIVATION, 0, "nothing"),
    (CKM_SHA256_KEY_DERIVATION, 0, "nothing"),
    (CKM_SHA384_KEY_DERIVATION, 0, "nothing"),
    (CKM_SHA512_KEY_DERIVATION, 0, "nothing"),
    (CKM_SHA512_224_KEY_DERIVATION, 0, "nothing"),
    (CKM_SHA512_256_KEY_DERIVATION, 0, "nothing"),
    (CKM_SHA3_224_KEY_DERIVE, 0, "nothing"),
    (CKM_SHA3_256_KEY_DERIVE, 0, "nothing"),
    (CKM_SHA3_384_KEY_DERIVE, 0, "nothing"),
    (CKM_SHA3_512_KEY_DERIVE, 0, "nothing"),
    (CKM_SHAKE_128_KEY_DERIVE, 0, "nothing"),
    (CKM_SHAKE_256_KEY_DERIVE, 0, "nothing"),
    // Nothing in them shows that a key was changed (SP 800-38F).
    (CKM_AES_ECB, !CKF_WRAP, "all but wrapping"),
    (CKM_AES_CBC, !CKF_WRAP, "all but wrapping"),
    (CKM_AES_CBC_PAD, !CKF_WRAP, "all but wrapping"),
    (CKM_AES_CTR, !CKF_WRAP, "all but wrapping"),
    (CKM_AES_OFB, !CKF_WRAP, "all but wrapping"),
    (CKM_AES_CFB1, !CKF_WRAP, "all but wrapping"),
    (CKM_AES_CFB8, !CKF_WRAP, "all but wrapping"),
    (CKM_AES_CFB64, !CKF_WRAP, "all but wrapping"),
    (CKM_AES_CFB128, !CKF_WRAP, "all but wrapping"),
    (CKM_AES_CTS, !CKF_WRAP, "all but wrapping"),
    (CKM_AES_XTS, !CKF_WRAP, "all but wrapping"),
    (CKM_AES_ECB_ENCRYPT_DATA, 0, "nothing"),
    (CKM_AES_CBC_ENCRYPT_DATA, 0, "nothing"),
    (CKM_DES3_ECB_ENCRYPT_DATA, 0, "nothing"),
    (CKM_DES3_CBC_ENCRYPT_DATA, 0, "nothing"),
    (CKM_AES_MAC, 0, "nothing"),
    (CKM_AES_MAC_GENERAL, 0, "nothing"),
    (CKM_AES_XCBC_MAC, 0, "nothing"),
    (CKM_AES_XCBC_MAC_96, 0, "nothing"),
    (CKM_CHACHA20, 0, "nothing"),
    (CKM_POLY1305, 0, "nothing"),
    (CKM_POLY1305_KEY_GEN, 0, "nothing"),
    (CKM_DSA_PARAMETER_GEN, 0, "nothing"),
    (CKM_DH_PKCS_PARAMETER_GEN, 0, "nothing"),
    (CKM_X9_42_DH_PARAMETER_GEN, 0, "nothing"),
    (CKM_DSA_PROBABLISTIC_PARAMETER_GEN, 0, "nothing"),
    (CKM_DSA_SHAWE_TAYLOR_PARAMETER_GEN, 0, "nothing"),
    (CKM_DSA_FIPS_G_GEN, 0, "nothing"),
    (CKM_HOTP_KEY_GEN, 0, "nothing"),
    (CKM_HOTP, 0, "nothing"),
    (CKM_SALSA20, 0, "nothing"),
    (CKM_SALSA20_KEY_GEN, 0, "nothing"),
    (CKM_PBE_SHA1_RC4_128, 0, "nothing"),
    (CKM_PBE_SHA1_RC4_40, 0, "nothing"),
    (CKM_PBE_SHA1_DES3_EDE_CBC, 0, "nothing"),
    (CKM_PBE_SHA1_DES2_EDE_CBC, 0, "nothing"),
    (CKM_PBA_SHA1_WITH_SHA1_HMAC, 0, "nothing"),
    (CKM_MD2, 0, "nothing"),
    (CKM_MD2_HMAC, 0, "nothing"),
    (CKM_MD2_HMAC_GENERAL, 0, "nothing"),
    (CKM_MD2_KEY_DERIVATION, 0, "nothing"),
    (CKM_MD2_RSA_PKCS, 0, "nothing"),
    (CKM_RIPEMD128, 0, "nothing"),
    (CKM_RIPEMD128_HMAC, 0, "nothing"),
    (CKM_RIPEMD128_HMAC_GENERAL, 0, "nothing"),
    (CKM_RIPEMD128_RSA_PKCS, 0, "nothing"),
    (CKM_RIPEMD160_RSA_PKCS, 0, "nothing"),
    (CKM_RIPEMD160, 0, "nothing"),
    (CKM_RIPEMD160_HMAC, 0, "nothing"),
    (CKM_RIPEMD160_HMAC_GENERAL, 0, "nothing"),
    (CKM_BLAKE2B_160, 0, "nothing"),
    (CKM_BLAKE2B_160_HMAC, 0, "nothing"),
    (CKM_BLAKE2B_160_HMAC_GENERAL, 0, "nothing"),
    (CKM_BLAKE2B_160_KEY_DERIVE, 0, "nothing"),
    (CKM_BLAKE2B_160_KEY_GEN, 0, "nothing"),
    (CKM_BLAKE2B_256, 0, "nothing"),
    (CKM_BLAKE2B_256_HMAC, 0, "nothing"),
    (CKM_BLAKE2B_256_HMAC_GENERAL, 0, "nothing"),
    (CKM_BLAKE2B_256_KEY_DERIVE, 0, "nothing"),
    (CKM_BLAKE2B_256_KEY_GEN, 0, "nothing"),
    (CKM_BLAKE2B_384, 0, "nothing"),
    (CKM_BLAKE2B_384_HMAC, 0, "nothing"),
    (CKM_BLAKE2B_384_HMAC_GENERAL, 0, "nothing"),
    (CKM_BLAKE2B_384_KEY_DERIVE, 0, "nothing"),
    (CKM_BLAKE2B_384_KEY_GEN, 0, "nothing"),
    (CKM_BLAKE2B_512, 0, "nothing"),
    (CKM_BLAKE2B_512_HMAC, 0, "nothing"),
    (CKM_BLAKE2B_512_HMAC_GENERAL, 0, "nothing"),
    (CKM_BLAKE2B_512_KEY_DERIVE, 0, "nothing"),
    (CKM_BLAKE2B_512_KEY_GEN, 0, "nothing"),
    (CKM_RC4_KEY_GEN, 0, "nothing"),
    (CKM_RC4, 0, "nothing"),
    (CKM_DES2_KEY_GEN, 0, "nothing"),
    (CKM_DES3_KEY_GEN, 0, "nothing"),
    (CKM_DES3_ECB, OPENS, "decryption"),
    (CKM_DES3_CBC, OPENS, "decryption"),
    (CKM_DES3_CBC_PAD, OPENS, "decryption"),
    (CKM_DES3_MAC, 0, "nothing"),
    (CKM_DES3_MAC_GENERAL, 0, "nothing"),
    (CKM_DES3_CMAC, OPENS, "verification"),
    (CKM_DES3_CMAC_GENERAL, OPENS, "verification"),
    (CKM_MD5, 0, "nothing"),
    (CKM_MD5_HMAC, 0, "nothing"),
    (CKM_MD5_HMAC_GENERAL, 0, "nothing"),
    (CKM_EC_MONTGOMERY_KEY_PAIR_GEN, 0, "nothing"),
    (CKM_XEDDSA, 0, "nothing"),
    (CKM_CHACHA20_KEY_GEN, 0, "nothing"),
    (CKM_CHACHA20_POLY1305, 0, "nothing"),
];

/// Types of keys of ciphers of old, and of some countries, of whose mechanisms all but those in [`APPROVED`] are approved for nothing.
/// Their blocks are short, or they were broken, or they take another time for another key here: they open what exists.
pub const OLD_CIPHERS: &[CK_KEY_TYPE] = &[
    CKK_DES,
    CKK_CAMELLIA,
    CKK_ARIA,
    CKK_SEED,
    CKK_CAST5,
    CKK_IDEA,
    CKK_RC2,
    CKK_RC5,
    CKK_BLOWFISH,
    CKK_TWOFISH,
];

/// `CKF_…` of the operations that a mechanism is approved for.
#[must_use]
pub fn approved(mechanism: CK_MECHANISM_TYPE) -> CK_FLAGS {
    let old = || MechanismRow::find(mechanism).is_some_and(MechanismRow::is_old_cipher);
    match APPROVED.iter().find(|row| row.0 == mechanism) {
        Some(row) => row.1,
        None if old() => 0,
        None => CK_FLAGS::MAX,
    }
}

impl MechanismRow {
    /// Whether it is a mechanism of one of [`OLD_CIPHERS`].
    #[must_use]
    pub fn is_old_cipher(&self) -> bool {
        matches!(self.keys, [first, ..] if OLD_CIPHERS.contains(first))
    }
}

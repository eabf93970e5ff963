// SPDX-License-Identifier: Apache-2.0
//! How each mechanism is used: its key and its parameter.

use crate::speed::part::{Curve, Function, Job, Key, Parameter};
use metaslot_ck::*;

/// A mechanism's key and parameter.
#[derive(Clone, Copy, Debug)]
struct Recipe {
    mechanism: CK_MECHANISM_TYPE,
    key: Key,
    parameter: Parameter,
}

const fn row(mechanism: CK_MECHANISM_TYPE, key: Key, parameter: Parameter) -> Recipe {
    Recipe { mechanism, key, parameter }
}

const NONE: Parameter = Parameter::None;
const RSA: Key = Key::Rsa(2048);
const P256: Key = Key::Curve(Curve::P256);
const ED25519: Key = Key::Curve(Curve::Ed25519);
const AES: Key = Key::Secret(CKK_AES, 32);
const XTS: Key = Key::Secret(CKK_AES_XTS, 64);
const DES3: Key = Key::Secret(CKK_DES3, 24);
const CHACHA: Key = Key::Secret(CKK_CHACHA20, 32);
const MAC: Key = Key::Secret(CKK_GENERIC_SECRET, 64);
/// The length of a MAC that is cut.
const SHORT: Parameter = Parameter::Length(16);

const fn pss(hash: CK_MECHANISM_TYPE, mgf: CK_ULONG, salt: CK_ULONG) -> Parameter {
    Parameter::Pss(hash, mgf, salt)
}

#[rustfmt::skip]
const RECIPES: &[Recipe] = &[
    row(CKM_MD5, Key::None, NONE),
    row(CKM_SHA_1, Key::None, NONE),
    row(CKM_SHA224, Key::None, NONE),
    row(CKM_SHA256, Key::None, NONE),
    row(CKM_SHA384, Key::None, NONE),
    row(CKM_SHA512, Key::None, NONE),
    row(CKM_SHA512_224, Key::None, NONE),
    row(CKM_SHA512_256, Key::None, NONE),
    row(CKM_SHA3_224, Key::None, NONE),
    row(CKM_SHA3_256, Key::None, NONE),
    row(CKM_SHA3_384, Key::None, NONE),
    row(CKM_SHA3_512, Key::None, NONE),
    row(CKM_MD5_HMAC, MAC, NONE),
    row(CKM_SHA_1_HMAC, MAC, NONE),
    row(CKM_SHA224_HMAC, MAC, NONE),
    row(CKM_SHA256_HMAC, MAC, NONE),
    row(CKM_SHA384_HMAC, MAC, NONE),
    row(CKM_SHA512_HMAC, MAC, NONE),
    row(CKM_SHA512_224_HMAC, MAC, NONE),
    row(CKM_SHA512_256_HMAC, MAC, NONE),
    row(CKM_SHA3_224_HMAC, MAC, NONE),
    row(CKM_SHA3_256_HMAC, MAC, NONE),
    row(CKM_SHA3_384_HMAC, MAC, NONE),
    row(CKM_SHA3_512_HMAC, MAC, NONE),
    row(CKM_MD5_HMAC_GENERAL, MAC, SHORT),
    row(CKM_SHA_1_HMAC_GENERAL, MAC, SHORT),
    row(CKM_SHA224_HMAC_GENERAL, MAC, SHORT),
    row(CKM_SHA256_HMAC_GENERAL, MAC, SHORT),
    row(CKM_SHA384_HMAC_GENERAL, MAC, SHORT),
    row(CKM_SHA512_HMAC_GENERAL, MAC, SHORT),
    row(CKM_SHA512_224_HMAC_GENERAL, MAC, SHORT),
    row(CKM_SHA512_256_HMAC_GENERAL, MAC, SHORT),
    row(CKM_SHA3_224_HMAC_GENERAL, MAC, SHORT),
    row(CKM_SHA3_256_HMAC_GENERAL, MAC, SHORT),
    row(CKM_SHA3_384_HMAC_GENERAL, MAC, SHORT),
    row(CKM_SHA3_512_HMAC_GENERAL, MAC, SHORT),
    row(CKM_AES_CMAC, AES, NONE),
    row(CKM_AES_CMAC_GENERAL, AES, Parameter::Length(8)),
    row(CKM_AES_GMAC, AES, Parameter::Nonce),
    row(CKM_AES_ECB, AES, NONE),
    row(CKM_AES_CBC, AES, Parameter::Iv(16)),
    row(CKM_AES_CBC_PAD, AES, Parameter::Iv(16)),
    row(CKM_AES_CTR, AES, Parameter::Ctr),
    row(CKM_AES_GCM, AES, Parameter::Gcm),
    row(CKM_AES_CCM, AES, Parameter::Ccm),
    row(CKM_AES_XTS, XTS, Parameter::Iv(16)),
    row(CKM_AES_KEY_WRAP, AES, NONE),
    row(CKM_AES_KEY_WRAP_KWP, AES, NONE),
    row(CKM_CHACHA20_POLY1305, CHACHA, Parameter::ChaCha),
    row(CKM_DES3_ECB, DES3, NONE),
    row(CKM_DES3_CBC, DES3, Parameter::Iv(8)),
    row(CKM_DES3_CBC_PAD, DES3, Parameter::Iv(8)),
    row(CKM_RC4, Key::Secret(CKK_RC4, 16), NONE),
    row(CKM_RSA_PKCS, RSA, NONE),
    row(CKM_RSA_X_509, RSA, NONE),
    row(CKM_RSA_PKCS_OAEP, RSA, Parameter::Oaep(CKM_SHA256, CKG_MGF1_SHA256)),
    row(CKM_RSA_PKCS_PSS, RSA, pss(CKM_SHA256, CKG_MGF1_SHA256, 32)),
    row(CKM_MD5_RSA_PKCS, RSA, NONE),
    row(CKM_SHA1_RSA_PKCS, RSA, NONE),
    row(CKM_SHA224_RSA_PKCS, RSA, NONE),
    row(CKM_SHA256_RSA_PKCS, RSA, NONE),
    row(CKM_SHA384_RSA_PKCS, RSA, NONE),
    row(CKM_SHA512_RSA_PKCS, RSA, NONE),
    row(CKM_SHA3_224_RSA_PKCS, RSA, NONE),
    row(CKM_SHA3_256_RSA_PKCS, RSA, NONE),
    row(CKM_SHA3_384_RSA_PKCS, RSA, NONE),
    row(CKM_SHA3_512_RSA_PKCS, RSA, NONE),
    row(CKM_SHA1_RSA_PKCS_PSS, RSA, pss(CKM_SHA_1, CKG_MGF1_SHA1, 20)),
    row(CKM_SHA224_RSA_PKCS_PSS, RSA, pss(CKM_SHA224, CKG_MGF1_SHA224, 28)),
    row(CKM_SHA256_RSA_PKCS_PSS, RSA, pss(CKM_SHA256, CKG_MGF1_SHA256, 32)),
    row(CKM_SHA384_RSA_PKCS_PSS, RSA, pss(CKM_SHA384, CKG_MGF1_SHA384, 48)),
    row(CKM_SHA512_RSA_PKCS_PSS, RSA, pss(CKM_SHA512, CKG_MGF1_SHA512, 64)),
    row(CKM_SHA3_224_RSA_PKCS_PSS, RSA, pss(CKM_SHA3_224, CKG_MGF1_SHA3_224, 28)),
    row(CKM_SHA3_256_RSA_PKCS_PSS, RSA, pss(CKM_SHA3_256, CKG_MGF1_SHA3_256, 32)),
    row(CKM_SHA3_384_RSA_PKCS_PSS, RSA, pss(CKM_SHA3_384, CKG_MGF1_SHA3_384, 48)),
    row(CKM_SHA3_512_RSA_PKCS_PSS, RSA, pss(CKM_SHA3_512, CKG_MGF1_SHA3_512, 64)),
    row(CKM_ECDSA, P256, NONE),
    row(CKM_ECDSA_SHA1, P256, NONE),
    row(CKM_ECDSA_SHA224, P256, NONE),
    row(CKM_ECDSA_SHA256, P256, NONE),
    row(CKM_ECDSA_SHA384, P256, NONE),
    row(CKM_ECDSA_SHA512, P256, NONE),
    row(CKM_ECDSA_SHA3_224, P256, NONE),
    row(CKM_ECDSA_SHA3_256, P256, NONE),
    row(CKM_ECDSA_SHA3_384, P256, NONE),
    row(CKM_ECDSA_SHA3_512, P256, NONE),
    row(CKM_EDDSA, ED25519, NONE),
];

/// What is signed with a private key, or encrypted with a public one, in bytes.
pub(super) const ONCE: usize = 32;
/// Sizes of everything else.
pub(super) const SIZES: [usize; 5] = [16, 256, 8 << 10, 64 << 10, 1 << 20];

/// The jobs of one mechanism and function: one for each size, or one.
pub(super) fn jobs(mechanism: CK_MECHANISM_TYPE, function: Function) -> Option<Vec<Job>> {
    let Recipe { key, parameter, .. } = *RECIPES.iter().find(|row| row.mechanism == mechanism)?;
    let job = |bytes: usize| Job { mechanism, function, key, parameter, bytes };
    Some(match key {
        Key::Rsa(_) | Key::Curve(_) => vec![job(ONCE)],
        Key::None | Key::Secret(..) => SIZES.into_iter().map(job).collect(),
    })
}

pub(super) const MECHANISM: &str = "mechanism";

pub(super) const FUNCTION: &str = "function";

pub(super) const BYTES: &str = "bytes";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_mechanism_has_one_recipe_and_a_name() {
        for (at, row) in RECIPES.iter().enumerate() {
            let name = mechanism_name(row.mechanism);
            assert!(name.is_some(), "{}", row.mechanism);
            let again = RECIPES[..at].iter().any(|other| other.mechanism == row.mechanism);
            assert!(!again, "{name:?} stands there twice");
        }
    }

    #[test]
    fn public_key_operations_have_one_size_and_the_others_five() {
        assert_eq!(jobs(CKM_ECDSA, Function::Sign).unwrap().len(), 1);
        assert_eq!(jobs(CKM_SHA256, Function::Digest).unwrap().len(), 5);
        assert!(jobs(CKM_RSA_PKCS_KEY_PAIR_GEN, Function::Sign).is_none());
    }
}

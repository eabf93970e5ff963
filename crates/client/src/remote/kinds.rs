// SPDX-License-Identifier: Apache-2.0
//! How p11-kit's protocol writes attributes and mechanisms. What its versions write differently, or do not know, is not there.

use metaslot_ck::*;

/// How a value is written.
#[derive(Clone, Copy, Eq, PartialEq)]
pub(super) enum Kind {
    Byte,
    Number,
    Numbers,
    Bytes,
}

pub(super) fn kind(attribute: CK_ATTRIBUTE_TYPE) -> Option<Kind> {
    Some(match attribute {
        CKA_TOKEN
        | CKA_PRIVATE
        | CKA_TRUSTED
        | CKA_SENSITIVE
        | CKA_ENCRYPT
        | CKA_DECRYPT
        | CKA_WRAP
        | CKA_UNWRAP
        | CKA_SIGN
        | CKA_SIGN_RECOVER
        | CKA_VERIFY
        | CKA_VERIFY_RECOVER
        | CKA_DERIVE
        | CKA_EXTRACTABLE
        | CKA_LOCAL
        | CKA_NEVER_EXTRACTABLE
        | CKA_ALWAYS_SENSITIVE
        | CKA_MODIFIABLE
        | CKA_COPYABLE
        | CKA_ALWAYS_AUTHENTICATE
        | CKA_WRAP_WITH_TRUSTED => Kind::Byte,
        CKA_CLASS
        | CKA_CERTIFICATE_TYPE
        | CKA_CERTIFICATE_CATEGORY
        | CKA_KEY_TYPE
        | CKA_MODULUS_BITS
        | CKA_PRIME_BITS
        | CKA_SUBPRIME_BITS
        | CKA_VALUE_BITS
        | CKA_VALUE_LEN
        | CKA_KEY_GEN_MECHANISM => Kind::Number,
        CKA_ALLOWED_MECHANISMS => Kind::Numbers,
        CKA_LABEL | CKA_APPLICATION | CKA_VALUE | CKA_OBJECT_ID | CKA_ISSUER
        | CKA_SERIAL_NUMBER | CKA_SUBJECT | CKA_ID | CKA_MODULUS | CKA_PUBLIC_EXPONENT
        | CKA_PRIVATE_EXPONENT | CKA_PRIME_1 | CKA_PRIME_2 | CKA_EXPONENT_1 | CKA_EXPONENT_2
        | CKA_COEFFICIENT | CKA_PRIME | CKA_SUBPRIME | CKA_BASE | CKA_EC_PARAMS | CKA_EC_POINT
        | CKA_CHECK_VALUE | CKA_URL | CKA_START_DATE | CKA_END_DATE => Kind::Bytes,
        _ => return None,
    })
}

/// Mechanisms without a parameter, of which every version knows that they have none.
pub(super) fn has_no_parameter(mechanism: CK_MECHANISM_TYPE) -> bool {
    matches!(
        mechanism,
        CKM_RSA_PKCS_KEY_PAIR_GEN
            | CKM_RSA_PKCS
            | CKM_RSA_X_509
            | CKM_SHA1_RSA_PKCS
            | CKM_SHA224_RSA_PKCS
            | CKM_SHA256_RSA_PKCS
            | CKM_SHA384_RSA_PKCS
            | CKM_SHA512_RSA_PKCS
            | CKM_EC_KEY_PAIR_GEN
            | CKM_ECDSA
            | CKM_ECDSA_SHA1
            | CKM_ECDSA_SHA224
            | CKM_ECDSA_SHA256
            | CKM_ECDSA_SHA384
            | CKM_ECDSA_SHA512
            | CKM_GENERIC_SECRET_KEY_GEN
            | CKM_AES_KEY_GEN
            | CKM_AES_ECB
            | CKM_AES_CMAC
            | CKM_DES3_KEY_GEN
            | CKM_MD5
            | CKM_SHA_1
            | CKM_SHA_1_HMAC
            | CKM_SHA224
            | CKM_SHA224_HMAC
            | CKM_SHA256
            | CKM_SHA256_HMAC
            | CKM_SHA384
            | CKM_SHA384_HMAC
            | CKM_SHA512
            | CKM_SHA512_HMAC
    )
}

/// Those with one that every version writes in the same way.
pub(super) fn has_parameter(mechanism: CK_MECHANISM_TYPE) -> bool {
    matches!(
        mechanism,
        CKM_RSA_PKCS_PSS
            | CKM_RSA_PKCS_OAEP
            | CKM_AES_CBC
            | CKM_AES_CBC_PAD
            | CKM_DES3_CBC
            | CKM_DES3_CBC_PAD
    )
}

// SPDX-License-Identifier: Apache-2.0
//! How p11-kit's protocol writes attributes and mechanisms, and which of them every version writes in the same way: our client
//! sends no others, but in the version that is [our own](OWN), which has all of the vocabulary.

use super::version::OWN;
use metaslot_ck::attribute::{self, AttributeRow};
use metaslot_ck::*;

/// How a value is written.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Kind {
    /// A byte.
    Byte,
    /// A number of the standard.
    Number,
    /// Several.
    Numbers,
    /// Bytes with their number before them.
    Bytes,
    /// An array of attributes.
    Template,
}

/// How a value is written in this version of the protocol.
#[must_use]
pub fn kind_in(attribute: CK_ATTRIBUTE_TYPE, version: u8) -> Kind {
    match version >= OWN {
        true => carried(attribute, version).unwrap_or(Kind::Bytes),
        false => kind(attribute),
    }
}

/// How a value is written by the versions of p11-kit's that know the attribute; what they do not know is bytes.
#[must_use]
pub fn kind(attribute: CK_ATTRIBUTE_TYPE) -> Kind {
    match attribute {
        CKA_WRAP_TEMPLATE | CKA_UNWRAP_TEMPLATE | CKA_DERIVE_TEMPLATE => Kind::Template,
        CKA_SECONDARY_AUTH | CKA_RESET_ON_INIT | CKA_HAS_RESET | CKA_COLOR => Kind::Byte,
        CKA_JAVA_MIDP_SECURITY_DOMAIN
        | CKA_AUTH_PIN_FLAGS
        | CKA_HW_FEATURE_TYPE
        | CKA_PIXEL_X
        | CKA_PIXEL_Y
        | CKA_RESOLUTION
        | CKA_CHAR_ROWS
        | CKA_CHAR_COLUMNS
        | CKA_BITS_PER_PIXEL
        | CKA_MECHANISM_TYPE => Kind::Number,
        _ => carried_by_all(attribute).unwrap_or(Kind::Bytes),
    }
}

/// How a value is written, if our client sends the attribute and takes it.
pub(super) fn carried(attribute: CK_ATTRIBUTE_TYPE, version: u8) -> Option<Kind> {
    if version < OWN {
        return carried_by_all(attribute);
    }
    AttributeRow::kind_of(attribute).map(|kind| match kind {
        attribute::Kind::Bool => Kind::Byte,
        attribute::Kind::Ulong => Kind::Number,
        attribute::Kind::Ulongs => Kind::Numbers,
        attribute::Kind::Template => Kind::Template,
        attribute::Kind::Bytes | attribute::Kind::BigInteger | attribute::Kind::Date => Kind::Bytes,
    })
}

fn carried_by_all(attribute: CK_ATTRIBUTE_TYPE) -> Option<Kind> {
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

/// Used without its parameter, which is optional: only versions with a byte for that can say so.
pub(super) fn may_have_parameter(mechanism: CK_MECHANISM_TYPE) -> bool {
    matches!(mechanism, CKM_EDDSA)
}

/// How the parameter of a mechanism is written.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Form {
    /// There is none, and nothing is said about it.
    Nothing,
    /// Bytes with their number before them: an IV, or a public value.
    Bytes,
    /// A number: `CK_MAC_GENERAL_PARAMS`.
    Number,
    /// `CK_RSA_PKCS_PSS_PARAMS`: three numbers.
    Pss,
    /// `CK_RSA_PKCS_OAEP_PARAMS`: three numbers, and bytes.
    Oaep,
    /// `CK_ECDH1_DERIVE_PARAMS`: a number, and twice bytes.
    Ecdh1,
    /// `CK_AES_CTR_PARAMS`: a number, and bytes.
    Ctr,
    /// `CK_GCM_PARAMS`: bytes and a number, twice.
    Gcm,
}

/// How the versions that know the mechanism write its parameter; what they do not know has bytes.
#[must_use]
pub fn form(mechanism: CK_MECHANISM_TYPE) -> Form {
    match mechanism {
        CKM_RSA_PKCS_PSS
        | CKM_SHA1_RSA_PKCS_PSS
        | CKM_SHA224_RSA_PKCS_PSS
        | CKM_SHA256_RSA_PKCS_PSS
        | CKM_SHA384_RSA_PKCS_PSS
        | CKM_SHA512_RSA_PKCS_PSS => Form::Pss,
        CKM_RSA_PKCS_OAEP => Form::Oaep,
        CKM_ECDH1_DERIVE => Form::Ecdh1,
        CKM_AES_CTR => Form::Ctr,
        CKM_AES_GCM => Form::Gcm,
        CKM_SHA_1_HMAC_GENERAL
        | CKM_SHA224_HMAC_GENERAL
        | CKM_SHA256_HMAC_GENERAL
        | CKM_SHA384_HMAC_GENERAL
        | CKM_SHA512_HMAC_GENERAL
        | CKM_SHA512_224_HMAC_GENERAL
        | CKM_SHA512_256_HMAC_GENERAL
        | CKM_AES_MAC_GENERAL
        | CKM_AES_CMAC_GENERAL
        | CKM_DES3_MAC_GENERAL
        | CKM_DES3_CMAC_GENERAL => Form::Number,
        _ if has_no_parameter(mechanism) || NONE_WHERE_KNOWN.contains(&mechanism) => Form::Nothing,
        _ => Form::Bytes,
    }
}

/// Mechanisms that have no parameter in the versions that know them, beside those of [`has_no_parameter`].
const NONE_WHERE_KNOWN: &[CK_MECHANISM_TYPE] = &[
    CKM_RSA_X9_31_KEY_PAIR_GEN,
    CKM_RSA_9796,
    CKM_RSA_X9_31,
    CKM_MD2_RSA_PKCS,
    CKM_MD5_RSA_PKCS,
    CKM_RIPEMD128_RSA_PKCS,
    CKM_RIPEMD160_RSA_PKCS,
    CKM_SHA1_RSA_X9_31,
    CKM_DSA_KEY_PAIR_GEN,
    CKM_DSA_PARAMETER_GEN,
    CKM_DSA,
    CKM_DSA_SHA1,
    CKM_FORTEZZA_TIMESTAMP,
    CKM_DH_PKCS_KEY_PAIR_GEN,
    CKM_DH_PKCS_PARAMETER_GEN,
    CKM_X9_42_DH_KEY_PAIR_GEN,
    CKM_X9_42_DH_PARAMETER_GEN,
    CKM_KEA_KEY_PAIR_GEN,
    CKM_RC2_KEY_GEN,
    CKM_RC4_KEY_GEN,
    CKM_RC4,
    CKM_RC5_KEY_GEN,
    CKM_AES_MAC,
    CKM_DES_KEY_GEN,
    CKM_DES2_KEY_GEN,
    CKM_CDMF_KEY_GEN,
    CKM_CAST_KEY_GEN,
    CKM_CAST3_KEY_GEN,
    CKM_CAST128_KEY_GEN,
    CKM_IDEA_KEY_GEN,
    CKM_SSL3_PRE_MASTER_KEY_GEN,
    CKM_TLS_PRE_MASTER_KEY_GEN,
    CKM_SKIPJACK_KEY_GEN,
    CKM_BATON_KEY_GEN,
    CKM_JUNIPER_KEY_GEN,
    CKM_RC2_ECB,
    CKM_DES_ECB,
    CKM_DES3_ECB,
    CKM_CDMF_ECB,
    CKM_CAST_ECB,
    CKM_CAST3_ECB,
    CKM_CAST128_ECB,
    CKM_RC5_ECB,
    CKM_IDEA_ECB,
    CKM_RC2_MAC,
    CKM_DES_MAC,
    CKM_DES3_MAC,
    CKM_DES3_CMAC,
    CKM_CDMF_MAC,
    CKM_CAST_MAC,
    CKM_CAST3_MAC,
    CKM_RC5_MAC,
    CKM_IDEA_MAC,
    CKM_SSL3_MD5_MAC,
    CKM_SSL3_SHA1_MAC,
    CKM_SKIPJACK_WRAP,
    CKM_BATON_WRAP,
    CKM_JUNIPER_WRAP,
    CKM_MD2,
    CKM_MD2_HMAC,
    CKM_MD5_HMAC,
    CKM_SHA1_KEY_DERIVATION,
    CKM_SHA224_KEY_DERIVATION,
    CKM_SHA256_KEY_DERIVATION,
    CKM_SHA384_KEY_DERIVATION,
    CKM_SHA512_KEY_DERIVATION,
    CKM_SHA512_T,
    CKM_SHA512_T_HMAC,
    CKM_SHA512_T_KEY_DERIVATION,
    CKM_SHA512_224,
    CKM_SHA512_224_HMAC,
    CKM_SHA512_224_KEY_DERIVATION,
    CKM_SHA512_256,
    CKM_SHA512_256_HMAC,
    CKM_SHA512_256_KEY_DERIVATION,
    CKM_FASTHASH,
    CKM_RIPEMD128,
    CKM_RIPEMD128_HMAC,
    CKM_RIPEMD160,
    CKM_RIPEMD160_HMAC,
    CKM_KEY_WRAP_LYNKS,
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_every_version_carries_ours_writes_in_the_same_way() {
        for row in AttributeRow::all() {
            let usual = carried_by_all(row.number);
            let own = carried(row.number, OWN);
            assert!(own.is_some() && (usual.is_none() || usual == own), "{:#x}", row.number);
        }
        // Of a vendor that is not known.
        assert_eq!(carried(CKA_VENDOR_DEFINED | 1, OWN), None);
        assert_eq!(kind_in(CKA_PARAMETER_SET, OWN), Kind::Number);
        assert_eq!(kind_in(CKA_PARAMETER_SET, 2), Kind::Bytes);
    }
}

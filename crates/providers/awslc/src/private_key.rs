// SPDX-License-Identifier: Apache-2.0
//! Keys that come from outside, by class and key type.

use crate::eddsa::ED25519_KEYS;
use crate::montgomery::X25519_KEYS;
use crate::{domain, ec, field, hotp, rsa_key, secret_key, seeded};
use metaslot_awslc_wrapper::ml_dsa::MlDsaKey;
use metaslot_awslc_wrapper::ml_kem::MlKemKey;
use metaslot_ck::*;
use metaslot_spi::NewObject;
use metaslot_spi::prime_key::{complete_private, complete_public};

/// As `Provider::complete`.
pub(crate) fn complete(object: &mut NewObject) -> Result<()> {
    let class = object.attributes.ulong(CKA_CLASS).ok_or(Error::TEMPLATE_INCOMPLETE)?;
    let key_type = object.attributes.ulong(CKA_KEY_TYPE).ok_or(Error::TEMPLATE_INCOMPLETE)?;
    match (class, key_type) {
        (CKO_SECRET_KEY, CKK_HOTP) => Err(Error::TEMPLATE_INCONSISTENT),
        (CKO_SECRET_KEY, _) => secret_key::complete(object),
        (CKO_OTP_KEY, CKK_HOTP) => hotp::complete(object),
        (CKO_PUBLIC_KEY, CKK_RSA) => rsa_key::complete_public(object),
        (CKO_PRIVATE_KEY, CKK_RSA) => rsa_key::complete_private(object),
        (CKO_PUBLIC_KEY, CKK_EC) => complete_public::<ec::Library>(object),
        (CKO_PRIVATE_KEY, CKK_EC) => complete_private::<ec::Library>(object),
        (CKO_PUBLIC_KEY, CKK_EC_EDWARDS) => ED25519_KEYS.complete_public(object),
        (CKO_PRIVATE_KEY, CKK_EC_EDWARDS) => ED25519_KEYS.complete_private(object),
        (CKO_PUBLIC_KEY, CKK_EC_MONTGOMERY) => X25519_KEYS.complete_public(object),
        (CKO_PRIVATE_KEY, CKK_EC_MONTGOMERY) => X25519_KEYS.complete_private(object),
        (CKO_PUBLIC_KEY, CKK_ML_DSA) => seeded::complete_public::<MlDsaKey>(object),
        (CKO_PRIVATE_KEY, CKK_ML_DSA) => seeded::complete_private::<MlDsaKey>(object),
        (CKO_PUBLIC_KEY, CKK_ML_KEM) => seeded::complete_public::<MlKemKey>(object),
        (CKO_PRIVATE_KEY, CKK_ML_KEM) => seeded::complete_private::<MlKemKey>(object),
        (CKO_PUBLIC_KEY, CKK_DSA | CKK_DH | CKK_X9_42_DH) => field::complete_public(object),
        (CKO_PRIVATE_KEY, CKK_DSA | CKK_DH | CKK_X9_42_DH) => field::complete_private(object),
        (CKO_DOMAIN_PARAMETERS, CKK_DSA | CKK_DH | CKK_X9_42_DH) => domain::complete(object),
        // Another provider's.
        (CKO_PUBLIC_KEY | CKO_PRIVATE_KEY, _) => Err(Error::FUNCTION_NOT_SUPPORTED),
        _ => Err(Error::TEMPLATE_INCONSISTENT),
    }
}

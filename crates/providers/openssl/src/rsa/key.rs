// SPDX-License-Identifier: Apache-2.0
//! The prepared form of RSA keys.

use metaslot_ck::*;
use metaslot_openssl_wrapper::rsa::{Rsa, RsaNumbers};
use metaslot_spi::{Key, der};

/// Moduli that are served, in bits. Which may be made is for the policy to say.
pub(super) const SIZES: (u64, u64) = (512, 8192);

/// What PKCS #1 v1.5 adds to a message at least, in bytes.
pub(super) const PKCS1_OVERHEAD: usize = 11;

/// OpenSSL takes longer public exponents only with short moduli: longest exponent, and longest modulus that has others, in bytes.
const EXPONENTS: (usize, usize) = (8, 3072 / 8);

/// Whether OpenSSL computes with such a key.
pub(super) fn serves(key: &Key) -> bool {
    let length = |number| key.attributes().bytes(number).map_or(0, |n| der::without_zeros(n).len());
    length(CKA_PUBLIC_EXPONENT) <= EXPONENTS.0 || length(CKA_MODULUS) <= EXPONENTS.1
}

/// The prepared form of a public or private key.
pub(super) fn prepared(key: &Key) -> Result<&Rsa> {
    key.prepared(|key| {
        let rsa = if key.class() == CKO_PRIVATE_KEY {
            Rsa::private(&RsaNumbers {
                modulus: key.bytes(CKA_MODULUS)?,
                public_exponent: key.bytes(CKA_PUBLIC_EXPONENT)?,
                private_exponent: key.secret(CKA_PRIVATE_EXPONENT)?,
                prime_1: key.secret(CKA_PRIME_1)?,
                prime_2: key.secret(CKA_PRIME_2)?,
                exponent_1: key.secret(CKA_EXPONENT_1)?,
                exponent_2: key.secret(CKA_EXPONENT_2)?,
                coefficient: key.secret(CKA_COEFFICIENT)?,
            })
        } else {
            Rsa::public(key.bytes(CKA_MODULUS)?, key.bytes(CKA_PUBLIC_EXPONENT)?)
        };
        let rsa = rsa.map_err(|_| Error::ATTRIBUTE_VALUE_INVALID)?;
        let bits = rsa.bits() as u64;
        if (SIZES.0..=SIZES.1).contains(&bits) { Ok(rsa) } else { Err(Error::KEY_SIZE_RANGE) }
    })
}

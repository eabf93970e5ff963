// SPDX-License-Identifier: Apache-2.0
//! How a mechanism is used where nothing else is said: its key and its parameter, from the vocabulary.

use super::job::{Curve, Function, Job, Key, Parameter};
use metaslot_ck::mechanism::{MechanismRow, Shape};
use metaslot_ck::*;

impl Job {
    /// The job of a mechanism; nothing where it takes no data.
    pub(crate) fn usual(
        mechanism: CK_MECHANISM_TYPE,
        function: Function,
        bytes: usize,
    ) -> Option<Self> {
        let row = MechanismRow::find(mechanism)?;
        let key = row.keys.first().map_or(Some(Key::None), |kind| key(*kind))?;
        Some(Self { mechanism, function, key, parameter: parameter(row)?, bytes })
    }

    /// A job that calls no mechanism.
    pub(crate) const fn without_key(function: Function, bytes: usize) -> Self {
        let (key, parameter) = (Key::None, Parameter::None);
        Self { mechanism: UNAVAILABLE, function, key, parameter, bytes }
    }
}

/// The length of a MAC that is cut.
const SHORT: CK_ULONG = 8;

/// The key of a job, by its type.
const fn key(kind: CK_KEY_TYPE) -> Option<Key> {
    Some(match kind {
        CKK_RSA => Key::Rsa(2048),
        CKK_EC => Key::Curve(Curve::P256),
        CKK_EC_EDWARDS => Key::Curve(Curve::Ed25519),
        CKK_ML_DSA => Key::MlDsa65,
        CKK_ML_KEM => Key::MlKem768,
        CKK_AES | CKK_CHACHA20 => Key::Secret(kind, 32),
        CKK_AES_XTS | CKK_GENERIC_SECRET => Key::Secret(kind, 64),
        CKK_DES3 => Key::Secret(kind, 24),
        CKK_RC4 => Key::Secret(kind, 16),
        _ => return None,
    })
}

/// The parameter of a job, by its layout.
fn parameter(row: &MechanismRow) -> Option<Parameter> {
    Some(match row.shape {
        Shape::None | Shape::OptionalIv(_) | Shape::EdDsa | Shape::SignContext => Parameter::None,
        Shape::Iv(length) => Parameter::Iv(length),
        Shape::Nonce => Parameter::Nonce,
        Shape::Ulong => Parameter::Length(SHORT),
        Shape::Ctr => Parameter::Ctr,
        Shape::Gcm => Parameter::Gcm,
        Shape::Ccm => Parameter::Ccm,
        Shape::ChaCha20Poly1305 => Parameter::ChaCha,
        Shape::Oaep => Parameter::Oaep(CKM_SHA256, CKG_MGF1_SHA256),
        Shape::Pss => pss(row.number)?,
        _ => return None,
    })
}

/// A salt as long as the digest.
fn pss(mechanism: CK_MECHANISM_TYPE) -> Option<Parameter> {
    let (hash, mgf, salt) = match mechanism {
        CKM_SHA1_RSA_PKCS_PSS => (CKM_SHA_1, CKG_MGF1_SHA1, 20),
        CKM_SHA224_RSA_PKCS_PSS => (CKM_SHA224, CKG_MGF1_SHA224, 28),
        CKM_RSA_PKCS_PSS | CKM_SHA256_RSA_PKCS_PSS => (CKM_SHA256, CKG_MGF1_SHA256, 32),
        CKM_SHA384_RSA_PKCS_PSS => (CKM_SHA384, CKG_MGF1_SHA384, 48),
        CKM_SHA512_RSA_PKCS_PSS => (CKM_SHA512, CKG_MGF1_SHA512, 64),
        CKM_SHA3_224_RSA_PKCS_PSS => (CKM_SHA3_224, CKG_MGF1_SHA3_224, 28),
        CKM_SHA3_256_RSA_PKCS_PSS => (CKM_SHA3_256, CKG_MGF1_SHA3_256, 32),
        CKM_SHA3_384_RSA_PKCS_PSS => (CKM_SHA3_384, CKG_MGF1_SHA3_384, 48),
        CKM_SHA3_512_RSA_PKCS_PSS => (CKM_SHA3_512, CKG_MGF1_SHA3_512, 64),
        _ => return None,
    };
    Some(Parameter::Pss(hash, mgf, salt))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_and_parameters_are_those_of_the_vocabulary() {
        let job = |mechanism| Job::usual(mechanism, Function::Sign, 16);
        let like = |mechanism, key, parameter| {
            let job = job(mechanism).unwrap();
            assert_eq!((job.key, job.parameter), (key, parameter));
        };
        like(
            CKM_SHA512_256_HMAC_GENERAL,
            Key::Secret(CKK_GENERIC_SECRET, 64),
            Parameter::Length(8),
        );
        like(CKM_DES3_CBC, Key::Secret(CKK_DES3, 24), Parameter::Iv(8));
        like(CKM_EDDSA, Key::Curve(Curve::Ed25519), Parameter::None);
        like(CKM_MD5, Key::None, Parameter::None);
        assert_eq!(job(CKM_HKDF_DERIVE), None);
    }

    #[test]
    fn every_signature_with_a_salt_has_its_hash() {
        let shown = |row: &&MechanismRow| row.shape == Shape::Pss;
        for row in MechanismRow::all().iter().filter(shown) {
            assert!(pss(row.number).is_some(), "{:?}", mechanism_name(row.number));
        }
    }
}

// SPDX-License-Identifier: Apache-2.0
//! ECDH with one key pair a side (PKCS#11 3.2 §6.3.19 and §6.3.20) on the short Weierstrass curves
//! and with X25519, and the key derivation functions after it.

use crate::{device_error, ec, montgomery};
use metaslot_awslc::counter_kdf::expand;
use metaslot_awslc::digest::Hash;
use metaslot_ck::*;
use metaslot_engine::provider::{Algorithm, Derive, Keys, checked};
use metaslot_engine::{Key, Params};
use metaslot_memory::Secret;

const fn row(mechanism: CK_MECHANISM_TYPE) -> Algorithm {
    Algorithm {
        mechanism,
        key_sizes: ec::SIZES,
        derive: Some(&Ecdh),
        extra_flags: ec::FLAGS,
        ..Algorithm::NONE
    }
}

// Every curve here has cofactor 1, and X25519 clears its own: both mechanisms are one.
pub(crate) const ROWS: [Algorithm; 2] =
    checked([row(CKM_ECDH1_DERIVE), row(CKM_ECDH1_COFACTOR_DERIVE)]);

/// What is made of the shared secret.
#[derive(Clone, Copy)]
enum Kdf {
    /// `CKD_NULL`: the secret itself.
    None,
    /// ANSI X9.63: secret, counter, shared data.
    X963(Hash),
    /// SP 800-56A, concatenation: counter, secret, other information.
    Sp800(Hash),
}

impl Kdf {
    fn new(kdf: u64, shared: &[u8]) -> Result<Self> {
        Ok(match kdf {
            CKD_NULL if shared.is_empty() => Self::None,
            CKD_SHA1_KDF => Self::X963(Hash::Sha1),
            CKD_SHA224_KDF => Self::X963(Hash::Sha224),
            CKD_SHA256_KDF => Self::X963(Hash::Sha256),
            CKD_SHA384_KDF => Self::X963(Hash::Sha384),
            CKD_SHA512_KDF => Self::X963(Hash::Sha512),
            CKD_SHA3_224_KDF => Self::X963(Hash::Sha3_224),
            CKD_SHA3_256_KDF => Self::X963(Hash::Sha3_256),
            CKD_SHA3_384_KDF => Self::X963(Hash::Sha3_384),
            CKD_SHA3_512_KDF => Self::X963(Hash::Sha3_512),
            CKD_SHA1_KDF_SP800 => Self::Sp800(Hash::Sha1),
            CKD_SHA224_KDF_SP800 => Self::Sp800(Hash::Sha224),
            CKD_SHA256_KDF_SP800 => Self::Sp800(Hash::Sha256),
            CKD_SHA384_KDF_SP800 => Self::Sp800(Hash::Sha384),
            CKD_SHA512_KDF_SP800 => Self::Sp800(Hash::Sha512),
            CKD_SHA3_224_KDF_SP800 => Self::Sp800(Hash::Sha3_224),
            CKD_SHA3_256_KDF_SP800 => Self::Sp800(Hash::Sha3_256),
            CKD_SHA3_384_KDF_SP800 => Self::Sp800(Hash::Sha3_384),
            CKD_SHA3_512_KDF_SP800 => Self::Sp800(Hash::Sha3_512),
            _ => return Err(Error::MECHANISM_PARAM_INVALID),
        })
    }

    fn derive(self, secret: &Secret, shared: &[u8], length: usize) -> Result<Secret> {
        let secret = secret.expose();
        match self {
            Self::None => {
                // §6.3.19: truncation takes bytes off the leading end.
                let surplus = secret.len().checked_sub(length).ok_or(Error::KEY_SIZE_RANGE)?;
                Ok(Secret::copy_of(&secret[surplus..]))
            }
            Self::X963(hash) => expand(hash, length, secret, &[shared]).map_err(device_error),
            Self::Sp800(hash) => expand(hash, length, &[], &[secret, shared]).map_err(device_error),
        }
    }
}

/// No derived key is longer, in bytes.
const MAX_LENGTH: usize = 1 << 16;

#[derive(Debug)]
struct Ecdh;

fn ecdh(params: &Params) -> Result<(Kdf, &[u8], &[u8])> {
    let Params::Ecdh1 { kdf, shared, public } = params else {
        return Err(Error::MECHANISM_PARAM_INVALID);
    };
    Ok((Kdf::new(*kdf, shared)?, shared, public))
}

fn agree(key: &Key, peer: &[u8]) -> Result<Secret> {
    if key.key_type() == CKK_EC_MONTGOMERY {
        return montgomery::agree(key, peer);
    }
    let key = ec::prepared(key)?;
    let mut secret = Secret::zeroed(key.curve().length());
    key.diffie_hellman(ec::point(key.curve(), peer), secret.expose_mut())
        .map_err(|_| Error::MECHANISM_PARAM_INVALID)?;
    Ok(secret)
}

impl Derive for Ecdh {
    fn check(&self, key: &Key, params: &Params) -> Result<()> {
        if key.class() != CKO_PRIVATE_KEY {
            return Err(Error::KEY_TYPE_INCONSISTENT);
        }
        ecdh(params)?;
        match key.key_type() {
            CKK_EC => ec::prepared(key).map(|_| ()),
            CKK_EC_MONTGOMERY => montgomery::check(key),
            _ => Err(Error::KEY_TYPE_INCONSISTENT),
        }
    }

    fn natural_length(&self, key: &Key, params: &Params) -> Option<usize> {
        match ecdh(params).ok()?.0 {
            Kdf::None if key.key_type() == CKK_EC_MONTGOMERY => Some(montgomery::LENGTH),
            Kdf::None => ec::prepared(key).ok().map(|key| key.curve().length()),
            Kdf::X963(_) | Kdf::Sp800(_) => None,
        }
    }

    fn derive(
        &self,
        key: &Key,
        params: &Params,
        lengths: &[usize],
        _: &dyn Keys,
    ) -> Result<Vec<Secret>> {
        let (kdf, shared, public) = ecdh(params)?;
        let &[length @ 1..=MAX_LENGTH] = lengths else {
            return Err(Error::KEY_SIZE_RANGE);
        };
        let secret = agree(key, public)?;
        Ok(vec![kdf.derive(&secret, shared, length)?])
    }
}

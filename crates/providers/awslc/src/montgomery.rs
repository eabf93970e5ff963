// SPDX-License-Identifier: Apache-2.0
//! X25519 keys (PKCS#11 3.2 §6.3.11); the agreement itself is reached through `ecdh`.

use crate::generate;
use metaslot_awslc_wrapper::curve25519::{KEY_LENGTH, x25519, x25519_public};
use metaslot_ck::*;
use metaslot_memory::Secret;
use metaslot_spi::number_key::{self, NumberCurve};
use metaslot_spi::provider::{Algorithm, GeneratePair, checked};
use metaslot_spi::{Attributes, Key, NewObject, Params, key_info};

/// Length of keys and of the shared secret, in bytes.
pub(crate) const LENGTH: usize = KEY_LENGTH;

pub(crate) const ROWS: [Algorithm; 1] = checked([Algorithm {
    mechanism: CKM_EC_MONTGOMERY_KEY_PAIR_GEN,
    key_sizes: (255, 255),
    generate_pair: Some(&KeyPair),
    extra_flags: CKF_EC_F_P | CKF_EC_NAMEDCURVE | CKF_EC_CURVENAME,
    ..Algorithm::NONE
}]);

pub(crate) const X25519_KEYS: NumberCurve = NumberCurve {
    oid: number_key::X25519,
    length: LENGTH,
    public: |private| Ok(x25519_public(scalar(private)?).to_vec()),
    random: generate::random,
};

#[derive(Debug)]
pub(crate) struct KeyPair;

impl GeneratePair for KeyPair {
    fn serves(&self, public: &Attributes) -> bool {
        X25519_KEYS.serves(public)
    }

    fn generate_pair(&self, _: &Params, template: &Attributes) -> Result<(NewObject, NewObject)> {
        X25519_KEYS.generate(template)
    }
}

fn scalar(private: &[u8]) -> Result<&[u8; LENGTH]> {
    private.try_into().map_err(|_| Error::KEY_TYPE_INCONSISTENT)
}

/// Whether `key` can agree.
pub(crate) fn check(key: &Key) -> Result<()> {
    scalar(key.secret(CKA_VALUE)?).map(|_| ())
}

/// The shared secret of a private key's value with `peer`.
pub(crate) fn agree_by(private: &[u8], peer: &[u8]) -> Result<Secret> {
    let peer = key_info::number_point(peer).ok_or(Error::MECHANISM_PARAM_INVALID)?;
    let mut secret = Secret::zeroed(LENGTH);
    let out = secret.expose_mut().try_into().map_err(|_| Error::DEVICE_ERROR)?;
    x25519(scalar(private)?, peer, out).map_err(|_| Error::MECHANISM_PARAM_INVALID)?;
    Ok(secret)
}

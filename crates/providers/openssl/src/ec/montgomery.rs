// SPDX-License-Identifier: Apache-2.0
//! X25519 and X448 keys (PKCS#11 3.2 §6.3.11); the agreement itself is reached through `ecdh`.

use super::number::{generate, public_half, random};
use metaslot_ck::*;
use metaslot_memory::Secret;
use metaslot_openssl_wrapper::number_key::{Curve, NumberKey};
use metaslot_spi::number_key::{self, NumberCurve};
use metaslot_spi::provider::{Algorithm, GeneratePair, checked};
use metaslot_spi::{Attributes, Key, NewObject, Params, key_info};

pub(super) const ROWS: [Algorithm; 1] = checked([Algorithm {
    mechanism: CKM_EC_MONTGOMERY_KEY_PAIR_GEN,
    key_sizes: (255, 448),
    generate_pair: Some(&KeyPair),
    extra_flags: CKF_EC_F_P | CKF_EC_NAMEDCURVE | CKF_EC_CURVENAME,
    ..Algorithm::NONE
}]);

/// Both curves.
pub(super) static CURVES: [NumberCurve; 2] = [
    NumberCurve {
        oid: number_key::X25519,
        length: Curve::X25519.length(),
        public: |private| public_half(Curve::X25519, private),
        random,
    },
    NumberCurve {
        oid: number_key::X448,
        length: Curve::X448.length(),
        public: |private| public_half(Curve::X448, private),
        random,
    },
];

#[derive(Debug)]
struct KeyPair;

impl GeneratePair for KeyPair {
    fn generate_pair(&self, _: &Params, template: &Attributes) -> Result<(NewObject, NewObject)> {
        generate(&CURVES, template)
    }
}

/// A private key with its curve.
type Prepared = (Curve, NumberKey);

fn prepared(key: &Key) -> Result<&Prepared> {
    key.prepared(|key| {
        let private = key.secret(CKA_VALUE)?;
        let mut curves = [Curve::X25519, Curve::X448].into_iter();
        let curve = curves.find(|curve| curve.length() == private.len());
        let curve = curve.ok_or(Error::KEY_TYPE_INCONSISTENT)?;
        let made = NumberKey::private(curve, private).map_err(|_| Error::KEY_TYPE_INCONSISTENT)?;
        Ok((curve, made))
    })
}

/// Whether `key` can agree, and how long a secret is.
pub(super) fn length(key: &Key) -> Result<usize> {
    prepared(key).map(|(curve, _)| curve.length())
}

/// The shared secret with `peer`.
pub(super) fn agree(key: &Key, peer: &[u8]) -> Result<Secret> {
    let (curve, key) = prepared(key)?;
    let peer = key_info::number(curve.length(), peer).ok_or(Error::MECHANISM_PARAM_INVALID)?;
    let peer = NumberKey::public(*curve, peer).map_err(|_| Error::MECHANISM_PARAM_INVALID)?;
    let mut secret = Secret::zeroed(curve.length());
    key.agree(&peer, secret.expose_mut()).map_err(|_| Error::MECHANISM_PARAM_INVALID)?;
    Ok(secret)
}

// SPDX-License-Identifier: Apache-2.0
//! ECDH with one key pair a side (PKCS#11 3.2 §6.3.17 and §6.3.18) on the short Weierstrass curves
//! and with X25519, and the key derivation functions after it.

use crate::failure::device_error;
use crate::{digest, ec, montgomery};
use metaslot_awslc_wrapper::counter_kdf;
use metaslot_awslc_wrapper::ec::EcKey;
use metaslot_ck::*;
use metaslot_memory::Secret;
use metaslot_spi::agreement::Agreement;
use metaslot_spi::ephemeral::Ephemeral;
use metaslot_spi::provider::{Algorithm, Derive, Keys, checked};
use metaslot_spi::{Key, Params, number_key};

const fn row(mechanism: CK_MECHANISM_TYPE) -> Algorithm {
    Algorithm {
        mechanism,
        key_sizes: ec::SIZES,
        derive: Some(&Ecdh),
        encapsulate: Some(&EPHEMERAL),
        decapsulate: Some(&EPHEMERAL),
        extra_flags: ec::FLAGS,
        ..Algorithm::NONE
    }
}

// Every curve here has cofactor 1, and X25519 clears its own: both mechanisms are one.
pub(crate) const ROWS: [Algorithm; 2] =
    checked([row(CKM_ECDH1_DERIVE), row(CKM_ECDH1_COFACTOR_DERIVE)]);

const EPHEMERAL: Ephemeral = Ephemeral {
    derive: &Ecdh,
    pairs: |key| match key.key_type() {
        CKK_EC_MONTGOMERY => &montgomery::KeyPair,
        _ => &ec::KeyPair,
    },
    length: public_length,
};

/// Length of the public values that agree with a key, in bytes.
pub(crate) fn public_length(key: &Key) -> Result<usize> {
    match key.key_type() {
        CKK_EC_MONTGOMERY => Ok(montgomery::LENGTH),
        _ => Ok(ec::prepared(key)?.curve().point_length()),
    }
}

#[derive(Debug)]
struct Ecdh;

/// The secret that a private key shares with `peer`.
pub(crate) fn agree(key: &Key, peer: &[u8]) -> Result<Secret> {
    if key.key_type() == CKK_EC_MONTGOMERY {
        return montgomery::agree_by(key.secret(CKA_VALUE)?, peer);
    }
    agree_by(ec::prepared(key)?, peer)
}

/// The same on a short Weierstrass curve.
pub(crate) fn agree_by(key: &EcKey, peer: &[u8]) -> Result<Secret> {
    let mut secret = Secret::zeroed(key.curve().length());
    key.diffie_hellman(ec::point(key.curve(), peer), secret.expose_mut())
        .map_err(|_| Error::MECHANISM_PARAM_INVALID)?;
    Ok(secret)
}

impl Derive for Ecdh {
    fn serves(&self, key: &Key) -> bool {
        match key.key_type() {
            CKK_EC_MONTGOMERY => number_key::is_long(key, montgomery::LENGTH),
            _ => ec::serves(key),
        }
    }

    fn check(&self, key: &Key, params: &Params) -> Result<()> {
        key.check_class(CKO_PRIVATE_KEY)?;
        Agreement::read(params)?;
        match key.key_type() {
            CKK_EC => ec::prepared(key).map(|_| ()),
            CKK_EC_MONTGOMERY => montgomery::check(key),
            _ => Err(Error::KEY_TYPE_INCONSISTENT),
        }
    }

    fn natural_length(&self, key: &Key, params: &Params) -> Option<usize> {
        match key.key_type() {
            _ if !Agreement::read(params).ok()?.is_plain() => None,
            CKK_EC_MONTGOMERY => Some(montgomery::LENGTH),
            _ => ec::prepared(key).ok().map(|key| key.curve().length()),
        }
    }

    fn derive(
        &self,
        key: &Key,
        params: &Params,
        lengths: &[usize],
        _: &dyn Keys,
    ) -> Result<Vec<Secret>> {
        let agreement = Agreement::read(params)?;
        agreement.derive(lengths, || agree(key, agreement.public), expand)
    }
}

/// What [`Agreement::derive`] expands by.
pub(crate) fn expand(
    mechanism: CK_MECHANISM_TYPE,
    length: usize,
    head: &[u8],
    tail: &[&[u8]],
) -> Result<Secret> {
    let hash = digest::hash(mechanism).ok_or(Error::MECHANISM_PARAM_INVALID)?;
    counter_kdf::expand(hash, length, head, tail).map_err(device_error)
}

// SPDX-License-Identifier: Apache-2.0
//! Secrets into ciphertexts of ML-KEM and out of them (FIPS 203; PKCS#11 3.2 §6.68.5), over the plain provider's row.

use super::parts::{Plain, device_error, kept};
use crate::ml_kem::{self, PrivateKey, PublicKey, SECRET_LENGTH, Set};
use metaslot_ck::*;
use metaslot_memory::Secret;
use metaslot_spi::provider::{Algorithm, Direction, Encapsulation};
use metaslot_spi::{Key, Params};

/// The row, where the plain provider has it too.
pub(super) fn rows(plain: Plain) -> Vec<Algorithm> {
    let row = plain.row(CKM_ML_KEM);
    let made = row.and_then(|row| {
        let plain = row.decapsulate?;
        let ours = Some(kept(MlKem { plain }) as &dyn Encapsulation);
        Some(Algorithm { decapsulate: ours, encapsulate: ours, ..*row })
    });
    made.into_iter().collect()
}

#[derive(Debug)]
struct MlKem {
    plain: &'static dyn Encapsulation,
}

/// The set of a key of ML-KEM.
fn set(key: &Key) -> Option<Set> {
    let set = match key.attributes().ulong(CKA_PARAMETER_SET)? {
        CKP_ML_KEM_512 => Set::Ml512,
        CKP_ML_KEM_768 => Set::Ml768,
        CKP_ML_KEM_1024 => Set::Ml1024,
        _ => return None,
    };
    Some(set).filter(|_| key.key_type() == CKK_ML_KEM)
}

/// Of a key that the plain provider has checked: what fails here is not the key's fault, and another provider may do it.
fn public(key: &Key) -> Result<&PublicKey> {
    key.prepared(|key| {
        let set = set(key).ok_or(Error::KEY_TYPE_INCONSISTENT)?;
        let made = PublicKey::new(set, key.bytes(CKA_VALUE)?);
        made.map_err(device_error)
    })
}

/// As [`public`].
fn private(key: &Key) -> Result<&PrivateKey> {
    key.prepared(|key| {
        let set = set(key).ok_or(Error::KEY_TYPE_INCONSISTENT)?;
        let made = PrivateKey::new(set, key.secret(CKA_VALUE)?);
        made.map_err(device_error)
    })
}

impl Encapsulation for MlKem {
    fn serves(&self, key: &Key) -> bool {
        ml_kem::available() && set(key).is_some()
    }

    fn check(&self, direction: Direction, key: &Key, params: &Params) -> Result<()> {
        self.plain.check(direction, key, params)
    }

    fn ciphertext_length(&self, key: &Key, _: &Params) -> Result<usize> {
        set(key).map(Set::ciphertext_length).ok_or(Error::KEY_TYPE_INCONSISTENT)
    }

    fn natural_length(&self, _: &Key, _: &Params) -> Option<usize> {
        Some(SECRET_LENGTH)
    }

    fn encapsulate(&self, key: &Key, _: &Params, secret: &mut [u8], out: &mut [u8]) -> Result<()> {
        let made = public(key)?.encapsulate(out).map_err(device_error)?;
        secret.copy_from_slice(made.expose());
        Ok(())
    }

    fn decapsulate(
        &self,
        key: &Key,
        _: &Params,
        _: Option<usize>,
        ciphertext: &[u8],
    ) -> Result<Secret> {
        let key = private(key)?;
        if ciphertext.len() != key.set().ciphertext_length() {
            return Err(Error::WRAPPED_KEY_LEN_RANGE);
        }
        key.decapsulate(ciphertext).map_err(device_error)
    }
}

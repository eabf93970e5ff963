// SPDX-License-Identifier: Apache-2.0
//! Secrets out of ciphertexts of ML-KEM (FIPS 203; PKCS#11 3.2 §6.68.5), over the plain provider's row.

use super::parts::{Plain, kept};
use crate::ml_kem::{self, PrivateKey, SECRET_LENGTH, Set};
use metaslot_awslc_wrapper::Failed;
use metaslot_ck::*;
use metaslot_memory::Secret;
use metaslot_spi::provider::{Algorithm, Direction, Encapsulation};
use metaslot_spi::{Key, Params};

/// The row, where the plain provider has it too.
pub(super) fn rows(plain: Plain) -> Vec<Algorithm> {
    let row = plain.row(CKM_ML_KEM);
    let made = row.and_then(|row| {
        let plain = row.decapsulate?;
        Some(Algorithm { decapsulate: Some(kept(MlKem { plain })), encapsulate: None, ..*row })
    });
    made.into_iter().collect()
}

#[derive(Debug)]
struct MlKem {
    plain: &'static dyn Encapsulation,
}

/// The set of a private key, where it is one of ours.
fn set(key: &Key) -> Option<Set> {
    let set = match key.attributes().ulong(CKA_PARAMETER_SET)? {
        CKP_ML_KEM_768 => Set::Ml768,
        CKP_ML_KEM_1024 => Set::Ml1024,
        _ => return None,
    };
    Some(set).filter(|_| key.class() == CKO_PRIVATE_KEY && key.key_type() == CKK_ML_KEM)
}

fn prepared(key: &Key) -> Result<&PrivateKey> {
    key.prepared(|key| {
        let set = set(key).ok_or(Error::KEY_TYPE_INCONSISTENT)?;
        let made = PrivateKey::new(set, key.secret(CKA_VALUE)?);
        made.map_err(|Failed| Error::KEY_TYPE_INCONSISTENT)
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
        prepared(key).map(|key| key.set().ciphertext_length())
    }

    fn secret_length(&self, _: &Key, _: &Params) -> usize {
        SECRET_LENGTH
    }

    fn encapsulate(&self, key: &Key, params: &Params, out: &mut [u8]) -> Result<Secret> {
        self.plain.encapsulate(key, params, out)
    }

    fn decapsulate(&self, key: &Key, _: &Params, ciphertext: &[u8]) -> Result<Secret> {
        let key = prepared(key)?;
        if ciphertext.len() != key.set().ciphertext_length() {
            return Err(Error::WRAPPED_KEY_LEN_RANGE);
        }
        key.decapsulate(ciphertext).map_err(|Failed| Error::DEVICE_ERROR)
    }
}

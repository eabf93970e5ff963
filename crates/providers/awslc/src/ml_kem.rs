// SPDX-License-Identifier: Apache-2.0
//! ML-KEM keys and encapsulation (FIPS 203; PKCS#11 3.2 §6.68).

use crate::seeded::{self, Row, Seeded};
use metaslot_awslc_wrapper::Failed;
use metaslot_awslc_wrapper::ml_kem::{MlKemKey, SECRET_LENGTH, Set};
use metaslot_ck::*;
use metaslot_memory::Secret;
use metaslot_spi::provider::{Algorithm, Direction, Encapsulation, GeneratePair, checked};
use metaslot_spi::{Attributes, Key, NewObject, Params};

/// Of public keys, in bytes.
const SIZES: (u64, u64) = (800, 1568);

pub(crate) const ROWS: [Algorithm; 2] = checked([
    Algorithm {
        mechanism: CKM_ML_KEM_KEY_PAIR_GEN,
        key_sizes: SIZES,
        generate_pair: Some(&KeyPair),
        ..Algorithm::NONE
    },
    Algorithm {
        mechanism: CKM_ML_KEM,
        key_sizes: SIZES,
        encapsulate: Some(&MlKem),
        decapsulate: Some(&MlKem),
        ..Algorithm::NONE
    },
]);

impl Seeded for MlKemKey {
    const KEY_TYPE: CK_KEY_TYPE = CKK_ML_KEM;
    /// RFC 9935 §3
    const SETS: &'static [Row<Set>] = &[
        Row(CKP_ML_KEM_512, Set::Ml512, &[0x60, 0x86, 0x48, 0x01, 0x65, 0x03, 0x04, 0x04, 0x01]),
        Row(CKP_ML_KEM_768, Set::Ml768, &[0x60, 0x86, 0x48, 0x01, 0x65, 0x03, 0x04, 0x04, 0x02]),
        Row(CKP_ML_KEM_1024, Set::Ml1024, &[0x60, 0x86, 0x48, 0x01, 0x65, 0x03, 0x04, 0x04, 0x03]),
    ];
}

#[derive(Debug)]
struct KeyPair;

impl GeneratePair for KeyPair {
    fn generate_pair(&self, _: &Params, template: &Attributes) -> Result<(NewObject, NewObject)> {
        seeded::generate_pair::<MlKemKey>(template)
    }
}

fn prepared(key: &Key) -> Result<&MlKemKey> {
    key.prepared(|key| {
        let Row(_, set, _) =
            seeded::set::<MlKemKey>(key.attributes()).map_err(|_| Error::KEY_TYPE_INCONSISTENT)?;
        let made = match key.class() {
            CKO_PRIVATE_KEY => MlKemKey::private(*set, key.secret(CKA_VALUE)?),
            _ => MlKemKey::public(*set, key.bytes(CKA_VALUE)?),
        };
        made.map_err(|Failed| Error::KEY_TYPE_INCONSISTENT)
    })
}

#[derive(Debug)]
struct MlKem;

impl Encapsulation for MlKem {
    fn check(&self, direction: Direction, key: &Key, _: &Params) -> Result<()> {
        key.check_class(direction.cipher_class())?;
        prepared(key).map(|_| ())
    }

    fn ciphertext_length(&self, key: &Key, _: &Params) -> Result<usize> {
        prepared(key).map(|key| key.set().ciphertext_length())
    }

    fn natural_length(&self, _: &Key, _: &Params) -> Option<usize> {
        Some(SECRET_LENGTH)
    }

    fn encapsulate(&self, key: &Key, _: &Params, secret: &mut [u8], out: &mut [u8]) -> Result<()> {
        let made = prepared(key)?.encapsulate(out).map_err(|Failed| Error::DEVICE_ERROR)?;
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
        let key = prepared(key)?;
        if ciphertext.len() != key.set().ciphertext_length() {
            return Err(Error::WRAPPED_KEY_LEN_RANGE);
        }
        key.decapsulate(ciphertext).map_err(|Failed| Error::DEVICE_ERROR)
    }
}

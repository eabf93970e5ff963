// SPDX-License-Identifier: Apache-2.0
//! ML-DSA keys and signatures (FIPS 204; PKCS#11 3.2 §6.67).
//!
//! A private key is kept as its seed, where it has one, and in its expanded form, which `CKA_VALUE` is. Signatures are hedged
//! unless the caller wants deterministic ones.

use crate::seeded::{self, Row, Seeded};
use metaslot_awslc_wrapper::ml_dsa::{MU_LENGTH, MlDsaKey, Mu, Set, key_hash};
use metaslot_awslc_wrapper::seeded::SeededKey as _;
use metaslot_ck::*;
use metaslot_spi::parts::{self, Begun as _};
use metaslot_spi::provider::{
    Algorithm, Direction, GeneratePair, Signature, SignatureStream, checked,
};
use metaslot_spi::{Attributes, Key, NewObject, Params, Signing};
use std::sync::Arc;

/// Of public keys, in bytes.
pub(crate) const SIZES: (u64, u64) = (1312, 2592);

pub(crate) const ROWS: [Algorithm; 3] = checked([
    Algorithm {
        mechanism: CKM_ML_DSA_KEY_PAIR_GEN,
        key_sizes: SIZES,
        generate_pair: Some(&KeyPair),
        ..Algorithm::NONE
    },
    Algorithm::signature(CKM_ML_DSA, SIZES, &MlDsa),
    Algorithm::signature(CKM_ML_DSA_EXTERNAL_MU, SIZES, &ExternalMu),
]);

impl Seeded for MlDsaKey {
    const KEY_TYPE: CK_KEY_TYPE = CKK_ML_DSA;
    /// RFC 9881 §2
    const SETS: &'static [Row<Set>] = &[
        Row(CKP_ML_DSA_44, Set::Ml44, &[0x60, 0x86, 0x48, 0x01, 0x65, 0x03, 0x04, 0x03, 0x11]),
        Row(CKP_ML_DSA_65, Set::Ml65, &[0x60, 0x86, 0x48, 0x01, 0x65, 0x03, 0x04, 0x03, 0x12]),
        Row(CKP_ML_DSA_87, Set::Ml87, &[0x60, 0x86, 0x48, 0x01, 0x65, 0x03, 0x04, 0x03, 0x13]),
    ];
}

#[derive(Debug)]
struct KeyPair;

impl GeneratePair for KeyPair {
    fn generate_pair(&self, _: &Params, template: &Attributes) -> Result<(NewObject, NewObject)> {
        seeded::generate_pair::<MlDsaKey>(template)
    }
}

/// A key ready for use, and the hash of its public half, with which each µ begins.
#[derive(Debug)]
struct Prepared {
    key: MlDsaKey,
    hash: [u8; MU_LENGTH],
}

fn prepared(key: &Key) -> Result<&Prepared> {
    key.prepared(|key| {
        let Row(_, set, _) =
            *seeded::set::<MlDsaKey>(key.attributes()).map_err(|_| Error::KEY_TYPE_INCONSISTENT)?;
        let invalid = |_| Error::KEY_TYPE_INCONSISTENT;
        let key = match key.class() {
            CKO_PRIVATE_KEY => MlDsaKey::private(set, key.secret(CKA_VALUE)?).map_err(invalid)?,
            _ => MlDsaKey::public(set, key.bytes(CKA_VALUE)?).map_err(invalid)?,
        };
        let hash = key.public_bytes().and_then(|public| key_hash(&public));
        Ok(Prepared { key, hash: hash.map_err(|_| Error::DEVICE_ERROR)? })
    })
}

/// What all mechanisms check.
pub(crate) fn check(direction: Direction, key: &Key, params: &Params) -> Result<()> {
    key.check_class(direction.signature_class())?;
    params.signing(direction)?;
    prepared(key).map(|_| ())
}

/// Of a signature.
pub(crate) fn length(key: &Key) -> usize {
    seeded::set::<MlDsaKey>(key.attributes()).map_or(0, |row| row.1.signature_length())
}

/// A µ in the making, and how it will be signed.
#[derive(Debug)]
pub(crate) struct Begun {
    mu: Mu,
    deterministic: bool,
}

impl Begun {
    pub(crate) fn new(key: &Key, terms: Signing<'_>, prehashed: bool) -> Result<Self> {
        let mu = Mu::new(&prepared(key)?.hash, prehashed, terms.context);
        let mu = mu.map_err(|_| Error::DEVICE_ERROR)?;
        Ok(Self { mu, deterministic: terms.deterministic })
    }
}

impl parts::Begun for Begun {
    fn update(&mut self, data: &[u8]) -> Result<()> {
        self.mu.update(data).map_err(|_| Error::DEVICE_ERROR)
    }

    fn sign(self, key: &Key, out: &mut [u8]) -> Result<usize> {
        let mu = self.mu.finish().map_err(|_| Error::DEVICE_ERROR)?;
        sign(key, &mu, self.deterministic, out)
    }

    fn verify(self, key: &Key, signature: &[u8]) -> Result<()> {
        let mu = self.mu.finish().map_err(|_| Error::DEVICE_ERROR)?;
        verify(key, &mu, signature)
    }
}

fn sign(key: &Key, mu: &[u8; MU_LENGTH], deterministic: bool, out: &mut [u8]) -> Result<usize> {
    let key = &prepared(key)?.key;
    let out = out.get_mut(..key.set().signature_length()).ok_or(Error::BUFFER_TOO_SMALL)?;
    let signed = match deterministic {
        true => key.sign_deterministically(mu, out),
        false => key.sign(mu, out),
    };
    signed.map_err(|_| Error::DEVICE_ERROR)?;
    Ok(out.len())
}

fn verify(key: &Key, mu: &[u8; MU_LENGTH], signature: &[u8]) -> Result<()> {
    let key = &prepared(key)?.key;
    if signature.len() != key.set().signature_length() {
        return Err(Error::SIGNATURE_LEN_RANGE);
    }
    key.verify(mu, signature).map_err(|_| Error::SIGNATURE_INVALID)
}

#[derive(Debug)]
struct MlDsa;

impl MlDsa {
    fn begin(direction: Direction, key: &Key, params: &Params) -> Result<Begun> {
        Begun::new(key, params.signing(direction)?, false)
    }
}

impl Signature for MlDsa {
    fn check(&self, direction: Direction, key: &Key, params: &Params) -> Result<()> {
        check(direction, key, params)
    }

    fn length(&self, key: &Key, _: &Params) -> usize {
        length(key)
    }

    fn sign(&self, key: &Key, params: &Params, data: &[u8], out: &mut [u8]) -> Result<usize> {
        Self::begin(Direction::Forward, key, params)?.sign_all(key, data, out)
    }

    fn verify(&self, key: &Key, params: &Params, data: &[u8], signature: &[u8]) -> Result<()> {
        Self::begin(Direction::Backward, key, params)?.verify_all(key, data, signature)
    }

    fn start(
        &self,
        direction: Direction,
        key: &Arc<Key>,
        params: &Params,
    ) -> Result<Box<dyn SignatureStream>> {
        Ok(parts::stream(key, Self::begin(direction, key, params)?))
    }
}

/// `CKM_ML_DSA_EXTERNAL_MU`: the data is a µ.
#[derive(Debug)]
struct ExternalMu;

fn of_mu(data: &[u8]) -> Result<&[u8; MU_LENGTH]> {
    data.try_into().map_err(|_| Error::DATA_LEN_RANGE)
}

impl Signature for ExternalMu {
    fn check(&self, direction: Direction, key: &Key, params: &Params) -> Result<()> {
        // µ has its context already: another one would not be signed.
        let empty = params.signing(direction)?.context.is_empty().then_some(());
        empty.ok_or(Error::MECHANISM_PARAM_INVALID)?;
        check(direction, key, params)
    }

    fn length(&self, key: &Key, _: &Params) -> usize {
        length(key)
    }

    fn sign(&self, key: &Key, params: &Params, data: &[u8], out: &mut [u8]) -> Result<usize> {
        let deterministic = params.signing(Direction::Forward)?.deterministic;
        sign(key, of_mu(data)?, deterministic, out)
    }

    fn verify(&self, key: &Key, _: &Params, data: &[u8], signature: &[u8]) -> Result<()> {
        verify(key, of_mu(data)?, signature)
    }
}

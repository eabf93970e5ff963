// SPDX-License-Identifier: Apache-2.0
//! Signatures of ML-DSA and HashML-DSA (FIPS 204; PKCS#11 3.2 §6.67), over the plain provider's rows, which verify.

use super::form::Form;
use super::parts::{Plain, device_error, kept};
use crate::ml_dsa::{self, PrivateKey, RANDOM_LENGTH, Set};
use metaslot_awslc_wrapper::digest::Hash;
use metaslot_awslc_wrapper::ml_dsa::{MU_LENGTH, Mu};
use metaslot_awslc_wrapper::prehash::{Function, Hashing, LONGEST};
use metaslot_awslc_wrapper::shake::Function::{Shake128, Shake256};
use metaslot_awslc_wrapper::{Failed, random};
use metaslot_ck::*;
use metaslot_spi::parts::{self, Begun as _};
use metaslot_spi::provider::{Algorithm, Direction, Signature, SignatureStream};
use metaslot_spi::{Key, Params};
use std::sync::Arc;

/// What is signed by each mechanism; `None` for a µ, which is the data.
const FORMS: [(CK_MECHANISM_TYPE, Option<Form>); 13] = [
    (CKM_ML_DSA, Some(Form::Pure)),
    (CKM_HASH_ML_DSA, Some(Form::Digested)),
    (CKM_HASH_ML_DSA_SHA224, hashed(Function::Hash(Hash::Sha224))),
    (CKM_HASH_ML_DSA_SHA256, hashed(Function::Hash(Hash::Sha256))),
    (CKM_HASH_ML_DSA_SHA384, hashed(Function::Hash(Hash::Sha384))),
    (CKM_HASH_ML_DSA_SHA512, hashed(Function::Hash(Hash::Sha512))),
    (CKM_HASH_ML_DSA_SHA3_224, hashed(Function::Hash(Hash::Sha3_224))),
    (CKM_HASH_ML_DSA_SHA3_256, hashed(Function::Hash(Hash::Sha3_256))),
    (CKM_HASH_ML_DSA_SHA3_384, hashed(Function::Hash(Hash::Sha3_384))),
    (CKM_HASH_ML_DSA_SHA3_512, hashed(Function::Hash(Hash::Sha3_512))),
    (CKM_HASH_ML_DSA_SHAKE128, hashed(Function::Shake(Shake128))),
    (CKM_HASH_ML_DSA_SHAKE256, hashed(Function::Shake(Shake256))),
    (CKM_ML_DSA_EXTERNAL_MU, None),
];

const fn hashed(function: Function) -> Option<Form> {
    Some(Form::Hashed(function))
}

/// The rows that the plain provider has, too.
pub(super) fn rows(plain: Plain) -> Vec<Algorithm> {
    let made = FORMS.into_iter().filter_map(|(mechanism, form)| {
        let row = plain.row(mechanism)?;
        let sign = kept(MlDsa { form, plain: row.sign? });
        Some(Algorithm { sign: Some(sign), verify: None, ..*row })
    });
    made.collect()
}

#[derive(Debug)]
struct MlDsa {
    form: Option<Form>,
    plain: &'static dyn Signature,
}

/// The set of a private key.
fn set(key: &Key) -> Option<Set> {
    let set = match key.attributes().ulong(CKA_PARAMETER_SET)? {
        CKP_ML_DSA_44 => Set::Ml44,
        CKP_ML_DSA_65 => Set::Ml65,
        CKP_ML_DSA_87 => Set::Ml87,
        _ => return None,
    };
    Some(set).filter(|_| key.class() == CKO_PRIVATE_KEY && key.key_type() == CKK_ML_DSA)
}

/// Of a key that the plain provider has checked: what fails here is not the key's fault, and another provider may do it.
fn prepared(key: &Key) -> Result<&PrivateKey> {
    key.prepared(|key| {
        let set = set(key).ok_or(Error::KEY_TYPE_INCONSISTENT)?;
        let made = PrivateKey::new(set, key.secret(CKA_VALUE)?);
        made.map_err(device_error)
    })
}

/// A µ in the making, and the digest that it ends with.
#[derive(Debug)]
struct Begun {
    mu: Mu,
    hashing: Option<(Function, Hashing)>,
    deterministic: bool,
}

/// Signs µ.
fn sign(key: &Key, mu: &[u8; MU_LENGTH], deterministic: bool, out: &mut [u8]) -> Result<usize> {
    let key = prepared(key)?;
    let out = out.get_mut(..key.set().signature_length()).ok_or(Error::BUFFER_TOO_SMALL)?;
    let mut fresh = [0; RANDOM_LENGTH];
    if !deterministic {
        random::fill(&mut fresh).map_err(device_error)?;
    }
    key.sign(mu, &fresh, out).map_err(device_error)?;
    Ok(out.len())
}

impl MlDsa {
    fn begin(form: Form, key: &Key, params: &Params) -> Result<Begun> {
        let (function, terms) = (form.function(params)?, params.signing(Direction::Forward)?);
        let mu = Mu::new(prepared(key)?.hash(), function.is_some(), terms.context);
        let mut mu = mu.map_err(device_error)?;
        if let Some(function) = function {
            let name = function.identifier().ok_or(Error::MECHANISM_PARAM_INVALID)?;
            mu.update(&name).map_err(device_error)?;
        }
        let hashing = match form {
            Form::Hashed(function) => {
                let hashing = Hashing::new(function).map_err(|Failed| Error::DEVICE_MEMORY)?;
                Some((function, hashing))
            }
            Form::Pure | Form::Digested => None,
        };
        Ok(Begun { mu, hashing, deterministic: terms.deterministic })
    }
}

impl parts::Begun for Begun {
    fn update(&mut self, data: &[u8]) -> Result<()> {
        match &mut self.hashing {
            Some((_, hashing)) => hashing.update(data).map_err(device_error),
            None => self.mu.update(data).map_err(device_error),
        }
    }

    fn sign(mut self, key: &Key, out: &mut [u8]) -> Result<usize> {
        if let Some((function, hashing)) = self.hashing {
            let mut digest = [0; LONGEST];
            let digest = &mut digest[..function.length()];
            hashing.finish(digest).map_err(device_error)?;
            self.mu.update(digest).map_err(device_error)?;
        }
        let mu = self.mu.finish().map_err(device_error)?;
        sign(key, &mu, self.deterministic, out)
    }

    fn verify(self, _: &Key, _: &[u8]) -> Result<()> {
        Err(Error::FUNCTION_NOT_SUPPORTED)
    }
}

impl Signature for MlDsa {
    fn serves(&self, key: &Key) -> bool {
        ml_dsa::available() && set(key).is_some()
    }

    fn check(&self, direction: Direction, key: &Key, params: &Params) -> Result<()> {
        self.plain.check(direction, key, params)
    }

    fn length(&self, key: &Key, params: &Params) -> usize {
        self.plain.length(key, params)
    }

    fn sign(&self, key: &Key, params: &Params, data: &[u8], out: &mut [u8]) -> Result<usize> {
        let Some(form) = self.form else {
            let mu = data.try_into().map_err(|_| Error::DATA_LEN_RANGE)?;
            return sign(key, mu, params.signing(Direction::Forward)?.deterministic, out);
        };
        if let (Form::Digested, Some(function)) = (form, form.function(params)?)
            && data.len() != function.length()
        {
            return Err(Error::DATA_LEN_RANGE);
        }
        Self::begin(form, key, params)?.sign_all(key, data, out)
    }

    fn verify(&self, key: &Key, params: &Params, data: &[u8], signature: &[u8]) -> Result<()> {
        self.plain.verify(key, params, data, signature)
    }

    fn start(
        &self,
        direction: Direction,
        key: &Arc<Key>,
        params: &Params,
    ) -> Result<Box<dyn SignatureStream>> {
        match (direction, self.form) {
            (Direction::Forward, Some(form @ (Form::Pure | Form::Hashed(_)))) => {
                Ok(parts::stream(key, Self::begin(form, key, params)?))
            }
            _ => self.plain.start(direction, key, params),
        }
    }
}

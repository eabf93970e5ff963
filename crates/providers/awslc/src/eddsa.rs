// SPDX-License-Identifier: Apache-2.0
//! Ed25519 keys and signatures (PKCS#11 3.2 §6.3.10 and §6.3.14).

use crate::{generate, hashes};
use metaslot_awslc_wrapper::curve25519::{
    ED25519_SIGNATURE_LENGTH, Ed25519, Ed25519Key, KEY_LENGTH, ed25519_verify,
};
use metaslot_awslc_wrapper::digest::Hash;
use metaslot_ck::*;
use metaslot_spi::buffer::hold;
use metaslot_spi::number_key::{self, NumberCurve};
use metaslot_spi::provider::{
    Algorithm, Direction, GeneratePair, Signature, SignatureStream, checked,
};
use metaslot_spi::{Attributes, Bytes, Key, NewObject, Params, key_info};
use std::sync::Arc;

const SIZES: (u64, u64) = (255, 255);
const FLAGS: u64 = CKF_EC_F_P | CKF_EC_NAMEDCURVE | CKF_EC_CURVENAME;

pub(crate) const ROWS: [Algorithm; 2] = checked([
    Algorithm {
        mechanism: CKM_EC_EDWARDS_KEY_PAIR_GEN,
        key_sizes: SIZES,
        generate_pair: Some(&KeyPair),
        extra_flags: FLAGS,
        ..Algorithm::NONE
    },
    Algorithm { extra_flags: FLAGS, ..Algorithm::signature(CKM_EDDSA, SIZES, &EdDsa) },
]);

pub(crate) const ED25519_KEYS: NumberCurve = NumberCurve {
    oid: number_key::ED25519,
    length: KEY_LENGTH,
    public: |seed| Ok(seed_key(seed)?.public().to_vec()),
    random: generate::random,
};

#[derive(Debug)]
struct KeyPair;

impl GeneratePair for KeyPair {
    fn serves(&self, public: &Attributes) -> bool {
        ED25519_KEYS.serves(public)
    }

    fn generate_pair(&self, _: &Params, template: &Attributes) -> Result<(NewObject, NewObject)> {
        ED25519_KEYS.generate(template)
    }
}

fn seed_key(seed: &[u8]) -> Result<Ed25519Key> {
    seed.try_into().map(Ed25519Key::new).map_err(|_| Error::KEY_TYPE_INCONSISTENT)
}

fn signer(key: &Key) -> Result<&Ed25519Key> {
    key.prepared(|key| seed_key(key.secret(CKA_VALUE)?))
}

/// The public half of a key that is a number.
pub(crate) fn point(key: &Key) -> Result<&[u8; KEY_LENGTH]> {
    key_info::number_point(key.bytes(CKA_EC_POINT)?).ok_or(Error::KEY_TYPE_INCONSISTENT)
}

/// The form that the parameters ask for (§6.3.14): absent ones mean Ed25519 itself, given ones
/// Ed25519ctx or Ed25519ph. Ed25519ctx without a context, which RFC 8032 §5.1 advises against and
/// which is not Ed25519, is refused rather than mistaken for either.
fn form(params: &Params) -> Result<Ed25519<'_>> {
    match params {
        Params::None => Ok(Ed25519::Plain),
        Params::EdDsa { context, .. } if context.len() > 255 => Err(Error::MECHANISM_PARAM_INVALID),
        Params::EdDsa { prehash: true, context } => Ok(Ed25519::Prehash(context)),
        Params::EdDsa { prehash: false, context } if !context.is_empty() => {
            Ok(Ed25519::Context(context))
        }
        _ => Err(Error::MECHANISM_PARAM_INVALID),
    }
}

/// Signs a message, or for the pre-hash form its digest.
fn sign(key: &Key, form: Ed25519<'_>, data: &[u8], out: &mut [u8]) -> Result<usize> {
    let out = out.first_chunk_mut().ok_or(Error::BUFFER_TOO_SMALL)?;
    signer(key)?.sign(form, data, out).map_err(|_| Error::DEVICE_ERROR)?;
    Ok(ED25519_SIGNATURE_LENGTH)
}

fn verify(key: &Key, form: Ed25519<'_>, data: &[u8], signature: &[u8]) -> Result<()> {
    let signature = signature.try_into().map_err(|_| Error::SIGNATURE_LEN_RANGE)?;
    ed25519_verify(form, point(key)?, data, signature).map_err(|_| Error::SIGNATURE_INVALID)
}

#[derive(Debug)]
struct EdDsa;

impl Signature for EdDsa {
    fn serves(&self, key: &Key) -> bool {
        number_key::is_long(key, KEY_LENGTH)
    }

    fn check(&self, direction: Direction, key: &Key, params: &Params) -> Result<()> {
        key.check_class(direction.signature_class())?;
        form(params)?;
        match direction {
            Direction::Forward => signer(key).map(|_| ()),
            Direction::Backward => point(key).map(|_| ()),
        }
    }

    fn length(&self, _: &Key, _: &Params) -> usize {
        ED25519_SIGNATURE_LENGTH
    }

    fn sign(&self, key: &Key, params: &Params, data: &[u8], out: &mut [u8]) -> Result<usize> {
        match form(params)? {
            Ed25519::Prehash(context) => {
                hashes::sign(&Prehashed(Bytes::from_slice(context)), key, data, out)
            }
            form => {
                // What another thread makes of it between both readings would be signed with the same number, which gives the key away.
                let mut message = Vec::new();
                hold(&mut message, data, Error::DATA_LEN_RANGE)?;
                sign(key, form, &message, out)
            }
        }
    }

    fn verify(&self, key: &Key, params: &Params, data: &[u8], signature: &[u8]) -> Result<()> {
        match form(params)? {
            Ed25519::Prehash(context) => {
                hashes::verify(&Prehashed(Bytes::from_slice(context)), key, data, signature)
            }
            form => verify(key, form, data, signature),
        }
    }

    fn start(
        &self,
        _: Direction,
        key: &Arc<Key>,
        params: &Params,
    ) -> Result<Box<dyn SignatureStream>> {
        match form(params)? {
            Ed25519::Prehash(context) => hashes::start(Prehashed(Bytes::from_slice(context)), key),
            Ed25519::Plain => Ok(Collected::boxed(key, None)),
            Ed25519::Context(context) => Ok(Collected::boxed(key, Some(context))),
        }
    }
}

/// Ed25519ph with its context.
#[derive(Debug)]
struct Prehashed(Bytes);

impl hashes::DigestScheme for Prehashed {
    fn hash(&self) -> Option<Hash> {
        Some(Hash::Sha512)
    }

    fn sign_digest(&self, key: &Key, digest: &[u8], out: &mut [u8]) -> Result<usize> {
        sign(key, Ed25519::Prehash(&self.0), digest, out)
    }

    fn verify_digest(&self, key: &Key, digest: &[u8], signature: &[u8]) -> Result<()> {
        verify(key, Ed25519::Prehash(&self.0), digest, signature)
    }
}

/// The forms that read their message twice: it has to be kept until the end.
#[derive(Debug)]
struct Collected {
    key: Arc<Key>,
    context: Option<Bytes>,
    message: Vec<u8>,
}

impl Collected {
    fn boxed(key: &Arc<Key>, context: Option<&[u8]>) -> Box<dyn SignatureStream> {
        Box::new(Self {
            key: Arc::clone(key),
            context: context.map(Bytes::from_slice),
            message: Vec::new(),
        })
    }

    fn form(&self) -> Ed25519<'_> {
        self.context.as_ref().map_or(Ed25519::Plain, |context| Ed25519::Context(context))
    }
}

impl SignatureStream for Collected {
    fn update(&mut self, data: &[u8]) -> Result<()> {
        hold(&mut self.message, data, Error::DATA_LEN_RANGE)
    }

    fn sign(&mut self, out: &mut [u8]) -> Result<usize> {
        sign(&self.key, self.form(), &self.message, out)
    }

    fn verify(&mut self, signature: &[u8]) -> Result<()> {
        verify(&self.key, self.form(), &self.message, signature)
    }
}
